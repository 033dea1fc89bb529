//! A run: builds the network, runs the flows, collects the results.

use crate::network::Network;
use crate::report::Outcome;
use crate::state::{Entry, RunState};
use crate::{Error, hosts, links};
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
    let mut network = Network::build(scenario, label)?;
    let (hosts, nodes, kernel) = hosts::make(scenario, seed);
    let waiting = kernel.prepare(scenario, &network)?;
    let clock = Clock::start();
    let copies = Copies::default();
    let reach = links::Hosts::default();
    let state = Arc::new(RunState::new(scenario, clock));
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
    while result.is_ok() && !state.is_over() {
        if cancelled.load(Ordering::Relaxed) {
            result = Err(Error::Cancelled);
        } else if let Err(error) = check(&emulator, &stacks) {
            result = Err(error);
        } else if clock.now().since(collected) >= COLLECTED {
            collected = clock.now();
            result = collect(&state, &stacks, &mut ledger);
        }
        std::thread::sleep(SLICE);
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
    let health = links::health(scenario, &report);
    for accounts in accounts {
        ledger.enter_all(accounts?);
    }
    read(&state, &mut ledger)?;
    let (links, totals) = links::statistics(scenario, &report);
    let rows = ledger.rows();
    let events = health.packets;
    let run = lab::Outcome {
        rows,
        totals,
        links,
        queue_delays_s: Vec::new(),
        box_drops: links::box_drops(scenario, &report),
        events,
        paths: None,
        digest: None,
        series: None,
    };
    Ok(Outcome { run, health })
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
