//! What arrives twice: how it is reported (RFC 2883), and what a report undoes (RFC 3708).

use super::*;
use crate::mechanism::{DelayedDupacks, Eten, Mechanism};

fn reporting() -> Config {
    Config { dsack: true, ..config() }
}

#[test]
fn a_duplicate_is_reported_once() {
    // RFC 2883 §4.1, first example.
    let mut t = established(reporting());
    t.send(data(1));
    t.send(data(2));
    t.recv([ack(2), ack(3)]);
    t.send(data(1));
    t.recv([ack(3).sack(1..=1)]);
    t.send(data(4));
    t.recv([ack(3).sack(4..=4)]);
}

#[test]
fn a_duplicate_comes_before_the_islands() {
    // RFC 2883 §4.1, second example: an old segment while there is a hole.
    let mut t = established(reporting());
    t.send(data(1));
    t.send(data(3));
    t.send(data(4));
    t.recv([ack(2), ack(2).sack(3..=3), ack(2).sack(3..=4)]);
    t.send(data(1));
    t.recv([ack(2).sack(1..=1).sack(3..=4)]);
}

#[test]
fn a_duplicate_of_an_island_is_reported_before_the_island() {
    // RFC 2883 §4.1, third example: the second block holds the first.
    let mut t = established(reporting());
    t.send(data(2));
    t.send(data(3));
    t.recv([ack(1).sack(2..=2), ack(1).sack(2..=3)]);
    t.send(data(3));
    t.recv([ack(1).sack(3..=3).sack(2..=3)]);
}

#[test]
fn a_part_that_arrives_twice_is_reported_alone() {
    // RFC 2883 §4.2
    let mut t = established(reporting());
    t.send(data(1));
    t.recv([ack(2)]);
    t.send(bytes(500, 1500));
    t.recv([ack(1).acking(1501).sack_bytes(501, 1001)]);
    t.send(bytes(2000, 2500));
    t.recv([ack(1).acking(1501).sack_bytes(2001, 2501)]);
    t.send(bytes(2200, 3000));
    t.recv([ack(1).acking(1501).sack_bytes(2201, 2501).sack_bytes(2001, 3001)]);
}

#[test]
fn of_several_runs_that_arrive_twice_the_first_is_reported() {
    // RFC 2883 §4.2.1
    let mut t = established(reporting());
    for n in [2, 4] {
        t.send(data(n));
    }
    t.recv([ack(1).sack(2..=2), ack(1).sack(4..=4).sack(2..=2)]);
    t.send(Seg { len: 4 * MSS, ..data(2) }); // 2 to 5
    t.recv([ack(1).sack(2..=2).sack(2..=5)]);
    t.send(Seg { len: 2 * MSS, ..data(1) }); // 1 and 2
    t.recv([ack(6).sack(2..=2)]);
}

#[test]
fn what_arrives_twice_in_part_is_acknowledged_at_once() {
    // Else the report would come late, and the peer would take its segment for lost.
    let mut t =
        established(Config { delayed_ack: Some(Duration::from_millis(200)), ..reporting() });
    t.send(data(1));
    t.silent();
    t.send(bytes(500, 1500));
    t.recv([ack(1).acking(1501).sack_bytes(501, 1001)]);
}

#[test]
fn duplicates_are_not_reported_unless_both_know_how() {
    let mut t = Diagram::new(&reporting(), Side::Active);
    t.recv([syn()]);
    t.offer.sack_permitted = false;
    t.send(syn_ack());
    t.recv([ack(1)]);
    t.send(data(1));
    t.send(data(1));
    t.recv([ack(2), ack(2)]);

    let mut t = established(config());
    t.send(data(1));
    t.send(data(1));
    t.recv([ack(2), ack(2)]);
}

#[test]
fn what_follows_a_report_does_not_repeat_it() {
    // RFC 2883 §4: "in at most one ACK".
    let mut t = established(reporting());
    t.send(data(1));
    t.recv([ack(2)]);
    t.send(data(1));
    t.recv([ack(2).sack(1..=1)]);
    t.send(ack(1).seq(at(1))); // An old segment that carries nothing: a challenge.
    t.recv([ack(2)]);
    t.write(500);
    t.recv([bytes(0, 500).acking(at(2))]);
    t.send(ack(1).seq(at(2)).acking(501));
    t.send(data(2).acking(501));
    t.recv([ack(3).seq(501)]);
}

#[test]
fn a_report_is_not_of_an_earlier_arrival() {
    // With an acknowledgment that waits, one arrival may follow another.
    let held = Mechanism::DelayedDupacks(DelayedDupacks { delay_ms: 50 });
    let mut t = established(Config { mechanisms: vec![held], ..reporting() });
    t.send(data(2));
    t.recv([ack(1).sack(2..=2)]);
    t.send(data(2));
    t.recv([ack(1).sack(2..=2).sack(2..=2)]);
    t.send(data(2)); // The third duplicate ACK waits ...
    t.silent();
    t.send(data(3)); // ... and so does the fourth, with new data.
    t.time(150);
    t.recv([ack(1).sack(2..=3), ack(1).sack(2..=3)]);
    t.send(data(1));
    t.recv([ack(4)]);
    for _ in 0..2 {
        t.send(data(5));
    }
    t.recv([ack(4).sack(5..=5), ack(4).sack(5..=5).sack(5..=5)]);
    t.send(data(5)); // This waits once more ...
    t.silent();
    t.send(data(1)); // ... and what is old does not.
    t.recv([ack(4).sack(1..=1).sack(5..=5)]);
    t.time(300);
    t.unseen.clear();
}

