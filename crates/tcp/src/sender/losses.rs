//! Losses: each gets a verdict, an episode at most one congestion response.

use super::{Frto, PrrState, Sender};
use crate::config::Reduction;
use crate::congestion::{Bound, Episode, Progress, Prr};
use crate::event::Event;
use crate::mechanism::{Loss, Mechanisms, Signal, Verdict};
use crate::recovery::Phase;
use crate::scoreboard::{Record, State};
use base::Time;
use serde::{Deserialize, Serialize};
use wire::CopyId;

/// The undo state: it finds out whether all retransmissions of an episode were spurious.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UndoState {
    /// Octets retransmitted and not yet covered by DSACK blocks (Linux: `undo_retrans`).
    undo_retrans: u64,
    /// The range of the episode's retransmissions: its first octet, and the one after its last. A
    /// DSACK block outside of it is about another retransmission.
    range: (u64, u64),
    /// The window was reduced, and the reduction may still be undone.
    armed: bool,
    /// A timeout is part of the episode.
    timed_out: bool,
}

/// The flight when a loss is found: if an acknowledgment reveals it, before that acknowledgment.
///
/// RFC 5681 §3.1 reduces the window because so much was in flight when a segment was lost. One
/// acknowledgment may cover most of a window, and what it leaves says nothing of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlightSize {
    /// Octets sent and not acknowledged cumulatively (RFC 5681 §2).
    outstanding: u64,
    /// Those of limited transmit among them.
    limited_transmit: u64,
}

impl Sender {
    /// The flight at present.
    #[inline]
    pub(super) fn flight_size(&self) -> FlightSize {
        let limited_transmit = self.limited_transmit_octets;
        FlightSize { outstanding: self.board.outstanding(), limited_transmit }
    }

    /// Handles a mechanism's notice that a copy of a range is lost: retransmits it and, if
    /// `judged`, gives the loss a verdict.
    pub(crate) fn on_notice(
        &mut self,
        now: Time,
        start: u64,
        copy: CopyId,
        judged: bool,
        mechanisms: &mut Mechanisms,
    ) {
        let Some(index) = self.board.find(start) else {
            return;
        };
        let record = *self.board.get(index);
        // A notice counts for the latest copy of a missing range, else it is stale.
        if !self.is_of_latest(copy, &record, now) || record.state.contains(State::SACKED) {
            return;
        }
        // Of a batch of segments with the same notice, the first: the range is about to be sent.
        if self.forced_queue.contains(&record.start) {
            return;
        }
        self.statistics.notices += 1;
        self.on_notice_accepted(now, &record, mechanisms);
        if judged {
            self.on_loss(now, index, Signal::Notice, self.flight_size(), mechanisms);
        } else {
            self.forced_queue.push_back(record.start);
        }
        self.restart_timer(now);
    }

    /// The latest copy of the segment with an octet, and when it was sent.
    pub(crate) fn latest_copy(&self, start: u64) -> Option<(CopyId, Time)> {
        let record = self.board.get(self.board.find(start)?);
        Some((record.copy, record.sent.at))
    }

    /// Whether this copy is the latest of a missing range; [`CopyId::NONE`] matches any copy.
    pub(crate) fn is_missing(&self, start: u64, copy: CopyId) -> bool {
        self.board.find(start).map(|index| self.board.get(index)).is_some_and(|record| {
            let latest = copy == CopyId::NONE || record.copy == copy;
            latest && !record.state.contains(State::SACKED)
        })
    }

    /// Whether a notice is about the latest copy of a record. One that names no copy is, unless the
    /// copy is younger than any that was ever reported: then it is about an earlier copy, or a
    /// duplicate.
    fn is_of_latest(&mut self, copy: CopyId, record: &Record, now: Time) -> bool {
        let age = now.since(record.sent.at);
        if !record.state.contains(State::AMBIGUOUS) {
            self.min_notice_delay = self.min_notice_delay.min(age);
        }
        match copy {
            CopyId::NONE => age >= self.min_notice_delay,
            copy => record.copy == copy,
        }
    }

    /// Asks the mechanisms for the verdict on a loss.
    pub(super) fn verdict(
        &mut self,
        now: Time,
        record: &Record,
        signal: Signal,
        mechanisms: &mut Mechanisms,
    ) -> Verdict {
        let loss = Loss {
            start: record.start,
            end: record.end(),
            copy: record.copy,
            sent_at: record.sent.at,
            signal,
        };
        let verdict = mechanisms.loss(&self.view(now), &loss);
        self.log.push(|| Event::Loss { start: loss.start, end: loss.end, signal, verdict });
        verdict
    }

