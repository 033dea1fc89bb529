//! Accurate ECN (RFC 9768).

use super::super::accurate_ecn::ace_of;
use super::*;
use crate::{EcnMode, FastOpen};
use base::Seed;
use proptest::prelude::*;

fn accurate() -> Config {
    Config { ecn: EcnMode::Accurate, ..config() }
}

/// A client that has agreed on accurate ECN, at 100 ms.
fn client(config: Config) -> Diagram {
    let mut t = Diagram::new(&config, Side::Active);
    t.recv([syn().ace(0b111)]);
    t.time(100);
    t.send(syn_ack().ace(0b010).counting(&[1, 0, 1]));
    t.recv([ack(1).ace(0b010).counting(&[1, 0, 1])]);
    t
}

/// A server that has.
fn server(config: Config) -> Diagram {
    let mut t = Diagram::new(&config, Side::Passive);
    t.send(syn().ace(0b111));
    t.recv([syn_ack().ace(0b010).counting(&[1, 0, 1])]);
    t.time(100);
    t.send(ack(1).ace(0b010).counting(&[1, 0, 1]));
    t
}

/// A client with an endless stream, whose first ten segments are in flight since 100 ms.
fn filling(config: Config) -> Diagram {
    let mut t = client(config);
    t.write(1 << 40);
    t.recv(each(1..=10).into_iter().map(|seg| seg.ace(5)));
    t
}

fn mode(t: &Diagram) -> (bool, bool) {
    let info = t.connection.info();
    (info.accurate_ecn, info.ecn)
}

const ACCURATE: (bool, bool) = (true, true);
/// The feedback is accurate, but the path mangles: nothing is ECN-capable.
const MANGLED: (bool, bool) = (true, false);
const CLASSIC: (bool, bool) = (false, true);
const NONE: (bool, bool) = (false, false);

fn reported(t: &Diagram) -> (u64, u64) {
    let marks = t.connection.info().delivered_marks;
    (marks.packets, marks.bytes)
}

#[test]
fn a_client_enters_the_mode_that_the_answer_gives() {
    // RFC 9768, table 2. The SYN is sent as Not-ECT: every other feedback is of a mangled field.
    let answers = [
        (0b010, ACCURATE, "not ECT on the SYN"),
        (0b011, MANGLED, "ECT(1) on the SYN"),
        (0b100, MANGLED, "ECT(0) on the SYN"),
        (0b110, MANGLED, "CE on the SYN"),
        (0b101, ACCURATE, "reserved (§3.1.3)"),
        (0b001, CLASSIC, "a classic server"),
        (0b000, NONE, "a server without ECN"),
        (0b111, NONE, "a server that reflects"),
    ];
    for (flags, expected, what) in answers {
        let mut t = Diagram::new(&accurate(), Side::Active);
        t.recv([syn().ace(0b111)]);
        assert_eq!(last_mark(&t), Ecn::NotCapable);
        t.send(syn_ack().ace(flags));
        assert_eq!(mode(&t), expected, "{what}");
        let first = ack(1).ace(if expected.0 { 0b010 } else { 0 });
        t.recv([if expected.0 { first.counting(&[1, 0, 1]) } else { first }]);
        t.write(500);
        let first = bytes(0, 500).ace(if expected.0 { 5 } else { 0 });
        t.recv([if expected.0 { first.counting(&[1, 0, 1]) } else { first }]);
        let mark = if expected.1 { Ecn::Capable } else { Ecn::NotCapable };
        assert_eq!(last_mark(&t), mark, "{what}");
    }
}

#[test]
fn a_server_answers_with_what_the_offer_allows() {
    // RFC 9768, table 2 and §3.1.3: what is reserved asks for accurate feedback.
    let mut offers = vec![(0b000, 0b000, NONE), (0b011, 0b001, CLASSIC)];
    offers.extend([0b001, 0b010, 0b100, 0b101, 0b110, 0b111].map(|offer| (offer, 0b010, ACCURATE)));
    for (offer, answer, expected) in offers {
        let mut t = Diagram::new(&accurate(), Side::Passive);
        t.send(syn().ace(offer));
        let answer = syn_ack().ace(answer);
        t.recv([if expected.0 { answer.counting(&[1, 0, 1]) } else { answer }]);
        assert_eq!((mode(&t), last_mark(&t)), (expected, Ecn::NotCapable), "{offer:03b}");
    }
}

