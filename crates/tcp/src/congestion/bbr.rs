//! BBR, version 3 (draft-ietf-ccwg-bbr): the rate and the window follow a model of the path, its
//! bandwidth and its shortest round trip, instead of single losses.
//!
//! The names are the draft's. Where it leaves a choice, Linux's version 3 is followed.

mod filters;
mod losses;
mod model;
mod states;

use super::{AckSample, CongestionControl, Episode, Growth, LARGEST_WINDOW, Lost};
use base::{Duration, Rate, Seed, Time};
use filters::{Aggregation, LostBefore, MaxBandwidth};
use losses::ShortTerm;
use serde::{Deserialize, Serialize};
use states::State;

/// BBR.LossThresh: the highest loss rate of a round trip while probing for bandwidth, if no other is set.
const LOSS_THRESHOLD: f64 = 0.02;
/// BBR.Beta
const BETA: f64 = 0.7;
/// BBR.Headroom
const HEADROOM: f64 = 0.15;
/// BBR.MinPipeCwnd, segments.
const LEAST_WINDOW: u64 = 4;
/// 1 - BBR.PacingMarginPercent
const PACING_MARGIN: f64 = 0.99;

/// BBR's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bbr {
    /// BBR.LossThresh, if it is set; the short-term model follows it then.
    loss_threshold: Option<f64>,
    /// Whether a round trip like the shortest renews it.
    renews_min_rtt: bool,
    /// Whether losses that may be the path's own are no congestion.
    tolerates_random_loss: bool,
    mss: u64,
    /// C.InitialCwnd
    initial_window: u64,
    /// C.cwnd
    window: u64,
    /// BBR.prior_cwnd: the last good window.
    prior_window: u64,
    /// C.pacing_rate, octets a second; 0 before the first sample.
    pacing_rate: f64,
    in_recovery: bool,
    /// C.lost: octets lost so far, and when.
    lost: LostBefore,
    state: State,
    /// C.delivered
    delivered: u64,
    round: Round,
    full_pipe: FullPipe,
    /// BBR.max_bw_filter
    max_bw: MaxBandwidth,
    /// BBR.bw, octets a second.
    bw: f64,
    aggregation: Aggregation,
    short_term: ShortTerm,
    /// BBR.inflight_longterm; `u64::MAX` is infinity.
    inflight_longterm: u64,
    min_rtt: MinRtt,
    probe: states::Probe,
    /// BBR.idle_restart
    idle_restart: bool,
    undo: losses::Undo,
}

/// Rounds of packets (§5.5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Round {
    /// BBR.next_round_delivered
    ends_at: u64,
    /// BBR.round_count
    count: u64,
    /// BBR.round_start: the acknowledgment being processed starts a round.
    starts: bool,
}

/// The estimator of a full pipe (§5.3.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct FullPipe {
    /// BBR.full_bw_reached
    reached: bool,
    /// BBR.full_bw_now
    now: bool,
    /// BBR.full_bw, octets a second.
    baseline: f64,
    /// BBR.full_bw_count
    rounds: u32,
}

/// The shortest round trip (§5.3.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct MinRtt {
    /// BBR.min_rtt; `None` is infinity.
    shortest: Option<Duration>,
    /// BBR.min_rtt_stamp
    measured_at: Time,
    /// The last sample.
    latest: Option<Duration>,
    /// BBR.probe_rtt_min_delay
    recent: Option<Duration>,
    /// BBR.probe_rtt_min_stamp
    recent_at: Time,
    /// BBR.probe_rtt_expired
    expired: bool,
    /// BBR.probe_rtt_done_stamp
    done_at: Option<Time>,
    /// BBR.probe_rtt_round_done
    round_done: bool,
}

