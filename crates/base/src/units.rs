//! Human units at the edges: `"1.5 Mbit/s"`, `"320 ms"`, `"64 KiB"`, `"50 packets"`.

use crate::{Duration, Rate};
use core::str::FromStr;
use thiserror::Error;

/// A quantity that could not be read: what was written and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{written}` is no {quantity}: {}expected {expected}",
    if self.negative { "it is negative, " } else { "" }
)]
pub struct UnitError {
    written: String,
    negative: bool,
    quantity: &'static str,
    expected: &'static str,
}

impl UnitError {
    fn new(written: &str, quantity: &'static str, expected: &'static str) -> UnitError {
        let negative = written.trim_start().starts_with('-');
        UnitError { written: written.to_owned(), negative, quantity, expected }
    }

    /// Whether what was written begins with a minus sign.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }
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

/// The bytes of the number that `text` begins with: `1.5`, `1_000`, `1e6`, `2.5e-3`.
fn number_len(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mantissa = text.bytes().take_while(|c| matches!(c, b'0'..=b'9' | b'.' | b'_')).count();
    let rest = &text[mantissa..];
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return mantissa };
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    match digits(unsigned) {
        0 => mantissa,
        digits => mantissa + rest.len() - unsigned.len() + digits,
    }
}

/// The number and the unit of `text`, as a whole multiple of the table's base unit.
fn quantity(text: &str, table: &[(&str, f64)]) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(number_len(text));
    let number: f64 = number.replace('_', "").parse().ok()?;
    let unit = unit.trim_start();
    let factor = table.iter().find(|(name, _)| *name == unit)?.1;
    let value = (number * factor).round();
    // Beyond 2^63 a float is not exact.
    (0.0..9.2e18).contains(&value).then_some(value as u64)
}

impl FromStr for Duration {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Duration, UnitError> {
        quantity(text, DURATIONS).map(Duration::from_nanos).ok_or_else(|| {
            let expected = "a number and ns, us, ms, s, min or h, such as \"320 ms\"";
            UnitError::new(text, "duration", expected)
        })
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Rate, UnitError> {
        quantity(text, RATES).and_then(Rate::from_bps).ok_or_else(|| {
            let expected =
                "a number above 0 and bit/s, kbit/s, Mbit/s or Gbit/s, such as \"1.5 Mbit/s\"";
            UnitError::new(text, "rate", expected)
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
            .ok_or_else(|| {
                let expected = "a number and B, kB, MB, GB, KiB, MiB, GiB, packets or segments, \
                                such as \"64 KiB\"";
                UnitError::new(text, "size", expected)
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
    fn numbers_may_have_an_exponent() {
        assert_eq!("1e6 s".parse(), Ok(Duration::from_secs(1_000_000)));
        assert_eq!("2.5e-3s".parse(), Ok(Duration::from_micros(2_500)));
        assert_eq!("1E+3 kbit/s".parse(), Ok(Rate::from_bps(1_000_000).unwrap()));
        assert_eq!("1e3 B".parse(), Ok(Size::Bytes(1_000)));
        for text in ["1e s", "1e+ s", "e3 s", "1e3", "1e3.5 s", "1e400 s"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_negative_is_said_to_be_so() {
        let said = |error: UnitError| error.to_string();
        assert!(
            said("-100 ms".parse::<Duration>().unwrap_err()).contains("it is negative, expected")
        );
        assert!(said("-1 Mbit/s".parse::<Rate>().unwrap_err()).contains("it is negative"));
        assert!(said(" -1 kB".parse::<Size>().unwrap_err()).contains("it is negative"));
        assert!(!said("0 bit/s".parse::<Rate>().unwrap_err()).contains("negative"));
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
