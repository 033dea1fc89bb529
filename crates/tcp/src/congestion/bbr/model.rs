//! The volumes that the model allows (§5.6.4).

use super::{Bbr, HEADROOM, LARGEST_WINDOW, LEAST_WINDOW, Sample, State};

/// BBR.ProbeRTTCwndGain
const PROBE_RTT_GAIN: f64 = 0.5;

impl Bbr {
    /// BDPMultiple
    fn bdp(&self, gain: f64) -> u64 {
        let Some(rtt) = self.min_rtt.shortest else { return self.initial_window };
        (gain * self.bw * rtt.as_secs_f64()).min(LARGEST_WINDOW) as u64
    }

    /// QuantizationBudget, with BBR.offload_budget for TCP.
    fn quantized(&self, volume: u64) -> u64 {
        let unit = (self.pacing_rate / 1000.0).min(65_536.0) as u64;
        let offload = 3 * unit.max(2 * self.mss);
        let extra = if self.state == State::Up { 2 * self.mss } else { 0 };
        volume.max(offload).max(LEAST_WINDOW * self.mss) + extra
    }

    /// Inflight
    pub(super) fn inflight(&self, gain: f64) -> u64 {
        self.quantized(self.bdp(gain))
    }

    /// UpdateMaxInflight
    pub(super) fn max_inflight(&self) -> u64 {
        self.quantized(self.bdp(self.state.window_gain()) + self.aggregation.extra())
    }

    /// ProbeRTTCwnd
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(PROBE_RTT_GAIN).max(LEAST_WINDOW * self.mss)
    }

    /// TargetInflight
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(1.0).min(self.window)
    }

    /// InflightWithHeadroom
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        if self.inflight_longterm == u64::MAX {
            return u64::MAX;
        }
        let headroom = ((HEADROOM * self.inflight_longterm as f64) as u64).max(self.mss);
        self.inflight_longterm.saturating_sub(headroom).max(LEAST_WINDOW * self.mss)
    }

    /// UpdateACKAggregation
    pub(super) fn update_aggregation(&mut self, sample: &Sample) {
        let Sample { now, newly_delivered, .. } = *sample;
        let in_startup = !self.full_pipe.reached;
        let (bw, window, round) = (self.bw, self.window, self.round.count);
        self.aggregation.add(now, bw, newly_delivered, window, in_startup, round);
    }
}
