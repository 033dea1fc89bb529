//! Runs that must not change by accident: fixed scenarios have recorded digests, and what ought to
//! make no difference makes none.

use crate::common::boxes::Tap;
use crate::common::*;
use base::{Duration, Rate, Seed, Time};
use host::{DatagramFlow, DatagramSource, OnOff, Opening, Sink, Source, Traffic};
use link::{Queue, Uniform};
use sim::{Digest, TraceTarget};
use std::thread;
use tcp::Recovery;
use tcp::mechanism::Suppression;

/// A rate, a queue, and errors in both directions.
fn bad_hop() -> Hop {
    let errors = link::Uniform { packet: 0.005, ..noisy(0.01, 1040) };
    Hop {
        rate: mbps(2),
        delay: Duration::from_millis(40),
        queue: Queue::Packets(15),
        forward: errors,
        backward: errors,
    }
}

/// The settings of the simulators of 2001.
fn coarse() -> tcp::Config {
    tcp::Config {
        initial_ssthresh: Some(20 * MSS),
        receive_window: tcp::ReceiveWindow::fixed(20 * MSS as u32),
        rto: tcp::Rto {
            initial: Duration::from_secs(6),
            minimum: Duration::from_millis(200),
            granularity: Duration::from_millis(100),
            estimator: tcp::Estimator::Ticks,
            ..tcp::Rto::default()
        },
        ssthresh_on_backoff: tcp::SsthreshOnBackoff::Halve,
        ..plain()
    }
}

fn scenarios() -> Vec<(&'static str, Path)> {
    let bad = || Path { size: Some(2_000_000), ..Path::over(bad_hop()) };
    let recovering = |recovery| {
        let tcp = tcp::Config { recovery, ..plain() };
        Path { tcp, ..bad() }
    };
    let notified = |report, suppress_dupacks, recovery| {
        let tcp = tcp::Config { mechanisms: eten(suppress_dupacks), recovery, ..plain() };
        Path { tcp, report, ..bad() }
    };
    vec![
        (
            "clean",
            Path { size: Some(2_000_000), ..Path::over(Hop { rate: mbps(10), ..Hop::default() }) },
        ),
        ("tahoe", recovering(Recovery::Tahoe)),
        ("reno", recovering(Recovery::Reno)),
        ("newreno", recovering(Recovery::NewReno)),
        ("sack", recovering(Recovery::Sack)),
        ("oracle, reno", notified(Report::Oracle, Suppression::All, Recovery::Reno)),
        ("oracle, sack", notified(Report::Oracle, Suppression::All, Recovery::Sack)),
        ("backward, sack", notified(Report::Backward, Suppression::All, Recovery::Sack)),
        (
            "backward, sack, not suppressed",
            notified(Report::Backward, Suppression::None, Recovery::Sack),
        ),
        ("coarse clock", Path { tcp: coarse(), ..bad() }),
        (
            "three hops, today's defaults",
            Path {
                tcp: tcp::Config {
                    receive_window: tcp::ReceiveWindow::fixed(1 << 20),
                    ..tcp::Config::default()
                },
                hops: vec![bad_hop(), Hop { rate: mbps(1), ..Hop::default() }, bad_hop()],
                ..bad()
            },
        ),
    ]
}

const GOLDEN: [(&str, u64); 11] = [
    ("clean", 0x66fd458f51eb3def),
    ("tahoe", 0x51748a78af39f1fa),
    ("reno", 0xe56767f318bd2765),
    ("newreno", 0x685d146ebad54067),
    ("sack", 0x94e0e3c7921ed9a0),
    ("oracle, reno", 0x92195d8860b3e5ea),
    ("oracle, sack", 0x2333448f12e9e7e6),
    ("backward, sack", 0x8bc9d42e043a213a),
    ("backward, sack, not suppressed", 0xf6e4ba3add3f83b1),
    ("coarse clock", 0x8bc93d386ed7d4bc),
    ("three hops, today's defaults", 0x28dabadb5703c969),
];

