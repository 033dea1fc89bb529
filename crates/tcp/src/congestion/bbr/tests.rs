//! The example test cases of the draft (its appendix), over a path with one bottleneck.

use super::*;
use crate::congestion::{FlightSample, RateSample};
use proptest::prelude::*;
use std::collections::VecDeque;

const MSS: u64 = 1000;

/// A packet and the delivery state when it was sent.
#[derive(Clone, Copy)]
struct Sent {
    start: u64,
    at: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    in_flight: u64,
    app_limited: bool,
    /// When its acknowledgment arrives.
    acked_at: Time,
    lost: bool,
}

/// A sender, and a bottleneck with an unlimited queue.
struct Path {
    bbr: Bbr,
    now: Time,
    /// Octets a second.
    rate: f64,
    rtt: Duration,
    /// One of so many packets is lost.
    loses: Option<u64>,
    /// Octets a second that the application writes; without limit if absent.
    writes: Option<f64>,
    /// Acknowledgments arrive at multiples of this.
    batches: Option<Duration>,
    written: f64,
    free_at: Time,
    send_at: Time,
    sent: u64,
    flying: VecDeque<Sent>,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    app_limited: u64,
    /// Octets until which an episode of losses lasts.
    recovers_at: Option<u64>,
    states: Vec<State>,
}

impl Path {
    /// 1 MB/s and 100 ms: 100 packets.
    fn new() -> Path {
        Path {
            bbr: Bbr::new(Growth::default(), 10 * MSS),
            now: Time::ZERO + Duration::from_secs(1),
            rate: 1e6,
            rtt: Duration::from_millis(100),
            loses: None,
            writes: None,
            batches: None,
            written: 0.0,
            free_at: Time::ZERO,
            send_at: Time::ZERO,
            sent: 0,
            flying: VecDeque::new(),
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            app_limited: 0,
            recovers_at: None,
            states: vec![State::Startup],
        }
    }

    /// The same path; the settings have outlived a reset.
    fn with(growth: Growth) -> Path {
        let mut bbr = Bbr::new(growth, MSS);
        bbr.reset(10 * MSS, None);
        Path { bbr, ..Path::new() }
    }

    fn in_flight(&self) -> u64 {
        self.flying.len() as u64 * MSS
    }

    fn bdp(&self) -> u64 {
        (self.rate * self.rtt.as_secs_f64()) as u64
    }

    fn has_data(&self) -> bool {
        self.writes.is_none() || self.written >= self.sent as f64
    }

    /// Goes on until this holds; at most 100 s.
    #[track_caller]
    fn until(&mut self, holds: impl Fn(&Path) -> bool) {
        let end = self.now + Duration::from_secs(100);
        while !holds(self) {
            assert!(self.now < end, "still {:?}", self.bbr);
            self.step();
        }
    }

    #[track_caller]
    fn until_state(&mut self, state: State) {
        self.until(|path| path.bbr.state == state);
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        self.until(|path| path.now >= end);
    }

    /// The bottleneck slows down, for what waits in its queue, too.
    fn slow_down(&mut self, factor: f64) {
        self.rate *= factor;
        let now = self.now;
        let later = |at: Time| {
            now + Duration::from_nanos((at.since(now).as_nanos() as f64 / factor) as u64)
        };
        self.free_at = later(self.free_at);
        for packet in &mut self.flying {
            packet.acked_at = later(packet.acked_at);
        }
    }

    /// Sends a packet, or receives an acknowledgment, or lets the application write.
    fn step(&mut self) {
        let acked_at = self.flying.front().map_or(Time::NEVER, |first| first.acked_at);
        let room = self.in_flight() + MSS <= self.bbr.window();
        let send_at = if room { self.send_at.max(self.now) } else { Time::NEVER };
        let write_at = match self.writes {
            Some(rate) if !self.has_data() => {
                let missing = (self.sent as f64 - self.written) / rate;
                self.now + Duration::from_nanos((missing * 1e9) as u64 + 1)
            }
            _ => Time::ZERO,
        };
        let send_at = send_at.max(write_at);
        let next = acked_at.min(send_at).min(self.now + Duration::from_secs(1));
        if let Some(rate) = self.writes {
            self.written += rate * next.since(self.now).as_secs_f64();
        }
        self.now = next;
        if acked_at <= next {
            self.acknowledge();
        } else if send_at <= next && self.has_data() {
            self.send();
        }
        if self.states.last() != Some(&self.bbr.state) {
            self.states.push(self.bbr.state);
        }
    }

