//! Recovery with selective acknowledgments (RFC 6675).

use super::*;
use crate::Event;

#[test]
fn the_third_acknowledgment_of_something_new_retransmits() {
    // RFC 6675 §5, step 1.
    let mut t = sending(config());
    t.time(200);
    t.send(ack(1).sack(2..=2));
    t.silent();
    t.send(ack(1).sack(2..=3));
    t.silent();
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    assert_eq!(t.windows(), (segments(5), segments(5)));
}

#[test]
fn an_acknowledgment_that_sacks_nothing_new_is_no_duplicate() {
    // RFC 6675 §2: "a segment that arrives carrying a SACK block that identifies previously
    // unacknowledged and un-SACKed octets".
    let mut t = sending(config());
    t.time(200);
    for _ in 0..5 {
        t.send(ack(1));
        t.silent();
        t.send(ack(1).sack(2..=3));
        t.silent();
    }
}

#[test]
fn an_acknowledgment_that_advances_and_sacks_something_new_is_a_duplicate() {
    // RFC 6675 §2: "even if it carries new data, changes the advertised window, or moves the cumulative
    // acknowledgment point". Segments of 100 bytes, so that IsLost does not apply.
    let mut t = established(config());
    for _ in 0..9 {
        t.write(100);
    }
    t.recv((0..9).map(|n| bytes(100 * n, 100 * n + 100)));
    t.time(200);
    t.send(ack(1).acking(101).sack_bytes(201, 301));
    t.send(ack(1).acking(101).sack_bytes(201, 401));
    t.silent();
    t.send(ack(1).acking(101).sack_bytes(201, 501)); // The third.
    t.recv([bytes(100, 200), bytes(800, 900)]); // The last by NextSeg rule 4.
    assert_eq!(t.statistics().reductions, 1);
}

#[test]
fn an_acknowledgment_that_advances_past_all_that_it_reports_is_no_duplicate() {
    let mut t = sending(Config { limited_transmit: true, ..config() });
    t.time(200);
    t.send(ack(2).sack(4..=4));
    t.recv([data(11), data(12), data(13)]); // Slow start two, limited transmit one (RFC 3042).
    t.send(ack(5));
    // Twelve by now, one of which was let out beyond the window before.
    t.recv(each(14..=16));
    assert_eq!(t.statistics().retransmissions, 0);
}

#[test]
fn one_acknowledgment_that_sacks_three_segments_is_enough() {
    // RFC 6675 §5, step 2: IsLost. More than two segments above the hole, so two are not enough.
    let mut t = sending(config());
    t.time(200);
    t.send(ack(1).sack(2..=3));
    t.silent();
    let mut t = sending(config());
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
}

#[test]
fn three_separate_islands_above_a_hole_make_it_lost() {
    // RFC 6675 §4, IsLost, first condition: of 100 bytes each, so the second does not apply.
    let mut t = established(config());
    for _ in 0..9 {
        t.write(100);
    }
    t.recv((0..9).map(|n| bytes(100 * n, 100 * n + 100)));
    t.time(200);
    t.send(ack(1).sack_bytes(301, 401).sack_bytes(101, 201));
    t.silent();
    t.send(ack(1).sack_bytes(501, 601).sack_bytes(301, 401).sack_bytes(101, 201));
    // The window never falls below two whole segments, and there is no new data: NextSeg rule 1
    // gives the first, rule 3 the two holes that are not lost, and rule 4 the last.
    t.recv([bytes(0, 100), bytes(200, 300), bytes(400, 500), bytes(800, 900)]);
}

/// Segments 1, 2 and 5 of ten are lost; the peer answers to the rest at 200 ms, one by one.
fn three_lost(t: &mut Diagram) {
    t.time(200);
    t.send(ack(1).sack(3..=3));
    t.send(ack(1).sack(3..=4));
    t.silent();
    // Ten are out, half of that is five. Lost: 1 and 2, of which three lie above, but not 5.
    // Pipe: ten, less three that arrived and two lost, and one sent again: six.
    t.send(ack(1).sack(6..=6).sack(3..=4));
    t.recv([data(1)]);
    t.send(ack(1).sack(6..=7).sack(3..=4)); // Five.
    t.silent();
    assert_eq!(t.connection.sender.pipe(), segments(5));
    t.send(ack(1).sack(6..=8).sack(3..=4)); // Four, and 5 is lost, too: three.
    t.recv([data(2), data(5)]);
}

