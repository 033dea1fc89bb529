//! Encryption and authentication of ESP in transport mode.

use super::Esp;
use crate::checksum::Tail;
use crate::ip::protocol;
use crate::{Body, EmitError, Packet, ParseError, Protected, Segment, Tfrc, Udp};
use aes_gcm::{AeadInOut, Aes128Gcm, Aes256Gcm, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use core::fmt;
use core::ops::Range;
use thiserror::Error;

/// An algorithm that encrypts and authenticates ESP packets, with an initialization vector of 8 bytes
/// and an integrity check value of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EspAlgorithm {
    /// AES-GCM-16 with a key of 128 bits (RFC 4106).
    Aes128Gcm,
    /// AES-GCM-16 with a key of 256 bits (RFC 4106).
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 7634).
    ChaCha20Poly1305,
}

impl EspAlgorithm {
    /// Every algorithm.
    pub const ALL: [EspAlgorithm; 3] =
        [EspAlgorithm::Aes128Gcm, EspAlgorithm::Aes256Gcm, EspAlgorithm::ChaCha20Poly1305];

    /// Bytes of the keying material: the key, and the salt behind it (RFC 4106 §8.1, RFC 7634 §2).
    #[must_use]
    pub const fn material(self) -> usize {
        SALT + match self {
            EspAlgorithm::Aes128Gcm => 16,
            EspAlgorithm::Aes256Gcm | EspAlgorithm::ChaCha20Poly1305 => 32,
        }
    }
}

/// Keying material is not as long as the algorithm's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected {expected} bytes of keying material, found {found}")]
pub struct MaterialLength {
    /// Bytes of the key and the salt.
    pub expected: usize,
    /// Bytes given.
    pub found: usize,
}

/// Why an ESP packet is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// It is no ESP packet, or its payload is not the bytes given.
    #[error("expected an ESP packet with its payload")]
    NotEsp,
    /// It is too short, or not a multiple of 4 bytes (RFC 4303 §2.4).
    #[error("ESP: expected a payload of 20 bytes or more and of a multiple of 4, found {found}")]
    Length {
        /// Bytes of the payload.
        found: usize,
    },
    /// It was changed, or has other keys.
    #[error("ESP: the integrity check value is wrong")]
    Integrity,
    /// It is authentic; its padding is not 1, 2, 3 and so on (RFC 4303 §2.4).
    #[error("ESP: expected padding of 1, 2, 3 and so on, found other bytes")]
    Padding,
    /// It is authentic, and hides something else than TCP or UDP; 59 is a dummy packet (RFC 4303 §2.6).
    #[error("ESP: expected TCP or UDP as next header, found {found}")]
    NextHeader {
        /// The type of the header.
        found: u8,
    },
    /// It is authentic, and what it hides cannot be read.
    #[error("ESP hides a transport that cannot be read: {0}")]
    Transport(#[from] ParseError),
}

/// The keys of a security association.
#[derive(Clone)]
pub struct EspKeys {
    cipher: Cipher,
    salt: [u8; SALT],
    is_extended: bool,
}

/// A cipher with its key.
#[derive(Clone)]
enum Cipher {
    // Its tables take more than a kilobyte.
    Aes128Gcm(Box<Aes128Gcm>),
    Aes256Gcm(Box<Aes256Gcm>),
    ChaCha20Poly1305(ChaCha20Poly1305),
}

const SALT: usize = 4;
const ICV: usize = Esp::ICV as usize;
/// Pad length and next header.
const TRAILER: usize = 2;

type Icv = [u8; ICV];

impl EspKeys {
    /// The key of AES-GCM-16 of every association in the lab and on the testbed, which have no secrets:
    /// who looks at a capture needs one line of settings. The book has it for tshark.
    pub const LAB_KEY: [u8; 16] = *b"lasthop, lab key";

    /// The salt of [`EspKeys::LAB_KEY`] (RFC 4106 §4).
    pub const LAB_SALT: [u8; SALT] = *b"salt";

    /// The keys of every association in the lab and on the testbed.
    #[must_use]
    pub fn of_lab() -> EspKeys {
        EspKeys::aes_128_gcm(EspKeys::LAB_KEY, EspKeys::LAB_SALT)
    }

    /// The keys of an association, from the algorithm's key and the salt behind it.
    ///
    /// # Errors
    /// If the material is not [`EspAlgorithm::material`] bytes long.
    pub fn new(algorithm: EspAlgorithm, material: &[u8]) -> Result<EspKeys, MaterialLength> {
        let (expected, found) = (algorithm.material(), material.len());
        let wrong = MaterialLength { expected, found };
        let (key, salt) = material.split_last_chunk::<SALT>().ok_or(wrong)?;
        let cipher = match algorithm {
            EspAlgorithm::Aes128Gcm => {
                Aes128Gcm::new_from_slice(key).map(|cipher| Cipher::Aes128Gcm(Box::new(cipher)))
            }
            EspAlgorithm::Aes256Gcm => {
                Aes256Gcm::new_from_slice(key).map(|cipher| Cipher::Aes256Gcm(Box::new(cipher)))
            }
            EspAlgorithm::ChaCha20Poly1305 => {
                ChaCha20Poly1305::new_from_slice(key).map(Cipher::ChaCha20Poly1305)
            }
        };
        Ok(EspKeys { cipher: cipher.map_err(|_| wrong)?, salt: *salt, is_extended: false })
    }

