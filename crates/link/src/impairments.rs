//! Reordering, duplication and jitter.

use base::{Duration, Random};

/// The impairments of packets in flight besides errors. The default is none, at no cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Some packets arrive later than those behind them.
    pub reordering: Reordering,
    /// The probability that a packet arrives twice, 0 to 1; its copy is right behind it, in the
    /// same state.
    pub duplication: f64,
    /// Every packet takes longer by a random span.
    pub jitter: Jitter,
}

/// Random delays of some packets, which others overtake.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reordering {
    /// The probability that a packet is delayed, 0 to 1, each on its own.
    pub probability: f64,
    /// The delay.
    pub delay: Duration,
}

/// A random delay of every packet, each on its own, besides that of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    /// The longest; the mean is half of it.
    pub bound: Duration,
    /// How it is distributed from 0 to the bound.
    pub shape: JitterShape,
    /// Whether a packet may overtake another. If not, it waits behind those that were sent before
    /// it, as in a queue: the delay of neighbours is then correlated, and on average longer.
    pub reorders: bool,
}

/// A distribution between 0 and a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterShape {
    /// Every value is as likely.
    #[default]
    Uniform,
    /// A bell: the mean of four uniform numbers. Its standard deviation is the bound / sqrt(48), a
    /// seventh.
    Bell,
}

/// The treatment of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// By how much it is later.
    pub(crate) later: Duration,
    /// Whether others may overtake it, and it others.
    pub(crate) loose: bool,
    /// Whether it arrives twice.
    pub(crate) twice: bool,
}

/// The random process of [`Impairments`]. It draws the distances to the next packet that is delayed
/// or duplicated.
#[derive(Clone, Debug)]
pub(crate) struct Impairer {
    settings: Impairments,
    /// Packets before the next that is delayed.
    in_order: u64,
    /// Packets before the next that is duplicated.
    single: u64,
    random: Random,
}

impl Impairer {
    pub(crate) fn new(settings: Impairments, mut random: Random) -> Impairer {
        let in_order = random.geometric(settings.reordering.probability);
        let single = random.geometric(settings.duplication);
        Impairer { settings, in_order, single, random }
    }

    /// For the next packet.
    pub(crate) fn next(&mut self) -> Treatment {
        let Impairments { reordering, duplication, jitter } = self.settings;
        let mut treatment = Treatment { loose: jitter.reorders, ..Treatment::default() };
        if jitter.bound > Duration::ZERO {
            treatment.later = self.draw(jitter);
        }
        if self.in_order == 0 {
            self.in_order = self.random.geometric(reordering.probability);
            treatment.later = treatment.later + reordering.delay;
            treatment.loose = true;
        } else {
            self.in_order -= 1;
        }
        if self.single == 0 {
            self.single = self.random.geometric(duplication);
            treatment.twice = true;
        } else {
            self.single -= 1;
        }
        treatment
    }

    fn draw(&mut self, jitter: Jitter) -> Duration {
        let share = match jitter.shape {
            JitterShape::Uniform => self.random.uniform(),
            JitterShape::Bell => (0..4).map(|_| self.random.uniform()).sum::<f64>() / 4.0,
        };
        Duration::from_nanos((share * jitter.bound.as_nanos() as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    fn treatments(settings: Impairments) -> Vec<Treatment> {
        let mut impairer = Impairer::new(settings, Seed(3).stream("impairments"));
        (0..100_000).map(|_| impairer.next()).collect()
    }

    fn moments(shape: JitterShape) -> (f64, f64) {
        let bound = Duration::from_millis(10);
        let jitter = Jitter { bound, shape, reorders: false };
        let spans: Vec<f64> = treatments(Impairments { jitter, ..Impairments::default() })
            .iter()
            .map(|treatment| treatment.later.as_secs_f64())
            .collect();
        assert!(spans.iter().all(|&span| span <= bound.as_secs_f64()));
        let mean = spans.iter().sum::<f64>() / spans.len() as f64;
        let variance = spans.iter().map(|span| (span - mean) * (span - mean)).sum::<f64>();
        (mean, (variance / spans.len() as f64).sqrt())
    }

    #[test]
    fn jitter_has_the_moments_of_its_shape() {
        let (mean, deviation) = moments(JitterShape::Uniform);
        assert!((mean - 0.005).abs() < 5e-5 && (deviation - 0.01 / 12f64.sqrt()).abs() < 3e-5);
        let (mean, deviation) = moments(JitterShape::Bell);
        assert!((mean - 0.005).abs() < 3e-5 && (deviation - 0.01 / 48f64.sqrt()).abs() < 2e-5);
    }

    #[test]
    fn packets_are_held_up_and_doubled_as_often_as_was_asked_for() {
        let reordering = Reordering { probability: 0.1, delay: Duration::from_millis(7) };
        let settings = Impairments { reordering, duplication: 0.02, jitter: Jitter::default() };
        let treatments = treatments(settings);
        let count = |what: fn(&Treatment) -> bool| treatments.iter().filter(|t| what(t)).count();
        let held = count(|t| t.loose && t.later == Duration::from_millis(7));
        assert!(held.abs_diff(10_000) < 400, "{held}");
        assert_eq!(count(|t| t.loose || t.later > Duration::ZERO), held);
        let doubled = count(|t| t.twice);
        assert!(doubled.abs_diff(2_000) < 180, "{doubled}");
    }
}
