//! Links that do more than carry packets in order: TCP gets through all the same, and what happens
//! is recorded.

use crate::common::*;
use base::Duration;
use link::{
    Bursts, CoDel, Config, Damage, DeliveryTrace, Discipline, Drr, ErrorModel, Fades, FqCoDel, Gap,
    GilbertElliott, Impairments, Interval, Intervals, Jitter, JitterShape, Queue, Red, Reordering,
    Uniform, Variation,
};
use proptest::prelude::*;
use tcp::EcnMode;

/// 4 Mbit/s, 20 ms, and a queue of 20 packets.
fn hop() -> Config {
    Config {
        rate: mbps(4),
        delay: Duration::from_millis(20),
        queue: Queue::Packets(20),
        ..Config::default()
    }
}

fn with_errors(errors: impl Into<ErrorModel>) -> Config {
    Config { errors: errors.into(), ..hop() }
}

fn impaired() -> Config {
    let reordering = Reordering { probability: 0.02, delay: Duration::from_millis(7) };
    let bound = Duration::from_millis(3);
    let jitter = Jitter { bound, shape: JitterShape::Bell, reorders: true };
    Config { impairments: Impairments { reordering, duplication: 0.02, jitter }, ..hop() }
}

fn fading() -> Config {
    let fade = Interval {
        start: Duration::from_millis(300),
        end: Duration::from_millis(500),
        value: Uniform { bit: 1e-5, packet: 0.1 },
    };
    let fades = Intervals::new([fade], Some(Duration::from_secs(1))).expect("they make sense");
    with_errors(Fades { fades, otherwise: Uniform::default() })
}

fn varying() -> Config {
    let variation = |rate, delay| Variation { rate, delay: Some(Duration::from_millis(delay)) };
    let steps = [(100, variation(mbps(1), 20)), (400, variation(None, 100))]
        .map(|(at, variation)| (Duration::from_millis(at), variation));
    let variations = Intervals::steps(steps, None).expect("they make sense");
    Config { variations, ..hop() }
}

/// A long queue under control.
fn managed(discipline: Discipline) -> Config {
    Config { queue: Queue::Packets(1000), discipline, ..hop() }
}

fn red(ecn: bool) -> Config {
    managed(Discipline::Red(Red { weight: 0.02, mean_packet: 1040, ecn, ..Red::default() }))
}

fn fq_codel(ecn: bool) -> Config {
    let codel = CoDel { ecn, ..CoDel::default() };
    managed(Discipline::FqCoDel(FqCoDel { codel, ..FqCoDel::default() }))
}

fn codel(ecn: bool) -> Config {
    managed(Discipline::CoDel(CoDel { ecn, ..CoDel::default() }))
}

/// 3.2 Mbit/s on average, in fits and starts.
fn traced() -> Config {
    let trace = DeliveryTrace::parse("5\n5\n6\n20\n30\n30\n30\n30\n").expect("it makes sense");
    Config { trace: Some(trace), ..hop() }
}

fn links() -> Vec<(&'static str, Config)> {
    let chain = GilbertElliott { p: 0.005, r: 0.3, ..GilbertElliott::default() };
    let gap = Gap::Time(Duration::from_millis(400));
    let bursts = Bursts { gap, length: 2.0, damage: Damage::Corruption };
    vec![
        ("gilbert-elliott", with_errors(chain)),
        ("bursts", with_errors(bursts)),
        ("fades", fading()),
        ("impairments", impaired()),
        ("variations", varying()),
        ("red", red(false)),
        ("codel", codel(false)),
        ("drr", managed(Discipline::Drr(Drr::default()))),
        ("fq_codel", fq_codel(false)),
        ("trace", traced()),
    ]
}

const GOLDEN: [(&str, u64); 10] = [
    ("gilbert-elliott", 0x9aa42b72dd50934b),
    ("bursts", 0x0215dafa2a33c871),
    ("fades", 0x8fc52f7bcd5e5bd8),
    ("impairments", 0x207dd2de74a3b555),
    ("variations", 0xe101a8e811021b39),
    ("red", 0xbac0014b8692c6a6),
    ("codel", 0x15cf902e5263c077),
    ("drr", 0xe8333af2be1c1c7a),
    ("fq_codel", 0x15cf902e5263c077), // One flow: as CoDel.
    ("trace", 0x4b259bc51533a750),
];

fn path() -> Path {
    Path { size: Some(1_000_000), ..Path::default() }
}

#[test]
fn the_stream_arrives_whole_over_all_of_them() {
    for (name, link) in links() {
        let mut lab = path().build_over(vec![(link.clone(), link)], |_, _, _| {});
        lab.run_to_peace(100_000);
        assert_eq!(lab.received(), 1_000_000, "{name}");
        assert_eq!((lab.world.in_flight(), lab.world.unroutable()), (0, 0), "{name}");
    }
}

