//! Many transfers: when they start, and their sizes.

use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Count, Positive, Written, bytes};
use crate::reading::shape::{OrReport as _, Tried, table};
use base::Duration;
use host::{Arrivals, Sizes};
use toml::Spanned;

/// Many transfers, each over a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// When they start.
    pub arrivals: Arrivals,
    /// Their sizes.
    pub sizes: Sizes,
    /// The largest number of transfers; `None` for no limit.
    pub count: Option<u64>,
}

table! {
    /// When transfers start: at a `rate`, or so that the number of active `flows` is constant.
    pub(crate) struct ArrivalsTable {
        /// The mean number per second (a Poisson process).
        rate: Tried<Positive>;
        /// The number at the start; each that ends is replaced by another.
        flows: Tried<Spanned<Count>>;
        /// With `flows`: how long each waits before it starts, the first ones and their replacements, on
        /// average (exponential, so that starts are a Poisson process). They do not wait if absent.
        think: Spanned<Written<Duration>>;
    }
}

table! {
    /// The distribution of sizes, one of these.
    pub(crate) struct SizesTable {
        /// Exponential.
        exponential: Tried<Exponential>;
        /// Pareto: many small ones, few that are very large.
        pareto: Tried<Spanned<Pareto>>;
        /// Log-normal.
        log_normal: Tried<Spanned<LogNormal>>;
    }
}

table! {
    /// Exponential sizes.
    pub(crate) struct Exponential {
        /// Their mean.
        mean: Spanned<Amount>, needed;
    }
}

table! {
    /// Pareto sizes: larger than x with probability (`minimum` / x)^`shape`.
    pub(crate) struct Pareto {
        /// Their mean, for shapes above 1.
        mean: Tried<Spanned<Amount>>;
        /// The smallest, instead of the mean.
        minimum: Tried<Spanned<Amount>>;
        /// The shape parameter: up to 2 the variance is infinite, up to 1 the mean.
        shape: Spanned<Positive>, needed;
    }
}

table! {
    /// Log-normal sizes.
    pub(crate) struct LogNormal {
        /// Their mean.
        mean: Tried<Spanned<Amount>>;
        /// Their median, instead of the mean.
        median: Tried<Spanned<Amount>>;
        /// The standard deviation of the (natural) logarithm, at most 10.
        sigma: Spanned<Positive>, needed;
    }
}

/// A workload, checked. Here and below, `None` is a value whose problem was reported where it was
/// read.
pub(crate) fn resolve(
    arrivals: &Spanned<ArrivalsTable>,
    size: Option<&Tried<Spanned<Amount>>>,
    sizes: Option<&Tried<Spanned<SizesTable>>>,
    count: Option<&Spanned<Count>>,
    problems: &mut Vec<Problem>,
) -> Option<Workload> {
    let sizes = match (size, sizes) {
        (Some(Tried(size)), None) => size.as_ref().and_then(|size| {
            bytes(size, "a transfer", Sizes::LARGEST).map(Sizes::Fixed).or_report(problems)
        }),
        (None, Some(Tried(sizes))) => {
            let sizes = sizes.as_ref().and_then(distribution);
            sizes.and_then(|sizes| sizes.or_report(problems))
        }
        _ => {
            let message = "expected either `size` or `sizes` beside it";
            problems.push(Problem::at(arrivals.span(), message));
            None
        }
    };
    let count = count.map(|count| count.get_ref().0);
    let arrivals = when(arrivals).and_then(|arrivals| arrivals.or_report(problems));
    Some(Workload { arrivals: arrivals?, sizes: sizes?, count })
}

/// No host has ports for more at once, those that wait in TIME-WAIT included.
const MOST_AT_ONCE: u64 = 10_000;

