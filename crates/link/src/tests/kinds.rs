//! What holds of every link, of either kind.

use crate::*;
use base::{Duration, Rate, Seed, Time};
use core::net::IpAddr;
use proptest::prelude::*;
use std::collections::BTreeSet;
use wire::{Ecn, FlowKey, Ports};

/// What is offered to a link: how long after the last, and the size.
type Offers = Vec<(u64, u32)>;

fn offers() -> impl Strategy<Value = Offers> {
    let gap = prop_oneof![Just(0), 0u64..3_000_000, 0u64..200_000_000];
    prop::collection::vec((gap, prop_oneof![Just(1000u32), 40u32..1500]), 1..200)
}

fn queue() -> impl Strategy<Value = Queue> {
    prop_oneof![
        Just(Queue::Unlimited),
        (1u32..20).prop_map(Queue::Packets),
        (1500u64..20_000).prop_map(Queue::Bytes)
    ]
}

fn plain() -> impl Strategy<Value = Config> {
    let rate = prop_oneof![Just(None), (1_000_000u64..100_000_000).prop_map(Rate::from_bps)];
    let delay = (0u64..50_000_000).prop_map(Duration::from_nanos);
    let bit = prop_oneof![Just(0.0), 0.0..1e-5, 0.0..1e-3];
    let rates = (bit, prop_oneof![Just(0.0), 0.0..0.3]);
    (rate, delay, queue(), rates).prop_map(|(rate, delay, queue, (bit, packet))| {
        let errors = Uniform { bit, packet }.into();
        Config { rate, delay, queue, errors, ..Config::default() }
    })
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let shape = prop_oneof![Just(JitterShape::Uniform), Just(JitterShape::Bell)];
    let bound = prop_oneof![Just(0), 0u64..20_000_000].prop_map(Duration::from_nanos);
    let jitter = (bound, shape, any::<bool>()).prop_map(|(bound, shape, reorders)| Jitter {
        bound,
        shape,
        reorders,
    });
    let probability = || prop_oneof![Just(0.0), 0.0..0.5, Just(1.0)];
    let hold = (0u64..50_000_000).prop_map(Duration::from_nanos);
    (probability(), hold, probability(), jitter).prop_map(
        |(probability, delay, duplication, jitter)| {
            let reordering = Reordering { probability, delay };
            Impairments { reordering, duplication, jitter }
        },
    )
}

fn discipline_at_the_tail() -> impl Strategy<Value = Discipline> {
    let red = (0.0..5.0f64, 0.1..10.0f64, 0.0..1.0f64, 0.001..1.0f64, any::<[bool; 3]>()).prop_map(
        |(min, span, max_probability, weight, [gentle, wait, ecn])| {
            let max = min + span;
            Red { min, max, max_probability, weight, gentle, wait, ecn, ..Red::default() }
        },
    );
    prop_oneof![Just(Discipline::DropTail), red.prop_map(Discipline::Red)]
}

fn codel() -> impl Strategy<Value = CoDel> {
    (0u64..20, 1u64..200, 0u32..3000, any::<bool>()).prop_map(
        |(target, interval, max_packet, ecn)| {
            let [target, interval] = [target, interval].map(Duration::from_millis);
            CoDel { target, interval, max_packet, ecn }
        },
    )
}

fn discipline() -> impl Strategy<Value = Discipline> {
    let codel = codel().prop_map(Discipline::CoDel);
    prop_oneof![2 => discipline_at_the_tail(), 1 => codel, 1 => fair()]
}

fn fair() -> impl Strategy<Value = Discipline> {
    let isolation = prop::sample::select(
        &[Isolation::Flows, Isolation::SourceHost, Isolation::DestinationHost][..],
    );
    let drr = (256u32..3000, isolation)
        .prop_map(|(quantum, isolation)| Discipline::Drr(Drr { quantum, isolation }));
    let hosts = prop::sample::select(
        &[
            HostIsolation::Flows,
            HostIsolation::DualSourceHost,
            HostIsolation::DualDestinationHost,
            HostIsolation::Triple,
        ][..],
    );
    let fq_codel = (codel(), 256u32..3000, hosts).prop_map(|(codel, quantum, isolation)| {
        Discipline::FqCoDel(FqCoDel { codel, quantum, isolation })
    });
    prop_oneof![drr, fq_codel]
}

