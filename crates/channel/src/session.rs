//! A session: the keys of one handshake, the numbers of its packets, and the replay window.

use crate::code::CodeKey;
use crate::packet::{HEADER, Header, Purpose};
use crate::window::Window;
use aes_gcm::{AeadInOut, Aes256Gcm, Tag};
use base::Time;

/// The length of what follows the payload of a transport packet, bytes: its authentication tag.
pub const TAG: usize = 16;

/// The keys of the two directions.
pub(crate) struct Keys {
    pub(crate) seal: Key,
    pub(crate) open: Key,
}

/// The keys of a direction.
pub(crate) struct Key {
    /// It wipes its key when it is dropped.
    pub(crate) cipher: Aes256Gcm,
    pub(crate) codes: CodeKey,
}

/// The nonce of a number (Noise §12.3).
fn nonce(number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce
}

/// Encrypts in place. `None` for a text of 64 GiB or more.
pub(crate) fn encrypt(
    cipher: &Aes256Gcm,
    number: u64,
    header: &[u8],
    text: &mut [u8],
) -> Option<[u8; TAG]> {
    cipher.encrypt_inout_detached(&nonce(number).into(), header, text.into()).ok().map(Into::into)
}

/// Decrypts in place. Returns false, and leaves the text as it is, unless the tag is right.
pub(crate) fn decrypt(
    cipher: &Aes256Gcm,
    number: u64,
    header: &[u8],
    text: &mut [u8],
    tag: &[u8; TAG],
) -> bool {
    let tag: &Tag = tag.into();
    cipher.decrypt_inout_detached(&nonce(number).into(), header, text.into(), tag).is_ok()
}

pub(crate) struct Session {
    keys: Keys,
    /// The index of packets to us, and to the peer.
    pub(crate) local: u32,
    remote: u32,
    pub(crate) peer_instance: u64,
    pub(crate) created: Time,
    pub(crate) is_initiator: bool,
    /// The number of the next packet.
    pub(crate) sent: u32,
    received: Window,
}

/// What tells the packets of a session from others without opening them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognition {
    /// The receiver's index, which they have.
    pub index: u32,
    /// The key of their authentication codes.
    pub codes: CodeKey,
}

/// Whether a packet was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// It was, and its number is higher than that of each before.
    Highest,
    /// It was, and another overtook it.
    Overtaken,
    /// It has arrived before, or so long after others that this is not known.
    Replayed,
    /// The code or the tag is wrong.
    Forged,
}

impl Session {
    pub(crate) fn new(
        now: Time,
        keys: Keys,
        [local, remote]: [u32; 2],
        peer_instance: u64,
        is_initiator: bool,
    ) -> Session {
        Session {
            keys,
            local,
            remote,
            peer_instance,
            created: now,
            is_initiator,
            sent: 0,
            received: Window::new(),
        }
    }

    /// What its packets can be told by.
    pub(crate) fn recognition(&self) -> Recognition {
        Recognition { index: self.local, codes: self.keys.open.codes }
    }

    /// Makes a transport packet of the payload between the room for header and tag. `None` if the
    /// packet is too short for these, or numbers are exhausted.
    pub(crate) fn seal(&mut self, purpose: Purpose, packet: &mut [u8]) -> Option<()> {
        let (header, rest) = packet.split_first_chunk_mut::<HEADER>()?;
        let (payload, tag) = rest.split_last_chunk_mut::<TAG>()?;
        let counter = self.sent;
        // Incremented first: whatever happens below, no number is used twice.
        self.sent = counter.checked_add(1)?;
        let code = self.keys.seal.codes.code(self.remote, counter);
        *header = Header { purpose, receiver: self.remote, counter, code }.emit();
        *tag = encrypt(&self.keys.seal.cipher, counter.into(), header, payload)?;
        Some(())
    }

    /// Opens a transport packet whose header this is. Its payload is decrypted in place.
    pub(crate) fn open(&mut self, header: Header, packet: &mut [u8]) -> Opening {
        let number = u64::from(header.counter);
        if !self.received.is_new(number) {
            return Opening::Replayed;
        }
        // It takes a small part of the time that the tag takes.
        if self.keys.open.codes.code(self.local, header.counter) != header.code {
            return Opening::Forged;
        }
        let Some((bytes, rest)) = packet.split_first_chunk_mut::<HEADER>() else {
            return Opening::Forged;
        };
        let Some((text, tag)) = rest.split_last_chunk_mut::<TAG>() else {
            return Opening::Forged;
        };
        if !decrypt(&self.keys.open.cipher, number, bytes, text, tag) {
            return Opening::Forged;
        }
        if self.received.insert(number) { Opening::Highest } else { Opening::Overtaken }
    }
}
