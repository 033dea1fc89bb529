//! The sending half: the pipeline from an acknowledgment to the next transmission.
//!
//! ```text
//! acknowledgment -> scoreboard -> detector names losses -> each gets a verdict
//!     -> at most one response per episode
//!     -> transmit: forced, retransmissions, new data while pipe < cwnd, limited transmit
//! ```

use crate::config::{Config, SsthreshOnBackoff};
use crate::congestion::{AckSample, CongestionControl, Controller, Episode, Growth, RateSample};
use crate::mechanism::{Action, Loss, Mechanisms, Signal, Verdict, View};
use crate::recovery::{Detector, Phase};
use crate::rtt::Rtt;
use crate::scoreboard::{Advanced, Delivered, Record, Scoreboard, Sent, State};
use crate::stream::Stream;
use base::{Duration, Time};
use std::collections::VecDeque;
use wire::CopyId;

/// An acknowledgment, in absolute sequence numbers.
pub(crate) struct Ack<'a> {
    /// The next octet that the peer expects.
    pub(crate) ack: u64,
    /// The octet after the last that the peer's window allows.
    pub(crate) right_edge: u64,
    /// The peer's SACK blocks.
    pub(crate) blocks: &'a [(u64, u64)],
    /// The segment carried nothing else, so that it may count as a duplicate (RFC 5681 §2).
    pub(crate) bare: bool,
}

/// A range to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) start: u64,
    pub(crate) len: u32,
    pub(crate) copy: CopyId,
    /// Another range may follow at once.
    pub(crate) more: bool,
}

/// Counts of what a sender did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Statistics {
    /// Segments sent, retransmissions included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Reductions of the window, those by timeouts not counted.
    pub reductions: u64,
    /// Notices of corruption that led to a retransmission.
    pub notices: u64,
}

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) stream: Stream,
    pub(crate) statistics: Statistics,
    config: SenderConfig,
    board: Scoreboard,
    detector: Detector,
    controller: Controller,
    rtt: Rtt,
    phase: Phase,
    /// SND.NXT when the present or last episode began: it ends when that is acknowledged.
    recover: u64,
    /// SND.UNA at the last timeout, and how many in a row have struck there.
    timed_out_at: u64,
    series: u32,
    /// The octet after the last that the peer's window allows.
    right_edge: u64,
    mss: u32,
    /// Starts of records to be sent at once, whatever the window says.
    forced: VecDeque<u64>,
    /// Octets of limited transmit since the last advance (RFC 5681 §3.2 does not count them).
    limited: u64,
    /// Whether the congestion window was what stopped the last transmission.
    window_limited: bool,
    delivered: Delivered,
    copies: u32,
    /// When the retransmission timer expires.
    deadline: Time,
}

/// The settings that the sender keeps after start-up.
#[derive(Clone, Debug)]
struct SenderConfig {
    limited_transmit: bool,
    retries: u32,
    ssthresh_on_backoff: SsthreshOnBackoff,
    initial_window: u32,
    initial_ssthresh: Option<u64>,
}

impl Sender {
    pub(crate) fn new(config: &Config) -> Sender {
        let mss = u32::from(config.mss);
        let growth = Growth {
            congestion: config.congestion,
            increase: config.increase,
            byte_counting: config.byte_counting,
        };
        Sender {
            stream: Stream::new(),
            statistics: Statistics::default(),
            config: SenderConfig {
                limited_transmit: config.limited_transmit,
                retries: config.retries,
                ssthresh_on_backoff: config.ssthresh_on_backoff,
                initial_window: config.initial_window,
                initial_ssthresh: config.initial_ssthresh,
            },
            board: Scoreboard::default(),
            detector: Detector::new(config.recovery),
            controller: Controller::new(growth, u64::from(mss)),
            rtt: Rtt::new(config.rto),
            phase: Phase::Open,
            recover: 0,
            timed_out_at: 0,
            series: 0,
            right_edge: 1, // Only the SYN, until the peer has spoken.
            mss,
            forced: VecDeque::new(),
            limited: 0,
            window_limited: false,
            delivered: Delivered::default(),
            copies: 0,
            deadline: Time::NEVER,
        }
    }

