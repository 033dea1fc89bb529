//! What arithmetic says about a path, and the simulator must agree with.

use crate::common::boxes::{Blackout, Tap, segment};
use crate::common::*;
use base::{Duration, Time};
use sim::FlowSample;
use std::thread;
use tcp::Recovery;
use tcp::mechanism::Suppression;

/// When the congestion window first reached so many segments.
fn reached(samples: &[FlowSample], segments: u64) -> Time {
    let first = samples.iter().find(|sample| sample.vitals.window >= segments * MSS);
    first.expect("it never did").at
}

#[test]
fn slow_start_doubles_the_window_every_round_trip() {
    // Infinitely fast, so that a round trip is 100 ms for every packet: SYN and SYN-ACK take the
    // first, and each further one doubles the window. To the nanosecond.
    let mut lab = Path::default().build();
    lab.trace();
    lab.world.run_until(millis(1500));
    let samples = lab.samples();
    for doublings in 1..=12 {
        let expected = millis(100 + 100 * doublings);
        assert_eq!(reached(&samples, 1 << doublings), expected, "2^{doublings} segments");
    }
}

#[test]
fn slow_start_on_a_link_with_a_rate_takes_the_time_of_its_packets() {
    // At 100 Mbit/s a segment of 1040 bytes takes 83.2 us, an acknowledgment 3.2 us, and a SYN with
    // its 12 bytes of options 4.16 us. The first answer of each round comes a round trip after the
    // first of the round before; the others follow at the pace of the link.
    let nanos = Duration::from_nanos;
    let mut lab = Path::over(Hop { rate: mbps(100), ..Hop::default() }).build();
    lab.trace();
    lab.world.run_until(millis(1500));
    let samples = lab.samples();
    let established = Time::ZERO + nanos(2 * (4160 + 50_000_000));
    let round_trip = nanos(83_200 + 3200 + 100_000_000);
    for round in 0..10 {
        let last = nanos(83_200) * ((1 << round) - 1);
        let expected = established + round_trip * (round + 1) + last;
        assert_eq!(reached(&samples, 2 << round), expected, "round {round}");
    }
}

#[test]
fn a_window_above_the_pipe_fills_the_link() {
    // 10 Mbit/s and 40 ms hold 48 segments; the window is 96. From then on the link never rests:
    // a segment every 832 us.
    for (recovery, delayed_ack) in [
        (Recovery::Reno, None),
        (Recovery::Sack, None),
        (Recovery::Sack, Some(Duration::from_millis(40))),
    ] {
        let delay = Duration::from_millis(20);
        let mut path = Path::over(Hop { rate: mbps(10), delay, ..Hop::default() });
        path.tcp.receive_window = tcp::ReceiveWindow::fixed(96_000);
        path.tcp.recovery = recovery;
        path.tcp.delayed_ack = delayed_ack;
        let mut lab = path.build();
        lab.world.run_until(secs(5));
        let before = lab.received();
        lab.world.run_until(secs(25));
        let segments = (lab.received() - before) / MSS;
        let exact = 20_000_000_000 / 832_000; // 24038
        assert!(segments.abs_diff(exact) <= 1, "{segments} of {exact}: less than 99.99 %");
        assert_eq!(lab.statistics().retransmissions, 0);
    }
}

#[test]
fn a_window_below_the_pipe_sends_itself_once_a_round_trip() {
    // Twenty segments in every 100.0864 ms, exactly.
    let mut path = Path::over(Hop { rate: mbps(100), ..Hop::default() });
    path.tcp.receive_window = tcp::ReceiveWindow::fixed(20_000);
    let mut lab = path.build();
    let mut now = secs(5);
    lab.world.run_until(now);
    let before = lab.received();
    for rounds in 1..=100 {
        now += Duration::from_nanos(100_086_400);
        lab.world.run_until(now);
        assert_eq!(lab.received() - before, 20 * MSS * rounds);
    }
}

#[test]
fn a_queue_of_the_pipes_size_keeps_the_link_busy_through_every_halving() {
    // Drop-tail losses only: the window swings between one pipe and two.
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let mut path = Path::over(Hop {
            rate: mbps(10),
            delay: Duration::from_millis(20),
            queue: link::Queue::Packets(60),
            ..Hop::default()
        });
        path.tcp.recovery = recovery;
        let mut lab = path.build();
        lab.world.run_until(secs(20));
        let before = lab.received();
        lab.world.run_until(secs(120));
        let share = (lab.received() - before) as f64 / MSS as f64 / (100e9 / 832e3);
        assert!(lab.statistics().reductions > 10 && lab.statistics().timeouts <= 1);
        assert!(share > 0.995, "{recovery:?}: {share}");
    }
}

