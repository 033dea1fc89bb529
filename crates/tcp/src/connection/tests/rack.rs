//! RACK-TLP: loss detection by send times, and probes of the tail (RFC 8985).

use super::*;

fn rack() -> Config {
    Config { recovery: Recovery::Rack, ..config() }
}

#[test]
fn what_was_sent_before_a_delivered_segment_is_lost_after_a_quarter_of_a_round_trip() {
    let mut t = sending_only(10, rack());
    t.time(200);
    t.send(ack(1).sack(2..=2));
    t.time(224);
    t.silent();
    t.time(225); // RFC 8985 §6.2, step 5: sent at 100 ms, RACK.rtt = 100 ms, a quarter of it.
    t.recv([data(1)]);
    assert_eq!(t.statistics().reductions, 1);
    assert_eq!(t.connection.info().recovery_state, RecoveryState::Recovery);
}

#[test]
fn three_sacked_segments_start_recovery_at_once() {
    let mut t = sending_only(10, rack());
    t.time(200);
    t.send(ack(1).sack(2..=3));
    t.silent();
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
}

#[test]
fn a_segment_that_is_only_late_is_not_sent_again() {
    let mut t = sending_only(10, rack());
    t.time(200);
    t.send(ack(1).sack(2..=2));
    t.time(220);
    t.send(ack(3)); // The first was late by 20 ms.
    t.time(230);
    t.send(ack(3).sack(5..=7));
    t.silent(); // The path reorders: three segments prove nothing (RFC 8985 §6.2, step 4).
    t.time(240);
    t.send(ack(8));
    t.time(340);
    t.silent();
    assert_eq!((t.statistics().retransmissions, t.statistics().reductions), (0, 0));
}

#[test]
fn one_acknowledgment_of_much_shows_no_reordering() {
    // RFC 8985 §6.2, step 3: what it covers and what it SACKs may have arrived in order.
    let mut t = sending_only(10, rack());
    t.time(200);
    t.send(ack(6).sack(7..=9));
    t.recv([data(6)]); // At once (step 4), not after a quarter of a round trip.
}

#[test]
fn each_sacked_segment_lets_out_new_data_while_the_reordering_window_lasts() {
    let mut t = sending(rack());
    t.time(200);
    t.send(ack(1).sack(2..=2));
    t.recv([data(11)]);
    t.time(210);
    t.send(ack(1).sack(2..=3));
    t.recv([data(12)]);
}

#[test]
fn a_lost_retransmission_is_repaired_without_a_timeout() {
    let mut t = sending(rack());
    t.time(200);
    t.send(ack(1).sack(2..=10));
    t.recv([data(1), data(11), data(12), data(13), data(14)]);
    t.time(300);
    t.send(ack(1).sack(2..=14)); // Sent after the retransmission, which is lost, too.
    t.recv([data(1), data(15), data(16), data(17), data(18)]);
    t.time(400);
    t.send(ack(19));
    assert_eq!((t.statistics().timeouts, t.statistics().reductions), (0, 1));
}

#[test]
fn a_lost_tail_is_probed_after_two_round_trips_by_its_last_segment() {
    let mut t = sending_only(10, rack());
    t.time(200);
    t.send(ack(9)); // RFC 8985 §7.2: a probe timeout of 200 ms from here.
    t.time(399);
    t.silent();
    t.time(400);
    t.recv([data(10)]);
    t.time(500);
    t.send(ack(9).sack(10..=10));
    t.recv([data(9)]); // Sent before the probe, which is delivered.
    t.time(600);
    t.send(ack(11));
    let statistics = t.statistics();
    assert_eq!((statistics.loss_probes, statistics.timeouts, statistics.reductions), (1, 0, 1));
}

#[test]
fn a_spurious_recovery_shows_reordering() {
    // The late segment arrives when it was sent again, so only a DSACK block tells of it.
    for dsack in [true, false] {
        let mut t = sending(Config { undo: true, ..rack() });
        t.time(200);
        for last in 2..=4 {
            t.send(ack(1).sack(2..=last));
        }
        t.send(ack(5));
        t.unseen.clear();
        t.send(if dsack { ack(5).sack(1..=1) } else { ack(5) });
        t.unseen.clear();
        assert_eq!(t.statistics().undone, u64::from(dsack));
        t.send(ack(11));
        t.unseen.clear();
        t.time(300);
        for last in 12..=14 {
            t.send(ack(11).sack(12..=last));
        }
        let again = t.unseen.drain(..).filter(|(_, seg)| seg.seq == at(11)).count();
        assert_eq!(again, usize::from(!dsack), "at once, or after a reordering window");
    }
}

#[test]
fn a_delivered_probe_shows_losses_whatever_timestamp_its_acknowledgment_echoes() {
    // RFC 7323 §4.3: that of the last segment in order, which is older than the probe.
    let mut t = stamped(rack());
    let len = MSS - 12; // Beside timestamps.
    let data = |n| bytes((n - 1) * len, n * len);
    t.write(u64::from(10 * len));
    t.recv((1..=10).map(data));
    t.echoes = t.last().options.timestamps.map(|stamp| stamp.value);
    t.time(200);
    t.stamp = Some(200);
    t.send(ack(1).acking(1 + 8 * len));
    t.time(400);
    t.recv([data(10)]);
    t.time(500);
    t.send(ack(1).acking(1 + 8 * len).sack_bytes(1 + 9 * len, 1 + 10 * len));
    t.recv([data(9)]);
    t.time(600);
    t.send(ack(1).acking(1 + 10 * len));
    assert_eq!(t.statistics().timeouts, 0);
}

