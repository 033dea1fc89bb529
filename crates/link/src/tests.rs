use super::*;
use base::{Duration, Rate};
use proptest::prelude::*;

mod down;
mod fair;
mod kinds;

const MS: u64 = 1_000_000;

fn link(queue: Queue, errors: Uniform) -> Link<u32> {
    let config = Config {
        rate: Rate::from_bps(8_000_000), // A byte a microsecond.
        delay: Duration::from_millis(10),
        queue,
        errors: errors.into(),
        ..Config::default()
    };
    Link::new(&config, Seed(1), "test")
}

/// The next packet to arrive, when it does.
fn arrive(link: &mut Link<u32>) -> Option<Arrival<u32>> {
    let next = link.next_event();
    link.wake(next).map(|output| match output {
        Output::Arrived(arrival) | Output::Copied(arrival) => arrival,
        Output::Dropped(packet) | Output::Cut(packet) => panic!("{packet} was dropped"),
    })
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

#[test]
fn a_packet_arrives_after_transmission_and_propagation() {
    let mut link = link(Queue::Unlimited, Uniform::default());
    link.enqueue(at(0), 1, 1000, Ecn::NotCapable).unwrap();
    link.enqueue(at(0), 2, 1000, Ecn::NotCapable).unwrap();
    assert_eq!(link.next_event(), at(11 * MS));
    assert_eq!(arrive(&mut link).map(|a| a.packet), Some(1));
    assert_eq!(link.next_event(), at(12 * MS));
    assert_eq!(arrive(&mut link).map(|a| a.packet), Some(2));
    assert_eq!(link.next_event(), Time::NEVER);
}

#[test]
fn drop_tail_counts_the_packet_in_transmission() {
    let mut link = link(Queue::Packets(2), Uniform::default());
    assert_eq!(link.enqueue(at(0), 1, 1000, Ecn::NotCapable), Ok(Some(at(11 * MS))));
    assert_eq!(link.enqueue(at(0), 2, 1000, Ecn::NotCapable), Ok(None));
    assert_eq!(link.enqueue(at(0), 3, 1000, Ecn::NotCapable), Err(3));
    assert_eq!(link.enqueue(at(MS - 1), 4, 1000, Ecn::NotCapable), Err(4));
    assert_eq!(link.enqueue(at(MS), 5, 1000, Ecn::NotCapable), Ok(None), "the first has left");
    assert_eq!(link.statistics().dropped, 2);
}

#[test]
fn a_byte_limit_admits_what_fits_exactly() {
    let mut link = link(Queue::Bytes(1500), Uniform::default());
    assert_eq!(link.enqueue(at(0), 1, 1000, Ecn::NotCapable), Ok(Some(at(11 * MS))));
    assert_eq!(link.enqueue(at(0), 2, 501, Ecn::NotCapable), Err(2));
    assert_eq!(link.enqueue(at(0), 3, 500, Ecn::NotCapable), Ok(None));
    assert_eq!(link.queued_packets(at(MS)), 1);
}

#[test]
fn packets_are_corrupted_as_often_as_their_bits_demand() {
    let mut link = link(Queue::Unlimited, Uniform { bit: 1.56e-5, packet: 0.0 });
    let n = 200_000;
    for i in 0..n {
        link.enqueue(at(0), i, 576, Ecn::NotCapable).unwrap();
    }
    // 1 - (1 - 1.56e-5)^4608 = 6.937 %; the standard error is 0.057 %.
    let share = link.statistics().corrupted as f64 / f64::from(n);
    assert!((share - 0.06937).abs() < 0.0025, "{share}");
    assert_eq!(link.statistics().lost, 0);
}

#[test]
fn lost_packets_take_their_time_on_the_link_all_the_same() {
    let mut link = link(Queue::Unlimited, Uniform { bit: 0.0, packet: 1.0 });
    link.enqueue(at(0), 1, 1000, Ecn::NotCapable).unwrap();
    assert_eq!(arrive(&mut link).map(|a| a.fate), Some(Fate::Lost));
}

#[test]
fn corrupted_packets_arrive_and_say_so() {
    let mut link = link(Queue::Unlimited, Uniform { bit: 1.0, packet: 0.0 });
    link.enqueue(at(0), 1, 1000, Ecn::NotCapable).unwrap();
    assert_eq!(arrive(&mut link).map(|a| a.fate), Some(Fate::Corrupted));
}

proptest! {
    #[test]
    fn drop_tail_takes_a_packet_as_long_as_fewer_than_its_limit_wait(
        limit in 1u32..6,
        packets in prop::collection::vec((0u64..3 * MS, prop::sample::select(&[500u32, 1000][..])), 1..60),
    ) {
        let mut link = link(Queue::Packets(limit), Uniform::default());
        let (mut now, mut free_at, mut departures) = (0, 0, Vec::new());
        for (gap, len) in packets {
            now += gap;
            let waiting = departures.iter().filter(|&&departs| departs > now).count();
            let taken = link.enqueue(at(now), 0, len, Ecn::NotCapable).is_ok();
            prop_assert_eq!(taken, waiting < limit as usize);
            if taken {
                free_at = now.max(free_at) + u64::from(len) * 1000;
                departures.push(free_at);
            }
            while link.next_event() <= at(now) {
                arrive(&mut link);
            }
        }
    }
}
