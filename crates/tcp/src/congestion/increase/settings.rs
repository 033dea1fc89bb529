//! Settings of increase functions and their text form.

use base::Duration;
use base::settings::{Kind, Setting, Span};
use core::fmt;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The round-trip time that a function uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundTrip {
    /// The smoothed one, which includes queueing delay: `"smoothed"`.
    #[default]
    Smoothed,
    /// The round-trip propagation delay of the path: `"propagation"`. A caller that knows it
    /// replaces it by [`RoundTrip::Given`]; otherwise the smoothed one is used.
    Propagation,
    /// A fixed one: `"200 ms"`.
    Given(Duration),
}

impl RoundTrip {
    /// Seconds, once there is one.
    #[inline]
    pub(super) fn seconds(self, smoothed: Option<Duration>) -> Option<f64> {
        match self {
            RoundTrip::Smoothed | RoundTrip::Propagation => smoothed,
            RoundTrip::Given(given) => Some(given),
        }
        .map(Duration::as_secs_f64)
    }
}

/// The largest increase per acknowledgment, segments: a number, or `"off"`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cap(pub Option<f64>);

impl Cap {
    /// Limits an increase.
    #[inline]
    pub(super) fn limit(self, segments: f64) -> f64 {
        self.0.map_or(segments, |cap| segments.min(cap))
    }
}

impl Setting for RoundTrip {
    const KIND: Kind =
        Kind::Either(&[Kind::Words(|| &["smoothed", "propagation"]), Kind::Duration]);
}

impl Setting for Cap {
    const KIND: Kind = Kind::Either(&[Kind::Words(|| &["off"]), Kind::Positive]);
}

/// With larger numbers a window may exceed the range of floats.
const LARGEST: f64 = 1e6;

fn above_zero(number: f64) -> Option<f64> {
    (number > 0.0 && number <= LARGEST).then_some(number)
}

/// A number above 0.
pub(super) fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let expected = "a number above 0 and at most 1e6";
    from.deserialize_any(TextOrNumber { expected, text: |_| None, number: above_zero })
}

impl<'de> Deserialize<'de> for RoundTrip {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RoundTrip, D::Error> {
        let text = |text: &str| match text {
            "smoothed" => Some(RoundTrip::Smoothed),
            "propagation" => Some(RoundTrip::Propagation),
            text => text.parse().ok().map(RoundTrip::Given),
        };
        let expected = "\"smoothed\", \"propagation\" or a duration, such as \"200 ms\"";
        from.deserialize_any(TextOrNumber { expected, text, number: |_| None })
    }
}

impl Serialize for RoundTrip {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            RoundTrip::Smoothed => to.serialize_str("smoothed"),
            RoundTrip::Propagation => to.serialize_str("propagation"),
            RoundTrip::Given(given) => Span(*given).serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Cap {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Cap, D::Error> {
        let text = |text: &str| (text == "off").then_some(Cap(None));
        let number = |number| above_zero(number).map(|cap| Cap(Some(cap)));
        let expected = "\"off\" or a number of segments, above 0 and at most 1e6";
        from.deserialize_any(TextOrNumber { expected, text, number })
    }
}

impl Serialize for Cap {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(cap) => to.serialize_f64(cap),
            None => to.serialize_str("off"),
        }
    }
}

/// A setting written as a text or a number.
struct TextOrNumber<T> {
    expected: &'static str,
    text: fn(&str) -> Option<T>,
    number: fn(f64) -> Option<T>,
}

impl<T> TextOrNumber<T> {
    fn or_else<E: de::Error>(&self, value: Option<T>) -> Result<T, E> {
        value.ok_or_else(|| E::custom(format_args!("expected {}", self.expected)))
    }
}

impl<T> Visitor<'_> for TextOrNumber<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        self.or_else((self.text)(text))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        self.or_else((self.number)(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_f64(number as f64)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_f64(number as f64)
    }
}
