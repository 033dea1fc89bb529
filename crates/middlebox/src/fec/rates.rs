//! The path's corruption as Cumulative ETEN reports it.

use wire::{Causes, Probability};

/// The probability that a path corrupts a packet: the mean of the packets' reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Corruption {
    /// The weight that nodes give a packet in their averages.
    a: f64,
    mean: f64,
    /// The number of reports so far, up to the span of the mean.
    reports: u32,
}

impl Corruption {
    /// The span of the mean, packets: the strength of a code follows the path, not every loss, as nodes'
    /// averages may do.
    pub(super) const MEMORY: u32 = 1024;

    /// No report yet; nodes average with this weight.
    pub(super) fn new(a: f64) -> Corruption {
        Corruption { a, mean: 0.0, reports: 0 }
    }

    /// Adds the report of a packet.
    pub(super) fn add(&mut self, survival: Causes<Probability>) {
        self.reports = (self.reports + 1).min(Corruption::MEMORY);
        self.mean += (1.0 - survival.corruption.get() - self.mean) / f64::from(self.reports);
    }

    /// The mean of the reports.
    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// The probability, corrected for the fact that corrupted packets report nothing.
    pub(super) fn get(&self) -> f64 {
        // Only surviving packets report, and each first counts itself with the weight `a`: on average
        // they report (1 - a) p of a link's loss p.
        (self.mean / (1.0 - self.a).max(1e-3)).min(1.0)
    }
}

/// The share of congestion in the losses of a path that a packet reports; `None` if it reports no
/// loss.
pub(super) fn congestion_share(survival: Causes<Probability>) -> Option<f64> {
    let [corruption, congestion] =
        [survival.corruption, survival.congestion].map(|survival| 1.0 - survival.get());
    let total = corruption + congestion;
    (total > 0.0).then(|| congestion / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corruption_of_a_path_is_found_whatever_the_weight_in_its_nodes() {
        for a in [0.9, 0.5, 1.0 / 64.0] {
            let mut corruption = Corruption::new(a);
            let mut share = 1.0;
            // Every fortieth packet is corrupted, and reports nothing.
            for packet in 1..20_000 {
                let lost = packet % 40 == 0;
                share += a * (f64::from(u8::from(!lost)) - share);
                if !lost {
                    let survival =
                        Causes { corruption: Probability::of(share), congestion: Probability::ONE };
                    corruption.add(survival);
                }
            }
            let found = corruption.get();
            assert!((found / 0.025 - 1.0).abs() < 0.1, "{a}: {found}");
        }
    }

    #[test]
    fn the_share_of_congestion_is_that_in_what_is_lost() {
        let share = |corruption, congestion| {
            let [corruption, congestion] = [corruption, congestion].map(Probability::of);
            congestion_share(Causes { corruption, congestion })
        };
        assert_eq!(share(1.0, 1.0), None);
        assert_eq!(share(1.0, 0.9), Some(1.0));
        assert_eq!(share(0.9, 1.0), Some(0.0));
        assert!((share(0.97, 0.99).unwrap() - 0.25).abs() < 1e-6);
    }
}