    /// Gives a loss its verdict and carries it out.
    pub(super) fn on_loss(
        &mut self,
        now: Time,
        index: u64,
        signal: Signal,
        flight: FlightSize,
        mechanisms: &mut Mechanisms,
    ) {
        let record = *self.board.get(index);
        if self.is_failed_probe(now, &record) {
            return;
        }
        let verdict = self.verdict(now, &record, signal, mechanisms);
        let corrupted = verdict == Verdict::Corruption;
        if !corrupted {
            self.report_loss(now, &record);
        }
        match signal {
            Signal::Notice | Signal::Rack => self.board.mark_latest_copy_lost(index, corrupted),
            Signal::Dupack | Signal::Sack | Signal::Rto | Signal::Ecn => {
                self.board.mark_lost(index, corrupted);
            }
        }
        let responded = match verdict {
            Verdict::Corruption => false,
            Verdict::Congestion { .. } | Verdict::Decrease(_) if self.phase != Phase::Open => false,
            Verdict::Congestion { keep_ssthresh } => {
                self.begin_episode(now, signal, flight, None, keep_ssthresh);
                true
            }
            Verdict::Decrease(factor) => {
                self.begin_episode(now, signal, flight, Some(factor), false);
                true
            }
        };
        // The first retransmission of an episode does not wait for the pipe (RFC 6675 §5, 4.3),
        // unless the algorithm starts over; nor does one without a reduction. A record that a
        // notice has retransmitted already is not sent again.
        let at_once = if responded {
            self.detector.recovers_fast()
        } else {
            corrupted || signal == Signal::Dupack
        };
        if at_once && self.board.get(index).is_pending() {
            self.forced_queue.push_back(record.start);
        }
    }

    /// Begins a recovery episode with its congestion response.
    pub(super) fn begin_episode(
        &mut self,
        now: Time,
        signal: Signal,
        flight: FlightSize,
        decrease: Option<f64>,
        keep_ssthresh: bool,
    ) {
        let episode = self.episode(now, flight, decrease, keep_ssthresh);
        self.detector.on_recovery_start(&self.board);
        self.probe = None;
        // RFC 3168 §6.1.2: at most one reduction per window of data.
        let reduced = self.board.una() < self.reduced_until;
        self.recover = self.board.nxt();
        // Without a reduction there is nothing to undo.
        let armed = !(reduced && self.detector.recovers_fast());
        self.undo = UndoState { armed, ..UndoState::default() };
        if self.detector.recovers_fast() {
            if !reduced {
                self.controller.on_congestion(&episode);
                self.on_reduced(signal);
                self.begin_prr(flight);
            }
            self.phase = Phase::Recovery;
        } else {
            self.controller.on_rto(&episode);
            self.on_reduced(signal);
            self.enter_loss(Time::NEVER);
        }
    }

    /// Begins a proportional rate reduction, if configured (RFC 9937 §6.1).
    fn begin_prr(&mut self, flight: FlightSize) {
        if self.controller.models_path() {
            return;
        }
        let bound = match self.config.reduction {
            Reduction::Immediate => return,
            Reduction::Prr => Bound::PerAck,
            Reduction::PrrSsrb => Bound::SlowStart,
            Reduction::PrrCrb => Bound::Conservative,
        };
        let prr = Prr::begin(bound, flight.outstanding, self.controller.window());
        // An acknowledgment that delivers nothing leaves this window as it is. With nothing in flight, it
        // has to let the fast retransmit go: no other acknowledgment would come.
        let window = self.pipe().max(self.mss.into());
        self.prr = Some(PrrState { prr, window });
    }

    /// Updates the window of a proportional rate reduction after an acknowledgment.
    /// `delivered_before` is the delivery estimate before it, `lossless` whether it indicates no
    /// loss; the acknowledgment that began the reduction counts, too.
    pub(super) fn update_prr(&mut self, delivered_before: u64, advanced: bool, lossless: bool) {
        if self.prr.is_none() {
            return;
        }
        let (delivered, pipe) =
            (self.delivered_estimate().saturating_sub(delivered_before), self.pipe());
        let estimated = !self.detector.uses_sack();
        // RFC 9937 §6.1. Duplicates are delivered from RecoverFS, not beside it.
        let newly = if estimated && !advanced { 0 } else { delivered };
        let flight = self.board.outstanding() - self.board.sacked() + newly;
        let safe = advanced && lossless;
        let progress = Progress { delivered, pipe, flight, safe, estimated, mss: self.mss };
        if let Some(state) = &mut self.prr
            && let Some(count) = state.prr.on_ack(&progress)
        {
            state.window = pipe + count;
        }
    }

    /// Octets known to have been delivered; a duplicate counts as a segment until an acknowledgment
    /// covers it.
    pub(super) fn delivered_estimate(&self) -> u64 {
        let duplicates =
            if self.detector.uses_sack() { 0 } else { u64::from(self.detector.dupacks()) };
        self.delivered.bytes + duplicates * u64::from(self.mss)
    }

