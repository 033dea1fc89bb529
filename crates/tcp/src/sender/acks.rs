//! Acknowledgments: scoreboard, round-trip samples and the peer's window.

use super::losses::FlightSize;
use super::{MaxFlight, Sender};
use crate::congestion::{AckSample, CeMarks, RateSample};
use crate::event::Event;
use crate::mechanism::{Mechanisms, Signal};
use crate::recovery::{AckContext, Phase};
use crate::scoreboard::{Advanced, Delivered, Delivery, Sacked, Sent, WholeRecords};
use base::{Duration, Time};

/// An acknowledgment, in absolute sequence numbers.
pub(crate) struct Ack<'a> {
    /// The next octet that the peer expects.
    pub(crate) ack: u64,
    /// The peer's window.
    pub(crate) window: Window,
    /// The peer's SACK blocks.
    pub(crate) blocks: &'a [(u64, u64)],
    /// The segment may count as a duplicate acknowledgment: it carried nothing else (RFC 5681 §2).
    pub(crate) may_be_dupack: bool,
    /// The round-trip sample of its timestamp (RFC 7323 §4.1).
    pub(crate) echoed: Option<Duration>,
    /// It reports congestion: ECE is set (RFC 3168 §6.1.2), or marks are counted.
    pub(crate) congested: bool,
    /// The marks that it reports (RFC 9768).
    pub(crate) marks: CeMarks,
    /// It acknowledges a segment sent over the current path.
    pub(crate) on_current_path: bool,
    /// Each of the first two duplicates sends a segment of new data, beyond the window.
    pub(crate) force_limited_transmit: bool,
}

/// The peer's window as a segment announced it (RFC 9293 §3.10.7.4, SND.WL1 and SND.WL2).
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// The segment's sequence number, absolute in the peer's space.
    pub(crate) seq: u64,
    /// The segment's acknowledgment number.
    pub(crate) ack: u64,
    /// SEG.ACK + SEG.WND, scaled: the octet after the last that the window allows.
    pub(crate) window_end: u64,
}

