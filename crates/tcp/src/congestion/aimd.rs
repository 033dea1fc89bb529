//! Additive increase, multiplicative decrease (RFC 5681), with a choice of increase functions.

use super::{AckSample, CongestionControl, Episode, Growth, Increase};
use super::{LARGEST_WINDOW, slow_start};
use serde::{Deserialize, Serialize};

/// The multiplicative decrease of the flight (RFC 5681 §3.1, equation 4).
pub(super) const DECREASE: f64 = 0.5;

/// RFC 5681's window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Aimd {
    increase: Increase,
    byte_counting: Option<u32>,
    state: State,
}

/// The changing state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct State {
    /// Bytes; fractional, because the increase per acknowledgment is a fraction of a segment.
    exact: f64,
    /// The window in whole bytes, which is read several times per segment.
    window: u64,
    ssthresh: u64,
    /// RFC 3465 §2.1, bytes_acked: octets acknowledged since the window last grew.
    bytes_acked: u64,
}

impl State {
    fn new(window: u64, ssthresh: Option<u64>) -> State {
        let ssthresh = ssthresh.unwrap_or(u64::MAX);
        State { exact: window as f64, window, ssthresh, bytes_acked: 0 }
    }

    #[inline]
    fn grow(&mut self, bytes: f64) {
        self.exact = (self.exact + bytes).min(LARGEST_WINDOW);
        // Below 2^63, a signed number takes less to make.
        self.window = self.exact as i64 as u64;
    }

    fn shrink(&mut self, window: u64) {
        self.window = self.window.min(window);
        self.exact = self.window as f64;
        self.bytes_acked = 0;
    }

    /// RFC 3465 §2.1: grows by whole segments, one for as many octets as give one without byte
    /// counting. If an acknowledged segment gives more than one, growth is immediate.
    fn count(&mut self, acked: u64, per_ack: f64, mss: f64) {
        if per_ack > 1.0 {
            self.grow(acked as f64 * per_ack);
            return;
        }
        let segment = round(mss / per_ack).max(1);
        self.bytes_acked = self.bytes_acked.saturating_add(acked);
        if self.bytes_acked >= segment {
            self.grow((self.bytes_acked / segment) as f64 * mss);
            self.bytes_acked %= segment;
        }
    }
}

/// The whole number next to a positive one, as `f64::round` gives it, which is a call of a library.
#[inline]
fn round(number: f64) -> u64 {
    let whole = number as u64;
    whole.saturating_add(u64::from(number - whole as f64 >= 0.5))
}

impl Aimd {
    pub(super) fn new(growth: Growth, window: u64) -> Aimd {
        Aimd {
            increase: growth.increase,
            byte_counting: growth.byte_counting,
            state: State::new(window, None),
        }
    }

    /// Reduces the window to at most `window`, and sets ssthresh, if given.
    pub(super) fn reduce(&mut self, window: u64, ssthresh: Option<u64>) {
        self.state.shrink(window);
        self.state.ssthresh = ssthresh.unwrap_or(self.state.ssthresh);
    }
}

impl CongestionControl for Aimd {
    const NEEDS_EVERY_ACK: bool = false;

    #[inline(always)]
    fn on_ack(&mut self, sample: &AckSample) {
        if !sample.window_limited {
            return;
        }
        let state = &mut self.state;
        if state.window < state.ssthresh {
            state.grow(slow_start(sample, self.byte_counting));
            return;
        }
        let mss = f64::from(sample.mss);
        let per_ack = self.increase.per_ack(state.exact / mss, sample);
        match self.byte_counting {
            None => state.grow(per_ack * mss),
            Some(_) => state.count(sample.counted_octets(), per_ack, mss),
        }
    }

    fn on_congestion(&mut self, episode: &Episode) {
        let (window, ssthresh) = episode.reduced(DECREASE);
        self.reduce(window, (!episode.keep_ssthresh).then_some(ssthresh));
    }

    fn on_rto(&mut self, episode: &Episode) {
        let ssthresh = episode.reduced(DECREASE).1;
        self.reduce(u64::from(episode.mss), (!episode.keep_ssthresh).then_some(ssthresh));
    }

