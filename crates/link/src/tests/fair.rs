//! Queues that share the rate between classes. The rate is a byte a microsecond.

use super::{MS, at};
use crate::*;
use base::{Duration, Rate};
use core::net::IpAddr;
use proptest::prelude::*;
use wire::{FlowKey, Ports};

/// Flow `port` from one host to another.
fn flow(from: u8, to: u8, port: u16) -> FlowKey {
    let host = |host: u8| IpAddr::from([10, 0, 0, host]);
    FlowKey {
        source: host(from),
        destination: host(to),
        protocol: 6,
        ports: Ports::new(port, 80),
        label: 0,
    }
}

/// A packet: its flow, and its number among those of all flows.
type Packet = (u16, u32);

fn link(discipline: Discipline, queue: Queue) -> Link<Packet> {
    let rate = Rate::from_bps(8_000_000);
    Link::new(&Config { rate, queue, discipline, ..Config::default() }, Seed(1), "test")
}

fn drr(quantum: u32, isolation: Isolation) -> Discipline {
    Discipline::Drr(Drr { quantum, isolation })
}

fn offer(link: &mut Link<Packet>, now: Time, packet: Packet, len: u32) -> bool {
    link.enqueue_classed(now, packet, len, Ecn::NotCapable, 0, || flow(1, 2, packet.0)).is_ok()
}

/// What the link gives back until a time.
fn outputs(link: &mut Link<Packet>, until: Time) -> Vec<(Time, Output<Packet>)> {
    let mut outputs = Vec::new();
    while link.next_event() <= until && link.next_event() < Time::NEVER {
        let now = link.next_event();
        outputs.extend(link.wake(now).map(|output| (now, output)));
    }
    outputs
}

fn arrivals(link: &mut Link<Packet>, until: Time) -> Vec<(Time, Packet)> {
    let arrived = |(time, output)| match output {
        Output::Arrived(arrival) => Some((time, arrival.packet)),
        _ => None,
    };
    outputs(link, until).into_iter().filter_map(arrived).collect()
}

fn dropped(link: &mut Link<Packet>, until: Time) -> Vec<Packet> {
    let dropped =
        |(_, output)| if let Output::Dropped(packet) = output { Some(packet) } else { None };
    outputs(link, until).into_iter().filter_map(dropped).collect()
}

/// Flows that always have packets waiting, each with its own packet size: the flows of the packets
/// that arrive.
fn backlogged(discipline: Discipline, sizes: &[u32], packets: u32) -> Vec<u16> {
    let mut link = link(discipline, Queue::Unlimited);
    for number in 0..packets {
        for (flow, &len) in sizes.iter().enumerate() {
            assert!(offer(&mut link, at(0), (flow as u16, number), len));
        }
    }
    arrivals(&mut link, Time::NEVER).into_iter().map(|(_, (flow, _))| flow).collect()
}

/// The largest difference between the bytes of two flows, as long as all have packets waiting.
fn unfairness(sizes: &[u32], packets: u32, arrivals: &[u16]) -> u64 {
    let (mut sent, mut left, mut most) = (vec![0; sizes.len()], vec![packets; sizes.len()], 0);
    for &flow in arrivals {
        sent[usize::from(flow)] += u64::from(sizes[usize::from(flow)]);
        left[usize::from(flow)] -= 1;
        if left.contains(&0) {
            break;
        }
        let (least, largest) = (sent.iter().min(), sent.iter().max());
        most = most.max(largest.unwrap_or(&0) - least.unwrap_or(&0));
    }
    most
}

/// Without CoDel's drops.
fn fq_codel(isolation: HostIsolation) -> Discipline {
    let codel = CoDel { target: Duration::from_secs(1000), ..CoDel::default() };
    Discipline::FqCoDel(FqCoDel { codel, isolation, ..FqCoDel::default() })
}

