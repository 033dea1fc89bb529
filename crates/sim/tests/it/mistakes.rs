//! An oracle that reports drops as corruption: the source's reaction, the time of the notice, and
//! that nothing else changes.

use crate::common::*;
use base::{Duration, Seed};
use link::{Config, Queue};
use sim::TraceTarget;
use tcp::Event;
use tcp::mechanism::{Signal, Suppression};

/// A clean bottleneck at the second hop, with a short queue, and a sender that heeds notices.
fn congested() -> Path {
    let fast = Hop { rate: mbps(10), delay: Duration::from_millis(10), ..Hop::default() };
    let narrow = Hop { rate: mbps(1), queue: Queue::Packets(10), ..fast };
    let tcp = tcp::Config {
        mechanisms: eten(Suppression::All),
        receive_window: tcp::ReceiveWindow::fixed(100_000),
        ..plain()
    };
    Path { hops: vec![fast, narrow], tcp, size: Some(2_000_000), ..Path::default() }
}

/// The path with an oracle that errs with this probability.
fn erring(path: &Path, probability: f64) -> Lab {
    let mut lab = path.build();
    let (from, to) = (lab.sender().address(), lab.receiver().address());
    let random = Seed(path.seed).stream("mistakes");
    lab.world.add_mistakes(from, to, PORT, probability, random);
    lab
}

/// Reductions of the window, drops, and notices that were heeded.
fn outcome(mut lab: Lab) -> (u64, u64, u64) {
    lab.run_to_peace(10_000_000);
    assert_eq!(lab.received(), 2_000_000);
    let statistics = lab.statistics();
    let dropped = lab.world.link(lab.links[1].0).dropped;
    (statistics.reductions + statistics.timeouts, dropped, statistics.notices)
}

#[test]
fn who_takes_every_drop_for_corruption_never_slows_down() {
    let (reductions, dropped, notices) = outcome(erring(&congested(), 1.0));
    assert_eq!(reductions, 0);
    let honest = outcome(congested().build());
    assert!(honest.0 > 10 && honest.2 == 0, "{honest:?}");
    assert!(dropped > 10 * honest.1, "{dropped} and {honest:?}");
    assert_eq!(notices, dropped);
}

#[test]
fn the_probability_is_the_share_of_drops_that_are_taken_for_corruption() {
    let runs = (1..=8).map(|seed| outcome(erring(&Path { seed, ..congested() }, 0.3)));
    let (dropped, notices) = runs.fold((0, 0), |(dropped, notices), run| {
        assert!(run.0 > 0, "what is not mistaken is answered");
        (dropped + run.1, notices + run.2)
    });
    let share = notices as f64 / dropped as f64;
    assert!(dropped > 200 && (0.2..0.4).contains(&share), "{notices} of {dropped}");
}

#[test]
fn an_oracle_that_never_errs_changes_nothing() {
    let digest = |mut lab: Lab| {
        lab.world.digest();
        lab.world.run_until(secs(1000));
        lab.world.observations().1
    };
    let honest = digest(congested().build());
    assert_eq!(digest(erring(&congested(), 0.0)), honest);
    assert_ne!(digest(erring(&congested(), 0.5)), honest);
    // Nor does one of which nothing is dropped.
    let mut roomy = congested();
    roomy.hops[1].queue = Queue::Unlimited;
    assert_eq!(digest(erring(&roomy, 1.0)), digest(roomy.build()));
}

#[test]
fn the_source_is_notified_of_a_drop_when_the_packet_could_have_been_at_the_end_of_the_link() {
    // The queue is the sender's own: a drop happens as the segment is sent.
    let mut path = congested();
    path.hops.remove(0);
    let mut lab = erring(&path, 1.0);
    lab.world.trace(&[TraceTarget::Events(lab.sender())]);
    lab.world.run_until(secs(2));
    let events = lab.world.observations().0.events;
    let (notified, lost) = events
        .iter()
        .find_map(|(at, _, _, event)| match event {
            Event::Loss { start, signal: Signal::Notice, .. } => Some((*at, *start)),
            _ => None,
        })
        .expect("the queue overflows");
    let sent = events.iter().find_map(|(at, _, _, event)| match event {
        Event::Sent { start, .. } if *start == lost => Some(*at),
        _ => None,
    });
    // 1040 bytes at 1 Mb/s, and 10 ms.
    let passage = Duration::from_micros(8320) + Duration::from_millis(10);
    assert_eq!(sent.map(|sent| sent + passage), Some(notified));
}

#[test]
fn a_link_without_delay_or_room_does_not_keep_the_source_at_it_for_ever() {
    let link = |rate| Config { rate, queue: Queue::Packets(1), ..Config::default() };
    let path = Path { size: Some(50_000), ..congested() };
    for rate in [mbps(1), mbps(1000)] {
        let mut lab = path.build_over(vec![(link(rate), link(rate))], |_, _, _| {});
        let (from, to) = (lab.sender().address(), lab.receiver().address());
        lab.world.add_mistakes(from, to, PORT, 1.0, Seed(1).stream("mistakes"));
        lab.run_to_peace(1_000_000);
        assert_eq!(lab.received(), 50_000);
    }
}
