//! CUBIC (RFC 9438): the window is a cubic function of the time since the last reduction, with its
//! plateau where congestion was met last.
//!
//! The RFC counts windows in segments; here all are bytes, which multiplies C by the segment size.
//! Slow start is RFC 5681's (§4.10 permits it).

use super::{AckSample, CongestionControl, Episode, Growth};
use super::{LARGEST_WINDOW, slow_start};
use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// Segments per cubic second (RFC 9438 §5).
const C: f64 = 0.4;
/// The multiplicative decrease of the flight (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// Segments per window that give the mean window of RFC 5681 with this [`BETA`] (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC's window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cubic {
    byte_counting: Option<u32>,
    state: State,
}

/// Windows are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct State {
    /// cwnd, and the same in whole bytes.
    exact: f64,
    window: u64,
    ssthresh: u64,
    /// cwnd_prior: the window when ssthresh was last set; 0 before that, which has the effect of
    /// any smaller window.
    prior: f64,
    /// W_max; 0 while undefined, before the first congestion and after a timeout.
    w_max: f64,
    /// The present stage of congestion avoidance, once it has begun.
    stage: Option<Stage>,
    /// When the last acknowledgment arrived.
    last_ack: Time,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Stage {
    /// Its duration, without times in which the window was not used (§4.2, 5.8).
    t: Duration,
    /// The time that the cubic takes to return to W_max, seconds.
    k: f64,
    /// W_est: the window of RFC 5681.
    w_est: f64,
}

impl State {
    fn new(window: u64, ssthresh: Option<u64>) -> State {
        State {
            exact: window as f64,
            window,
            ssthresh: ssthresh.unwrap_or(u64::MAX),
            prior: 0.0,
            w_max: 0.0,
            stage: None,
            last_ack: Time::ZERO,
        }
    }

    fn grow_to(&mut self, exact: f64) {
        self.exact = exact.max(self.exact).min(LARGEST_WINDOW);
        self.window = self.exact as u64;
    }

    fn shrink(&mut self, window: u64) {
        self.window = self.window.min(window);
        self.exact = self.window as f64;
        self.stage = None;
    }

    /// The first acknowledgment of a stage.
    fn begin(&mut self, mss: f64) -> Stage {
        // After slow start without congestion, or after a timeout, the plateau is here and K is 0
        // (§4.8, 4.10).
        self.w_max = self.w_max.max(self.exact);
        let k = libm::cbrt((self.w_max - self.exact) / (C * mss));
        Stage { t: Duration::ZERO, k, w_est: self.exact }
    }

    /// RFC 9438 §4.2 to 4.5, the window after an acknowledgment in congestion avoidance.
    fn avoid(&mut self, sample: &AckSample, since: Duration, segments: f64) {
        let mss = f64::from(sample.mss);
        let mut stage = match self.stage {
            Some(stage) => Stage { t: stage.t + since, ..stage },
            None => self.begin(mss),
        };
        let cubic = |t: f64| {
            let from_plateau = t - stage.k;
            C * mss * from_plateau * from_plateau * from_plateau + self.w_max
        };
        let t = stage.t.as_secs_f64();
        let alpha = if stage.w_est >= self.prior { 1.0 } else { ALPHA };
        stage.w_est += alpha * mss * sample.acked as f64 / self.exact;
        let window = if cubic(t) < stage.w_est {
            stage.w_est
        } else {
            let rtt = sample.srtt.unwrap_or_default().as_secs_f64();
            let target = cubic(t + rtt).clamp(self.exact, 1.5 * self.exact);
            let step = (target - self.exact) / self.exact * mss * segments;
            (self.exact + step).min(target)
        };
        self.stage = Some(stage);
        self.grow_to(window);
    }
}

impl Cubic {
    pub(super) fn new(growth: Growth, window: u64) -> Cubic {
        let state = State::new(window, None);
        Cubic { byte_counting: growth.byte_counting, state }
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, sample: &AckSample) {
        let state = &mut self.state;
        let since = sample.now.since(state.last_ack);
        state.last_ack = sample.now;
        if !sample.window_limited {
            return;
        }
        if state.window < state.ssthresh {
            state.grow_to(state.exact + slow_start(sample, self.byte_counting));
            return;
        }
        // The RFC lets the cubic grow per acknowledgment, however many segments it is for.
        let segments = match self.byte_counting {
            None => 1.0,
            Some(_) => sample.counted_octets() as f64 / f64::from(sample.mss),
        };
        state.avoid(sample, since, segments);
    }

    fn on_congestion(&mut self, episode: &Episode) {
        let state = &mut self.state;
        // Fast convergence (§4.7): a flow that meets congestion at a smaller window releases
        // bandwidth.
        let share = if state.exact < state.w_max { (1.0 + BETA) / 2.0 } else { 1.0 };
        state.w_max = state.exact * share;
        let (window, ssthresh) = episode.reduced(BETA);
        if !episode.keep_ssthresh {
            state.prior = state.exact;
            state.ssthresh = ssthresh;
        }
        state.shrink(window);
    }

    fn on_rto(&mut self, episode: &Episode) {
        let mss = u64::from(episode.mss);
        let state = &mut self.state;
        state.w_max = 0.0;
        if !episode.keep_ssthresh {
            state.prior = state.exact;
            state.ssthresh = episode.reduced(BETA).1;
        }
        state.shrink(mss);
    }

    fn on_idle(&mut self, window: u64) {
        self.state.shrink(window);
    }

    fn on_undo(&mut self, before: Self) {
        *self = before;
    }

    fn reset(&mut self, window: u64, ssthresh: Option<u64>) {
        self.state = State::new(window, ssthresh);
    }

    fn grow(&mut self, bytes: f64) {
        self.state.grow_to(self.state.exact + bytes);
    }

    fn end_slow_start(&mut self) {
        // RFC 9438 §4.1.2: cwnd_prior is the window when ssthresh was set.
        self.state.prior = self.state.exact;
        self.state.ssthresh = self.state.window;
    }

    #[inline]
    fn window(&self) -> u64 {
        self.state.window
    }

    #[inline]
    fn ssthresh(&self) -> u64 {
        self.state.ssthresh
    }
}

#[cfg(test)]
mod tests;