#[test]
fn a_classic_server_takes_an_accurate_offer_for_a_classic_one() {
    let mut t = Diagram::new(&Config { ecn: EcnMode::Classic, ..config() }, Side::Passive);
    t.send(syn().ace(0b111));
    t.recv([syn_ack().ace(0b001)]);
    assert_eq!(mode(&t), CLASSIC);
}

#[test]
fn the_codepoint_of_the_syn_and_of_the_syn_ack_is_fed_back() {
    // RFC 9768, tables 2 and 3. A marked SYN-ACK counts, a marked SYN does not (§3.2.2.2).
    let codes = [
        (Ecn::NotCapable, 0b010, 5),
        (Ecn::Capable1, 0b011, 5),
        (Ecn::Capable, 0b100, 5),
        (Ecn::Congested, 0b110, 6),
    ];
    for (mark, code, counter) in codes {
        let mut t = Diagram::new(&accurate(), Side::Passive);
        t.mark = mark;
        t.send(syn().ace(0b111));
        t.recv([syn_ack().ace(code).counting(&[1, 0, 1])]);
        t.mark = Ecn::NotCapable;
        t.send(ack(1).ace(0b010));
        t.write(500);
        t.recv([bytes(0, 500).ace(5)]);

        let mut t = Diagram::new(&accurate(), Side::Active);
        t.recv([syn().ace(0b111)]);
        t.mark = mark;
        t.send(syn_ack().ace(0b010));
        t.recv([ack(1).ace(code).counting(&[1, 0, 1])]);
        t.write(500);
        t.recv([bytes(0, 500).ace(counter).counting(&[1, 0, 1])]);
    }
}

#[test]
fn the_acknowledgment_of_the_syn_ack_says_how_that_arrived() {
    // RFC 9768, table 4; the SYN-ACK was sent as Not-ECT.
    let codes = [
        (0b010, true, 10),
        (0b001, true, 10), // Unused.
        (0b101, true, 10),
        (0b111, true, 10),
        (0b011, false, 10),
        (0b100, false, 10),
        (0b110, false, 1), // A marked SYN-ACK is like a lost one.
        (0b000, false, 10),
    ];
    for (code, capable, window) in codes {
        let mut t = Diagram::new(&accurate(), Side::Passive);
        t.send(syn().ace(0b111));
        t.unseen.clear();
        t.send(ack(1).ace(code));
        assert_eq!(mode(&t), (true, capable), "{code:03b}");
        assert_eq!(t.windows().0, segments(window), "{code:03b}");
        // Marks reported later count, but for note 1.
        t.write(1 << 40);
        t.unseen.clear();
        t.time(100);
        t.send(ack(2).ace(if code == 0b110 { 7 } else { 6 }));
        assert_eq!(t.statistics().reductions, u64::from(code != 0b000), "{code:03b}");
    }
}

#[test]
fn a_handshake_acknowledgment_precedes_data() {
    // RFC 9768 §3.2.2.1
    let mut t = Diagram::new(&accurate(), Side::Active);
    t.recv([syn().ace(0b111)]);
    t.write(500);
    t.send(syn_ack().ace(0b010));
    let counters = [1, 0, 1];
    t.recv([ack(1).ace(0b010).counting(&counters), bytes(0, 500).ace(5).counting(&counters)]);
}

#[test]
fn an_offer_is_made_twice_and_then_withdrawn() {
    // RFC 9768 §3.1.4.1
    let mut t = Diagram::new(&accurate(), Side::Active);
    t.recv([syn().ace(0b111)]);
    t.time(1000);
    t.recv([syn().ace(0b111)]);
    t.time(3000);
    t.recv([syn()]);
    // The answer to one of the first two: the client may send ECT.
    t.send(syn_ack().ace(0b010));
    assert_eq!(mode(&t), ACCURATE);
}

#[test]
fn syn_acks_are_sent_with_the_option_and_without_and_then_without_ecn() {
    // RFC 9768 §3.2.3.2.2, §3.1.5
    let mut t = Diagram::new(&accurate(), Side::Passive);
    t.send(syn().ace(0b111));
    t.recv([syn_ack().ace(0b010).counting(&[1, 0, 1])]);
    t.time(1000);
    t.recv([syn_ack().ace(0b010)]);
    assert_eq!(mode(&t), ACCURATE);
    t.time(3000);
    t.recv([syn_ack()]);
    assert_eq!(mode(&t), MANGLED, "no ECT, but still accurate feedback");
}

