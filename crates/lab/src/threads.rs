//! The same work on several threads.

use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread::{Builder, available_parallelism, scope};

/// Calls `work`, which takes one of `pieces` after the other, on as many threads (0: one for each
/// processor), but on no more than there are pieces.
///
/// # Errors
/// If no thread can be started. Where some can, these do all of the work.
pub(crate) fn on_threads(threads: usize, pieces: u64, work: impl Fn() + Sync) -> io::Result<()> {
    let wanted = NonZero::new(threads).map_or_else(available_parallelism, Ok)?.get();
    let wanted = wanted.min(usize::try_from(pieces).unwrap_or(usize::MAX));
    scope(|scope| {
        let mut started = Vec::new();
        for _ in 0..wanted {
            match Builder::new().spawn_scoped(scope, &work) {
                Ok(thread) => started.push(thread),
                Err(error) if started.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        for thread in started {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn so_many_threads_work_at_the_same_time_but_none_without_a_piece() {
        for (threads, pieces, started) in [(3, 1000, 3), (1000, 2, 2), (2, 0, 0)] {
            let (barrier, calls) = (Barrier::new(started), AtomicU64::new(0));
            let work = || {
                barrier.wait();
                calls.fetch_add(1, Ordering::Relaxed);
            };
            on_threads(threads, pieces, work).unwrap();
            assert_eq!(calls.into_inner(), started as u64);
        }
    }

    #[test]
    #[should_panic(expected = "a bug")]
    fn a_panic_is_passed_on() {
        let _ = on_threads(2, 2, || panic!("a bug"));
    }
}
