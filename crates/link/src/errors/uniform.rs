//! Independent errors.

use super::{Model, Process, Transmission};
use crate::Fate;
use base::Random;

/// Bit errors and packet losses, each on its own and at any time alike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Uniform {
    /// The probability that a bit is wrong, each bit on its own. A packet with more wrong bytes than
    /// its own code corrects, without one with any, arrives corrupted.
    pub bit: f64,
    /// The probability that a packet is lost, each packet on its own.
    pub packet: f64,
}

/// Distances to the next error: in bytes for bit errors, in packets for losses.
#[derive(Clone, Debug)]
pub(super) struct Distances {
    byte_error: f64,
    packet_loss: f64,
    /// Good bytes before the next bad one.
    good_bytes: u64,
    /// Packets before the next that is lost.
    good_packets: u64,
}

impl Model for Uniform {
    type Process = Distances;

    fn start(&self, random: &mut Random) -> Distances {
        // 1 - (1 - bit)^8, without losing small probabilities to rounding.
        let byte_error = -libm::expm1(8.0 * libm::log1p(-self.bit));
        Distances {
            byte_error,
            packet_loss: self.packet,
            good_bytes: random.geometric(byte_error),
            good_packets: random.geometric(self.packet),
        }
    }
}

impl Distances {
    /// The fate of a packet that has a wrong byte.
    fn correct(&mut self, packet: Transmission, random: &mut Random) -> Fate {
        // Bytes of the packet behind the last that is known to be wrong.
        let mut left = u64::from(packet.len);
        for _ in 0..=packet.corrects {
            if self.good_bytes >= left {
                self.good_bytes -= left;
                return Fate::Corrected { marked: false };
            }
            left -= self.good_bytes + 1;
            self.good_bytes = random.geometric(self.byte_error);
        }
        // Errors are independent: behind the packet's last byte the process starts afresh.
        Fate::Corrupted
    }
}

impl Process for Distances {
    #[inline]
    fn next(&mut self, packet: Transmission, random: &mut Random) -> Fate {
        if self.good_packets == 0 {
            self.good_packets = random.geometric(self.packet_loss);
            return Fate::Lost;
        }
        self.good_packets -= 1;
        let len = u64::from(packet.len);
        if self.good_bytes >= len {
            self.good_bytes -= len;
            return Fate::Intact;
        }
        self.correct(packet, random)
    }

    #[inline]
    fn clear(&self, len: u32) -> u64 {
        let between_bytes = self.good_bytes.checked_div(u64::from(len)).unwrap_or(u64::MAX);
        self.good_packets.min(between_bytes)
    }

    #[inline]
    fn skip(&mut self, packets: u64, len: u32) {
        self.good_packets -= packets;
        self.good_bytes -= packets * u64::from(len);
    }
}
