//! Packets as bytes in a run: what a capture sees, and what byte mode checks.

use crate::common::*;
use base::{Duration, Time};
use host::{Context, Middlebox, Port, Verdict};
use sim::{ByteFault, Capture, CapturePoint};
use std::io;
use std::sync::{Arc, Mutex};
use wire::{Body, EmitError, Header, Packet};

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
