//! Connections that are opened one after the other, at times that chance decides, or the end of
//! others.

use crate::Opening;
use base::{Duration, Random, Time};

/// When connections are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Independently of each other and of everything else: a Poisson process.
    Poisson {
        /// From one to the next, on average.
        interval: Duration,
    },
    /// So many at the start, and another one whenever one is over: so many at all times.
    Replaced {
        /// How many.
        flows: u32,
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
    /// How many are due then, of those that others made room for.
    vacancies: u64,
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
        let (left, opened, make) = (u64::MAX, 0, Box::new(make));
        let (next, vacancies) = match arrivals {
            Arrivals::Poisson { .. } => (start, 0),
            Arrivals::Replaced { flows } => (start, u64::from(flows)),
        };
        let mut workload = Workload { arrivals, next, vacancies, left, opened, random, make };
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

    /// Settles when the next connection of a Poisson process comes.
    fn arrange(&mut self) {
        if let Arrivals::Poisson { interval } = self.arrivals {
            self.next += self.random.exponential_span(interval);
        }
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
        self.vacancies = self.vacancies.saturating_sub(1);
        match self.arrivals {
            _ if self.left == 0 => self.next = Time::NEVER,
            Arrivals::Poisson { .. } => self.arrange(),
            Arrivals::Replaced { .. } if self.vacancies == 0 => self.next = Time::NEVER,
            Arrivals::Replaced { .. } => {}
        }
        Some(opening)
    }

    /// One of its connections is over.
    pub fn ended(&mut self, now: Time) {
        if let Arrivals::Replaced { .. } = self.arrivals {
            self.vacancies += 1;
            if self.left > 0 {
                self.next = self.next.min(now);
            }
        }
    }

    /// One of its connections could not be opened.
    pub(crate) fn failed(&mut self, now: Time) {
        if let Arrivals::Replaced { .. } = self.arrivals {
            self.vacancies += 1;
            if self.left > 0 {
                self.next = now + RETRY;
            }
        }
    }
}

#[cfg(test)]
mod tests;