    fn check_app_limited(&mut self) {
        let idle = !self.has_data() && self.in_flight() < self.bbr.window();
        if idle || self.bbr.is_probing_rtt() {
            self.app_limited = (self.delivered + self.in_flight()).max(1);
        }
    }

    fn send(&mut self) {
        if self.flying.is_empty() {
            self.bbr.on_first_outstanding(self.now, self.app_limited > 0);
            (self.delivered_at, self.first_sent_at) = (self.now, self.now);
        }
        self.free_at = self.free_at.max(self.now)
            + Duration::from_nanos((MSS as f64 / self.rate * 1e9) as u64);
        let mut acked_at = self.free_at + self.rtt;
        if let Some(batch) = self.batches {
            let batches = acked_at.as_nanos().div_ceil(batch.as_nanos());
            acked_at = Time::from_nanos(batches * batch.as_nanos());
        }
        self.flying.push_back(Sent {
            start: self.sent,
            at: self.now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: self.in_flight() + MSS,
            app_limited: self.app_limited > 0,
            acked_at,
            lost: self.loses.is_some_and(|n| (self.sent / MSS) % n == n - 1),
        });
        self.sent += MSS;
        let interval = self.bbr.pacing().map_or(Duration::ZERO, |rate| rate.time_for(MSS));
        self.send_at = self.send_at.max(self.now) + interval;
        self.check_app_limited();
    }

    fn acknowledge(&mut self) {
        self.check_app_limited();
        let Some(packet) = self.flying.pop_front() else { return };
        if packet.lost {
            let lost = Lost {
                now: self.now,
                start: packet.start,
                end: packet.start + MSS,
                delivered: packet.delivered,
                in_flight: packet.in_flight,
                app_limited: packet.app_limited,
            };
            if self.recovers_at.is_none() {
                self.recovers_at = Some(self.sent);
                self.bbr.on_congestion(&Episode {
                    now: self.now,
                    flight: self.in_flight(),
                    mss: MSS as u32,
                    decrease: None,
                    keep_ssthresh: false,
                    marked: false,
                });
            }
            return self.bbr.on_lost(&lost);
        }
        if self.recovers_at.is_some_and(|end| packet.start >= end) {
            self.recovers_at = None;
            self.bbr.on_recovered();
        }
        self.delivered += MSS;
        self.delivered_at = self.now;
        self.first_sent_at = packet.at;
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let interval =
            packet.at.since(packet.first_sent_at).max(self.now.since(packet.delivered_at));
        let window_limited = self.in_flight() + 2 * MSS > self.bbr.window();
        self.bbr.on_ack(&AckSample {
            now: self.now,
            acked: MSS,
            limited_transmit: 0,
            delivered: MSS,
            rate: RateSample { delivered: self.delivered - packet.delivered, interval },
            flight: FlightSample {
                delivered: self.delivered,
                in_flight: self.in_flight(),
                sent_in_flight: packet.in_flight,
                app_limited: packet.app_limited,
                rtt: Some(self.now.since(packet.at)),
            },
            rtt: Some(self.now.since(packet.at)),
            srtt: Some(self.rtt),
            window_limited,
            after_timeout: false,
            mss: MSS as u32,
            marks: crate::congestion::CeMarks::default(),
        });
    }
}

#[test]
fn startup_ends_when_the_bandwidth_no_longer_grows() {
    let mut path = Path::new();
    path.until_state(State::Drain);
    assert_eq!(path.states, [State::Startup, State::Drain]);
    assert!(path.bbr.full_pipe.reached);
    let bandwidth = path.bbr.max_bw.get();
    assert!((bandwidth / path.rate - 1.0).abs() < 0.02, "{bandwidth}");
    // 10 packets grow to 100 by doubling, and three rounds more.
    assert!((6..=9).contains(&path.bbr.round.count), "{:?}", path.bbr.round);
}

#[test]
fn startup_ends_by_losses_though_the_application_limits_the_rate() {
    let mut path = Path { writes: Some(0.8e6), ..Path::new() };
    path.run(Duration::from_secs(5));
    assert_eq!(path.bbr.state, State::Startup);
    path.loses = Some(10);
    path.until_state(State::Drain);
    assert!(path.bbr.full_pipe.now && path.bbr.full_pipe.reached);
    assert!(path.bbr.inflight_longterm < u64::MAX);
}

#[test]
fn drain_ends_when_the_queue_is_empty() {
    let mut path = Path::new();
    path.until_state(State::Drain);
    assert!(path.in_flight() > path.bdp() * 3 / 2, "{}", path.in_flight());
    path.until(|path| path.bbr.state != State::Drain);
    assert!(path.in_flight() <= path.bbr.inflight(1.0));
    assert!(path.bbr.round.count <= path.bbr.probe.drain_began + 2);
}