    /// The peer has agreed to segments of `mss` bytes. `sack` is whether both ends permit selective
    /// acknowledgments; without, NewReno recovers in their stead.
    pub(crate) fn negotiated(&mut self, mss: u32, sack: bool) {
        self.mss = mss;
        if self.detector.uses_sack() && !sack {
            self.detector = Detector::new(crate::Recovery::NewReno);
        }
    }

    /// The peer has acknowledged our SYN: data may flow.
    pub(crate) fn start(&mut self) {
        // RFC 5681 §3.1: a lost SYN leaves one segment.
        let segments = if self.statistics.timeouts > 0 {
            self.rtt.after_lost_syn();
            1
        } else {
            self.config.initial_window.max(1)
        };
        self.detector.forget();
        let window = u64::from(segments) * u64::from(self.mss);
        self.controller.reset(window, self.config.initial_ssthresh);
    }

    /// The connection is over: nothing is due any more.
    pub(crate) fn stop(&mut self) {
        self.deadline = Time::NEVER;
    }

    // --- what others may know ---

    pub(crate) fn una(&self) -> u64 {
        self.board.una()
    }

    pub(crate) fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    pub(crate) fn outstanding(&self) -> u64 {
        self.board.outstanding()
    }

    pub(crate) fn window(&self) -> u64 {
        self.controller.window()
    }

    pub(crate) fn ssthresh(&self) -> u64 {
        self.controller.ssthresh()
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    pub(crate) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    pub(crate) fn dupacked(&self) -> u64 {
        self.detector.dupacked(&self.board, self.phase, self.mss)
    }

    /// Octets held to be in the network (RFC 6675 §4), less those that duplicates account for.
    pub(crate) fn pipe(&self) -> u64 {
        self.board.in_network() - self.dupacked()
    }

    fn view(&self, now: Time) -> View {
        View { now, una: self.una(), nxt: self.nxt(), srtt: self.srtt() }
    }

    // --- acknowledgments ---

    /// Takes in an acknowledgment of something between SND.UNA and SND.NXT.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Time, ack: &Ack<'_>, mechanisms: &mut Mechanisms) {
        if ack.ack > self.board.una() && ack.blocks.is_empty() && self.is_plain() {
            // Nothing is missing, so nothing can be found lost.
            self.right_edge = ack.right_edge;
            self.on_advance(now, ack.ack, 0, None);
        } else {
            self.on_ack_of_gap(now, ack, mechanisms);
        }
    }

    /// The peer's window has moved, and nothing else.
    #[inline]
    pub(crate) fn on_window(&mut self, right_edge: u64) {
        self.right_edge = right_edge;
    }

    /// Whether there is no episode, no hole, no duplicate: the usual case.
    #[inline]
    fn is_plain(&self) -> bool {
        self.phase == Phase::Open && self.board.is_clean() && self.detector.is_quiet()
    }

    /// An acknowledgment while something is, or may be, missing.
    fn on_ack_of_gap(&mut self, now: Time, ack: &Ack<'_>, mechanisms: &mut Mechanisms) {
        let outstanding = self.board.outstanding();
        let (told, latest) = match ack.blocks {
            [] => (0, None),
            blocks => self.board.sack(blocks),
        };
        let advanced = ack.ack > self.board.una();
        if advanced {
            self.on_advance(now, ack.ack, told, latest);
        } else if outstanding > 0 {
            // RFC 6675 §2 counts what tells something new, RFC 5681 §2 what tells nothing at all.
            let duplicate = if self.detector.uses_sack() {
                told > 0
            } else {
                ack.bare && ack.right_edge == self.right_edge
            };
            if duplicate {
                self.detector.on_duplicate();
            }
            if let Some(sent) = latest {
                self.on_delivery(now, told, &sent);
            }
        }
        self.right_edge = ack.right_edge;
        if advanced || self.detector.duplicates() > 0 {
            while let Some((index, signal)) =
                self.detector.next_loss(&mut self.board, self.phase, self.mss)
            {
                self.judge(now, index, signal, mechanisms);
            }
        }
    }