proptest! {
    #[test]
    fn whatever_recovery_and_seed_the_stream_arrives_whole_over_any_two(
        links in [prop::sample::select(links()), prop::sample::select(links())],
        recovery in prop::sample::select(&RECOVERIES[..]),
        ecn in prop::sample::select(&[EcnMode::Off, EcnMode::Classic, EcnMode::Accurate][..]),
        seed in any::<u64>(),
    ) {
        // A bad state may outlast the usual number of retries.
        let (retries, time_wait) = (100, Duration::from_secs(600));
        let (syn_retries, syn_ack_retries) = (retries, retries);
        let tcp = tcp::Config {
            recovery,
            ecn,
            retries,
            syn_retries,
            syn_ack_retries,
            time_wait,
            ..plain()
        };
        let path = Path { tcp, size: Some(200_000), seed, ..Path::default() };
        let links = links.map(|(_, link)| (link.clone(), link)).to_vec();
        let mut lab = path.build_over(links, |_, _, _| {});
        lab.run_to_peace(100_000);
        prop_assert_eq!(lab.received(), 200_000);
        prop_assert_eq!(lab.sending().state(), tcp::State::Closed);
        prop_assert_eq!((lab.world.in_flight(), lab.world.unroutable()), (0, 0));
    }
}

#[test]
fn recorded_digests_hold() {
    let digest = |link: &Config| {
        let mut lab = path().build_over(vec![(link.clone(), link.clone())], |_, _, _| {});
        lab.world.digest();
        lab.world.run_until(secs(1000));
        lab.world.observations().1.expect("it was asked for").0
    };
    let now: Vec<_> = links().iter().map(|(name, link)| (*name, digest(link))).collect();
    assert_eq!(now, GOLDEN);
}

#[test]
fn a_copy_is_a_packet_of_its_own() {
    let config =
        Config { impairments: Impairments { duplication: 1.0, ..Impairments::default() }, ..hop() };
    let mut lab = path().build_over(vec![(config, hop())], |_, _, _| {});
    let tap = crate::common::boxes::Tap::default();
    lab.world.add_box(lab.receiver(), Box::new(tap.clone()));
    lab.run_to_peace(100_000);
    assert_eq!(lab.received(), 1_000_000);
    let sent = lab.world.link(lab.links[0].0);
    let seen = tap.seen();
    let incoming =
        seen.iter().filter(|(_, packet)| packet.ip.destination == lab.receiver().address());
    assert_eq!(incoming.count() as u64, 2 * sent.packets);
    assert_eq!(sent.duplicated, sent.packets);
}

#[test]
fn active_queues_keep_the_queue_short_and_marks_spare_retransmissions() {
    // A bulk transfer that fills any queue: 4 Mbit/s for 30 s.
    let run = |link: Config, ecn: bool| {
        let ecn = if ecn { EcnMode::Classic } else { EcnMode::Off };
        let tcp = tcp::Config { ecn, ..plain() };
        let mut lab = Path { tcp, ..Path::default() }.build_over(vec![(link, hop())], |_, _, _| {});
        let queue = lab.links[0].0;
        lab.world.trace(&[sim::TraceTarget::Queue(queue)]);
        lab.world.run_until(secs(30));
        let (received, sent) = (lab.received(), lab.world.link(queue));
        let retransmissions = lab.statistics().retransmissions;
        let samples = lab.world.observations().0.queues.swap_remove(0).1;
        let late: Vec<_> = samples.iter().filter(|sample| sample.at > secs(10)).collect();
        let spans = late
            .windows(2)
            .map(|pair| f64::from(pair[0].packets) * pair[1].at.since(pair[0].at).as_secs_f64());
        (spans.sum::<f64>() / 20.0, received, sent, retransmissions)
    };
    let plain = run(managed(Discipline::DropTail), false);
    assert!(plain.0 > 300.0, "{}", plain.0);
    for (name, link, ecn) in [
        ("red", red(false), false),
        ("codel", codel(false), false),
        ("fq_codel", fq_codel(false), false),
        ("fq_codel, marking", fq_codel(true), true),
        ("red, marking", red(true), true),
        ("codel, marking", codel(true), true),
    ] {
        let (queue, received, sent, retransmissions) = run(link, ecn);
        assert!(queue < 20.0, "{name}: {queue} packets");
        // 30 s are 15 MB, of which 40 bytes in 1040 are headers.
        assert!(received > 11_500_000, "{name}: {received} bytes");
        if ecn {
            assert!(sent.marked > 10, "{name}: {} marks", sent.marked);
            assert!(retransmissions < 200, "{name}: {retransmissions}");
        } else {
            assert_eq!(sent.marked, 0, "{name}");
            assert!(sent.dropped + sent.discarded > 10, "{name}: {sent:?}");
        }
    }
}
