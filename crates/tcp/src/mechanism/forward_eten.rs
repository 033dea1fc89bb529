//! Forward ETEN, both ends: the receiver learns of a corruption and echoes it in its
//! acknowledgments (`bbn8333` §2.1.3).
//!
//! How the receiver learns of it (by a separate packet, the flow's next one, or the corrupted one)
//! does not matter here.

use super::eten::{Eten, Suppression};
use super::{Action, Hooks, Incoming, Loss, Needs, Outcome, Rules, Verdict, View};
use crate::indication::Indication;
use base::settings::{Described, Key};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::{Body, CopyId, CorruptionEcho, Flags, Options, Packet, Segment, SeqNumber};

/// The receiver echoes reports in its acknowledgments until the octets have arrived; the sender
/// retransmits the reported octets without a congestion response.
///
/// An acknowledgment sent only for a report is marked and does not count as a duplicate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForwardEten {
    /// The sender's part: the reaction to an echo.
    #[serde(flatten)]
    sender: Eten,
    /// Reports about octets that have not arrived, the next to be echoed first.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    reports: VecDeque<Report>,
    /// The last segment had no room for a report.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    option_pending: bool,
}

/// A report of a corrupted copy from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Report {
    seq: SeqNumber,
    copy: CopyId,
    len: u16,
    /// It has not been echoed yet.
    fresh: bool,
}

impl Report {
    /// The octet after the last.
    fn end(&self) -> SeqNumber {
        self.seq + u32::from(self.len)
    }
}

impl Described for ForwardEten {
    const KEYS: &'static [Key] = Eten::KEYS;
}

impl ForwardEten {
    /// The largest number of reports. Beyond, the one echoed last is dropped: if that echo is lost,
    /// the hole is left to the usual loss recovery.
    const MAX_REPORTS: usize = 64;

    /// Both ends with this setting.
    #[must_use]
    pub fn new(suppress_dupacks: Suppression) -> ForwardEten {
        ForwardEten { sender: Eten::new(suppress_dupacks), ..ForwardEten::default() }
    }

    /// Drops reports about octets that an outgoing acknowledgment covers.
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
        Self::HOOKS.union(self.sender.hooks())
    }

    fn indication(&mut self, _view: &View, indication: &Indication) -> Option<Action> {
        let Indication::PeerCorrupted { seq, len: len @ 1.., copy } = *indication else {
            return None;
        };
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        // A known report of the same copy is ignored.
        if self.reports.iter().any(|known| (known.seq, known.copy) == (seq, copy)) {
            return None;
        }
        self.reports.retain(|known| known.seq != seq);
        if self.reports.len() == ForwardEten::MAX_REPORTS {
            self.reports.pop_back();
        }
        self.reports.push_front(Report { seq, copy, len, fresh: true });
        Some(Action::Acknowledge)
    }

    fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        self.option_pending = false;
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
                self.option_pending = true;
                return;
            };
            options.sack.truncate(blocks);
        }
        segment.options = options;
        report.fresh = false;
        self.reports.rotate_left(1);
    }

    fn has_pending_option(&self) -> bool {
        self.option_pending
    }

    fn incoming(&mut self, view: &View, segment: &Segment) -> Option<Incoming> {
        let CorruptionEcho { seq, copy, len, alone } = segment.options.corrupted?;
        let action = self.sender.action_for(view, seq, u32::from(len), copy);
        Some(Incoming { action, may_be_dupack: !alone, ..Incoming::NO_OPINION })
    }

    fn loss(&mut self, view: &View, loss: &Loss) -> Option<Verdict> {
        self.sender.loss(view, loss)
    }

    fn outcome(&mut self, view: &View, outcome: Outcome) {
        self.sender.outcome(view, outcome);
    }
}