    #[inline]
    fn on_advance(&mut self, now: Time, ack: u64, told: u64, sacked: Option<Sent>) {
        let advanced = self.board.advance(ack);
        self.stream.acknowledged(ack);
        self.limited = 0;
        if advanced.timed {
            self.rtt.sample(now, advanced.sent_at);
        }
        // RFC 6298 §5.2, 5.3.
        self.deadline = match self.board.outstanding() {
            0 => Time::NEVER,
            _ => now + self.rtt.rto(),
        };
        let delivered = advanced.delivered + told;
        let latest = sacked.filter(|sent| sent.at > advanced.last.at).unwrap_or(advanced.last);
        let rate = self.on_delivery(now, delivered, &latest);

        // A recovery keeps its window as it was set; outside, the window grows.
        let grows = self.phase != Phase::Recovery;
        let after_timeout = self.phase == Phase::Loss;
        if !self.is_plain() || !advanced.state.is_empty() {
            self.on_gap_moved(now, &advanced);
        }
        if grows {
            self.controller.on_ack(&AckSample {
                now,
                acked: advanced.acked,
                delivered,
                rate,
                rtt: advanced.timed.then(|| now.since(advanced.sent_at)),
                srtt: self.rtt.smoothed(),
                window_limited: self.window_limited,
                after_timeout,
                mss: self.mss,
            });
        }
    }

    /// New data was acknowledged while something was missing: where does that leave the episode?
    fn on_gap_moved(&mut self, now: Time, advanced: &Advanced) {
        let over =
            self.detector.on_advance(&self.board, advanced, self.mss, self.phase, self.recover);
        match self.phase {
            Phase::Recovery if over => {
                self.phase = Phase::Open;
                // What was found lost beyond the point of recovery is the next episode.
                if self.detector.uses_sack() && self.board.has_blamed() {
                    self.respond(now, None, false);
                }
            }
            Phase::Loss if self.board.una() >= self.recover => self.phase = Phase::Open,
            Phase::Loss | Phase::Open | Phase::Recovery => {}
        }
    }

    /// `octets` more have been delivered, the latest of them by a copy that was so `sent`.
    #[inline]
    fn on_delivery(&mut self, now: Time, octets: u64, sent: &Sent) -> RateSample {
        let bytes = self.delivered.bytes + octets;
        self.delivered = Delivered { bytes, at: now, first_sent_at: sent.at };
        let sending = sent.at.since(sent.with.first_sent_at);
        let acknowledging = now.since(sent.with.at);
        RateSample { delivered: bytes - sent.with.bytes, interval: sending.max(acknowledging) }
    }

    // --- losses ---

    /// A mechanism asks for something that a notice has told it.
    pub(crate) fn act(
        &mut self,
        now: Time,
        start: u64,
        action: Action,
        mechanisms: &mut Mechanisms,
    ) {
        let (Action::Lost { copy, .. } | Action::RetransmitNow { copy, .. }) = action;
        let Some(index) = self.board.find(start) else {
            return;
        };
        let record = *self.board.get(index);
        // A notice counts for the latest copy of what is still missing, else it is stale.
        if record.copy != copy || record.state.contains(State::SACKED) {
            return;
        }
        self.statistics.notices += 1;
        match action {
            Action::Lost { .. } => self.judge(now, index, Signal::Notice, mechanisms),
            Action::RetransmitNow { .. } => self.forced.push_back(record.start),
        }
        self.deadline = now + self.rtt.rto();
    }