    fn on_idle(&mut self, window: u64) {
        self.state.shrink(window);
    }

    fn on_undo(&mut self, before: Self) {
        // Measurements of the increase function stay valid.
        self.state = before.state;
    }

    fn reset(&mut self, window: u64, ssthresh: Option<u64>) {
        self.increase.reset();
        self.state = State::new(window, ssthresh);
    }

    fn grow(&mut self, bytes: f64) {
        self.state.grow(bytes);
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
    use crate::congestion::{Controller, FlightSample, RateSample};
    use base::{Duration, Time};

    fn aimd(window: u64, ssthresh: Option<u64>, byte_counting: Option<u32>) -> Aimd {
        let mut aimd = Aimd::new(Growth { byte_counting, ..Growth::default() }, window);
        aimd.reset(window, ssthresh);
        aimd
    }

    fn ack(acked: u64) -> AckSample {
        AckSample {
            now: Time::ZERO,
            acked,
            limited_transmit: 0,
            delivered: acked,
            rate: RateSample::default(),
            flight: FlightSample::default(),
            rtt: None,
            srtt: None,
            window_limited: true,
            after_timeout: false,
            mss: 1000,
            marks: crate::congestion::CeMarks::default(),
        }
    }

    /// With what takes a reduction back.
    fn controller(window: u64, ssthresh: Option<u64>) -> Controller {
        let mut controller = Controller::new(Growth::default(), window);
        controller.reset(window, ssthresh);
        controller
    }

    fn episode(flight: u64) -> Episode {
        let (decrease, keep_ssthresh, marked) = (None, false, false);
        Episode { now: Time::ZERO, flight, mss: 1000, decrease, keep_ssthresh, marked }
    }

    #[test]
    fn slow_start_adds_one_segment_per_acknowledgment() {
        let mut aimd = aimd(1000, None, None);
        for n in 1..=10 {
            aimd.on_ack(&ack(1000));
            assert_eq!(aimd.window(), 1000 + n * 1000);
        }
        aimd.on_ack(&ack(2000));
        assert_eq!(aimd.window(), 12_000, "an ACK for two segments still adds only one");
    }

    #[test]
    fn byte_counting_adds_what_was_acknowledged_up_to_its_limit() {
        // RFC 3465 §2.2.
        let mut aimd = aimd(1000, None, Some(2));
        for (acked, window) in [(300, 1300), (2000, 3300), (5000, 5300)] {
            aimd.on_ack(&ack(acked));
            assert_eq!(aimd.window(), window);
        }
        // RFC 3465 §2.3.
        aimd.on_ack(&AckSample { after_timeout: true, ..ack(5000) });
        assert_eq!(aimd.window(), 6300);
    }

    #[test]
    fn congestion_avoidance_adds_about_one_segment_per_window() {
        let mut aimd = aimd(10_000, Some(10_000), None);
        for _ in 0..10 {
            aimd.on_ack(&ack(1000));
        }
        assert!((10_900..=11_000).contains(&aimd.window()), "{}", aimd.window());
    }

    #[test]
    fn byte_counting_adds_one_segment_when_a_window_of_octets_is_acknowledged() {
        // RFC 3465 §2.1; what is left over counts for the next.
        let mut aimd = aimd(10_000, Some(10_000), Some(2));
        for (acked, window) in
            [(9_999, 10_000), (1, 11_000), (10_000, 11_000), (3_000, 12_000), (10_000, 13_000)]
        {
            aimd.on_ack(&ack(acked));
            assert_eq!(aimd.window(), window);
        }
        aimd.on_ack(&ack(500));
        aimd.on_congestion(&episode(12_000));
        aimd.on_ack(&ack(5999));
        assert_eq!(aimd.window(), 6000, "and nothing of what was acknowledged before");
    }

    #[test]
    fn byte_counting_multiplies_every_increase_function() {
        for (_, increase) in Increase::ALL {
            let grown = |byte_counting, acks: u32, acked| {
                let growth = Growth { increase: *increase, byte_counting, ..Growth::default() };
                let mut aimd = Aimd::new(growth, 100_000);
                aimd.reset(100_000, Some(2000));
                (0..acks).for_each(|_| aimd.on_ack(&ack(acked)));
                aimd.window() as f64
            };
            let (each, every_fourth) = (grown(None, 1000, 1000), grown(Some(2), 250, 4000));
            assert!((each - every_fourth).abs() < 3000.0, "{increase:?}: {each} {every_fourth}");
        }
    }

    #[test]
    fn where_a_segment_makes_more_than_one_byte_counting_waits_for_no_whole_segment() {
        let canit = Increase::ALL.iter().find(|(name, _)| *name == "canit").unwrap().1;
        let growth = Growth { increase: canit, byte_counting: Some(2), ..Growth::default() };
        let mut aimd = Aimd::new(growth, 10_000);
        aimd.reset(10_000, Some(2000));
        // r/NIT = 25: 2.5 segments for each of ten.
        let srtt = Some(Duration::from_millis(750));
        aimd.on_ack(&AckSample { srtt, ..ack(400) });
        assert_eq!(aimd.window(), 11_000);
    }

    #[test]
    fn an_undo_keeps_what_the_increase_function_has_measured() {
        let auto = Increase::ALL.iter().find(|(name, _)| *name == "auto").unwrap().1;
        let growth = Growth { increase: auto, ..Growth::default() };
        let mut aimd = Aimd::new(growth, 10_000);
        aimd.reset(10_000, Some(2000));
        let before = aimd.clone();
        aimd.on_congestion(&episode(10_000));
        aimd.on_ack(&ack(1000));
        let measured = aimd.increase;
        assert_ne!(measured, before.increase);
        aimd.on_undo(before);
        assert_eq!((aimd.window(), aimd.increase), (10_000, measured));
        aimd.reset(10_000, None);
        assert_eq!(aimd.increase, auto);
    }

    #[test]
    fn congestion_halves_the_flight_but_not_below_two_segments() {
        let mut aimd = aimd(20_000, None, None);
        aimd.on_congestion(&episode(20_000));
        assert_eq!((aimd.window(), aimd.ssthresh()), (10_000, 10_000));
        aimd.on_congestion(&episode(1000));
        assert_eq!((aimd.window(), aimd.ssthresh()), (2000, 2000));
        aimd.on_rto(&episode(20_000));
        assert_eq!((aimd.window(), aimd.ssthresh()), (1000, 10_000));
    }

    #[test]
    fn a_mechanism_may_choose_the_decrease_and_a_mark_leads_down_to_one_segment() {
        let mut aimd = aimd(20_000, None, None);
        aimd.on_congestion(&Episode { decrease: Some(0.9), ..episode(20_000) });
        assert_eq!((aimd.window(), aimd.ssthresh()), (18_000, 18_000));
        // RFC 3168 §6.1.2.
        aimd.on_congestion(&Episode { marked: true, ..episode(2000) });
        assert_eq!((aimd.window(), aimd.ssthresh()), (1000, 2000));
    }

    #[test]
    fn an_undo_takes_back_a_series_of_timeouts_as_a_whole() {
        let mut aimd = controller(20_000, Some(30_000));
        aimd.on_rto(&episode(20_000));
        aimd.on_rto(&Episode { keep_ssthresh: true, ..episode(1000) });
        aimd.on_undo();
        assert_eq!((aimd.window(), aimd.ssthresh()), (20_000, 30_000));
    }

    #[test]
    fn an_undo_that_comes_too_late_changes_nothing() {
        let mut aimd = controller(3000, None);
        aimd.on_congestion(&episode(3000));
        (0..20).for_each(|_| aimd.on_ack(&ack(1000), 0, 0));
        let window = aimd.window();
        assert!(window > 3000);
        aimd.on_undo();
        assert_eq!((aimd.window(), aimd.ssthresh()), (window, 2000));
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut aimd = aimd(10_000, None, None);
        aimd.on_ack(&AckSample { window_limited: false, ..ack(1000) });
        assert_eq!(aimd.window(), 10_000);
    }
}
