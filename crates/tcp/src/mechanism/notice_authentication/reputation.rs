//! The reputation of notices, earned by true ones.

use super::Outcome;
use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// A credit of notices that may be accepted before their outcome is known.
///
/// Accepting a notice costs one credit. A true notice returns it and one more; a false one costs
/// eight in all, so forgeries above an eighth of the notices use the credit up. Without credit,
/// notices are refused for a pause, then one is accepted; the pause doubles with every false one,
/// and is reset once the credit reaches its initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reputation {
    credit: i32,
    /// Without credit: when the pause ends.
    until: Time,
    pause: Duration,
}

impl Default for Reputation {
    fn default() -> Reputation {
        Reputation {
            credit: Reputation::INITIAL_CREDIT,
            until: Time::ZERO,
            pause: Reputation::MIN_PAUSE,
        }
    }
}

impl Reputation {
    /// The initial credit; it doubles with every round of true notices.
    const INITIAL_CREDIT: i32 = 2;
    /// The largest credit: as many notices as can be pending.
    const MAX_CREDIT: i32 = 1024;
    /// The cost of a false notice beyond the credit spent on it.
    const PENALTY: i32 = 7;
    /// The first and the longest pause.
    const MIN_PAUSE: Duration = Duration::from_secs(1);
    const MAX_PAUSE: Duration = Duration::from_secs(64);

    /// Whether a notice may be accepted.
    pub(super) fn accepts(&self, now: Time) -> bool {
        self.credit > 0 || now >= self.until
    }

    /// Updates the credit by an outcome.
    pub(super) fn on_outcome(&mut self, now: Time, outcome: Outcome) {
        match outcome {
            // After a pause, one is accepted without credit.
            Outcome::Accepted => self.credit = self.credit.max(1) - 1,
            Outcome::Confirmed => self.credit = (self.credit + 2).min(Reputation::MAX_CREDIT),
            Outcome::Refuted => self.credit -= Reputation::PENALTY,
        }
        if outcome == Outcome::Refuted {
            self.pause = (self.pause * 2).min(Reputation::MAX_PAUSE);
        } else if self.credit >= Reputation::INITIAL_CREDIT {
            self.pause = Reputation::MIN_PAUSE;
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
        let mut reputation = Reputation::default();
        for _ in 0..2 {
            assert!(reputation.accepts(Time::ZERO));
            reputation.on_outcome(Time::ZERO, Outcome::Accepted);
        }
        assert!(!reputation.accepts(Time::ZERO));
    }

    #[test]
    fn true_notices_double_it_every_round_and_are_then_never_refused() {
        let mut reputation = Reputation::default();
        for round in 0..9 {
            for _ in 0..2 << round {
                assert!(reputation.accepts(second(round)));
                reputation.on_outcome(second(round), Outcome::Accepted);
            }
            (0..2 << round).for_each(|_| reputation.on_outcome(second(round), Outcome::Confirmed));
        }
        assert_eq!(reputation.credit, Reputation::MAX_CREDIT);
    }

    #[test]
    fn a_false_one_ends_what_little_credit_there_is_for_two_seconds_then_four() {
        let mut reputation = Reputation::default();
        reputation.on_outcome(second(0), Outcome::Accepted);
        reputation.on_outcome(second(0), Outcome::Refuted);
        assert!(!reputation.accepts(second(1)) && reputation.accepts(second(2)));
        reputation.on_outcome(second(2), Outcome::Accepted);
        reputation.on_outcome(second(2), Outcome::Refuted);
        assert!(!reputation.accepts(second(5)) && reputation.accepts(second(6)));
    }

    proptest! {
        /// Whatever the delay until the truth is known: who only forges is believed twice at
        /// first, then once in ever longer pauses.
        #[test]
        fn a_forger_is_believed_as_often_as_the_first_credit_and_the_pauses_allow(
            delays in prop::collection::vec(0usize..40, 2000),
        ) {
            let mut reputation = Reputation::default();
            let mut due = vec![0; 2100];
            let mut believed = 0;
            // One step is a tenth of a second, and the forger tries in each.
            for (step, delay) in delays.into_iter().enumerate() {
                let now = Time::ZERO + Duration::from_millis(100) * step as u64;
                for _ in 0..due[step] {
                    reputation.on_outcome(now, Outcome::Refuted);
                }
                if reputation.accepts(now) {
                    reputation.on_outcome(now, Outcome::Accepted);
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
            let mut reputation = Reputation::default();
            let (mut confirmed, mut refuted) = (0, 0);
            for is_true in truth {
                // No time passes: there is no second chance.
                if reputation.accepts(Time::ZERO + Duration::from_nanos(1)) || reputation.credit > 0 {
                    reputation.on_outcome(second(1), Outcome::Accepted);
                    let outcome = if is_true { Outcome::Confirmed } else { Outcome::Refuted };
                    reputation.on_outcome(second(1), outcome);
                    confirmed += i32::from(is_true);
                    refuted += i32::from(!is_true);
                }
            }
            prop_assert!(8 * refuted <= Reputation::INITIAL_CREDIT + confirmed + 8, "{refuted} of {confirmed}");
        }
    }
}
