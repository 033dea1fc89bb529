use super::super::Increase;
use super::*;
use crate::congestion::{FlightSample, RateSample};
use proptest::prelude::*;

const MSS: u32 = 1000;

/// A connection with `auto`, and its acknowledgments.
struct Acks {
    auto: Auto,
    now: Time,
    /// Segments.
    window: f64,
    srtt: Duration,
}

impl Acks {
    fn new(window: f64, srtt_ms: u64) -> Acks {
        let srtt = Duration::from_millis(srtt_ms);
        Acks { auto: Auto::DEFAULT, now: Time::ZERO, window, srtt }
    }

    /// After so long an acknowledgment of so many octets arrives: what it adds in a round trip.
    fn after(&mut self, gap: Duration, acked: u64, after_timeout: bool) -> f64 {
        self.now += gap;
        let ack = AckSample {
            now: self.now,
            acked,
            limited_transmit: 0,
            delivered: acked,
            rate: RateSample::default(),
            flight: FlightSample::default(),
            rtt: Some(self.srtt),
            srtt: Some(self.srtt),
            window_limited: true,
            after_timeout,
            mss: MSS,
            marks: crate::congestion::CeMarks::default(),
        };
        self.auto.per_ack(self.window, &ack) * self.window
    }

    /// Some round trips, in each of which the window arrives in trains of so many segments as fast as
    /// a link of `rate` segments a second lets them out: what the last acknowledgment adds.
    fn rounds(&mut self, rounds: u32, train: u32, rate: f64) -> f64 {
        let gap = spacing(rate);
        let trains = self.window as u32 / train;
        let between = self.srtt / u64::from(trains) - gap * u64::from(train - 1);
        let mut added = 0.0;
        for _ in 0..rounds * trains {
            self.after(between, u64::from(MSS), false);
            for _ in 1..train {
                added = self.after(gap, u64::from(MSS), false);
            }
        }
        added
    }

    /// What CANIT adds.
    fn canit(&self) -> f64 {
        self.srtt.as_secs_f64() / 0.03
    }
}

/// Of segments at so many a second.
fn spacing(rate: f64) -> Duration {
    Duration::from_nanos((1e9 / rate) as u64)
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 0.01 * expected
}

#[test]
fn as_long_as_the_narrowest_link_is_unknown_growth_is_the_standards() {
    let mut acks = Acks::new(20.0, 300);
    assert!(close(acks.after(Duration::from_secs(1), 1000, false), 1.0));
    assert!(close(acks.after(Duration::from_millis(1), 1000, false), 1.0));
}

#[test]
fn on_a_fast_link_that_others_share_growth_is_the_other_functions() {
    // 630 segments a second, of which this connection has a fifth.
    let mut acks = Acks::new(39.0, 300);
    let added = acks.rounds(3, 3, 630.0);
    assert!(close(added, acks.canit()), "{added}");
}

#[test]
fn alone_on_a_slow_link_growth_is_the_standards_before_the_link_is_full() {
    // 56 kb/s, packets of 296 bytes, a round trip of 260 ms: it holds six.
    for window in 2..=6 {
        let mut acks = Acks::new(f64::from(window), 260);
        let added = acks.rounds(5, window, 23.65);
        assert!(close(added, 1.0), "{window}: {added}");
    }
}

#[test]
fn alone_on_a_full_link_growth_is_the_standards_however_fast_the_link_is() {
    for rate in [4.0_f64, 23.65, 630.0, 10_000.0] {
        for queued in [1.0, 1.5] {
            // A longer queue is a longer round trip at the same rate.
            let window = (rate * 0.3 * queued).max(2.0).floor();
            let mut acks = Acks::new(window, (1000.0 * window / rate) as u64);
            let gap = spacing(rate);
            let added = (0..5 * window as u32).fold(0.0, |_, _| acks.after(gap, 1000, false));
            assert!(close(added, 1.0), "{rate}, {queued}: {added}");
        }
    }
}

