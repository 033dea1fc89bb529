//! Human units at the edges: `"1.5 Mbit/s"`, `"320 ms"`, `"64 KiB"`, `"50 packets"`.

use crate::{Duration, Rate};
use core::str::FromStr;
use thiserror::Error;

/// A quantity that could not be read: what was written and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{written}` is no {quantity}: expected {expected}")]
pub struct UnitError {
    written: String,
    quantity: &'static str,
    expected: &'static str,
}

/// A size in bytes, packets or segments, whichever was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number of bytes.
    Bytes(u64),
    /// A number of packets.
    Packets(u64),
    /// A number of full-sized segments.
    Segments(u64),
}

/// The units of durations, in nanoseconds.
pub const DURATIONS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
/// The units of rates, in bits per second.
pub const RATES: &[(&str, f64)] =
    &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("bps", 1.0)];
/// The units of sizes, in bytes.
pub const BYTES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("bytes", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1024.0 * 1024.0),
    ("GiB", 1024.0 * 1024.0 * 1024.0),
];
/// The unit of sizes in packets.
pub const PACKETS: &[(&str, f64)] = &[("packets", 1.0), ("packet", 1.0)];
/// The unit of sizes in full-sized segments.
pub const SEGMENTS: &[(&str, f64)] = &[("segments", 1.0), ("segment", 1.0)];

/// The number and the unit of `text`, as a whole multiple of the table's base unit.
fn quantity(text: &str, table: &[(&str, f64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '_'))?;
    let number: f64 = text[..split].replace('_', "").parse().ok()?;
    let unit = text[split..].trim_start();
    let factor = table.iter().find(|(name, _)| *name == unit)?.1;
    let value = (number * factor).round();
    // Beyond 2^63 a float is not exact.
    (0.0..9.2e18).contains(&value).then_some(value as u64)
}

impl FromStr for Duration {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Duration, UnitError> {
        quantity(text, DURATIONS).map(Duration::from_nanos).ok_or_else(|| UnitError {
            written: text.to_owned(),
            quantity: "duration",
            expected: "a number and ns, us, ms, s, min or h, such as \"320 ms\"",
        })
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Rate, UnitError> {
        quantity(text, RATES).and_then(Rate::from_bps).ok_or_else(|| UnitError {
            written: text.to_owned(),
            quantity: "rate",
            expected: "a number above 0 and bit/s, kbit/s, Mbit/s or Gbit/s, such as \"1.5 Mbit/s\"",
        })
    }
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Size, UnitError> {
        quantity(text, BYTES)
            .map(Size::Bytes)
            .or_else(|| quantity(text, PACKETS).map(Size::Packets))
            .or_else(|| quantity(text, SEGMENTS).map(Size::Segments))
            .ok_or_else(|| UnitError {
                written: text.to_owned(),
                quantity: "size",
                expected: "a number and B, kB, MB, GB, KiB, MiB, GiB, packets or segments, \
                           such as \"64 KiB\"",
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_people_write_are_read() {
        assert_eq!("320 ms".parse(), Ok(Duration::from_millis(320)));
        assert_eq!("120s".parse(), Ok(Duration::from_secs(120)));
        assert_eq!("1.5 Mbit/s".parse(), Ok(Rate::from_bps(1_500_000).unwrap()));
        assert_eq!("9.6 kbit/s".parse(), Ok(Rate::from_bps(9_600).unwrap()));
        assert_eq!("64 KiB".parse(), Ok(Size::Bytes(65_536)));
        assert_eq!("50 packets".parse(), Ok(Size::Packets(50)));
        assert_eq!("20 segments".parse(), Ok(Size::Segments(20)));
    }

    #[test]
    fn nonsense_says_what_was_expected() {
        for text in ["", "12", "ms", "-3 ms", "1e30 s", "3 parsec", "nan s"] {
            let error = text.parse::<Duration>().unwrap_err().to_string();
            assert!(error.contains("such as \"320 ms\""), "{error}");
        }
        assert!("0 Mbit/s".parse::<Rate>().is_err());
        assert!("99999999999999999999 GB".parse::<Size>().is_err());
    }
}