#[test]
fn a_single_segment_may_wait_for_a_delayed_acknowledgment() {
    let mut t = sending_only(1, rack());
    t.time(499);
    t.silent();
    t.time(500); // 2 * 100 ms, and 200 ms (RFC 8985 §7.2, TLP.max_ack_delay).
    t.recv([data(1)]);
}

#[test]
fn new_data_is_the_probe_if_there_is_some_and_the_retransmission_timer_follows() {
    let mut t = sending(rack());
    t.time(300);
    t.recv([data(11)]); // Beyond the congestion window.
    t.time(1299);
    t.silent();
    t.time(1300); // A full timeout from the probe (RFC 8985 §7.3).
    t.recv([data(1)]);
    assert_eq!((t.statistics().loss_probes, t.statistics().timeouts), (1, 1));
}

#[test]
fn data_sent_meanwhile_postpones_the_probe() {
    let mut t = established(rack());
    t.write(2000);
    t.recv([data(1), data(2)]);
    t.time(250);
    t.write(1000);
    t.recv([data(3)]);
    t.time(449);
    t.silent();
    t.time(450);
    t.recv([data(3)]);
}

#[test]
fn what_a_probe_repaired_reduces_the_window_once() {
    let repaired = |last: Seg| {
        let mut t = sending_only(10, rack());
        t.time(200);
        t.send(ack(10));
        t.time(600);
        t.recv([data(10)]);
        t.time(700);
        t.send(last);
        t.write(3000);
        t.recv([data(11), data(12), data(13)]);
        t.time(800);
        t.send(ack(14));
        t.statistics().reductions
    };
    assert_eq!(repaired(ack(11)), 1, "RFC 8985 §7.4.2, case 3");
    assert_eq!(repaired(ack(11).sack(10..=10)), 0, "case 1: a DSACK block, both have arrived");
}

#[test]
fn no_probe_is_sent_into_a_closed_window_or_without_sack() {
    let mut t = sending_only(10, rack());
    t.time(200);
    t.send(ack(9).window(0));
    t.time(1199);
    t.silent();
    assert_eq!(t.statistics().loss_probes, 0);

    let mut t = Diagram::new(&rack(), Side::Active);
    t.recv([syn()]);
    t.offer.sack_permitted = false;
    t.time(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    t.write(10_000);
    t.transmit();
    t.unseen.clear();
    t.time(1099);
    t.silent();
}

#[test]
fn a_timeout_spares_what_was_sent_within_the_last_round_trip() {
    let rto = Rto { minimum: Duration::ZERO, ..Rto::default() };
    let mut t = established(Config { rto, ..rack() });
    t.write(4000);
    t.recv(each(1..=4));
    // A timeout of 100 + 4 * 50 ms; a probe at 300 ms.
    t.time(300);
    t.recv([data(4)]);
    t.time(590);
    t.write(1000);
    t.recv([data(5)]);
    t.time(600);
    t.recv([data(1)]); // Although the fifth fills the window.
    t.time(650);
    t.send(ack(5)); // All were late.
    t.silent(); // RFC 8985 §6.3: the fifth is on its way.
    t.time(690);
    t.send(ack(6));
    assert_eq!((t.statistics().timeouts, t.statistics().retransmissions), (1, 2));
}

#[test]
fn a_timeout_marks_what_is_as_old_as_itself_lost() {
    // RFC 8985 §6.3 spares what was sent within RACK.rtt and the reordering window, here 140 and 25 ms.
    // The timer's upper bound is shorter, so that would be all but the first.
    let maximum = Duration::from_millis(150);
    let rto = Rto { minimum: Duration::ZERO, maximum, ..Rto::default() };
    let mut t = established(Config { rto, ..rack() });
    t.write(2000);
    t.recv(each(1..=2));
    t.time(240);
    t.send(ack(1).sack(2..=2));
    t.time(245);
    t.send(ack(3)); // The first was late.
    t.write(2000);
    t.recv(each(3..=4));
    t.time(395);
    t.recv([data(4)]); // The probe.
    t.time(545);
    t.recv([data(3)]);
    t.time(555);
    t.send(ack(4));
    t.recv([data(4)]);
    assert_eq!(t.statistics().timeouts, 1);
}

#[test]
fn an_acknowledgment_too_early_for_a_retransmission_makes_nothing_else_lost() {
    let mut t = sending_only(10, rack());
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    t.time(205);
    t.send(ack(5)); // Of the original (RFC 8985 §6.2, step 2): a round trip takes 100 ms.
    t.silent();
    assert_eq!(t.statistics().retransmissions, 1);
}

#[test]
fn what_a_probe_repaired_is_no_recovery_that_lasts() {
    let mut t = sending_only(10, Config { congestion: Congestion::Bbr, ..rack() });
    t.time(200);
    t.send(ack(10));
    t.time(600);
    t.recv([data(10)]);
    t.time(700);
    t.send(ack(11));
    t.write(1000);
    t.recv([data(11)]);
    t.time(800);
    t.send(ack(12));
    assert_eq!(t.statistics().reductions, 1);
    let bbr = json(t.connection.snapshot(t.now));
    assert!(!bbr.to_string().contains("\"in_recovery\":true"));
}
