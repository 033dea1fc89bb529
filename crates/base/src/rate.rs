//! Transmission rates.

use crate::Duration;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A transmission rate in bits per second, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Rate(u64);

impl Rate {
    /// One bit per second.
    pub const MIN: Rate = Rate(1);

    /// A rate of `bits` bits per second; `None` for zero.
    #[must_use]
    pub const fn from_bps(bits: u64) -> Option<Rate> {
        if bits == 0 { None } else { Some(Rate(bits)) }
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// How long `bytes` take to transmit, rounded down to a nanosecond.
    #[must_use]
    #[inline]
    pub const fn time_for(self, bytes: u64) -> Duration {
        const NANO_BITS: u64 = 8 * 1_000_000_000;
        match bytes.checked_mul(NANO_BITS) {
            Some(product) => Duration::from_nanos(product / self.0),
            None => {
                let nanos = bytes as u128 * NANO_BITS as u128 / self.0 as u128;
                let longest = Duration::MAX.as_nanos();
                Duration::from_nanos(if nanos > longest as u128 { longest } else { nanos as u64 })
            }
        }
    }
}

impl From<Rate> for u64 {
    fn from(rate: Rate) -> u64 {
        rate.0
    }
}

impl TryFrom<u64> for Rate {
    type Error = &'static str;

    fn try_from(bits: u64) -> Result<Rate, &'static str> {
        Rate::from_bps(bits).ok_or("expected a rate of 1 bit/s or more, found 0")
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_576_byte_packet_takes_46_08_microseconds_at_100_megabit() {
        let rate = Rate::from_bps(100_000_000).unwrap();
        assert_eq!(rate.time_for(576), Duration::from_nanos(46_080));
    }

    #[test]
    fn huge_sizes_do_not_overflow() {
        let rate = Rate::from_bps(8).unwrap();
        assert_eq!(rate.time_for(4_000_000_000), Duration::from_secs(4_000_000_000));
        assert_eq!(rate.time_for(u64::MAX), Duration::MAX);
    }
}
