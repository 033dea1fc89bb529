//! Named random sub-streams and the distributions drawn from them.
//!
//! There is one root seed; every component with random decisions takes a stream of its own by
//! *name*. Adding a component therefore changes the decisions of no other, and two mechanisms
//! compared under one seed meet the same errors. The generator (PCG XSL RR 128/64) and `libm` are
//! pinned exactly, so that a seed gives the same bits on any machine; golden vectors in the tests
//! check this.

use crate::Duration;
use rand_core::Rng;
use rand_pcg::Pcg64;

/// A root seed, from which every stream of a run is derived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// The sub-stream called `name`, for instance `"link.a->b.errors"`.
    #[must_use]
    pub fn stream(self, name: &str) -> Random {
        // FNV-1a spreads the name, splitmix64 the seed; PCG's stream selector does the rest.
        let mut selector: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        for byte in name.bytes() {
            selector = (selector ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
        let mut state = self.0;
        let high = splitmix64(&mut state);
        let low = splitmix64(&mut state);
        Random(Pcg64::new(u128::from(high) << 64 | u128::from(low), selector))
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(Pcg64);

impl Random {
    /// A uniform integer.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in (0, 1], never 0, so that its logarithm is finite.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() <= p
    }

    /// A uniform number in (`low`, `high`].
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Failures before the first success of a trial that succeeds with probability `p`, by
    /// inversion. [`u64::MAX`] for `p` = 0.
    pub fn geometric(&mut self, p: f64) -> u64 {
        if p <= 0.0 {
            return u64::MAX;
        }
        if p >= 1.0 {
            return 0;
        }
        // `as` saturates, which is what a gap beyond 2^64 means.
        (libm::log(self.uniform()) / libm::log1p(-p)) as u64
    }

    /// An exponential number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.uniform())
    }

    /// An exponential span with this mean, at most [`Duration::MAX`].
    pub fn exponential_span(&mut self, mean: Duration) -> Duration {
        // `as` saturates.
        let nanos = self.exponential(mean.as_nanos() as f64) as u64;
        Duration::from_nanos(nanos.min(Duration::MAX.as_nanos()))
    }

    /// A Pareto number: it is larger than x with probability (`least` / x)^`shape`.
    pub fn pareto(&mut self, least: f64, shape: f64) -> f64 {
        least * libm::pow(self.uniform(), -1.0 / shape)
    }

    /// A normal number with mean 0 and standard deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(self.uniform())).sqrt();
        radius * libm::cos(2.0 * core::f64::consts::PI * self.uniform())
    }

    /// A log-normal number: its logarithm is normal with mean `mu` and standard deviation `sigma`.
    /// Its own mean is exp(`mu` + `sigma`^2 / 2), its median exp(`mu`).
    pub fn log_normal(&mut self, mu: f64, sigma: f64) -> f64 {
        libm::exp(mu + sigma * self.normal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_and_name_alone() {
        assert_eq!(Seed(1).stream("a"), Seed(1).stream("a"));
        assert_ne!(Seed(1).stream("a"), Seed(1).stream("b"));
        assert_ne!(Seed(1).stream("a"), Seed(2).stream("a"));
    }

    #[test]
    fn golden_vectors_hold_on_every_machine() {
        let mut random = Seed(42).stream("golden");
        let bits: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(bits, GOLDEN_BITS);
        let gaps: Vec<u64> = (0..5).map(|_| random.geometric(1e-4)).collect();
        assert_eq!(gaps, GOLDEN_GAPS);
        let exponential: Vec<u64> = (0..3).map(|_| random.exponential(2.0).to_bits()).collect();
        assert_eq!(exponential, GOLDEN_EXPONENTIAL);
        let log_normal: Vec<u64> = (0..3).map(|_| random.log_normal(8.0, 1.5).to_bits()).collect();
        assert_eq!(log_normal, GOLDEN_LOG_NORMAL);
        let pareto: Vec<u64> = (0..3).map(|_| random.pareto(1000.0, 1.2).to_bits()).collect();
        assert_eq!(pareto, GOLDEN_PARETO);
    }
    const GOLDEN_BITS: [u64; 3] = [11975731759636923172, 6554890956590589667, 7550645397989375415];
    const GOLDEN_GAPS: [u64; 5] = [678, 405, 6305, 6795, 2539];

    #[test]
    fn geometric_gaps_have_the_mean_of_their_law() {
        let mut random = Seed(7).stream("mean");
        let p = 0.01;
        let n = 200_000;
        let sum: u64 = (0..n).map(|_| random.geometric(p)).sum();
        let mean = sum as f64 / f64::from(n);
        let expected = (1.0 - p) / p;
        // Standard error of the mean is about 100 / sqrt(n) = 0.22.
        assert!((mean - expected).abs() < 1.2, "{mean} instead of {expected}");
    }

    const GOLDEN_EXPONENTIAL: [u64; 3] =
        [4611290310940282316, 4621710170193881888, 4573549472667159608];
    const GOLDEN_PARETO: [u64; 3] = [4654972887432784071, 4667376688442601441, 4653708293877463740];
    const GOLDEN_LOG_NORMAL: [u64; 3] =
        [4655976737863974282, 4655008991953084438, 4630447658251823016];

    /// Mean and standard deviation of 200,000 numbers.
    fn moments(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let n = 200_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = draw();
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(n);
        (mean, (squares / f64::from(n) - mean * mean).sqrt())
    }

    #[test]
    fn exponential_numbers_have_a_deviation_as_large_as_their_mean() {
        let mut random = Seed(7).stream("exponential");
        let (mean, deviation) = moments(|| random.exponential(3.0));
        assert!((mean - 3.0).abs() < 0.03 && (deviation - 3.0).abs() < 0.06, "{mean} {deviation}");
        let mean = Duration::from_millis(500);
        let (mean, _) = moments(|| random.exponential_span(mean).as_secs_f64());
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        assert!(random.exponential_span(Duration::MAX) <= Duration::MAX);
    }

    #[test]
    fn normal_and_log_normal_numbers_have_the_moments_of_their_laws() {
        let mut random = Seed(7).stream("normal");
        let (mean, deviation) = moments(|| random.normal());
        assert!(mean.abs() < 0.01 && (deviation - 1.0).abs() < 0.01, "{mean} {deviation}");
        // exp(1 + 0.125) = 3.0802; deviation 3.0802 * sqrt(exp(0.25) - 1) = 1.6416.
        let (mean, deviation) = moments(|| random.log_normal(1.0, 0.5));
        assert!((mean - 3.0802).abs() < 0.02, "{mean}");
        assert!((deviation - 1.6416).abs() < 0.04, "{deviation}");
    }

    #[test]
    fn impossible_and_certain_events_are_exact() {
        let mut random = Seed(7).stream("edges");
        assert_eq!(random.geometric(0.0), u64::MAX);
        assert_eq!(random.geometric(1.0), 0);
        assert!(random.chance(1.0));
    }
}
