//! The response to losses (§5.5.10, 5.5.11): while probing, the volume that was too high; else, the
//! short-term model.

use super::{BETA, Bbr, LOSS_THRESHOLD, Lost, MinRtt, Sample, State};
use serde::{Deserialize, Serialize};

/// BBRStartupFullLossCnt: discontiguous ranges that are lost in a round at the end of Startup.
const STARTUP_LOSSES: u32 = 6;
/// What part of the shortest round trip another one is longer with a queue: more than a probe for bandwidth makes in its
/// first round.
const QUEUE_PART: u64 = 4;
/// How many standard deviations losses may exceed the threshold by chance.
const DEVIATIONS: f64 = 2.0;

/// The short-term model, and the signals that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ShortTerm {
    /// BBR.bw_shortterm, octets a second; `f64::MAX` is infinity.
    pub(super) bw: f64,
    /// BBR.inflight_shortterm; `u64::MAX` is infinity.
    pub(super) inflight: u64,
    /// BBR.bw_latest
    latest_bw: f64,
    /// BBR.inflight_latest
    pub(super) latest_inflight: u64,
    /// BBR.loss_round_delivered
    round_ends_at: u64,
    /// BBR.loss_round_start
    round_starts: bool,
    /// BBR.is_loss_in_round
    lossy: bool,
    /// Discontiguous ranges lost in the round, and the end of the last.
    ranges: u32,
    last_end: u64,
}

impl Default for ShortTerm {
    fn default() -> ShortTerm {
        ShortTerm {
            bw: f64::MAX,
            inflight: u64::MAX,
            latest_bw: 0.0,
            latest_inflight: 0,
            round_ends_at: 0,
            round_starts: false,
            lossy: false,
            ranges: 0,
            last_end: 0,
        }
    }
}

impl ShortTerm {
    /// AdvanceLatestDeliverySignals
    pub(super) fn advance(&mut self, sample: &Sample) {
        if self.round_starts {
            self.latest_bw = sample.rate;
            self.latest_inflight = sample.delivered;
            self.ranges = 0;
        }
    }

    /// ResetCongestionSignals
    pub(super) fn reset_signals(&mut self) {
        self.lossy = false;
        self.latest_bw = 0.0;
        self.latest_inflight = 0;
    }

    /// ResetShortTermModel
    pub(super) fn reset(&mut self) {
        self.bw = f64::MAX;
        self.inflight = u64::MAX;
    }
}

/// What losses have changed, until they prove spurious (§5.5.12).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Undo {
    /// BBR.undo_state
    pub(super) state: Option<State>,
    bw: f64,
    inflight: u64,
    longterm: u64,
}

impl Default for Undo {
    fn default() -> Undo {
        Undo { state: None, bw: 0.0, inflight: 0, longterm: 0 }
    }
}

impl Bbr {
    /// UpdateLatestDeliverySignals
    pub(super) fn update_latest_signals(&mut self, sample: &Sample) {
        let signals = &mut self.short_term;
        signals.latest_bw = signals.latest_bw.max(sample.rate);
        signals.latest_inflight = signals.latest_inflight.max(sample.delivered);
        signals.round_starts = sample.prior_delivered >= signals.round_ends_at;
        if signals.round_starts {
            signals.round_ends_at = self.delivered;
        }
    }

    /// UpdateCongestionSignals
    pub(super) fn update_congestion_signals(&mut self, sample: &Sample) {
        self.update_round(sample);
        if sample.rate > 0.0 {
            self.max_bw.add(sample.rate, sample.app_limited);
        }
        if self.short_term.round_starts {
            self.adapt_to_losses(sample);
            self.short_term.lossy = false;
        }
    }

    /// AdaptLowerBoundsFromCongestion
    fn adapt_to_losses(&mut self, sample: &Sample) {
        let is_tolerated = self.may_be_random(sample.lost, sample.sent_in_flight)
            || (self.loss_threshold.is_some() && !self.is_inflight_too_high(sample));
        if self.state.is_probing_bw() || !self.short_term.lossy || is_tolerated {
            return;
        }
        let (max_bw, window) = (self.max_bw.get(), self.window);
        let model = &mut self.short_term;
        if model.bw == f64::MAX {
            model.bw = max_bw;
        }
        if model.inflight == u64::MAX {
            model.inflight = window;
        }
        model.bw = model.latest_bw.max(BETA * model.bw);
        model.inflight = model.latest_inflight.max((BETA * model.inflight as f64) as u64);
    }