impl Sender {
    /// Processes an acknowledgment between SND.UNA and SND.NXT.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Time, ack: &Ack<'_>, mechanisms: &mut Mechanisms) {
        self.check_app_limited();
        let clean =
            ack.blocks.is_empty() && !ack.congested && self.is_clean() && self.probe.is_none();
        if self.search.is_some() {
            self.on_ack_while_searching(now, ack.ack);
        }
        if clean && ack.ack > self.board.una() {
            // Without a gap, no loss can be found.
            self.on_window(now, &ack.window);
            self.on_advance(now, ack, self.board.una(), &Sacked::default());
            self.confirm_notices(now, mechanisms);
        } else {
            self.on_ack_in_disorder(now, ack, mechanisms);
        }
    }

    /// Whether [`Sender::acknowledge_whole`] may be called: there is no gap, no window probe, no
    /// forced retransmission, no pending notice and no recording of events, and the congestion
    /// window counts as used only if it is full.
    #[inline]
    pub(crate) fn is_on_fast_path(&self) -> bool {
        self.is_clean()
            && !self.probing
            && !self.log.is_enabled()
            && self.max_flight.is_none()
            && self.probe.is_none()
            && self.search.is_none()
            && self.forced_queue.is_empty()
            && self.has_no_pending_notices()
    }

    /// Like [`Sender::on_ack`], for an acknowledgment of whole records on the fast path, but without
    /// [`Sender::grow`], which may have to follow. `None`, without effect, for any other
    /// acknowledgment.
    #[inline(always)]
    pub(crate) fn acknowledge_whole(&mut self, now: Time, window: &Window) -> Option<WholeRecords> {
        self.check_app_limited();
        let whole = self.board.advance_whole(window.ack)?;
        self.update_window(window);
        self.stream.acknowledged(window.ack);
        debug_assert_eq!(
            self.limited_transmit_octets, 0,
            "nothing is sent beyond the window unless something is missing"
        );
        self.progress_at = now;
        self.rtt.sample(now, whole.sent_at);
        if self.round_trips.is_some() {
            self.record_round_trip(now.since(whole.sent_at));
        }
        match self.board.outstanding() {
            0 => self.deadline = Time::NEVER,
            _ => self.restart_timer_without_gap(now),
        }
        self.deliver(now, whole.acked, &whole.last);
        Some(whole)
    }

    /// Records a round trip, of which the estimator knows.
    //
    // A separate function, so that connections that measure nothing keep their registers.
    #[inline(never)]
    fn record_round_trip(&mut self, sample: Duration) {
        if let Some(round_trips) = &mut self.round_trips {
            round_trips.samples.record(sample.as_nanos());
            round_trips.smoothed.record(self.rtt.smoothed().unwrap_or_default().as_nanos());
        }
    }

    /// Updates the largest flight of the round trip, before an acknowledgment is processed.
    #[inline]
    fn update_max_flight(&mut self) {
        let Some(max_flight) = &mut self.max_flight else { return };
        if self.board.una() >= max_flight.until {
            **max_flight = MaxFlight { octets: 0, until: self.board.nxt() };
        }
        max_flight.octets = max_flight.octets.max(self.board.outstanding());
    }

    /// Whether the congestion window counts as used, so that it may grow.
    #[inline]
    fn is_window_limited(&self) -> bool {
        let half = |max_flight: &MaxFlight| {
            let window = self.controller.window();
            window < self.controller.ssthresh() && window < 2 * max_flight.octets
        };
        self.window_limited || self.max_flight.as_deref().is_some_and(half)
    }

    /// Whether the congestion controller needs a sample of each acknowledgment at present.
    #[inline]
    pub(crate) fn needs_ack_sample(&self) -> bool {
        self.controller.needs_ack_sample(self.window_limited)
    }

    /// Passes the acknowledgment of [`Sender::acknowledge_whole`] to the congestion controller.
    #[inline(always)]
    pub(crate) fn grow(&mut self, now: Time, whole: &WholeRecords) {
        let WholeRecords { acked, sent_at, ref last } = *whole;
        let rate = self.rate(now, last);
        let flight = self.flight_sample(now, last, true);
        let sample = AckSample {
            now,
            acked,
            limited_transmit: 0,
            delivered: acked,
            rate,
            flight,
            rtt: Some(self.rtt.measured(now, sent_at)),
            srtt: self.rtt.smoothed(),
            window_limited: self.window_limited,
            after_timeout: false,
            mss: self.mss,
            marks: CeMarks::default(),
        };
        self.controller.on_ack(&sample, self.board.una(), self.board.nxt());
    }

    /// Updates the peer's window, unless the segment is older than the last update.
    #[inline]
    pub(crate) fn on_window(&mut self, now: Time, window: &Window) {
        let edge = self.window_end;
        if self.update_window(window) && self.probing {
            self.on_window_while_probing(now, edge);
        }
    }

    /// Whether the peer's closed window is being probed.
    #[inline]
    pub(crate) fn is_probing(&self) -> bool {
        self.probing
    }

    /// Like [`Sender::on_window`], outside of window probing; false for an old segment.
    #[inline]
    pub(crate) fn update_window(&mut self, window: &Window) -> bool {
        // A comparison of pairs would not be made of branches.
        if window.seq < self.wl1 || window.seq == self.wl1 && window.ack < self.wl2 {
            return false;
        }
        self.wl1 = window.seq;
        self.wl2 = window.ack;
        self.window_end = window.window_end;
        self.max_window = self.max_window.max(window.window_end - window.ack);
        true
    }

    /// Whether there is no loss episode, no hole and no duplicate acknowledgment.
    #[inline]
    pub(super) fn is_clean(&self) -> bool {
        self.phase == Phase::Open && self.board.is_clean() && self.detector.has_no_dupacks()
    }

    /// Processes an acknowledgment with a gap, a SACK block, a duplicate or an ECN echo.
    fn on_ack_in_disorder(&mut self, now: Time, ack: &Ack<'_>, mechanisms: &mut Mechanisms) {
        let (outstanding, delivered_before) = (self.board.outstanding(), self.delivered_estimate());
        let flight = self.flight_size();
        let same_window = ack.window.window_end == self.window_end;
        // An answer to a window probe is no duplicate.
        let closed = self.window_end <= self.board.una();
        self.on_window(now, &ack.window);
        let (dsack, blocks) = self.take_dsack(ack);
        self.on_ack_of_probe(now, ack, dsack, mechanisms);
        self.check_notices(now, ack, blocks, mechanisms);
        if self.log.is_enabled() {
            for &(start, end) in blocks.iter().filter(|&&block| self.board.is_new_block(block)) {
                self.log.push(|| Event::Sacked { start, end });
            }
        }
        let fack = self.board.fack();
        let sacked = match blocks {
            [] => Sacked::default(),
            blocks => {
                // What is echoed is the timestamp of a segment in order (RFC 7323 §4.3), which says
                // nothing of those in the blocks.
                let resent_until = self.resent_until(now, None);
                self.board.sack(blocks, resent_until)
            }
        };
        let newly_sacked = sacked.octets;
        let advanced = ack.ack > self.board.una();
        if ack.congested {
            self.on_congestion_echo(now, mechanisms);
            // RFC 3168 §6.1.2: the window does not grow by an acknowledgment with ECE.
            self.window_limited = false;
        }
        // RFC 6675 §2 counts an acknowledgment with new SACK information as a duplicate, RFC 5681
        // §2 one without any change.
        let duplicate = if self.detector.uses_sack() {
            newly_sacked > 0 && blocks.iter().any(|&(_, end)| end > ack.ack)
        } else {
            ack.may_be_dupack && same_window && !advanced
        };
        let duplicate = duplicate && outstanding > 0 && !closed;
        let (mut delivery, recover) = (sacked.delivery, self.recover);
        if advanced {
            delivery = delivery.and(self.on_advance(now, ack, fack, &sacked));
            self.confirm_notices(now, mechanisms);
        } else if outstanding > 0 && !closed {
            if let Some(sent) = sacked.latest {
                self.deliver(now, newly_sacked, &sent);
                self.restart_timer_on_sack(now, &sent);
            }
            if duplicate {
                let sample = self.dupack_sample(now, newly_sacked, sacked.latest);
                self.controller.on_other_ack(&AckSample { marks: ack.marks, ..sample });
            }
        }
        if duplicate {
            self.log.push(|| Event::DuplicateAck);
            self.detector.on_dupack();
            if ack.force_limited_transmit
                && self.phase == Phase::Open
                && self.detector.dupacks() <= 2
            {
                self.force_new_data();
            }
        }
        self.update_frto(recover, advanced, &delivery);
        if self.detector.uses_rack() {
            self.update_rack(now, dsack.is_some(), &delivery);
        }
        let lossless = if advanced || self.detector.dupacks() > 0 || self.detector.uses_rack() {
            !self.detect_losses(now, flight, mechanisms)
        } else {
            true
        };
        self.update_prr(delivered_before, advanced, lossless);
        self.update_timer(now, advanced || newly_sacked > 0);
    }

    /// Handles the losses that the detector finds, with this `flight` when they were found; returns
    /// whether there were any.
    pub(super) fn detect_losses(
        &mut self,
        now: Time,
        flight: FlightSize,
        mechanisms: &mut Mechanisms,
    ) -> bool {
        let mut any = false;
        while let Some((index, signal)) =
            self.detector.next_loss(now, &mut self.board, self.phase, self.mss)
        {
            self.on_loss(now, index, signal, flight, mechanisms);
            any = true;
        }
        any
    }

    /// Updates RACK by the deliveries without a gap since the last call or [`Sender::update_rack`]:
    /// those ranges were sent once and in order, so the last of them counts.
    pub(super) fn record_fast_path_deliveries(&mut self) {
        let Some(rack) = self.detector.rack() else { return };
        if self.delivered.bytes > self.rack_delivered {
            self.rack_delivered = self.delivered.bytes;
            rack.on_delivered(self.delivered.at, (self.delivered.first_sent_at, self.board.una()));
        }
    }

    /// Updates RACK after an acknowledgment.
    fn update_rack(&mut self, now: Time, dsack: bool, delivery: &Delivery) {
        self.rack_delivered = self.delivered.bytes;
        let context = AckContext {
            now,
            dsack,
            recovering: self.phase != Phase::Open,
            min_rtt: self.rtt.min(now).unwrap_or_default(),
            srtt: self.rtt.smoothed().unwrap_or_default(),
        };
        if let Some(rack) = self.detector.rack() {
            rack.on_ack(&self.board, &context, delivery);
        }
    }

    /// A retransmission sent no later than this may be what an acknowledgment reports: the
    /// timestamp shows no earlier copy, and it has had time for a round trip (RFC 8985 §6.2, step
    /// 2).
    fn resent_until(&mut self, now: Time, echoed: Option<Duration>) -> Time {
        // The timestamps' clock ticks once in a millisecond.
        let echoed = echoed.map_or(Duration::ZERO, |age| age - Duration::from_millis(1));
        let age = self.rtt.min(now).unwrap_or_default().max(echoed);
        now - age
    }

    /// The congestion controller's sample of a duplicate acknowledgment.
    fn dupack_sample(&mut self, now: Time, delivered: u64, latest: Option<Sent>) -> AckSample {
        let rate = latest.map(|sent| self.rate(now, &sent)).unwrap_or_default();
        let flight = latest.map(|sent| self.flight_sample(now, &sent, false)).unwrap_or_default();
        AckSample {
            now,
            acked: 0,
            limited_transmit: 0,
            delivered,
            rate,
            flight,
            rtt: None,
            srtt: self.rtt.smoothed(),
            window_limited: false,
            after_timeout: self.phase == Phase::Loss,
            mss: self.mss,
            marks: CeMarks::default(),
        }
    }

    /// Processes an advance of SND.UNA. The same acknowledgment has `sacked` something before;
    /// `fack` was the end of what was delivered before that.
    #[inline]
    fn on_advance(&mut self, now: Time, ack: &Ack<'_>, fack: u64, sacked: &Sacked) -> Delivery {
        self.update_max_flight();
        let flight = self.flight_size();
        let resent_until =
            if self.is_clean() { Time::NEVER } else { self.resent_until(now, ack.echoed) };
        let advanced = self.board.advance(ack.ack, fack, resent_until);
        self.stream.acknowledged(ack.ack);
        let limited_transmit = core::mem::take(&mut self.limited_transmit_octets);
        self.progress_at = now;
        // Where Karn's rule forbids a sample, the timestamp shows which copy was acknowledged.
        let sample = if advanced.timed { Some(now.since(advanced.sent_at)) } else { ack.echoed };
        let sample = sample.filter(|_| ack.on_current_path);
        if let Some(sample) = sample {
            self.rtt.sample(now, now - sample);
            if self.round_trips.is_some() {
                self.record_round_trip(sample);
            }
            self.log.push(|| Event::RoundTrip {
                sample,
                smoothed: self.rtt.smoothed().unwrap_or_default(),
                rto: self.rtt.rto(),
            });
        }
        // RFC 6298 §5.2, 5.3.
        match self.board.outstanding() {
            0 => self.deadline = Time::NEVER,
            _ => self.restart_timer(now),
        }
        let delivered = advanced.delivered + sacked.octets;
        self.log.push(|| Event::Acknowledged { una: ack.ack, delivered });
        let latest =
            sacked.latest.filter(|sent| sent.at > advanced.last.at).unwrap_or(advanced.last);
        self.deliver(now, delivered, &latest);

        // The window does not grow in fast recovery.
        let grows = self.phase != Phase::Recovery && ack.on_current_path;
        if !self.is_clean() || !advanced.state.is_empty() {
            self.update_episode(now, flight, &advanced);
        }
        let sample = AckSample {
            now,
            acked: advanced.acked,
            limited_transmit,
            delivered,
            rate: self.rate(now, &latest),
            flight: self.flight_sample(now, &latest, advanced.timed),
            rtt: sample.map(|sample| self.rtt.measured(now, now - sample)),
            srtt: self.rtt.smoothed(),
            window_limited: self.is_window_limited(),
            after_timeout: self.phase == Phase::Loss,
            mss: self.mss,
            marks: ack.marks,
        };
        if grows {
            self.controller.on_ack(&sample, self.board.una(), self.board.nxt());
        } else {
            self.controller.on_other_ack(&sample);
        }
        advanced.delivery
    }

    /// Updates or ends the recovery episode after an advance of SND.UNA; `flight` was before it.
    fn update_episode(&mut self, now: Time, flight: FlightSize, advanced: &Advanced) {
        let over =
            self.detector.on_advance(&self.board, advanced, self.mss, self.phase, self.recover);
        match self.phase {
            Phase::Recovery if over => {
                self.exit_recovery();
                // Losses beyond the recovery point begin the next episode.
                if self.detector.uses_sack() && self.board.has_congestion_loss() {
                    let rack = self.detector.uses_rack();
                    let signal = if rack { Signal::Rack } else { Signal::Sack };
                    self.begin_episode(now, signal, flight, None, false);
                }
            }
            Phase::Loss if self.board.una() >= self.recover => self.exit_recovery(),
            Phase::Loss | Phase::Open | Phase::Recovery => {}
        }
    }

    /// Counts `octets` as delivered; `sent` is how the latest of them was sent.
    #[inline]
    fn deliver(&mut self, now: Time, octets: u64, sent: &Sent) {
        let bytes = self.delivered.bytes + octets;
        self.delivered = Delivered { bytes, at: now, first_sent_at: sent.at };
        self.pacer.on_delivered(now, octets, bytes, sent.delivered);
    }

    /// The delivery rate at the latest delivered octet, which was sent as in `sent`.
    #[inline]
    fn rate(&self, now: Time, sent: &Sent) -> RateSample {
        let sending = sent.at.since(sent.first_sent_at);
        let acknowledging = now.since(sent.delivered_at);
        let delivered = self.delivered.bytes - sent.delivered;
        RateSample { delivered, interval: sending.max(acknowledging) }
    }

    /// Takes a DSACK block off the blocks (RFC 2883 §4); returns it and the rest.
    #[expect(clippy::type_complexity, reason = "a block and a list of blocks")]
    fn take_dsack<'a>(&mut self, ack: &Ack<'a>) -> (Option<(u64, u64)>, &'a [(u64, u64)]) {
        let Some((&(start, end), rest)) = ack.blocks.split_first() else {
            return (None, ack.blocks);
        };
        let within = |outer: &(u64, u64)| outer.0 <= start && end <= outer.1;
        if end > ack.ack && !rest.first().is_some_and(within) {
            return (None, ack.blocks);
        }
        self.statistics.dsacks += 1;
        self.on_spurious_retransmission((start, end));
        (Some((start, end)), rest)
    }
}
