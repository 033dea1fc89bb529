//! The detection of a path on which everything is marked (RFC 9768 §3.2.2.3).

use serde::{Deserialize, Serialize};

/// Round trips, from the first on, in which every packet has to be reported as marked. The RFC leaves
/// it open: "the first three or four rounds".
const ROUNDS: u8 = 4;

/// Whether all of our packets so far were reported as marked.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Continuous {
    /// Round trips that have begun.
    rounds: u8,
    /// SND.NXT when the last of them began.
    round_end: u64,
    /// It is decided.
    over: bool,
}

impl Continuous {
    /// Processes feedback that acknowledges up to `ack` while SND.NXT is `nxt`, with the segments that it
    /// newly delivers and the packets that it newly reports as marked. Returns whether the marks prove
    /// to be continuous.
    pub(super) fn on_feedback(&mut self, ack: u64, nxt: u64, delivered: u64, marked: u64) -> bool {
        if self.over || delivered == 0 {
            return false;
        }
        if marked < delivered {
            self.over = true;
            return false;
        }
        // What was sent since it began is acknowledged.
        if ack > self.round_end {
            self.rounds += 1;
            self.round_end = nxt;
        }
        self.over = self.rounds > ROUNDS;
        self.over
    }
}
