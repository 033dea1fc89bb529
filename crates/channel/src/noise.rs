//! The handshake: `Noise_KKpsk0_25519_AESGCM_BLAKE2s`, its primitives, and the authentication code
//! before it.
//!
//! snow runs the state machine. Its own primitives are older, and leave keys in freed memory.

use crate::code::CodeKey;
use crate::key::{KEY, PresharedKey, PublicKey, SecretKey};
use crate::packet::{CONTENTS, INITIATION_HEADER, MAC, NOISE, initiation_header};
use crate::session::{Key, Keys, TAG};
use aes_gcm::{Aes256Gcm, KeyInit};
use primitives::{Blake2s, Resolver};
use snow::types::Hash;
use snow::{Builder, Error, HandshakeState};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

mod primitives;

const PATTERN: &str = "Noise_KKpsk0_25519_AESGCM_BLAKE2s";
const LABEL: &[u8; 17] = b"lasthop channel 2";
const LABEL_OF_CODES: &[u8] = b"lasthop codes 2";

/// What both ends know before the first packet.
pub(crate) struct Identity {
    secret: SecretKey,
    peer: PublicKey,
    preshared: Zeroizing<[u8; KEY]>,
    /// The keys of the authentication codes of handshake messages that are sent and received.
    codes: [Zeroizing<[u8; KEY]>; 2],
}

/// What a handshake message carries encrypted: what its sender says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The index that transport packets to it are to have.
    pub(crate) index: u32,
    pub(crate) instance: u64,
}

impl Contents {
    fn emit(self) -> [u8; CONTENTS] {
        let mut bytes = [0; CONTENTS];
        bytes[..4].copy_from_slice(&self.index.to_be_bytes());
        bytes[4..].copy_from_slice(&self.instance.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8; CONTENTS]) -> Contents {
        let [a, b, c, d, instance @ ..] = *bytes;
        Contents { index: u32::from_be_bytes([a, b, c, d]), instance: u64::from_be_bytes(instance) }
    }
}

/// An initiation that waits for its response.
pub(crate) struct Initiator(HandshakeState);

impl Identity {
    /// `None` if the peer's key makes no shared secret.
    pub(crate) fn new(
        secret: &SecretKey,
        peer: PublicKey,
        preshared: Option<&PresharedKey>,
    ) -> Option<Identity> {
        let shared = secret.shared(&peer)?;
        // As in WireGuard, no key is a key of zeros.
        let preshared = Zeroizing::new(preshared.map_or([0; KEY], |key| *key.bytes()));
        let mut input = Zeroizing::new([0; LABEL.len() + KEY]);
        input[..LABEL.len()].copy_from_slice(LABEL);
        input[LABEL.len()..].copy_from_slice(&*preshared);
        let mut root = Zeroizing::new([0; KEY]);
        Blake2s::default().hmac(&*shared, &*input, &mut *root);
        // A key for each direction: a message that is sent back to its sender is not authentic.
        let codes = [secret.public(), peer].map(|sender| {
            let mut key = Zeroizing::new([0; KEY]);
            Blake2s::default().hmac(&*root, sender.bytes(), &mut *key);
            key
        });
        Some(Identity { secret: secret.clone(), peer, preshared, codes })
    }

    /// Appends the authentication code of a message of ours, and returns it.
    pub(crate) fn authenticate(&self, message: &mut Vec<u8>) -> [u8; MAC] {
        let code = code(&self.codes[0], message);
        message.extend_from_slice(&code);
        code
    }

    /// The authentication code at the end of the peer's message, if it is right.
    pub(crate) fn check(&self, message: &[u8]) -> Option<[u8; MAC]> {
        let (message, theirs) = message.split_last_chunk::<MAC>()?;
        let code = code(&self.codes[1], message);
        bool::from(code.ct_eq(theirs)).then_some(code)
    }

    /// The state of a handshake before its first message.
    fn begin(
        &self,
        ephemeral: [u8; KEY],
        timestamp: u64,
        is_initiator: bool,
    ) -> Result<HandshakeState, Error> {
        let mut prologue = [0; LABEL.len() + INITIATION_HEADER];
        prologue[..LABEL.len()].copy_from_slice(LABEL);
        prologue[LABEL.len()..].copy_from_slice(&initiation_header(timestamp));
        let resolver = Box::new(Resolver(Zeroizing::new(ephemeral)));
        let builder = Builder::with_resolver(PATTERN.parse()?, resolver)
            .prologue(&prologue)?
            .psk(0, &self.preshared)?
            .local_private_key(self.secret.bytes())?
            .remote_public_key(self.peer.bytes())?;
        if is_initiator { builder.build_initiator() } else { builder.build_responder() }
    }