#[test]
fn a_round_trip_takes_no_more_than_a_quarter_of_the_room() {
    // 60 segments in a round trip: 36 more than the window.
    let mut acks = Acks::new(24.0, 300);
    let added = acks.rounds(3, 3, 200.0);
    assert!(close(added, 9.0), "{added}");
    assert!(added < acks.canit());
}

#[test]
fn with_delayed_acknowledgments_one_gap_makes_a_train() {
    let mut acks = Acks::new(40.0, 300);
    for _ in 0..30 {
        acks.after(Duration::from_millis(27), 2000, false);
        let added = acks.after(Duration::from_millis(3), 2000, false);
        assert!(acks.now < Time::ZERO + Duration::from_millis(600) || close(added, acks.canit()));
    }
}

#[test]
fn two_acknowledgments_that_were_brought_together_do_not_make_a_link_fast() {
    let mut acks = Acks::new(6.0, 260);
    let added = (0..60).fold(0.0, |_, _| {
        acks.after(Duration::from_millis(84), 1000, false);
        acks.after(Duration::from_micros(1), 1000, false)
    });
    assert!(close(added, 1.0), "{added}");
}

#[test]
fn an_acknowledgment_that_closes_a_gap_or_follows_a_timeout_gives_no_estimate() {
    for (acked, after_timeout) in [(5000, false), (1000, true)] {
        let mut acks = Acks::new(6.0, 260);
        acks.rounds(5, 6, 23.65);
        let Bottleneck { rate: known, fastest, .. } = acks.auto.bottleneck;
        for _ in 0..20 {
            acks.after(Duration::from_millis(1), acked, after_timeout);
        }
        assert!(acks.auto.bottleneck.fastest <= fastest);
        assert!(close(acks.auto.bottleneck.rate.unwrap(), known.unwrap()));
    }
}

#[test]
fn another_path_is_another_link() {
    let mut acks = Acks::new(39.0, 300);
    acks.rounds(3, 3, 630.0);
    acks.auto.reset();
    assert_eq!(acks.auto, Auto::DEFAULT);
}

#[test]
fn the_other_function_is_a_name_or_a_table() {
    let read = |fast: &str| {
        let text = format!("{{\"policy\": \"auto\", \"fast\": {fast}}}");
        serde_json::from_str::<Increase>(&text).map_err(|error| error.to_string())
    };
    let auto = |fast| Ok(Increase::Auto(Auto::new(fast)));
    assert_eq!(read("\"canit\""), auto(Fast::Canit(Canit::DEFAULT)));
    let c = ConstantRate { c: 50.0, ..ConstantRate::DEFAULT };
    assert_eq!(read("{\"policy\": \"constant-rate\", \"c\": 50}"), auto(Fast::ConstantRate(c)));
    let wrong = read("\"standard\"").unwrap_err();
    let expected = "expected \"increase-by-k\", \"constant-rate\", \"canit\", or { policy = one";
    assert!(wrong.starts_with(expected), "{wrong}");
}

proptest! {
    /// Whatever arrives when, growth lies between the standard's and the other function's.
    #[test]
    fn growth_is_between_the_standards_and_the_other_functions(
        fast in prop::sample::select(Fast::ALL),
        arrivals in prop::collection::vec(
            (0_u64..2_000_000_000, 1_u64..5000, any::<bool>(), 1_u64..3000, 1.0_f64..1e4),
            1..200,
        ),
    ) {
        let mut acks = Acks::new(1.0, 1);
        acks.auto = Auto::new(fast.1);
        for (gap, acked, after_timeout, srtt, window) in arrivals {
            (acks.window, acks.srtt) = (window, Duration::from_millis(srtt));
            let added = acks.after(Duration::from_nanos(gap), acked, after_timeout);
            let most = match fast.1 {
                Fast::IncreaseByK(f) => f.k.min(window),
                Fast::ConstantRate(f) => f.c * (srtt * srtt) as f64 / 1e6,
                Fast::Canit(f) => srtt as f64 / 1e3 / f.nit.0.as_secs_f64(),
            };
            let slack = 1e-9 * most.max(1.0);
            prop_assert!(added >= most.min(1.0) - slack, "{added} {most}");
            prop_assert!(added <= most.max(1.0) + slack, "{added} {most}");
        }
    }
}
