//! TCP Hybla (Caini, Firrincieli, International Journal of Satellite Communications and Networking
//! 22 (5), 2004): the window grows so that the sending rate is that of a connection with a round
//! trip of 25 ms, however long the path.
//!
//! The paper counts windows in segments; here they are bytes.

use super::{AckSample, CongestionControl, Episode, Growth};
use super::{LARGEST_WINDOW, slow_start};
use base::Duration;
use serde::{Deserialize, Serialize};

/// RTT0: the round trip of the reference connection (§5).
const REFERENCE: Duration = Duration::from_millis(25);
/// The multiplicative decrease of the flight, as in RFC 5681.
const DECREASE: f64 = 0.5;

/// Hybla's window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hybla {
    byte_counting: Option<u32>,
    /// The shortest round trip; `Duration::MAX` before the first sample.
    min_rtt: Duration,
    /// ρ² and 2^ρ - 1, where ρ = RTT / RTT0, at least 1.
    rho_squared: f64,
    slow_start_gain: f64,
    state: State,
}

/// The windows, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct State {
    /// cwnd, and the same in whole bytes.
    exact: f64,
    window: u64,
    ssthresh: u64,
}

impl State {
    fn new(window: u64, ssthresh: Option<u64>) -> State {
        State { exact: window as f64, window, ssthresh: ssthresh.unwrap_or(u64::MAX) }
    }

    fn grow_to(&mut self, exact: f64) {
        self.exact = exact.max(self.exact).min(LARGEST_WINDOW);
        self.window = self.exact as u64;
    }

    fn shrink(&mut self, window: u64) {
        self.window = self.window.min(window);
        self.exact = self.window as f64;
    }
}

impl Hybla {
    pub(super) fn new(growth: Growth, window: u64) -> Hybla {
        Hybla {
            byte_counting: growth.byte_counting,
            min_rtt: Duration::MAX,
            rho_squared: 1.0,
            slow_start_gain: 1.0,
            state: State::new(window, None),
        }
    }

    /// The normalised round trip ρ.
    fn rho(&self) -> f64 {
        if self.min_rtt == Duration::MAX {
            return 1.0;
        }
        (self.min_rtt.as_nanos() as f64 / REFERENCE.as_nanos() as f64).max(1.0)
    }

    fn on_round_trip(&mut self, rtt: Duration) {
        if rtt < self.min_rtt {
            self.min_rtt = rtt;
            let rho = self.rho();
            self.rho_squared = rho * rho;
            // More than 2^40 bytes an acknowledgment makes no difference.
            self.slow_start_gain = libm::exp2(rho.min(40.0)) - 1.0;
        }
    }
}

impl CongestionControl for Hybla {
    /// §5: the window starts at ρ segments, or that of the connection if it is larger, and a finite
    /// ssthresh is ρ times that of the reference connection.
    fn on_handshake(&mut self, rtt: Duration, mss: u32) {
        self.on_round_trip(rtt);
        let (rho, state) = (self.rho(), &mut self.state);
        state.grow_to(rho * f64::from(mss));
        if state.ssthresh != u64::MAX {
            state.ssthresh = (state.ssthresh as f64 * rho) as u64;
        }
    }