/// When the sender sends its last segment, over and over, on a path on which nothing gets through
/// from `dead_from` on.
fn attempts(tcp: tcp::Config, dead_from: Time, until: Time) -> Vec<Time> {
    let mut lab = Path { tcp, size: Some(100), ..Path::default() }.build();
    let tap = Tap::default();
    lab.world.add_box(lab.receiver(), Box::new(Blackout { from: dead_from, until: Time::NEVER }));
    lab.world.add_box(lab.sender(), Box::new(tap.clone()));
    lab.world.run_until(until);
    let sender = lab.sender().address();
    let sent = tap.seen().into_iter().filter(|(_, packet)| packet.ip.source == sender);
    let sent: Vec<_> = sent.map(|(at, packet)| (at, segment(&packet).map(|s| s.seq))).collect();
    let last = sent.last().expect("it sends").1;
    sent.iter().filter(|(_, seq)| *seq == last).map(|(at, _)| *at).collect()
}

#[test]
fn a_dead_link_is_tried_after_one_two_four_seconds_and_so_on() {
    // RFC 6298 §5.5, 2.5: doubled each time, 60 s at most. To the nanosecond.
    let doubled = [0, 1, 3, 7, 15, 31, 63, 123, 183, 243];
    // The SYN ...
    let persistent = tcp::Config { syn_retries: 15, ..plain() };
    assert_eq!(attempts(persistent, Time::ZERO, secs(250)), doubled.map(secs));
    // ... and data, which follows the handshake at 100 ms.
    let data = doubled.map(|s| millis(100 + 1000 * s));
    assert_eq!(attempts(plain(), millis(120), secs(250)), data);
}

#[test]
fn a_dead_link_is_tried_after_three_round_trips_where_no_minimum_forbids_it() {
    // RFC 6298 §2.2: one sample of 100 ms gives 100 + 4 * 50 ms.
    let mut tcp = plain();
    tcp.rto.minimum = Duration::ZERO;
    let expected = [0, 300, 900, 2100, 4500, 9300, 18_900, 38_100, 76_500, 136_500];
    assert_eq!(attempts(tcp, millis(120), secs(140)), expected.map(|ms| millis(100 + ms)));
}

#[test]
fn the_tick_of_a_coarse_clock_rounds_the_timeout() {
    // 4.3BSD: one tick of 100 ms, a variance of half a tick, so the timeout is three ticks.
    let mut tcp = plain();
    tcp.rto.minimum = Duration::ZERO;
    tcp.rto.granularity = Duration::from_millis(100);
    tcp.rto.estimator = tcp::Estimator::Ticks;
    let expected = [0, 300, 900, 2100, 4500].map(|ms| millis(100 + ms));
    assert_eq!(attempts(tcp, millis(120), secs(5)), expected);
}

/// Goodput in segments a round trip, times the square root of the loss rate; and timeouts a second.
struct Law {
    constant: f64,
    timeouts: f64,
}

/// The mean over four seeds. The window is unbounded, the round trip 100 ms whatever the load.
fn law(p: f64, seconds: u64, tcp: &tcp::Config) -> Law {
    let run = |seed| {
        let hop = Hop { forward: lossy(p), ..Hop::default() };
        let mut lab = Path { seed, tcp: tcp.clone(), ..Path::over(hop) }.build();
        lab.world.run_until(secs(20)); // Slow start is over.
        let before = lab.received();
        lab.world.run_until(secs(20 + seconds));
        (lab.received() - before, lab.statistics().timeouts)
    };
    let runs: Vec<_> = thread::scope(|scope| {
        let threads = [1, 2].map(|first| scope.spawn(move || [run(first), run(first + 2)]));
        threads.into_iter().flat_map(|thread| thread.join().expect("it runs")).collect()
    });
    let total = (4 * seconds) as f64;
    let segments = runs.iter().map(|run| run.0).sum::<u64>() as f64 / MSS as f64;
    let timeouts = runs.iter().map(|run| run.1).sum::<u64>() as f64;
    Law { constant: segments / total * 0.1 * p.sqrt(), timeouts: timeouts / total }
}

/// Mathis, Semke, Mahdavi and Ott 1997 (CCR 27:3), table 1: goodput is C/sqrt(p) segments a round
/// trip, C = sqrt(3/2) = 1.22 if every 1/p-th segment is lost, 1.31 if each is on its own.
const PERIODIC: f64 = 1.224_744_871_391_589;

/// Loss rate, seconds a seed (above 2000 losses in all), and what share of `PERIODIC` may come out.
///
/// Losses are independent, so rare ones give up to 1.31/1.22 = 1.07. The more frequent they are,
/// the more it costs that each recovery holds the window at its half for a round trip: a cycle has
/// half a window of round trips, 82 at 1e-4 but 8 at 1e-2, so this one takes 0.8 and 7.6 %.
const LAW: [(f64, u64, f64, f64); 5] = [
    (1e-4, 5000, 1.02, 1.08),
    (3e-4, 3000, 1.01, 1.07),
    (1e-3, 3000, 1.00, 1.05),
    (3e-3, 2000, 0.97, 1.02),
    (1e-2, 3000, 0.90, 0.95),
];

