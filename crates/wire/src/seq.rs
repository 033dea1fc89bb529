//! Sequence numbers modulo 2^32.

use core::fmt;
use core::ops::{Add, Sub};
use serde::{Deserialize, Serialize};

/// A TCP sequence number (RFC 9293 §3.4), compared modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// How far `self` lies beyond `other`: negative if before it, within ±2^31.
    #[must_use]
    pub const fn beyond(self, other: SeqNumber) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

impl Add<u32> for SeqNumber {
    type Output = SeqNumber;
    fn add(self, octets: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_add(octets))
    }
}

impl Sub for SeqNumber {
    type Output = u32;
    fn sub(self, other: SeqNumber) -> u32 {
        self.0.wrapping_sub(other.0)
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_survives_the_wrap() {
        let before = SeqNumber(u32::MAX);
        assert_eq!((before + 2).beyond(before), 2);
        assert_eq!(before.beyond(before + 2), -2);
    }
}