#[test]
fn a_client_that_asks_for_two_forms_is_reset() {
    // RFC 9768 §3.1.5
    for (first, second, reset) in
        [(0b111, 0b011, true), (0b011, 0b111, true), (0b111, 0b111, false), (0b111, 0, false)]
    {
        let mut t = Diagram::new(&accurate(), Side::Passive);
        t.send(syn().ace(first));
        t.unseen.clear();
        t.send(syn().ace(second));
        assert_eq!(t.last().flags.contains(Flags::RST), reset, "{first:03b} {second:03b}");
        if !reset {
            // The latest SYN's codepoint; a SYN without ECN forbids ECT.
            assert_eq!(mode(&t), (true, second != 0));
        }
    }
}

#[test]
fn a_repeated_syn_ack_is_acknowledged_with_its_codepoint() {
    // RFC 9768 §3.2.2.1; it counts once.
    let mut t = client(accurate());
    t.mark = Ecn::Congested;
    for _ in 0..2 {
        t.send(syn_ack().ace(0b010));
        t.recv([ack(1).ace(0b110).counting(&[1, 0, 1])]);
    }
    t.write(500);
    t.recv([bytes(0, 500).ace(6).counting(&[1, 0, 1])]);
}

#[test]
fn marks_are_counted_and_reported_with_every_acknowledgment() {
    // RFC 9768 §3.2.2.2, §3.2.3.3: of the bytes every counter that has ever changed.
    let mut t = server(accurate());
    t.mark = Ecn::Capable;
    t.send(data(1));
    t.recv([ack(2).ace(5).counting(&[1001])]);
    t.mark = Ecn::Congested;
    t.send(data(2));
    t.recv([ack(3).ace(6).counting(&[1001, 1000])]);
    t.mark = Ecn::Capable;
    t.send(data(3));
    t.recv([ack(4).ace(6).counting(&[2001, 1000])]);
    t.mark = Ecn::Capable1;
    t.send(data(4));
    t.recv([ack(5).ace(6).counting(&[2001, 1000, 1001])]);
    t.mark = Ecn::NotCapable;
    t.send(data(5));
    t.recv([ack(6).ace(6)]);
    let marks = t.connection.info().received_marks;
    assert_eq!((marks.packets, marks.bytes), (1, 1000));
}

#[test]
fn a_mark_after_none_is_acknowledged_at_once() {
    // RFC 9768 §3.2.2.5.1: and every second mark.
    let delay = Some(Duration::from_millis(500));
    let mut t = server(Config { delayed_ack: delay, ..accurate() });
    t.mark = Ecn::Congested;
    t.send(data(1));
    t.recv([ack(2).ace(6).counting(&[1, 1000])]);
    t.send(data(2));
    t.silent();
    t.send(data(3));
    t.recv([ack(4).ace(0).counting(&[1, 3000])]);
    t.mark = Ecn::Capable;
    t.send(data(4));
    t.silent();
    t.mark = Ecn::Congested;
    t.send(data(5));
    t.recv([ack(6).ace(1).counting(&[1001, 4000])]);
}

#[test]
fn marked_acknowledgments_are_acknowledged_by_threes() {
    // RFC 9768 §3.2.2.5.1: where nothing is unacknowledged.
    let mut t = server(accurate());
    t.mark = Ecn::Congested;
    for _ in 0..2 {
        t.send(ack(1).ace(5));
        t.silent();
    }
    t.send(ack(1).ace(5));
    t.recv([ack(1).ace(0)]);
}

#[test]
fn an_increase_of_the_field_reduces_the_window_once_a_round_trip() {
    let mut t = filling(accurate());
    assert_eq!(last_mark(&t), Ecn::Capable);
    t.time(200);
    t.send(ack(2).ace(6));
    assert_eq!((t.windows(), reported(&t)), ((segments(5), segments(5)), (1, 1000)));
    for n in 3..=6 {
        t.send(ack(n).ace((4 + n as u8) % 8));
    }
    t.silent();
    assert_eq!((t.windows().1, reported(&t)), (segments(5), (5, 5000)));
    t.send(ack(7).ace(2));
    // No CWR: the flag belongs to the counter (§3.1.5).
    t.recv([data(11).ace(5)]);
    t.send(ack(11).ace(2));
    t.unseen.clear();
    t.send(ack(12).ace(3));
    assert_eq!(t.statistics().reductions, 2);
    assert_eq!(t.statistics().retransmissions, 0);
}

#[test]
fn an_option_resolves_what_the_field_cannot() {
    // Ten marks, of which the field shows two: RFC 9768 §3.2.2.5.
    let mut t = filling(accurate());
    t.time(200);
    t.send(ack(11).ace(7).counting(&[1, 10_000]));
    assert_eq!(reported(&t), (10, 10_000));

    let mut t = filling(accurate());
    t.time(200);
    t.send(ack(11).ace(7).counting(&[8001, 2000]));
    assert_eq!(reported(&t), (2, 2000));
}

