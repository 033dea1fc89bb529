//! Loss detection and the order of retransmissions.
//!
//! The algorithms find lost ranges from acknowledgments and the scoreboard. What a loss means for
//! the window is decided elsewhere.

mod rack;

pub(crate) use rack::{AckContext, Rack};

use crate::mechanism::Signal;
use crate::scoreboard::{Advanced, Scoreboard, State};
use base::Time;
use serde::{Deserialize, Serialize};
use wire::CopyId;

/// DupThresh: duplicate acknowledgments, or SACKed segments, that make a loss (RFC 5681 §3.2, RFC
/// 6675 §2, RFC 8985 §6.2).
pub(crate) const DUP_THRESH: u32 = 3;

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
    /// Selective acknowledgments and the times of sending, with probes of a lost tail (RFC 8985,
    /// RACK-TLP).
    Rack,
}

impl Recovery {
    /// Every algorithm with the name it has in scenario files.
    pub const ALL: &[(&str, Recovery)] = &[
        ("tahoe", Recovery::Tahoe),
        ("reno", Recovery::Reno),
        ("newreno", Recovery::NewReno),
        ("sack", Recovery::Sack),
        ("rack", Recovery::Rack),
    ];

    /// Whether it needs selective acknowledgments.
    #[must_use]
    pub fn needs_sack(self) -> bool {
        matches!(self, Recovery::Sack | Recovery::Rack)
    }
}

/// The recovery phase of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// No congestion episode.
    Open,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout (or Tahoe's): everything outstanding counts as lost.
    Loss,
}

/// The state of loss detection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Detector {
    recovery: Recovery,
    /// Duplicate acknowledgments for octets above the first hole.
    dupacks: u32,
    /// The next hole is lost: a hole of a corruption loss was filled, octets above it are missing,
    /// and three duplicates had arrived.
    next_hole_lost: bool,
    /// Duplicates count only once more than this is acknowledged (RFC 6582 §3.2, "recover"): below,
    /// they may answer spurious retransmissions.
    recover: u64,
    /// RFC 6675 §2, HighRxt: the end of the highest retransmission of this episode.
    high_rxt: u64,
    /// RFC 6675 §2, RescueRxt.
    rescue_rxt: Option<u64>,
    /// The state of RACK, if that is the algorithm.
    rack: Option<Box<Rack>>,
}

impl Detector {
    pub(crate) fn new(recovery: Recovery) -> Detector {
        Detector {
            recovery,
            dupacks: 0,
            next_hole_lost: false,
            recover: 0,
            high_rxt: 0,
            rescue_rxt: None,
            rack: (recovery == Recovery::Rack).then(Box::default),
        }
    }

    pub(crate) fn uses_sack(&self) -> bool {
        self.recovery.needs_sack()
    }

    /// Whether losses are detected by send times.
    #[inline]
    pub(crate) fn uses_rack(&self) -> bool {
        self.rack.is_some()
    }

    /// The state of RACK, if that is the algorithm.
    pub(crate) fn rack(&mut self) -> Option<&mut Rack> {
        self.rack.as_deref_mut()
    }

    /// Whether the algorithm has fast recovery, rather than starting over from one segment.
    pub(crate) fn recovers_fast(&self) -> bool {
        self.recovery != Recovery::Tahoe
    }

    /// Duplicate acknowledgments since the last advance.
    pub(crate) fn dupacks(&self) -> u32 {
        self.dupacks
    }

    /// Duplicate-ACK credit: octets that duplicate acknowledgments show to have left the network.
    /// Zero with SACK, whose scoreboard knows them.
    pub(crate) fn dupack_credit(&self, board: &Scoreboard, phase: Phase, mss: u32) -> u64 {
        let conserving = match phase {
            Phase::Open => board.first().is_some_and(|r| r.state.contains(State::CORRUPTED)),
            Phase::Recovery => true,
            Phase::Loss => false,
        };
        if self.uses_sack() || !conserving || self.dupacks == 0 {
            return 0;
        }
        (u64::from(self.dupacks) * u64::from(mss)).min(board.in_network())
    }

    /// Whether there are no duplicate acknowledgments.
    #[inline]
    pub(crate) fn has_no_dupacks(&self) -> bool {
        self.dupacks == 0
    }

    /// Counts a duplicate acknowledgment.
    pub(crate) fn on_dupack(&mut self) {
        self.dupacks = self.dupacks.saturating_add(1);
    }

    /// Processes an advance of SND.UNA. Returns whether fast recovery is over.
    pub(crate) fn on_advance(
        &mut self,
        board: &Scoreboard,
        advanced: &Advanced,
        mss: u32,
        phase: Phase,
        recover: u64,
    ) -> bool {
        let was = self.dupacks;
        // Partial deflation (RFC 6582 §3.2): the acknowledged octets, but for the hole itself, had
        // been counted by duplicates.
        let counted =
            advanced.acked.saturating_sub(u64::from(advanced.filled)).div_ceil(u64::from(mss));
        let remaining = was.saturating_sub(u32::try_from(counted).unwrap_or(u32::MAX));
        let first = board.first().map_or(State::empty(), |record| record.state);
        let was_corrupted = advanced.state.contains(State::CORRUPTED);

        let complete = board.una() >= recover;
        let over = match self.recovery {
            Recovery::Tahoe | Recovery::Reno => true,
            Recovery::NewReno | Recovery::Sack | Recovery::Rack => complete,
        };
        self.next_hole_lost = match (self.recovery, phase) {
            (Recovery::Sack | Recovery::Rack, _) => false,
            (Recovery::NewReno, Phase::Recovery) if !complete => true,
            _ => was_corrupted && was >= DUP_THRESH && remaining > 0,
        };
        let keep = self.next_hole_lost || was_corrupted || first.contains(State::CORRUPTED);
        self.dupacks = if keep { remaining } else { 0 };
        over
    }

