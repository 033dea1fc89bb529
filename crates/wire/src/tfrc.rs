//! TFRC's data and feedback packets (RFC 5348 §3.2), in UDP.

use crate::checksum::Tail;
use crate::ip::u32_at;
use crate::{EmitError, Header, Probability, Udp};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// A UDP datagram of TCP-Friendly Rate Control (TFRC).
///
/// The sender's port is [`Tfrc::PORT`]. A datagram from or to that port is one of TFRC if it parses as a
/// message of [`Tfrc::VERSION`]; all others stay [`Udp`]. RFC 5348 §3.2 lists the fields and gives no format;
/// this one is ours. All fields are big-endian, times are in microseconds:
///
/// ```text
/// DATA:      |version| type  |         round-trip time (3 bytes)             |
///            |                   sequence number                             |
///            |                      timestamp                                |
///            and the data
///
/// FEEDBACK:  |version| type  |             delay (3 bytes)                   |
///            |                  echo of a timestamp                          |
///            |              receive rate, bytes a second                     |
///            |            loss event rate, fraction of 2^32 - 1              |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tfrc {
    /// The source port.
    pub source_port: u16,
    /// The destination port. One of both is [`Tfrc::PORT`].
    pub destination_port: u16,
    /// What is told.
    pub message: TfrcMessage,
}

/// A message of TFRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TfrcMessage {
    /// A data packet (RFC 5348 §3.2.1); its data is the packet's payload.
    Data {
        /// Counts data packets, modulo 2^32.
        sequence: u32,
        /// When it was sent, microseconds modulo 2^32.
        timestamp: u32,
        /// The sender's estimate of the round-trip time, microseconds, at most [`Tfrc::LONGEST`]; 0 if it
        /// has none.
        round_trip: u32,
    },
    /// A feedback packet (RFC 5348 §3.2.2).
    Feedback {
        /// The timestamp of the last data packet that was received (`t_recvdata`).
        timestamp: u32,
        /// The time from its arrival to the transmission of this packet (`t_delay`), microseconds, at most
        /// [`Tfrc::LONGEST`].
        delay: u32,
        /// The rate at which data was received (`X_recv`), bytes per second.
        receive_rate: u32,
        /// The receiver's estimate of the loss event rate (`p`).
        loss_event_rate: Probability,
    },
}

const DATA: u8 = 1;
const FEEDBACK: u8 = 2;

impl Tfrc {
    /// The sender's port, of the dynamic range (RFC 6335 §6).
    pub const PORT: u16 = 51_995;
    /// The version of the format.
    pub const VERSION: u8 = 1;
    /// Bytes of the header of a data packet, behind that of UDP.
    pub const DATA: usize = 12;
    /// Bytes of a feedback packet, behind the header of UDP.
    pub const FEEDBACK: usize = 16;
    /// The longest round-trip time or delay that is told, microseconds; longer ones are told as this.
    pub const LONGEST: u32 = (1 << 24) - 1;

    /// Bytes of the header, behind that of UDP.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a message has a header")]
    pub const fn len(&self) -> usize {
        match self.message {
            TfrcMessage::Data { .. } => Tfrc::DATA,
            TfrcMessage::Feedback { .. } => Tfrc::FEEDBACK,
        }
    }

    /// Whether data follows the header, as far as there is any.
    #[must_use]
    pub const fn carries_data(&self) -> bool {
        matches!(self.message, TfrcMessage::Data { .. })
    }

    fn has_port(udp: Udp) -> bool {
        udp.source_port == Tfrc::PORT || udp.destination_port == Tfrc::PORT
    }

    /// Reads the message in the payload of a UDP datagram, and the length of its header; `None` if it is
    /// none of this version.
    pub(crate) fn parse(udp: Udp, bytes: &[u8]) -> Option<(Tfrc, usize)> {
        if !Tfrc::has_port(udp) {
            return None;
        }
        let (fixed, rest) = bytes.split_first_chunk::<{ Tfrc::DATA }>()?;
        let [first, second, third] = [0, 4, 8].map(|at| u32_at(fixed, at));
        let (kind, time) = ((first >> 24) as u8, first & Tfrc::LONGEST);
        if kind >> 4 != Tfrc::VERSION {
            return None;
        }
        let message = match kind & 0xf {
            DATA => TfrcMessage::Data { sequence: second, timestamp: third, round_trip: time },
            FEEDBACK => {
                let rate: [u8; 4] = rest.try_into().ok()?;
                TfrcMessage::Feedback {
                    timestamp: second,
                    delay: time,
                    receive_rate: third,
                    loss_event_rate: Probability(u32::from_be_bytes(rate)),
                }
            }
            _ => return None,
        };
        let Udp { source_port, destination_port } = udp;
        let tfrc = Tfrc { source_port, destination_port, message };
        Some((tfrc, tfrc.len()))
    }

    /// Writes the datagram: the header of UDP, that of the message, and the data.
    pub(crate) fn emit(
        &self,
        ends: (IpAddr, IpAddr),
        tail: Tail<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let header = Header::Tfrc;
        let Tfrc { source_port, destination_port, message } = *self;
        let udp = Udp { source_port, destination_port };
        if !Tfrc::has_port(udp) {
            return Err(EmitError::Port { header, found: destination_port, expected: Tfrc::PORT });
        }
        if tail.len() > 0 && !self.carries_data() {
            return Err(EmitError::TooLong { header, found: tail.len(), most: 0 });
        }
        let (kind, field, time) = match message {
            TfrcMessage::Data { round_trip, .. } => (DATA, "round-trip time", round_trip),
            TfrcMessage::Feedback { delay, .. } => (FEEDBACK, "delay", delay),
        };
        if time > Tfrc::LONGEST {
            return Err(EmitError::Field { header, field, found: time, most: Tfrc::LONGEST });
        }
        let first = u32::from(Tfrc::VERSION << 4 | kind) << 24 | time;
        let words = match message {
            TfrcMessage::Data { sequence, timestamp, .. } => [first, sequence, timestamp, 0],
            TfrcMessage::Feedback { timestamp, receive_rate, loss_event_rate, .. } => {
                [first, timestamp, receive_rate, loss_event_rate.0]
            }
        };
        let mut bytes = [0; Tfrc::FEEDBACK];
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_be_bytes();
        }
        udp.emit_with(ends, (header, &bytes[..self.len()]), tail, out)
    }
}
