//! Long work on another thread, monitored from this one.

use core::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The state that long work and its watcher share.
#[derive(Debug, Default)]
pub struct Monitor {
    done: AtomicU64,
    cancelled: AtomicBool,
}

impl Monitor {
    /// The number of finished pieces.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Whether the work was cancelled.
    #[must_use]
    pub fn cancelled(&self) -> &AtomicBool {
        &self.cancelled
    }

    pub(crate) fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// The time between two calls of the watcher.
const INTERVAL: Duration = Duration::from_millis(50);

/// Does `work` on another thread, and meanwhile calls `look` on this one some twenty times a
/// second. If that breaks, [`Monitor::cancelled`] becomes true; the work is expected to end then.
///
/// The thread that starts long work is often the only one that can notice that a user wants to stop.
pub fn supervise<T: Send>(
    monitor: &Monitor,
    work: impl FnOnce() -> T + Send,
    mut look: impl FnMut(&Monitor) -> ControlFlow<()>,
) -> T {
    std::thread::scope(|scope| {
        let (working, wait) = channel::<()>();
        let worker = scope.spawn(move || {
            let _working = working;
            work()
        });
        while wait.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if look(monitor).is_break() {
                monitor.cancelled.store(true, Ordering::Relaxed);
            }
        }
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelled_work_is_signalled() {
        let monitor = Monitor::default();
        let rounds = supervise(
            &monitor,
            || {
                let mut rounds = 0u64;
                while !monitor.cancelled().load(Ordering::Relaxed) {
                    rounds += 1;
                    std::thread::yield_now();
                }
                rounds
            },
            |_| ControlFlow::Break(()),
        );
        assert!(rounds > 0);
    }

    #[test]
    fn what_the_work_says_comes_back() {
        assert_eq!(supervise(&Monitor::default(), || 7, |_| ControlFlow::Continue(())), 7);
    }
}