proptest! {
    #[test]
    fn with_fq_codel_backlogged_flows_send_the_same_number_of_bytes(
        sizes in prop::collection::vec(40u32..1500, 2..6),
    ) {
        let arrivals = backlogged(fq_codel(HostIsolation::Flows), &sizes, 200);
        let found = unfairness(&sizes, 200, &arrivals);
        let largest = u64::from(sizes.iter().copied().max().unwrap());
        prop_assert!(found <= 1514 + 2 * largest, "{found}");
    }

    #[test]
    fn with_fq_codel_a_sparse_packet_waits_only_for_the_one_in_transmission(
        sizes in prop::collection::vec(40u32..1500, 1..8),
        len in 40u32..1500,
        // By then no queue is new any more: each has sent 3000 bytes at most while it was.
        arrives in 30 * MS..70 * MS,
    ) {
        let mut link = link(fq_codel(HostIsolation::Flows), Queue::Unlimited);
        for number in 0..2000 {
            for (flow, &len) in sizes.iter().enumerate() {
                offer(&mut link, at(0), (flow as u16, number), len);
            }
        }
        outputs(&mut link, at(arrives));
        offer(&mut link, at(arrives), (99, 0), len);
        let arrivals = arrivals(&mut link, at(arrives + 100 * MS));
        let (arrived, _) = arrivals.iter().find(|(_, packet)| packet.0 == 99).unwrap();
        let bound = u64::from(len + sizes.iter().copied().max().unwrap());
        prop_assert!(arrived.since(at(arrives)) <= Duration::from_micros(bound), "{arrived}");
    }

    #[test]
    fn with_drr_backlogged_flows_send_the_same_number_of_bytes(
        sizes in prop::collection::vec(40u32..1500, 2..6),
        quantum in 256u32..3000,
    ) {
        let arrivals = backlogged(drr(quantum, Isolation::Flows), &sizes, 200);
        let found = unfairness(&sizes, 200, &arrivals);
        // The first packet is sent before there is competition: it is none of a round.
        let largest = u64::from(sizes.iter().copied().max().unwrap());
        // Shreedhar and Varghese, theorem 2: Q + 2 Max.
        prop_assert!(found <= u64::from(quantum) + 2 * largest, "{found}");
    }

    #[test]
    fn with_drr_a_packet_waits_one_turn_of_each_other_flow(
        sizes in prop::collection::vec(40u32..1500, 1..8),
        len in 40u32..1500,
        arrives in 0u64..50 * MS,
    ) {
        // With a quantum that any packet fits into, it is sent in the first turn of its flow.
        let mut link = link(drr(1500, Isolation::Flows), Queue::Unlimited);
        for number in 0..2000 {
            for (flow, &len) in sizes.iter().enumerate() {
                offer(&mut link, at(0), (flow as u16, number), len);
            }
        }
        outputs(&mut link, at(arrives));
        offer(&mut link, at(arrives), (99, 0), len);
        let arrivals = arrivals(&mut link, at(arrives + 100 * MS));
        let (arrived, _) = arrivals.iter().find(|(_, packet)| packet.0 == 99).unwrap();
        let turns: u64 = sizes.iter().map(|&size| 1500 + u64::from(size)).sum();
        let bound = turns + u64::from(sizes.iter().copied().max().unwrap()) + u64::from(len);
        prop_assert!(arrived.since(at(arrives)) <= Duration::from_micros(bound), "{arrived}");
    }
}

#[test]
fn with_drr_small_and_large_packets_share_the_rate_within_a_quantum() {
    let sizes = [1500, 100];
    let arrivals = backlogged(drr(1500, Isolation::Flows), &sizes, 300);
    let found = unfairness(&sizes, 300, &arrivals);
    assert!(found <= 1500, "{found}");
    // One large packet, then fifteen small ones.
    assert_eq!(&arrivals[..2], [0, 1]);
    let turns = |flow: u16| arrivals[..160].iter().filter(|&&other| other == flow).count();
    assert_eq!((turns(0), turns(1)), (10, 150));
}

#[test]
fn drr_shares_between_flows_or_hosts() {
    // Host 1 sends nine flows to host 3, host 2 one to host 4.
    let shares = |isolation| {
        let mut link = link(drr(1500, isolation), Queue::Unlimited);
        for number in 0..400 {
            for port in 0..10 {
                let flow = || if port < 9 { flow(1, 3, port) } else { flow(2, 4, port) };
                let packet = (port, number);
                link.enqueue_classed(at(0), packet, 1000, Ecn::NotCapable, 0, flow).unwrap();
            }
        }
        let arrivals = arrivals(&mut link, at(400 * MS));
        assert_eq!(arrivals.len(), 400);
        arrivals.iter().filter(|(_, packet)| packet.0 == 9).count()
    };
    assert!(shares(Isolation::Flows).abs_diff(40) <= 1);
    assert!(shares(Isolation::SourceHost).abs_diff(200) <= 2);
    assert!(shares(Isolation::DestinationHost).abs_diff(200) <= 2);
}

