//! Trust in those who send notices, earned by true ones.

use super::Outcome;
use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// A credit of notices that may be believed before it is known whether they are true.
///
/// Whoever believes one spends one. A true one pays it back and one more, a false one costs eight in
/// all: forgers who make up more than one notice in eight run the credit down. Without credit
/// nothing is believed for a while, then one; the while doubles with every false one and is short
/// again once there is as much credit as at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trust {
    credit: i32,
    /// Without credit: until when nothing is believed.
    until: Time,
    pause: Duration,
}

impl Default for Trust {
    fn default() -> Trust {
        Trust { credit: Trust::FIRST, until: Time::ZERO, pause: Trust::SHORTEST }
    }
}

impl Trust {
    /// The credit that a connection starts with: it doubles with every round of true notices.
    const FIRST: i32 = 2;
    /// The most there is: as many as are followed up at a time.
    const MOST: i32 = 1024;
    /// What a false notice costs beyond the one that was spent on it.
    const FINE: i32 = 7;
    /// How long nothing is believed, the first time and at most.
    const SHORTEST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(64);

    /// Whether a notice may be believed.
    pub(super) fn believes(&self, now: Time) -> bool {
        self.credit > 0 || now >= self.until
    }

    /// What became of a notice that was believed.
    pub(super) fn learn(&mut self, now: Time, outcome: Outcome) {
        match outcome {
            // After a pause, one is believed without credit.
            Outcome::Believed => self.credit = self.credit.max(1) - 1,
            Outcome::Confirmed => self.credit = (self.credit + 2).min(Trust::MOST),
            Outcome::Refuted => self.credit -= Trust::FINE,
        }
        if outcome == Outcome::Refuted {
            self.pause = (self.pause * 2).min(Trust::LONGEST);
        } else if self.credit >= Trust::FIRST {
            self.pause = Trust::SHORTEST;
        }
        if outcome != Outcome::Confirmed && self.credit <= 0 {
            self.until = now + self.pause;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn second(n: u64) -> Time {
        Time::ZERO + Duration::from_secs(n)
    }

    #[test]
    fn a_connection_starts_with_credit_for_two() {
        let mut trust = Trust::default();
        for _ in 0..2 {
            assert!(trust.believes(Time::ZERO));
            trust.learn(Time::ZERO, Outcome::Believed);
        }
        assert!(!trust.believes(Time::ZERO));
    }

    #[test]
    fn true_notices_double_it_every_round_and_are_then_never_refused() {
        let mut trust = Trust::default();
        for round in 0..9 {
            for _ in 0..2 << round {
                assert!(trust.believes(second(round)));
                trust.learn(second(round), Outcome::Believed);
            }
            (0..2 << round).for_each(|_| trust.learn(second(round), Outcome::Confirmed));
        }
        assert_eq!(trust.credit, Trust::MOST);
    }

    #[test]
    fn a_false_one_ends_what_little_credit_there_is_for_two_seconds_then_four() {
        let mut trust = Trust::default();
        trust.learn(second(0), Outcome::Believed);
        trust.learn(second(0), Outcome::Refuted);
        assert!(!trust.believes(second(1)) && trust.believes(second(2)));
        trust.learn(second(2), Outcome::Believed);
        trust.learn(second(2), Outcome::Refuted);
        assert!(!trust.believes(second(5)) && trust.believes(second(6)));
    }

    proptest! {
        /// Whatever the delay until the truth is known: who only forges is believed twice at
        /// first, then once in ever longer pauses.
        #[test]
        fn a_forger_is_believed_as_often_as_the_first_credit_and_the_pauses_allow(
            delays in prop::collection::vec(0usize..40, 2000),
        ) {
            let mut trust = Trust::default();
            let mut due = vec![0; 2100];
            let mut believed = 0;
            // One step is a tenth of a second, and the forger tries in each.
            for (step, delay) in delays.into_iter().enumerate() {
                let now = Time::ZERO + Duration::from_millis(100) * step as u64;
                for _ in 0..due[step] {
                    trust.learn(now, Outcome::Refuted);
                }
                if trust.believes(now) {
                    trust.learn(now, Outcome::Believed);
                    believed += 1;
                    due[step + 1 + delay] += 1;
                }
            }
            // Four seconds may pass until the first is refuted, then 2, 4, 8, ..., 64, 64 seconds.
            prop_assert!((2..=2 + 4 + 6 + 200 / 64).contains(&believed), "{believed}");
        }

        /// Among true notices, false ones do no harm beyond an eighth of them and the first credit.
        #[test]
        fn false_notices_are_bounded_by_the_true_ones(truth in prop::collection::vec(any::<bool>(), 1..600)) {
            let mut trust = Trust::default();
            let (mut confirmed, mut refuted) = (0, 0);
            for is_true in truth {
                // No time passes: there is no second chance.
                if trust.believes(Time::ZERO + Duration::from_nanos(1)) || trust.credit > 0 {
                    trust.learn(second(1), Outcome::Believed);
                    let outcome = if is_true { Outcome::Confirmed } else { Outcome::Refuted };
                    trust.learn(second(1), outcome);
                    confirmed += i32::from(is_true);
                    refuted += i32::from(!is_true);
                }
            }
            prop_assert!(8 * refuted <= Trust::FIRST + confirmed + 8, "{refuted} of {confirmed}");
        }
    }
}
