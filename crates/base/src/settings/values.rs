//! Quantities of settings: numbers, or texts with units.

use super::{Kind, Setting};
use crate::Duration;
use crate::units::Size;
use core::fmt;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A number of bytes, at least 1: `1500` or `"64 KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// The largest number: far beyond what a connection carries in its life.
    pub const LARGEST: u64 = 1 << 60;
}

/// A duration above 0: `"30 ms"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl Setting for Bytes {
    const KIND: Kind = Kind::Bytes;
}

impl Setting for Span {
    const KIND: Kind = Kind::Duration;
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        from.deserialize_any(TextOrNumber)
    }
}

struct TextOrNumber;

impl Visitor<'_> for TextOrNumber {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("at least 1 byte and at most 1 EiB, such as 1500 or \"64 KiB\"")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Bytes, E> {
        match bytes {
            1..=Bytes::LARGEST => Ok(Bytes(bytes)),
            _ => Err(E::custom(format_args!("expected {}", &self as &dyn de::Expected))),
        }
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Bytes, E> {
        self.visit_u64(bytes.try_into().unwrap_or(0))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
        match text.parse() {
            Ok(Size::Bytes(bytes)) => self.visit_u64(bytes),
            _ => self.visit_u64(0),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
        from.deserialize_any(Text)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more than 0 s, in quotes, such as \"30 ms\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        match text.parse() {
            Ok(span) if span > Duration::ZERO => Ok(Span(span)),
            _ => Err(E::custom(format_args!("expected {}", &self as &dyn de::Expected))),
        }
    }
}

/// Written in the largest unit in which it is a whole number.
impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for Span {
    /// In the largest unit of which it is a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)];
        let whole = units.into_iter().find(|(_, unit)| nanos.is_multiple_of(*unit));
        let (unit, size) = whole.unwrap_or(("ns", 1));
        write!(f, "{} {unit}", nanos / size)
    }
}
