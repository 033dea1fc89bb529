//! One stream of events: the log of a run, and time series made from it.

use crate::common::*;
use base::Time;
use sim::{Series, TraceTarget};
use tcp::mechanism::Signal;
use tcp::{Event, State, Vitals};

/// Losses in both directions, a bottleneck, a few hundred segments.
fn bad() -> Path {
    let hop = Hop {
        rate: mbps(2),
        queue: link::Queue::Packets(15),
        forward: lossy(0.02),
        backward: lossy(0.02),
        ..Hop::default()
    };
    Path { size: Some(500_000), ..Path::over(hop) }
}

fn series(path: &Path, targets: impl Fn(&Lab) -> Vec<TraceTarget>) -> (Series, tcp::Statistics) {
    let mut lab = path.build();
    let targets = targets(&lab);
    lab.world.trace(&targets);
    lab.world.run_until(secs(1000));
    let statistics = lab.statistics();
    (lab.world.observations().0, statistics)
}

#[test]
fn a_log_has_a_connections_events_in_order() {
    let path = Path { size: Some(10 * MSS), ..Path::default() };
    let (series, _) = series(&path, |lab| vec![TraceTarget::Events(lab.sender())]);
    assert!(series.flows.is_empty());
    assert!(series.events.is_sorted_by_key(|(at, ..)| *at));
    let states = series.events.iter().filter_map(|(at, _, _, event)| match event {
        Event::State { to, .. } => Some((*at, *to)),
        _ => None,
    });
    let expected = [
        (millis(100), State::Established),
        (millis(100), State::FinWait1),
        (millis(500), State::FinWait2),
        (millis(500), State::TimeWait),
        (millis(60_500), State::Closed),
    ];
    assert_eq!(states.collect::<Vec<_>>(), expected);
}

#[test]
fn a_log_agrees_with_the_counts() {
    let (series, statistics) = series(&bad(), |lab| vec![TraceTarget::Events(lab.sender())]);
    let count = |is: fn(&Event) -> bool| {
        series.events.iter().filter(|(.., event)| is(event)).count() as u64
    };
    assert!(statistics.retransmissions > 5);
    let again = count(|event| matches!(event, Event::Sent { again: true, .. }));
    assert_eq!(again, statistics.retransmissions);
    assert_eq!(count(|event| matches!(event, Event::TimedOut { .. })), statistics.timeouts);
    let reduced =
        count(|event| matches!(event, Event::Reduced { signal, .. } if *signal != Signal::Rto));
    assert_eq!(reduced, statistics.reductions);
}

#[test]
fn a_time_series_is_the_vitals_of_the_log() {
    let (both, _) = series(&bad(), |lab| {
        vec![TraceTarget::Events(lab.sender()), TraceTarget::Flows(lab.sender())]
    });
    let vitals = both.events.iter().filter_map(|(at, _, _, event)| match event {
        Event::Vitals(vitals) => Some((*at, *vitals)),
        _ => None,
    });
    let samples = both.flows[0].2.iter().map(|sample| (sample.at, sample.vitals));
    assert!(samples.eq(vitals));
    let (alone, _) = series(&bad(), |lab| vec![TraceTarget::Flows(lab.sender())]);
    assert_eq!(alone.flows, both.flows);
    assert!(alone.events.is_empty());
}

#[test]
fn a_time_series_equals_continuous_observation() {
    let mut lab = bad().build();
    lab.trace();
    let mut seen: Vec<(Time, Vitals)> = Vec::new();
    while lab.world.next_event() < secs(1000) {
        let now = lab.world.next_event();
        lab.world.run_until(now);
        let vitals = lab.sending().vitals();
        if seen.last().is_none_or(|(_, last)| *last != vitals) {
            seen.push((now, vitals));
        }
    }
    // Of several samples at one instant only the last can be seen from outside.
    let samples = lab.samples();
    let next = samples.iter().skip(1).map(|sample| Some(sample.at)).chain([None]);
    let last: Vec<_> = samples
        .iter()
        .zip(next)
        .filter(|(sample, next)| *next != Some(sample.at))
        .map(|(sample, _)| (sample.at, sample.vitals))
        .collect();
    assert_eq!(last, seen);
}
