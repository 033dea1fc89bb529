//! Links that go down, and links that change.

use super::*;
use base::Duration;

/// A byte a microsecond, 10 ms away.
fn link(when_down: WhenDown) -> Link<u32> {
    let rate = Rate::from_bps(8_000_000);
    let delay = Duration::from_millis(10);
    let config = Config { rate, delay, when_down: Some(when_down), ..Config::default() };
    Link::new(&config, Seed(1), "test")
}

/// All that happens until there is peace.
fn outputs(link: &mut Link<u32>) -> Vec<(u64, Output<u32>)> {
    let mut outputs = Vec::new();
    while link.next_event() != Time::NEVER {
        let now = link.next_event();
        outputs.extend(link.wake(now).map(|output| (now.as_nanos() / 1000, output)));
    }
    outputs
}

fn arrived(packet: u32) -> Output<u32> {
    Output::Arrived(Arrival { packet, fate: Fate::Intact })
}

/// A link that has one packet flying, one in transmission and one waiting goes down.
fn cut(when_down: WhenDown) -> Link<u32> {
    let mut link = link(when_down);
    for packet in 1..=3 {
        link.enqueue(at(0), packet, 1000, Ecn::NotCapable).unwrap();
    }
    link.set_up(at(MS + MS / 2), false);
    link
}

#[test]
fn a_pause_delays_what_is_queued_and_lets_arrive_what_is_flying() {
    let mut link = cut(WhenDown::KEEP);
    assert_eq!(link.enqueue(at(2 * MS), 4, 500, Ecn::NotCapable), Ok(Some(at(11 * MS))));
    assert_eq!(link.queued_packets(at(5 * MS)), 3, "nothing leaves");
    assert_eq!(link.next_event(), at(11 * MS));
    assert_eq!(link.wake(at(11 * MS)), Some(arrived(1)));
    assert_eq!(link.next_event(), Time::NEVER);
    link.set_up(at(20 * MS), true);
    // The packet that was in transmission is sent anew.
    let expected = [(31_000, arrived(2)), (32_000, arrived(3)), (32_500, arrived(4))];
    assert_eq!(outputs(&mut link), expected);
    assert_eq!(link.statistics().discarded, 0);
}

#[test]
fn a_cut_loses_everything_at_once() {
    let mut link = cut(WhenDown::DROP);
    assert_eq!(link.enqueue(at(2 * MS), 4, 500, Ecn::NotCapable), Err(4));
    let expected = [2, 3, 1].map(|packet| (1_500, Output::Cut(packet)));
    assert_eq!(outputs(&mut link), expected);
    assert_eq!(link.queued_packets(at(3 * MS)), 0);
    let statistics = link.statistics();
    assert_eq!((statistics.packets, statistics.discarded, statistics.dropped), (3, 3, 1));
    link.set_up(at(20 * MS), true);
    link.enqueue(at(20 * MS), 5, 1000, Ecn::NotCapable).unwrap();
    assert_eq!(outputs(&mut link), [(31_000, arrived(5))]);
}

#[test]
fn queued_and_flying_packets_have_policies_of_their_own() {
    let mut link = cut(WhenDown { keep_queued: true, keep_flying: false, accept: false });
    assert_eq!(link.enqueue(at(2 * MS), 4, 500, Ecn::NotCapable), Err(4));
    assert_eq!(outputs(&mut link), [(1_500, Output::Cut(1))]);
    link.set_up(at(20 * MS), true);
    assert_eq!(outputs(&mut link), [(31_000, arrived(2)), (32_000, arrived(3))]);
}

fn varying(steps: &[(u64, Option<u64>, Option<u64>)]) -> Link<u32> {
    let steps = steps.iter().map(|&(millis, rate, delay)| {
        let rate = rate.and_then(Rate::from_bps);
        let delay = delay.map(Duration::from_millis);
        (Duration::from_millis(millis), Variation { rate, delay })
    });
    let variations = Intervals::steps(steps, None).unwrap();
    let rate = Rate::from_bps(8_000_000);
    let delay = Duration::from_millis(10);
    let config = Config { rate, delay, variations, ..Config::default() };
    Link::new(&config, Seed(1), "test")
}

#[test]
fn a_change_of_rate_holds_for_what_is_still_ahead() {
    // From 1.5 ms on a quarter of the rate, from 5.5 ms on the rate of before.
    let mut link = varying(&[(1, None, None), (5, Some(2_000_000), None), (9, None, None)]);
    for packet in 1..=3 {
        link.enqueue(at(4 * MS + MS / 2), packet, 1000, Ecn::NotCapable).unwrap();
    }
    // Half of the first packet at the full rate, half at a quarter: 0.5 + 2 ms. Of the second,
    // 2 ms at a quarter are a half; the other takes 0.5 ms.
    let expected = [(17_000, arrived(1)), (19_500, arrived(2)), (20_500, arrived(3))];
    assert_eq!(outputs(&mut link), expected);
}

#[test]
fn a_shorter_delay_lets_no_packet_overtake() {
    let mut link = varying(&[(2, None, Some(3))]);
    for packet in 1..=3 {
        link.enqueue(at(MS / 2), packet, 1000, Ecn::NotCapable).unwrap();
    }
    // The first left at 1.5 ms; the others, at 2.5 and 3.5 ms, would be there before it.
    let expected = [1, 2, 3].map(|packet| (11_500, arrived(packet)));
    assert_eq!(outputs(&mut link), expected);
}

#[test]
fn an_idle_link_wakes_for_a_change_and_is_what_it_is_then() {
    let mut link = varying(&[(2, Some(16_000_000), Some(1))]);
    assert_eq!(link.next_event(), at(2 * MS));
    assert_eq!(link.wake(at(2 * MS)), None);
    link.enqueue(at(3 * MS), 1, 1000, Ecn::NotCapable).unwrap();
    assert_eq!(outputs(&mut link), [(4_500, arrived(1))]);
}