    /// Begins a handshake with the private key `ephemeral`, which must never be used again.
    pub(crate) fn initiate(
        &self,
        ephemeral: [u8; KEY],
        timestamp: u64,
        contents: Contents,
    ) -> Result<(Initiator, [u8; NOISE]), Error> {
        let mut state = self.begin(ephemeral, timestamp, true)?;
        let mut noise = [0; NOISE];
        state.write_message(&contents.emit(), &mut noise)?;
        Ok((Initiator(state), noise))
    }

    /// Reads an initiation and answers it, as [`Identity::initiate`] does. Returns what the peer said,
    /// the response and the session's keys.
    pub(crate) fn respond(
        &self,
        ephemeral: [u8; KEY],
        timestamp: u64,
        initiation: &[u8; NOISE],
        contents: Contents,
    ) -> Result<(Contents, [u8; NOISE], Keys), Error> {
        let mut state = self.begin(ephemeral, timestamp, false)?;
        let theirs = read(&mut state, initiation)?;
        let mut noise = [0; NOISE];
        state.write_message(&contents.emit(), &mut noise)?;
        let [open, seal] = split(&mut state);
        Ok((theirs, noise, Keys { seal, open }))
    }
}

impl Initiator {
    /// Reads the response. Returns what the peer said, and the session's keys.
    pub(crate) fn finish(&mut self, response: &[u8; NOISE]) -> Result<(Contents, Keys), Error> {
        let theirs = read(&mut self.0, response)?;
        let [seal, open] = split(&mut self.0);
        Ok((theirs, Keys { seal, open }))
    }
}

fn read(state: &mut HandshakeState, noise: &[u8; NOISE]) -> Result<Contents, Error> {
    let mut contents = [0; CONTENTS];
    state.read_message(noise, &mut contents)?;
    Ok(Contents::parse(&contents))
}

/// Bytes of a message of the handshake of a stream: an ephemeral key and a tag.
pub const HANDSHAKE: usize = KEY + TAG;

const PATTERN_OF_STREAMS: &str = "Noise_NNpsk0_25519_AESGCM_BLAKE2s";
const LABEL_OF_STREAMS: &[u8] = b"lasthop stream 1";

/// The state of the handshake of a stream. `ephemeral` must never be used again.
pub(crate) fn of_stream(
    preshared: &PresharedKey,
    ephemeral: [u8; KEY],
    is_initiator: bool,
) -> Result<HandshakeState, Error> {
    let resolver = Box::new(Resolver(Zeroizing::new(ephemeral)));
    let builder = Builder::with_resolver(PATTERN_OF_STREAMS.parse()?, resolver)
        .prologue(LABEL_OF_STREAMS)?
        .psk(0, preshared.bytes())?;
    if is_initiator { builder.build_initiator() } else { builder.build_responder() }
}

/// The keys of packets from the initiator and to it.
pub(crate) fn split(state: &mut HandshakeState) -> [Key; 2] {
    let mut keys: [[u8; KEY]; 2] = state.dangerously_get_raw_split().into();
    let split = keys.each_ref().map(|key| Key {
        cipher: Aes256Gcm::new(key.into()),
        codes: CodeKey::new(&code(key, LABEL_OF_CODES)),
    });
    keys.zeroize();
    split
}

pub(crate) const LABEL_OF_MEMBERS: &[u8] = b"lasthop member 1";
pub(crate) const LABEL_OF_OTHERS: &[u8] = b"lasthop other  1";

/// A key that depends on another one, a label and a name.
pub(crate) fn derive(key: &PresharedKey, label: &[u8], name: &[u8]) -> Zeroizing<[u8; KEY]> {
    let mut derived = Zeroizing::new([0; KEY]);
    let input = [label, name].concat();
    Blake2s::default().hmac(key.bytes(), &input, &mut *derived);
    derived
}

fn code(key: &[u8; KEY], message: &[u8]) -> [u8; MAC] {
    let mut long = [0; KEY];
    Blake2s::default().hmac(key, message, &mut long);
    let [code @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = long;
    code
}

#[cfg(test)]
mod tests;
