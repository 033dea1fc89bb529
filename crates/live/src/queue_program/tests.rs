use super::*;
use crate::bpf::bpf;
use host::FourTuple;
use std::cell::UnsafeCell;
use std::io::Write as _;
use std::net::IpAddr;
use wire::{Flags, Ip, Packet};

/// `BPF_PROG_TEST_RUN`, and the beginning of `union bpf_attr` for it.
const TEST_RUN: c_int = 10;

#[repr(C)]
struct TestRun {
    program: u32,
    result: UnsafeCell<u32>,
    len: u32,
    len_out: UnsafeCell<u32>,
    data: u64,
    data_out: u64,
    repeat: u32,
    duration: UnsafeCell<u32>,
}

/// What the program returns for a packet.
fn queue(program: &QueueProgram, packet: &[u8]) -> u32 {
    // The kernel takes an Ethernet header off, as this run has one for all programs.
    let ether_type = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    let frame = [&[0; 12][..], &ether_type, packet].concat();
    let run = TestRun {
        program: program.program.as_fd().as_raw_fd() as u32,
        result: 7.into(),
        len: frame.len() as u32,
        len_out: 0.into(),
        data: frame.as_ptr() as u64,
        data_out: 0,
        repeat: 1,
        duration: 0.into(),
    };
    #[expect(
        unsafe_code,
        reason = "the frame lives until the end, and nothing else is pointed to"
    )]
    unsafe { bpf(TEST_RUN, &run) }.unwrap();
    run.result.into_inner()
}

/// A segment with these flags between two addresses.
fn segment(ends: [IpAddr; 2], flags: Flags) -> Vec<u8> {
    let mut packet = Packet { ip: Ip::new(ends[0], ends[1]), ..Packet::BLANK };
    packet.make_tcp().flags = flags;
    let mut bytes = Vec::new();
    packet.emit(&[], &mut bytes).unwrap();
    bytes
}

/// With so many words of options in the IPv4 header.
fn with_options(mut packet: Vec<u8>, words: u8) -> Vec<u8> {
    packet.splice(20..20, vec![1; 4 * usize::from(words)]);
    packet[0] += words;
    packet
}

/// With these bytes at this place.
fn with(mut packet: Vec<u8>, place: usize, bytes: &[u8]) -> Vec<u8> {
    packet[place..place + bytes.len()].copy_from_slice(bytes);
    packet
}