    /// The keys of an association with AES-GCM-16 and a key of 128 bits.
    #[must_use]
    pub fn aes_128_gcm(key: [u8; 16], salt: [u8; 4]) -> EspKeys {
        let cipher = Cipher::Aes128Gcm(Box::new(Aes128Gcm::new(&key.into())));
        EspKeys { cipher, salt, is_extended: false }
    }

    /// The same with extended sequence numbers (RFC 4303 §2.2.1): the upper half, which is not in the
    /// packet, is authenticated, too.
    #[must_use]
    pub fn extended(self) -> EspKeys {
        EspKeys { is_extended: true, ..self }
    }

    /// Appends the bytes of a packet to `out`, with these payload bytes: [`EspKeys::seal`] if it is in
    /// transport mode, with a sequence number that is not extended, and [`Packet::emit`] if it is not.
    ///
    /// # Errors
    /// If it cannot be written; `out` is then as it was.
    pub fn emit(
        &self,
        packet: &Packet,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        match packet.body {
            Body::EspTransport(_) => self.seal(packet, 0, payload, out),
            _ => packet.emit(payload, out),
        }
    }

    /// Appends the bytes of a packet in transport mode to `out`, with these payload bytes. `high` is the
    /// upper half of its sequence number, if the numbers are extended. Its initialization vector must
    /// be that of no other packet with these keys (RFC 4106 §3.1, RFC 7634 §2).
    ///
    /// # Errors
    /// If the packet cannot be written, or is not protected ([`Packet::protect`]); `out` is then as it
    /// was.
    pub fn seal(
        &self,
        packet: &Packet,
        high: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let start = out.len();
        out.reserve(packet.len() as usize);
        let sealed = self.append(packet, high, payload, out);
        match sealed {
            Ok(()) => out.resize(out.len() + packet.redundancy_len() as usize, 0),
            Err(_) => out.truncate(start),
        }
        sealed
    }

    fn append(
        &self,
        packet: &Packet,
        high: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let (Body::EspTransport(protected), Some(esp)) = (&packet.body, packet.esp()) else {
            return Err(EmitError::NotProtected);
        };
        let (expected, found) = (packet.payload.len as usize, payload.len());
        if expected != found {
            return Err(EmitError::Payload { expected, found });
        }
        packet.emit_ip(protocol::ESP, packet.transport_len() + payload.len(), out)?;
        out.extend_from_slice(&esp.bytes());
        let start = out.len();
        let (ends, tail) = ((packet.ip.source, packet.ip.destination), Tail::Bytes(payload));
        let next = match protected {
            Protected::Tcp(segment) => {
                segment.emit(ends, &packet.unparsed, tail, out)?;
                protocol::TCP
            }
            Protected::Udp(udp) => {
                udp.emit(ends, tail, out)?;
                protocol::UDP
            }
            Protected::Tfrc(tfrc) => {
                tfrc.emit(ends, tail, out)?;
                protocol::UDP
            }
        };
        let inner = out.len() - start + TRAILER;
        // RFC 4303 §2.4
        let padding = (inner.next_multiple_of(4) - inner) as u8;
        out.extend(1..=padding);
        out.extend_from_slice(&[padding, next]);
        let icv = self.encrypt(&esp, high, &mut out[start..]).map_err(|_| EmitError::TooLong {
            header: crate::Header::Esp,
            found: inner,
            most: usize::from(u16::MAX),
        })?;
        out.extend_from_slice(&icv);
        Ok(())
    }

    /// Verifies and decrypts, in place, the payload of an ESP packet that was parsed. Returns the packet
    /// in transport mode, and where its payload is among the bytes. `high` is the upper half of its
    /// sequence number, if the numbers are extended ([`crate::ReplayWindow::extended`]).
    ///
    /// # Errors
    /// If it is not authentic, or hides no transport that can be read.
    pub fn open(
        &self,
        packet: &Packet,
        high: u32,
        sealed: &mut [u8],
    ) -> Result<(Packet, Range<usize>), OpenError> {
        let Body::Esp(esp) = packet.body else { return Err(OpenError::NotEsp) };
        let found = sealed.len();
        if packet.payload.len as usize != found {
            return Err(OpenError::NotEsp);
        }
        let length = OpenError::Length { found };
        let (text, icv) = sealed.split_last_chunk_mut::<ICV>().ok_or(length)?;
        if text.len() < 2 * TRAILER || !text.len().is_multiple_of(4) {
            return Err(length);
        }
        self.decrypt(&esp, high, text, icv).map_err(|_| OpenError::Integrity)?;
        let (next, inner) = without_trailer(text)?;
        self.read(packet, esp, (next, &text[..inner]))
    }

