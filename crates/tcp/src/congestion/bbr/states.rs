//! The state machine (§5.3): Startup, Drain, the phases of ProbeBW, and ProbeRTT.

use super::{Bbr, FullPipe, Sample};
use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// BBR.ProbeRTTInterval
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// BBR.MinRTTFilterLen
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// BBR.ProbeRTTDuration
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// What part of the shortest round trip another one may be longer, and still renew it (as in the BBR of Google's QUIC).
const SIMILAR_PART: u64 = 8;
/// With `renew_min_rtt`, as many of the shortest round trips, if that is longer: a cycle of ProbeBW, in which the queue of
/// the probe drains.
const PROBE_RTT_ROUNDS: u64 = 16;
/// Rounds after which what was sent at a gain of 1.25 for up to three has drained at 0.9 from a queue that is a flow's own.
const OWN_QUEUE_ROUNDS: u64 = 12;
/// Rounds after which Drain ends in any case.
const DRAIN_ROUNDS: u64 = 3;

/// BBR.state; the four phases of ProbeBW are states of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// BBR.pacing_gain (§5.6.1)
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            State::Startup => 2.77,
            State::Drain => 0.5,
            State::Down => 0.9,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
            State::Up => 1.25,
        }
    }

    /// BBR.cwnd_gain (§5.6.1)
    pub(super) fn window_gain(self) -> f64 {
        match self {
            State::Up => 2.25,
            State::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    /// IsInAProbeBWState
    fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// IsProbingBW
    pub(super) fn is_probing_bw(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}

/// BBR.ack_phase
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The state of probing for bandwidth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Probe {
    ack_phase: AckPhase,
    /// BBR.drain_start_round
    pub(super) drain_began: u64,
    /// BBR.is_bw_probe_sample
    pub(super) is_sampled: bool,
    /// BBR.prev_probe_too_high
    pub(super) too_high: bool,
    /// BBR.prev_probe_precautionary
    pub(super) precautionary: bool,
    /// BBR.cycle_stamp
    began_at: Time,
    /// BBR.bw_probe_wait
    wait: Duration,
    /// BBR.rounds_since_probe_up
    rounds_since_up: u64,
    /// BBR.bw_probe_up_rounds
    up_rounds: u32,
    /// BBR.bw_probe_up_acked
    up_acked: u64,
    /// BBR.probe_up_acked_per_inc; `None` is infinity.
    up_acked_per_increment: Option<u64>,
}

impl Bbr {
    /// UpdateRound (§5.5.1)
    pub(super) fn update_round(&mut self, sample: &Sample) {
        self.round.starts = sample.prior_delivered >= self.round.ends_at;
        if self.round.starts {
            self.start_round();
            self.round.count += 1;
            self.probe.rounds_since_up += 1;
        }
    }

    fn start_round(&mut self) {
        self.round.ends_at = self.delivered;
    }

    // --- Startup and Drain ---

    /// CheckFullBWReached (§5.3.1.2)
    pub(super) fn check_full_pipe(&mut self, sample: &Sample) {
        if self.full_pipe.now || !self.round.starts || sample.app_limited {
            return;
        }
        if sample.rate >= self.full_pipe.baseline * 1.25 {
            self.reset_full_pipe(sample.rate);
            return;
        }
        self.full_pipe.rounds += 1;
        self.full_pipe.now = self.full_pipe.rounds >= 3;
        self.full_pipe.reached |= self.full_pipe.now;
    }

    /// ResetFullBW, with another baseline.
    fn reset_full_pipe(&mut self, baseline: f64) {
        self.full_pipe =
            FullPipe { reached: self.full_pipe.reached, baseline, ..Default::default() };
    }

    /// CheckStartupDone (§5.3.1.1)
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        if self.state != State::Startup {
            return;
        }
        if !self.full_pipe.reached && self.is_startup_lossy(sample) {
            self.undo.state = Some(State::Startup);
            self.full_pipe.reached = true;
            self.full_pipe.now = true;
            self.inflight_longterm = self.inflight(1.0).max(self.short_term.latest_inflight);
        }
        if self.full_pipe.reached {
            self.state = State::Drain;
            self.probe.drain_began = self.round.count;
        }
    }

    /// CheckDrainDone (§5.3.2)
    pub(super) fn check_drain_done(&mut self, sample: &Sample) {
        if self.state == State::Drain
            && (sample.in_flight <= self.inflight(1.0)
                || self.round.count > self.probe.drain_began + DRAIN_ROUNDS)
        {
            self.start_down(sample.now);
        }
    }

    // --- ProbeBW ---

    /// StartProbeBW_DOWN
    pub(super) fn start_down(&mut self, now: Time) {
        self.short_term.reset_signals();
        self.probe.up_acked_per_increment = None;
        // PickProbeWait: 0 or 1 rounds, 2 to 3 s.
        self.probe.rounds_since_up = u64::from(self.random(now, "rounds") < 0.5);
        let extra = Duration::from_nanos((self.random(now, "wait") * 1e9) as u64);
        self.probe.wait = Duration::from_secs(2) + extra;
        self.probe.began_at = now;
        self.probe.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::Down;
    }

    /// StartProbeBW_REFILL
    pub(super) fn start_refill(&mut self) {
        self.short_term.reset();
        self.probe.up_rounds = 0;
        self.probe.up_acked = 0;
        self.probe.precautionary = false;
        self.probe.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    /// StartProbeBW_UP
    fn start_up(&mut self, sample: &Sample) {
        self.probe.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_pipe(sample.rate);
        self.state = State::Up;
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase
    pub(super) fn update_probe_bw(&mut self, sample: &Sample) {
        if !self.full_pipe.reached || self.adapt_long_term_model(sample) {
            return;
        }
        let goes_down = self.state == State::Up && self.is_time_to_go_down(sample);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(sample.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(sample) => self.state = State::Cruise,
            State::Refill if self.round.starts => {
                self.probe.is_sampled = true;
                self.start_up(sample);
            }
            State::Up if goes_down => {
                self.probe.too_high = false; // No high loss yet.
                self.start_down(sample.now);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW: after 2 to 3 s, or as often as Reno would (§5.3.3.5).
    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno_rounds = (self.target_inflight() / self.mss).min(63);
        (now > self.probe.began_at + self.probe.wait || self.probe.rounds_since_up >= reno_rounds)
            && !self.may_see_min_rtt()
    }

    /// With `renew_min_rtt`: whether the queue of the last probe may still drain, after which a round trip renews the
    /// shortest.
    fn may_see_min_rtt(&self) -> bool {
        self.renews_min_rtt
            && self.min_rtt.recent_at < self.probe.began_at
            && self.probe.rounds_since_up < OWN_QUEUE_ROUNDS
    }

    /// IsTimeToCruise
    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        sample.in_flight <= self.inflight_with_headroom() && sample.in_flight <= self.inflight(1.0)
    }

    /// IsTimeToGoDown
    fn is_time_to_go_down(&mut self, sample: &Sample) -> bool {
        // As in Linux, before the acknowledgment; no segment more fits.
        let in_flight = sample.in_flight + sample.newly_delivered;
        if self.probe.too_high && in_flight + self.mss > self.inflight_longterm {
            self.probe.precautionary = true;
            return true;
        }
        if sample.window_limited && self.window >= self.inflight_longterm {
            self.reset_full_pipe(sample.rate);
            return false;
        }
        self.full_pipe.now
    }

    /// RaiseInflightLongtermSlope
    fn raise_slope(&mut self) {
        let growth = 1_u64 << self.probe.up_rounds;
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(30);
        self.probe.up_acked_per_increment = Some((self.window / growth).max(self.mss));
    }

    /// ProbeInflightLongtermUpward
    fn probe_upward(&mut self, sample: &Sample) {
        if !sample.window_limited || self.window < self.inflight_longterm {
            return;
        }
        self.probe.up_acked += sample.newly_delivered;
        if let Some(per_increment) = self.probe.up_acked_per_increment {
            let increments = self.probe.up_acked / per_increment;
            self.probe.up_acked %= per_increment;
            self.inflight_longterm =
                self.inflight_longterm.saturating_add(increments.saturating_mul(self.mss));
        }
        if self.round.starts {
            self.raise_slope();
        }
    }

    /// AdaptLongTermModel: whether it has decided on another state.
    fn adapt_long_term_model(&mut self, sample: &Sample) -> bool {
        if self.probe.ack_phase == AckPhase::ProbeStarting && self.round.starts {
            self.probe.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.probe.ack_phase == AckPhase::ProbeStopping && self.round.starts {
            self.probe.is_sampled = false;
            self.probe.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() {
                if !sample.app_limited {
                    self.max_bw.advance();
                }
                if self.probe.precautionary && !self.probe.too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if self.inflight_longterm < u64::MAX && !self.is_inflight_too_high(sample) {
            self.inflight_longterm = self.inflight_longterm.max(sample.sent_in_flight);
            if self.state == State::Up {
                self.probe_upward(sample);
            }
        }
        false
    }

    // --- ProbeRTT ---

    /// UpdateMinRTT (§5.3.4.3)
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) {
        let (now, min) = (sample.now, &mut self.min_rtt);
        let interval = match min.shortest.filter(|_| self.renews_min_rtt) {
            Some(shortest) => PROBE_RTT_INTERVAL.max(shortest * PROBE_RTT_ROUNDS),
            None => PROBE_RTT_INTERVAL,
        };
        min.expired = now > min.recent_at + interval;
        if let Some(rtt) = sample.rtt {
            min.latest = Some(rtt);
            match min.recent {
                Some(recent) if rtt >= recent && !min.expired => {
                    // The value stays: it would rise with the queue otherwise.
                    if self.renews_min_rtt && rtt <= recent + recent / SIMILAR_PART {
                        min.recent_at = now;
                    }
                }
                _ => (min.recent, min.recent_at) = (Some(rtt), now),
            }
        }
        let shorter = match (min.recent, min.shortest) {
            (Some(recent), Some(shortest)) => recent < shortest,
            (recent, shortest) => recent.is_some() && shortest.is_none(),
        };
        if shorter || now > min.measured_at + MIN_RTT_WINDOW {
            (min.shortest, min.measured_at) = (min.recent, min.recent_at);
        }
    }

    /// CheckProbeRTT
    pub(super) fn check_probe_rtt(&mut self, sample: &Sample) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.min_rtt.done_at = None;
            self.probe.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT
    fn handle_probe_rtt(&mut self, sample: &Sample) {
        if self.min_rtt.done_at.is_none() {
            if sample.in_flight <= self.probe_rtt_window() {
                self.min_rtt.done_at = Some(sample.now + PROBE_RTT_DURATION);
                self.min_rtt.round_done = false;
                self.start_round();
            }
        } else {
            self.min_rtt.round_done |= self.round.starts;
            if self.min_rtt.round_done {
                self.check_probe_rtt_done(sample.now);
            }
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT
    fn check_probe_rtt_done(&mut self, now: Time) {
        if self.min_rtt.done_at.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt.recent_at = now;
        self.restore_window();
        self.short_term.reset();
        if self.full_pipe.reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// HandleRestartFromIdle (§5.4.1)
    pub(super) fn restart_from_idle(&mut self, now: Time) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}
