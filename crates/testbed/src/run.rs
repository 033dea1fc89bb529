//! A run: everything is made, begins, ends, and is gone.

use crate::network::Network;
use crate::play::{Entry, Play};
use crate::report::Outcome;
use crate::{Error, hosts, kernel, links};
use lab::{Ledger, Scenario};
use live::Clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runs of one process come one after the other: each wants the machine for itself.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// How often somebody looks whether the run is still wanted.
const SLICE: Duration = Duration::from_millis(20);

/// How often connections that are over are entered, of which there may be many: their ports will be
/// those of others.
const COLLECTED: base::Duration = base::Duration::from_secs(1);

pub(crate) fn run(
    scenario: &Scenario,
    seed: u64,
    cancelled: &AtomicBool,
) -> Result<Outcome, Error> {
    crate::rights::check()?;
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut network = Network::build(scenario)?;
    let waiting = kernel::prepare(scenario, &network)?;
    let hosts = hosts::make(scenario, seed);
    let clock = Clock::start();
    let play = Arc::new(Play::new(scenario, seed, clock));
    let emulator = links::start(scenario, seed, clock, &mut network)?;
    let stacks = hosts::start(hosts, clock, &mut network)?;
    let threads = waiting.into_iter().map(|end| end.start(&play, &network));
    let threads: Result<Vec<_>, Error> = threads.collect();
    let mut ledger = Ledger::new(scenario);
    let mut result = threads.as_ref().map(|_| ()).map_err(Clone::clone);
    let mut collected = clock.now();
    while result.is_ok() && !play.is_over() {
        if cancelled.load(Ordering::Relaxed) {
            result = Err(Error::Cancelled);
        } else if clock.now().since(collected) >= COLLECTED {
            collected = clock.now();
            result = collect(&play, &stacks, &mut ledger);
        }
        std::thread::sleep(SLICE);
    }
    play.stop.store(true, Ordering::Relaxed);
    let accounts: Vec<_> = stacks.into_iter().map(|stack| stack.stop(&play)).collect();
    for thread in threads.into_iter().flatten() {
        match thread.join() {
            Ok(joined) => joined?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let report = emulator.stop();
    result?;
    let health = links::health(scenario, &report);
    for accounts in accounts {
        ledger.enter_all(accounts?);
    }
    read(&play, &mut ledger)?;
    let (links, totals) = links::statistics(scenario, &report);
    let rows = ledger.rows();
    let events = health.packets;
    let run = lab::Outcome { rows, totals, links, events, paths: None, digest: None, series: None };
    Ok(Outcome { run, health })
}

/// Enters what is over.
fn collect(
    play: &Arc<Play>,
    stacks: &[hosts::Running],
    ledger: &mut Ledger<'_>,
) -> Result<(), Error> {
    for stack in stacks {
        if ledger.forgets(stack.node) {
            ledger.enter_all(stack.collect(play)?);
        }
    }
    read(play, ledger)
}

/// Enters what the kernel's ends have written down.
fn read(play: &Play, ledger: &mut Ledger<'_>) -> Result<(), Error> {
    for entry in play.entries() {
        match entry {
            Entry::Account(flow, account) => ledger.enter(flow, account),
            Entry::Datagrams(flow, delivery, bytes) => {
                ledger.enter_datagrams(flow, delivery, bytes);
            }
            Entry::Trouble(error) => return Err(error),
        }
    }
    Ok(())
}