/// The program for so many workers; `None`, and a word about it, where it may not be loaded.
fn load(workers: usize) -> Option<(Owners, QueueProgram)> {
    let owners = Owners::new(workers, [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
    match QueueProgram::load(&owners) {
        Ok(program) => Some((owners, program)),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED the program for queues: {error}");
            None
        }
    }
}

#[test]
fn syns_are_for_the_second_queue_and_rsts_for_the_third_and_all_else_is_for_the_first() {
    let Some((_, program)) = load(1) else { return };
    let v4 = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
    let v6 = [1, 2].map(|n| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n]));
    let ecn = Flags::ECE | Flags::CWR;
    for (flags, expected) in [
        (Flags::SYN, 1),
        (Flags::SYN | ecn, 1),
        (Flags::SYN | Flags::FIN, 1),
        (Flags::SYN | Flags::ACK, 0),
        (Flags::SYN | Flags::ACK | ecn, 0),
        (Flags::ACK, 0),
        (Flags::ACK | Flags::PSH, 0),
        (Flags::ACK | Flags::FIN, 0),
        (Flags::RST, 2),
        (Flags::RST | Flags::ACK, 2),
        (Flags::RST | Flags::ACK | Flags::PSH, 2),
        (Flags::RST | Flags::SYN, 1),
        (Flags::RST | Flags::SYN | Flags::ACK, 2),
        (ecn, 0),
    ] {
        assert_eq!(queue(&program, &segment(v4, flags)), expected, "{flags:?}");
        assert_eq!(queue(&program, &segment(v6, flags)), expected, "{flags:?}");
        for words in [1, 5, 10] {
            let packet = with_options(segment(v4, flags), words);
            assert_eq!(queue(&program, &packet), expected, "{flags:?}, {words}");
        }
    }
    let [syn4, syn6] = [v4, v6].map(|ends| segment(ends, Flags::SYN));
    const DONT_FRAGMENT: u8 = 0x40;
    const MORE_FRAGMENTS: u8 = 0x20;
    for (what, packet, expected) in [
        ("may not be fragmented", with(syn4.clone(), 6, &[DONT_FRAGMENT, 0]), 1),
        ("the first fragment", with(syn4.clone(), 6, &[MORE_FRAGMENTS, 0]), 1),
        ("a later fragment", with(syn4.clone(), 6, &[MORE_FRAGMENTS, 3]), 0),
        ("the last fragment", with(syn4.clone(), 6, &[0x1f, 0]), 0),
        ("UDP, IPv4", with(syn4.clone(), 9, &[17]), 0),
        ("UDP, IPv6", with(syn6.clone(), 6, &[17]), 0),
        ("an extension header", with(syn6.clone(), 6, &[60]), 0),
        ("another version of IP", with(syn4.clone(), 0, &[0x55]), 0),
        ("options that are not there", with(syn4.clone(), 0, &[0x4f]), 0),
        ("ends before the flags, IPv4", syn4[..20 + 13].to_vec(), 0),
        ("ends before the flags, IPv6", syn6[..40 + 13].to_vec(), 0),
        ("ends after the flags, IPv4", syn4[..20 + 14].to_vec(), 1),
        ("ends after the flags, IPv6", syn6[..40 + 14].to_vec(), 1),
        ("ends after the IP header", syn4[..20].to_vec(), 0),
    ] {
        assert_eq!(queue(&program, &packet), expected, "{what}");
    }
}

#[test]
fn packets_of_a_connection_are_for_the_queues_of_its_owner_in_both_directions() {
    // Ends that differ in one bit, and such that are the same but for the port.
    let mut ends = vec![];
    for port in [1, 2, 0x8000, 0xffff] {
        for n in [0, 1, 0x80] {
            ends.push((IpAddr::from([10, n, n, 1]), port));
            ends.push((IpAddr::from([n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), port));
            ends.push((IpAddr::from([0x20, 1, 0, 0, 0, 0, 0, 0, n, 0, 0, 0, 0, 0, n, 1]), port));
        }
    }
    for workers in [2, 3, 8] {
        let Some((owners, program)) = load(workers) else { return };
        let mut owned = vec![0; workers];
        for (source, destination) in ends.iter().flat_map(|a| ends.iter().map(move |b| (*a, *b))) {
            if source.0.is_ipv4() != destination.0.is_ipv4() {
                continue;
            }
            let tuple = FourTuple {
                local: source.0,
                local_port: source.1,
                remote: destination.0,
                remote_port: destination.1,
            };
            let owner = owners.of(&tuple);
            assert_eq!(owners.of(&tuple.reversed()), owner);
            owned[owner] += 1;
            for (kind, flags) in [Flags::ACK, Flags::SYN, Flags::RST].into_iter().enumerate() {
                let mut packet = Packet { ip: Ip::new(source.0, destination.0), ..Packet::BLANK };
                let segment = packet.make_tcp();
                (segment.source_port, segment.destination_port) = (source.1, destination.1);
                segment.flags = flags;
                let mut bytes = Vec::new();
                packet.emit(&[], &mut bytes).unwrap();
                let expected = (kind * workers + owner) as u32;
                assert_eq!(queue(&program, &bytes), expected, "{tuple:?}, {flags:?}");
                if source.0.is_ipv4() {
                    assert_eq!(queue(&program, &with_options(bytes, 3)), expected);
                }
            }
        }
        assert!(owned.iter().all(|count| *count > 0), "{owned:?}");
        // What has no owner is the first worker's.
        let fragment =
            with(segment([1, 2].map(|n| IpAddr::from([10, 0, 0, n])), Flags::SYN), 6, &[0, 9]);
        assert_eq!(queue(&program, &fragment), 0);
    }
}