#[test]
fn holes_are_filled_in_order_as_the_pipe_allows_then_new_data_follows() {
    // RFC 6675 §5, step C, and §4, NextSeg rules 1 and 2.
    let mut t = sending(config());
    three_lost(&mut t);
    t.send(ack(1).sack(6..=9).sack(3..=4));
    t.recv([data(11)]);
    t.send(ack(1).sack(6..=10).sack(3..=4));
    t.recv([data(12)]);
    t.time(300);
    t.send(ack(2).sack(3..=4).sack(6..=10)); // The answer to 1.
    t.recv([data(13)]);
    t.send(ack(5).sack(6..=10)); // To 2.
    t.recv([data(14)]);
    assert_eq!(t.windows(), (segments(5), segments(5)));
    t.send(ack(11)); // To 5: RFC 6675 §5, step A: recovery is over.
    t.recv([data(15)]);
    assert_eq!((t.statistics().reductions, t.statistics().retransmissions), (1, 3));
    t.send(ack(12)); // Congestion avoidance.
    t.recv([data(16)]);
    assert_eq!(t.windows().0, 5200);
}

#[test]
fn what_was_selectively_acknowledged_is_never_sent_again() {
    let mut t = sending_only(10, config());
    three_lost(&mut t);
    t.time(1200); // All of them are lost again, and the timer of the first repair expires.
    t.recv([data(1)]);
    t.time(1300);
    t.send(ack(2).sack(6..=10)); // It need not repeat earlier blocks (RFC 2018 §4).
    t.recv([data(2), data(5)]);
}

#[test]
fn a_receiver_that_throws_away_what_it_has_acknowledged_gets_it_again() {
    // RFC 2018 §8: after a timeout, if the first hole had been SACKed.
    let mut t = sending(Config { initial_window: InitialWindow::Segments(4), ..config() });
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1), data(5)]);
    t.time(300);
    t.send(ack(2)); // Of 2 to 4, nothing is left.
    t.recv([data(6)]);
    t.time(1300);
    t.recv([data(2)]);
    t.time(1400);
    t.send(ack(3));
    t.recv([data(3), data(4)]);
}

#[test]
fn a_hole_that_is_not_yet_lost_is_filled_when_there_is_nothing_better_to_send() {
    // RFC 6675 §4, NextSeg rule 3: eight segments, 1 is lost, 5 is late.
    let mut t = sending_only(8, config());
    t.time(200);
    t.send(ack(1).sack(2..=2));
    t.send(ack(1).sack(2..=3));
    t.silent();
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]); // Pipe: 8 - 3 - 1 + 1 = 5, and the window is four.
    t.send(ack(1).sack(6..=6).sack(2..=4));
    t.silent();
    t.send(ack(1).sack(6..=7).sack(2..=4)); // Two lie above 5, and all data has been sent.
    t.recv([data(5)]);
    // RFC 6675 §4, SetPipe: 5 counts twice, because IsLost does not hold for its first copy.
    assert_eq!(t.connection.sender.pipe(), segments(4));
}

#[test]
fn new_data_goes_before_a_hole_that_is_not_yet_lost() {
    let mut t = established(Config { initial_window: InitialWindow::Segments(8), ..config() });
    t.write(segments(9));
    t.recv(each(1..=8));
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    t.send(ack(1).sack(6..=7).sack(2..=4));
    t.recv([data(9)]);
}

#[test]
fn the_end_of_what_is_out_is_rescued_once() {
    // RFC 6675 §4, NextSeg rule 4: eight segments, 1 and 7 and 8 are lost.
    let mut t = sending_only(8, config());
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]); // The window is four; pipe: five.
    t.send(ack(1).sack(2..=5));
    t.silent();
    t.send(ack(1).sack(2..=6)); // Pipe: three.
    t.recv([data(8)]);
    t.time(300);
    t.send(ack(7)); // One rescue an episode: 7 waits for the answer to it.
    t.silent();
    t.send(ack(7).sack(8..=8)); // It comes, and leaves 7 to rule 3.
    t.recv([data(7)]);
    t.time(1300);
    t.recv([data(7)]);
}

