//! Whatever the path: the stream arrives whole, in order, once; both ends close; and then there
//! is peace. `PROPTEST_CASES` says how many paths, and a failure prints path and seed.

use crate::common::boxes::Muddle;
use crate::common::*;
use base::{Duration, Rate, Seed, Time};
use host::{Opening, Sink, Source, Traffic};
use link::{Queue, Uniform};
use proptest::prelude::*;
use sim::NodeId;
use tcp::mechanism::Suppression;

/// More than any of these transfers needs.
const EVENTS: u64 = 1_000_000;

fn errors() -> impl Strategy<Value = Uniform> {
    let bit = prop_oneof![2 => Just(0.0), 1 => 0.0..1e-5];
    let packet = prop_oneof![2 => Just(0.0), 1 => 0.0..0.05];
    (bit, packet).prop_map(|(bit, packet)| Uniform { bit, packet })
}

fn hop() -> impl Strategy<Value = Hop> {
    let rate = prop_oneof![Just(None), (64_000u64..100_000_000).prop_map(Rate::from_bps)];
    let queue = prop_oneof![
        Just(Queue::Unlimited),
        (1u32..30).prop_map(Queue::Packets),
        // The longest packet fits, in a tunnel too.
        (1600u64..30_000).prop_map(Queue::Bytes),
    ];
    let delay = (0u64..300_000).prop_map(Duration::from_micros);
    (rate, delay, queue, errors(), errors()).prop_map(|(rate, delay, queue, forward, backward)| {
        // No packet returns in the instant in which it left.
        let delay = delay + Duration::from_micros(1);
        Hop { rate, delay, queue, forward, backward }
    })
}

fn tcp() -> impl Strategy<Value = tcp::Config> {
    let segment = 100u16..1460;
    let windows = (1u32..=12, 1u32..=100, prop::option::of(2u64..50));
    let choices = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let recovery = prop::sample::select(&RECOVERIES[..]);
    (recovery, segment, windows, choices).prop_map(|(recovery, mss, windows, choices)| {
        let (initial_window, window, ssthresh) = windows;
        let (limited_transmit, delayed, halve, ticks) = choices;
        tcp::Config {
            mss,
            receive_window: tcp::ReceiveWindow::fixed(window * u32::from(mss)),
            recovery,
            initial_window: tcp::InitialWindow::Segments(initial_window),
            initial_ssthresh: ssthresh.map(|segments| segments * u64::from(mss)),
            limited_transmit,
            delayed_ack: delayed.then_some(Duration::from_millis(100)),
            ssthresh_on_backoff: if halve {
                tcp::SsthreshOnBackoff::Halve
            } else {
                tcp::SsthreshOnBackoff::Hold
            },
            rto: tcp::Rto {
                estimator: if ticks { tcp::Estimator::Ticks } else { tcp::Estimator::Exact },
                ..tcp::Rto::default()
            },
            // Long enough for the last acknowledgment to get through.
            time_wait: Duration::from_secs(600),
            ..tcp::Config::default()
        }
    })
}

/// Between which nodes of a path of so many links, if there is one, and whether notices come through.
fn tunnel(links: usize) -> impl Strategy<Value = Option<Tunnel>> {
    let ends = (0..links).prop_flat_map(move |from| (Just(from), from + 1..=links));
    let tunnel =
        (ends, any::<bool>()).prop_map(|((from, to), resolves)| Tunnel { from, to, resolves });
    prop::option::weighted(0.3, tunnel)
}

fn path() -> impl Strategy<Value = Path> {
    let forward = prop::sample::select(&TRANSPORTS[..]).prop_map(Report::Forward);
    let others = vec![Report::None, Report::Oracle, Report::Backward];
    let report = prop_oneof![prop::sample::select(others), forward];
    let size = prop_oneof![0u64..3000, 0u64..200_000];
    let hops = prop::collection::vec(hop(), 1..4);
    let hops = hops.prop_flat_map(|hops| {
        let tunnel = tunnel(hops.len());
        (Just(hops), tunnel)
    });
    let mechanism = prop::option::of(prop::sample::select(&Suppression::EVERY[..]));
    (hops, tcp(), size, report, mechanism, any::<bool>(), any::<u64>()).prop_map(
        |((hops, tunnel), tcp, size, report, suppress_dupacks, checked, seed)| {
            let heeds = if matches!(report, Report::Forward(_)) { forward_eten } else { eten };
            let mechanisms = suppress_dupacks.map(heeds).unwrap_or_default();
            let tcp = tcp::Config { mechanisms, ..tcp };
            Path { hops, tcp, size: Some(size), report, checked, tunnel, v6: false, seed }
        },
    )
}

/// Links without losses, with whatever queues build up, and no timeout below the time that a window
/// and its acknowledgments take.
fn undisturbed() -> impl Strategy<Value = Path> {
    path().prop_map(|mut path| {
        let window = u64::from(path.tcp.receive_window.maximum.div_ceil(u32::from(path.tcp.mss)));
        // With headers, those of a tunnel, and a segment that is not full-sized.
        let bytes = (window + 1) * (u64::from(path.tcp.mss) + 40 + 100 + 60);
        let mut longest = path.tcp.delayed_ack.unwrap_or(Duration::ZERO) + Duration::from_millis(1);
        for hop in &mut path.hops {
            (hop.queue, hop.forward, hop.backward) =
                (Queue::Unlimited, Uniform::default(), Uniform::default());
            let drains = hop.rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes));
            longest = longest + hop.delay * 2 + drains;
        }
        let rto = &mut path.tcp.rto;
        (rto.initial, rto.minimum) = (longest, longest);
        rto.maximum = rto.maximum.max(longest);
        path
    })
}