#[test]
fn drr_drops_the_last_packet_of_the_longest_queue() {
    for (queue, taken) in [(Queue::Packets(10), 10), (Queue::Bytes(10_000), 10)] {
        let mut link = link(drr(1500, Isolation::Flows), queue);
        for number in 0..12 {
            assert_eq!(offer(&mut link, at(0), (0, number), 1000), number < taken);
        }
        // Another flow has its share of the queue at the cost of the first.
        for number in 0..4 {
            assert!(offer(&mut link, at(0), (1, number), 1000));
        }
        assert_eq!(dropped(&mut link, at(0)), [(0, 9), (0, 8), (0, 7), (0, 6)]);
        // The first flow now has five in the queue and one in transmission, the second four.
        assert!(!offer(&mut link, at(0), (0, 12), 1000));
        assert!(offer(&mut link, at(0), (1, 4), 500));
        assert!(!offer(&mut link, at(0), (1, 5), 1000));
        let Statistics { packets, dropped, discarded, .. } = link.statistics();
        assert_eq!((packets, dropped, discarded), (15, 4, 5));
    }
}

#[test]
fn drr_drops_an_arriving_packet_unless_another_queue_is_longer_than_its_own_would_be() {
    let mut link = link(drr(1500, Isolation::Flows), Queue::Packets(5));
    for packet in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)] {
        assert!(offer(&mut link, at(0), packet, 1000));
    }
    // One packet is in transmission, and each flow has two.
    assert!(!offer(&mut link, at(0), (1, 2), 1000));
    assert!(!offer(&mut link, at(0), (2, 0), 2000));
    assert!(offer(&mut link, at(0), (2, 0), 1999));
}

#[test]
fn a_class_of_drr_that_lost_all_its_packets_starts_anew() {
    let mut link = link(drr(1500, Isolation::Flows), Queue::Bytes(2000));
    assert!(offer(&mut link, at(0), (0, 0), 600));
    assert!(offer(&mut link, at(0), (1, 0), 1400));
    assert!(offer(&mut link, at(0), (2, 0), 600));
    assert_eq!(dropped(&mut link, at(0)), [(1, 0)]);
    assert!(offer(&mut link, at(0), (1, 1), 100));
    let order: Vec<_> =
        arrivals(&mut link, at(10 * MS)).into_iter().map(|(_, packet)| packet).collect();
    assert_eq!(order, [(0, 0), (2, 0), (1, 1)]);
}

#[test]
fn with_fq_codel_a_queue_that_empties_and_fills_again_starves_no_other() {
    // Flow 4 sends its next packet when the last one has arrived, flows 0 to 3 have all theirs ready.
    let mut link = link(fq_codel(HostIsolation::Flows), Queue::Unlimited);
    for number in 0..400 {
        for flow in 0..4 {
            offer(&mut link, at(0), (flow, number), 1000);
        }
    }
    offer(&mut link, at(0), (4, 0), 1000);
    let mut counts = [0; 5];
    while counts[0] < 200 {
        let now = link.next_event();
        for (_, (flow, number)) in arrivals(&mut link, now) {
            counts[usize::from(flow)] += 1;
            if flow == 4 {
                offer(&mut link, now, (4, number + 1), 1000);
            }
        }
    }
    assert!((100..=205).contains(&counts[4]), "{counts:?}");
}

#[test]
fn fq_codel_drops_half_of_the_longest_queue_at_its_head() {
    // One packet is in transmission.
    for (queued, batch) in [(10u32, 5), (200, 64)] {
        let mut link = link(fq_codel(HostIsolation::Flows), Queue::Packets(queued + 1));
        for number in 0..=queued {
            assert!(offer(&mut link, at(0), (0, number), 1000));
        }
        assert!(offer(&mut link, at(0), (1, 0), 1500));
        let found = dropped(&mut link, at(0));
        assert_eq!(found, (1..=batch).map(|number| (0, number)).collect::<Vec<_>>());
        assert_eq!(link.statistics().discarded, u64::from(batch));
        assert_eq!(link.queued_packets(at(0)), (queued + 2 - batch) as usize);
    }
}