    /// The next lost range, lowest first.
    pub(crate) fn next_loss(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        phase: Phase,
        mss: u32,
    ) -> Option<(u64, Signal)> {
        if let Some(rack) = &mut self.rack {
            return rack.next_loss(board, now).map(|index| (index, Signal::Rack));
        }
        // Everything counts as lost already; new data belongs to the next episode.
        if phase == Phase::Loss {
            return None;
        }
        let hole = board.first().is_some_and(|record| !record.state.intersects(State::LOST));
        let by_count = phase == Phase::Open
            && self.dupacks >= DUP_THRESH
            && (board.una() > self.recover || self.uses_sack());
        if hole && (by_count || self.next_hole_lost) {
            self.next_hole_lost = false;
            return Some((board.head(), Signal::Dupack));
        }
        if self.uses_sack() {
            return board.next_sack_loss(mss).map(|index| (index, Signal::Sack));
        }
        None
    }

    /// Resets the state when data transfer starts.
    pub(crate) fn reset(&mut self) {
        *self = Detector::new(self.recovery);
    }

    /// Starts a recovery episode.
    pub(crate) fn on_recovery_start(&mut self, board: &Scoreboard) {
        self.high_rxt = board.una();
        self.rescue_rxt = None;
        if self.recovery == Recovery::NewReno {
            self.recover = board.nxt();
        }
    }

    /// Ends a recovery episode.
    pub(crate) fn on_recovery_end(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.on_recovery_end();
        }
    }

    /// When the timer expires, only what was sent no later than this counts as lost, beside the
    /// first range.
    pub(crate) fn cutoff_at_timeout(&self, now: Time) -> Time {
        self.rack.as_ref().map_or(Time::NEVER, |rack| rack.cutoff_at_timeout(now))
    }

    /// Starts recovery after a timeout: duplicates of the retransmissions do not count.
    pub(crate) fn on_loss_state(&mut self, board: &Scoreboard) {
        self.dupacks = 0;
        self.next_hole_lost = false;
        self.recover = board.nxt();
    }

    /// Notes that a copy was sent again.
    pub(crate) fn on_copy_sent(&mut self, index: u64, copy: CopyId) {
        if let Some(rack) = &mut self.rack {
            rack.on_retransmit(index, copy);
        }
    }

    /// Learns that ranges have been cut, and have other numbers.
    pub(crate) fn on_split(&mut self, board: &Scoreboard) {
        if let Some(rack) = &mut self.rack {
            rack.on_split(board);
        }
    }

    /// Raises HighRxt after a retransmission.
    pub(crate) fn on_retransmit(&mut self, end: u64) {
        self.high_rxt = self.high_rxt.max(end);
    }

    /// A range to retransmit in recovery although it is not known to be lost, if nothing else can
    /// be sent (RFC 6675 §4, NextSeg 3 and 4).
    pub(crate) fn speculative(&mut self, board: &Scoreboard, recover: u64) -> Option<u64> {
        if self.recovery != Recovery::Sack {
            return None;
        }
        if let Some(index) = board.next_hole(self.high_rxt) {
            self.high_rxt = board.get(index).end();
            return Some(index);
        }
        // One rescue retransmission per episode; it leaves HighRxt alone.
        if self.rescue_rxt.is_some_and(|rescue| board.una() <= rescue) {
            return None;
        }
        let index = board.highest_unsacked()?;
        if board.get(index).end() <= self.high_rxt {
            return None;
        }
        self.rescue_rxt = Some(recover);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::{Record, Sent};

    #[test]
    fn a_hole_is_sent_again_speculatively_once_whatever_is_retransmitted_below_it() {
        let mut board = Scoreboard::default();
        for n in 0..6 {
            let (start, copy) = (n * 100, CopyId(n as u32 + 1));
            let (sent, state) = (Sent::default(), State::empty());
            board.push(Record { start, len: 100, copy, sent, state });
        }
        board.sack(&[(100, 200), (300, 400), (500, 600)], Time::NEVER);
        let mut detector = Detector::new(Recovery::Sack);
        detector.on_recovery_start(&board);
        assert_eq!(detector.speculative(&board, 600), Some(0));
        assert_eq!(detector.speculative(&board, 600), Some(2));
        // A notice says that this copy of the first was corrupted, too.
        detector.on_retransmit(100);
        assert_eq!(detector.speculative(&board, 600), Some(4));
        assert_eq!(detector.speculative(&board, 600), None);
    }
}
