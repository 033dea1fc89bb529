//! Corruption notices by way of the receiver (`bbn8333` §2.1.3; MECHANISMS.md section 3).

use super::*;
use crate::mechanism::{ForwardEten, Mechanism, Suppression};

const RECOVERIES: [Recovery; 4] =
    [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack];

/// A window of ten segments, in congestion avoidance.
fn with(recovery: Recovery, suppress_dupacks: Suppression) -> Config {
    Config {
        recovery,
        initial_ssthresh: Some(segments(10)),
        mechanisms: vec![Mechanism::ForwardEten(ForwardEten::new(suppress_dupacks))],
        ..config()
    }
}

/// An end that only receives data.
fn receiving() -> Diagram {
    established(with(Recovery::Sack, Suppression::All))
}

impl Diagram {
    /// Indicates that a copy of the peer's segment `n` was corrupted.
    fn corrupted(&mut self, n: u32, copy: u32) {
        let (seq, copy) = (PEER_ISS + at(n), CopyId(copy));
        let indication = Indication::PeerCorrupted { seq, len: MSS, copy };
        self.connection.indicate(self.now + self.ahead, &indication);
        self.transmit();
    }
}

// --- the receiver ---

#[test]
fn word_is_passed_on_at_once_and_repeated_until_the_octets_arrive() {
    let mut t = receiving();
    t.send(data(1));
    t.recv([ack(2)]);
    t.corrupted(2, 7);
    t.recv([ack(2).echoes_alone(2, 7)]);
    t.send(data(3));
    t.recv([ack(2).sack(3..=3).echoes(2, 7)]);
    t.send(data(4));
    t.recv([ack(2).sack(3..=4).echoes(2, 7)]);
    t.send(data(2));
    t.recv([ack(5)]);
}

#[test]
fn a_segment_that_arrives_beyond_another_gap_is_no_longer_echoed() {
    let mut t = receiving();
    t.corrupted(3, 7);
    t.recv([ack(1).echoes_alone(3, 7)]);
    t.send(data(3));
    t.recv([ack(1).sack(3..=3)]);
}

#[test]
fn several_reports_take_turns() {
    let mut t = receiving();
    t.corrupted(1, 5);
    t.recv([ack(1).echoes_alone(1, 5)]);
    t.corrupted(3, 7);
    t.recv([ack(1).echoes_alone(3, 7)]);
    t.send(data(2));
    t.recv([ack(1).sack(2..=2).echoes(1, 5)]);
    t.send(data(4));
    t.recv([ack(1).sack(4..=4).sack(2..=2).echoes(3, 7)]);
    t.send(data(1));
    t.recv([ack(3).sack(4..=4).echoes(3, 7)]);
}

#[test]
fn a_later_copy_takes_the_place_of_an_earlier_one_and_the_same_is_no_news() {
    let mut t = receiving();
    t.corrupted(1, 5);
    t.recv([ack(1).echoes_alone(1, 5)]);
    t.corrupted(1, 5);
    t.silent();
    t.corrupted(1, 6);
    t.recv([ack(1).echoes_alone(1, 6)]);
    t.send(data(2));
    t.recv([ack(1).sack(2..=2).echoes(1, 6)]);
}

#[test]
fn word_of_what_has_arrived_or_cannot_arrive_is_not_passed_on() {
    let mut t = receiving();
    t.send(data(1));
    t.recv([ack(2)]);
    t.send(data(3));
    t.recv([ack(2).sack(3..=3)]);
    t.corrupted(1, 5);
    t.corrupted(3, 7);
    t.corrupted(2000, 8); // Beyond the window.
    t.silent();
    t.send(data(4));
    t.recv([ack(2).sack(3..=4)]);
}

#[test]
fn before_the_peers_syn_no_notice_is_about_its_segments() {
    let mut t = Diagram::new(&with(Recovery::Sack, Suppression::All), Side::Active);
    t.recv([syn()]);
    t.corrupted(1, 5);
    t.silent();
}

#[test]
fn sack_blocks_get_what_the_echo_leaves() {
    let mut t = receiving();
    t.corrupted(1, 5);
    t.recv([ack(1).echoes_alone(1, 5)]);
    for n in [3, 5] {
        t.send(data(n));
    }
    t.unseen.clear();
    t.send(data(7));
    t.recv([ack(1).sack(7..=7).sack(5..=5).echoes(1, 5)]);
    t.send(data(1));
    t.recv([ack(2).sack(7..=7).sack(5..=5).sack(3..=3)]);
}

