use super::*;
use crate::bpf::bpf;
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
fn queue(program: &ControlProgram, packet: &[u8]) -> u32 {
    // The kernel takes an Ethernet header off, as this run has one for all programs.
    let ether_type = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    let frame = [&[0; 12][..], &ether_type, packet].concat();
    let run = TestRun {
        program: program.0.as_fd().as_raw_fd() as u32,
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

#[test]
fn syns_are_for_the_second_queue_and_rsts_for_the_third_and_all_else_is_for_the_first() {
    let program = match ControlProgram::load() {
        Ok(program) => program,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED the program for SYNs and RSTs: {error}");
            return;
        }
    };
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
