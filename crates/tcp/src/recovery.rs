//! Loss detection and the order of retransmissions: a closed set of algorithms.
//!
//! They look at acknowledgments and at the scoreboard and name what is lost. What a loss means
//! for the window is decided elsewhere.

use crate::scoreboard::{Advanced, Scoreboard, State};
use serde::{Deserialize, Serialize};

/// Duplicate acknowledgments that make a loss (RFC 5681 §3.2, RFC 6675 §2).
const DUP_THRESH: u32 = 3;

/// How losses are detected and repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// Fast retransmit, then slow start over everything outstanding (Jacobson 1988).
    Tahoe,
    /// Fast retransmit and fast recovery, which the first new acknowledgment ends (RFC 5681 §3.2,
    /// as first specified in RFC 2001).
    Reno,
    /// Fast recovery that repairs one hole per round trip (RFC 6582).
    NewReno,
    /// Selective acknowledgments with a conservative pipe (RFC 6675).
    #[default]
    Sack,
}

impl Recovery {
    /// Every algorithm with the name it has in scenario files.
    pub const ALL: &[(&str, Recovery)] = &[
        ("tahoe", Recovery::Tahoe),
        ("reno", Recovery::Reno),
        ("newreno", Recovery::NewReno),
        ("sack", Recovery::Sack),
    ];
}

/// Where the sender stands with respect to congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// No congestion episode.
    Open,
    /// The window was reduced for an episode that is not over.
    Recovery,
    /// A timeout (or Tahoe) has declared everything lost.
    Loss,
}

/// The detector's memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Detector {
    recovery: Recovery,
    /// Duplicate acknowledgments that stand for octets received above the first hole.
    duplicates: u32,
    /// An excused hole was filled, more lie above it, and three duplicates had been excused.
    next_hole_is_known: bool,
    /// Duplicates count only once more than this is acknowledged (RFC 6582 §3.2, "recover"): below,
    /// they may answer what was sent again in vain.
    guard: u64,
    /// RFC 6675 §2, HighRxt: the end of the highest retransmission of this episode.
    high_rxt: u64,
    /// RFC 6675 §2, RescueRxt.
    rescue: Option<u64>,
}

impl Detector {
    pub(crate) fn new(recovery: Recovery) -> Detector {
        Detector {
            recovery,
            duplicates: 0,
            next_hole_is_known: false,
            guard: 0,
            high_rxt: 0,
            rescue: None,
        }
    }

    pub(crate) fn uses_sack(&self) -> bool {
        self.recovery == Recovery::Sack
    }

    /// Whether an episode continues under fast recovery, or starts again from one segment.
    pub(crate) fn recovers_fast(&self) -> bool {
        self.recovery != Recovery::Tahoe
    }

    /// Duplicate acknowledgments since the last advance.
    pub(crate) fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Octets that duplicate acknowledgments have shown to have left the network. SACK knows
    /// better and has them in the scoreboard.
    pub(crate) fn dupacked(&self, board: &Scoreboard, phase: Phase, mss: u32) -> u64 {
        let conserving = match phase {
            Phase::Open => board.first().is_some_and(|r| r.state.contains(State::EXCUSED)),
            Phase::Recovery => true,
            Phase::Loss => false,
        };
        if self.uses_sack() || !conserving || self.duplicates == 0 {
            return 0;
        }
        (u64::from(self.duplicates) * u64::from(mss)).min(board.in_network())
    }

