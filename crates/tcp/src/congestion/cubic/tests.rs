//! The controller alone, on a path of constant round trip.

use super::*;
use crate::congestion::{Congestion, Controller, FlightSample, RateSample};

const MSS: u32 = 1000;

/// A path on which every segment is acknowledged, evenly over the round trip.
struct Path {
    controller: Controller,
    now: Time,
    rtt: Duration,
}

impl Path {
    /// In congestion avoidance from so many segments on.
    fn new(congestion: Congestion, rtt: Duration, segments: u64) -> Path {
        let growth = Growth { congestion, ..Growth::default() };
        let mut controller = Controller::new(growth, 0);
        controller.reset(segments * u64::from(MSS), Some(0));
        Path { controller, now: Time::ZERO, rtt }
    }

    /// The window, segments.
    fn window(&self) -> f64 {
        self.controller.window() as f64 / f64::from(MSS)
    }

    /// The next acknowledgment, and how long it took to come.
    fn ack_if(&mut self, window_limited: bool) -> Duration {
        let gap = Duration::from_nanos((self.rtt.as_nanos() as f64 / self.window()) as u64);
        self.now += gap;
        let sample = self.sample(window_limited);
        self.controller.on_ack(&sample, 0, 0);
        gap
    }

    fn sample(&self, window_limited: bool) -> AckSample {
        AckSample {
            now: self.now,
            acked: u64::from(MSS),
            limited_transmit: 0,
            delivered: u64::from(MSS),
            rate: RateSample::default(),
            flight: FlightSample::default(),
            rtt: Some(self.rtt),
            srtt: Some(self.rtt),
            window_limited,
            after_timeout: false,
            mss: MSS,
            marks: crate::congestion::CeMarks::default(),
        }
    }

    fn ack(&mut self) -> Duration {
        self.ack_if(true)
    }

    /// Acknowledgments for so long.
    fn pass(&mut self, seconds: f64) {
        let end = self.now + Duration::from_nanos((seconds * 1e9) as u64);
        while self.now < end {
            self.ack();
        }
    }

    fn episode(&self) -> Episode {
        let (decrease, keep_ssthresh, marked) = (None, false, false);
        let flight = self.controller.window();
        Episode { now: self.now, flight, mss: MSS, decrease, keep_ssthresh, marked }
    }

    fn lose(&mut self) {
        let episode = self.episode();
        self.controller.on_congestion(&episode);
    }

    /// The mean window over the time that `count` acknowledgments take, segments.
    fn mean(&mut self, count: u32) -> f64 {
        let (mut area, mut time) = (0.0, 0.0);
        for _ in 0..count {
            let window = self.window();
            let gap = self.ack().as_secs_f64();
            area += window * gap;
            time += gap;
        }
        area / time
    }

    /// The mean window if one of `period` segments is lost, after a while.
    fn mean_of_cycles(&mut self, period: u32) -> f64 {
        let mut sum = 0.0;
        for cycle in 0..60 {
            let mean = self.mean(period);
            sum += if cycle < 20 { 0.0 } else { mean };
            self.lose();
        }
        sum / 40.0
    }
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() < tolerance, "{value} instead of {expected}");
}

/// RFC 9438 §5.1, equation 6: the mean window, segments, if one of `period` segments is lost.
fn response(rtt: Duration, period: u32) -> f64 {
    let segments = rtt.as_secs_f64() * f64::from(period);
    let fourth = C * (3.0 + BETA) / (4.0 * (1.0 - BETA)) * segments * segments * segments;
    fourth.sqrt().sqrt()
}

/// Where the cubic rules, and not the window of RFC 5681.
const LONG: &[(u64, u32)] =
    &[(100, 10_000), (100, 100_000), (200, 10_000), (500, 10_000), (640, 3000), (10, 10_000_000)];

#[test]
fn a_cycle_of_periodic_loss_has_the_mean_of_the_response_function_and_ends_as_it_began() {
    for &(millis, period) in LONG {
        let rtt = Duration::from_millis(millis);
        let expected = response(rtt, period);
        // The window is as (3 + beta) / 4 of its maximum in the mean.
        let maximum = 4.0 * expected / (3.0 + BETA);
        let mut path = Path::new(Congestion::Cubic, rtt, maximum as u64);
        path.lose();
        near(path.mean(period), expected, 0.02);
        near(path.window(), maximum, 0.01);
    }
}

#[test]
fn fast_convergence_costs_a_flow_without_competitors_less_than_a_tenth() {
    for &(millis, period) in &LONG[..5] {
        let rtt = Duration::from_millis(millis);
        let mean = Path::new(Congestion::Cubic, rtt, 200).mean_of_cycles(period);
        let share = mean / response(rtt, period);
        assert!((0.9..1.0).contains(&share), "{millis} ms, {period}: {share}");
    }
}

#[test]
fn on_a_short_path_the_mean_window_is_that_of_rfc_5681() {
    for period in [300, 1000, 10_000] {
        let mean = |congestion| {
            Path::new(congestion, Duration::from_millis(10), 50).mean_of_cycles(period)
        };
        // RFC 9438 §4.3, equation 3.
        let expected = (1.5 * f64::from(period)).sqrt();
        near(mean(Congestion::Cubic), expected, 0.01);
        near(mean(Congestion::Aimd), expected, 0.01);
    }
}