    /// Gives a loss its verdict and acts on it.
    fn judge(&mut self, now: Time, index: usize, signal: Signal, mechanisms: &mut Mechanisms) {
        let record = *self.board.get(index);
        let loss = Loss {
            start: record.start,
            end: record.end(),
            copy: record.copy,
            sent_at: record.sent.at,
            signal,
        };
        let verdict = mechanisms.loss(&self.view(now), &loss);
        let excused = verdict == Verdict::Corruption;
        match signal {
            Signal::Notice => self.board.lose_latest_copy(index, excused),
            Signal::Dupack | Signal::Sack | Signal::Rto => self.board.lose(index, excused),
        }
        let responded = match verdict {
            Verdict::Corruption => false,
            Verdict::Congestion { .. } | Verdict::Decrease(_) if self.phase != Phase::Open => false,
            Verdict::Congestion { keep_ssthresh } => self.respond(now, None, keep_ssthresh),
            Verdict::Decrease(factor) => self.respond(now, Some(factor), false),
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
    fn respond(&mut self, now: Time, decrease: Option<f64>, keep_ssthresh: bool) -> bool {
        let episode = self.episode(now, decrease, keep_ssthresh);
        self.recover = self.board.nxt();
        self.statistics.reductions += 1;
        self.detector.begin(&self.board);
        if self.detector.recovers_fast() {
            self.controller.on_congestion(&episode);
            self.phase = Phase::Recovery;
        } else {
            self.controller.on_rto(&episode);
            self.start_over();
        }
        true
    }

    fn episode(&self, now: Time, decrease: Option<f64>, keep_ssthresh: bool) -> Episode {
        // Holes that are held open let more than a window be outstanding; what the window did
        // not allow must not come back as ssthresh.
        let flight = (self.board.outstanding() - self.limited).min(self.controller.window());
        Episode { now, flight, mss: self.mss, decrease, keep_ssthresh, marked: false }
    }

    /// Declares everything lost and goes back to SND.UNA.
    fn start_over(&mut self) {
        self.board.lose_everything();
        self.detector.start_over(&self.board);
        self.forced.clear();
        self.recover = self.board.nxt();
        self.phase = Phase::Loss;
    }

    /// The time has come for whatever was due.
    pub(crate) fn on_deadline(&mut self, now: Time, mechanisms: &mut Mechanisms) {
        if now < self.deadline {
            return;
        }
        self.deadline = Time::NEVER;
        let Some(&first) = self.board.first() else {
            return;
        };
        self.statistics.timeouts += 1;
        self.series = if self.timed_out_at == self.board.una() { self.series + 1 } else { 1 };
        self.timed_out_at = self.board.una();
        // RFC 6298 §5.5, 5.6.
        self.rtt.back_off();
        self.deadline = now + self.rtt.rto();
        let loss = Loss {
            start: first.start,
            end: first.end(),
            copy: first.copy,
            sent_at: first.sent.at,
            signal: Signal::Rto,
        };
        let (decrease, keep_ssthresh) = match mechanisms.loss(&self.view(now), &loss) {
            Verdict::Corruption => {
                self.board.lose_latest_copy(0, true);
                self.forced.push_back(first.start);
                return;
            }
            Verdict::Congestion { keep_ssthresh } => (None, keep_ssthresh),
            Verdict::Decrease(factor) => (Some(factor), false),
        };
        let hold = self.series > 1 && self.config.ssthresh_on_backoff == SsthreshOnBackoff::Hold;
        self.controller.on_rto(&self.episode(now, decrease, keep_ssthresh || hold));
        self.start_over();
    }

    /// Whether as many timeouts in a row have struck as there may be.
    pub(crate) fn gives_up(&self) -> bool {
        self.series > self.config.retries
    }

    // --- transmission ---

    /// What to send next, if anything may be sent now.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> Option<Transmission> {
        if self.board.una() == self.stream.end() {
            return None;
        }
        if !self.is_plain() || !self.forced.is_empty() {
            return self.poll_with_gap(now);
        }
        let len = self.next_in_window()?;
        let transmission = self.send_new(now, len);
        Some(Transmission { more: self.next_in_window().is_some(), ..transmission })
    }

    /// The length of the next segment of new data, if both windows have room for it.
    #[inline]
    fn next_in_window(&mut self) -> Option<u64> {
        let next = self.next_len();
        self.window_limited =
            next.is_some_and(|len| self.board.outstanding() + len > self.controller.window());
        next.filter(|_| !self.window_limited)
    }

    /// The length of the next segment of new data, if there is data and the peer's window has room.
    #[inline]
    fn next_len(&self) -> Option<u64> {
        let nxt = self.board.nxt();
        let available = self.stream.available(nxt).min(u64::from(self.mss));
        let len = available.min(self.right_edge.saturating_sub(nxt));
        // RFC 9293 §3.8.6.2.1: no small segment only because the peer's window is nearly full.
        let silly = len < available && self.board.outstanding() > 0;
        (len > 0 && !silly).then_some(len)
    }

    /// What to send next while something is missing.
    fn poll_with_gap(&mut self, now: Time) -> Option<Transmission> {
        while let Some(start) = self.forced.pop_front() {
            let Some(index) = self.board.find(start) else { continue };
            let state = self.board.get(index).state;
            if state & (State::LOST | State::EXCUSED | State::SACKED) == State::LOST {
                return Some(self.retransmit(now, index));
            }
            // What a notice has named says nothing of the holes below it: HighRxt stays.
            if !state.contains(State::SACKED) {
                return Some(self.send_again(now, index));
            }
        }
        let conserving = self.phase != Phase::Open || self.board.has_excused();
        let pipe = if conserving { self.pipe() } else { self.board.outstanding() };
        let window = self.controller.window();
        if let Some(index) = self.board.next_pending() {
            let len = u64::from(self.board.get(index).len);
            self.window_limited = pipe + len > window && pipe > 0;
            return (!self.window_limited).then(|| self.retransmit(now, index));
        }

        if let Some(len) = self.next_len() {
            if pipe + len <= window {
                return Some(self.send_new(now, len));
            }
            self.window_limited = true;
            // RFC 3042: the first two duplicates let out a segment each, beyond the window.
            let duplicates = u64::from(self.detector.duplicates().min(2));
            if self.config.limited_transmit
                && !conserving
                && duplicates > 0
                && self.board.outstanding() + len <= window + duplicates * u64::from(self.mss)
            {
                self.limited += len;
                return Some(self.send_new(now, len));
            }
            return None;
        }
        self.window_limited = false;
        if self.phase == Phase::Recovery
            && pipe + u64::from(self.mss) <= window
            && let Some(index) = self.detector.speculative(&self.board, self.recover)
        {
            return Some(self.send_again(now, index));
        }
        None
    }

    #[inline]
    fn send_new(&mut self, now: Time, len: u64) -> Transmission {
        let copy = self.next_copy(now);
        let start = self.board.nxt();
        let len = len as u32; // At most one segment.
        self.board.push(Record {
            start,
            len,
            copy,
            sent: Sent { at: now, with: self.delivered },
            state: State::empty(),
        });
        Transmission { start, len, copy, more: true }
    }

    fn retransmit(&mut self, now: Time, index: usize) -> Transmission {
        self.detector.on_retransmit(self.board.get(index).end());
        self.send_again(now, index)
    }

    fn send_again(&mut self, now: Time, index: usize) -> Transmission {
        self.statistics.retransmissions += 1;
        let copy = self.next_copy(now);
        self.board.resend(index, copy, Sent { at: now, with: self.delivered });
        let record = self.board.get(index);
        Transmission { start: record.start, len: record.len, copy, more: true }
    }

    fn next_copy(&mut self, now: Time) -> CopyId {
        self.statistics.segments += 1;
        if self.board.outstanding() == 0 {
            self.delivered.at = now;
            self.delivered.first_sent_at = now;
        }
        // RFC 6298 §5.1.
        if self.deadline == Time::NEVER {
            self.deadline = now + self.rtt.rto();
        }
        self.copies = self.copies.wrapping_add(1).max(1);
        CopyId(self.copies)
    }
}