/// The rate sample of an acknowledgment (§4.1.2.1.3), and what else is known with it.
#[derive(Clone, Copy, Debug)]
struct Sample {
    now: Time,
    /// RS.delivery_rate, octets a second; 0 if there is none.
    rate: f64,
    /// RS.delivered
    delivered: u64,
    /// RS.prior_delivered
    prior_delivered: u64,
    /// RS.newly_acked
    newly_delivered: u64,
    /// RS.rtt
    rtt: Option<Duration>,
    /// RS.is_app_limited
    app_limited: bool,
    /// RS.tx_in_flight
    sent_in_flight: u64,
    /// RS.lost
    lost: u64,
    /// C.inflight
    in_flight: u64,
    /// C.is_cwnd_limited
    window_limited: bool,
}

impl Bbr {
    pub(super) fn new(growth: Growth, window: u64) -> Bbr {
        Bbr {
            loss_threshold: growth.loss_threshold,
            renews_min_rtt: growth.renew_min_rtt,
            tolerates_random_loss: growth.tolerate_random_loss,
            mss: 1,
            initial_window: window,
            window,
            prior_window: 0,
            pacing_rate: 0.0,
            in_recovery: false,
            lost: LostBefore::default(),
            state: State::Startup,
            delivered: 0,
            round: Round::default(),
            full_pipe: FullPipe::default(),
            max_bw: MaxBandwidth::default(),
            bw: 0.0,
            aggregation: Aggregation::default(),
            short_term: ShortTerm::default(),
            inflight_longterm: u64::MAX,
            min_rtt: MinRtt::default(),
            probe: states::Probe::default(),
            idle_restart: false,
            undo: losses::Undo::default(),
        }
    }

    /// UpdateOnACK (§5.2.3).
    fn update(&mut self, ack: &AckSample) {
        self.mss = u64::from(ack.mss);
        self.delivered = ack.flight.delivered;
        let sample = self.sample(ack);
        if self.pacing_rate == 0.0 {
            self.start(&sample, ack.srtt);
        }
        self.lost.forget_until(sample.prior_delivered);
        self.update_latest_signals(&sample);
        self.update_congestion_signals(&sample);
        self.update_aggregation(&sample);
        self.check_full_pipe(&sample);
        self.check_startup_done(&sample);
        self.check_drain_done(&sample);
        self.update_probe_bw(&sample);
        self.update_min_rtt(&sample);
        self.check_probe_rtt(&sample);
        self.short_term.advance(&sample);
        self.bw = self.max_bw.get().min(self.short_term.bw);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_window(&sample);
    }

    /// InitPacingRate (§5.6.2), by the first sample.
    fn start(&mut self, sample: &Sample, srtt: Option<Duration>) {
        let srtt = srtt.filter(|srtt| *srtt > Duration::ZERO).unwrap_or(Duration::from_millis(1));
        let nominal = self.initial_window as f64 / srtt.as_secs_f64();
        self.pacing_rate = State::Startup.pacing_gain() * nominal;
        self.min_rtt.recent_at = sample.now;
        self.min_rtt.measured_at = sample.now;
        self.aggregation.restart(sample.now);
    }

    fn sample(&self, ack: &AckSample) -> Sample {
        let flight = &ack.flight;
        let prior_delivered = flight.delivered - ack.rate.delivered.min(flight.delivered);
        // A shorter interval than a round trip belongs to a retransmission that was not needed.
        let reliable = self.min_rtt.shortest.is_none_or(|rtt| ack.rate.interval >= rtt);
        let seconds = ack.rate.interval.as_secs_f64();
        let rate =
            if reliable && seconds > 0.0 { ack.rate.delivered as f64 / seconds } else { 0.0 };
        Sample {
            now: ack.now,
            rate,
            delivered: ack.rate.delivered,
            prior_delivered,
            newly_delivered: ack.delivered,
            rtt: flight.rtt,
            app_limited: flight.app_limited,
            sent_in_flight: flight.sent_in_flight,
            lost: self.lost.since(prior_delivered),
            in_flight: flight.in_flight,
            window_limited: ack.window_limited,
        }
    }

