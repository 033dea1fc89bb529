//! The path MTU: the largest segment that reaches the peer.

use super::{Connection, Negotiated};
use base::Time;
use wire::{Options, SeqNumber};

impl Connection {
    /// Limits the segments of a new connection by a path MTU that is already known: `mss` is that MTU
    /// less the fixed headers of IP and TCP, bytes. The MSS that we announce stays: it is about
    /// what we receive (RFC 9293 §3.7.1).
    pub fn limit_mss(&mut self, mss: u16) {
        self.path_mss = mss.max(self.minimum_mss);
    }

    /// The path MTU that reports have shown, less the fixed headers of IP and TCP, bytes; `u32::MAX`
    /// if there was none.
    #[must_use]
    pub fn reported_mss(&self) -> u32 {
        self.sender.reported_mss.saturating_add(self.options_len())
    }

    /// Octets of data in a full-sized segment, if data and options may have `mss` (RFC 6691).
    pub(super) fn data_len(&self, mss: u16) -> u32 {
        u32::from(mss).saturating_sub(self.options_len()).max(1)
    }

    /// Octets of options in a full-sized segment.
    fn options_len(&self) -> u32 {
        let stamps = self.negotiated.contains(Negotiated::TIMESTAMPS);
        self.mechanisms.overhead() + if stamps { Options::TIMESTAMPS as u32 } else { 0 }
    }

    /// Handles the report that a segment was too big.
    pub(super) fn on_too_big(&mut self, now: Time, seq: SeqNumber, mss: u16) {
        // No smaller than what a peer may announce: tiny segments would multiply the packets.
        let mss = self.data_len(mss.max(self.minimum_mss));
        if let Some(start) = self.sent_offset(seq) {
            self.sender.on_too_big(now, start, mss);
        }
    }
}