fn errors() -> impl Strategy<Value = ErrorModel> {
    let damage = || prop_oneof![Just(Damage::Loss), Just(Damage::Corruption)];
    let p = || prop_oneof![Just(0.0), 0.0..1.0, Just(1.0)];
    let elliott = (p(), p(), p(), p(), damage())
        .prop_map(|(p, r, h, k, damage)| GilbertElliott { p, r, h, k, damage }.into());
    let gap = prop_oneof![
        (1u64..1000).prop_map(|ms| Gap::Time(Duration::from_millis(ms))),
        (0.0..50.0).prop_map(Gap::Packets),
        (0.0..50_000.0).prop_map(Gap::Bytes)
    ];
    let bursts = (gap, 1.0..5.0, damage())
        .prop_map(|(gap, length, damage)| Bursts { gap, length, damage }.into());
    let numbers = prop::collection::btree_set(0u64..100, 0..20);
    let trace =
        (numbers, damage(), prop::option::of(100u64..150)).prop_map(|(numbers, damage, length)| {
            let damaged = numbers.into_iter().map(|index| DamagedPacket { index, damage });
            PacketTrace::new(damaged, length).unwrap().into()
        });
    let fades = (p(), p(), 1u64..500, 1u64..500).prop_map(|(packet, other, start, span)| {
        let value = Uniform { bit: 1e-5, packet };
        let [start, end] = [start, start + span].map(Duration::from_millis);
        let period = Some(end + start);
        let fades = Intervals::new([Interval { start, end, value }], period).unwrap();
        Fades { fades, otherwise: Uniform { bit: 0.0, packet: other } }.into()
    });
    prop_oneof![elliott, bursts, trace, fades]
}

fn variations() -> impl Strategy<Value = Intervals<Variation>> {
    let rate = prop::option::of((100_000u64..100_000_000).prop_map(Rate::from_bps));
    let delay = prop::option::of((0u64..100).prop_map(Duration::from_millis));
    let step = (1u64..300, rate, delay);
    prop::collection::vec(step, 0..5).prop_map(|steps| {
        let mut at = Duration::ZERO;
        let steps = steps.into_iter().map(|(after, rate, delay)| {
            at = at + Duration::from_millis(after);
            (at, Variation { rate: rate.flatten(), delay })
        });
        Intervals::steps(steps.collect::<Vec<_>>(), None).unwrap()
    })
}

/// A link with everything.
fn anything() -> impl Strategy<Value = Config> {
    let when_down = any::<[bool; 3]>().prop_map(|[keep_queued, keep_flying, accept]| {
        Some(WhenDown { keep_queued, keep_flying, accept })
    });
    let trace = prop::option::weighted(0.3, prop::collection::btree_set(1u64..100, 1..20));
    let whatever = (discipline(), errors(), impairments(), variations(), when_down, trace);
    (plain(), whatever).prop_map(|(plain, whatever)| {
        let (discipline, errors, impairments, variations, when_down, trace) = whatever;
        let lines = |set: BTreeSet<u64>| set.iter().map(|ms| format!("{ms}\n")).collect::<String>();
        let trace = trace.map(|set| DeliveryTrace::parse(&lines(set)).unwrap());
        Config { discipline, errors, impairments, variations, when_down, trace, ..plain }
    })
}

/// What happened to a packet, by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Refused(u32),
    Arrived(u32, Fate),
    Copied(u32, Fate),
    Dropped(u32),
}

/// The flow of a packet: of two from one host and one from another, in no simple order.
fn flow(number: usize) -> FlowKey {
    let host = |host: usize| IpAddr::from([10, 0, 0, host as u8]);
    let flow = number * number % 7 % 3;
    FlowKey {
        source: host(flow % 2),
        destination: host(flow.min(1)),
        protocol: 6,
        ports: Ports::new(flow as u16, 80),
        label: 0,
    }
}

fn forced(config: &Config) -> Link<u32> {
    let mut link = Link::new(config, Seed(1), "test");
    link.scheduled = Some(Box::new(Scheduled::new(config, Seed(1), "test")));
    link
}

/// Lets everything happen that is due before or at `until`.
fn wait(link: &mut Link<u32>, until: Time, events: &mut Vec<(Time, Event)>) {
    loop {
        let next = link.next_event();
        if next > until || next == Time::NEVER {
            return;
        }
        match link.wake(next) {
            Some(Output::Arrived(Arrival { packet, fate })) => {
                events.push((next, Event::Arrived(packet, fate)));
            }
            Some(Output::Copied(Arrival { packet, fate })) => {
                events.push((next, Event::Copied(packet, fate)));
            }
            Some(Output::Dropped(packet) | Output::Cut(packet)) => {
                events.push((next, Event::Dropped(packet)));
            }
            None => {}
        }
    }
}

