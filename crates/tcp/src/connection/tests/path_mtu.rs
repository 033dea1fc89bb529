//! Reports that a segment was too big for a link (RFC 1191, RFC 8201, RFC 5927 §7).

use super::*;

/// Segment `n` in two pieces, the first of 600 bytes.
fn pieces(n: u32) -> [Seg; 2] {
    let from = (n - 1) * MSS;
    [bytes(from, from + 600), bytes(from + 600, from + MSS)]
}

fn all_pieces(range: core::ops::RangeInclusive<u32>) -> Vec<Seg> {
    range.flat_map(pieces).collect()
}

#[test]
fn what_is_too_big_is_cut_and_sent_again_at_once_in_the_same_window() {
    let mut t = sending(config());
    let windows = t.windows();
    t.time(150);
    t.too_big(at(1), 600);
    t.recv(all_pieces(1..=10));
    assert_eq!((t.windows(), t.statistics().reductions), (windows, 0));
    // The other nine are reported, too, and have been cut already.
    (2..=10).for_each(|n| t.too_big(at(n), 600));
    t.silent();
    t.time(200);
    t.send(ack(1).acking(601));
    t.recv([bytes(10_000, 10_600), bytes(10_600, 11_200)]); // Slow start goes on.
    assert_eq!((t.connection.info().mss, t.statistics().retransmissions), (600, 20));
}

#[test]
fn options_have_their_room_in_what_a_path_takes() {
    let mut t = stamped(config());
    t.write(5000);
    t.unseen.clear();
    t.too_big(at(1), 600);
    assert_eq!(t.unseen[0].1, bytes(0, 588));
    assert_eq!(t.connection.reported_mss(), 600);
}

#[test]
fn what_names_no_segment_in_flight_or_nothing_smaller_is_ignored() {
    // RFC 5927 §4.1 and §7.2
    let mut t = sending(config());
    t.time(150);
    for (seq, mss) in [
        (0, 600),             // Acknowledged.
        (at(11), 600),        // Never sent.
        (u32::MAX - 10, 600), // Long before.
        (at(1) + 1, 600),     // No segment starts there.
        (at(1), 1000),        // It takes this segment.
        (at(1), 9000),
    ] {
        t.too_big(seq, mss);
        t.silent();
        assert_eq!(t.connection.info().mss, MSS);
    }
    // A SYN is smaller than any link's MTU.
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.too_big(0, 40);
    t.silent();
}

#[test]
fn a_tiny_mtu_makes_segments_no_smaller_than_a_peer_may_ask_for() {
    let mut t = sending_only(1, config());
    t.too_big(at(1), 1);
    assert_eq!(t.connection.info().mss, 48);
    assert_eq!(t.unseen.len(), 21);
}

#[test]
fn where_such_segments_have_arrived_the_timer_has_to_confirm_a_report() {
    // RFC 5927 §7.2
    for stored in [false, true] {
        let mut t = sending(Config { initial_ssthresh: Some(segments(4)), ..config() });
        t.time(200);
        (2..=11).for_each(|n| t.arrive(ack(n)));
        t.transmit();
        t.recv(each(11..=20));
        t.time(250);
        t.too_big(at(11), 600);
        t.too_big(at(12), 300); // Of several, the first.
        t.silent();
        if stored {
            t.restore(1 << 30);
        }
        t.time(1200);
        t.recv(all_pieces(11..=16)); // A restart window (RFC 5681 §4.1), not one segment.
        assert_eq!((t.windows(), t.statistics().timeouts), ((6000, segments(4)), 1));
        // The timer starts anew, without a back-off: the report has explained it.
        t.time(2199);
        t.silent();
        t.time(2200);
        t.recv([bytes(10_000, 10_600)]);
    }
}

#[test]
fn a_report_about_what_arrives_was_false() {
    let mut t = sending(config());
    t.time(200);
    t.send(ack(2));
    t.recv(each(11..=12));
    t.too_big(at(11), 600);
    t.time(300);
    t.send(ack(12));
    t.recv(each(13..=23));
    t.time(1300);
    t.recv([data(12)]); // A timeout like any other.
    assert_eq!(t.windows().0, segments(1));
    assert_eq!(t.connection.info().mss, MSS);
}

