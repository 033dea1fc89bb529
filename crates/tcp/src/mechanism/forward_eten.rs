//! Forward ETEN, both ends: the receiver hears of a corruption and echoes it in its
//! acknowledgments (`bbn8333` §2.1.3).
//!
//! How word comes to the receiver (in a packet of its own, with the flow's next one, by the
//! corrupted one) is not its business.

use super::eten::{Eten, Suppression};
use super::{Action, Hooks, Incoming, Loss, Needs, Outcome, Rules, Verdict, View};
use crate::indication::{Indication, Subject};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::{Body, CopyId, CorruptionEcho, Flags, Options, Packet, Segment, SeqNumber};

/// The receiver repeats what it was told in every acknowledgment until the octets have arrived; the
/// sender retransmits, without touching the congestion state, what an echo names.
///
/// An acknowledgment that is sent because of a report alone says so, and is no duplicate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForwardEten {
    /// The sender's part, once it has been told.
    #[serde(flatten)]
    told: Eten,
    /// What the receiver was told and has not got; the next to be echoed first.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    reports: VecDeque<Report>,
    /// The last segment had no room for any of it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    waiting: bool,
}

/// A copy that was corrupted on its way to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Report {
    seq: SeqNumber,
    copy: CopyId,
    len: u16,
    /// An acknowledgment is owed on its account.
    fresh: bool,
}

impl Report {
    /// The octet after the last.
    fn end(&self) -> SeqNumber {
        self.seq + u32::from(self.len)
    }
}

impl ForwardEten {
    /// So many reports are remembered. If there are more, the one echoed last is forgotten: should
    /// that echo be lost, the hole is left to the rest of TCP.
    const MOST: usize = 64;

    /// Both ends with this setting.
    #[must_use]
    pub fn new(suppress_dupacks: Suppression) -> ForwardEten {
        ForwardEten { told: Eten::new(suppress_dupacks), ..ForwardEten::default() }
    }

    /// Forgets what has arrived, as an acknowledgment says.
    fn forget(&mut self, segment: &Segment) {
        let blocks = segment.options.sack.as_slice();
        self.reports.retain(|report| {
            let held = |block: &wire::SackBlock| {
                report.seq.beyond(block.start) >= 0 && block.end.beyond(report.end()) >= 0
            };
            segment.ack.beyond(report.end()) < 0 && !blocks.iter().any(held)
        });
    }
}

impl Rules for ForwardEten {
    const HOOKS: Hooks = Eten::HOOKS.union(Hooks::OUTGOING).union(Hooks::INCOMING);
    const NEEDS: Needs = Eten::NEEDS.union(Needs::RECEIVER);

    fn hooks(&self) -> Hooks {
        Self::HOOKS.union(self.told.hooks())
    }

    fn indication(&mut self, _view: &View, indication: &Indication) -> Option<Action> {
        let Subject::PeerCorrupted { seq, len: len @ 1.., copy } = indication.subject else {
            return None;
        };
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        // Only of a later copy is it news.
        if self.reports.iter().any(|known| (known.seq, known.copy) == (seq, copy)) {
            return None;
        }
        self.reports.retain(|known| known.seq != seq);
        if self.reports.len() == ForwardEten::MOST {
            self.reports.pop_back();
        }
        self.reports.push_front(Report { seq, copy, len, fresh: true });
        Some(Action::Acknowledge)
    }

    fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        self.waiting = false;
        let bytes = packet.payload.len;
        let Body::Tcp(segment) = &mut packet.body else { return };
        let control = segment.flags & (Flags::ACK | Flags::SYN | Flags::RST);
        if control != Flags::ACK || self.reports.is_empty() {
            return;
        }
        self.forget(segment);
        let Some(report) = self.reports.front_mut() else { return };
        let mut room = Options::ROOM;
        if bytes > 0 {
            // A full-sized segment has timestamps, if they are agreed on (RFC 6691).
            let stamps = Options { timestamps: segment.options.timestamps, ..Options::default() };
            room = room.min(stamps.len() + view.mss.saturating_sub(bytes) as usize);
        }
        let Report { seq, copy, len, fresh } = *report;
        let mut options = segment.options;
        options.corrupted = Some(CorruptionEcho { seq, copy, len, alone: fresh });
        // SACK blocks get what is left.
        while options.len() > room {
            let Some(blocks) = options.sack.as_slice().len().checked_sub(1) else {
                self.waiting = true;
                return;
            };
            options.sack.truncate(blocks);
        }
        segment.options = options;
        report.fresh = false;
        self.reports.rotate_left(1);
    }

    fn is_waiting(&self) -> bool {
        self.waiting
    }

    fn incoming(&mut self, view: &View, segment: &Segment) -> Option<Incoming> {
        let CorruptionEcho { seq, copy, len, alone } = segment.options.corrupted?;
        let action = self.told.repair(view, seq, u32::from(len), copy);
        Some(Incoming { action, may_count: !alone, ..Incoming::PLAIN })
    }

    fn loss(&mut self, view: &View, loss: &Loss) -> Option<Verdict> {
        self.told.loss(view, loss)
    }

    fn outcome(&mut self, view: &View, outcome: Outcome) {
        self.told.outcome(view, outcome);
    }
}
