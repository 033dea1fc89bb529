//! The form in which nodes report loss in the path fields (`bbn8333` §2.2).

use serde::{Deserialize, Serialize};

/// A form. All nodes of a network use the same, and senders know which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathForm {
    /// The probability that a packet survives; links multiply.
    #[default]
    Probability,
    /// The loss is low, medium (1 % or more) or high (10 % or more); the worst link counts.
    Levels,
    /// Whether the loss is 1 % or more on any link.
    Binary,
    /// Whether a link's loss has gone up or down a level since the last packet that reported it.
    Relative,
}

base::words!(PathForm);

/// The loss from which a level begins, for the levels above 0.
const LEVELS: [f64; 2] = [0.01, 0.1];

impl PathForm {
    /// Whether there are probabilities in the fields, and no bits.
    #[must_use]
    pub fn is_exact(self) -> bool {
        self == PathForm::Probability
    }

    /// The level of a loss.
    #[must_use]
    pub fn level(self, loss: f64) -> u8 {
        let levels = if self == PathForm::Binary { &LEVELS[..1] } else { &LEVELS[..] };
        levels.iter().filter(|&&least| loss >= least).count() as u8
    }

    /// The probability of survival that stands for a level: without loss for the lowest, else the
    /// geometric mean of the losses that are on it.
    #[must_use]
    pub fn survival(self, level: u8) -> f64 {
        1.0 - match (self, level) {
            (_, 0) => 0.0,
            // Of 1 % and 100 %.
            (PathForm::Binary, _) => 0.1,
            // Of 1 % and 10 %.
            (_, 1) => 0.031_622_776_601_683_79,
            // Of 10 % and 100 %.
            _ => 0.316_227_766_016_837_94,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_begins_at_its_threshold_and_stands_for_a_loss_on_it() {
        let levels = |form: PathForm| [0.0, 0.0099, 0.01, 0.099, 0.1, 1.0].map(|p| form.level(p));
        assert_eq!(levels(PathForm::Levels), [0, 0, 1, 1, 2, 2]);
        assert_eq!(levels(PathForm::Relative), levels(PathForm::Levels));
        assert_eq!(levels(PathForm::Binary), [0, 0, 1, 1, 1, 1]);
        for form in [PathForm::Levels, PathForm::Binary] {
            for level in 0..=form.level(1.0) {
                assert_eq!(form.level(1.0 - form.survival(level)), level, "{form:?}");
            }
        }
    }
}