#[test]
fn what_was_sacked_is_not_sent_again() {
    let mut t = sending_only(6, config());
    t.time(200);
    t.send(ack(1).sack(3..=3).sack(5..=5));
    t.silent();
    t.too_big(at(1), 600);
    t.recv([pieces(1), pieces(2), pieces(4), pieces(6)].concat());
    t.time(300);
    // A gap in the middle of what was a segment.
    t.send(ack(1).acking(601).sack(3..=3));
    t.silent();
    t.send(ack(7));
    t.silent();
    assert_eq!(t.statistics().reductions, 0);
}

#[test]
fn a_fin_needs_no_room() {
    let mut t = established(config());
    t.connection.write(3, 0, 2000);
    t.close();
    t.recv([data(1), data(2).fin()]);
    t.too_big(at(1), 500);
    let fin = bytes(1500, 2000).fin();
    t.recv([bytes(0, 500), bytes(500, 1000), bytes(1000, 1500), fin.clone()]);
    t.too_big(at(1), 500); // The last piece has as much data, and a FIN.
    t.silent();
}

#[test]
fn the_reason_holds_in_recovery_too() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Rack] {
        let mut t = sending(Config { recovery, ..config() });
        t.time(200);
        (0..3).for_each(|_| t.arrive(ack(1).sack(2..=4)));
        t.transmit();
        t.unseen.clear();
        let windows = t.windows();
        t.too_big(at(5), 600); // The first has been sent again, after three had arrived.
        t.unseen.clear();
        assert_eq!(t.windows().1, windows.1, "{recovery:?}");
        t.time(300);
        t.send(ack(11));
        assert_eq!(t.connection.info().recovery_state, RecoveryState::Open, "{recovery:?}");
        assert_eq!(t.unseen[0].1, bytes(10_000, 10_600));
    }
}

#[test]
fn rack_finds_a_lost_retransmission_after_ranges_were_cut() {
    let mut t = sending_only(3, Config { recovery: Recovery::Rack, ..config() });
    t.time(150);
    t.too_big(at(1), 600);
    t.recv(all_pieces(1..=3));
    t.time(200);
    t.too_big(at(1), 500); // A smaller link follows. The second piece of each has passed it.
    let again = [(0, 500), (500, 600), (1000, 1500), (1500, 1600), (2000, 2500), (2500, 2600)];
    t.recv(again.map(|(from, to)| bytes(from, to)));
    t.time(250);
    t.send(ack(1).sack_bytes(601, 1001));
    t.silent();
    t.time(300);
    t.send(ack(1).sack_bytes(2501, 2601).sack_bytes(601, 1001));
    t.recv([bytes(1600, 2000)]); // It was sent before the others.
    t.time(325); // The reordering window is a quarter of a round trip.
    t.recv([bytes(0, 500), bytes(500, 600), bytes(1000, 1500)]); // Half of the window.
    t.time(400);
    t.send(ack(4));
    assert_eq!(t.connection.info().recovery_state, RecoveryState::Open);
}

#[test]
fn a_loss_probe_that_was_too_big_repairs_no_loss() {
    let mut t = established(Config { recovery: Recovery::Rack, ..config() });
    t.write(u64::from(MSS));
    t.recv([data(1)]);
    t.time(500);
    t.recv([data(1)]);
    t.time(550);
    t.too_big(at(1), 600);
    t.recv(pieces(1));
    t.time(650);
    t.write(u64::from(MSS));
    t.recv([bytes(1000, 1600), bytes(1600, 2000)]);
    t.send(ack(1).acking(1601));
    t.unseen.clear();
    assert_eq!(t.statistics().reductions, 0);
}

#[test]
fn a_path_that_is_known_limits_segments_but_not_the_offer() {
    let mut t = Diagram::new(&config(), Side::Active);
    t.connection.limit_mss(600);
    t.unseen.clear();
    t.time(1000); // The SYN again, as nothing else has been sent since.
    assert_eq!(t.last().options.mss, Some(MSS as u16));
    t.unseen.clear();
    t.send(syn_ack());
    t.unseen.clear();
    t.write(1200);
    assert_eq!(t.unseen[0].1, bytes(0, 600));
    assert_eq!(t.connection.info().mss, 600);
}

#[test]
fn the_log_says_what_fits() {
    let mut t = sending(config());
    t.connection.watch(true);
    t.too_big(at(1), 600);
    let mut events = core::iter::from_fn(|| t.connection.poll_event());
    assert_eq!(events.next(), Some(Event::PathMtu { mss: 600 }));
}
