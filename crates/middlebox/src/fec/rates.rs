//! What Cumulative ETEN tells of a path.

use wire::{Causes, Probability};

/// How probably a path corrupts a packet: the mean of what packets tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Corruption {
    /// How heavily nodes weigh a packet in their averages.
    a: f64,
    told: f64,
    /// How many packets have told, as far as that matters.
    heard: u32,
}

impl Corruption {
    /// The mean goes back over so many packets: the strength of a code is to follow the path, not
    /// every loss, as nodes' averages may do.
    pub(super) const MEMORY: u32 = 1024;

    /// None is known; nodes average with this weight.
    pub(super) fn new(a: f64) -> Corruption {
        Corruption { a, told: 0.0, heard: 0 }
    }

    /// A packet tells how probably others survive.
    pub(super) fn hear(&mut self, survival: Causes<Probability>) {
        self.heard = (self.heard + 1).min(Corruption::MEMORY);
        self.told += (1.0 - survival.corruption.get() - self.told) / f64::from(self.heard);
    }

    /// The mean of what packets tell, which is more or less what is so.
    pub(super) fn mean(&self) -> f64 {
        self.told
    }

    /// The probability, if no packet that was corrupted tells.
    pub(super) fn get(&self) -> f64 {
        // Only packets that survive tell, and each counts itself with the weight `a` first: what they
        // say of a link's loss p is (1 - a) p on average.
        (self.told / (1.0 - self.a).max(1e-3)).min(1.0)
    }
}

/// The share of congestion in the losses of a path, of which a packet tells; `None` if it knows of
/// no loss.
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
            // Every fortieth packet is corrupted, and does not tell.
            for packet in 1..20_000 {
                let lost = packet % 40 == 0;
                share += a * (f64::from(u8::from(!lost)) - share);
                if !lost {
                    let survival =
                        Causes { corruption: Probability::of(share), congestion: Probability::ONE };
                    corruption.hear(survival);
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
