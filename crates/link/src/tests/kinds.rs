//! What holds of every link, of either kind.

use crate::*;
use base::{Duration, Rate, Seed, Time};
use proptest::prelude::*;

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
    let rates = (prop_oneof![Just(0.0), 0.0..1e-5], prop_oneof![Just(0.0), 0.0..0.3]);
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

/// What happened to a packet, by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Refused(u32),
    Arrived(u32, Fate),
    Copied(u32, Fate),
    Dropped(u32),
}

fn forced(config: &Config) -> Link<u32> {
    let mut link = Link::new(config, Seed(1), "test");
    link.scheduled = Some(Box::new(Scheduled::new(config, Seed(1), "test")));
    link
}

/// Offers packets and lets everything happen in its time.
fn run(link: &mut Link<u32>, offers: &Offers) -> Vec<(Time, Event)> {
    let mut events = Vec::new();
    let mut now = Time::ZERO;
    let wait = |link: &mut Link<u32>, until: Time, events: &mut Vec<_>| loop {
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
            Some(Output::Dropped(packet)) => events.push((next, Event::Dropped(packet))),
            None => {}
        }
    };
    for (number, &(gap, len)) in offers.iter().enumerate() {
        now += Duration::from_nanos(gap);
        wait(link, now, &mut events);
        if let Err(packet) = link.enqueue(now, number as u32, len) {
            events.push((now, Event::Refused(packet)));
        }
    }
    wait(link, Time::NEVER, &mut events);
    events
}

proptest! {
    #[test]
    fn both_kinds_do_the_same_where_either_would_do(config in plain(), offers in offers()) {
        let (mut simple, mut scheduled) = (Link::new(&config, Seed(1), "test"), forced(&config));
        prop_assert!(simple.scheduled.is_none());
        prop_assert_eq!(run(&mut simple, &offers), run(&mut scheduled, &offers));
        prop_assert_eq!(simple.statistics(), scheduled.statistics());
    }

    #[test]
    fn every_packet_has_one_fate_and_copies_are_counted(
        config in plain(),
        impairments in impairments(),
        offers in offers(),
    ) {
        let mut link = Link::new(&Config { impairments, ..config }, Seed(1), "test");
        let events = run(&mut link, &offers);
        let mut fates = vec![0; offers.len()];
        let mut copies = 0;
        let mut damaged = (0, 0);
        for (_, event) in &events {
            match *event {
                Event::Refused(packet) | Event::Dropped(packet) => fates[packet as usize] += 1,
                Event::Copied(packet, _) => {
                    copies += 1;
                    prop_assert_eq!(fates[packet as usize], 0, "the copy comes first");
                }
                Event::Arrived(packet, fate) => {
                    fates[packet as usize] += 1;
                    damaged.0 += u64::from(fate == Fate::Corrupted);
                    damaged.1 += u64::from(fate == Fate::Lost);
                }
            }
        }
        prop_assert!(fates.iter().all(|&fates| fates == 1));
        let statistics = link.statistics();
        prop_assert_eq!(statistics.duplicated, copies);
        prop_assert_eq!((statistics.corrupted, statistics.lost), damaged);
        prop_assert_eq!(statistics.packets + statistics.dropped, offers.len() as u64);
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
fn a_packet_that_is_held_up_is_overtaken() {
    let reordering = Reordering { probability: 0.3, delay: Duration::from_millis(25) };
    let impairments = Impairments { reordering, ..Impairments::default() };
    let config = Config { delay: Duration::from_millis(10), impairments, ..Config::default() };
    let events = run(&mut Link::new(&config, Seed(1), "test"), &vec![(10_000_000, 1000); 1000]);
    let mut held = 0;
    for (time, event) in &events {
        let Event::Arrived(packet, _) = *event else { panic!("{event:?}") };
        // Packet n is sent at 10 (n + 1) milliseconds.
        let took = time.since(Time::from_nanos(10_000_000 * (u64::from(packet) + 1)));
        held += usize::from(took == Duration::from_millis(35));
        assert!([10, 35].contains(&(took.as_nanos() / 1_000_000)), "{took}");
    }
    assert!(held.abs_diff(300) < 60, "{held}");
    let order = events.iter().map(|(_, event)| match *event {
        Event::Arrived(packet, _) => packet,
        _ => panic!("{event:?}"),
    });
    assert!(!order.is_sorted());
}