#[test]
fn without_options_the_safest_likely_count_is_taken() {
    // RFC 9768 §A.2.1
    for (acked, field, expected) in [(11, 7, 10), (11, 5, 8), (8, 5, 0), (8, 4, 7)] {
        let mut t = filling(accurate());
        t.time(200);
        t.send(ack(acked).ace(field));
        assert_eq!(reported(&t).0, expected, "{acked} {field}");
    }
}

#[test]
fn segments_that_were_sacked_are_counted_once() {
    // Nine after a hole, each acknowledged; the tenth acknowledgment is for all.
    let mut t = filling(accurate());
    t.time(200);
    for n in 2..=10 {
        t.send(ack(1).sack(2..=n).ace(5));
    }
    t.unseen.clear();
    t.time(300);
    t.unseen.clear();
    t.send(ack(11).ace(5));
    assert_eq!(reported(&t), (0, 0));
}

#[test]
fn a_superseded_acknowledgment_reports_nothing() {
    let mut t = filling(accurate());
    t.time(200);
    t.send(ack(4).ace(7).counting(&[1001, 2000]));
    assert_eq!(reported(&t), (2, 2000));
    t.send(ack(3).ace(6).counting(&[1001, 1000])); // Overtaken.
    t.send(ack(4).ace(6).counting(&[1001, 1000]));
    assert_eq!(reported(&t), (2, 2000));
    t.send(ack(5).ace(7).counting(&[2001, 2000]));
    assert_eq!(reported(&t), (2, 2000));
}

#[test]
fn cleared_counters_are_ignored() {
    // RFC 9768 §3.2.3.2.4
    let mut t = Diagram::new(&accurate(), Side::Active);
    t.recv([syn().ace(0b111)]);
    t.time(100);
    t.send(syn_ack().ace(0b010).counting(&[0, 0, 0]));
    t.unseen.clear();
    t.write(1 << 40);
    t.unseen.clear();
    t.time(200);
    t.send(ack(3).ace(6).counting(&[0, 5000]));
    assert_eq!(reported(&t), (1, 1000));
}

#[test]
fn a_cleared_field_turns_ecn_off() {
    // RFC 9768 §3.2.2.4: the first field after the handshake.
    let mut t = filling(accurate());
    t.time(200);
    t.send(ack(2).ace(0));
    assert_eq!((mode(&t), t.statistics().reductions), (MANGLED, 0));
    t.unseen.clear();
    t.mark = Ecn::Congested;
    t.send(data(1).acking(at(2)).ace(1));
    assert!(t.last().flags.contains(Flags::CWR), "6: feedback goes on");
}

#[test]
fn a_cleared_field_beside_an_option_without_marks_turns_ecn_off() {
    // RFC 9768 §3.2.2.4: the field begins with 5, so zero would take three marks.
    for (marked, expected) in [(0, MANGLED), (3000, ACCURATE)] {
        let mut t = filling(accurate());
        t.time(200);
        t.send(ack(4).ace(0).counting(&[1, marked]));
        assert_eq!(mode(&t), expected);
    }
}

#[test]
fn marks_on_everything_from_the_first_round_trip_on_turn_ecn_off() {
    // RFC 9768 §3.2.2.3
    for unmarked in [None, Some(3)] {
        let mut t = filling(accurate());
        let (mut ace, mut acked) = (5, 1);
        for round in 1..=5 {
            assert_eq!(mode(&t), ACCURATE, "round trip {round}");
            t.unseen.clear();
            t.time(100 + 100 * round);
            t.unseen.clear();
            let segments = t.connection.vitals().flight / u64::from(MSS);
            assert!(segments > 0);
            for _ in 0..segments {
                acked += 1;
                ace += u8::from(unmarked != Some(round));
                t.send(ack(acked).ace(ace % 8));
                t.unseen.clear();
            }
        }
        let expected = if unmarked.is_some() { ACCURATE } else { MANGLED };
        assert_eq!(mode(&t), expected);
        let reductions = t.statistics().reductions;
        t.time(700);
        t.unseen.clear();
        t.send(ack(acked + 1).ace((ace + 1) % 8));
        t.unseen.clear();
        assert_eq!(t.statistics().reductions > reductions, unmarked.is_some(), "no response");
    }
}

