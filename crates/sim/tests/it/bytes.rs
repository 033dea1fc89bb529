//! Packets as bytes in a run: what a capture sees, and what byte mode checks.

use crate::common::*;
use base::{Duration, Time};
use core::net::IpAddr;
use host::{Context, Middlebox, Port, Verdict};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use sim::{ByteFault, Capture, CapturePoint};
use std::fs::File;
use std::io::{self, Write};
use std::process::Command;
use std::sync::{Arc, Mutex};
use wire::{Body, EmitError, Esp, EspKeys, Header, Packet, Protected, Spep};

/// When, at which point, and the packet.
type Seen = (Time, usize, Vec<u8>);

/// Keeps what it is given, up to a number of packets.
#[derive(Clone)]
struct Tape {
    seen: Arc<Mutex<Vec<Seen>>>,
    most: usize,
}

impl Tape {
    fn of(most: usize) -> Tape {
        Tape { seen: Arc::default(), most }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("not poisoned").clone()
    }
}

impl Capture for Tape {
    fn packet(&mut self, at: Time, point: usize, bytes: &[u8]) -> io::Result<()> {
        let mut seen = self.seen.lock().expect("not poisoned");
        if seen.len() == self.most {
            return Err(io::ErrorKind::StorageFull.into());
        }
        seen.push((at, point, bytes.to_vec()));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// 100 kB over two hops, the second of which loses and damages packets.
fn path() -> Path {
    let lossy = Hop {
        rate: mbps(1),
        delay: Duration::from_millis(10),
        queue: link::Queue::Packets(20),
        forward: link::Uniform { packet: 0.02, ..noisy(0.02, 1040) },
        ..Hop::default()
    };
    Path { hops: vec![Hop::default(), lossy], size: Some(100_000), ..Path::default() }
}

#[test]
fn a_capture_sees_what_links_accept_and_what_nodes_receive() {
    let (mut lab, tape) = (path().build(), Tape::of(usize::MAX));
    let (first, second) = (lab.links[0].0, lab.links[1].0);
    let points = vec![
        CapturePoint::Sent(first),
        CapturePoint::Received(first),
        CapturePoint::Sent(second),
        CapturePoint::Received(second),
    ];
    lab.world.capture(points, tape.clone());
    lab.world.run_until(secs(1000));
    lab.world.finish_capture().unwrap();

    let seen = tape.seen();
    assert!(seen.is_sorted_by_key(|(at, ..)| *at));
    let at = |point| seen.iter().filter(move |(_, at, _)| *at == point);
    let statistics = [first, second].map(|link| lab.world.link(link));
    assert_eq!(at(0).count() as u64, statistics[0].packets);
    assert_eq!(at(2).count() as u64, statistics[1].packets);
    let damaged = statistics[1].corrupted + statistics[1].lost;
    assert!(statistics[1].corrupted > 0 && statistics[1].lost > 0);
    assert_eq!(at(3).count() as u64, statistics[1].packets - damaged);

    // A hop without limits: the same bytes, later.
    let delay = Duration::from_millis(50);
    for ((sent_at, _, sent), (received_at, _, received)) in at(0).zip(at(1)) {
        assert_eq!((*sent_at + delay, sent), (*received_at, received));
    }
    // And every router takes one from the hop limit.
    for (_, point, bytes) in &seen {
        let (packet, _) = Packet::parse(bytes).unwrap();
        assert_eq!(packet.ip.hop_limit, if *point < 2 { 64 } else { 63 });
    }
}

#[test]
fn a_byte_of_the_stream_is_the_same_whenever_it_is_sent() {
    let (mut lab, tape) = (path().build(), Tape::of(usize::MAX));
    lab.world.capture(vec![CapturePoint::Sent(lab.links[0].0)], tape.clone());
    lab.world.run_until(secs(1000));
    let mut stream = vec![None; 100_000];
    let mut again = 0;
    let mut start = None;
    for (_, _, bytes) in tape.seen() {
        let (packet, place) = Packet::parse(&bytes).unwrap();
        let Body::Tcp(segment) = packet.body else { panic!("not TCP") };
        let first = *start.get_or_insert(segment.seq + 1);
        for (index, byte) in bytes[place].iter().enumerate() {
            let known = &mut stream[(segment.seq - first) as usize + index];
            again += usize::from(known.is_some());
            assert_eq!(*known.get_or_insert(*byte), *byte);
        }
    }
    assert!(stream.iter().all(Option::is_some));
    assert!(again > 0, "something is sent again");
}

#[test]
fn a_capture_that_fails_says_so_and_the_run_goes_on() {
    let (mut lab, tape) = (path().build(), Tape::of(10));
    lab.world.capture(vec![CapturePoint::Sent(lab.links[0].0)], tape.clone());
    lab.world.run_until(secs(1000));
    let error = lab.world.finish_capture().unwrap_err();
    assert_eq!((error.kind(), tape.seen().len()), (io::ErrorKind::StorageFull, 10));
    assert_eq!(lab.receiving().1.received, 100_000);
}

/// Writes nonsense into packets.
struct Vandal;

impl Middlebox for Vandal {
    fn packet(
        &mut self,
        _: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        packet.ip.dscp = 99;
        Verdict::Forward
    }
}

#[test]
fn byte_mode_finds_packets_that_no_wire_could_carry() {
    let mut lab = path().build();
    lab.world.add_box(lab.nodes[1], Box::new(Vandal));
    lab.world.byte_mode();
    lab.world.run_until(secs(1000));
    let (header, field) = (Header::Ipv4, "DSCP");
    let fault = ByteFault::Emit(EmitError::Field { header, field, found: 99, most: 63 });
    assert_eq!(lab.world.byte_fault(), Some(fault));
}

/// An end's ESP in transport mode.
struct Protection {
    own: [IpAddr; 2],
    sent: u64,
}

impl Middlebox for Protection {
    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if from.is_none() {
            self.sent += 1;
            if packet.ip.source.is_ipv6() {
                assert!(Spep::put(packet));
            }
            // Each direction has its own.
            let spi = if packet.ip.source == self.own[0] { 0x1000 } else { 0x2000 };
            assert!(packet.protect(Esp::numbered(spi, self.sent)));
        } else if self.own.contains(&packet.ip.destination) {
            assert!(packet.unprotect().is_some());
        }
        Verdict::Forward
    }
}

/// Writes blocks into packets that it cannot read.
struct Station;

impl Middlebox for Station {
    fn packet(
        &mut self,
        _: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        assert!(packet.tcp_mut().is_none());
        if let Some(esp) = packet.esp() {
            Spep { blocks: [(1, esp.sequence), (0, 0), (0, 0)] }.renew(packet);
        }
        Verdict::Forward
    }
}

fn protected(v6: bool) -> Lab {
    let tcp = tcp::Config { timestamps: true, ..plain() };
    let mut lab = Path { v6, tcp, ..path() }.build();
    for (node, first) in [(lab.sender(), 0), (lab.receiver(), 1)] {
        let mut own = [node.address(), node.address_v6()];
        own.rotate_left(usize::from(v6) ^ first);
        lab.world.add_box(node, Box::new(Protection { own, sent: 0 }));
    }
    lab.world.add_box(lab.nodes[1], Box::new(Station));
    lab.world.digest();
    lab
}

#[test]
fn packets_in_transport_mode_are_encrypted_and_decrypted_at_every_hop() {
    for v6 in [false, true] {
        let [plain, in_bytes] = [false, true].map(|bytes| {
            let mut lab = protected(v6);
            if bytes {
                lab.world.byte_mode();
            }
            lab.world.run_until(secs(1000));
            assert_eq!((lab.received(), lab.world.byte_fault()), (100_000, None));
            assert!(lab.statistics().retransmissions > 0);
            lab.world.observations().1
        });
        assert_eq!(plain, in_bytes);
    }
}

#[test]
fn a_capture_of_them_can_be_decrypted_with_the_key_of_the_simulator() {
    let keys = EspKeys::of_lab();
    let (mut lab, tape) = (protected(true), Tape::of(usize::MAX));
    let (there, back) = lab.links[1];
    lab.world.capture(vec![CapturePoint::Sent(there), CapturePoint::Sent(back)], tape.clone());
    lab.world.run_until(secs(1000));
    let mut last = [0, 0];
    for (_, point, bytes) in tape.seen() {
        let (packet, place) = Packet::parse(&bytes).unwrap();
        let esp = packet.esp().expect("ESP");
        let blocks = [[(1, esp.sequence), (0, 0), (0, 0)], [(0, 0); 3]];
        assert_eq!(Spep::of(&packet), Some(Spep { blocks: blocks[point] }));
        // No number, and no initialization vector, is used twice.
        assert!(esp.sequence > last[point]);
        last[point] = esp.sequence;
        let (opened, _) = keys.open(&packet, 0, &mut bytes[place].to_vec()).unwrap();
        let Body::EspTransport(Protected::Tcp(segment)) = opened.body else { panic!("not TCP") };
        let port = [segment.destination_port, segment.source_port][point];
        assert_eq!(port, PORT);
    }
    assert!(last[0] > 100 && last[1] > 50);
}

/// Reads captured packets with the settings that the book gives: each packet's protocols, and whether its
/// integrity check value is right. tshark is not asked where it is missing, but continuous integration
/// has it.
fn tshark(seen: &[Seen]) -> Option<Vec<String>> {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("transport-mode.pcap");
    let header = PcapHeader { datalink: DataLink::RAW, ..PcapHeader::default() };
    let mut file = PcapWriter::with_header(File::create(&path).unwrap(), header).unwrap();
    for (at, _, bytes) in seen {
        let at = std::time::Duration::from_nanos(at.as_nanos());
        file.write_packet(&PcapPacket::new(at, bytes.len() as u32, bytes)).unwrap();
    }
    let book = include_str!("../../../../docs/simulator.md");
    let (_, command) = book.split_once("tshark -r FILE ").expect("a command");
    let (arguments, _) = command.split_once("\n```").expect("its end");
    let arguments = arguments.replace("\\\n", "");
    // Its port is registered for a protocol: to tshark, the payload's pattern would be that.
    let shown = format!("-d tcp.port=={PORT},data -T fields -e frame.protocols -e esp.icv_good");
    let script = format!("tshark -r \"$0\" {arguments} {shown}");
    if let Err(error) = Command::new("tshark").arg("--version").output() {
        // Past the harness, which shows no words of a test that passes.
        let _ = writeln!(io::stderr(), "\n*** NOT TESTED: tshark cannot be run ({error})\n");
        return None;
    }
    let output = Command::new("sh").args(["-c", &script]).arg(&path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark: {errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn tshark_decrypts_a_capture_with_the_settings_in_the_book() {
    for v6 in [false, true] {
        let (mut lab, tape) = (protected(v6), Tape::of(usize::MAX));
        let (there, back) = lab.links[1];
        let points = vec![CapturePoint::Received(there), CapturePoint::Received(back)];
        lab.world.capture(points, tape.clone());
        lab.world.run_until(secs(1000));
        let Some(shown) = tshark(&tape.seen()) else { return };
        assert!(shown.len() > 150 && shown.len() == tape.seen().len());
        let headers = if v6 { "raw:ipv6:ipv6.dstopts:esp:tcp" } else { "raw:ip:esp:tcp" };
        for line in shown {
            assert!(line.starts_with(headers) && line.ends_with("\t1"), "{line}");
        }
    }
}
