//! F-RTO: whether a timeout was spurious (RFC 5682 §3, with selective acknowledgments).
//!
//! A timeout is spurious if the segments were only late, as behind a radio link that repairs
//! losses, or during a handoff. Then acknowledgments arrive of ranges that were never sent again.

use super::Sender;
use crate::recovery::Phase;
use crate::scoreboard::Delivery;
use serde::{Deserialize, Serialize};

/// The progress of F-RTO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Frto {
    /// Off, or decided.
    #[default]
    Idle,
    /// The first segment is sent again (step 1).
    Retransmitted,
    /// New data is sent, and nothing is retransmitted before the next acknowledgment (step 2b).
    SentNew,
}

impl Sender {
    /// The timer has expired in `phase`. A timeout in fast recovery follows a loss that is real, and
    /// after an earlier timeout, late acknowledgments may be about what that has sent (step 1).
    pub(super) fn start_frto(&mut self, phase: Phase) {
        let first = phase == Phase::Open;
        let possible = self.config.frto && self.detector.uses_sack() && self.board.una() > 0;
        self.frto = if first && possible { Frto::Retransmitted } else { Frto::Idle };
    }

    /// Processes an acknowledgment. `recover` was SND.NXT at the timeout, if nothing was sent since
    /// (step 2b).
    pub(super) fn update_frto(&mut self, recover: u64, advanced: bool, delivery: &Delivery) {
        if self.frto == Frto::Idle {
            return;
        }
        if delivery.first_original <= recover {
            // Step 3b: what the timeout counts as lost arrives.
            self.frto = Frto::Idle;
            return self.undo_timeout();
        }
        let proceeds = self.frto == Frto::Retransmitted
            && advanced
            && self.phase == Phase::Loss
            && self.next_new().is_some();
        self.frto = if proceeds {
            self.recover = self.board.nxt();
            Frto::SentNew
        } else if advanced || self.frto == Frto::SentNew {
            // Step 3a, or there is no new data.
            Frto::Idle
        } else {
            self.frto
        };
    }

    /// The length of the next segment of new data, if the window has room: it is one segment after
    /// the timeout and two after the first acknowledgment (step 2b).
    pub(super) fn next_new(&self) -> Option<u64> {
        self.next_len().filter(|&len| self.pipe() + len <= self.window())
    }

    /// Undoes the reduction of the timeout, and its marks of losses.
    fn undo_timeout(&mut self) {
        self.reduced_until = self.board.una();
        self.board.clear_congestion_losses();
        self.undo_reduction(true);
    }
}
