//! Packetization layer path MTU discovery (RFC 4821): the path MTU is found by the segments that
//! arrive, without ICMP.
//!
//! The size of segments is the lower end of the search. A probe is one segment of new data that is
//! larger. If it arrives, segments become as large; if not, the upper end of the search is below it.

use super::{Sender, Transmission};
use crate::config::MtuProbing;
use crate::scoreboard::Record;
use base::{Duration, Time};
use core::ops::ControlFlow;
use serde::{Deserialize, Serialize};

/// The MSS that nearly all paths take, bytes (RFC 4821 §7.2; Linux: `tcp_base_mss`).
const BASE: u32 = 1024;

/// The least MSS at which the search begins, bytes (Linux: `tcp_mtu_probe_floor`).
const FLOOR: u32 = 48;

/// Consecutive timeouts that show a black hole (R1 of RFC 9293 §3.8.3; Linux: `tcp_retries1`).
const BLACK_HOLE: u32 = 3;

/// A search that is no wider than this is over (Linux: `tcp_probe_threshold`).
const NARROW: u32 = 8;

/// When it is over, the path may have changed after this time (RFC 4821 §7.4; Linux:
/// `tcp_probe_interval`).
const AGAIN: Duration = Duration::from_secs(600);

/// The smallest window with which probes are sent, in segments (Linux).
const LEAST: u64 = 11;

/// Segments that have to follow a probe, so that its loss is found without a timeout (RFC 4821 §7.5).
const FOLLOW: u64 = 4;

/// The search for the path MTU; sizes are octets of data in a segment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Search {
    mode: MtuProbing,
    /// Segments are probed: there was a black hole, or they always are.
    active: bool,
    /// What both ends, and the MTU that was reported, allow: search_high at its widest.
    most: u32,
    /// search_high: the largest size that may still pass.
    high: u32,
    /// The probe in flight: its first octet, and the one after its last.
    probe: Option<(u64, u64)>,
    /// When the search last came to an end, or began.
    at: Time,
}

impl Search {
    pub(super) fn new(mode: MtuProbing) -> Option<Box<Search>> {
        let search = Search { mode, active: false, most: 0, high: 0, probe: None, at: Time::ZERO };
        (mode != MtuProbing::Off).then(|| Box::new(search))
    }
}

impl Sender {
    /// Begins with the MSS that was negotiated.
    pub(super) fn begin_search(&mut self) {
        let Some(search) = &mut self.search else { return };
        search.most = self.mss;
        search.high = self.mss;
        if search.mode == MtuProbing::On {
            search.active = true;
            self.mss = self.mss.min(BASE);
        }
    }

    /// Larger segments were reported to be too big.
    pub(super) fn limit_search(&mut self, mss: u32) {
        if let Some(search) = &mut self.search {
            search.most = search.most.min(mss);
            search.high = search.high.min(mss);
        }
    }

    /// Handles the report that a probe was too big, and `mss` is not.
    pub(super) fn on_probe_too_big(&mut self, now: Time, mss: u32) {
        self.fail_probe(now);
        self.limit_search(mss);
    }

    /// Segments are cut, and a probe with them.
    pub(super) fn forget_probe(&mut self) {
        if let Some(search) = &mut self.search {
            search.probe = None;
        }
    }

    /// Handles a timeout: a probe has failed, or it is one of those that show a black hole (RFC 4821
    /// §7.7). As in Linux, their number counts and not the size of what was sent: the remainder of a
    /// segment that was cut may be too big, too.
    pub(super) fn on_timeout_while_searching(&mut self, now: Time) {
        if self.search.is_none() {
            return;
        }
        self.fail_probe(now);
        // Linux: BASE at first, then half.
        let high = self.mss;
        let smaller = if high > BASE { BASE } else { (high / 2).max(FLOOR.min(high)) };
        if self.consecutive_timeouts < BLACK_HOLE || smaller == high {
            return;
        }
        self.shrink(now, smaller);
        if let Some(search) = &mut self.search {
            search.active = true;
            search.at = now;
        }
    }

    /// Sends a probe if it is time for one. It waits for room in the windows, and what would follow
    /// waits with it, as in Linux: a stream that fills them would never let one out.
    pub(super) fn poll_mtu_probe(&mut self, now: Time) -> ControlFlow<Option<Transmission>> {
        let Some(len) = self.next_probe_len(now) else { return ControlFlow::Continue(()) };
        let (start, outstanding) = (self.board.nxt(), self.board.outstanding());
        if outstanding + len > self.window() || start + len > self.window_end {
            return match outstanding {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(None),
            };
        }
        if let Some(search) = &mut self.search {
            search.probe = Some((start, start + len));
        }
        ControlFlow::Break(Some(self.send_new(now, len)))
    }

    /// The size of a probe, if it is time for one (RFC 4821 §7.3, §7.4).
    fn next_probe_len(&mut self, now: Time) -> Option<u64> {
        let low = self.mss;
        let search = self.search.as_deref_mut().filter(|search| search.active)?;
        if search.high < low + NARROW {
            if search.most < low + NARROW || now.since(search.at) < AGAIN {
                return None;
            }
            search.high = search.most;
        }
        if search.probe.is_some() {
            return None;
        }
        let len = u64::from(low + (search.high - low).div_ceil(2));
        let (nxt, window) = (self.board.nxt(), self.window());
        let needed = len + FOLLOW * u64::from(low);
        let allowed = window >= needed.max(LEAST * u64::from(low)) && self.peer_window() >= needed;
        let follows = nxt > 0 && needed < self.stream.available(nxt);
        (allowed && follows && !self.is_held_by_pacing(now)).then_some(len)
    }

    /// Handles an acknowledgment: the probe has arrived, if it covers that.
    pub(super) fn on_ack_while_searching(&mut self, now: Time, ack: u64) {
        let Some(search) = &mut self.search else { return };
        let Some((start, end)) = search.probe else { return };
        if ack >= end && ack <= self.board.nxt() {
            search.probe = None;
            search.at = now;
            let mss = (end - start) as u32;
            self.mss = mss;
            // There may have been losses since the probe was sent. With nothing outstanding, a window
            // of less than a segment would never grow again.
            self.controller.on_larger_segments(mss);
            self.log.push(|| crate::event::Event::PathMtu { mss });
        }
    }

    /// Whether a lost range is a probe: its loss shows the path MTU, and no congestion (RFC 4821 §7.6).
    /// What others are lost with it count by themselves.
    pub(super) fn is_failed_probe(&mut self, now: Time, lost: &Record) -> bool {
        let probe = self.search.as_ref().and_then(|search| search.probe);
        let failed = probe.is_some_and(|(start, end)| (lost.start, lost.end()) == (start, end));
        if failed {
            self.fail_probe(now);
        }
        failed
    }

    /// Segments of a probe's size do not arrive: the upper end of the search is below it.
    fn fail_probe(&mut self, now: Time) {
        let mss = self.mss;
        let Some(search) = &mut self.search else { return };
        let Some((start, end)) = search.probe else { return };
        search.high = ((end - start) as u32 - 1).max(mss);
        search.at = now;
        self.shrink(now, mss); // Only the probe is larger.
    }
}