    /// Reads the transport of a decrypted packet.
    fn read(
        &self,
        packet: &Packet,
        esp: Esp,
        (next, inner): (u8, &[u8]),
    ) -> Result<(Packet, Range<usize>), OpenError> {
        let ends = (packet.ip.source, packet.ip.destination);
        let mut opened = *packet;
        // Before the options are read: they leave room for the header.
        if !opened.unparsed.set_esp(esp) {
            return Err(OpenError::NotEsp);
        }
        let (protected, place) = match next {
            protocol::TCP => {
                let (segment, len) = Segment::parse(inner, ends, &mut opened.unparsed, false)?;
                (Protected::Tcp(segment), len..inner.len())
            }
            protocol::UDP => {
                let (udp, end) = Udp::parse(inner, ends, false)?;
                match Tfrc::parse(udp, &inner[Udp::HEADER..end]) {
                    Some((tfrc, len)) => (Protected::Tfrc(tfrc), Udp::HEADER + len..end),
                    None => (Protected::Udp(udp), Udp::HEADER..end),
                }
            }
            found => return Err(OpenError::NextHeader { found }),
        };
        opened.body = Body::EspTransport(protected);
        opened.payload.len = place.len() as u32;
        Ok((opened, place))
    }

    /// RFC 4106 §4, RFC 7634 §2: the salt, and the initialization vector.
    fn nonce(&self, esp: &Esp) -> Nonce {
        let mut nonce = Nonce::default();
        nonce[..SALT].copy_from_slice(&self.salt);
        nonce[SALT..].copy_from_slice(&esp.iv);
        nonce
    }

    /// The bytes that are authenticated and not encrypted, and their number (RFC 4106 §5, RFC 7634
    /// §2.1).
    fn associated(&self, esp: &Esp, high: u32) -> ([u8; 12], usize) {
        let [spi, high, low] = [esp.spi, high, esp.sequence].map(u32::to_be_bytes);
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&spi);
        if !self.is_extended {
            bytes[4..8].copy_from_slice(&low);
            return (bytes, 8);
        }
        bytes[4..8].copy_from_slice(&high);
        bytes[8..].copy_from_slice(&low);
        (bytes, 12)
    }

    fn encrypt(&self, esp: &Esp, high: u32, text: &mut [u8]) -> Result<Icv, aes_gcm::Error> {
        let nonce = self.nonce(esp);
        let (bytes, len) = self.associated(esp, high);
        let (associated, text) = (&bytes[..len], text.into());
        let icv = match &self.cipher {
            Cipher::Aes128Gcm(it) => it.encrypt_inout_detached(&nonce, associated, text),
            Cipher::Aes256Gcm(it) => it.encrypt_inout_detached(&nonce, associated, text),
            Cipher::ChaCha20Poly1305(it) => it.encrypt_inout_detached(&nonce, associated, text),
        };
        icv.map(Icv::from)
    }

    fn decrypt(
        &self,
        esp: &Esp,
        high: u32,
        text: &mut [u8],
        icv: &Icv,
    ) -> Result<(), aes_gcm::Error> {
        let nonce = self.nonce(esp);
        let (bytes, len) = self.associated(esp, high);
        let (associated, text, icv) = (&bytes[..len], text.into(), icv.into());
        match &self.cipher {
            Cipher::Aes128Gcm(it) => it.decrypt_inout_detached(&nonce, associated, text, icv),
            Cipher::Aes256Gcm(it) => it.decrypt_inout_detached(&nonce, associated, text, icv),
            Cipher::ChaCha20Poly1305(it) => {
                it.decrypt_inout_detached(&nonce, associated, text, icv)
            }
        }
    }
}

/// The type of the header that decrypted bytes start with, and their number without padding and trailer.
fn without_trailer(text: &[u8]) -> Result<(u8, usize), OpenError> {
    let &[ref before @ .., padding, next] = text else { return Err(OpenError::Padding) };
    let inner = before.len().checked_sub(padding.into()).ok_or(OpenError::Padding)?;
    // RFC 4303 §2.4: the receiver should inspect it.
    let is_right = before[inner..].iter().copied().eq(1..=padding);
    if is_right { Ok((next, inner)) } else { Err(OpenError::Padding) }
}

impl fmt::Debug for EspKeys {
    /// The algorithm; never the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithm = match self.cipher {
            Cipher::Aes128Gcm(_) => EspAlgorithm::Aes128Gcm,
            Cipher::Aes256Gcm(_) => EspAlgorithm::Aes256Gcm,
            Cipher::ChaCha20Poly1305(_) => EspAlgorithm::ChaCha20Poly1305,
        };
        let mut debug = f.debug_struct("EspKeys");
        debug.field("algorithm", &algorithm).field("is_extended", &self.is_extended);
        debug.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
