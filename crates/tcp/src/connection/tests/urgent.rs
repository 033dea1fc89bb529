//! Urgent data, which is tolerated (RFC 6093).

use super::*;
use crate::{FastPathOutcome, Reader};

fn urgent(seg: Seg) -> Seg {
    Seg { flags: seg.flags | Flags::URG, ..seg }
}

#[test]
fn urgent_data_is_delivered_in_line() {
    // RFC 6093 §2.1, §6: as with SO_OOBINLINE, without a mark.
    let mut t = established(config());
    t.send(data(1));
    t.recv([ack(2)]);
    t.send(urgent(data(2)));
    t.recv([ack(3)]);
    t.send(data(3));
    t.recv([ack(4)]);
    assert_eq!(t.connection.take_events(), Events::READABLE);
    assert_eq!(t.read(0), 3000);
    assert_eq!(t.statistics().urgent, 1);
}

#[test]
fn urgent_data_out_of_order_waits_for_what_is_missing() {
    let mut t = established(config());
    t.send(urgent(data(2)));
    assert_eq!(t.read(0), 0);
    t.send(data(1));
    assert_eq!(t.read(0), 2000);
    // A copy counts only if it is acceptable.
    t.send(urgent(data(2)));
    assert_eq!(t.statistics().urgent, 1);
}

#[test]
fn an_urgent_flag_without_data_changes_nothing() {
    let mut t = established(config());
    t.write(1000);
    t.recv([data(1)]);
    t.send(urgent(ack(2)));
    t.silent();
    assert_eq!(t.connection.sender.outstanding(), 0);
    assert_eq!((t.connection.take_events(), t.statistics().urgent), (Events::empty(), 1));
}

/// An established connection, and a segment of data for it with this urgent pointer.
fn arriving(flags: Flags, pointer: u16) -> (Diagram, Packet) {
    let t = established(config());
    let segment = Segment {
        source_port: 2,
        destination_port: 1,
        seq: PEER_ISS + 1,
        ack: ISS + 1,
        flags,
        window: 1000,
        urgent: pointer,
        ..Segment::default()
    };
    let payload = Payload { stream: 7, offset: 0, len: MSS };
    (t, Packet { body: wire::Body::Tcp(segment), payload, ..Packet::BLANK })
}

/// Takes everything.
struct Take;

impl Reader for Take {
    fn take(&mut self, _: Payload) -> bool {
        true
    }
}

#[test]
fn an_urgent_pointer_beyond_the_data_changes_nothing() {
    let (mut t, packet) = arriving(Flags::ACK | Flags::URG, u16::MAX);
    let wire::Body::Tcp(segment) = packet.body else { panic!("not TCP") };
    t.connection.handle_segment(t.now, &segment, packet.payload, wire::Ecn::NotCapable);
    t.transmit();
    t.recv([ack(2)]);
    assert_eq!((t.read(0), t.statistics().urgent), (1000, 1));
}

#[test]
fn an_urgent_pointer_is_never_sent() {
    // The fast path writes its answer over a segment whose pointer has no meaning without URG.
    let (mut t, mut packet) = arriving(Flags::ACK, 77);
    let now = t.now;
    let mut path = t.connection.fast_path(Time::NEVER).expect("it is on the fast path");
    let outcome = path.exchange(now, &mut packet, &mut Take);
    assert!(matches!(outcome, FastPathOutcome::Answered { .. }), "{outcome:?}");
    let wire::Body::Tcp(answer) = packet.body else { panic!("not TCP") };
    assert_eq!((answer.urgent, answer.flags), (0, Flags::ACK));
}

#[test]
fn urgent_segments_leave_the_fast_path() {
    let (mut t, mut packet) = arriving(Flags::ACK | Flags::URG, 1);
    let (now, before) = (t.now, packet);
    let mut path = t.connection.fast_path(Time::NEVER).expect("it is on the fast path");
    assert_eq!(path.exchange(now, &mut packet, &mut Take), FastPathOutcome::Refused);
    assert_eq!(packet, before);
}