#[test]
fn drain_ends_after_three_rounds_in_any_case() {
    let mut path = Path::new();
    path.until_state(State::Drain);
    path.slow_down(0.4); // At half the bandwidth estimated, the queue never empties.
    path.until(|path| path.bbr.state != State::Drain);
    assert!(path.in_flight() > path.bbr.inflight(1.0));
    assert_eq!(path.bbr.round.count, path.bbr.probe.drain_began + 4);
}

#[test]
fn a_probe_ends_when_the_bandwidth_does_not_grow() {
    let mut path = Path::new();
    path.until_state(State::Up);
    path.until_state(State::Down);
    assert!(path.bbr.full_pipe.now && !path.bbr.probe.too_high);
    assert_eq!(path.bbr.inflight_longterm, u64::MAX);
}

#[test]
fn a_probe_ends_by_losses() {
    for writes in [None, Some(0.9e6)] {
        let mut path = Path::new();
        path.until_state(State::Refill);
        path.writes = writes;
        path.written = path.sent as f64;
        path.until_state(State::Up);
        path.loses = Some(10);
        path.until_state(State::Down);
        assert!(path.bbr.probe.too_high && path.bbr.undo.state == Some(State::Up));
        // What the application limits says nothing of the volume that fits.
        assert_eq!(path.bbr.inflight_longterm < u64::MAX, writes.is_none());
    }
}

#[test]
fn the_probe_after_one_that_went_too_high_stops_where_that_had_been() {
    let mut path = Path::new();
    path.until_state(State::Up);
    path.loses = Some(10);
    path.until_state(State::Down);
    path.loses = None;
    let longterm = path.bbr.inflight_longterm;
    path.until_state(State::Up);
    path.until_state(State::Down);
    assert!(path.bbr.probe.precautionary && !path.bbr.probe.too_high);
    assert!(path.in_flight() + 2 * MSS >= longterm, "{} of {longterm}", path.in_flight());
    // It did no harm: the next follows at once.
    path.until(|path| path.bbr.state != State::Down);
    assert_eq!(path.bbr.state, State::Refill);
}

#[test]
fn without_losses_an_application_that_limits_the_rate_keeps_startup_and_probes_going() {
    let mut path = Path { writes: Some(0.5e6), ..Path::new() };
    path.run(Duration::from_secs(4)); // Less than the interval of ProbeRTT.
    assert_eq!(path.states, [State::Startup]);
    let mut path = Path::new();
    path.until_state(State::Up);
    path.writes = Some(0.5e6);
    path.written = path.sent as f64;
    path.until(|path| path.bbr.state != State::Up);
    assert_eq!(path.bbr.state, State::ProbeRtt);
}

#[test]
fn down_ends_when_the_flight_fits_with_headroom() {
    let mut path = Path::new();
    path.until_state(State::Down);
    assert!((path.bbr.state.pacing_gain() - 0.9).abs() < 1e-9);
    path.until_state(State::Cruise);
    assert!(path.in_flight() <= path.bbr.inflight_with_headroom());
    assert!(path.in_flight() <= path.bbr.inflight(1.0));
}

#[test]
fn the_bandwidth_is_probed_after_two_to_three_seconds_at_the_latest() {
    let mut path = Path::new();
    path.until_state(State::Down);
    let began = path.now;
    path.until_state(State::Refill);
    let waited = path.now.since(began).as_secs_f64();
    assert!((2.0..3.2).contains(&waited), "{waited} s");
    let began = path.bbr.round.count;
    path.until_state(State::Up);
    assert_eq!(path.bbr.round.count, began + 1, "a round fills the pipe");
}

#[test]
fn the_round_trip_is_probed_every_five_seconds_for_200_ms_and_a_round() {
    let mut path = Path::new();
    path.until_state(State::ProbeRtt);
    let began = path.now;
    assert!(began.as_secs_f64() > 1.0 + 5.0);
    path.until(|path| path.bbr.min_rtt.done_at.is_some());
    assert!(path.in_flight() <= path.bdp() / 2 + MSS);
    path.until_state(State::Cruise);
    let lasted = path.now.since(began);
    assert!((200..600).contains(&(lasted.as_nanos() / 1_000_000)), "{lasted:?}");
    path.until_state(State::ProbeRtt);
    let apart = path.now.since(began).as_secs_f64();
    assert!((5.0..6.5).contains(&apart), "{apart} s");
}

