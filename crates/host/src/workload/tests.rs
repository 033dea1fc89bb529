//! When workloads open connections, and how large they are.

use super::*;
use crate::Traffic;
use base::Seed;
use core::net::IpAddr;
use tcp::Config;

fn opening(at: Time, number: u64) -> Opening<Traffic> {
    Opening {
        at,
        remote: IpAddr::from([10, 0, 0, 2]),
        remote_port: 80,
        local: None,
        local_port: None,
        config: Config::default(),
        application: Traffic::Source(crate::Source::new(number as u32, Some(1))),
    }
}

fn workload(arrivals: Arrivals, start: Time) -> Workload<Traffic> {
    Workload::new(arrivals, start, Seed(1).stream("arrivals"), opening)
}

fn poisson(interval: Duration) -> Workload<Traffic> {
    workload(Arrivals::Poisson { interval }, Time::ZERO)
}

const SECOND: Duration = Duration::from_secs(1);

/// So many at all times, which never wait.
fn replaced(flows: u32) -> Arrivals {
    Arrivals::Replaced { flows, think: Duration::ZERO }
}

#[test]
fn the_counts_of_a_poisson_process_have_a_variance_as_large_as_their_mean() {
    let mut workload = poisson(Duration::from_millis(50));
    let seconds = 10_000;
    let (mut sum, mut squares) = (0.0, 0.0);
    for second in 1..=seconds {
        let end = Time::ZERO + SECOND * second;
        let count = core::iter::from_fn(|| workload.due(end)).count() as f64;
        sum += count;
        squares += count * count;
    }
    let mean = sum / seconds as f64;
    let variance = squares / seconds as f64 - mean * mean;
    // Standard errors: of the mean sqrt(20 / 10^4), of the variance 20 sqrt(2 / 10^4).
    assert!((mean - 20.0).abs() < 0.18, "{mean}");
    assert!((variance - 20.0).abs() < 1.2, "{variance}");
}

#[test]
fn each_connection_has_its_number_and_its_time() {
    let mut workload = poisson(Duration::from_millis(50));
    let end = Time::ZERO + SECOND;
    let opened: Vec<_> = core::iter::from_fn(|| workload.due(end)).collect();
    assert!(opened.is_sorted_by_key(|opening| opening.at) && opened[0].at > Time::ZERO);
    for (number, opening) in (0..).zip(&opened) {
        let Traffic::Source(source) = &opening.application else { panic!("a source") };
        assert_eq!(format!("{source:?}"), format!("{:?}", crate::Source::new(number, Some(1))));
    }
    assert!(workload.next > end);
}

#[test]
fn a_workload_opens_no_more_than_it_may() {
    let mut few = poisson(Duration::from_millis(50)).at_most(3);
    let late = Time::ZERO + SECOND * 100;
    assert_eq!(core::iter::from_fn(|| few.due(late)).count(), 3);
    assert_eq!((few.next, poisson(SECOND).at_most(0).next), (Time::NEVER, Time::NEVER));

    let mut replaced = workload(replaced(2), Time::ZERO).at_most(3);
    assert_eq!(core::iter::from_fn(|| replaced.due(late)).count(), 2);
    for rest in [1, 0, 0] {
        replaced.ended(late);
        assert_eq!(core::iter::from_fn(|| replaced.due(late)).count(), rest);
    }
}

#[test]
fn what_ends_is_replaced_at_once_and_what_cannot_be_opened_a_second_later() {
    let start = Time::ZERO + SECOND;
    let mut workload = workload(replaced(5), start);
    assert!(workload.due(Time::ZERO).is_none());
    assert_eq!(core::iter::from_fn(|| workload.due(start)).count(), 5);
    assert_eq!(workload.next, Time::NEVER);
    let later = start + SECOND;
    workload.ended(later);
    assert_eq!(workload.due(later).map(|opening| opening.at), Some(later));
    workload.failed(later);
    assert_eq!((workload.next, workload.due(later).is_none()), (later + RETRY, true));
}

