//! Losses: each gets a verdict, and an episode at most one response.

use super::{Gradual, Sender};
use crate::config::Reduction;
use crate::congestion::{Bound, Episode, Prr};
use crate::event::Event;
use crate::mechanism::{Loss, Mechanisms, Signal, Verdict};
use crate::recovery::Phase;
use crate::scoreboard::{Record, State};
use base::Time;
use serde::{Deserialize, Serialize};
use wire::CopyId;

/// What it takes to find out that an episode's retransmissions were all needless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Doubt {
    /// Octets sent again and not yet reported to have arrived twice.
    resent: u64,
    /// The range that the episode's retransmissions lie in: its first octet, and the one after its
    /// last. A DSACK block outside of it reports another retransmission.
    reach: (u64, u64),
    /// The window was reduced, something was sent again, and nothing shows yet that it had to be.
    open: bool,
}

impl Sender {
    /// A mechanism says that a copy of a range is lost: it goes again, and if it is to be `judged`
    /// the loss gets a verdict.
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
        // A notice counts for the latest copy of what is still missing, else it is stale.
        if !self.is_of_latest(copy, &record, now) || record.state.contains(State::SACKED) {
            return;
        }
        self.statistics.notices += 1;
        self.on_believed(now, &record, mechanisms);
        if judged {
            self.judge(now, index, Signal::Notice, mechanisms);
        } else {
            self.forced.push_back(record.start);
        }
        self.restart_timer(now);
    }

    /// Whether this copy is the latest of what is still missing; any, if it is none in particular.
    pub(crate) fn is_missing(&self, start: u64, copy: CopyId) -> bool {
        self.board.find(start).map(|index| self.board.get(index)).is_some_and(|record| {
            let latest = copy == CopyId::NONE || record.copy == copy;
            latest && !record.state.contains(State::SACKED)
        })
    }

    /// Whether a notice is of the latest copy of a record. One that does not say of which copy it
    /// is, is of the latest, unless that is younger than any that was ever reported: then one
    /// before it is meant, or the notice is a double.
    fn is_of_latest(&mut self, copy: CopyId, record: &Record, now: Time) -> bool {
        let age = now.since(record.sent.at);
        if !record.state.contains(State::AMBIGUOUS) {
            self.soonest_notice = self.soonest_notice.min(age);
        }
        match copy {
            CopyId::NONE => age >= self.soonest_notice,
            copy => record.copy == copy,
        }
    }

    /// Asks what a loss means.
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

    /// Gives a loss its verdict and acts on it.
    pub(super) fn judge(
        &mut self,
        now: Time,
        index: u64,
        signal: Signal,
        mechanisms: &mut Mechanisms,
    ) {
        let record = *self.board.get(index);
        let verdict = self.verdict(now, &record, signal, mechanisms);
        let excused = verdict == Verdict::Corruption;
        match signal {
            Signal::Notice => self.board.lose_latest_copy(index, excused),
            Signal::Dupack | Signal::Sack | Signal::Rto | Signal::Ecn => {
                self.board.lose(index, excused);
            }
        }
        let responded = match verdict {
            Verdict::Corruption => false,
            Verdict::Congestion { .. } | Verdict::Decrease(_) if self.phase != Phase::Open => false,
            Verdict::Congestion { keep_ssthresh } => {
                self.respond(now, signal, None, keep_ssthresh);
                true
            }
            Verdict::Decrease(factor) => {
                self.respond(now, signal, Some(factor), false);
                true
            }
        };
        // The first retransmission of an episode does not wait for the pipe (RFC 6675 §5, 4.3),
        // unless the algorithm starts over; nor does one that no reduction goes with. Where a
        // notice has replaced the lost copy before, there is nothing to send.
        let at_once = if responded {
            self.detector.recovers_fast()
        } else {
            excused || signal == Signal::Dupack
        };
        if at_once && self.board.get(index).is_pending() {
            self.forced.push_back(record.start);
        }
    }

    /// Responds to congestion: a new episode begins.
    pub(super) fn respond(
        &mut self,
        now: Time,
        signal: Signal,
        decrease: Option<f64>,
        keep_ssthresh: bool,
    ) {
        let episode = self.episode(now, decrease, keep_ssthresh);
        self.detector.begin(&self.board);
        // RFC 3168 §6.1.2: at most one reduction per window of data.
        let reduced = self.board.una() < self.reduced_until;
        self.recover = self.board.nxt();
        // What was not reduced now cannot be taken back.
        let open = !(reduced && self.detector.recovers_fast());
        self.doubt = Doubt { open, ..Doubt::default() };
        if self.detector.recovers_fast() {
            if !reduced {
                self.controller.on_congestion(&episode);
                self.on_reduced(signal);
                self.reduce_gradually();
            }
            self.phase = Phase::Recovery;
        } else {
            self.controller.on_rto(&episode);
            self.on_reduced(signal);
            self.start_over();
        }
    }

    /// The window comes down as data is delivered, where that is wanted (RFC 6937 §3).
    fn reduce_gradually(&mut self) {
        let bound = match self.config.reduction {
            Reduction::Immediate => return,
            Reduction::Prr => Bound::SlowStart,
            Reduction::PrrCrb => Bound::Conservative,
        };
        let prr = Prr::begin(bound, self.board.outstanding(), self.controller.window());
        self.gradual = Some(Gradual { prr, window: self.pipe() });
    }

    /// An acknowledgment has been taken in, before which `heard` octets were known to have been
    /// delivered: where the window is by now. The one that began the reduction counts, too.
    pub(super) fn go_on_reducing(&mut self, heard: u64) {
        if self.gradual.is_none() {
            return;
        }
        let (delivered, pipe) = (self.heard().saturating_sub(heard), self.pipe());
        if let Some(gradual) = &mut self.gradual {
            gradual.window = pipe + gradual.prr.on_ack(delivered, pipe, self.mss);
        }
    }

    /// Octets known to have been delivered; duplicates stand for a segment each until an
    /// acknowledgment covers them.
    pub(super) fn heard(&self) -> u64 {
        let duplicates =
            if self.detector.uses_sack() { 0 } else { u64::from(self.detector.duplicates()) };
        self.delivered.bytes + duplicates * u64::from(self.mss)
    }

    fn on_reduced(&mut self, signal: Signal) {
        self.statistics.reductions += 1;
        self.tell_reduction = true;
        self.log.push(|| Event::Reduced {
            signal,
            window: self.controller.window(),
            ssthresh: self.controller.ssthresh(),
        });
    }

    /// The peer says that a packet of ours met congestion (RFC 3168 §6.1.2): responds, unless that
    /// has been done for this window of data already.
    pub(super) fn on_congestion_echo(&mut self, now: Time, mechanisms: &mut Mechanisms) {
        let Some(&first) = self.board.first() else {
            return;
        };
        if self.phase != Phase::Open || self.board.una() < self.reduced_until {
            return;
        }
        let (decrease, keep_ssthresh) = match self.verdict(now, &first, Signal::Ecn, mechanisms) {
            Verdict::Corruption => return,
            Verdict::Congestion { keep_ssthresh } => (None, keep_ssthresh),
            Verdict::Decrease(factor) => (Some(factor), false),
        };
        let episode = self.episode(now, decrease, keep_ssthresh);
        self.controller.on_congestion(&Episode { marked: true, ..episode });
        self.reduced_until = self.board.nxt();
        // A mark is never a mistake.
        self.doubt = Doubt::default();
        self.on_reduced(Signal::Ecn);
    }

    pub(super) fn episode(&self, now: Time, decrease: Option<f64>, keep_ssthresh: bool) -> Episode {
        // Holes that are held open let more than a window be outstanding; what the window did
        // not allow must not come back as ssthresh.
        let flight = (self.board.outstanding() - self.limited).min(self.controller.window());
        Episode { now, flight, mss: self.mss, decrease, keep_ssthresh, marked: false }
    }

    /// Declares everything lost and goes back to SND.UNA.
    pub(super) fn start_over(&mut self) {
        self.board.lose_everything();
        self.detector.start_over(&self.board);
        self.forced.clear();
        self.gradual = None;
        self.recover = self.board.nxt();
        self.phase = Phase::Loss;
    }

    /// The congestion episode is over.
    pub(super) fn end_episode(&mut self) {
        self.phase = Phase::Open;
        self.gradual = None;
        self.log.push(|| Event::Recovered);
    }

    // --- reductions that should not have been ---

    /// A timeout reduces the window. If it strikes while something else is being repaired, that
    /// has to turn out to have been needless, too.
    pub(super) fn doubt_timeout(&mut self) {
        let doubt = if self.phase == Phase::Open { Doubt::default() } else { self.doubt };
        self.doubt = Doubt { open: true, ..doubt };
    }

    /// A range is sent again.
    pub(super) fn doubt(&mut self, start: u64, end: u64) {
        let Doubt { open, resent, reach } = &mut self.doubt;
        if *open {
            *reach =
                if *resent == 0 { (start, end) } else { (reach.0.min(start), reach.1.max(end)) };
            *resent += end - start;
        }
    }

    /// A range has arrived twice. Once that is so for all that an episode has sent again, none of it
    /// had been lost (RFC 3708 §2).
    pub(super) fn on_needless(&mut self, (start, end): (u64, u64)) {
        if !self.config.undo || !self.doubt.open || self.doubt.resent == 0 {
            return;
        }
        let (from, until) = self.doubt.reach;
        let octets = end.min(until).saturating_sub(start.max(from));
        self.doubt.resent = self.doubt.resent.saturating_sub(octets);
        if self.doubt.resent > 0 {
            return;
        }
        self.doubt.open = false;
        self.statistics.undone += 1;
        self.controller.on_undo();
        if self.phase != Phase::Open && !self.board.has_blamed() {
            self.end_episode();
        }
        self.log.push(|| Event::Undone { window: self.controller.window() });
    }
}
