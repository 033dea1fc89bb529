//! RACK: loss detection by send times (RFC 8985 §6).
//!
//! A range is lost if one that was sent later has been delivered, and a round trip and the
//! reordering window have passed since it was sent. Retransmissions have send times, too, so a lost
//! one is found like any other copy.
//!
//! Of ranges sent once, the scoreboard's order is the order of sending; retransmissions are in a
//! queue of their own. Each is examined until it is delivered or lost: an acknowledgment costs no
//! more the more is outstanding.

use super::DUP_THRESH;
use crate::scoreboard::{Delivery, Scoreboard, SendOrder, State};
use base::{Duration, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::CopyId;

/// RACK.reo_wnd_persist: recoveries without a DSACK block after which the reordering window is
/// small again.
const PERSIST: u32 = 16;

/// The state of RACK (RFC 8985 §5.3).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: of the segments delivered, the one that was sent last.
    latest: SendOrder,
    /// RACK.rtt: its round trip.
    rtt: Duration,
    /// RACK.reordering_seen
    reordering_seen: bool,
    /// RACK.dsack_round: further DSACK blocks count once this is acknowledged.
    dsack_round: Option<u64>,
    /// RACK.reo_wnd_mult, less one: quarters of a round trip that DSACK blocks have added.
    widened: u32,
    /// RACK.reo_wnd_persist
    persist: u32,
    /// RACK.reo_wnd
    window: Duration,
    /// Retransmissions, oldest first; the delivered, lost or repeated ones among them are skipped.
    retransmissions: VecDeque<(u64, CopyId)>,
}

/// An acknowledgment and the sender's state, as far as RACK needs them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContext {
    pub(crate) now: Time,
    /// The acknowledgment has a DSACK block.
    pub(crate) dsack: bool,
    /// The sender is in fast recovery, or recovers from a timeout.
    pub(crate) recovering: bool,
    pub(crate) min_rtt: Duration,
    pub(crate) srtt: Duration,
}

impl Rack {
    /// Notes the delivery of a copy that was sent once, by an acknowledgment at `at`.
    pub(crate) fn on_delivered(&mut self, at: Time, copy: SendOrder) {
        if copy > self.latest {
            self.latest = copy;
            self.rtt = at.since(copy.0);
        }
    }

    /// Updates the state by what an acknowledgment has delivered (RFC 8985 §6.2, steps 2 to 4).
    pub(crate) fn on_ack(&mut self, board: &Scoreboard, ack: &AckContext, delivery: &Delivery) {
        self.on_delivered(ack.now, delivery.latest);
        self.reordering_seen |= delivery.reordered;
        if self.dsack_round.is_some_and(|round| board.una() >= round) {
            self.dsack_round = None;
        }
        if ack.dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(board.nxt());
            self.widened = self.widened.saturating_add(1);
            self.persist = PERSIST;
        }
        let at_once =
            !self.reordering_seen && (ack.recovering || board.sacked_records() >= DUP_THRESH);
        self.window = if at_once {
            Duration::ZERO
        } else {
            (ack.min_rtt * u64::from(self.widened + 1) / 4).min(ack.srtt)
        };
    }

    /// Segments have arrived in another order than they were sent in. An arrival after the segment was
    /// retransmitted, which only a DSACK block reports, is no sign of it in RFC 8985 §6.2, step 3; but
    /// without one the reordering window stays zero, and each reordering that reaches the threshold of
    /// duplicates costs a spurious recovery.
    pub(crate) fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// A recovery has ended (RFC 8985 §6.2, step 4).
    pub(crate) fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.widened = 0;
        }
    }

    /// Notes a retransmission.
    pub(crate) fn on_retransmit(&mut self, index: u64, copy: CopyId) {
        self.retransmissions.push_back((index, copy));
    }

    /// Finds the retransmissions in flight again, because the ranges have other numbers.
    pub(crate) fn on_split(&mut self, board: &Scoreboard) {
        let mut resent: Vec<_> = (board.head()..)
            .map_while(|index| Some((index, board.try_get(index)?)))
            .filter(|(_, record)| record.state & (State::RESENT | State::SACKED) == State::RESENT)
            .map(|(index, record)| (record.order(), index, record.copy))
            .collect();
        resent.sort_unstable_by_key(|&(order, ..)| order);
        self.retransmissions = resent.into_iter().map(|(_, index, copy)| (index, copy)).collect();
    }

    /// A copy that was sent no later than this is lost, if one sent after it has been delivered.
    /// `None`: nothing is old enough.
    fn cutoff(&self, now: Time) -> Option<Time> {
        let age = self.rtt + self.window;
        (now.since(Time::ZERO) >= age).then(|| now - age)
    }

    /// When the timer expires, only what was sent no later than this counts as lost, beside the
    /// first range (RFC 8985 §6.3).
    pub(crate) fn cutoff_at_timeout(&self, now: Time) -> Time {
        self.cutoff(now).unwrap_or(Time::ZERO)
    }

    /// The next lost range (RFC 8985 §6.2, step 5).
    pub(crate) fn next_loss(&mut self, board: &mut Scoreboard, now: Time) -> Option<u64> {
        let cutoff = self.cutoff(now)?;
        while let Some(&(index, copy)) = self.retransmissions.front() {
            if let Some(order) = in_flight(board, index, copy) {
                if order >= self.latest || order.0 > cutoff {
                    break;
                }
                self.retransmissions.pop_front();
                return Some(index);
            }
            self.retransmissions.pop_front();
        }
        board.next_loss_by_time(self.latest, cutoff)
    }

    /// When the last of the ranges that were sent before a delivered one will be lost, if they are
    /// not delivered until then (RFC 8985 §6.2, step 5: RACK.reo_timer).
    pub(crate) fn deadline(&self, board: &Scoreboard) -> Option<Time> {
        let resent = self
            .retransmissions
            .iter()
            .filter_map(|&(index, copy)| in_flight(board, index, copy))
            .take_while(|&order| order < self.latest)
            .last();
        let last = board.last_sent_before(self.latest).max(resent.map(|order| order.0))?;
        Some(last + self.rtt + self.window)
    }
}

/// When a retransmission was sent, if it is still in flight.
fn in_flight(board: &Scoreboard, index: u64, copy: CopyId) -> Option<SendOrder> {
    let record = board.try_get(index)?;
    let in_flight =
        record.copy == copy && record.state & (State::RESENT | State::SACKED) == State::RESENT;
    in_flight.then(|| record.order())
}

#[cfg(test)]
mod tests;
