//! What goes wrong on the way.

use crate::Fate;
use base::Random;

/// Errors of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorModel {
    /// The probability that a bit is wrong, each bit on its own. A packet with a wrong bit arrives
    /// corrupted.
    pub bit: f64,
    /// The probability that a packet vanishes, each packet on its own.
    pub packet: f64,
}

/// The error process of one direction.
///
/// Instead of a random number per packet it draws the distance to the next error: in bytes for
/// bit errors, in packets for losses.
#[derive(Clone, Debug)]
pub struct Errors {
    byte_error: f64,
    packet_loss: f64,
    /// Nothing ever goes wrong.
    never: bool,
    /// Good bytes before the next bad one.
    good_bytes: u64,
    /// Packets before the next that vanishes.
    good_packets: u64,
    random: Random,
}

impl Errors {
    /// The process with its own stream of randomness.
    #[must_use]
    pub fn new(model: ErrorModel, mut random: Random) -> Errors {
        // 1 - (1 - bit)^8, without losing small probabilities to rounding.
        let byte_error = -libm::expm1(8.0 * libm::log1p(-model.bit));
        Errors {
            byte_error,
            packet_loss: model.packet,
            never: model == ErrorModel::default(),
            good_bytes: random.geometric(byte_error),
            good_packets: random.geometric(model.packet),
            random,
        }
    }

    /// Whether nothing ever goes wrong.
    #[inline]
    pub(crate) fn never(&self) -> bool {
        self.never
    }

    /// The fate of the next packet, of `len` bytes.
    #[inline]
    pub fn next(&mut self, len: u32) -> Fate {
        if self.never {
            return Fate::Intact;
        }
        if self.good_packets == 0 {
            self.good_packets = self.random.geometric(self.packet_loss);
            return Fate::Lost;
        }
        self.good_packets -= 1;
        let len = u64::from(len);
        if self.good_bytes >= len {
            self.good_bytes -= len;
            return Fate::Intact;
        }
        // Errors are independent: behind the packet's last byte the process starts afresh.
        self.good_bytes = self.random.geometric(self.byte_error);
        Fate::Corrupted
    }
}
