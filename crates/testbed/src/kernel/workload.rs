//! Many transfers from sockets, each over a connection of its own.

use super::FlowEnd;
use base::{Random, Seed, Time};
use host::{Arrivals, Sizes};
use scenario::{Sending, TransferSpec, Workload};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;

impl FlowEnd<'_> {
    /// Opens the connections of a workload, at the lab's times and with its sizes.
    pub(super) fn send_many(&self, Workload { arrivals, sizes, count }: Workload) {
        let seed = Seed(self.state.seed);
        let stream = |part: &str| seed.stream(&format!("flow.{}.{part}", self.flow.name));
        let draws = Mutex::new(Draws { random: stream("sizes"), sizes, left: count });
        let active = AtomicUsize::new(0);
        let (draws, active) = (&draws, &active);
        std::thread::scope(|scope| match arrivals {
            Arrivals::Poisson { interval } => {
                let (mut random, mut next) = (stream("arrivals"), self.flow.start);
                loop {
                    next += random.exponential_span(interval);
                    let Some(spec) = self.spec(draws, next) else { return };
                    let work = move || self.send(spec, Sending::Eager);
                    if self.state.sleep_until(next).is_err()
                        || self.spawn(scope, active, work).is_err()
                    {
                        return;
                    }
                }
            }
            Arrivals::Replaced { flows } => {
                if self.state.sleep_until(self.flow.start).is_err() {
                    return;
                }
                for _ in 0..flows {
                    let first = self.flow.start;
                    let work = move || {
                        let mut at = first;
                        while !self.state.is_over() {
                            let Some(spec) = self.spec(draws, at) else { return };
                            self.send(spec, Sending::Eager);
                            at = self.state.clock.now();
                        }
                    };
                    if self.spawn(scope, active, work).is_err() {
                        return;
                    }
                }
            }
        });
    }

    /// The next transfer, which starts at a time.
    fn spec(&self, draws: &Mutex<Draws>, at: Time) -> Option<TransferSpec> {
        let mut draws = draws.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = &mut draws.left {
            *left = left.checked_sub(1)?;
        }
        let Draws { random, sizes, .. } = &mut *draws;
        Some(TransferSpec { stream: self.index as u32, at, size: Some(sizes.draw(random)) })
    }
}

/// The random draws of a workload.
struct Draws {
    random: Random,
    sizes: Sizes,
    /// Transfers that are left.
    left: Option<u64>,
}
