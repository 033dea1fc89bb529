//! Loss notices that were acted on, until they prove true or false.

use super::{Ack, Sender};
use crate::mechanism::{Hooks, Mechanisms, Outcome};
use crate::scoreboard::Record;
use base::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Retransmissions on notices that may prove spurious; the latest last. Kept only if a mechanism
/// has the outcome hook.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Notices(VecDeque<Notice>);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Notice {
    start: u64,
    end: u64,
    /// When it was acted on.
    at: Time,
    /// SND.NXT at that time: once more than this is acknowledged, the outcome is known.
    nxt: u64,
    /// The range has arrived.
    arrived: bool,
}

impl Notices {
    /// The largest number of pending notices; beyond, the outcome of the oldest is not determined.
    const MOST: usize = 1024;

    /// Removes the notices that have an outcome; returns how many were true and how many false.
    fn settle(&mut self, mut outcome: impl FnMut(&mut Notice) -> Option<Outcome>) -> (u32, u32) {
        let (mut confirmed, mut refuted) = (0, 0);
        self.0.retain_mut(|notice| match outcome(notice) {
            Some(Outcome::Confirmed) => {
                confirmed += 1;
                false
            }
            Some(Outcome::Refuted) => {
                refuted += 1;
                false
            }
            Some(Outcome::Accepted) | None => true,
        });
        (confirmed, refuted)
    }
}

impl Notice {
    /// Whether it overlaps a range.
    fn overlaps(&self, (start, end): (u64, u64)) -> bool {
        self.start < end && start < self.end
    }

    /// Whether it lies within a range.
    fn is_within(&self, (start, end): (u64, u64)) -> bool {
        start <= self.start && self.end <= end
    }
}

impl Sender {
    /// Whether no outcome is pending.
    #[inline]
    pub(super) fn has_no_pending_notices(&self) -> bool {
        self.pending_notices.0.is_empty()
    }

    /// Records that a notice is acted on.
    pub(super) fn on_notice_accepted(
        &mut self,
        now: Time,
        record: &Record,
        mechanisms: &mut Mechanisms,
    ) {
        if !mechanisms.has_hook(Hooks::OUTCOME) {
            return;
        }
        let (start, end, nxt) = (record.start, record.end(), self.board.nxt());
        if self.pending_notices.0.len() == Notices::MOST {
            self.pending_notices.0.pop_front();
        }
        self.pending_notices.0.push_back(Notice { start, end, at: now, nxt, arrived: false });
        mechanisms.outcome(&self.view(now), Outcome::Accepted);
    }

    /// Checks pending notices against an acknowledgment; `blocks` are its SACK blocks without the
    /// DSACK block.
    #[inline]
    pub(super) fn check_notices(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        blocks: &[(u64, u64)],
        mechanisms: &mut Mechanisms,
    ) {
        if !self.pending_notices.0.is_empty() {
            self.check_pending_notices(now, ack, blocks, mechanisms);
        }
    }

    #[inline(never)]
    fn check_pending_notices(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        blocks: &[(u64, u64)],
        mechanisms: &mut Mechanisms,
    ) {
        let twice = ack.blocks.first().filter(|_| blocks.len() < ack.blocks.len()).copied();
        // RFC 8985 §6.2 uses the minimum round-trip time here, which is not measured on the fast
        // path. No path becomes twice as fast at once.
        let soonest = self.rtt.smoothed().unwrap_or_default() / 2;
        let settled = self.pending_notices.settle(|notice| {
            if twice.is_some_and(|range| notice.overlaps(range)) {
                return Some(Outcome::Refuted);
            }
            let arrives = ack.ack >= notice.end || blocks.iter().any(|&b| notice.is_within(b));
            if arrives && !notice.arrived && now.since(notice.at) < soonest {
                return Some(Outcome::Refuted);
            }
            notice.arrived |= arrives;
            None
        });
        self.report_outcomes(now, settled, mechanisms);
    }

    /// Confirms notices after SND.UNA has advanced, if no report can show them false any more.
    #[inline]
    pub(super) fn confirm_notices(&mut self, now: Time, mechanisms: &mut Mechanisms) {
        if !self.pending_notices.0.is_empty() {
            self.confirm_pending_notices(now, mechanisms);
        }
    }

    #[inline(never)]
    fn confirm_pending_notices(&mut self, now: Time, mechanisms: &mut Mechanisms) {
        let una = self.board.una();
        let settled = self.pending_notices.settle(|notice| {
            // A segment sent after the retransmission is acknowledged: a DSACK block for the range
            // would have arrived before.
            (una > notice.nxt).then_some(Outcome::Confirmed)
        });
        self.report_outcomes(now, settled, mechanisms);
    }

    fn report_outcomes(
        &mut self,
        now: Time,
        (confirmed, refuted): (u32, u32),
        mechanisms: &mut Mechanisms,
    ) {
        self.statistics.refuted += u64::from(refuted);
        let view = self.view(now);
        for _ in 0..refuted {
            mechanisms.outcome(&view, Outcome::Refuted);
        }
        for _ in 0..confirmed {
            mechanisms.outcome(&view, Outcome::Confirmed);
        }
    }
}
