//! The number of repair packets of a block.

/// The strength of the code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strength {
    /// This many repair packets for each source packet, rounded up.
    Fixed(f64),
    /// The fewest with which a block cannot be repaired with at most this probability, if packets are
    /// corrupted independently at the path's rate; none if none are needed. Never more than the source
    /// packets.
    Following(f64),
}

impl Default for Strength {
    /// One block in a thousand is lost.
    fn default() -> Strength {
        Strength::Following(1e-3)
    }
}

impl Strength {
    /// Repair packets for a block of `sources` packets on a path that corrupts packets with a
    /// probability.
    #[must_use]
    pub fn repairs(self, sources: u8, corruption: f64) -> u8 {
        let most = sources.min(u8::MAX - sources);
        match self {
            // What is a whole number but for rounding stays that.
            Strength::Fixed(ratio) => {
                ((f64::from(sources) * ratio - 1e-9).ceil() as u8).min(u8::MAX - sources)
            }
            Strength::Following(target) => {
                let enough = |&repairs: &u8| failure(sources, repairs, corruption) <= target;
                (0..most).find(enough).unwrap_or(most)
            }
        }
    }
}

/// The probability that more than `repairs` packets of a block are lost, each with probability `p`.
fn failure(sources: u8, repairs: u8, p: f64) -> f64 {
    // Beyond that, nothing is of any use, and below 0 nothing is lost.
    let p = p.clamp(0.0, 0.9);
    let (n, q) = (u32::from(sources) + u32::from(repairs), 1.0 - p);
    let mut exactly = (0..n).fold(1.0, |product, _| product * q);
    let mut at_most = exactly;
    for lost in 0..u32::from(repairs) {
        exactly *= f64::from(n - lost) / f64::from(lost + 1) * (p / q);
        at_most += exactly;
    }
    (1.0 - at_most).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_of_failure_is_that_of_the_binomial_distribution() {
        // By hand: of 3 packets, more than one is lost.
        let p = 0.1;
        let expected = 3.0 * p * p * (1.0 - p) + p * p * p;
        assert!((failure(2, 1, p) - expected).abs() < 1e-15);
        // Any of 20.
        let none = (0..20).fold(1.0, |product, _| product * 0.99);
        assert!((failure(20, 0, 0.01) - (1.0 - none)).abs() < 1e-14);
        assert_eq!(failure(20, 3, 0.0), 0.0);
    }

    #[test]
    fn a_code_that_follows_corruption_is_just_strong_enough() {
        let target = 1e-3;
        let mut last = 0;
        for p in [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2] {
            let repairs = Strength::Following(target).repairs(20, p);
            assert!(failure(20, repairs, p) <= target, "{p}");
            assert!(repairs == 0 || failure(20, repairs - 1, p) > target, "{p}");
            assert!(repairs >= last);
            last = repairs;
        }
        assert_eq!(Strength::Following(target).repairs(20, 1e-5), 0);
        assert_eq!(Strength::Following(target).repairs(20, 1e-2), 3);
        assert_eq!(Strength::Following(target).repairs(20, 0.9), 20);
    }

    #[test]
    fn a_fixed_share_is_rounded_up() {
        for (ratio, sources, repairs) in [(0.1, 20, 2), (0.1, 10, 1), (0.1, 1, 1), (0.11, 20, 3)] {
            assert_eq!(Strength::Fixed(ratio).repairs(sources, 0.0), repairs, "{ratio} {sources}");
        }
    }
}