/// A flow over three hops, and datagrams both ways over the middle one, which is too slow for all of
/// them: in bursts and not, in either version of IP, with many that are due at the same instant.
fn crossed(errors: Uniform, report: Report) -> Lab {
    let hop = Hop { forward: errors, backward: errors, rate: mbps(4), ..bad_hop() };
    let tcp = tcp::Config { mechanisms: eten(Suppression::All), ..coarse() };
    let path = Path { hops: vec![hop; 3], tcp, report, size: Some(1_000_000), ..Path::default() };
    let mut lab = path.build();
    for (way, ends) in [[1, 2], [2, 1]].into_iter().enumerate() {
        let [from, to] = ends.map(|end| lab.nodes[end]);
        for number in 0..6u16 {
            let port = 10 + number;
            let span = Duration::from_millis(100 + 50 * u64::from(number));
            let remote = if number == 3 { to.address_v6() } else { to.address() };
            let flow = DatagramFlow {
                stream: u32::from(10 * number) + way as u32,
                remote,
                remote_port: port,
                local_port: port,
                payload: [182, 182, 182, 182, 600, 182][usize::from(number)],
                rate: Rate::from_bps(1_000_000).expect("it is not 0"),
                // Pairs begin together.
                start: millis(40 + 50 * u64::from(number / 2)),
                stop: secs(4 + u64::from(number)),
                bursts: (number > 1).then_some(OnOff { on: span, off: span }),
            };
            // The last has no receiver.
            if number < 5 {
                lab.world.host_mut(to).take_datagrams(port);
            }
            let random = Seed(1).stream(&format!("datagrams.{way}.{number}"));
            lab.world.host_mut(from).send_datagrams(DatagramSource::new(flow, random));
        }
        lab.world.wake(from);
    }
    lab
}

const GOLDEN_CROSSED: [(&str, u64); 3] = [
    ("clean", 0x81f9830e5888abcd),
    ("noisy", 0x51b6fe8a39917ad8),
    ("noisy, reported", 0x1a83a3cd31c1c2cb),
];

#[test]
fn recorded_digests_hold_beside_datagrams() {
    let noisy = Uniform { packet: 0.005, ..noisy(0.01, 1040) };
    let now = [
        ("clean", crossed(Uniform::default(), Report::None)),
        ("noisy", crossed(noisy, Report::None)),
        ("noisy, reported", crossed(noisy, Report::Backward)),
    ];
    assert_eq!(now.map(|(name, lab)| (name, digest_of(lab).0)), GOLDEN_CROSSED);
}

fn digest_of(mut lab: Lab) -> Digest {
    lab.world.digest();
    lab.world.run_until(secs(10_000));
    lab.world.observations().1.expect("it was asked for")
}

fn digest(path: &Path) -> Digest {
    digest_of(path.build())
}

fn sack() -> Path {
    scenarios().swap_remove(4).1
}

#[test]
fn recorded_digests_hold() {
    // A change that sends other packets on purpose records the new values; its commit says why.
    let now: Vec<_> = scenarios().iter().map(|(name, path)| (*name, digest(path).0)).collect();
    assert_eq!(now, GOLDEN);
}