    /// SetPacingRateWithGain (§5.6.2).
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * PACING_MARGIN;
        if rate > 0.0 && (self.full_pipe.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// SetCwnd (§5.6.4.6).
    fn set_window(&mut self, sample: &Sample) {
        let most = self.max_inflight();
        let grown = self.window + sample.newly_delivered;
        if self.full_pipe.reached {
            self.window = grown.min(most);
        } else if self.window < most || self.delivered < self.initial_window {
            self.window = grown;
        }
        self.bound_window();
    }

    /// The bounds of the window: MinPipeCwnd, BoundCwndForProbeRTT, BoundCwndForModel.
    fn bound_window(&mut self) {
        let least = LEAST_WINDOW * self.mss;
        self.window = self.window.max(least).min(LARGEST_WINDOW as u64);
        let longterm = match self.state {
            State::Startup | State::Drain => u64::MAX,
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::ProbeRtt | State::Cruise => self.inflight_with_headroom(),
        };
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.window = self.window.min(longterm.min(self.short_term.inflight).max(least));
    }

    /// SaveCwnd (§5.6.4.4).
    fn save_window(&mut self) {
        self.prior_window = if self.in_recovery || self.state == State::ProbeRtt {
            self.prior_window.max(self.window)
        } else {
            self.window
        };
    }

    /// RestoreCwnd
    fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// A random number from 0 to 1. Its seed is the time in nanoseconds, which senders that share a
    /// path do not share.
    fn random(&self, now: Time, what: &str) -> f64 {
        Seed(now.as_nanos() ^ self.delivered.rotate_left(32)).stream(what).uniform()
    }
}

impl CongestionControl for Bbr {
    const MODELS_PATH: bool = true;

    fn on_ack(&mut self, sample: &AckSample) {
        self.update(sample);
    }

    fn on_other_ack(&mut self, sample: &AckSample) {
        // An acknowledgment that delivers nothing has no rate sample.
        if sample.delivered > 0 && sample.flight.delivered > 0 {
            self.update(sample);
        }
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.handle_lost_packet(lost);
    }

    /// OnEnterFastRecovery (§5.6.4.4). A mark of ECN counts as a loss in its round.
    fn on_congestion(&mut self, episode: &Episode) {
        self.mss = u64::from(episode.mss);
        self.save_window();
        if episode.marked {
            self.note_loss();
        } else {
            self.in_recovery = true;
            self.save_for_undo();
        }
    }

    /// OnEnterRTO (§5.6.4.4).
    fn on_rto(&mut self, episode: &Episode) {
        self.mss = u64::from(episode.mss);
        self.save_window();
        self.save_for_undo();
        self.in_recovery = true;
        self.window = self.mss;
    }

    fn on_recovered(&mut self) {
        self.in_recovery = false;
        self.restore_window();
    }

    /// The window stays as it is (§5.4.1).
    fn on_idle(&mut self, _window: u64) {}

    fn on_first_outstanding(&mut self, now: Time, app_limited: bool) {
        if app_limited {
            self.restart_from_idle(now);
        }
    }

    fn on_undo(&mut self, _before: Self) {
        self.handle_spurious_losses();
    }

    fn reset(&mut self, window: u64, _ssthresh: Option<u64>) {
        let growth = Growth {
            loss_threshold: self.loss_threshold,
            renew_min_rtt: self.renews_min_rtt,
            tolerate_random_loss: self.tolerates_random_loss,
            ..Growth::default()
        };
        *self = Bbr { mss: self.mss, ..Bbr::new(growth, window) };
    }

    fn pacing(&self) -> Option<Rate> {
        // There is none before the first sample.
        Rate::from_bps((self.pacing_rate * 8.0) as u64)
    }

    fn is_probing_rtt(&self) -> bool {
        self.state == State::ProbeRtt
    }

    fn is_in_slow_start(&self) -> bool {
        self.state == State::Startup
    }

    /// It has no slow start of RFC 5681: only for larger segments.
    fn grow(&mut self, bytes: f64) {
        self.window += bytes as u64;
    }

    fn end_slow_start(&mut self) {}

    #[inline]
    fn window(&self) -> u64 {
        self.window
    }

    /// There is none.
    #[inline]
    fn ssthresh(&self) -> u64 {
        u64::MAX
    }
}

#[cfg(test)]
mod tests;
