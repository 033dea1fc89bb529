//! When to acknowledge.

use super::Receiver;
use crate::mechanism::{AckTiming, Arrival, Hooks, Mechanisms};
use base::Time;
use serde::{Deserialize, Serialize};

/// The acknowledgments that are due to the peer: now, or later, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingAcks {
    now: u32,
    later: u32,
    /// When the later ones become due at the latest; [`Time::NEVER`] if there are none.
    at: Time,
}

impl PendingAcks {
    pub(super) const NONE: PendingAcks = PendingAcks::now(0);

    const fn now(count: u32) -> PendingAcks {
        PendingAcks { now: count, later: 0, at: Time::NEVER }
    }
}

impl Receiver {
    /// The acknowledgments due after an out-of-order segment, a duplicate or a filled gap; a mechanism
    /// may delay them.
    pub(super) fn ack_timing(&self, arrival: &Arrival, mechanisms: &mut Mechanisms) -> PendingAcks {
        if mechanisms.has_hook(Hooks::ARRIVAL) {
            let now = arrival.now;
            if let Some(AckTiming::After(delay)) = mechanisms.arrival(arrival)
                && self.pending_acks.now == 0
            {
                let PendingAcks { later, at, .. } = self.pending_acks;
                return PendingAcks { now: 0, later: later + 1, at: at.min(now + delay) };
            }
        }
        PendingAcks::now(self.pending_acks.now + 1)
    }

    /// Schedules the acknowledgment of `len` bytes of in-order data: at once for every second
    /// segment, else within the delay (RFC 5681 §4.2). A unit of several merged segments counts as
    /// two.
    #[inline(always)]
    pub(super) fn delay_ack(&mut self, now: Time, len: u32) {
        self.unacknowledged += 1 + u32::from(len / 2 >= self.mss);
        if self.pending_acks.now > 0 {
            return;
        }
        if let Some(delay) = self.delayed_ack
            && self.unacknowledged < 2
            && self.pending_acks.later == 0
        {
            self.pending_acks = PendingAcks { now: 0, later: 1, at: now + delay };
        } else {
            self.pending_acks = PendingAcks::now(1);
        }
    }

    /// Schedules an acknowledgment at once.
    #[inline]
    pub(crate) fn acknowledge_now(&mut self) {
        self.pending_acks = PendingAcks::now(self.pending_acks.now + 1);
    }

    /// Whether an acknowledgment is due now.
    #[inline]
    pub(crate) fn ack_due(&self) -> bool {
        self.pending_acks.now > 0
    }

    /// Whether data has arrived that is not acknowledged.
    pub(crate) fn has_unacknowledged(&self) -> bool {
        self.unacknowledged > 0 || self.ack_due()
    }

    /// When an acknowledgment will be due at the latest.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.pending_acks.at
    }

    /// Handles the delayed-acknowledgment timer.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        if self.pending_acks.at <= now {
            self.pending_acks = PendingAcks::now(self.pending_acks.later);
        }
    }

    /// Cancels all acknowledgments: the connection is closed.
    pub(crate) fn stop(&mut self) {
        self.pending_acks = PendingAcks::NONE;
    }

    /// Notes that an acknowledgment is sent: a pure one, or one with data, which covers all that
    /// are due.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self, pure: bool) {
        self.unacknowledged = 0;
        // Duplicates are counted by the peer: each must be a segment of its own.
        self.pending_acks =
            PendingAcks::now(if pure { self.pending_acks.now.saturating_sub(1) } else { 0 });
    }
}