    fn on_reduced(&mut self, signal: Signal) {
        self.statistics.reductions += 1;
        self.cwr_pending = true;
        self.log.push(|| Event::Reduced {
            signal,
            window: self.controller.window(),
            ssthresh: self.controller.ssthresh(),
        });
    }

    /// Handles an ECN echo (RFC 3168 §6.1.2): reduces the window, at most once per window of data.
    pub(super) fn on_congestion_echo(&mut self, now: Time, mechanisms: &mut Mechanisms) {
        let Some(&first) = self.board.first() else {
            return;
        };
        if self.phase != Phase::Open || self.board.una() < self.reduced_until {
            return;
        }
        if self.reduce_once(now, &first, Signal::Ecn, mechanisms) {
            self.reduced_until = self.board.nxt();
            // A mark is never spurious.
            self.undo = UndoState::default();
        }
    }

    /// Reduces the window without an episode: the loss is repaired, or there was none. Returns
    /// whether the verdict demands it.
    pub(super) fn reduce_once(
        &mut self,
        now: Time,
        record: &Record,
        signal: Signal,
        mechanisms: &mut Mechanisms,
    ) -> bool {
        let (decrease, keep_ssthresh) = match self.verdict(now, record, signal, mechanisms) {
            Verdict::Corruption => return false,
            Verdict::Congestion { keep_ssthresh } => (None, keep_ssthresh),
            Verdict::Decrease(factor) => (Some(factor), false),
        };
        let marked = signal == Signal::Ecn;
        let episode = self.episode(now, self.flight_size(), decrease, keep_ssthresh);
        self.controller.on_congestion(&Episode { marked, ..episode });
        self.controller.on_recovered();
        self.on_reduced(signal);
        true
    }

    pub(super) fn episode(
        &self,
        now: Time,
        flight: FlightSize,
        decrease: Option<f64>,
        keep_ssthresh: bool,
    ) -> Episode {
        // Open holes let more than a window be outstanding; octets beyond the window must not count
        // for ssthresh.
        let flight = (flight.outstanding - flight.limited_transmit).min(self.controller.window());
        Episode { now, flight, mss: self.mss, decrease, keep_ssthresh, marked: false }
    }

    /// Marks everything lost that was sent no later than `cutoff`, and goes back to SND.UNA.
    pub(super) fn enter_loss(&mut self, cutoff: Time) {
        self.board.mark_all_lost(cutoff);
        self.probe = None;
        self.frto = Frto::Idle;
        self.detector.on_loss_state(&self.board);
        self.forced_queue.clear();
        self.prr = None;
        self.recover = self.board.nxt();
        self.phase = Phase::Loss;
    }

    /// Ends the recovery episode.
    pub(super) fn exit_recovery(&mut self) {
        self.phase = Phase::Open;
        self.prr = None;
        self.detector.on_recovery_end();
        self.controller.on_recovered();
        self.log.push(|| Event::Recovered);
    }

    // --- reductions that should not have been ---

    /// Arms undo for a timeout. In recovery, the retransmissions of the episode so far must prove
    /// spurious, too.
    pub(super) fn arm_undo_on_timeout(&mut self) {
        let undo = if self.phase == Phase::Open { UndoState::default() } else { self.undo };
        self.undo = UndoState { armed: true, timed_out: true, ..undo };
    }

    /// Counts a retransmission that undo depends on.
    pub(super) fn count_undo_retransmission(&mut self, start: u64, end: u64) {
        let UndoState { armed, undo_retrans, range, .. } = &mut self.undo;
        if *armed {
            *range = if *undo_retrans == 0 {
                (start, end)
            } else {
                (range.0.min(start), range.1.max(end))
            };
            *undo_retrans += end - start;
        }
    }

    /// Handles a DSACK block. Once DSACKs cover all retransmissions of an episode, no segment had
    /// been lost and the reduction is undone (RFC 3708 §2).
    pub(super) fn on_spurious_retransmission(&mut self, (start, end): (u64, u64)) {
        if !self.config.undo || !self.undo.armed || self.undo.undo_retrans == 0 {
            return;
        }
        let (from, until) = self.undo.range;
        let octets = end.min(until).saturating_sub(start.max(from));
        self.undo.undo_retrans = self.undo.undo_retrans.saturating_sub(octets);
        if self.undo.undo_retrans > 0 {
            return;
        }
        if !self.undo.timed_out
            && let Some(rack) = self.detector.rack()
        {
            // What was taken for lost has arrived behind segments that were sent later.
            rack.on_reordering();
        }
        self.undo_reduction(!self.board.has_congestion_loss());
    }

    /// Undoes the last reduction, and ends its episode if that is `over`.
    pub(super) fn undo_reduction(&mut self, over: bool) {
        self.undo.armed = false;
        self.statistics.undone += 1;
        self.controller.on_undo();
        if self.phase != Phase::Open && over {
            self.exit_recovery();
        }
        self.log.push(|| Event::Undone { window: self.controller.window() });
    }
}