#[test]
fn marked_bytes_without_marked_packets_turn_ect_off() {
    // RFC 9768 §3.2.3.2.5
    let mut t = filling(accurate());
    t.time(200);
    t.send(ack(3).ace(5).counting(&[1, 2000]));
    assert_eq!(mode(&t), MANGLED);
}

#[test]
fn two_sack_blocks_precede_an_option_and_a_third_does_not() {
    // RFC 9768 §3.2.3.3: with timestamps, two blocks leave eight bytes.
    let mut t = Diagram::new(&Config { timestamps: true, ..accurate() }, Side::Passive);
    t.stamp = Some(100);
    t.send(syn().ace(0b111));
    t.send(ack(1).ace(0b010));
    t.unseen.clear();
    t.mark = Ecn::Capable;
    t.send(data(3));
    t.recv([ack(1).ace(5).sack(3..=3).counting(&[1001])]);
    t.send(data(5));
    t.recv([ack(1).ace(5).sack(5..=5).sack(3..=3).counting(&[2001])]);
    t.send(data(7));
    t.recv([ack(1).ace(5).sack(7..=7).sack(5..=5).counting(&[3001])]);
    t.mark = Ecn::Capable1;
    t.send(data(9));
    // Three counters take twelve.
    t.recv([ack(1).ace(5).sack(9..=9).sack(7..=7)]);
}

#[test]
fn a_duplicate_of_data_has_the_counters_repeated() {
    let mut t = server(accurate());
    t.mark = Ecn::Capable;
    t.send(data(1));
    t.recv([ack(2).ace(5).counting(&[1001])]);
    t.mark = Ecn::NotCapable;
    t.send(data(1));
    t.recv([ack(2).ace(5).counting(&[1001])]);
}

/// Both ends have sent a SYN with the flags (1,1,1), and the peer's has arrived with this codepoint.
fn opening_at_once(mark: Ecn, code: u8) -> Diagram {
    let mut t = Diagram::new(&accurate(), Side::Active);
    t.recv([syn().ace(0b111)]);
    t.time(50);
    t.mark = mark;
    t.send(syn().ace(0b111));
    t.mark = Ecn::NotCapable;
    t.recv([syn_ack().ace(code).counting(&[1, 0, 1])]);
    assert_eq!(mode(&t), ACCURATE);
    t.time(100);
    t
}

#[test]
fn repeated_syns_are_answered_without_the_option_until_such_an_answer_times_out() {
    // RFC 9768 §3.2.3.2.2; §3.1.5: a SYN without ECN, too, and with the codepoint of the latest.
    let mut t = Diagram::new(&accurate(), Side::Passive);
    t.send(syn().ace(0b111));
    t.recv([syn_ack().ace(0b010).counting(&[1, 0, 1])]);
    t.time(500);
    for _ in 0..3 {
        t.send(syn().ace(0b111));
        t.recv([syn_ack().ace(0b010)]);
    }
    assert_eq!(mode(&t), ACCURATE);
    t.mark = Ecn::Capable;
    t.send(syn());
    t.recv([syn_ack().ace(0b100)]);
    assert_eq!(mode(&t), MANGLED, "no ECT after a SYN without ECN");
    t.time(1500);
    t.recv([syn_ack()]);
}

#[test]
fn a_server_without_ecn_stays_so() {
    // RFC 9768 §3.1.5
    let mut t = Diagram::new(&accurate(), Side::Passive);
    t.send(syn());
    t.recv([syn_ack()]);
    for later in [0b111, 0b011] {
        t.send(syn().ace(later));
        t.recv([syn_ack()]);
        assert_eq!(mode(&t), NONE);
    }
}

#[test]
fn a_classic_server_keeps_its_mode_when_the_client_withdraws_its_offer() {
    // RFC 9768 §3.1.5: marks are still echoed, and another form is still refused.
    let classic = || {
        let mut t = Diagram::new(&accurate(), Side::Passive);
        t.send(syn().ace(0b011));
        t.recv([syn_ack().ace(0b001)]);
        t.send(syn());
        t.recv([syn_ack()]);
        assert_eq!(mode(&t), NONE, "nothing is ECN-capable");
        t
    };
    let mut t = classic();
    t.send(ack(1));
    t.mark = Ecn::Congested;
    t.send(data(1));
    t.recv([ack(2).ece()]);
    let mut t = classic();
    t.send(syn().ace(0b111));
    assert!(t.last().flags.contains(Flags::RST));
}

#[test]
fn syn_acks_that_come_after_the_first_change_nothing() {
    // RFC 9768 §3.1.5: in ESTABLISHED.
    for flags in [0b000, 0b001, 0b111] {
        let mut t = client(accurate());
        t.send(syn_ack().ace(flags));
        t.recv([ack(1).ace(5)]);
        assert_eq!(mode(&t), ACCURATE);
    }
}

