//! `[testbed]`: how a scenario is run on real packets.

use crate::reading::quantity::{Probability, Written};
use crate::reading::shape::table;
use crate::reading::words::words;
use base::Duration;
use serde::{Deserialize, Serialize};

/// Settings for runs on real packets, which the lab ignores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Testbed {
    /// A packet that leaves a link more than this after its time is late.
    pub late: Duration,
    /// A run is void if a larger share of the packets was late, or lost outside the link models.
    pub void_above: f64,
    /// What happens to a packet that a link corrupts.
    pub corrupted: Corrupted,
}

/// What happens to a packet that a link corrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corrupted {
    /// The node at the link's end drops it, and may notify its source.
    #[default]
    Drop,
    /// It is forwarded with bits flipped, which a checksum at its destination detects.
    Flip,
}

impl Default for Testbed {
    fn default() -> Testbed {
        Testbed { late: Duration::from_millis(1), void_above: 0.01, corrupted: Corrupted::Drop }
    }
}

words! { Corrupted }

table! {
    /// Settings for runs on real packets (`lasthop run --testbed`); otherwise without effect.
    pub(crate) struct Table {
        /// A packet that leaves a link more than this after its time is late; 1 ms if absent.
        late: Written<Duration>;
        /// A run is void if a larger share of the packets was late, or lost outside the link
        /// models.
        void_above: Probability = Probability(Testbed::default().void_above);
        /// What happens to a packet that a link corrupts: the node at the link's end drops it, or
        /// forwards it with bits flipped.
        corrupted: Corrupted = Corrupted::default();
    }
}

impl Table {
    pub(crate) fn resolve(self) -> Testbed {
        Testbed {
            late: self.late.map_or(Testbed::default().late, |late| late.0),
            void_above: self.void_above.0,
            corrupted: self.corrupted,
        }
    }
}
