//! The authentication of messages.

use super::Request;
use core::net::IpAddr;
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use wire::Mobility;

/// The keys that mobile hosts share with the base stations of a network: one for each, derived from the
/// network's secret and its address.
///
/// Tags are HMAC-SHA-256 (RFC 2104), of which 128 bits are used (RFC 4868 §2.6).
#[derive(Clone)]
pub struct Keys {
    secret: Vec<u8>,
}

impl Keys {
    /// The keys by the network's secret.
    #[must_use]
    pub fn new(secret: &str) -> Keys {
        Keys { secret: secret.as_bytes().to_vec() }
    }

    /// The code of a text with the key of a mobile host.
    fn code(&self, mobile: IpAddr, text: &[u8]) -> Hmac<Sha256> {
        let mut key = with_key(&self.secret);
        match mobile {
            IpAddr::V4(address) => key.update(&address.octets()),
            IpAddr::V6(address) => key.update(&address.octets()),
        }
        let mut code = with_key(&key.finalize().into_bytes());
        code.update(text);
        code
    }

    /// The tag of a text.
    pub(crate) fn tag(&self, mobile: IpAddr, text: &[u8]) -> [u8; Mobility::TAG] {
        let code = self.code(mobile, text).finalize().into_bytes();
        core::array::from_fn(|n| code[n])
    }

    /// Whether a tag is that of a text; takes the same time wherever they differ.
    pub(crate) fn is_tag(&self, mobile: IpAddr, text: &[u8], tag: &[u8]) -> bool {
        tag.len() == Mobility::TAG && self.code(mobile, text).verify_truncated_left(tag).is_ok()
    }

    /// The message with its tag.
    pub(crate) fn sign(&self, mobile: IpAddr, message: Mobility) -> Mobility {
        Mobility { tag: self.tag(mobile, &message.authenticated(mobile)), ..message }
    }

    /// Whether a message is of this mobile host, or of a base station to it.
    #[must_use]
    pub fn verify(&self, mobile: IpAddr, message: &Mobility) -> bool {
        self.is_tag(mobile, &message.authenticated(mobile), &message.tag)
    }

    /// Whether the mobile host of a request has indeed said that it is attached to the requester.
    #[must_use]
    pub fn is_authentic(&self, request: &Request) -> bool {
        self.verify(request.mobile, &request.attach)
    }
}

/// A code with a key of any length.
fn with_key(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{MobilityMessage, Outcome};

    fn resume(outcome: Outcome) -> MobilityMessage {
        MobilityMessage::Resume { outcome, incarnation: 3 }
    }

    fn mobile(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn a_message_is_valid_with_the_key_of_its_host_and_unchanged_only() {
        let keys = Keys::new("secret");
        let message = Mobility::new(5, resume(Outcome::Complete));
        let signed = keys.sign(mobile(1), message);
        assert!(keys.verify(mobile(1), &signed));
        assert!(!keys.verify(mobile(1), &message));
        assert!(!keys.verify(mobile(2), &signed));
        assert!(!Keys::new("another").verify(mobile(1), &signed));
        assert!(!keys.verify(mobile(1), &Mobility { attachment: 6, ..signed }));
        let message = resume(Outcome::Lost);
        assert!(!keys.verify(mobile(1), &Mobility { message, ..signed }));
        for n in 0..Mobility::TAG {
            let mut tag = signed.tag;
            tag[n] ^= 0x80;
            assert!(!keys.verify(mobile(1), &Mobility { tag, ..signed }));
        }
        assert!(!keys.is_tag(mobile(1), b"", &[]));
    }

    #[test]
    fn the_code_is_hmac_sha_256() {
        // RFC 4231 §4.2.
        let mut code = with_key(&[0x0b; 20]);
        code.update(b"Hi There");
        assert_eq!(code.finalize().into_bytes()[..4], [0xb0, 0x34, 0x4c, 0x61]);
    }
}
