//! What Cumulative ETEN tells of a path, averaged over many packets.

use wire::{Causes, Probability};

/// How probably a path loses a packet, for either reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// How heavily nodes weigh a packet in their averages.
    a: f64,
    /// The mean of what was told.
    told: Causes<f64>,
}

impl Rates {
    /// How heavily what a packet tells weighs in the mean: the code is to follow the path, not every
    /// loss, as nodes' averages may do.
    const WEIGHT: f64 = 1.0 / 256.0;

    /// Nothing is lost as far as is known; nodes average with this weight.
    pub(super) fn new(a: f64) -> Rates {
        Rates { a, told: Causes::default() }
    }

    /// A packet tells how probably others survive.
    pub(super) fn hear(&mut self, survival: Causes<Probability>) {
        let mean = |mean: &mut f64, survival: Probability| {
            *mean += Rates::WEIGHT * (1.0 - survival.get() - *mean);
        };
        mean(&mut self.told.corruption, survival.corruption);
        mean(&mut self.told.congestion, survival.congestion);
    }

    /// The probability of corruption.
    pub(super) fn corruption(&self) -> f64 {
        // Only packets that survive tell, and each counts itself with the weight `a` first: what they
        // say of a link's loss p is (1 - a) p on average.
        (self.told.corruption / (1.0 - self.a).max(Rates::WEIGHT)).min(1.0)
    }

    /// The share of congestion in the losses; all as long as none is known.
    pub(super) fn congestion_share(&self) -> f64 {
        let Causes { corruption, congestion } = self.told;
        let total = corruption + congestion;
        if total > 0.0 { congestion / total } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known after a link has lost every `loss`th packet to corruption and every `full`th to
    /// congestion, as its nodes average and the packets that survive tell.
    fn known(a: f64, loss: u32, full: u32) -> Rates {
        let mut rates = Rates::new(a);
        let mut share = Causes { corruption: 1.0, congestion: 1.0 };
        for packet in 1..200_000 {
            let lost = Causes { corruption: packet % loss == 0, congestion: packet % full == 0 };
            let count =
                |share: &mut f64, lost: bool| *share += a * (f64::from(u8::from(!lost)) - *share);
            count(&mut share.corruption, lost.corruption);
            count(&mut share.congestion, lost.congestion);
            if !lost.corruption && !lost.congestion {
                let [corruption, congestion] =
                    [share.corruption, share.congestion].map(Probability::of);
                rates.hear(Causes { corruption, congestion });
            }
        }
        rates
    }

    #[test]
    fn the_corruption_of_a_path_is_found_whatever_the_weight_in_its_nodes() {
        for a in [0.9, 0.5, 1.0 / 64.0] {
            let found = known(a, 40, u32::MAX).corruption();
            assert!((found / 0.025 - 1.0).abs() < 0.15, "{a}: {found}");
        }
    }

    #[test]
    fn the_share_of_congestion_is_that_of_the_losses() {
        for (loss, full, share) in [(u32::MAX, 50, 1.0), (50, u32::MAX, 0.0), (101, 303, 0.25)] {
            let found = known(0.5, loss, full).congestion_share();
            assert!((found - share).abs() < 0.05, "{share}: {found}");
        }
        assert_eq!(Rates::new(0.5).congestion_share().to_bits(), 1.0f64.to_bits());
    }
}