    /// NoteLoss
    pub(super) fn note_loss(&mut self) {
        if !self.short_term.lossy {
            self.short_term.round_ends_at = self.delivered;
            self.save_window();
            self.save_for_undo();
        }
        self.short_term.lossy = true;
    }

    /// HandleLostPacket
    pub(super) fn handle_lost_packet(&mut self, lost: &Lost) {
        self.lost.add(self.delivered, lost.end - lost.start);
        self.note_loss();
        let signals = &mut self.short_term;
        signals.ranges += u32::from(lost.start != signals.last_end);
        signals.last_end = lost.end;
        if !self.probe.is_sampled {
            return;
        }
        let since_sent = self.lost.since(lost.delivered);
        if self.is_too_high(since_sent, lost.in_flight) {
            let volume = inflight_at_loss(lost, since_sent, self.loss_threshold());
            self.handle_inflight_too_high(lost.now, volume, lost.app_limited);
        }
    }

    /// IsInflightTooHigh
    pub(super) fn is_inflight_too_high(&self, sample: &Sample) -> bool {
        self.is_too_high(sample.lost, sample.sent_in_flight)
    }

    /// Of so many octets in flight, so many were lost.
    pub(super) fn is_too_high(&self, lost: u64, in_flight: u64) -> bool {
        lost as f64 > in_flight as f64 * self.loss_threshold()
            && !self.may_be_random(lost, in_flight)
    }

    /// With `tolerate_random_loss`: whether there is no queue, and a path that loses as much as the threshold loses so
    /// much by chance. Segments are taken to be lost independently (the binomial distribution).
    fn may_be_random(&self, lost: u64, in_flight: u64) -> bool {
        let MinRtt { shortest: Some(shortest), latest: Some(latest), .. } = self.min_rtt else {
            return false;
        };
        if !self.tolerates_random_loss || latest > shortest + shortest / QUEUE_PART {
            return false;
        }
        let [lost, in_flight] = [lost, in_flight].map(|octets| octets as f64 / self.mss as f64);
        let expected = self.loss_threshold() * in_flight;
        let deviation = (expected * (1.0 - self.loss_threshold())).sqrt();
        lost <= expected + DEVIATIONS * deviation
    }

    /// BBR.LossThresh
    fn loss_threshold(&self) -> f64 {
        self.loss_threshold.unwrap_or(LOSS_THRESHOLD)
    }

    /// HandleInflightTooHigh
    fn handle_inflight_too_high(&mut self, now: base::Time, in_flight: u64, app_limited: bool) {
        self.probe.too_high = true;
        self.probe.is_sampled = false;
        if !app_limited {
            let least = (self.target_inflight() as f64 * BETA) as u64;
            self.inflight_longterm = in_flight.max(least);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    /// CheckStartupHighLoss (§5.3.1.3), at the end of a round of losses.
    pub(super) fn is_startup_lossy(&self, sample: &Sample) -> bool {
        let signals = &self.short_term;
        self.in_recovery
            && signals.round_starts
            && signals.ranges >= STARTUP_LOSSES
            && self.is_inflight_too_high(sample)
    }

    /// SaveStateUponLoss
    pub(super) fn save_for_undo(&mut self) {
        self.undo = Undo {
            state: None,
            bw: self.short_term.bw,
            inflight: self.short_term.inflight,
            longterm: self.inflight_longterm,
        };
    }

    /// HandleSpuriousLossDetection
    pub(super) fn handle_spurious_losses(&mut self) {
        self.restore_window();
        self.short_term.lossy = false;
        self.full_pipe = super::FullPipe { reached: self.full_pipe.reached, ..Default::default() };
        self.short_term.bw = self.short_term.bw.max(self.undo.bw);
        self.short_term.inflight = self.short_term.inflight.max(self.undo.inflight);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => {
                self.start_refill();
            }
            _ => {}
        }
    }
}

/// InflightAtLoss
fn inflight_at_loss(lost: &Lost, since_sent: u64, threshold: f64) -> u64 {
    let size = lost.end - lost.start;
    let before = lost.in_flight.saturating_sub(size) as f64;
    let lost_before = since_sent.saturating_sub(size) as f64;
    let prefix = (threshold * before - lost_before) / (1.0 - threshold);
    (before + prefix.max(0.0)) as u64
}