#[test]
fn a_byte_limit_of_fq_codel_drops_as_much_as_it_takes() {
    let mut link = link(fq_codel(HostIsolation::Flows), Queue::Bytes(3000));
    for (packet, len) in [((0, 0), 1000), ((0, 1), 100), ((0, 2), 1000), ((1, 0), 1500)] {
        assert!(offer(&mut link, at(0), packet, len));
    }
    // 3600 bytes: the queue of 1500 bytes is the longest, and has one packet.
    assert_eq!(dropped(&mut link, at(0)), [(1, 0)]);
    assert!(offer(&mut link, at(0), (2, 0), 4000));
    assert_eq!(dropped(&mut link, at(0)), [(2, 0)]);
}

#[test]
fn fq_codel_keeps_a_sparse_flow_free_of_drops_and_marks_or_drops_the_others() {
    for (ecn, marks) in [(Ecn::Capable, true), (Ecn::NotCapable, false)] {
        let mut link = link(Discipline::FqCoDel(FqCoDel::default()), FqCoDel::LIMIT);
        let mut lost = Vec::new();
        // 1000 bytes every 900 microseconds, and 200 bytes every 50 milliseconds.
        for number in 0..5000u32 {
            let now = at(u64::from(number) * 900_000);
            lost.extend(dropped(&mut link, now));
            let _ = link.enqueue_classed(now, (0, number), 1000, ecn, 0, || flow(1, 2, 0));
            if number % 55 == 0 {
                assert!(offer(&mut link, now, (1, number), 200));
            }
        }
        assert_eq!((link.statistics().marked > 0, !lost.is_empty()), (marks, !marks));
        assert!(lost.iter().all(|packet| packet.0 == 0), "{lost:?}");
    }
}

#[test]
fn fq_codel_shares_between_hosts_before_flows() {
    // Host 1 sends nine flows to host 3, host 2 one to host 4.
    let shares = |isolation, [from, to]: [u8; 2]| {
        let mut link = link(fq_codel(isolation), Queue::Unlimited);
        for number in 0..400 {
            for port in 0..10 {
                let flow = || if port < 9 { flow(1, 3, port) } else { flow(from, to, port) };
                let packet = (port, number);
                link.enqueue_classed(at(0), packet, 1000, Ecn::NotCapable, 0, flow).unwrap();
            }
        }
        let arrivals = arrivals(&mut link, at(400 * MS));
        arrivals.iter().filter(|(_, packet)| packet.0 == 9).count() as u32
    };
    let near = |found: u32, expected: u32| assert!(found.abs_diff(expected) <= 8, "{found}");
    near(shares(HostIsolation::Flows, [2, 4]), 40);
    near(shares(HostIsolation::DualSourceHost, [2, 4]), 200);
    near(shares(HostIsolation::DualSourceHost, [1, 4]), 40);
    near(shares(HostIsolation::DualDestinationHost, [1, 4]), 200);
    near(shares(HostIsolation::DualDestinationHost, [2, 3]), 40);
    near(shares(HostIsolation::Triple, [2, 4]), 200);
    near(shares(HostIsolation::Triple, [2, 3]), 40);
}

#[test]
fn a_flow_without_packets_takes_nothing_from_its_host() {
    // Nine flows of host 1 come and go; then it has one flow, as host 2.
    let mut link = link(fq_codel(HostIsolation::DualSourceHost), Queue::Unlimited);
    for port in 0..9 {
        let flow = || flow(1, 3, port);
        link.enqueue_classed(at(0), (port, 0), 1000, Ecn::NotCapable, 0, flow).unwrap();
    }
    let later = at(20 * MS);
    assert_eq!(arrivals(&mut link, later).len(), 9);
    for number in 0..400 {
        for (from, port) in [(1, 10), (2, 11)] {
            let flow = || flow(from, 3, port);
            link.enqueue_classed(later, (port, number), 1000, Ecn::NotCapable, 0, flow).unwrap();
        }
    }
    let arrivals = arrivals(&mut link, later + Duration::from_millis(400));
    let first = arrivals.iter().filter(|(_, packet)| packet.0 == 10).count();
    assert!(first.abs_diff(200) <= 3, "{first}");
}