#[test]
fn a_simultaneous_open_agrees_on_accurate_ecn() {
    // RFC 9768 §3.1.2: each end answers the other's SYN as a server does.
    let mut t = opening_at_once(Ecn::Congested, 0b110);
    t.send(syn_ack().ace(0b010).counting(&[1, 0, 1]));
    t.silent();
    t.write(500);
    t.recv([bytes(0, 500).ace(5)]);
    assert_eq!(last_mark(&t), Ecn::Capable);
}

#[test]
fn a_marked_syn_ack_of_a_simultaneous_open_counts() {
    // RFC 9768 §3.2.2.2
    let mut t = opening_at_once(Ecn::NotCapable, 0b010);
    t.mark = Ecn::Congested;
    t.send(syn_ack().ace(0b010));
    t.mark = Ecn::NotCapable;
    t.write(500);
    t.recv([bytes(0, 500).ace(6)]);
}

#[test]
fn the_answer_in_a_simultaneous_open_shows_a_mangled_field() {
    // RFC 9768 §3.2.2.3, and §3.1.5: one without ECN forbids ECT.
    for (flags, window) in [(0b011, 10), (0b100, 10), (0b110, 1), (0b000, 10)] {
        let mut t = opening_at_once(Ecn::NotCapable, 0b010);
        t.send(syn_ack().ace(flags));
        t.silent();
        assert_eq!((mode(&t), t.windows().0), (MANGLED, segments(window)), "{flags:03b}");
    }
}

#[test]
fn a_withdrawn_offer_forbids_ect_in_a_simultaneous_open() {
    // RFC 9768 §3.1.5: a server's rule, and both ends act as servers.
    let mut t = Diagram::new(&accurate(), Side::Active);
    t.recv([syn().ace(0b111)]);
    t.time(1000);
    t.recv([syn().ace(0b111)]);
    t.time(3000);
    t.recv([syn()]);
    t.send(syn().ace(0b111));
    t.recv([syn_ack().ace(0b010).counting(&[1, 0, 1])]);
    assert_eq!(mode(&t), MANGLED);
}

#[test]
fn the_handshake_encoding_is_sent_without_sack_blocks() {
    // RFC 9768 §3.2.2.1: data that has arrived out of order is reported after it.
    let mut t = Diagram::new(&accurate(), Side::Active);
    t.recv([syn().ace(0b111)]);
    t.time(100);
    t.arrive(syn_ack().ace(0b010));
    t.send(data(2));
    t.recv([ack(1).ace(0b010).counting(&[1, 0, 1]), ack(1).ace(5).sack(2..=2)]);
    t.send(syn_ack().ace(0b010));
    t.recv([ack(1).ace(0b010).counting(&[1, 0, 1])]);
    t.send(data(1));
    t.recv([ack(3).ace(5)]);
}

#[test]
fn an_acknowledgment_of_acknowledgments_has_no_sack_blocks() {
    // RFC 9768 §3.2.2.5.1: it would look like a duplicate acknowledgment.
    let mut t = server(accurate());
    t.send(data(2));
    t.recv([ack(1).ace(5).sack(2..=2)]);
    t.mark = Ecn::Congested;
    t.send(ack(1).ace(5));
    t.send(ack(1).ace(5));
    t.silent();
    t.send(ack(1).ace(5));
    t.recv([ack(1).ace(0)]);
    t.mark = Ecn::NotCapable;
    t.send(data(3));
    t.recv([ack(1).ace(0).sack(2..=3)]);
}

#[test]
fn the_first_data_of_a_client_has_the_option() {
    // RFC 9768 §3.2.3.2.1, and not when it is sent again (§3.2.3.2.2).
    let mut t = client(accurate());
    t.write(500);
    t.recv([bytes(0, 500).ace(5).counting(&[1, 0, 1])]);
    t.time(1100);
    t.recv([bytes(0, 500).ace(5)]);
    t.send(ack(1).acking(501).ace(5));
    t.write(100);
    t.recv([bytes(500, 600).ace(5)]);
    // A full-sized segment has no room.
    let mut t = client(accurate());
    t.write(1500);
    t.recv([data(1).ace(5), bytes(1000, 1500).ace(5)]);
    // A server's has none: its SYN-ACK had one.
    let mut t = server(accurate());
    t.write(500);
    t.recv([bytes(0, 500).ace(5)]);
}