fn obeys_the_law(recovery: Recovery) {
    for (p, seconds, low, high) in LAW {
        let share = law(p, seconds, &tcp::Config { recovery, ..plain() }).constant / PERIODIC;
        assert!((low..=high).contains(&share), "{recovery:?} at {p}: {share}");
    }
}

#[test]
fn sack_obeys_the_square_root_law() {
    obeys_the_law(Recovery::Sack);
}

#[test]
fn newreno_obeys_the_square_root_law() {
    obeys_the_law(Recovery::NewReno);
}

#[test]
fn at_high_loss_timeouts_take_their_share_and_reno_the_more() {
    // A timeout waits for a second, in which sqrt(3/2)/sqrt(1e-2) * 10 = 122 segments are not sent.
    let sack = law(1e-2, 3000, &plain());
    let reno = law(1e-2, 3000, &tcp::Config { recovery: Recovery::Reno, ..plain() });
    assert!((0.01..0.02).contains(&sack.timeouts), "{}", sack.timeouts);
    assert!((0.03..0.05).contains(&reno.timeouts), "{}", reno.timeouts);
    // Of the time that is not spent waiting, both make nearly the same use.
    let busy = |law: &Law| law.constant / (1.0 - law.timeouts) / PERIODIC;
    assert!((0.92..0.96).contains(&busy(&sack)), "{}", busy(&sack));
    assert!((0.86..0.92).contains(&busy(&reno)), "{}", busy(&reno));
}

#[test]
fn delayed_acknowledgments_slow_the_growth_by_the_square_root_of_two() {
    // Mathis et al., table 1: 0.87 for periodic, 0.93 for independent losses.
    let tcp = tcp::Config { delayed_ack: Some(Duration::from_millis(40)), ..plain() };
    let constant = law(1e-3, 3000, &tcp).constant;
    assert!((0.86..0.93).contains(&constant), "{constant}");
}

#[test]
fn corruption_is_as_frequent_as_the_bits_are_bad() {
    // 1040 bytes are 8320 bits: at 1e-5 each, 7.98 % of the segments, and 0.32 % of the 40-byte
    // acknowledgments, are damaged.
    let errors = link::Uniform { bit: 1e-5, packet: 0.0 };
    let mut path = Path::over(Hop { forward: errors, backward: errors, ..Hop::default() });
    path.tcp.mechanisms = eten(Suppression::All);
    path.report = Report::Oracle;
    path.tcp.receive_window = tcp::ReceiveWindow::fixed(50_000);
    let lab = path.run(secs(200));
    let share = |link| {
        let statistics = lab.world.link(link);
        statistics.corrupted as f64 / statistics.packets as f64
    };
    let (forward, backward) = lab.links[0];
    assert!((share(forward) - 0.0798).abs() < 0.003, "{}", share(forward));
    // Acknowledgments carry up to 36 bytes of blocks.
    assert!((0.0032..0.0060).contains(&share(backward)), "{}", share(backward));
}

#[test]
fn an_oracle_makes_corruption_cost_no_more_than_the_packets_it_takes() {
    // The sender is notified of each after half a round trip, and answers with one packet.
    let p = 0.01;
    let mut path = Path::over(Hop { forward: noisy(p, 1040), ..Hop::default() });
    path.tcp.receive_window = tcp::ReceiveWindow::fixed(50_000);
    path.tcp.mechanisms = eten(Suppression::All);
    path.report = Report::Oracle;
    let lab = path.run(secs(100));
    let statistics = lab.statistics();
    assert_eq!((statistics.reductions, statistics.timeouts), (0, 0));
    assert_eq!(statistics.retransmissions, statistics.notices);
    let corrupted = lab.world.link(lab.links[0].0).corrupted;
    let notices = statistics.notices;
    assert!(corrupted.abs_diff(notices) <= 1, "{corrupted} corrupted, {notices} notices");
}

#[test]
fn both_ends_of_the_tap_agree() {
    // The harness itself: a tap sees each packet once, at the time it leaves or arrives.
    let mut lab = Path { size: Some(3000), ..Path::default() }.build();
    let tap = Tap::default();
    lab.world.add_box(lab.receiver(), Box::new(tap.clone()));
    lab.world.run_until(secs(100));
    assert_eq!(lab.received(), 3000);
    let sender = lab.sender().address();
    let seen = tap.seen();
    let arrived = seen.iter().filter(|(_, packet)| packet.ip.source == sender).count();
    assert_eq!(arrived as u64, lab.world.link(lab.links[0].0).packets);
    assert_eq!((seen.len() - arrived) as u64, lab.world.link(lab.links[0].1).packets);
    assert!(seen.iter().all(|(_, packet)| segment(packet).is_some()));
    assert_eq!(seen[0].0, millis(50));
}
