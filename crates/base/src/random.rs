//! Named random sub-streams and the distributions drawn from them.
//!
//! One root seed; every component that needs chance takes a stream of its own by *name*. Adding a
//! component therefore changes nobody else's luck, and two mechanisms compared under one seed meet
//! the same errors. The generator (PCG XSL RR 128/64) and `libm` are pinned exactly, so that a
//! seed gives the same bits on any machine; golden vectors in the tests hold that promise.

use rand_core::Rng;
use rand_pcg::Pcg64;

/// A root seed, from which every stream of a run is derived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// The sub-stream called `name`, for instance `"link.0.forward.errors"`.
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

    #[test]
    fn impossible_and_certain_events_are_exact() {
        let mut random = Seed(7).stream("edges");
        assert_eq!(random.geometric(0.0), u64::MAX);
        assert_eq!(random.geometric(1.0), 0);
        assert!(random.chance(1.0));
    }
}
