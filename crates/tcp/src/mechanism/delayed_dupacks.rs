//! Delayed duplicate acknowledgments: the receiver holds back the third and later ones, to give
//! the link below time to repair the loss itself. Nothing changes at the sender.

use super::{AckTiming, Arrival, Hooks, Needs, Rules};
use base::Duration;
use serde::{Deserialize, Serialize};

base::settings! {
    /// Holds back duplicate acknowledgments from the third on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct DelayedDupacks {
        /// How long they are held back, milliseconds: about the time that the link needs for a repair.
        pub delay_ms: u32,
    }
}

impl Default for DelayedDupacks {
    fn default() -> DelayedDupacks {
        DelayedDupacks { delay_ms: 100 }
    }
}

impl Rules for DelayedDupacks {
    const HOOKS: Hooks = Hooks::ARRIVAL;
    const NEEDS: Needs = Needs::RECEIVER;

    fn arrival(&mut self, arrival: &Arrival) -> Option<AckTiming> {
        let hold = arrival.duplicate_ack && arrival.duplicates >= 3;
        hold.then(|| AckTiming::After(Duration::from_millis(u64::from(self.delay_ms))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Time;

    #[test]
    fn the_first_two_duplicates_go_at_once_and_later_ones_wait() {
        let mut rules = DelayedDupacks { delay_ms: 50 };
        let mut timing = |duplicates| {
            let (now, duplicate_ack) = (Time::ZERO, duplicates > 0);
            rules.arrival(&Arrival { now, start: 0, end: 0, nxt: 0, duplicate_ack, duplicates })
        };
        assert_eq!(timing(2), None);
        assert_eq!(timing(3), Some(AckTiming::After(Duration::from_millis(50))));
        assert_eq!(timing(0), None);
    }
}
