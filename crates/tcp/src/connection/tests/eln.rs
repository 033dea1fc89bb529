//! Explicit loss notification (`obanaik2003` §4.2.3; MECHANISMS.md section 4).

use super::*;
use crate::mechanism::{Eln, Mechanism};
use LossCause::{Congestion, Corruption};

/// A window of ten segments, in congestion avoidance.
fn with(recovery: Recovery, every_hole: bool) -> Config {
    Config {
        recovery,
        initial_ssthresh: Some(segments(10)),
        mechanisms: vec![Mechanism::Eln(Eln::new(every_hole))],
        ..config()
    }
}

/// An end that only receives data.
fn receiving(every_hole: bool) -> Diagram {
    established(with(Recovery::Sack, every_hole))
}

impl Diagram {
    /// Segment `n` of the peer arrives, and before it packets are missing that were lost to these causes.
    fn send_after(&mut self, causes: &[LossCause], n: u32) {
        let mut losses = PeerLosses::default();
        causes.iter().for_each(|&cause| losses.push(cause, 1));
        self.connection.indicate(self.now + self.ahead, &Indication::PeerLosses(losses));
        self.send(data(n));
    }
}

// --- the receiver ---

#[test]
fn acknowledgments_say_that_the_first_missing_segment_was_corrupted() {
    let mut t = receiving(false);
    t.send(data(1));
    t.recv([ack(2)]);
    t.send_after(&[Corruption, Congestion], 4);
    t.recv([ack(2).sack(4..=4).eln()]);
    t.send(data(5));
    t.recv([ack(2).sack(4..=5).eln()]);
    t.send(data(2));
    t.recv([ack(3).sack(4..=5)]); // Segment 3 was lost to congestion.
    t.send(data(3));
    t.recv([ack(6)]);
}

#[test]
fn the_cause_of_a_lost_retransmission_replaces_the_first_one() {
    let mut t = receiving(false);
    t.send_after(&[Congestion], 2);
    t.recv([ack(1).sack(2..=2)]);
    t.send_after(&[Corruption], 3);
    t.recv([ack(1).sack(2..=3).eln()]);
    t.send_after(&[Congestion], 4);
    t.recv([ack(1).sack(2..=4)]);
}

#[test]
fn packets_that_carried_no_missing_data_have_no_effect() {
    let mut t = receiving(false);
    t.send_after(&[Corruption], 1); // An acknowledgment of the peer, say.
    t.recv([ack(2)]);
    t.time(150);
    t.send(data(3));
    t.recv([ack(2).sack(3..=3)]);
}

#[test]
fn the_other_corrupted_holes_are_named_in_turn() {
    let mut t = receiving(true);
    t.send_after(&[Corruption, Corruption, Congestion, Corruption], 5);
    t.recv([ack(1).sack(5..=5).eln().echoes(2, 0)]);
    t.send(data(6));
    t.recv([ack(1).sack(5..=6).eln().echoes(4, 0)]);
    t.send(data(1));
    t.recv([ack(2).sack(5..=6).eln().echoes(4, 0)]);
    t.send(data(2));
    t.recv([ack(3).sack(5..=6).echoes(4, 0)]);
    t.send(data(4));
    t.recv([ack(3).sack(4..=6)]);
}

// --- the sender ---

const RECOVERIES: [Recovery; 3] = [Recovery::Reno, Recovery::NewReno, Recovery::Sack];

#[test]
fn a_corrupted_segment_is_retransmitted_at_once_and_the_window_stays() {
    for recovery in RECOVERIES {
        let mut t = sending(with(recovery, false));
        let sack = |seg: Seg, high| match recovery {
            Recovery::Sack => seg.sack(2..=high),
            _ => seg,
        };
        t.time(200);
        t.send(sack(ack(1), 2).eln());
        t.recv([data(1), data(11)]);
        // Each duplicate is a segment that has left the network.
        for n in 3..=10 {
            t.send(sack(ack(1), n).eln());
            t.recv([data(9 + n)]);
        }
        t.time(300);
        t.send(ack(11));
        assert_eq!(t.statistics().reductions, 0, "{recovery:?}");
        assert_eq!(t.statistics().retransmissions, 1, "{recovery:?}");
        assert!(t.windows().0 >= segments(10), "{recovery:?}");
    }
}

#[test]
fn without_the_bit_it_is_congestion() {
    for recovery in RECOVERIES {
        let mut t = sending(with(recovery, false));
        t.time(200);
        for n in 2..=4 {
            let seg = ack(1);
            t.send(if recovery == Recovery::Sack { seg.sack(2..=n) } else { seg });
        }
        assert_eq!(t.statistics().reductions, 1, "{recovery:?}");
    }
}

#[test]
fn a_retransmission_that_is_lost_is_repeated_once_later_segments_arrive() {
    for recovery in RECOVERIES {
        let mut t = sending(with(recovery, false));
        let report = |high| match recovery {
            Recovery::Sack => ack(1).sack(2..=high).eln(),
            _ => ack(1).eln(),
        };
        t.time(200);
        t.send(report(2));
        t.recv([data(1), data(11)]);
        for n in 3..=10 {
            t.send(report(n));
            t.recv([data(9 + n)]);
        }
        // Segment 11 was sent after the second copy of segment 1, which is still missing.
        t.time(300);
        t.send(report(11));
        let unseen = core::mem::take(&mut t.unseen);
        assert!(unseen.contains(&(t.now, data(1))), "{recovery:?}: {unseen:?}");
        t.send(report(12));
        let unseen = core::mem::take(&mut t.unseen);
        assert!(!unseen.contains(&(t.now, data(1))), "{recovery:?}: {unseen:?}");
        assert_eq!(t.statistics().reductions, 0, "{recovery:?}");
    }
}

#[test]
fn the_next_hole_is_retransmitted_when_it_is_the_first() {
    let mut t = sending(with(Recovery::NewReno, false));
    t.time(200);
    t.send(ack(1).eln());
    t.recv([data(1), data(11)]);
    for n in 12..=18 {
        t.send(ack(1).eln());
        t.recv([data(n)]);
    }
    t.time(300);
    t.send(ack(3).eln());
    let unseen = core::mem::take(&mut t.unseen);
    assert_eq!(unseen.front(), Some(&(t.now, data(3))));
    assert_eq!(t.statistics().reductions, 0);
}

#[test]
fn named_holes_are_retransmitted_before_they_are_the_first() {
    let mut t = sending(with(Recovery::Sack, true));
    t.time(200);
    t.send(ack(1).sack(4..=4).sack(2..=2).eln().echoes(3, 0));
    t.recv([data(1), data(11), data(12)]);
    t.send(ack(1).sack(4..=5).sack(2..=2).eln().echoes(3, 0));
    t.recv([data(3), data(13)]);
    t.send(ack(1).sack(4..=6).sack(2..=2).eln().echoes(3, 0));
    t.recv([data(14)]);
    assert_eq!(t.statistics().retransmissions, 2);
}

#[test]
fn a_report_about_what_was_acknowledged_is_ignored() {
    let mut t = sending(with(Recovery::NewReno, false));
    t.time(200);
    t.send(ack(3));
    t.recv(each(11..=12));
    t.send(ack(2).eln());
    t.silent();
    t.send(ack(13).eln()); // Nothing is missing.
    assert_eq!(t.statistics().retransmissions, 0);
}