#[test]
fn counters_are_reported_before_they_can_wrap_even_if_data_leaves_no_room() {
    // RFC 9768 §3.2.3.3: once in 2^22 bytes, in an acknowledgment of its own.
    let mut t = server(Config { delayed_ack: Some(Duration::from_millis(500)), ..accurate() });
    t.mark = Ecn::Capable;
    let (mut last, mut options) = (1, 0);
    for n in 1..=10_000 {
        t.arrive(data(n).acking(at(n)).ace(5));
        t.read(u64::from(n - 1) * u64::from(MSS));
        t.write(u64::from(MSS));
        for (_, seg) in core::mem::take(&mut t.unseen) {
            let Some(counters) = seg.counters else { continue };
            let now = counters.get(Ecn::Capable).unwrap();
            assert!(now - last <= 1 << 22 | 0xfff, "{last} {now}");
            (last, options) = (now, options + 1);
        }
    }
    assert_eq!(options, (10_000 * u64::from(MSS)) >> 22);
}

#[test]
fn options_that_do_not_get_through_are_sent_no_more() {
    // RFC 9768 §3.2.3.2.2: the data always reappears.
    let mut t = server(accurate());
    t.mark = Ecn::Capable;
    t.send(data(1));
    t.recv([ack(2).ace(5).counting(&[1001])]);
    t.send(data(1));
    t.recv([ack(2).ace(5).counting(&[1001])]);
    t.send(data(1));
    t.recv([ack(2).ace(5)]);
    t.send(data(2));
    t.recv([ack(3).ace(5)]);
    // Something gets through.
    let mut t = server(accurate());
    t.mark = Ecn::Capable;
    for n in 1..=3 {
        for _ in 0..2 {
            t.send(data(n));
            t.recv([ack(n + 1).ace(5).counting(&[1 + 1000 * n])]);
        }
    }
}

#[test]
fn a_late_acknowledgment_of_the_syn_ack_reports_no_marks() {
    // RFC 9768 §3.2.2.2: one more with the handshake encoding, in ESTABLISHED.
    for code in [0b010, 0b011, 0b100, 0b110] {
        let mut t = server(accurate());
        t.write(1 << 40);
        t.unseen.clear();
        t.send(ack(1).ace(code));
        assert_eq!((mode(&t), reported(&t)), (ACCURATE, (0, 0)), "{code:03b}");
        t.send(ack(2).ace(6));
        assert_eq!(reported(&t).0, 1, "{code:03b}");
    }
}

#[test]
fn a_marked_syn_is_congestion_and_counts_no_mark() {
    // RFC 9768 §3.2.2.2
    let mut t = Diagram::new(&accurate(), Side::Active);
    t.recv([syn().ace(0b111)]);
    t.time(100);
    t.send(syn_ack().ace(0b110));
    t.unseen.clear();
    assert_eq!(t.windows().0, segments(1));
    t.write(1 << 40);
    t.unseen.clear();
    t.time(200);
    t.send(ack(2).ace(5));
    assert_eq!(reported(&t), (0, 0));
}

#[test]
fn an_option_on_a_syn_is_ignored() {
    // RFC 9768 §3.2.3.2.1: with cleared counters it would turn the options off.
    let mut t = Diagram::new(&accurate(), Side::Passive);
    t.send(syn().ace(0b111).counting(&[0, 0, 0]));
    t.send(ack(1).ace(0b010).counting(&[1, 0, 1]));
    t.write(1 << 40);
    t.unseen.clear();
    t.time(200);
    t.send(ack(11).ace(7).counting(&[1, 10_000]));
    assert_eq!(reported(&t), (10, 10_000));
}

#[test]
fn control_packets_count_and_carry_the_counter() {
    // RFC 9768 §3.2, §3.2.2: a pure acknowledgment and a FIN; their answers, and a reset.
    let mut t = server(accurate());
    t.mark = Ecn::Congested;
    t.send(ack(1).ace(5));
    t.send(ack(1).fin().ace(5));
    t.recv([ack(1).acking(2).ace(7)]);
    t.mark = Ecn::NotCapable;
    t.close();
    t.recv([ack(1).fin().acking(2).ace(7)]);
    t.abort();
    assert_eq!(ace_of(t.last().flags), 7);
}

#[test]
fn what_is_not_acceptable_does_not_count() {
    // RFC 9768 §3.2: outside of the window, and an acknowledgment of what was never sent (RFC 5961 §5).
    let mut t = server(accurate());
    t.mark = Ecn::Congested;
    t.send(data(5000));
    t.recv([ack(1).ace(5)]);
    t.send(data(1).acking(at(9)));
    t.recv([ack(1).ace(5)]);
    t.send(data(1));
    t.recv([ack(2).ace(6).counting(&[1, 1000])]);
}