    fn on_ack(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.on_round_trip(rtt);
        }
        if !sample.window_limited {
            return;
        }
        let state = &mut self.state;
        let mss = f64::from(sample.mss);
        if state.window < state.ssthresh {
            // §5, equation 8: 2^ρ - 1 segments for a segment, up to ssthresh as in Linux.
            let step = self.slow_start_gain * slow_start(sample, self.byte_counting);
            state.grow_to((state.exact + step).min(state.ssthresh as f64));
            return;
        }
        // §5, equation 8: ρ²/W segments.
        let segments = match self.byte_counting {
            None => 1.0,
            Some(_) => sample.counted_octets() as f64 / mss,
        };
        let step = self.rho_squared * mss * mss / state.exact * segments;
        // A window of fewer than ρ² segments grows by no more than slow start would add.
        state.grow_to(state.exact + step.min(self.slow_start_gain * mss * segments));
    }

    fn on_congestion(&mut self, episode: &Episode) {
        let (window, ssthresh) = episode.reduced(DECREASE);
        self.state.shrink(window);
        if !episode.keep_ssthresh {
            self.state.ssthresh = ssthresh;
        }
    }

    fn on_rto(&mut self, episode: &Episode) {
        self.state.shrink(u64::from(episode.mss));
        if !episode.keep_ssthresh {
            self.state.ssthresh = episode.reduced(DECREASE).1;
        }
    }

    fn on_idle(&mut self, window: u64) {
        self.state.shrink(window);
    }

    fn on_undo(&mut self, before: Self) {
        // The shortest round trip stays valid.
        self.state = before.state;
    }

    fn reset(&mut self, window: u64, ssthresh: Option<u64>) {
        let growth = Growth { byte_counting: self.byte_counting, ..Growth::default() };
        *self = Hybla { state: State::new(window, ssthresh), ..Hybla::new(growth, window) };
    }

    fn grow(&mut self, bytes: f64) {
        self.state.grow_to(self.state.exact + bytes);
    }

    fn end_slow_start(&mut self) {
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
mod tests {
    use super::*;
    use crate::congestion::{FlightSample, RateSample};
    use base::Time;

    const MSS: u64 = 1000;

    fn ack(acked: u64, rtt_ms: u64) -> AckSample {
        AckSample {
            now: Time::ZERO,
            acked,
            limited_transmit: 0,
            delivered: acked,
            rate: RateSample::default(),
            flight: FlightSample::default(),
            rtt: Some(Duration::from_millis(rtt_ms)),
            srtt: None,
            window_limited: true,
            after_timeout: false,
            mss: MSS as u32,
            marks: crate::congestion::CeMarks::default(),
        }
    }

    fn hybla(segments: u64, ssthresh: Option<u64>, byte_counting: Option<u32>) -> Hybla {
        let mut hybla = Hybla::new(Growth { byte_counting, ..Growth::default() }, MSS);
        hybla.reset(segments * MSS, ssthresh.map(|segments| segments * MSS));
        hybla
    }

    /// The window, in segments, after a round trip with an acknowledgment for every segment.
    fn round(hybla: &mut Hybla, rtt_ms: u64) -> f64 {
        for _ in 0..hybla.window() / MSS {
            hybla.on_ack(&ack(MSS, rtt_ms));
        }
        hybla.window() as f64 / MSS as f64
    }

    #[test]
    fn in_congestion_avoidance_the_rate_grows_alike_whatever_the_round_trip() {
        // The rate W / RTT of RFC 5681 at 25 ms: one segment per 25 ms more, each 25 ms.
        for rtt_ms in [25_u64, 50, 200, 600] {
            let rho = rtt_ms as f64 / 25.0;
            let rate = |window: f64| window / rho;
            let start = (200.0 * rho) as u64;
            let mut hybla = hybla(start, Some(1), None);
            let grown = rate(round(&mut hybla, rtt_ms)) - rate(start as f64);
            // In a round trip, the reference connection has ρ round trips.
            assert!((grown / rho - 1.0).abs() < 0.07, "{rtt_ms} ms: {grown}");
        }
    }

    #[test]
    fn in_slow_start_the_window_doubles_every_25_ms_whatever_the_round_trip() {
        for rtt_ms in [25_u64, 50, 75, 100] {
            let rho = rtt_ms as f64 / 25.0;
            let mut hybla = hybla(4, None, None);
            assert_eq!(round(&mut hybla, rtt_ms), 4.0 * libm::exp2(rho), "{rtt_ms} ms");
        }
    }

    #[test]
    fn below_25_ms_it_is_rfc_5681() {
        for (ssthresh, expected) in [(None, 20.0), (Some(10), 10.95)] {
            let window = round(&mut hybla(10, ssthresh, None), 3);
            assert!((window - expected).abs() < 0.02, "{window}");
        }
    }

    #[test]
    fn slow_start_ends_at_ssthresh() {
        let mut hybla = hybla(4, Some(100), None);
        hybla.on_ack(&ack(MSS, 600));
        assert_eq!(hybla.window(), 100 * MSS);
        hybla.on_ack(&ack(MSS, 600));
        // ρ²/W = 576 / 100.
        assert_eq!(hybla.window(), 105_760);
    }

    #[test]
    fn only_the_shortest_round_trip_counts() {
        let mut hybla = hybla(100, Some(1), None);
        for (rtt_ms, rho_squared) in [(100, 16.0), (600, 16.0), (50, 4.0)] {
            let before = hybla.window() as f64;
            hybla.on_ack(&ack(MSS, rtt_ms));
            let step = hybla.window() as f64 - before;
            assert!((step - rho_squared * (MSS * MSS) as f64 / before).abs() < 1.0, "{step}");
        }
        // Also while the window is not used.
        hybla.on_ack(&AckSample { window_limited: false, ..ack(MSS, 25) });
        let before = hybla.window();
        hybla.on_ack(&ack(MSS, 100));
        assert!(hybla.window() - before <= 10);
    }

    #[test]
    fn byte_counting_makes_up_for_delayed_acknowledgments() {
        for ssthresh in [None, Some(1)] {
            let (mut each, mut second) = (hybla(50, ssthresh, None), hybla(50, ssthresh, Some(2)));
            (0..2).for_each(|_| each.on_ack(&ack(MSS, 75)));
            second.on_ack(&ack(2 * MSS, 75));
            let share = second.window() as f64 / each.window() as f64;
            assert!((share - 1.0).abs() < 0.005, "{ssthresh:?}: {share}");
        }
    }

    #[test]
    fn the_handshake_scales_the_initial_window_and_ssthresh() {
        let second = Duration::from_millis(600);
        let mut short = hybla(1, Some(10), None);
        short.on_handshake(second, MSS as u32);
        assert_eq!((short.window(), short.ssthresh()), (24 * MSS, 240 * MSS));
        let mut long = hybla(30, None, None);
        long.on_handshake(second, MSS as u32);
        assert_eq!((long.window(), long.ssthresh()), (30 * MSS, u64::MAX));
    }

    #[test]
    fn congestion_halves_the_window_as_rfc_5681_does() {
        let mut hybla = hybla(100, None, None);
        let (decrease, keep_ssthresh, marked) = (None, false, false);
        let now = Time::ZERO;
        let episode = Episode { now, flight: 90 * MSS, mss: 1000, decrease, keep_ssthresh, marked };
        hybla.on_congestion(&episode);
        assert_eq!((hybla.window(), hybla.ssthresh()), (45 * MSS, 45 * MSS));
        hybla.on_rto(&Episode { flight: 40 * MSS, ..episode });
        assert_eq!((hybla.window(), hybla.ssthresh()), (MSS, 20 * MSS));
    }

    #[test]
    fn a_new_path_has_a_new_shortest_round_trip() {
        let mut hybla = hybla(100, Some(1), None);
        hybla.on_ack(&ack(MSS, 25));
        hybla.reset(100 * MSS, Some(MSS));
        hybla.on_ack(&ack(MSS, 250));
        assert_eq!(hybla.window(), 101 * MSS);
    }
}