#[test]
fn a_dsack_of_a_sacked_segment_lies_within_the_second_block() {
    // RFC 2883 §4, 5: the first block lies within the second.
    let mut t = sending(config());
    t.send(ack(1).sack(3..=3));
    t.send(ack(1).sack(3..=3).sack(3..=3));
    assert_eq!(t.statistics().dsacks, 1);
    t.send(ack(1).sack(5..=5).sack(3..=3)); // That does not.
    assert_eq!(t.statistics().dsacks, 1);
}

#[test]
fn a_report_that_finds_no_room_beside_data_follows_it() {
    let mut t = established(Config { initial_window: InitialWindow::Segments(1), ..reporting() });
    t.write(3000);
    t.recv([data(1)]);
    t.send(data(1));
    t.recv([ack(2).seq(at(2))]);
    t.send(Seg { len: 2 * MSS, ..data(1) }.acking(at(2))); // Lets out two full-sized segments.
    t.recv([data(2).acking(at(3)), data(3).acking(at(3)), ack(3).seq(at(4)).sack(1..=1)]);
}

/// Ten segments are out; the first is late, and is sent again at 200 ms.
fn fast_retransmit(config: Config) -> Diagram {
    let mut t = sending(config);
    t.time(200);
    for n in 2..=3 {
        t.send(ack(1).sack(2..=n));
        t.silent();
    }
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    assert_eq!(t.windows(), (segments(5), segments(5)));
    t
}

#[test]
fn a_needless_fast_retransmit_is_undone() {
    // RFC 3708 §2: every retransmission of the episode was reported as a duplicate.
    let mut t = fast_retransmit(config());
    t.time(210);
    t.send(ack(11)); // The late one, and all the others.
    t.recv(each(11..=15));
    assert_eq!(t.windows().0, segments(5));
    t.time(300);
    t.send(ack(11).sack(1..=1));
    assert_eq!(t.windows(), (segments(10), u64::MAX));
    t.recv(each(16..=20));
    assert_eq!((t.statistics().dsacks, t.statistics().undone), (1, 1));
}

#[test]
fn a_needed_fast_retransmit_is_not_undone() {
    let mut t = fast_retransmit(config());
    t.time(210);
    t.send(ack(2).sack(3..=4)); // Segment 2 was reported; it was never sent again.
    t.unseen.clear();
    t.time(300);
    t.send(ack(5).sack_bytes(at(2), at(2) + 10)); // A report of less than was sent again.
    t.unseen.clear();
    assert_eq!((t.statistics().undone, t.windows().1), (0, segments(5)));
}

#[test]
fn what_a_notice_had_sent_again_before_undoes_nothing() {
    let mut t = sending(Config { mechanisms: vec![Mechanism::Eten(Eten::default())], ..config() });
    t.time(150);
    t.notice(7); // A false one.
    t.recv([data(7)]);
    t.time(200);
    (2..=4).for_each(|n| t.send(ack(1).sack(2..=n)));
    t.recv([data(11), data(12), data(1)]); // Limited transmit, then the hole.
    t.time(250);
    t.send(ack(1).sack(7..=7).sack(2..=10));
    t.unseen.clear();
    assert_eq!((t.statistics().dsacks, t.statistics().undone), (1, 0));
    t.time(300);
    t.send(ack(11).sack(1..=1)); // The episode was needless, too.
    t.unseen.clear();
    assert_eq!((t.statistics().dsacks, t.statistics().undone), (2, 1));
}

#[test]
fn nothing_is_undone_unless_asked_for() {
    let mut t = fast_retransmit(Config { undo: false, ..config() });
    t.time(210);
    t.send(ack(11));
    t.unseen.clear();
    t.send(ack(11).sack(1..=1));
    assert_eq!((t.statistics().undone, t.windows().1), (0, segments(5)));
}

#[test]
fn a_needless_timeout_is_undone() {
    // RFC 3708 §2: the path was slow, and nothing was lost.
    let mut t = sending(Config { initial_window: InitialWindow::Segments(4), ..config() });
    t.time(1100);
    t.recv([data(1)]);
    assert_eq!(t.windows(), (segments(1), segments(2)));
    t.time(1150);
    t.send(ack(5)); // All four, late.
    t.unseen.clear();
    t.time(1200);
    t.send(ack(5).sack(1..=1));
    t.unseen.clear();
    assert_eq!(t.windows(), (segments(4), u64::MAX));
    assert_eq!(t.statistics().undone, 1);
}

#[test]
fn a_series_of_needless_timeouts_is_undone_as_a_whole() {
    let mut t = sending(Config { initial_window: InitialWindow::Segments(4), ..config() });
    t.time(1100);
    t.recv([data(1)]);
    t.time(3100);
    t.recv([data(1)]);
    t.time(3200);
    t.send(ack(5));
    t.unseen.clear();
    t.send(ack(5).sack(1..=1));
    t.unseen.clear();
    assert_eq!(t.statistics().undone, 0, "one of the two copies");
    t.send(ack(5).sack(1..=1));
    assert_eq!((t.statistics().undone, t.windows()), (1, (segments(4), u64::MAX)));
    t.unseen.clear();
}

#[test]
fn a_needed_timeout_is_not_undone() {
    let mut t = sending(Config { initial_window: InitialWindow::Segments(4), ..config() });
    t.time(1100);
    t.recv([data(1)]);
    t.time(1200);
    t.send(ack(2)); // The others were lost, too.
    t.recv(each(2..=3));
    t.time(1300);
    t.send(ack(4));
    t.unseen.clear();
    assert_eq!((t.statistics().undone, t.windows().1), (0, segments(2)));
}