    /// Whether no duplicate stands for anything.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.duplicates == 0
    }

    /// A duplicate acknowledgment arrived.
    pub(crate) fn on_duplicate(&mut self) {
        self.duplicates = self.duplicates.saturating_add(1);
    }

    /// New data was acknowledged. Says whether a recovery that was under way is over.
    pub(crate) fn on_advance(
        &mut self,
        board: &Scoreboard,
        advanced: &Advanced,
        mss: u32,
        phase: Phase,
        recover: u64,
    ) -> bool {
        let was = self.duplicates;
        // Partial deflation (RFC 6582 §3.2): of what was acknowledged, all but the hole itself had
        // been counted by duplicates.
        let counted =
            advanced.acked.saturating_sub(u64::from(advanced.filled)).div_ceil(u64::from(mss));
        let remaining = was.saturating_sub(u32::try_from(counted).unwrap_or(u32::MAX));
        let first = board.first().map_or(State::empty(), |record| record.state);
        let excused = advanced.state.contains(State::EXCUSED);

        let complete = board.una() >= recover;
        let over = match self.recovery {
            Recovery::Tahoe | Recovery::Reno => true,
            Recovery::NewReno | Recovery::Sack => complete,
        };
        self.next_hole_is_known = match (self.recovery, phase) {
            (Recovery::Sack, _) => false,
            (Recovery::NewReno, Phase::Recovery) if !complete => true,
            _ => excused && was >= DUP_THRESH && remaining > 0,
        };
        let keep = self.next_hole_is_known || excused || first.contains(State::EXCUSED);
        self.duplicates = if keep { remaining } else { 0 };
        over
    }

    /// The next range that what was heard shows to be lost, lowest first.
    pub(crate) fn next_loss(
        &mut self,
        board: &mut Scoreboard,
        phase: Phase,
        mss: u32,
    ) -> Option<(u64, crate::mechanism::Signal)> {
        use crate::mechanism::Signal;
        // Everything is lost already; what is sent anew belongs to the next episode.
        if phase == Phase::Loss {
            return None;
        }
        let hole = board.first().is_some_and(|record| !record.state.intersects(State::LOST));
        let by_count = phase == Phase::Open
            && self.duplicates >= DUP_THRESH
            && (board.una() > self.guard || self.uses_sack());
        if hole && (by_count || self.next_hole_is_known) {
            self.next_hole_is_known = false;
            return Some((board.head(), Signal::Dupack));
        }
        if self.uses_sack() {
            return board.next_sack_loss(mss).map(|index| (index, Signal::Sack));
        }
        None
    }

    /// Data begins to flow: what happened to the SYN is of no interest.
    pub(crate) fn forget(&mut self) {
        *self = Detector::new(self.recovery);
    }

    /// A congestion episode begins.
    pub(crate) fn begin(&mut self, board: &Scoreboard) {
        self.high_rxt = board.una();
        self.rescue = None;
        if self.recovery == Recovery::NewReno {
            self.guard = board.nxt();
        }
    }

    /// Everything will be sent again, after a timeout: what that provokes is not to be counted.
    pub(crate) fn start_over(&mut self, board: &Scoreboard) {
        self.duplicates = 0;
        self.next_hole_is_known = false;
        self.guard = board.nxt();
    }

    /// A range was sent again.
    pub(crate) fn on_retransmit(&mut self, end: u64) {
        self.high_rxt = self.high_rxt.max(end);
    }

    /// What may be sent again although nothing says it is lost, when there is nothing better to
    /// send in recovery (RFC 6675 §4, NextSeg 3 and 4).
    pub(crate) fn speculative(&mut self, board: &Scoreboard, recover: u64) -> Option<u64> {
        if !self.uses_sack() {
            return None;
        }
        if let Some(index) = board.next_hole(self.high_rxt) {
            self.high_rxt = board.get(index).end();
            return Some(index);
        }
        // One rescue per episode, of what has not been sent again; it leaves HighRxt alone.
        if self.rescue.is_some_and(|rescue| board.una() <= rescue) {
            return None;
        }
        let index = board.highest_unsacked()?;
        if board.get(index).end() <= self.high_rxt {
            return None;
        }
        self.rescue = Some(recover);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::{Record, Sent};
    use wire::CopyId;

    #[test]
    fn a_hole_is_sent_again_speculatively_once_whatever_is_retransmitted_below_it() {
        let mut board = Scoreboard::default();
        for n in 0..6 {
            let (start, copy) = (n * 100, CopyId(n as u32 + 1));
            let (sent, state) = (Sent::default(), State::empty());
            board.push(Record { start, len: 100, copy, sent, state });
        }
        board.sack(&[(100, 200), (300, 400), (500, 600)]);
        let mut detector = Detector::new(Recovery::Sack);
        detector.begin(&board);
        assert_eq!(detector.speculative(&board, 600), Some(0));
        assert_eq!(detector.speculative(&board, 600), Some(2));
        // A notice says that this copy of the first was corrupted, too.
        detector.on_retransmit(100);
        assert_eq!(detector.speculative(&board, 600), Some(4));
        assert_eq!(detector.speculative(&board, 600), None);
    }
}
