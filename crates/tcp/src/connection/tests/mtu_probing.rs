//! The path MTU without ICMP (RFC 4821).

use super::*;
use crate::MtuProbing;

/// A sender whose peer takes segments of 1424 bytes, with a window of 20 segments of 1024.
fn probing(mtu_probing: MtuProbing) -> Diagram {
    let initial_window = InitialWindow::Segments(20);
    let config = Config { mss: 1424, mtu_probing, initial_window, ..config() };
    let mut t = Diagram::new(&config, Side::Active);
    t.offer.mss = Some(1424);
    t.recv([syn()]);
    t.time(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    t
}

/// What was sent and not shown, by size.
fn sizes(t: &mut Diagram) -> Vec<u32> {
    t.unseen.drain(..).map(|(_, seg)| seg.len).collect()
}

/// Bytes sent so far.
fn end(t: &Diagram) -> u32 {
    t.connection.sender.nxt() as u32 - 1
}

/// An acknowledgment of this many bytes.
fn acks(end: u32) -> Seg {
    ack(1).acking(1 + end)
}

#[test]
fn a_probe_that_arrives_makes_segments_larger_until_the_search_is_over() {
    // RFC 4821 §7.3
    let mut t = probing(MtuProbing::On);
    t.write(1 << 40);
    let first = sizes(&mut t);
    assert_eq!(first[..3], [1224, 1024, 1024]);
    assert!(first[3..].iter().all(|&len| len == 1024), "one probe at a time: {first:?}");
    t.time(200);
    t.send(acks(1224));
    assert_eq!(t.connection.info().mss, 1224);
    assert!(sizes(&mut t).contains(&1324));
    let mut probes = Vec::new();
    for round in 3..12 {
        t.time(100 * round);
        t.send(acks(end(&t)));
        let mss = t.connection.info().mss;
        probes.extend(sizes(&mut t).into_iter().filter(|&len| len > mss));
    }
    assert_eq!(probes, [1374, 1399, 1412, 1418]);
    assert_eq!(t.connection.info().mss, 1418);
}

#[test]
fn the_loss_of_a_probe_is_no_congestion_and_bounds_the_search() {
    // RFC 4821 §7.6
    for recovery in [Recovery::NewReno, Recovery::Sack, Recovery::Rack] {
        let initial_window = InitialWindow::Segments(20);
        let mtu_probing = MtuProbing::On;
        let config = Config { mss: 1424, mtu_probing, initial_window, recovery, ..config() };
        let mut t = Diagram::new(&config, Side::Active);
        t.offer.mss = Some(1424);
        t.recv([syn()]);
        t.time(100);
        t.send(syn_ack());
        t.recv([ack(1)]);
        t.write(1 << 40);
        t.unseen.clear();
        t.time(200);
        for n in 1..=3 {
            t.send(acks(0).sack_bytes(1225, 1225 + n * 1024));
        }
        let again = t.unseen.iter().filter(|(_, seg)| seg.seq < 1225).map(|(_, seg)| seg.len);
        assert_eq!(again.collect::<Vec<_>>(), [1024, 200], "{recovery:?}");
        t.unseen.clear();
        assert_eq!(t.statistics().reductions, 0, "{recovery:?}");
        assert_eq!(t.windows().1, u64::MAX);
        t.time(300);
        t.send(acks(end(&t)));
        let next = sizes(&mut t);
        assert!(next.contains(&1124), "{recovery:?}: {next:?}"); // 1024 to 1223.
        assert_eq!(t.connection.info().mss, 1024);
    }
}

#[test]
fn the_window_has_room_for_a_segment_as_large_as_the_probe() {
    // RFC 5681 §3.1: the least window is one full-sized segment.
    for (_, congestion) in Congestion::ALL {
        let initial_window = InitialWindow::Segments(20);
        let mtu_probing = MtuProbing::On;
        let congestion = *congestion;
        let config = Config { mss: 9000, mtu_probing, initial_window, congestion, ..config() };
        let mut t = Diagram::new(&config, Side::Active);
        t.offer.mss = Some(9000);
        t.recv([syn()]);
        t.time(100);
        t.send(syn_ack());
        t.recv([ack(1)]);
        t.write(100);
        t.write(9109);
        assert_eq!(sizes(&mut t), [100, 5012, 1024, 1024, 1024, 1024, 1]);
        t.time(200);
        // A loss halves the window to less than the probe that has arrived.
        t.send(acks(0).sack_bytes(101, 9210));
        assert_eq!(sizes(&mut t), [100]);
        t.time(300);
        t.send(acks(9209));
        assert_eq!(t.connection.info().mss, 5012);
        t.write(20_000);
        let first = sizes(&mut t).into_iter().next();
        assert_eq!(first, Some(5012), "{congestion:?}: window {}", t.windows().0);
    }
}

#[test]
fn a_report_about_a_probe_bounds_the_search_and_one_about_less_ends_it() {
    for (mss, after) in [(1100, 1024), (900, 900)] {
        let mut t = probing(MtuProbing::On);
        t.write(1 << 40);
        t.unseen.clear();
        t.time(150);
        t.too_big(1, mss); // The first segment is a probe of 1224 bytes.
        assert_eq!(t.unseen[0].1, bytes(0, after));
        t.unseen.clear();
        for round in 2..12 {
            t.time(100 * round);
            t.send(acks(end(&t)));
            assert!(sizes(&mut t).into_iter().all(|len| len <= u32::from(mss)), "{mss}");
        }
        let found = t.connection.info().mss;
        assert!(found <= u32::from(mss) && found + 8 > u32::from(mss), "{found} of {mss}");
    }
}

#[test]
fn three_timeouts_of_full_sized_segments_are_a_black_hole() {
    // RFC 4821 §7.7
    let mut t = probing(MtuProbing::BlackHole);
    t.write(1 << 40);
    assert!(sizes(&mut t).iter().all(|&len| len == 1424));
    t.time(1100);
    assert_eq!(sizes(&mut t), [1424]);
    t.time(3100);
    assert_eq!(sizes(&mut t), [1424]);
    t.time(7100);
    assert_eq!(sizes(&mut t), [1024]);
    t.time(15_100); // They do not pass either.
    assert_eq!(sizes(&mut t), [512]);
    t.send(acks(512));
    assert_eq!(sizes(&mut t), [512, 400]); // What was left of the first.
    assert_eq!(t.connection.reported_mss(), u32::MAX, "it is a guess");
}

#[test]
fn without_probing_segments_stay_as_large_as_they_are() {
    let mut t = probing(MtuProbing::Off);
    t.write(1 << 40);
    t.unseen.clear();
    for at in [1100, 3100, 7100, 15_100] {
        t.time(at);
        assert_eq!(sizes(&mut t), [1424]);
    }
}

#[test]
fn a_small_segment_is_cut_once_the_others_would_be_smaller() {
    let mut t = probing(MtuProbing::BlackHole);
    t.write(500);
    t.unseen.clear();
    for (at, len) in [(1100, 500), (3100, 500), (7100, 500), (15_100, 500), (31_100, 256)] {
        t.time(at);
        assert_eq!(sizes(&mut t), [len]);
    }
}

#[test]
fn after_ten_minutes_the_path_may_have_changed() {
    // RFC 4821 §7.4
    let mut t = probing(MtuProbing::On);
    t.write(1 << 40);
    t.unseen.clear();
    t.time(200);
    (1..=3).for_each(|n| t.send(acks(0).sack_bytes(1225, 1225 + n * 1024)));
    t.unseen.clear();
    let mut largest = [0; 2];
    for at in (600..620_000).step_by(400) {
        t.time(at);
        t.send(acks(end(&t)));
        let largest = &mut largest[usize::from(at > 600_000)];
        *largest = sizes(&mut t).into_iter().max().unwrap().max(*largest);
    }
    assert!((1216..1224).contains(&largest[0]) && largest[1] > 1400, "{largest:?}");
}
