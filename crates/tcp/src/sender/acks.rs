//! Acknowledgments: what they say of the scoreboard, the round trip and the peer's window.

use super::{Sender, Used};
use crate::congestion::{AckSample, RateSample};
use crate::event::Event;
use crate::mechanism::{Mechanisms, Signal};
use crate::recovery::Phase;
use crate::scoreboard::{Advanced, Delivered, Sent};
use base::{Duration, Time};

/// An acknowledgment, in absolute sequence numbers.
pub(crate) struct Ack<'a> {
    /// The next octet that the peer expects.
    pub(crate) ack: u64,
    /// What it says of the peer's window.
    pub(crate) window: Window,
    /// The peer's SACK blocks.
    pub(crate) blocks: &'a [(u64, u64)],
    /// The segment carried nothing else, so that it may count as a duplicate (RFC 5681 §2).
    pub(crate) bare: bool,
    /// The round trip that its timestamp shows (RFC 7323 §4.1).
    pub(crate) echoed: Option<Duration>,
    /// It says that congestion was experienced (RFC 3168 §6.1.2).
    pub(crate) congested: bool,
    /// It answers what was sent over the present path.
    pub(crate) current: bool,
    /// If it is one of the first two duplicates, it lets out a segment of new data.
    pub(crate) lets_out: bool,
}

/// The peer's window as a segment announced it (RFC 9293 §3.10.7.4, SND.WL1 and SND.WL2).
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// The segment's sequence number, absolute in the peer's space.
    pub(crate) seq: u64,
    /// The segment's acknowledgment number.
    pub(crate) ack: u64,
    /// The octet after the last that the window allows.
    pub(crate) right_edge: u64,
}

