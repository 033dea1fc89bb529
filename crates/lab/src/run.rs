//! One run: a scenario and a seed.

use crate::account::Pairing;
use crate::capture;
use crate::deliveries::Deliveries;
use crate::failure::RunError;
use crate::ledger::{Accounts, Ledger};
use crate::log::{Owners, owners};
use crate::outcome::{self, Outcome};
use crate::watch::Watch;
use crate::world::{self, Built};
use base::{Duration, Time};
use middlebox::fec::SideChannel;
use scenario::{Flow, Latency, Scenario};
use sim::TraceTarget;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs a scenario under a seed to its end, unless `cancelled` becomes true.
///
/// # Errors
/// If it was cancelled, if packets cannot be captured, or if a check inside of it failed.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    watch: &Watch,
    cancelled: &AtomicBool,
) -> Result<Outcome, RunError> {
    let watch = &Watch { latency: watch.latency.max(scenario.latency), ..watch.clone() };
    let mut built = world::build(scenario, seed);
    if watch.series {
        // Only flows of one connection have a series.
        let one = |flow: &&Flow| flow.traffic.is_one_connection();
        for flow in scenario.flows.iter().filter(one) {
            built.world.trace(&[TraceTarget::Flows(built.nodes[flow.from])]);
        }
        for &(forward, backward) in &built.links {
            built.world.trace(&[TraceTarget::Queue(forward), TraceTarget::Queue(backward)]);
        }
        let boxes: Vec<_> = built.nodes.iter().map(|&node| TraceTarget::Boxes(node)).collect();
        built.world.trace(&boxes);
    }
    if watch.log.is_some() {
        let nodes: Vec<_> = built.nodes.iter().map(|&node| TraceTarget::Events(node)).collect();
        built.world.trace(&nodes);
    }
    if watch.general_path {
        for &node in &built.nodes {
            let host = built.world.host_mut(node);
            host.set(host::Settings { fast_path: false, ..host.settings() });
        }
    }
    if watch.latency > Latency::Off {
        built.world.measure_latency();
    }
    if watch.digest {
        built.world.digest();
    }
    if watch.bytes {
        built.world.byte_mode();
        built.codings.iter().flatten().for_each(SideChannel::use_bytes);
    }
    if let Some(capture) = &watch.capture {
        capture::start(capture, scenario, seed, &mut built)?;
    }
    // In slices, to check for cancellation and for the end, and drop closed connections in between.
    let end = Time::ZERO + scenario.duration;
    let slice = (scenario.duration / 100).clamp(Duration::from_nanos(1), Duration::from_secs(1));
    let mut ledger = Ledger::new(scenario);
    let of_many: Vec<_> = built.nodes.iter().filter(|n| ledger.forgets(n.index())).collect();
    // The owners of dropped connections, for the log.
    let mut owned = watch.log.is_some().then(Owners::new);
    let mut deliveries = watch.series.then(|| Deliveries::new(scenario));
    let mut until = Time::ZERO;
    while until < end {
        if cancelled.load(Ordering::Relaxed) {
            return Err(RunError::Cancelled);
        }
        until = (until + slice).min(end);
        built.world.run_until(until);
        if let Some(deliveries) = &mut deliveries {
            deliveries.sample(until, &built);
        }
        for &&node in &of_many {
            if let Some(all) = &mut owned {
                all.extend(owners(&built.world, &[node]));
            }
            let host = built.world.host_mut(node);
            ledger.enter_all(Accounts::of_ended(scenario, Pairing::Stream, host));
        }
        if scenario.ends_with.is_some_and(|flow| has_completed(scenario, &built, flow)) {
            ledger.end_at(until);
            break;
        }
    }
    if let Some(capture) = &watch.capture {
        capture::finish(capture, &mut built)?;
    }
    for &node in &built.nodes {
        ledger.enter_all(Accounts::of(scenario, Pairing::Stream, built.world.host(node)));
    }
    if let Some(all) = &mut owned {
        all.extend(owners(&built.world, &built.nodes));
    }
    let mut outcome = outcome::of(scenario, seed, built, ledger, owned, watch)?;
    if let (Some(series), Some(deliveries)) = (&mut outcome.series, deliveries) {
        series.deliveries = deliveries.tables();
    }
    Ok(outcome)
}

/// Whether a single transfer is over at both ends.
fn has_completed(scenario: &Scenario, built: &Built, flow: usize) -> bool {
    let Flow { from, to, .. } = scenario.flows[flow];
    [from, to].into_iter().all(|node| {
        let host = built.world.host(built.nodes[node]);
        Accounts::of(scenario, Pairing::Stream, host).has_completed(flow)
    })
}
