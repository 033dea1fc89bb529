//! A run: builds the network, runs the flows, collects the results.

use crate::addresses::Purpose;
use crate::network::Network;
use crate::report::Outcome;
use crate::state::{Entry, RunState};
use crate::{Error, hosts, links};
use base::Time;
use lab::Ledger;
use live::{Clock, Copies, rights};
use scenario::Scenario;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runs without a label are sequential: each needs the machine for itself.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The time between two checks whether the run was cancelled.
const SLICE: Duration = Duration::from_millis(20);

/// The time between two collections of closed connections, before their ports are reused.
const COLLECTED: base::Duration = base::Duration::from_secs(1);

/// Whether all flows of a run have completed, so that it need not go on.
///
/// The lab simulates the whole duration, but of flows that have completed a row depends on nothing
/// later: its durations end with them.
struct Completion {
    /// The run takes the whole duration: attackers never complete.
    never: bool,
    /// How long there must have been nothing to do: packets may still be on their way.
    patience: base::Duration,
    /// When it was checked last.
    checked: Time,
    /// Since when there has been nothing to do.
    since: Option<Time>,
}

impl Completion {
    /// The time between two checks, each of which interrupts the hosts.
    const INTERVAL: base::Duration = base::Duration::from_millis(100);

    fn new(scenario: &Scenario) -> Completion {
        let delays = scenario.links.iter().map(|link| link.forward.delay + link.backward.delay);
        Completion {
            never: !scenario.attacks.is_empty(),
            patience: delays.fold(base::Duration::from_secs(1), |sum, delay| sum + delay),
            checked: Time::ZERO,
            since: None,
        }
    }

    /// Whether the run can end.
    fn check(&mut self, state: &RunState, stacks: &[hosts::Running]) -> Result<bool, Error> {
        let now = state.clock.now();
        if self.never || now.since(self.checked) < Completion::INTERVAL {
            return Ok(false);
        }
        self.checked = now;
        let mut finished = state.kernels_are_finished();
        for stack in stacks {
            finished = finished && stack.is_finished()?;
        }
        self.since = finished.then(|| self.since.unwrap_or(now));
        Ok(self.since.is_some_and(|since| now.since(since) >= self.patience))
    }
}

pub(crate) fn run(
    scenario: &Scenario,
    seed: u64,
    cancelled: &AtomicBool,
) -> Result<Outcome, Error> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    run_beside(scenario, seed, None, cancelled)
}

pub(crate) fn run_beside(
    scenario: &Scenario,
    seed: u64,
    label: Option<&str>,
    cancelled: &AtomicBool,
) -> Result<Outcome, Error> {
    check_rights()?;
    let mut network = Network::build(scenario, label, Purpose::Flows)?;
    let hosts::Made { hosts, nodes, bytes, kernel } = hosts::make(scenario, seed, Purpose::Flows);
    let waiting = kernel.prepare(scenario, &network)?;
    let clock = Clock::start();
    let copies = Copies::default();
    let reach = links::Hosts::default();
    let state = Arc::new(RunState::new(scenario, clock));
    let link_sockets = links::LinkSockets::new();
    let nodes = links::Nodes { nodes, bytes, link_sockets: &link_sockets, default_gateway: None };
    let emulator =
        links::start(scenario, seed, clock, &mut network, nodes, &copies, reach.clone())?;
    let stacks = hosts::start(hosts, clock, &mut network, scenario, &copies)?;
    // It is set here alone.
    let _ = reach.set(stacks.iter().map(|stack| (stack.node, stack.indications())).collect());
    let threads = waiting.into_iter().map(|end| end.start(&state, &network));
    let threads: Result<Vec<_>, Error> = threads.collect();
    let mut ledger = Ledger::new(scenario);
    let mut result = threads.as_ref().map(|_| ()).map_err(Clone::clone);
    let mut collected = clock.now();
    let mut completion = Completion::new(scenario);
    while result.is_ok() && !state.is_over() {
        if cancelled.load(Ordering::Relaxed) {
            result = Err(Error::Cancelled);
        } else if let Err(error) = check(&emulator, &stacks) {
            result = Err(error);
        } else if clock.now().since(collected) >= COLLECTED {
            collected = clock.now();
            result = collect(&state, &stacks, &mut ledger);
        }
        match completion.check(&state, &stacks) {
            Ok(true) => break,
            Ok(false) => std::thread::sleep(SLICE),
            Err(error) => result = Err(error),
        }
    }
    state.stop.store(true, Ordering::Relaxed);
    let accounts: Vec<_> = stacks.into_iter().map(|stack| stack.stop(&state)).collect();
    for thread in threads.into_iter().flatten() {
        match thread.join() {
            Ok(joined) => joined?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let report = emulator.stop();
    result?;
    let report = report?;
    for accounts in accounts {
        ledger.enter_all(accounts?);
    }
    read(&state, &mut ledger)?;
    Ok(outcome(scenario, &report, ledger.rows(true)))
}

/// The outcome of a run with these rows.
pub(crate) fn outcome(
    scenario: &Scenario,
    report: &live::emulator::Report,
    rows: Vec<lab::Row>,
) -> Outcome {
    let health = links::health(scenario, report);
    let (links, totals) = links::statistics(scenario, report);
    let queue_delays = links::queue_delays(report);
    let run = lab::Outcome {
        rows,
        totals,
        links,
        queue_delays_s: queue_delays.iter().map(lab::Tail::of).collect(),
        queue_delays,
        box_drops: links::box_drops(scenario, report),
        box_counts: links::box_counts(scenario, report),
        events: health.packets,
        paths: None,
        digest: None,
        series: None,
    };
    Outcome { run, health }
}

/// Checks that the process may create namespaces and devices.
pub(crate) fn check_rights() -> Result<(), Error> {
    let missing = rights::missing(&[rights::NET_ADMIN, rights::SYS_ADMIN]);
    if missing.is_empty() { Ok(()) } else { Err(Error::Forbidden(missing.join(", "))) }
}

/// Checks that no device was removed.
fn check(emulator: &live::emulator::Running, stacks: &[hosts::Running]) -> Result<(), Error> {
    emulator.check()?;
    stacks.iter().try_for_each(hosts::Running::check)
}

/// Enters the closed connections of flows of many.
fn collect(
    state: &Arc<RunState>,
    stacks: &[hosts::Running],
    ledger: &mut Ledger<'_>,
) -> Result<(), Error> {
    for stack in stacks {
        if ledger.forgets(stack.node) {
            ledger.enter_all(stack.collect(state)?);
        }
    }
    read(state, ledger)
}

/// Enters the entries of the kernel's ends.
fn read(state: &RunState, ledger: &mut Ledger<'_>) -> Result<(), Error> {
    for entry in state.entries() {
        match entry {
            Entry::Account(flow, account) => ledger.enter(flow, account),
            Entry::Datagrams(flow, delivery, bytes) => {
                ledger.enter_datagrams(flow, delivery, bytes);
            }
            Entry::Error(error) => return Err(error),
        }
    }
    Ok(())
}