#[test]
fn data_of_a_syn_is_not_counted() {
    // RFC 9768 §3.2.3.1
    let mut t = Diagram::new(&accurate(), Side::Passive);
    t.connection.fast_open(FastOpen::Accept(None));
    t.mark = Ecn::Congested;
    t.send(Seg { len: 500, ..syn() }.ace(0b111));
    t.recv([syn_ack().acking(501).ace(0b110).counting(&[1, 0, 1])]);
    t.write(500);
    t.recv([bytes(0, 500).acking(501).ace(5)]);
}

#[test]
fn a_marked_syn_ack_is_congestion_for_what_was_sent_before_its_acknowledgment() {
    // RFC 9768 §3.2.2.2: a server with Fast Open has sent data already.
    for code in [0b010, 0b110] {
        let mut t = Diagram::new(&accurate(), Side::Passive);
        t.connection.fast_open(FastOpen::Accept(None));
        t.send(Seg { len: 500, ..syn() }.ace(0b111));
        t.write(1 << 40);
        t.unseen.clear();
        t.time(100);
        t.send(ack(1).seq(501).ace(code));
        let reductions = u64::from(code == 0b110);
        assert_eq!(t.statistics().reductions, reductions, "{code:03b}");
    }
}

#[test]
fn a_field_with_the_flag_cwr_is_not_sent_with_a_unit() {
    // RFC 9768 §3.3.4: what cuts units clears the flag behind the first segment.
    for (mark, segments) in [(Ecn::Capable, 1), (Ecn::Congested, 4)] {
        let mut t = server(accurate());
        t.unit = 4;
        t.mark = mark;
        t.send(data(1));
        t.unseen.clear();
        t.write(4000);
        assert_eq!(t.unseen.len(), segments);
    }
}

proptest! {
    /// However many acknowledgments are lost, with options the sender's count is the receiver's, and
    /// that is what was marked; unless so many are lost that the receiver blames the options.
    #[test]
    fn the_senders_count_is_that_of_the_link(
        seed in any::<u64>(),
        marked in 0.0..1.0,
        lost in 0.0..0.9,
        timestamps in any::<bool>(),
        delay in any::<bool>(),
    ) {
        let config = Config {
            timestamps,
            delayed_ack: delay.then_some(Duration::from_millis(40)),
            retries: u32::MAX, // However bad the luck.
            ..accurate()
        };
        let mut ends = [Side::Active, Side::Passive].map(|side| Connection::new(&config, side, IDENTITY));
        let mut random = Seed(seed).stream("marks");
        let (mut now, mut truth) = (Time::ZERO, (0, 0));
        ends[0].write(3, 0, 80_000);
        for round in 0.. {
            prop_assert!(round < 20_000, "it does not end");
            let quiet = round < 4 || ends[0].sender.stream.written() > 80_000;
            for from in 0..2 {
                let mut packet = Packet::BLANK;
                while let Some(written) = ends[from].poll_transmit(now, 1, &mut packet) {
                    packet.ip.ecn = written.ecn;
                    let wire::Body::Tcp(segment) = packet.body else { panic!("not TCP") };
                    if written.ecn == Ecn::Capable && random.chance(marked) {
                        packet.ip.ecn = Ecn::Congested;
                        truth = (truth.0 + 1, truth.1 + u64::from(packet.payload.len));
                    }
                    if from == 0 || quiet || !random.chance(lost) {
                        let fields = packet.ecn_fields();
                        ends[1 - from].handle_segment(now, &segment, packet.payload, fields);
                    }
                }
                while ends[1].read().is_some() {}
            }
            if ends[0].unacknowledged() == 0 && round > 4 {
                if quiet {
                    break;
                }
                ends[0].write(3, 80_000, 100);
            }
            let due = ends[0].poll_timeout().min(ends[1].poll_timeout());
            now = due.max(now + Duration::from_millis(10)).min(now + Duration::from_secs(60));
            for end in &mut ends {
                end.handle_timeout(now);
            }
        }
        let has_options = !ends[1].accurate_ecn.as_ref().unwrap().withholds_options();
        let [sender, receiver] = ends.map(|end| end.info());
        let received = receiver.received_marks;
        prop_assert_eq!((received.packets, received.bytes), truth);
        if has_options {
            prop_assert_eq!(sender.delivered_marks, received);
        }
        prop_assert_eq!(sender.accurate_ecn, true);
    }
}
