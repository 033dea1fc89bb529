//! Many transfers from sockets, each over a connection of its own.

use super::Stage;
use base::{Random, Seed, Time};
use host::{Arrivals, Sizes};
use lab::{Errand, Sending, Workload};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;

impl Stage<'_> {
    /// Opens connections when the workload says so, with the lab's times and sizes.
    pub(super) fn send_many(&self, Workload { arrivals, sizes, count }: Workload) {
        let seed = Seed(self.play.seed);
        let stream = |part: &str| seed.stream(&format!("flow.{}.{part}", self.flow.name));
        let draws = Mutex::new(Draws { random: stream("sizes"), sizes, left: count });
        let active = AtomicUsize::new(0);
        let (draws, active) = (&draws, &active);
        std::thread::scope(|scope| match arrivals {
            Arrivals::Poisson { interval } => {
                let (mut random, mut next) = (stream("arrivals"), self.flow.start);
                loop {
                    next += random.exponential_span(interval);
                    let Some(errand) = self.errand(draws, next) else { return };
                    let work = move || self.send(errand, Sending::Eager);
                    if self.play.sleep_until(next).is_err()
                        || self.spawn(scope, active, work).is_err()
                    {
                        return;
                    }
                }
            }
            Arrivals::Replaced { flows } => {
                if self.play.sleep_until(self.flow.start).is_err() {
                    return;
                }
                for _ in 0..flows {
                    let first = self.flow.start;
                    let work = move || {
                        let mut at = first;
                        while !self.play.is_over() {
                            let Some(errand) = self.errand(draws, at) else { return };
                            self.send(errand, Sending::Eager);
                            at = self.play.clock.now();
                        }
                    };
                    if self.spawn(scope, active, work).is_err() {
                        return;
                    }
                }
            }
        });
    }

    /// The next transfer, to be started at a time.
    fn errand(&self, draws: &Mutex<Draws>, at: Time) -> Option<Errand> {
        let mut draws = draws.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = &mut draws.left {
            *left = left.checked_sub(1)?;
        }
        let Draws { random, sizes, .. } = &mut *draws;
        Some(Errand { stream: self.index as u32, at, size: Some(sizes.draw(random)) })
    }
}

/// What is drawn one after the other.
struct Draws {
    random: Random,
    sizes: Sizes,
    /// Transfers that may yet be started.
    left: Option<u64>,
}