/// Boxes that double packets and hold others back: in which node, with which probabilities.
type Muddles = Vec<(prop::sample::Index, f64, f64)>;

fn muddles() -> impl Strategy<Value = Muddles> {
    prop::collection::vec((any::<prop::sample::Index>(), 0.0..0.1, 0.0..0.1), 0..3)
}

fn with_muddles(path: &Path, muddles: &Muddles) -> Lab {
    let mut lab = path.build();
    for (number, (node, double, hold)) in muddles.iter().enumerate() {
        let random = Seed(path.seed).stream(&format!("muddle.{number}"));
        lab.world.add_box(*node.get(&lab.nodes), Box::new(Muddle::new(random, *double, *hold)));
    }
    lab
}

/// Many, for they are short; `PROPTEST_CASES` may say otherwise.
fn cases() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(4000),
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_stream_arrives_whole_both_ends_close_and_there_is_peace(
        path in path(),
        muddles in muddles(),
    ) {
        let mut lab = with_muddles(&path, &muddles);
        lab.run_to_peace(EVENTS);

        let (connection, sink) = lab.receiving();
        prop_assert_eq!((sink.received, sink.misplaced), (path.size.unwrap(), 0));
        prop_assert!(sink.finished_at.is_some());
        prop_assert_eq!(connection.state(), tcp::State::Closed);
        prop_assert_eq!(lab.sending().state(), tcp::State::Closed);

        prop_assert_eq!((lab.world.in_flight(), lab.world.unroutable()), (0, 0));
    }

    #[test]
    fn without_losses_and_with_patience_nothing_is_sent_twice(path in undisturbed()) {
        let mut lab = path.build();
        lab.run_to_peace(EVENTS);
        prop_assert_eq!(Some(lab.received()), path.size);
        let tcp::Statistics { retransmissions, timeouts, reductions, .. } = lab.statistics();
        prop_assert_eq!((retransmissions, timeouts, reductions), (0, 0, 0));
    }

    #[test]
    fn the_same_path_gives_the_same_run(path in path(), muddles in muddles()) {
        let run = || {
            let mut lab = with_muddles(&path, &muddles);
            lab.world.digest();
            lab.run_to_peace(EVENTS);
            (lab.world.events(), lab.statistics(), lab.world.observations().1)
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn packets_that_are_bytes_at_every_hop_change_nothing(path in path(), muddles in muddles()) {
        let run = |bytes: bool| {
            let mut lab = with_muddles(&path, &muddles);
            if bytes {
                lab.world.byte_mode();
            }
            lab.world.digest();
            lab.run_to_peace(EVENTS);
            prop_assert_eq!(lab.world.byte_fault(), None);
            Ok((lab.world.events(), lab.statistics(), lab.world.observations().1))
        };
        prop_assert_eq!(run(false)?, run(true)?);
    }

    #[test]
    fn watching_changes_nothing(path in path()) {
        let run = |watch: bool| {
            let mut lab = path.build();
            if watch {
                lab.trace();
                lab.world.trace(&[sim::TraceTarget::Queue(lab.links[0].0)]);
            }
            lab.world.digest();
            lab.run_to_peace(EVENTS);
            (lab.world.events(), lab.statistics(), lab.world.observations().1)
        };
        prop_assert_eq!(run(false), run(true));
    }

    /// Who is watched is never ahead of the others.
    #[test]
    fn a_node_that_is_ahead_of_the_others_lives_through_the_same(
        path in path(),
        muddles in muddles(),
        flows in prop::collection::vec((any::<bool>(), 0u64..2_000_000, 0u64..100_000), 0..4),
    ) {
        let run = |watch: bool| {
            let mut lab = with_muddles(&path, &muddles);
            for (port, &(back, start, size)) in (PORT + 1..).zip(&flows) {
                let (from, to) = (lab.sender(), lab.receiver());
                let ends = if back { (to, from) } else { (from, to) };
                add_flow(&mut lab, &path.tcp, ends, port, start, size);
            }
            if watch {
                lab.world.digest();
            }
            lab.world.run_until(Time::ZERO + Duration::from_secs(1_000_000));
            outcome(&lab)
        };
        prop_assert_eq!(run(false), run(true));
    }
}

/// One more flow, of `size` bytes from `start` microseconds on.
fn add_flow(
    lab: &mut Lab,
    tcp: &tcp::Config,
    (from, to): (NodeId, NodeId),
    port: u16,
    start: u64,
    size: u64,
) {
    let (stream, accepted) = (u32::from(port), tcp.clone());
    let sink = move || (accepted.clone(), Traffic::Sink(Sink::new(stream)));
    lab.world.host_mut(to).listen(port, sink);
    lab.world.host_mut(from).open(Opening {
        at: Time::ZERO + Duration::from_micros(start),
        remote: to.address(),
        remote_port: port,
        local: None,
        local_port: None,
        config: tcp.clone(),
        application: Traffic::Source(Source::new(stream, Some(size))),
    });
    lab.world.wake(from);
}

/// All that can be seen after a run.
fn outcome(lab: &Lab) -> impl PartialEq + std::fmt::Debug + use<> {
    let hosts = lab.nodes.iter().map(|&node| lab.world.host(node));
    let connections = hosts.flat_map(|host| host.connections());
    let ends = connections.map(|(_, end, application)| {
        (end.statistics(), end.vitals(), end.state(), format!("{application:?}"))
    });
    let directions = lab.links.iter().flat_map(|&(forward, backward)| [forward, backward]);
    let links = directions.map(|direction| lab.world.link(direction));
    let world = (lab.world.events(), lab.world.in_flight(), lab.world.unroutable());
    (ends.collect::<Vec<_>>(), links.collect::<Vec<_>>(), world)
}