/// Offers packets and lets everything happen in its time; before every so many packets, the link
/// goes down or comes up.
fn run_switched(link: &mut Link<u32>, offers: &Offers, every: usize) -> Vec<(Time, Event)> {
    let mut events = Vec::new();
    let mut now = Time::ZERO;
    let mut up = true;
    for (number, &(gap, len)) in offers.iter().enumerate() {
        now += Duration::from_nanos(gap);
        wait(link, now, &mut events);
        if number % every == every - 1 {
            up = !up;
            link.set_up(now, up);
        }
        let ecn = if number % 2 == 0 { Ecn::Capable } else { Ecn::NotCapable };
        let corrects = (number / 2 % 4) as u8;
        if let Err(packet) =
            link.enqueue_classed(now, number as u32, len, ecn, corrects, || flow(number))
        {
            events.push((now, Event::Refused(packet)));
        }
    }
    wait(link, now, &mut events);
    if !up {
        link.set_up(now, true);
    }
    wait(link, Time::NEVER, &mut events);
    events
}

/// The same, always up.
fn run(link: &mut Link<u32>, offers: &Offers) -> Vec<(Time, Event)> {
    run_switched(link, offers, usize::MAX)
}

proptest! {
    #[test]
    fn both_kinds_do_the_same_where_either_would_do(
        config in plain(),
        errors in prop::option::of(errors()),
        discipline in discipline_at_the_tail(),
        offers in offers(),
    ) {
        let errors = errors.unwrap_or(config.errors);
        let config = Config { errors, discipline, ..config };
        let (mut simple, mut scheduled) = (Link::new(&config, Seed(1), "test"), forced(&config));
        prop_assert!(simple.scheduled.is_none());
        prop_assert_eq!(run(&mut simple, &offers), run(&mut scheduled, &offers));
        prop_assert_eq!(simple.statistics(), scheduled.statistics());
    }

    #[test]
    fn every_packet_has_one_fate_and_all_are_counted(
        config in anything(),
        offers in offers(),
        every in 1usize..50,
    ) {
        let mut link = Link::new(&config, Seed(1), "test");
        let events = run_switched(&mut link, &offers, every);
        let mut fates = vec![0; offers.len()];
        let mut counted = Statistics::default();
        let mut last = Time::ZERO;
        // RFC 4737 §3: out of order are those that come after a later one.
        let mut next = 0;
        for (time, event) in &events {
            prop_assert!(*time >= last, "time goes on");
            last = *time;
            let packet = match *event {
                Event::Refused(packet) => {
                    counted.dropped += 1;
                    packet
                }
                Event::Dropped(packet) => {
                    counted.discarded += 1;
                    packet
                }
                Event::Copied(packet, _) => {
                    counted.duplicated += 1;
                    prop_assert_eq!(fates[packet as usize], 0, "the copy comes first");
                    continue;
                }
                Event::Arrived(packet, fate) => {
                    counted.corrupted += u64::from(fate == Fate::Corrupted);
                    counted.lost += u64::from(fate == Fate::Lost);
                    counted.corrected += u64::from(matches!(fate, Fate::Corrected { .. }));
                    if fate != Fate::Lost {
                        counted.reordered += u64::from(packet < next);
                        next = next.max(packet + 1);
                    }
                    prop_assert!(!fate.is_marked() || packet % 2 == 0, "it was not capable");
                    packet
                }
            };
            fates[packet as usize] += 1;
        }
        prop_assert!(fates.iter().all(|&fates| fates == 1), "{fates:?}");
        let statistics = link.statistics();
        prop_assert_eq!(statistics.packets + statistics.dropped, offers.len() as u64);
        if !config.discipline.is_fifo() {
            // Later than one that was sent later, not than one that came later.
            counted.reordered = statistics.reordered;
        }
        let Statistics { packets, bytes, marked, .. } = statistics;
        prop_assert_eq!(statistics, Statistics { packets, bytes, marked, ..counted });
        prop_assert_eq!(link.queued_packets(last), 0);
    }

    #[test]
    fn the_limit_is_never_exceeded(config in anything(), offers in offers()) {
        let config = Config { when_down: None, ..config };
        let mut link = Link::new(&config, Seed(1), "test");
        let (mut now, mut events) = (Time::ZERO, Vec::new());
        for (number, &(gap, len)) in offers.iter().enumerate() {
            now += Duration::from_nanos(gap);
            wait(&mut link, now, &mut events);
            let _ = link.enqueue_classed(now, number as u32, len, Ecn::NotCapable, 0, || flow(number));
            if let Queue::Packets(limit) = config.queue {
                prop_assert!(link.queued_packets(now) <= limit as usize);
            }
        }
    }

    #[test]
    fn fq_codel_of_one_flow_is_codel(
        config in plain(),
        codel in codel(),
        offers in offers(),
        every in 1usize..50,
    ) {
        let config = Config { queue: Queue::Unlimited, ..config };
        let results = [
            Discipline::CoDel(codel),
            Discipline::FqCoDel(FqCoDel { codel, ..FqCoDel::default() }),
        ].map(|discipline| {
            let mut link = Link::new(&Config { discipline, ..config.clone() }, Seed(1), "test");
            let (mut now, mut events) = (Time::ZERO, Vec::new());
            for (number, &(gap, len)) in offers.iter().enumerate() {
                now += Duration::from_nanos(gap);
                wait(&mut link, now, &mut events);
                let ecn = if number % every == 0 { Ecn::Capable } else { Ecn::NotCapable };
                link.enqueue(now, number as u32, len, ecn).unwrap();
            }
            wait(&mut link, Time::NEVER, &mut events);
            (events, link.statistics())
        });
        prop_assert_eq!(&results[0], &results[1]);
    }

    #[test]
    fn packets_of_a_flow_stay_in_order(
        config in plain(),
        discipline in discipline(),
        offers in offers(),
        every in 1usize..50,
        keep_queued: bool,
    ) {
        let when_down = Some(WhenDown { keep_queued, keep_flying: true, accept: true });
        let mut link = Link::new(&Config { discipline, when_down, ..config }, Seed(1), "test");
        let mut last = [None; 3];
        for (_, event) in run_switched(&mut link, &offers, every) {
            let Event::Arrived(packet, _) = event else { continue };
            let last = &mut last[usize::from(flow(packet as usize).ports.source())];
            prop_assert!(*last < Some(packet), "{last:?} {packet}");
            *last = Some(packet);
        }
    }

    #[test]
    fn a_link_never_carries_more_than_its_rate(config in anything(), offers in offers()) {
        let rate = Rate::from_bps(1_000_000).unwrap();
        let steady = Config {
            rate: Some(rate),
            trace: None,
            variations: Intervals::default(),
            impairments: Impairments::default(),
            ..config
        };
        let mut link = Link::new(&steady, Seed(1), "test");
        let mut free_at = None;
        for (time, event) in run_switched(&mut link, &offers, 20) {
            let Event::Arrived(packet, _) = event else { continue };
            let took = rate.time_for(u64::from(offers[packet as usize].1));
            if let Some(free_at) = free_at {
                prop_assert!(time >= free_at + took, "{packet} was sent too fast");
            }
            free_at = Some(time);
        }
    }

    #[test]
    fn order_is_kept_unless_packets_are_held_up_or_jitter_reorders(
        config in plain(),
        jitter in impairments(),
        offers in offers(),
    ) {
        let reordering = Reordering::default();
        let jitter = Jitter { reorders: false, ..jitter.jitter };
        let impairments = Impairments { reordering, duplication: 0.3, jitter };
        let mut link = Link::new(&Config { impairments, ..config }, Seed(1), "test");
        let arrivals = run(&mut link, &offers).into_iter().filter_map(|(_, event)| match event {
            Event::Arrived(packet, _) | Event::Copied(packet, _) => Some(packet),
            Event::Refused(_) | Event::Dropped(_) => None,
        });
        prop_assert!(arrivals.is_sorted());
    }
}

