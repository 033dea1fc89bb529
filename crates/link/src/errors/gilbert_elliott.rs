//! A channel with memory.

use super::{Damage, Model, Process, Transmission};
use crate::Fate;
use base::Random;

/// The model of Gilbert (1960) and Elliott (1963), with a step per *packet*, as it is used for
/// packets everywhere: a Markov chain of a good and a bad state, in each of which every packet is
/// damaged on its own with the state's probability. A packet meets the state first; then the state
/// may change.
///
/// The chain starts in its stationary distribution: bad with probability p / (p + r). So the mean
/// share of damaged packets is ((1 - k) r + (1 - h) p) / (p + r); with `h` 0 and `k` 1 (Gilbert's
/// simple case, the default) damaged packets come in runs of 1 / r on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// The probability to change from good to bad, 0 to 1.
    pub p: f64,
    /// The probability to change from bad to good, 0 to 1.
    pub r: f64,
    /// The probability that a packet survives the bad state, 0 to 1.
    pub h: f64,
    /// The probability that a packet survives the good state, 0 to 1.
    pub k: f64,
    /// What happens to a packet that does not survive.
    pub damage: Damage,
}

impl Default for GilbertElliott {
    /// Always good; every packet survives the good state and none the bad one.
    fn default() -> GilbertElliott {
        GilbertElliott { p: 0.0, r: 1.0, h: 0.0, k: 1.0, damage: Damage::Loss }
    }
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// The probability to leave it.
    leave: f64,
    /// The probability that a packet is damaged in it.
    damage: f64,
}

impl State {
    /// How many packets meet the state before it changes: at least one.
    fn stay(&self, random: &mut Random) -> u64 {
        random.geometric(self.leave).saturating_add(1)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The present state and the other one.
    states: [State; 2],
    /// Packets that are still to meet the present state.
    left: u64,
    /// Packets before the next that is damaged, as long as the state does not change.
    good: u64,
    damaged: Fate,
}

impl Model for GilbertElliott {
    type Process = Chain;

    fn start(&self, random: &mut Random) -> Chain {
        let good = State { leave: self.p, damage: 1.0 - self.k };
        let bad = State { leave: self.r, damage: 1.0 - self.h };
        // A chain that never changes stays good.
        let starts_bad = self.p > 0.0 && random.uniform() * (self.p + self.r) <= self.p;
        let states = if starts_bad { [bad, good] } else { [good, bad] };
        Chain {
            states,
            left: states[0].stay(random),
            good: random.geometric(states[0].damage),
            damaged: self.damage.into(),
        }
    }
}

impl Process for Chain {
    fn next(&mut self, _packet: Transmission, random: &mut Random) -> Fate {
        if self.left == 0 {
            self.states.swap(0, 1);
            self.left = self.states[0].stay(random);
            self.good = random.geometric(self.states[0].damage);
        }
        self.left -= 1;
        if self.good > 0 {
            self.good -= 1;
            return Fate::Intact;
        }
        self.good = random.geometric(self.states[0].damage);
        self.damaged
    }
}
