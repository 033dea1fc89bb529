//! The records of the scoreboard: ranges in flight, their state, and the delivery state when they were sent.

use base::Time;
use bitflags::bitflags;
use serde::{Deserialize, Serialize};
use wire::CopyId;

bitflags! {
    /// The state of a range.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub(crate) struct State: u8 {
        /// The receiver has SACKed it (RFC 2018).
        const SACKED = 1;
        /// Its copies so far count as lost.
        const LOST = 1 << 1;
        /// A copy sent since is in flight, in addition or instead.
        const RESENT = 1 << 2;
        /// More than one copy was sent (Karn), or the path has changed: no round-trip sample.
        const AMBIGUOUS = 1 << 3;
        /// Its loss is corruption, not congestion.
        const CORRUPTED = 1 << 4;
    }
}

impl State {
    /// Whether it waits for retransmission.
    pub(super) fn is_pending(self) -> bool {
        self & (State::LOST | State::RESENT | State::SACKED) == State::LOST
    }
}

/// A range of sequence numbers in flight and its latest copy.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) start: u64,
    pub(crate) len: u32,
    /// The latest copy.
    pub(crate) copy: CopyId,
    pub(crate) sent: Sent,
    pub(crate) state: State,
}

/// The delivery state when a copy was sent: octets delivered, and since when
/// (draft-cheng-iccrg-delivery-rate-estimation §3.1).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Bytes delivered.
    pub(crate) delivered: u64,
    /// When the copy was sent.
    pub(crate) at: Time,
    /// When the last of them was delivered.
    pub(crate) delivered_at: Time,
    /// When the copy that delivered it had been sent: the start of the sampling window.
    pub(crate) first_sent_at: Time,
    /// The flight, if the congestion controller models the path.
    pub(crate) flight: Flight,
}

/// The flight when a copy was sent, itself included: octets in the network, below 2^31, and whether
/// the application limited it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flight(u32);

impl Flight {
    const APP_LIMITED: u32 = 1 << 31;

    pub(crate) fn new(octets: u64, app_limited: bool) -> Flight {
        let octets = octets.min(u64::from(Flight::APP_LIMITED - 1)) as u32;
        Flight(if app_limited { octets | Flight::APP_LIMITED } else { octets })
    }

    pub(crate) fn octets(self) -> u64 {
        u64::from(self.0 & !Flight::APP_LIMITED)
    }

    pub(crate) fn is_app_limited(self) -> bool {
        self.0 & Flight::APP_LIMITED != 0
    }
}

/// Delivery so far.
//
// An acknowledgment writes these fields one by one, and the segment that it lets out records them
// at once. No two of them lie side by side as in [`Sent`], or they would be copied as a pair, which
// has to wait until both have left the store buffer.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Delivered {
    /// When the last was delivered.
    pub(crate) at: Time,
    /// Bytes delivered.
    pub(crate) bytes: u64,
    /// When the copy that delivered the last had been sent.
    pub(crate) first_sent_at: Time,
}

impl Delivered {
    /// The delivery state for a copy that is sent now.
    #[inline]
    pub(crate) fn sent(&self, now: Time, flight: Flight) -> Sent {
        Sent {
            delivered: self.bytes,
            at: now,
            delivered_at: self.at,
            first_sent_at: self.first_sent_at,
            flight,
        }
    }
}

/// The order in which copies were sent: by time, and by the end of the range within one time (RFC
/// 8985 §6.2, RACK_sent_after).
pub(crate) type SendOrder = (Time, u64);

impl Record {
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    /// Octets without the FIN, whose number is `fin`.
    pub(crate) fn data_len(&self, fin: Option<u64>) -> u32 {
        self.len - u32::from(fin.is_some_and(|fin| self.start <= fin && fin < self.end()))
    }

    /// Its latest copy's place in the order of sending.
    pub(crate) fn order(&self) -> SendOrder {
        (self.sent.at, self.end())
    }

    /// Whether it waits for retransmission.
    pub(crate) fn is_pending(&self) -> bool {
        self.state.is_pending()
    }
}

/// What an acknowledgment has delivered, by the times of sending (RFC 8985 §6.2, steps 2 and 3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Of the copies delivered, the one that was sent last.
    pub(crate) latest: SendOrder,
    /// A range that was sent once has arrived after one that was sent later.
    pub(crate) reordered: bool,
    /// The end of the first range that was sent once; `u64::MAX` if there is none.
    pub(crate) first_original: u64,
}

impl Default for Delivery {
    fn default() -> Delivery {
        Delivery { latest: (Time::ZERO, 0), reordered: false, first_original: u64::MAX }
    }
}

impl Delivery {
    /// Adds a delivered range. `fack` is the end of what was delivered before. A retransmission
    /// counts if it was sent no later than `resent_until`: otherwise it is an earlier copy that has
    /// arrived.
    pub(super) fn add(&mut self, record: &Record, fack: u64, resent_until: Time) {
        let resent = record.state.contains(State::AMBIGUOUS);
        if !resent || record.sent.at <= resent_until {
            self.latest = self.latest.max(record.order());
        }
        if !resent {
            self.reordered |= record.end() < fack;
            self.first_original = self.first_original.min(record.end());
        }
    }

    /// Both.
    pub(crate) fn and(self, other: Delivery) -> Delivery {
        Delivery {
            latest: self.latest.max(other.latest),
            reordered: self.reordered || other.reordered,
            first_original: self.first_original.min(other.first_original),
        }
    }
}