#[test]
fn a_run_gives_the_same_digest_alone_and_beside_others() {
    let scenarios = scenarios();
    let alone: Vec<_> = scenarios.iter().map(|(_, path)| digest(path)).collect();
    let beside: Vec<_> = thread::scope(|scope| {
        let runs: Vec<_> =
            scenarios.iter().map(|(_, path)| scope.spawn(move || digest(path))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(alone, beside);
}

#[test]
fn a_run_in_two_parts_is_the_run_in_one() {
    let mut lab = sack().build();
    lab.world.digest();
    for part in 1..=1000 {
        lab.world.run_until(millis(17 * part));
    }
    lab.world.run_until(secs(10_000));
    assert_eq!(lab.world.observations().1, Some(digest(&sack())));
}

#[test]
fn another_seed_is_another_run() {
    assert_ne!(digest(&Path { seed: 2, ..sack() }), digest(&sack()));
}

#[test]
fn a_mechanism_without_occasion_leaves_the_run_as_it_was() {
    // No errors to report: neither the sender's side nor the reporters do anything.
    for recovery in RECOVERIES {
        let hop = Hop {
            forward: link::Uniform::default(),
            backward: link::Uniform::default(),
            ..bad_hop()
        };
        let tcp = tcp::Config { recovery, ..plain() };
        let without = Path { tcp, size: Some(500_000), ..Path::over(hop) };
        for report in [Report::None, Report::Oracle, Report::Backward] {
            for suppress_dupacks in [Suppression::All, Suppression::None] {
                let tcp = tcp::Config { mechanisms: eten(suppress_dupacks), ..without.tcp.clone() };
                let with = Path { tcp, report, ..without.clone() };
                assert_eq!(digest(&with), digest(&without), "{recovery:?}, {report:?}");
            }
        }
        for transport in TRANSPORTS {
            let mechanisms = forward_eten(Suppression::All);
            let tcp = tcp::Config { mechanisms, ..without.tcp.clone() };
            let with = Path { tcp, report: Report::Forward(transport), ..without.clone() };
            assert_eq!(digest(&with), digest(&without), "{recovery:?}, {transport:?}");
        }
    }
}

#[test]
fn a_mechanism_without_notices_does_not_change_the_run() {
    for recovery in RECOVERIES {
        let mut path = Path { size: Some(500_000), ..Path::over(bad_hop()) };
        path.tcp.recovery = recovery;
        let without = digest(&path);
        path.tcp.mechanisms = eten(Suppression::All);
        assert_eq!(digest(&path), without);
    }
}

#[test]
fn an_oracle_without_a_mechanism_does_not_change_the_run() {
    assert_eq!(digest(&Path { report: Report::Oracle, ..sack() }), digest(&sack()));
}

#[test]
fn traces_and_taps_change_nothing() {
    let mut lab = sack().build();
    lab.trace();
    lab.world.trace(&[
        TraceTarget::Flows(lab.receiver()),
        TraceTarget::Events(lab.sender()),
        TraceTarget::Queue(lab.links[0].0),
        TraceTarget::Queue(lab.links[0].1),
    ]);
    for node in lab.nodes.clone() {
        lab.world.add_box(node, Box::new(Tap::default()));
    }
    assert_eq!(digest_of(lab), digest(&sack()));
}

#[test]
fn nodes_and_links_elsewhere_change_nothing() {
    let lab = sack().build_beside(|network| {
        let (a, b) = (network.add_node("a"), network.add_node("b"));
        let lossy = link::Config {
            rate: None,
            delay: Duration::from_millis(1),
            queue: Queue::Unlimited,
            errors: lossy(0.5).into(),
            ..link::Config::default()
        };
        network.add_link(a, b, lossy.clone(), lossy);
    });
    assert_eq!(digest_of(lab), digest(&sack()));
}

#[test]
fn a_flow_elsewhere_does_not_change_this_one() {
    let run = |beside: bool| {
        let mut other = None;
        let mut lab = sack().build_beside(|network| {
            let (a, b) = (network.add_node("a"), network.add_node("b"));
            let link = link::Config {
                rate: mbps(1),
                delay: Duration::from_millis(7),
                queue: Queue::Packets(5),
                errors: lossy(0.02).into(),
                ..link::Config::default()
            };
            network.add_link(a, b, link.clone(), link);
            other = Some((a, b));
        });
        if let (true, Some((a, b))) = (beside, other) {
            lab.world.host_mut(b).listen(1, || (plain(), Traffic::Sink(Sink::new(1))));
            lab.world.host_mut(a).open(Opening {
                at: Time::ZERO,
                remote: b.address(),
                remote_port: 1,
                local: None,
                local_port: None,
                config: plain(),
                application: Traffic::Source(Source::new(1, Some(300_000))),
            });
            lab.world.wake(a);
        }
        lab.trace();
        lab.world.run_until(secs(10_000));
        let (events, sink) = (lab.world.events(), lab.receiving().1.clone());
        (events, (sink.first_at, sink.finished_at, lab.statistics(), lab.samples()))
    };
    let (alone, beside) = (run(false), run(true));
    assert!(alone.0 < beside.0, "the other flow runs");
    assert_eq!(alone.1, beside.1);
}