#[test]
fn once_the_old_window_is_reached_the_window_of_rfc_5681_grows_as_fast() {
    // RFC 9438 §4.3: 0.53 segments a round trip up to cwnd_prior, then 1.
    let mut path = Path::new(Congestion::Cubic, Duration::from_millis(10), 20);
    path.lose();
    path.pass(0.1);
    near(path.window(), 14.0 + 5.3, 0.01);
    path.pass(0.013);
    near(path.window(), 20.0, 0.01);
    path.pass(0.5);
    near(path.window(), 70.0, 0.02);
}

#[test]
fn the_window_is_back_at_its_maximum_after_k() {
    let mut path = Path::new(Congestion::Cubic, Duration::from_millis(100), 1000);
    path.lose();
    assert_eq!(path.window(), 700.0);
    let k = libm::cbrt(300.0 / 0.4);
    path.pass(k / 2.0);
    assert!(path.window() > 900.0, "concave: most of it comes first, {}", path.window());
    path.pass(k / 2.0);
    near(path.window(), 1000.0, 0.001);
    path.pass(k);
    near(path.window(), 1300.0, 0.02);
}

#[test]
fn at_the_end_of_slow_start_the_plateau_is_where_the_window_is() {
    let mut path = Path::new(Congestion::Cubic, Duration::from_millis(500), 2);
    path.controller.reset(2000, Some(1_000_000));
    while path.window() < 1000.0 {
        path.ack();
    }
    let start = path.now;
    path.pass(10.0);
    // RFC 9438 §4.10: K is 0.
    let t = path.now.since(start).as_secs_f64();
    near(path.window(), 1000.0 + 0.4 * t * t * t, 0.02);
}

#[test]
fn after_a_timeout_the_plateau_is_where_slow_start_ends() {
    let mut path = Path::new(Congestion::Cubic, Duration::from_millis(500), 1000);
    path.lose();
    path.ack();
    let episode = path.episode();
    path.controller.on_rto(&episode);
    assert_eq!(path.window(), 1.0);
    let ssthresh = path.controller.ssthresh() as f64 / f64::from(MSS);
    near(ssthresh, 490.0, 0.001);
    while path.window() < ssthresh {
        path.ack();
    }
    path.pass(5.0);
    // RFC 9438 §4.8: not the 1000 of before.
    near(path.window(), 490.0 + 0.4 * 125.0, 0.02);
}

#[test]
fn who_meets_congestion_earlier_than_before_makes_room() {
    // RFC 9438 §4.7: W_max is 0.85 of the window, and W(0) is 0.7 of it.
    let mut path = Path::new(Congestion::Cubic, Duration::from_millis(100), 1000);
    path.lose();
    path.lose();
    near(path.window(), 490.0, 1e-5);
    path.pass(libm::cbrt((0.85 - 0.7) * 700.0 / 0.4));
    near(path.window(), 0.85 * 700.0, 0.002);
}

#[test]
fn time_in_which_the_window_is_not_used_does_not_count() {
    let grown = |unused: u32| {
        let mut path = Path::new(Congestion::Cubic, Duration::from_millis(100), 1000);
        path.lose();
        path.pass(3.0);
        let window = path.window();
        for _ in 0..unused {
            path.ack_if(false);
        }
        assert_eq!(path.window(), window);
        path.pass(3.0);
        path.window()
    };
    near(grown(100_000), grown(0), 1e-4);
}

#[test]
fn an_idle_time_does_not_count() {
    let grown = |idle: u64| {
        let mut path = Path::new(Congestion::Cubic, Duration::from_millis(100), 1000);
        path.lose();
        path.pass(3.0);
        path.now += Duration::from_secs(idle);
        path.controller.on_idle(path.controller.window());
        path.pass(3.0);
        path.window()
    };
    near(grown(1000), grown(0), 1e-4);
}

#[test]
fn the_window_grows_by_half_a_round_trip_at_most() {
    // The cubic is far ahead after a long silence of the path.
    let mut path = Path::new(Congestion::Cubic, Duration::from_millis(100), 1000);
    path.lose();
    path.ack();
    path.now += Duration::from_secs(1000);
    for _ in 0..10 {
        let before = path.window();
        path.pass(0.1);
        assert!((1.3..=1.66).contains(&(path.window() / before)), "{}", path.window() / before);
    }
}

#[test]
fn an_undo_takes_back_the_whole_curve() {
    let mut path = Path::new(Congestion::Cubic, Duration::from_millis(100), 1000);
    path.lose();
    path.pass(5.0);
    let before = path.controller.clone();
    path.lose();
    path.pass(0.2);
    path.controller.on_undo();
    assert_eq!(path.controller.window(), before.window());
    assert_eq!(path.controller.algorithm, before.algorithm);
}

#[test]
fn byte_counting_makes_stretched_acknowledgments_grow_like_single_ones() {
    let grown = |byte_counting, stretch: u64| {
        let growth = Growth { congestion: Congestion::Cubic, byte_counting, ..Growth::default() };
        let mut path = Path::new(Congestion::Cubic, Duration::from_millis(100), 1000);
        path.controller = Controller::new(growth, 1_000_000);
        path.controller.reset(1_000_000, Some(0));
        path.lose();
        for n in 0..20_000_u64 {
            let sample = path.sample(true);
            path.now += Duration::from_micros(100);
            if n % stretch == 0 {
                let sample = AckSample { acked: sample.acked * stretch, ..sample };
                path.controller.on_ack(&sample, 0, 0);
            }
        }
        path.window()
    };
    near(grown(Some(2), 4), grown(None, 1), 0.01);
    assert!(grown(None, 4) < 0.99 * grown(None, 1), "without, they lag");
    assert!(grown(Some(2), 10_000) < 1000.0, "never beyond the curve");
}
