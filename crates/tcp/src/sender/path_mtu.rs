//! The path MTU: smaller segments after a report that one was too big (RFC 1191, RFC 8201, RFC
//! 5927).

use super::{Frto, Sender};
use crate::event::Event;
use base::Time;
use serde::{Deserialize, Serialize};

/// A report that a segment was too big, about one that is outstanding.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct TooBig {
    /// The segment's first octet.
    start: u64,
    /// Octets of data that a segment may carry.
    mss: u32,
}

impl Sender {
    /// Handles the report that the segment at `start` was too big: `mss` octets of data are not.
    ///
    /// A report may be forged, so it has to name an outstanding segment that is larger than what it
    /// allows (RFC 5927 §4.1, §7.2). Once as much as the segment carries had been delivered before
    /// it was sent, the path has shown that it takes such segments. Then the report counts only if
    /// the timer expires as well (RFC 5927 §7.2): if the segment arrives, it was false.
    pub(crate) fn on_too_big(&mut self, now: Time, start: u64, mss: u32) {
        let Some(record) = self.board.find(start).map(|index| *self.board.get(index)) else {
            return;
        };
        if record.start != start || record.data_len(self.fin()) <= mss {
            return;
        }
        if mss >= self.mss {
            return self.on_probe_too_big(now, mss);
        }
        if record.sent.delivered < u64::from(record.len) {
            return self.believe(now, mss);
        }
        // Of several, the first that may still be confirmed.
        let una = self.board.una();
        if self.too_big.is_none_or(|known| known.start < una) {
            self.too_big = Some(TooBig { start, mss });
        }
    }

    /// Handles a timeout that confirms a report; false if there is none.
    pub(super) fn confirm_too_big(&mut self, now: Time) -> bool {
        let Some(TooBig { start, mss }) = self.too_big.take() else { return false };
        let confirmed = start >= self.board.una() && mss < self.mss;
        if confirmed {
            self.rtt.end_back_off();
            self.believe(now, mss);
            // No acknowledgments clock out a whole window any more (RFC 5681 §4.1).
            self.controller.on_idle(self.config.initial_window.bytes(mss));
        }
        confirmed
    }

    /// Acts on a report.
    fn believe(&mut self, now: Time, mss: u32) {
        self.reported_mss = mss;
        self.limit_search(mss);
        self.shrink(now, mss);
    }

    /// Sends segments of at most `mss` octets of data from now on. Larger ones in flight are lost: they
    /// are cut and retransmitted at once. The window stays as it is, for such a loss is no sign of
    /// congestion (RFC 1191 §6.4, RFC 8201 §5.4).
    pub(super) fn shrink(&mut self, now: Time, mss: u32) {
        self.mss = mss;
        self.too_big = None;
        self.forget_probe();
        self.log.push(|| Event::PathMtu { mss });
        let fin = self.fin();
        if !self.board.split(mss, fin) {
            return;
        }
        self.detector.on_split(&self.board);
        self.probe = None;
        self.frto = Frto::Idle;
        self.restart_timer(now);
    }

    /// The number of the FIN, if there is one.
    fn fin(&self) -> Option<u64> {
        self.stream.is_closed().then(|| self.stream.end() - 1)
    }
}