#[test]
fn a_round_trip_like_the_shortest_can_spare_the_probe_of_it() {
    let mut path = Path::with(Growth { renew_min_rtt: true, ..Growth::default() });
    path.run(Duration::from_secs(60));
    assert!(!path.states.contains(&State::ProbeRtt));
    let shortest = path.bbr.min_rtt.shortest;
    // A tenth more is like it, and does not replace it; a fifth more is not.
    path.rtt = Duration::from_millis(110);
    path.run(Duration::from_secs(20));
    assert!(!path.states.contains(&State::ProbeRtt));
    assert_eq!(path.bbr.min_rtt.shortest, shortest);
    path.rtt = Duration::from_millis(120);
    let began = path.now;
    path.until_state(State::ProbeRtt);
    let after = path.now.since(began).as_secs_f64();
    assert!((4.0..6.5).contains(&after), "{after} s");
    path.run(Duration::from_secs(10));
    assert!(path.bbr.min_rtt.shortest.is_some_and(|rtt| rtt >= Duration::from_millis(120)));
}

#[test]
fn on_a_long_path_the_queue_of_a_probe_drains_before_the_next_probe() {
    let growth = Growth { renew_min_rtt: true, ..Growth::default() };
    let mut path = Path { rtt: Duration::from_millis(600), ..Path::with(growth) };
    path.until_state(State::Refill);
    let (before, began) = (path.delivered, path.now);
    path.run(Duration::from_secs(60));
    assert!(!path.states.contains(&State::ProbeRtt));
    assert!(path.states.iter().filter(|state| **state == State::Up).count() > 4);
    let rate = (path.delivered - before) as f64 / path.now.since(began).as_secs_f64();
    assert!(rate > 0.99 * path.rate, "{rate}");
}

#[test]
fn where_others_fill_the_queue_it_probes_for_bandwidth_as_often() {
    let growth = Growth { renew_min_rtt: true, ..Growth::default() };
    let mut path = Path::with(growth);
    path.until_state(State::Up);
    path.rtt = Duration::from_millis(130);
    path.until_state(State::Down);
    let began = path.now;
    path.until_state(State::Refill);
    assert!(!path.states.contains(&State::ProbeRtt));
    assert!(path.now.since(began) < Duration::from_secs(3));
}

#[test]
fn a_pause_of_the_application_is_a_probe_of_the_round_trip() {
    let mut path = Path::new();
    path.until_state(State::Cruise);
    path.writes = Some(1e-6);
    path.written = path.sent as f64 - 1.0;
    path.run(Duration::from_secs(6));
    assert!(path.flying.is_empty());
    path.writes = None;
    path.until(|path| path.in_flight() > 0);
    assert!(path.bbr.idle_restart);
    path.run(Duration::from_secs(1));
    assert!(!path.states.contains(&State::ProbeRtt), "{:?}", path.states);
}

#[test]
fn aggregated_acknowledgments_widen_the_window_by_what_they_delay() {
    let batches = Some(Duration::from_millis(80));
    let mut path = Path { batches, ..Path::new() };
    path.until_state(State::Cruise);
    assert!(path.bbr.aggregation.extra() > 40 * MSS, "{:?}", path.bbr.aggregation);
    let bandwidth = path.bbr.max_bw.get();
    assert!((0.8..1.5).contains(&(bandwidth / path.rate)), "{bandwidth}");
    let (before, began) = (path.delivered, path.now);
    path.run(Duration::from_secs(4));
    let rate = (path.delivered - before) as f64 / path.now.since(began).as_secs_f64();
    assert!(rate > 0.9 * path.rate, "{rate}");
}

#[test]
fn losses_outside_of_probes_lower_the_bounds_and_the_next_probe_lifts_them() {
    let mut path = Path::new();
    path.until_state(State::Cruise);
    path.loses = Some(20);
    path.run(Duration::from_millis(600));
    assert!(path.bbr.short_term.bw < path.bbr.max_bw.get());
    assert!(path.bbr.short_term.inflight < u64::MAX);
    assert!(path.bbr.bw < path.bbr.max_bw.get());
    path.loses = None;
    path.until_state(State::Refill);
    assert_eq!(path.bbr.short_term.inflight, u64::MAX);
}

#[test]
fn with_a_threshold_of_its_own_only_losses_above_it_end_probes_and_lower_bounds() {
    let growth = Growth { loss_threshold: Some(0.2), ..Growth::default() };
    // One packet in ten is lost all the time, and one in three.
    for (loses, tolerated) in [(10, true), (3, false)] {
        let mut path = Path::with(growth);
        path.until_state(State::Cruise);
        path.loses = Some(loses);
        path.run(Duration::from_millis(600));
        let model = &path.bbr.short_term;
        assert_eq!((model.bw, model.inflight) == (f64::MAX, u64::MAX), tolerated, "{loses}");
        let mut path = Path::with(growth);
        path.until_state(State::Up);
        path.loses = Some(loses);
        path.until_state(State::Down);
        assert_eq!(path.bbr.inflight_longterm == u64::MAX, tolerated, "{loses}");
    }
}

