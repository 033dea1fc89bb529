//! Notices that were believed, until it is known whether they were true.

use super::{Ack, Sender};
use crate::mechanism::{Hooks, Mechanisms, Outcome};
use crate::scoreboard::Record;
use base::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What was sent again because somebody said that it was lost, and may prove to have been needless;
/// the latest last. Kept only if somebody wants to know.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Notices(VecDeque<Notice>);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Notice {
    start: u64,
    end: u64,
    /// When it was believed.
    at: Time,
    /// SND.NXT then: once more than this is acknowledged, what comes of the retransmission is known.
    nxt: u64,
    /// The range has arrived.
    arrived: bool,
}

impl Notices {
    /// Whoever believes more at once does not learn what became of the first.
    const MOST: usize = 1024;

    /// Takes out all that `outcome` knows of, and says how many of them were true and how many false.
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
            Some(Outcome::Believed) | None => true,
        });
        (confirmed, refuted)
    }
}

impl Notice {
    /// Whether it is of something in this range.
    fn overlaps(&self, (start, end): (u64, u64)) -> bool {
        self.start < end && start < self.end
    }

    /// Whether the range holds all that it is of.
    fn is_within(&self, (start, end): (u64, u64)) -> bool {
        start <= self.start && self.end <= end
    }
}

impl Sender {
    /// Whether nothing is to be learned of a notice that was believed.
    #[inline]
    pub(super) fn has_settled_notices(&self) -> bool {
        self.believed.0.is_empty()
    }

    /// A notice of a record is acted on.
    pub(super) fn on_believed(&mut self, now: Time, record: &Record, mechanisms: &mut Mechanisms) {
        if !mechanisms.answer(Hooks::OUTCOME) {
            return;
        }
        let (start, end, nxt) = (record.start, record.end(), self.board.nxt());
        if self.believed.0.len() == Notices::MOST {
            self.believed.0.pop_front();
        }
        self.believed.0.push_back(Notice { start, end, at: now, nxt, arrived: false });
        mechanisms.outcome(&self.view(now), Outcome::Believed);
    }

    /// What an acknowledgment, with its `blocks` but for the one that reports what arrived twice,
    /// says of notices that were believed.
    #[inline]
    pub(super) fn weigh_notices(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        blocks: &[(u64, u64)],
        mechanisms: &mut Mechanisms,
    ) {
        if !self.believed.0.is_empty() {
            self.weigh(now, ack, blocks, mechanisms);
        }
    }

    #[inline(never)]
    fn weigh(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        blocks: &[(u64, u64)],
        mechanisms: &mut Mechanisms,
    ) {
        let twice = ack.blocks.first().filter(|_| blocks.len() < ack.blocks.len()).copied();
        // RFC 8985 §6.2 has the shortest round trip here, which is not measured on every road. No
        // path is at once twice as fast as it was.
        let soonest = self.rtt.smoothed().unwrap_or_default() / 2;
        let settled = self.believed.settle(|notice| {
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
        self.tell_outcomes(now, settled, mechanisms);
    }

    /// After SND.UNA has advanced: notices about which nothing bad can come to light any more were true.
    #[inline]
    pub(super) fn settle_notices(&mut self, now: Time, mechanisms: &mut Mechanisms) {
        if !self.believed.0.is_empty() {
            self.settle(now, mechanisms);
        }
    }

    #[inline(never)]
    fn settle(&mut self, now: Time, mechanisms: &mut Mechanisms) {
        let una = self.board.una();
        let settled = self.believed.settle(|notice| {
            // What was sent after the retransmission has come round: so would have a report that
            // the range had arrived twice.
            (una > notice.nxt).then_some(Outcome::Confirmed)
        });
        self.tell_outcomes(now, settled, mechanisms);
    }

    fn tell_outcomes(
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
