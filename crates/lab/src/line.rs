//! Work that many hands do out of order, and that is handed over in order.

use crate::failure::RunError;
use crate::outcome::Outcome;
use crate::supervise::Monitor;
use crate::sweep::SweepError;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Runs that are finished before an earlier one wait for it, this many at most: then their threads
/// wait, too.
const LONGEST: u64 = 1024;

/// The runs of a sweep, numbered.
pub(crate) struct Line<'a, K> {
    /// The next that nobody has begun.
    next: AtomicU64,
    /// The number after the last.
    end: u64,
    monitor: &'a Monitor,
    waiting: Mutex<Waiting<K>>,
    moved: Condvar,
}

struct Waiting<K> {
    /// All before it were handed over.
    next: u64,
    outcomes: BTreeMap<u64, Outcome>,
    keep: K,
    error: Option<SweepError>,
}

impl<'a, K: FnMut(u64, Outcome) -> Result<(), RunError>> Line<'a, K> {
    /// The runs from `first` up to, but not including, `end`; `keep` gets them in order.
    pub(crate) fn new(first: u64, end: u64, keep: K, monitor: &'a Monitor) -> Line<'a, K> {
        let waiting = Waiting { next: first, outcomes: BTreeMap::new(), keep, error: None };
        Line {
            next: AtomicU64::new(first),
            end,
            monitor,
            waiting: Mutex::new(waiting),
            moved: Condvar::new(),
        }
    }

    /// What every thread does: run after run, until there is no more, or an error.
    pub(crate) fn work(&self, run: impl Fn(u64) -> Result<Outcome, SweepError>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.end || !self.wait(index) {
                return;
            }
            let outcome = run(index);
            let mut waiting = self.lock();
            match outcome {
                Ok(outcome) => {
                    self.monitor.advance();
                    waiting.outcomes.insert(index, outcome);
                    waiting.hand_over().unwrap_or_else(|error| self.fail(&mut waiting, error));
                }
                Err(error) => self.fail(&mut waiting, error),
            }
            self.moved.notify_all();
        }
    }

    /// Nothing, or the error that ended the work.
    pub(crate) fn end(self) -> Result<(), SweepError> {
        let waiting = self.waiting.into_inner().unwrap_or_else(PoisonError::into_inner);
        waiting.error.map_or(Ok(()), Err)
    }

    /// Waits until a run may be begun; false if none is wanted any more.
    fn wait(&self, index: u64) -> bool {
        let too_far =
            |waiting: &mut Waiting<K>| waiting.error.is_none() && index >= waiting.next + LONGEST;
        let waiting = self.moved.wait_while(self.lock(), too_far);
        waiting.unwrap_or_else(PoisonError::into_inner).error.is_none()
    }

    /// Ends the work. That others were cancelled for it is no news.
    fn fail(&self, waiting: &mut Waiting<K>, error: SweepError) {
        let cancelled = |error: &SweepError| matches!(error, SweepError::Run(RunError::Cancelled));
        if waiting.error.as_ref().is_none_or(cancelled) {
            waiting.error = Some(error);
        }
        self.monitor.cancelled().store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<K>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: FnMut(u64, Outcome) -> Result<(), RunError>> Waiting<K> {
    fn hand_over(&mut self) -> Result<(), SweepError> {
        while let Some(outcome) = self.outcomes.remove(&self.next) {
            (self.keep)(self.next, outcome)?;
            self.next += 1;
        }
        Ok(())
    }
}
