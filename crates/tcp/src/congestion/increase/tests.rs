use super::*;
use crate::congestion::{FlightSample, RateSample};
use base::{Duration, Time};

/// An acknowledgment of a segment, with a smoothed round trip.
fn ack(srtt: Option<Duration>) -> AckSample {
    AckSample {
        now: Time::ZERO,
        acked: 1000,
        limited_transmit: 0,
        delivered: 1000,
        rate: RateSample::default(),
        flight: FlightSample::default(),
        rtt: srtt,
        srtt,
        window_limited: true,
        after_timeout: false,
        mss: 1000,
        marks: crate::congestion::CeMarks::default(),
    }
}

/// What an acknowledgment adds to a window after such a round trip.
fn step(increase: impl Into<TextOrNumber>, window: f64, rtt_ms: u64) -> f64 {
    let mut increase = increase.into().0;
    increase.per_ack(window, &ack(Some(Duration::from_millis(rtt_ms))))
}

/// As in a scenario file, but in JSON: a name, or a table.
struct TextOrNumber(Increase);

impl From<&str> for TextOrNumber {
    fn from(text: &str) -> TextOrNumber {
        let named = Increase::ALL.iter().find(|(name, _)| *name == text);
        TextOrNumber(named.map_or_else(|| serde_json::from_str(text).unwrap(), |(_, one)| *one))
    }
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9 * expected.abs().max(1.0)
}

/// The contract that every increase function keeps.
#[test]
fn growth_is_finite_and_never_negative() {
    for (name, increase) in Increase::ALL {
        for window in [1.0, 1.5, 2.0, 20.0, 1e3, 1e6] {
            for srtt in [None, Some(1), Some(10_000_000), Some(640_000_000), Some(10_000_000_000)] {
                let srtt = srtt.map(Duration::from_nanos);
                let step = { *increase }.per_ack(window, &ack(srtt));
                assert!(step.is_finite() && step >= 0.0, "{name}: {step} at {window}, {srtt:?}");
            }
        }
    }
}

#[test]
fn what_is_written_is_read_as_it_was() {
    for (_, increase) in Increase::ALL {
        let text = serde_json::to_string(increase).unwrap();
        assert_eq!(serde_json::from_str::<Increase>(&text).unwrap(), *increase, "{text}");
    }
    for text in [
        r#"{"policy":"canit","nit":"30 ms","rtt":"propagation","cap":1.5}"#,
        r#"{"policy":"canit","nit":"1500 us","rtt":"200 ms","cap":"off"}"#,
        r#"{"policy":"constant-rate","c":100.0,"rtt":"smoothed","cap":"off"}"#,
    ] {
        let increase: Increase = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&increase).unwrap(), text);
    }
}

#[test]
fn without_a_round_trip_growth_is_the_standards() {
    for name in ["standard", "constant-rate", "canit"] {
        let mut increase = TextOrNumber::from(name).0;
        assert!(close(increase.per_ack(8.0, &ack(None)), 1.0 / 8.0), "{name}");
    }
}

#[test]
fn increase_by_k_adds_k_segments_per_window_and_one_per_ack_at_most() {
    assert!(close(step("increase-by-k", 20.0, 500), 4.0 / 20.0));
    assert!(close(step("increase-by-k", 3.0, 500), 1.0));
    assert!(close(step(r#"{"policy": "increase-by-k", "k": 2}"#, 20.0, 500), 2.0 / 20.0));
}

#[test]
fn constant_rate_adds_the_square_of_the_round_trip() {
    assert!(close(step("constant-rate", 5.0, 1000), 10.0 / 5.0));
    assert!(close(step("constant-rate", 5.0, 200), 0.4 / 5.0));
    assert!(close(step(r#"{"policy": "constant-rate", "c": 100}"#, 5.0, 200), 4.0 / 5.0));
}

#[test]
fn canit_adds_a_segment_per_interval() {
    assert!(close(step("canit", 5.0, 600), 20.0 / 5.0));
    assert!(close(step("canit", 5.0, 30), 1.0 / 5.0));
    assert!(close(step(r#"{"policy": "canit", "nit": "60 ms"}"#, 5.0, 600), 10.0 / 5.0));
}

#[test]
fn constant_rate_is_the_gentler_of_the_two_below_a_round_trip_of_3333_ms() {
    for (rtt, gentler) in [(100, true), (1000, true), (3300, true), (3400, false)] {
        let gentle = step("constant-rate", 10.0, rtt) < step("canit", 10.0, rtt);
        assert_eq!(gentle, gentler, "{rtt} ms");
    }
}

#[test]
fn a_cap_limits_what_an_acknowledgment_adds() {
    let capped = r#"{"policy": "canit", "cap": 1}"#;
    assert!(close(step(capped, 5.0, 600), 1.0));
    assert!(close(step(capped, 50.0, 600), 20.0 / 50.0));
    assert!(close(step(r#"{"policy": "constant-rate", "cap": 0.5}"#, 5.0, 1000), 0.5));
}

#[test]
fn the_round_trip_can_be_given() {
    let given = r#"{"policy": "canit", "rtt": "90 ms"}"#;
    assert!(close(step(given, 5.0, 600), 3.0 / 5.0));
    let mut path = TextOrNumber::from(r#"{"policy": "canit", "rtt": "propagation"}"#).0;
    assert!(close(step(r#"{"policy": "canit", "rtt": "propagation"}"#, 5.0, 600), 20.0 / 5.0));
    *path.round_trip().unwrap() = RoundTrip::Given(Duration::from_millis(90));
    assert!(close(path.per_ack(5.0, &ack(Some(Duration::from_millis(600)))), 3.0 / 5.0));
    assert_eq!(TextOrNumber::from("increase-by-k").0.round_trip(), None);
}