#[test]
fn losses_that_a_path_has_by_chance_lower_no_bounds_if_there_is_no_queue() {
    // Of a hundred packets, two are the threshold, with a deviation of 1.4.
    for (loses, tolerant, rtt_ms, random) in [
        (30, true, 100, true),
        (30, true, 120, true),
        (30, true, 130, false),
        (30, false, 100, false),
        (10, true, 100, false),
    ] {
        let growth = Growth { tolerate_random_loss: tolerant, ..Growth::default() };
        let mut path = Path::with(growth);
        path.until_state(State::Cruise);
        path.rtt = Duration::from_millis(rtt_ms);
        path.run(Duration::from_millis(200));
        path.loses = Some(loses);
        path.run(Duration::from_millis(600));
        let model = &path.bbr.short_term;
        let is_unbound = (model.bw, model.inflight) == (f64::MAX, u64::MAX);
        assert_eq!(is_unbound, random, "1 of {loses}, {rtt_ms} ms");
    }
}

#[test]
fn losses_that_a_path_has_by_chance_end_no_probe_if_there_is_no_queue() {
    let growth = Growth { tolerate_random_loss: true, ..Growth::default() };
    for (lost, rtt_ms, random) in [(4, 126, true), (4, 127, false), (5, 126, false)] {
        let mut path = Path::with(growth);
        path.until_state(State::Up);
        path.bbr.min_rtt.latest = Some(Duration::from_millis(rtt_ms));
        assert_eq!(path.bbr.is_too_high(lost * MSS, 100 * MSS), !random, "{lost}, {rtt_ms} ms");
        assert!(!path.bbr.is_too_high(2 * MSS, 100 * MSS));
    }
}

#[test]
fn losses_that_were_none_give_the_state_back() {
    let mut path = Path::new();
    path.until_state(State::Up);
    let before = (path.bbr.window(), path.bbr.inflight_longterm);
    path.loses = Some(10);
    path.until_state(State::Down);
    let state = path.bbr.clone();
    path.bbr.on_undo(state);
    assert_eq!(path.bbr.state, State::Refill);
    assert!(path.bbr.window() >= before.0 && path.bbr.inflight_longterm >= before.1);
}

#[test]
fn losses_since_a_packet_was_sent_are_found_by_what_had_been_delivered() {
    let mut lost = LostBefore::default();
    lost.add(100, 1);
    lost.add(100, 2);
    lost.add(300, 4);
    assert_eq!([0, 99, 100, 299, 300].map(|delivered| lost.since(delivered)), [7, 7, 4, 4, 0]);
    lost.forget_until(100);
    assert_eq!(lost.since(100), 4);
}

proptest! {
    /// On any path, the window stays within its bounds, and all states come to an end.
    #[test]
    fn on_any_path_the_window_keeps_its_bounds(
        rate in 1e3_f64..3e6,
        rtt_ms in 1_u64..1000,
        loses in prop::option::of(2_u64..300),
        writes in prop::option::of(1e3_f64..1e7),
        batch_ms in prop::option::of(1_u64..200),
        [renew_min_rtt, tolerate_random_loss] in any::<[bool; 2]>(),
        changes in prop::collection::vec((0.1_f64..5.0, prop::option::of(2_u64..300)), 1..6),
    ) {
        let mut path = Path {
            rate,
            rtt: Duration::from_millis(rtt_ms),
            loses,
            writes,
            batches: batch_ms.map(Duration::from_millis),
            ..Path::with(Growth { renew_min_rtt, tolerate_random_loss, ..Growth::default() })
        };
        for (factor, loses) in changes {
            for _ in 0..2000 {
                path.step();
                prop_assert!(path.bbr.window() >= LEAST_WINDOW * MSS);
                prop_assert!(path.bbr.window() <= LARGEST_WINDOW as u64);
                prop_assert!(path.bbr.pacing_rate.is_finite());
            }
            path.rate = (path.rate * factor).clamp(1e3, 3e6);
            path.loses = loses;
            let text = serde_json::to_string(&path.bbr)?;
            prop_assert_eq!(&serde_json::from_str::<Bbr>(&text)?, &path.bbr);
        }
    }
}