fn when(arrivals: &Spanned<ArrivalsTable>) -> Option<Result<Arrivals, Problem>> {
    let ArrivalsTable { rate, flows, think } = arrivals.get_ref();
    Some(match (rate, flows) {
        (Some(_), None) if think.is_some() => {
            let place = think.as_ref().map_or(arrivals.span(), Spanned::span);
            Err(Problem::at(place, "expected `flows` beside `think`"))
        }
        (Some(rate), None) => {
            // `as` saturates.
            let interval = Duration::from_nanos((1e9 / rate.0?.0).round() as u64);
            Ok(Arrivals::Poisson { interval: interval.min(Duration::MAX) })
        }
        (None, Some(Tried(flows))) => match flows.as_ref()?.get_ref().0 {
            count @ ..=MOST_AT_ONCE => {
                let think = think.as_ref().map_or(Duration::ZERO, |think| think.get_ref().0);
                Ok(Arrivals::Replaced { flows: count as u32, think })
            }
            _ => {
                let message = format!("expected at most {MOST_AT_ONCE} flows");
                Err(Problem::at(flows.as_ref()?.span(), message))
            }
        },
        _ => either(arrivals, "`rate` or `flows`"),
    })
}

fn distribution(sizes: &Spanned<SizesTable>) -> Option<Result<Sizes, Problem>> {
    let table = sizes.get_ref();
    match (&table.exponential, &table.pareto, &table.log_normal) {
        (Some(Tried(exponential)), None, None) => {
            let mean = size(exponential.as_ref()?.mean.as_ref()?);
            Some(mean.map(|mean| Sizes::Exponential { mean }))
        }
        (None, Some(Tried(pareto)), None) => pareto.as_ref()?.get_ref().sizes(pareto.as_ref()?),
        (None, None, Some(Tried(log_normal))) => {
            log_normal.as_ref()?.get_ref().sizes(log_normal.as_ref()?)
        }
        _ => Some(either(sizes, "`exponential`, `pareto` or `log_normal`")),
    }
}

fn size(size: &Spanned<Amount>) -> Result<f64, Problem> {
    bytes(size, "a transfer", Sizes::LARGEST).map(|bytes| bytes as f64)
}

fn either<T, U>(place: &Spanned<T>, keys: &str) -> Result<U, Problem> {
    Err(Problem::at(place.span(), format!("expected either {keys}")))
}

impl Pareto {
    fn sizes(&self, place: &Spanned<Pareto>) -> Option<Result<Sizes, Problem>> {
        let written = self.shape.as_ref()?;
        let shape = written.get_ref().0;
        Some(match (&self.mean, &self.minimum) {
            (Some(_), None) if shape <= 1.0 => {
                let message = "sizes of a shape up to 1 have no mean: expected more than 1, or \
                               `minimum`";
                Err(Problem::at(written.span(), message))
            }
            (Some(Tried(mean)), None) => size(mean.as_ref()?)
                .map(|mean| Sizes::Pareto { least: mean * (shape - 1.0) / shape, shape }),
            (None, Some(Tried(minimum))) => {
                size(minimum.as_ref()?).map(|least| Sizes::Pareto { least, shape })
            }
            _ => either(place, "`mean` or `minimum`"),
        })
    }
}

impl LogNormal {
    fn sizes(&self, place: &Spanned<LogNormal>) -> Option<Result<Sizes, Problem>> {
        let written = self.sigma.as_ref()?;
        let sigma = written.get_ref().0;
        Some(match (&self.mean, &self.median) {
            _ if sigma > 10.0 => Err(Problem::at(written.span(), "expected at most 10")),
            (Some(Tried(mean)), None) => size(mean.as_ref()?).map(|mean| Sizes::LogNormal {
                median: mean * libm::exp(-sigma * sigma / 2.0),
                sigma,
            }),
            (None, Some(Tried(median))) => {
                size(median.as_ref()?).map(|median| Sizes::LogNormal { median, sigma })
            }
            _ => either(place, "`mean` or `median`"),
        })
    }
}
