//! Connections that are opened one after the other, at times that chance decides, or the end of
//! others.

use crate::Opening;
use base::{Duration, Random, Time};
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// When connections are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Independently of each other and of everything else: a Poisson process.
    Poisson {
        /// From one to the next, on average.
        interval: Duration,
    },
    /// So many at the start, and another one whenever one is over: so many at all times, but for those
    /// that wait.
    Replaced {
        /// How many.
        flows: u32,
        /// How long each waits before it is opened, on average; exponential. With 0 all are opened at
        /// once, and replaced at once.
        think: Duration,
    },
}

/// How much a connection carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// Always so many bytes.
    Fixed(u64),
    /// Exponential.
    Exponential {
        /// Bytes.
        mean: f64,
    },
    /// Pareto: larger than x with probability (`least` / x)^`shape`. The mean is `shape` `least` /
    /// (`shape` - 1), and infinite for shapes up to 1; the variance is infinite for shapes up to 2.
    Pareto {
        /// No size is smaller, bytes.
        least: f64,
        /// Above 0.
        shape: f64,
    },
    /// Log-normal: the mean is `median` exp(`sigma`^2 / 2).
    LogNormal {
        /// Bytes.
        median: f64,
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
}

impl Sizes {
    /// No size is larger, bytes: it is far beyond what a connection carries in its life.
    pub const LARGEST: u64 = 1 << 60;

    /// A size, at least 1 byte.
    #[must_use]
    pub fn draw(&self, random: &mut Random) -> u64 {
        let size = match *self {
            Sizes::Fixed(size) => return size,
            Sizes::Exponential { mean } => random.exponential(mean),
            Sizes::Pareto { least, shape } => random.pareto(least, shape),
            Sizes::LogNormal { median, sigma } => median * random.log_normal(0.0, sigma),
        };
        // `as` saturates.
        (size.round() as u64).clamp(1, Sizes::LARGEST)
    }
}

/// Makes the connection of a number, counted from 0.
type Make<A> = Box<dyn FnMut(Time, u64) -> Opening<A> + Send>;

/// What opens connections of its own accord.
pub struct Workload<A> {
    arrivals: Arrivals,
    /// When the next is due.
    pub(crate) next: Time,
    /// When those that others made room for are due.
    vacancies: BinaryHeap<Reverse<Time>>,
    /// No vacancy is filled before: no port was left.
    retry: Time,
    /// How many it may yet open.
    left: u64,
    opened: u64,
    random: Random,
    make: Make<A>,
}

/// If no port is left, a replacement waits for so long.
const RETRY: Duration = Duration::from_secs(1);

impl<A> Workload<A> {
    /// A workload whose connections `make` makes, at a time and numbered from 0. A Poisson process
    /// begins at `start`, and its first connection comes after the first interval.
    #[must_use]
    pub fn new(
        arrivals: Arrivals,
        start: Time,
        random: Random,
        make: impl FnMut(Time, u64) -> Opening<A> + Send + 'static,
    ) -> Workload<A> {
        let mut workload = Workload {
            arrivals,
            next: start,
            vacancies: BinaryHeap::new(),
            retry: start,
            left: u64::MAX,
            opened: 0,
            random,
            make: Box::new(make),
        };
        match arrivals {
            Arrivals::Poisson { .. } => {}
            Arrivals::Replaced { flows, .. } => (0..flows).for_each(|_| workload.vacate(start)),
        }
        workload.arrange();
        workload
    }

    /// The same, but it opens no more than so many connections.
    #[must_use]
    pub fn at_most(mut self, count: u64) -> Workload<A> {
        self.left = count;
        if count == 0 {
            self.next = Time::NEVER;
        }
        self
    }

    /// Settles when the next connection is due.
    fn arrange(&mut self) {
        self.next = match self.arrivals {
            _ if self.left == 0 => Time::NEVER,
            Arrivals::Poisson { interval } => self.next + self.random.exponential_span(interval),
            Arrivals::Replaced { .. } => {
                let first = self.vacancies.peek();
                first.map_or(Time::NEVER, |&Reverse(at)| at.max(self.retry))
            }
        };
    }

    /// Makes room for a connection from now on; it is due when it has waited.
    fn vacate(&mut self, now: Time) {
        let Arrivals::Replaced { think, .. } = self.arrivals else { return };
        let waits = match think {
            Duration::ZERO => Duration::ZERO,
            think => self.random.exponential_span(think),
        };
        self.vacancies.push(Reverse(now + waits));
    }

    /// When the next is due; [`Time::NEVER`] if that depends on the end of others.
    #[must_use]
    pub fn next(&self) -> Time {
        self.next
    }

    /// The next connection that is due.
    pub fn due(&mut self, now: Time) -> Option<Opening<A>> {
        if self.next > now {
            return None;
        }
        let opening = (self.make)(self.next, self.opened);
        self.opened += 1;
        self.left -= 1;
        self.vacancies.pop();
        self.arrange();
        Some(opening)
    }

    /// One of its connections is over.
    pub fn ended(&mut self, now: Time) {
        if let Arrivals::Replaced { .. } = self.arrivals {
            self.vacate(now);
            // It has left a port.
            self.retry = self.retry.min(now);
            self.arrange();
        }
    }

    /// One of its connections could not be opened.
    pub(crate) fn failed(&mut self, now: Time) {
        if let Arrivals::Replaced { .. } = self.arrivals {
            self.vacancies.push(Reverse(now));
            self.retry = now + RETRY;
            self.arrange();
        }
    }
}

#[cfg(test)]
mod tests;