#[test]
fn a_saturated_trace_is_used_to_the_last_byte() {
    let trace = DeliveryTrace::parse("2\n3\n3\n7\n20\n").unwrap();
    let config = Config { trace: Some(trace), ..Config::default() };
    let mut link = Link::new(&config, Seed(1), "test");
    let events = run(&mut link, &vec![(0, 1250); 1200]);
    // 1.5 MB are 1000 opportunities, five every 20 ms.
    assert_eq!(events.last().unwrap().0, Time::ZERO + Duration::from_secs(4));
    let half = events.iter().filter(|(time, _)| *time <= Time::ZERO + Duration::from_secs(2));
    assert_eq!(half.count(), 600);
}

#[test]
fn a_packet_that_is_held_up_is_overtaken() {
    let reordering = Reordering { probability: 0.3, delay: Duration::from_millis(25) };
    let impairments = Impairments { reordering, ..Impairments::default() };
    let config = Config { delay: Duration::from_millis(10), impairments, ..Config::default() };
    let mut link = Link::new(&config, Seed(1), "test");
    let events = run(&mut link, &vec![(10_000_000, 1000); 1000]);
    let mut held = 0;
    for (time, event) in &events {
        let Event::Arrived(packet, _) = *event else { panic!("{event:?}") };
        // Packet n is sent at 10 (n + 1) milliseconds.
        let took = time.since(Time::from_nanos(10_000_000 * (u64::from(packet) + 1)));
        held += usize::from(took == Duration::from_millis(35));
        assert!([10, 35].contains(&(took.as_nanos() / 1_000_000)), "{took}");
    }
    assert!(held.abs_diff(300) < 60, "{held}");
    assert!(link.statistics().reordered > 200, "{:?}", link.statistics());
}