impl Sender {
    /// Takes in an acknowledgment of something between SND.UNA and SND.NXT.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Time, ack: &Ack<'_>, mechanisms: &mut Mechanisms) {
        let clean = ack.blocks.is_empty() && !ack.congested && self.is_clean();
        if clean && ack.ack > self.board.una() {
            // Nothing is missing, so nothing can be found lost.
            self.on_window(now, &ack.window);
            self.on_advance(now, ack, 0, None);
            self.settle_notices(now, mechanisms);
        } else {
            self.on_ack_of_gap(now, ack, mechanisms);
        }
    }

    /// Whether [`Sender::acknowledge_one`] may be called: nothing is missing, probed or forced out, no
    /// notice may prove false, no events are kept, and the window counts as used only if it is full.
    #[inline]
    pub(crate) fn is_on_fast_path(&self) -> bool {
        self.is_clean()
            && !self.probing
            && !self.log.is_kept()
            && self.used.is_none()
            && self.forced.is_empty()
            && self.has_settled_notices()
    }

    /// What [`Sender::on_ack`] does with the acknowledgment of exactly one record on the fast path,
    /// but for [`Sender::grow`], which may have to follow. If it was that, says how the record was
    /// sent; otherwise nothing has happened.
    #[inline(always)]
    pub(crate) fn acknowledge_one(&mut self, now: Time, window: &Window) -> Option<Sent> {
        let (acked, sent) = self.board.advance_one(window.ack)?;
        self.update_window(window);
        self.stream.acknowledged(window.ack);
        debug_assert_eq!(
            self.limited, 0,
            "nothing is sent beyond the window unless something is missing"
        );
        self.progress_at = now;
        self.rtt.sample(now, sent.at);
        match self.board.outstanding() {
            0 => self.deadline = Time::NEVER,
            _ => self.restart_timer(now),
        }
        self.deliver(now, acked, &sent);
        Some(sent)
    }

    /// Before an acknowledgment is taken in: how much is outstanding, at most, in a round trip.
    #[inline]
    fn note_use(&mut self) {
        let Some(used) = &mut self.used else { return };
        if self.board.una() >= used.until {
            **used = Used { most: 0, until: self.board.nxt() };
        }
        used.most = used.most.max(self.board.outstanding());
    }

    /// Whether the window is used, so that it may grow.
    #[inline]
    fn is_window_used(&self) -> bool {
        let half = |used: &Used| {
            let window = self.controller.window();
            window < self.controller.ssthresh() && window < 2 * used.most
        };
        self.window_limited || self.used.as_deref().is_some_and(half)
    }

    /// Whether the congestion controller needs a sample of each acknowledgment just now.
    #[inline]
    pub(crate) fn needs_ack_sample(&self) -> bool {
        self.controller.needs_ack_sample(self.window_limited)
    }

    /// The congestion controller's share of [`Sender::acknowledge_one`].
    #[inline(always)]
    pub(crate) fn grow(&mut self, now: Time, acked: u64, sent: &Sent) {
        let rate = self.rate(now, sent);
        self.controller.on_ack(&AckSample {
            now,
            acked,
            answered: 0,
            delivered: acked,
            rate,
            rtt: Some(self.rtt.measured(now, sent.at)),
            srtt: self.rtt.smoothed(),
            window_limited: self.window_limited,
            after_timeout: false,
            mss: self.mss,
        });
    }

    /// What a segment says of the peer's window; an old one says nothing.
    #[inline]
    pub(crate) fn on_window(&mut self, now: Time, window: &Window) {
        let edge = self.right_edge;
        if self.update_window(window) && self.probing {
            self.on_window_while_probing(now, edge);
        }
    }

    /// Whether the peer's closed window is being probed.
    #[inline]
    pub(crate) fn is_probing(&self) -> bool {
        self.probing
    }

    /// The share of [`Sender::on_window`] while nothing is being probed; false for an old segment.
    #[inline]
    pub(crate) fn update_window(&mut self, window: &Window) -> bool {
        // A comparison of pairs would not be made of branches.
        if window.seq < self.wl1 || window.seq == self.wl1 && window.ack < self.wl2 {
            return false;
        }
        self.wl1 = window.seq;
        self.wl2 = window.ack;
        self.right_edge = window.right_edge;
        self.max_window = self.max_window.max(window.right_edge - window.ack);
        true
    }

    /// Whether there is no loss episode, no hole and no duplicate acknowledgment.
    #[inline]
    pub(super) fn is_clean(&self) -> bool {
        self.phase == Phase::Open && self.board.is_clean() && self.detector.is_quiet()
    }

    /// An acknowledgment while something is, or may be, missing.
    fn on_ack_of_gap(&mut self, now: Time, ack: &Ack<'_>, mechanisms: &mut Mechanisms) {
        let (outstanding, heard) = (self.board.outstanding(), self.heard());
        let same_window = ack.window.right_edge == self.right_edge;
        // The peer answers a probe of its closed window: that is no duplicate.
        let closed = self.right_edge <= self.board.una();
        self.on_window(now, &ack.window);
        let blocks = self.on_twice(ack);
        self.weigh_notices(now, ack, blocks, mechanisms);
        if self.log.is_kept() {
            for &(start, end) in blocks.iter().filter(|&&block| self.board.is_news(block)) {
                self.log.push(|| Event::Sacked { start, end });
            }
        }
        let (told, latest) = match blocks {
            [] => (0, None),
            blocks => self.board.sack(blocks),
        };
        let advanced = ack.ack > self.board.una();
        if ack.congested {
            self.on_congestion_echo(now, mechanisms);
            // RFC 3168 §6.1.2: no such acknowledgment widens the window.
            self.window_limited = false;
        }
        // RFC 6675 §2 counts an acknowledgment that tells something new of what lies beyond it, RFC 5681
        // §2 one that tells nothing at all.
        let duplicate = if self.detector.uses_sack() {
            told > 0 && blocks.iter().any(|&(_, end)| end > ack.ack)
        } else {
            ack.bare && same_window && !advanced
        };
        let duplicate = duplicate && outstanding > 0 && !closed;
        if advanced {
            self.on_advance(now, ack, told, latest);
            self.settle_notices(now, mechanisms);
        } else if outstanding > 0 && !closed {
            if duplicate {
                self.controller.on_other_ack(&self.sample_of_duplicate(now, told));
            }
            if let Some(sent) = latest {
                self.deliver(now, told, &sent);
            }
        }
        if duplicate {
            self.detector.on_duplicate();
            if ack.lets_out && self.phase == Phase::Open && self.detector.duplicates() <= 2 {
                self.let_out();
            }
        }
        if advanced || self.detector.duplicates() > 0 {
            while let Some((index, signal)) =
                self.detector.next_loss(&mut self.board, self.phase, self.mss)
            {
                self.judge(now, index, signal, mechanisms);
            }
        }
        self.go_on_reducing(heard);
    }

    /// What the congestion controller hears of an acknowledgment that advances nothing.
    fn sample_of_duplicate(&self, now: Time, delivered: u64) -> AckSample {
        AckSample {
            now,
            acked: 0,
            answered: 0,
            delivered,
            rate: RateSample::default(),
            rtt: None,
            srtt: self.rtt.smoothed(),
            window_limited: false,
            after_timeout: self.phase == Phase::Loss,
            mss: self.mss,
        }
    }

    #[inline]
    fn on_advance(&mut self, now: Time, ack: &Ack<'_>, told: u64, sacked: Option<Sent>) {
        self.note_use();
        let advanced = self.board.advance(ack.ack);
        self.stream.acknowledged(ack.ack);
        let answered = core::mem::take(&mut self.limited);
        self.progress_at = now;
        // Where Karn's rule forbids a sample, the timestamp knows which copy was meant.
        let sample = if advanced.timed { Some(now.since(advanced.sent_at)) } else { ack.echoed };
        let sample = sample.filter(|_| ack.current);
        if let Some(sample) = sample {
            self.rtt.sample(now, now - sample);
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
        let delivered = advanced.delivered + told;
        self.log.push(|| Event::Acknowledged { una: ack.ack, delivered });
        let latest = sacked.filter(|sent| sent.at > advanced.last.at).unwrap_or(advanced.last);
        self.deliver(now, delivered, &latest);

        // A recovery keeps its window as it was set; outside, the window grows.
        let grows = self.phase != Phase::Recovery && ack.current;
        if !self.is_clean() || !advanced.state.is_empty() {
            self.on_gap_moved(now, &advanced);
        }
        let sample = AckSample {
            now,
            acked: advanced.acked,
            answered,
            delivered,
            rate: self.rate(now, &latest),
            rtt: sample.map(|sample| self.rtt.measured(now, now - sample)),
            srtt: self.rtt.smoothed(),
            window_limited: self.is_window_used(),
            after_timeout: self.phase == Phase::Loss,
            mss: self.mss,
        };
        if grows {
            self.controller.on_ack(&sample);
        } else {
            self.controller.on_other_ack(&sample);
        }
    }

    /// New data was acknowledged while something was missing: where does that leave the episode?
    fn on_gap_moved(&mut self, now: Time, advanced: &Advanced) {
        let over =
            self.detector.on_advance(&self.board, advanced, self.mss, self.phase, self.recover);
        match self.phase {
            Phase::Recovery if over => {
                self.end_episode();
                // What was found lost beyond the point of recovery is the next episode.
                if self.detector.uses_sack() && self.board.has_blamed() {
                    self.respond(now, Signal::Sack, None, false);
                }
            }
            Phase::Loss if self.board.una() >= self.recover => self.end_episode(),
            Phase::Loss | Phase::Open | Phase::Recovery => {}
        }
    }

    /// `octets` more have been delivered, the latest of them by a copy that was so `sent`.
    #[inline]
    fn deliver(&mut self, now: Time, octets: u64, sent: &Sent) {
        let bytes = self.delivered.bytes + octets;
        self.delivered = Delivered { bytes, at: now, first_sent_at: sent.at };
    }

    /// The rate of the delivery that was so `sent`, and is the latest.
    #[inline]
    fn rate(&self, now: Time, sent: &Sent) -> RateSample {
        let sending = sent.at.since(sent.first_sent_at);
        let acknowledging = now.since(sent.delivered_at);
        let delivered = self.delivered.bytes - sent.delivered;
        RateSample { delivered, interval: sending.max(acknowledging) }
    }

    /// Takes the report of what arrived twice (RFC 2883 §4) off the blocks.
    fn on_twice<'a>(&mut self, ack: &Ack<'a>) -> &'a [(u64, u64)] {
        let Some((&(start, end), rest)) = ack.blocks.split_first() else {
            return ack.blocks;
        };
        let within = |outer: &(u64, u64)| outer.0 <= start && end <= outer.1;
        if end > ack.ack && !rest.first().is_some_and(within) {
            return ack.blocks;
        }
        self.statistics.twice += 1;
        self.on_needless((start, end));
        rest
    }
}