#[test]
fn full_sized_data_has_no_room_for_it_and_an_acknowledgment_follows() {
    let mut t = sending(with(Recovery::Sack, Suppression::All));
    t.corrupted(2, 7);
    t.recv([ack(1).seq(at(11)).echoes_alone(2, 7)]);
    t.time(200);
    t.send(data(1).acking(at(2)));
    t.recv([data(11).acking(at(2)), ack(2).seq(at(12)).echoes(2, 7)]);
    // No acknowledgment is due: data alone does not cause one.
    t.send(ack(3).seq(at(2)));
    t.recv([data(12).acking(at(2))]);
}

#[test]
fn data_that_leaves_room_carries_it() {
    let mut t = established(with(Recovery::Sack, Suppression::All));
    t.corrupted(2, 7);
    t.recv([ack(1).echoes_alone(2, 7)]);
    t.write(984);
    t.recv([bytes(0, 984).echoes(2, 7)]);
    t.write(985);
    t.recv([bytes(984, 1969)]);
}

#[test]
fn what_is_to_be_passed_on_survives_a_restore() {
    let mut t = receiving();
    t.corrupted(2, 7);
    t.recv([ack(1).echoes_alone(2, 7)]);
    t.restore(12_345);
    t.send(data(1));
    t.recv([ack(2).echoes(2, 7)]);
}

// --- the sender ---

#[test]
fn an_echo_retransmits_at_once_once_per_copy_and_leaves_the_windows_alone() {
    for recovery in RECOVERIES {
        for suppress_dupacks in Suppression::EVERY {
            let mut t = sending(with(recovery, suppress_dupacks));
            let first = t.copy(3).0;
            t.time(200);
            t.send(ack(1).echoes_alone(3, first));
            t.recv([data(3)]);
            t.send(ack(1).echoes_alone(3, first));
            t.send(ack(1).echoes(3, first));
            t.silent();
            let second = t.copy(3).0;
            t.time(300);
            t.send(ack(1).echoes_alone(3, second));
            t.recv([data(3)]);
            assert_eq!(t.windows(), (segments(10), segments(10)));
            assert_eq!((t.statistics().notices, t.statistics().reductions), (2, 0));
        }
    }
}

#[test]
fn echoes_that_arrive_before_the_retransmission_is_sent_are_one() {
    for recovery in RECOVERIES {
        for suppress_dupacks in Suppression::EVERY {
            let mut t = sending(with(recovery, suppress_dupacks));
            let copy = t.copy(3).0;
            t.time(200);
            t.arrive(ack(1).echoes_alone(3, copy));
            t.arrive(ack(1).echoes_alone(3, copy));
            t.send(ack(1).echoes(3, copy));
            t.recv([data(3)]);
            assert_eq!((t.statistics().notices, t.statistics().retransmissions), (1, 1));
        }
    }
}

#[test]
fn an_acknowledgment_that_a_report_alone_brought_about_is_no_duplicate() {
    let mut t = sending(with(Recovery::NewReno, Suppression::None));
    let copy = t.copy(5).0;
    t.time(200);
    t.send(ack(1));
    t.send(ack(1));
    t.send(ack(1).echoes_alone(5, copy));
    t.recv([data(5)]);
    assert_eq!(t.statistics().reductions, 0);
    t.send(ack(1).echoes(5, copy));
    t.recv([data(1)]);
    assert_eq!(t.statistics().reductions, 1);
}

#[test]
fn echoes_that_were_not_negotiated_are_ignored() {
    let mut t = sending(config());
    t.time(200);
    t.send(ack(1).echoes_alone(3, t.copy(3).0));
    t.silent();
}

#[test]
fn an_echo_of_what_was_never_sent_or_has_arrived_does_nothing() {
    let mut t = sending(with(Recovery::Sack, Suppression::All));
    let arrived = t.copy(2).0;
    t.time(200);
    t.send(ack(3).sack(5..=5));
    t.recv([data(11), data(12)]);
    for (n, copy) in [(2, arrived), (5, t.copy(5).0), (4, 99), (40, 3), (13, 0)] {
        t.send(ack(3).sack(5..=5).echoes_alone(n, copy));
    }
    t.silent();
    assert_eq!(t.statistics().notices, 0);
}
