//! Records over a stream of bytes between two ends that share a key: for messages that are longer than datagrams, and
//! whose ends are many.
//!
//! `Noise_NNpsk0_25519_AESGCM_BLAKE2s`: each end shows that it has the preshared key, which is all that the network's
//! members know of each other; the keys of a stream depend on ephemeral keys of both ends. One message of
//! [`HANDSHAKE`] bytes each way, then records: a record is a text and its tag, with numbers from 0 on for nonces, and
//! is lost, repeated or in another place only if the stream is forged, which [`Secured::open`] notices.

use crate::entropy::Entropy;
use crate::key::PresharedKey;
use crate::noise::{self, HANDSHAKE};
use crate::session::{Keys, TAG, decrypt, encrypt};
use snow::HandshakeState;

/// An end that has sent its message and waits for the other one's.
pub struct Initiator(HandshakeState);

/// An end of a stream after the handshake.
pub struct Secured {
    keys: Keys,
    sealed: u64,
    opened: u64,
}

/// Begins a handshake. Returns the message to send; `None` if there is no randomness.
pub fn initiate(
    key: &PresharedKey,
    entropy: &mut impl Entropy,
) -> Option<(Initiator, [u8; HANDSHAKE])> {
    let mut state = noise::of_stream(key, entropy.draw()?, true).ok()?;
    let mut message = [0; HANDSHAKE];
    state.write_message(&[], &mut message).ok()?;
    Some((Initiator(state), message))
}

/// Answers a message. Returns the answer to send; `None` if its sender does not have the key, or there is no
/// randomness.
pub fn respond(
    key: &PresharedKey,
    message: &[u8; HANDSHAKE],
    entropy: &mut impl Entropy,
) -> Option<(Secured, [u8; HANDSHAKE])> {
    let mut state = noise::of_stream(key, entropy.draw()?, false).ok()?;
    state.read_message(message, &mut []).ok()?;
    let mut answer = [0; HANDSHAKE];
    state.write_message(&[], &mut answer).ok()?;
    let [open, seal] = noise::split(&mut state);
    Some((Secured::new(Keys { seal, open }), answer))
}

impl Initiator {
    /// Reads the answer; `None` if its sender does not have the key.
    #[must_use]
    pub fn finish(mut self, answer: &[u8; HANDSHAKE]) -> Option<Secured> {
        self.0.read_message(answer, &mut []).ok()?;
        let [seal, open] = noise::split(&mut self.0);
        Some(Secured::new(Keys { seal, open }))
    }
}

impl Secured {
    fn new(keys: Keys) -> Secured {
        Secured { keys, sealed: 0, opened: 0 }
    }

    /// Encrypts a text in place, and appends its tag. `None` for a text of 64 GiB or more.
    pub fn seal(&mut self, record: &mut Vec<u8>) -> Option<()> {
        let tag = encrypt(&self.keys.seal.cipher, self.sealed, &[], record)?;
        self.sealed += 1;
        record.extend_from_slice(&tag);
        Some(())
    }

    /// Decrypts the next record in place, and removes its tag. `None` if it is not what the other end has sealed next.
    pub fn open(&mut self, record: &mut Vec<u8>) -> Option<()> {
        let len = record.len().checked_sub(TAG)?;
        let tag = record.split_off(len).try_into().ok()?;
        decrypt(&self.keys.open.cipher, self.opened, &[], record, &tag).then_some(())?;
        self.opened += 1;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_entropy;

    fn key() -> PresharedKey {
        PresharedKey::generate(&mut system_entropy).unwrap()
    }

    fn pair(key: &PresharedKey) -> [Secured; 2] {
        let (initiator, message) = initiate(key, &mut system_entropy).unwrap();
        let (responder, answer) = respond(key, &message, &mut system_entropy).unwrap();
        [initiator.finish(&answer).unwrap(), responder]
    }

    #[test]
    fn records_arrive_both_ways_in_order_and_unchanged() {
        let [mut one, mut other] = pair(&key());
        for text in [&b"first"[..], b"", b"third"] {
            let mut record = text.to_vec();
            one.seal(&mut record).unwrap();
            assert_ne!(record[..text.len().max(1)], *text);
            other.open(&mut record).unwrap();
            assert_eq!(record, text);
            other.seal(&mut record).unwrap();
            one.open(&mut record).unwrap();
            assert_eq!(record, text);
        }
    }

    #[test]
    fn a_record_that_is_changed_repeated_left_out_or_sent_back_is_noticed() {
        let [mut one, mut other] = pair(&key());
        let [first, second] = [b"first", b"other"].map(|text| {
            let mut record = text.to_vec();
            one.seal(&mut record).unwrap();
            record
        });
        for at in 0..first.len() {
            let mut changed = first.clone();
            changed[at] ^= 1;
            assert!(other.open(&mut changed).is_none(), "{at}");
        }
        assert!(other.open(&mut first[..TAG - 1].to_vec()).is_none());
        assert!(other.open(&mut second.clone()).is_none());
        assert!(one.open(&mut first.clone()).is_none());
        other.open(&mut first.clone()).unwrap();
        assert!(other.open(&mut first.clone()).is_none());
        other.open(&mut second.clone()).unwrap();
    }

    #[test]
    fn without_the_key_there_is_no_handshake() {
        let (ours, theirs) = (key(), key());
        let (initiator, message) = initiate(&ours, &mut system_entropy).unwrap();
        assert!(respond(&theirs, &message, &mut system_entropy).is_none());
        assert!(respond(&ours, &[0; HANDSHAKE], &mut system_entropy).is_none());
        let (_, answer) = respond(&ours, &message, &mut system_entropy).unwrap();
        let mut forged = answer;
        forged[0] ^= 1;
        assert!(initiator.finish(&forged).is_none());
    }

    #[test]
    fn two_streams_have_different_keys() {
        let key = key();
        let [[mut one, _], [_, mut other]] = [pair(&key), pair(&key)];
        let mut record = b"text".to_vec();
        one.seal(&mut record).unwrap();
        assert!(other.open(&mut record).is_none());
    }
}