#[test]
fn what_is_lost_during_recovery_is_retransmitted_and_answered_with_the_next_episode() {
    let mut t = sending(config());
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    t.send(ack(1).sack(2..=10)); // Pipe: one.
    t.recv(each(11..=14));
    t.time(300);
    t.send(ack(1).sack(12..=14).sack(2..=10)); // 11 is lost.
    t.recv([data(11), data(15), data(16), data(17)]);
    assert_eq!((t.windows().0, t.statistics().reductions), (segments(5), 1));
    t.time(400);
    t.send(ack(11).sack(12..=14)); // The first episode ends, and the second begins.
    t.silent();
    assert_eq!((t.windows(), t.statistics().reductions), ((2500, 2500), 2));
}

#[test]
fn limited_transmit_needs_news() {
    // RFC 3042 §2: "a sender using SACK MUST NOT send new segments unless the incoming duplicate
    // acknowledgment contains new SACK information".
    let mut t = sending(Config { limited_transmit: true, ..config() });
    t.time(200);
    t.send(ack(1));
    t.silent();
    t.send(ack(1).sack(2..=2));
    t.recv([data(11)]);
    t.send(ack(1).sack(2..=2));
    t.silent();
    t.send(ack(1).sack(2..=3));
    t.recv([data(12)]);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    assert_eq!(t.windows(), (segments(5), segments(5)), "those two are not counted");
}

#[test]
fn blocks_that_name_nothing_outstanding_are_ignored() {
    let mut t = sending(config());
    t.time(200);
    t.send(ack(4));
    t.recv(each(11..=14));
    // Below the acknowledgment (RFC 2883), beyond what was sent, empty, turned round.
    t.send(ack(4).sack(1..=3).sack(15..=20));
    t.send(ack(4).sack_bytes(at(6), at(6)).sack_bytes(at(9), at(6)));
    t.silent();
    assert_eq!(t.connection.sender.pipe(), segments(11));
}

#[test]
fn a_rescue_does_not_move_the_end_of_what_was_retransmitted() {
    // RFC 6675 §4, NextSeg rule 4: "HighRxt MUST NOT be updated"; else rule 3 finds nothing below.
    let mut t = sending_only(8, config());
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    t.time(300);
    t.send(ack(6)); // Pipe: 6, 7 and 8; the window is four.
    t.recv([data(8)]);
    t.send(ack(6).sack(7..=7)); // 6 lies between HighRxt and the highest that has arrived.
    t.recv([data(6)]);
}

#[test]
fn a_rescue_does_not_repeat_what_was_retransmitted_this_instant() {
    // The letter of rule 4 allows it, as nothing but 1 is missing; but two copies back to back share
    // their fate.
    let mut t = sending_only(4, config());
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
}

#[test]
fn what_the_peer_newly_holds_is_an_event() {
    let mut t = sending(config());
    t.connection.watch(true);
    t.time(200);
    let mut newly_sacked = |segment| {
        t.send(segment);
        let events: Vec<_> = core::iter::from_fn(|| t.connection.poll_event()).collect();
        let sacked = events.into_iter().filter_map(|event| match event {
            Event::Sacked { start, end } => Some((start, end)),
            _ => None,
        });
        sacked.collect::<Vec<_>>()
    };
    let held = |from: u32, to: u32| (u64::from(at(from)), u64::from(at(to + 1)));
    assert_eq!(newly_sacked(ack(1).sack(2..=2)), [held(2, 2)]);
    assert_eq!(newly_sacked(ack(1).sack(4..=4).sack(2..=2)), [held(4, 4)]);
    assert_eq!(newly_sacked(ack(1).sack(4..=4).sack(2..=2)), []);
    assert_eq!(newly_sacked(ack(1).sack(15..=20)), [], "was never sent");
}
