//! Runs by many threads, finished out of order and handed over in order.

use crate::failure::{RunError, SweepError};
use crate::outcome::Outcome;
use crate::supervise::Monitor;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The largest number of finished runs that wait for an earlier one; then their threads wait, too.
const LONGEST: u64 = 1024;

/// The runs of a sweep, numbered.
pub(crate) struct OrderedRunner<'a, K> {
    /// The next run to begin.
    next: AtomicU64,
    /// The number after the last.
    end: u64,
    monitor: &'a Monitor,
    waiting: Mutex<Waiting<K>>,
    moved: Condvar,
}

struct Waiting<K> {
    /// All runs before it were handed over.
    next: u64,
    outcomes: BTreeMap<u64, Outcome>,
    keep: K,
    error: Option<SweepError>,
}

impl<'a, K: FnMut(u64, Outcome) -> Result<(), RunError>> OrderedRunner<'a, K> {
    /// The runs from `first` up to, but not including, `end`; `keep` gets them in order.
    pub(crate) fn new(first: u64, end: u64, keep: K, monitor: &'a Monitor) -> OrderedRunner<'a, K> {
        let waiting = Waiting { next: first, outcomes: BTreeMap::new(), keep, error: None };
        OrderedRunner {
            next: AtomicU64::new(first),
            end,
            monitor,
            waiting: Mutex::new(waiting),
            moved: Condvar::new(),
        }
    }

    /// The work of every thread: run after run, until none is left, or an error.
    pub(crate) fn work(&self, run: impl Fn(u64) -> Result<Outcome, SweepError>) {
        let _guard = Guard(self);
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

    /// Waits until a run may begin; false after an error.
    fn wait(&self, index: u64) -> bool {
        let too_far =
            |waiting: &mut Waiting<K>| waiting.error.is_none() && index >= waiting.next + LONGEST;
        let waiting = self.moved.wait_while(self.lock(), too_far);
        waiting.unwrap_or_else(PoisonError::into_inner).error.is_none()
    }

    /// Ends the work with an error. Runs that were cancelled because of it do not replace it.
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

/// Ends the work if a run panics.
struct Guard<'a, K: FnMut(u64, Outcome) -> Result<(), RunError>>(&'a OrderedRunner<'a, K>);

impl<K: FnMut(u64, Outcome) -> Result<(), RunError>> Drop for Guard<'_, K> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(&mut self.0.lock(), RunError::Cancelled.into());
            self.0.moved.notify_all();
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Totals;
    use std::sync::atomic::AtomicBool;

    fn outcome(events: u64) -> Result<Outcome, SweepError> {
        let totals = Totals::default();
        Ok(Outcome {
            rows: Vec::new(),
            totals,
            links: Vec::new(),
            box_drops: Vec::new(),
            box_counts: Vec::new(),
            events,
            paths: None,
            digest: None,
            series: None,
            queue_delays_s: Vec::new(),
            queue_delays: Vec::new(),
        })
    }

    /// The outcomes kept of this many runs by three threads, and the result.
    fn done(
        runs: u64,
        run: impl Fn(u64) -> Result<Outcome, SweepError> + Sync,
    ) -> (Vec<u64>, Result<(), SweepError>) {
        let monitor = Monitor::default();
        let mut kept = Vec::new();
        let keep = |_, outcome: Outcome| {
            kept.push(outcome.events);
            Ok(())
        };
        let runner = OrderedRunner::new(0, runs, keep, &monitor);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| runner.work(&run));
            }
        });
        let ended = runner.end();
        (kept, ended)
    }

    #[test]
    fn a_slow_run_lets_others_go_so_far_ahead_and_no_further() {
        let (others, slow_is_done) = (AtomicU64::new(0), AtomicBool::new(false));
        let (kept, ended) = done(3 * LONGEST, |index| {
            if index == 0 {
                while others.load(Ordering::SeqCst) < LONGEST - 1 {
                    std::thread::yield_now();
                }
                slow_is_done.store(true, Ordering::SeqCst);
            } else {
                assert!(index < LONGEST || slow_is_done.load(Ordering::SeqCst), "{index}");
                others.fetch_add(1, Ordering::SeqCst);
            }
            outcome(index)
        });
        assert!(ended.is_ok());
        assert!(kept.into_iter().eq(0..3 * LONGEST));
    }

    #[test]
    fn a_failure_is_returned_and_the_results_before_it_are_kept() {
        let failed = |seed| RunError::Unroutable { packets: 1, seed };
        let fails = AtomicBool::new(false);
        let (kept, ended) = done(1_000_000, |index| match index {
            500 => {
                fails.store(true, Ordering::SeqCst);
                Err(failed(500).into())
            }
            501.. => {
                while !fails.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                Err(RunError::Cancelled.into())
            }
            _ => outcome(index),
        });
        assert!(kept.len() <= 500 && kept.iter().copied().eq(0..kept.len() as u64));
        assert!(matches!(ended, Err(SweepError::Run(error)) if error == failed(500)));
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_run_that_panics_ends_the_others() {
        let _ =
            done(3 * LONGEST, |index| if index == 7 { panic!("a bug") } else { outcome(index) });
    }
}