#[test]
fn those_that_think_start_as_a_poisson_process_and_are_replaced_after_a_time_of_their_own() {
    let think = SECOND * 2;
    let flows = 10_000;
    let mut workload = workload(Arrivals::Replaced { flows, think }, Time::ZERO);
    // Of independent exponential times, 1 - 1/e are less than their mean.
    let opened = core::iter::from_fn(|| workload.due(Time::ZERO + think)).count();
    assert!(opened.abs_diff(6321) < 145, "{opened}");
    assert!(core::iter::from_fn(|| workload.due(Time::NEVER - SECOND)).count() + opened == 10_000);
    assert_eq!(workload.next, Time::NEVER);
    let ended = Time::ZERO + SECOND * 1000;
    let mut waits = Vec::new();
    for _ in 0..10_000 {
        workload.ended(ended);
        waits.push(workload.next.since(ended).as_secs_f64());
        assert!(workload.due(ended + SECOND * 1000).is_some());
    }
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    assert!(close(mean, 2.0, 0.04), "{mean}");
    // What has waited and found no port waits a second more, not for another time of its own.
    workload.failed(ended);
    assert_eq!(workload.next, ended + RETRY);
}

/// Sorted sizes, 200,000 of them.
fn sizes(sizes: Sizes) -> Vec<u64> {
    let mut random = Seed(1).stream("sizes");
    let mut drawn: Vec<u64> = (0..200_000).map(|_| sizes.draw(&mut random)).collect();
    drawn.sort_unstable();
    drawn
}

fn quantile(sorted: &[u64], q: f64) -> f64 {
    sorted[(q * sorted.len() as f64) as usize] as f64
}

fn mean(sizes: &[u64]) -> f64 {
    sizes.iter().sum::<u64>() as f64 / sizes.len() as f64
}

fn close(value: f64, expected: f64, tolerance: f64) -> bool {
    (value / expected - 1.0).abs() < tolerance
}

#[test]
fn fixed_sizes_are_all_alike() {
    assert!(sizes(Sizes::Fixed(77)).iter().all(|&size| size == 77));
}

#[test]
fn exponential_sizes_have_their_mean_and_quantiles() {
    let drawn = sizes(Sizes::Exponential { mean: 50_000.0 });
    assert!(close(mean(&drawn), 50_000.0, 0.01), "{}", mean(&drawn));
    for q in [0.5, 0.9, 0.99] {
        let expected = -50_000.0 * libm::log(1.0 - q);
        assert!(close(quantile(&drawn, q), expected, 0.02), "{q}");
    }
}

#[test]
fn pareto_sizes_have_their_least_and_quantiles() {
    let drawn = sizes(Sizes::Pareto { least: 10_000.0, shape: 1.5 });
    assert!(drawn[0] >= 10_000);
    // (1 - q)^(-1 / shape)
    for (q, expected) in [(0.5, 1.5874), (0.9, 4.6416), (0.99, 21.544)] {
        let found = quantile(&drawn, q);
        assert!(close(found, expected * 10_000.0, 0.04), "{q}: {found}");
    }
}

#[test]
fn log_normal_sizes_have_their_mean_and_quantiles() {
    let (median, sigma) = (20_000.0, 1.2);
    let drawn = sizes(Sizes::LogNormal { median, sigma });
    // exp(1.2^2 / 2)
    assert!(close(mean(&drawn), median * 2.0544, 0.03), "{}", mean(&drawn));
    // exp(sigma z), z the quantile of the normal distribution
    for (q, z) in [(0.1587, -1.0), (0.5, 0.0), (0.8413, 1.0), (0.9772, 2.0)] {
        let expected = median * libm::exp(sigma * z);
        let found = quantile(&drawn, q);
        assert!(close(found, expected, 0.04), "{q}: {found} instead of {expected}");
    }
}

#[test]
fn extreme_sizes_are_sizes_all_the_same() {
    let mut random = Seed(1).stream("extremes");
    for sizes in [
        Sizes::Pareto { least: 1.0, shape: 1e-3 },
        Sizes::LogNormal { median: 1.0, sigma: 1e3 },
        Sizes::Exponential { mean: 1e300 },
        Sizes::Exponential { mean: 1e-300 },
    ] {
        for _ in 0..100 {
            assert!((1..=Sizes::LARGEST).contains(&sizes.draw(&mut random)), "{sizes:?}");
        }
    }
}
