//! Keys of gateways, and their text: base64 of 32 bytes, as WireGuard's tools write it.

use crate::Entropy;
use base64ct::{Base64, Encoding};
use core::fmt;
use core::str::FromStr;
use curve25519_dalek::montgomery::MontgomeryPoint;
use zeroize::{Zeroize, Zeroizing};

/// The length of every key, bytes.
pub(crate) const KEY: usize = 32;

/// The length of a key's text: 43 characters of base64 and a `=`.
const TEXT: usize = 44;

/// Why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is not 44 characters long.
    #[error("a key is 44 characters of base64, not {0}")]
    Length(usize),
    /// A character does not occur in base64.
    #[error("character {0} of a key is not one of base64")]
    Character(usize),
    /// It does not stand for 32 bytes: the last two characters are wrong.
    #[error("a key is the base64 of 32 bytes, which ends in one of AEIMQUYcgkosw048 and \"=\"")]
    Ending,
}

/// A gateway's static private key (X25519, RFC 7748). Its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct SecretKey(Zeroizing<[u8; KEY]>);

/// A gateway's static public key (X25519, RFC 7748).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; KEY]);

/// A key that both gateways share in addition to their static keys. With it, recorded traffic stays
/// secret even if X25519 is broken. Its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct PresharedKey(Zeroizing<[u8; KEY]>);

impl SecretKey {
    /// A new key, or `None` if there is no randomness.
    pub fn generate(entropy: &mut impl Entropy) -> Option<SecretKey> {
        let mut bytes = Zeroizing::new(entropy.draw()?);
        // RFC 7748 §5: the same key with and without. Other programs expect it.
        bytes[0] &= 248;
        bytes[31] = bytes[31] & 127 | 64;
        Some(SecretKey(bytes))
    }

    /// The key of an end that has this name, where each member of a network has the key of all, `shared`: any of them
    /// knows it, and none but them.
    #[must_use]
    pub fn of_member(shared: &PresharedKey, name: &[u8]) -> SecretKey {
        SecretKey(crate::noise::derive(shared, crate::noise::LABEL_OF_MEMBERS, name))
    }

    /// The public key that belongs to it.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(MontgomeryPoint::mul_base_clamped(*self.0).to_bytes())
    }

    /// The text of the key, for a file that only its owner can read.
    #[must_use]
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(text(&self.0))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY] {
        &self.0
    }

    /// The shared secret of this and the other key; `None` where it does not depend on this one, because
    /// the other is a point of small order (RFC 7748 §6.1).
    pub(crate) fn shared(&self, other: &PublicKey) -> Option<Zeroizing<[u8; KEY]>> {
        let shared = Zeroizing::new(MontgomeryPoint(other.0).mul_clamped(*self.0).to_bytes());
        shared.iter().any(|&byte| byte != 0).then_some(shared)
    }
}

impl PublicKey {
    pub(crate) fn bytes(&self) -> &[u8; KEY] {
        &self.0
    }
}

impl PresharedKey {
    /// A new key, or `None` if there is no randomness.
    pub fn generate(entropy: &mut impl Entropy) -> Option<PresharedKey> {
        entropy.draw().map(|bytes| PresharedKey(Zeroizing::new(bytes)))
    }

    /// The text of the key, for a file that only its owner can read.
    #[must_use]
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(text(&self.0))
    }

    /// A key for this purpose: it says nothing of this one, nor of those for other purposes.
    #[must_use]
    pub fn derive(&self, purpose: &[u8]) -> Zeroizing<[u8; KEY]> {
        crate::noise::derive(self, crate::noise::LABEL_OF_OTHERS, purpose)
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY] {
        &self.0
    }
}

fn text(bytes: &[u8; KEY]) -> String {
    Base64::encode_string(bytes)
}

/// Reads a key, without branches that depend on its bytes, unless it is wrong.
fn parse(text: &str) -> Result<[u8; KEY], KeyError> {
    let text = text.trim();
    let characters = text.chars().count();
    if characters != TEXT {
        return Err(KeyError::Length(characters));
    }
    let mut bytes = [0; KEY];
    if Base64::decode(text, &mut bytes).is_ok_and(|decoded| decoded.len() == KEY) {
        return Ok(bytes);
    }
    bytes.zeroize();
    let is_of_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
    let wrong = text.chars().take(TEXT - 1).position(|c| !is_of_base64(c));
    Err(wrong.map_or(KeyError::Ending, |index| KeyError::Character(index + 1)))
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<SecretKey, KeyError> {
        parse(text).map(|bytes| SecretKey(Zeroizing::new(bytes)))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<PublicKey, KeyError> {
        parse(text).map(PublicKey)
    }
}

impl FromStr for PresharedKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<PresharedKey, KeyError> {
        parse(text).map(|bytes| PresharedKey(Zeroizing::new(bytes)))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public())
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(_)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> [u8; KEY] {
        core::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
    }

    /// The static key of the initiator in the vectors of the Noise implementation cacophony.
    #[test]
    fn a_public_key_is_that_of_x25519() {
        let secret = "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1";
        let public = "6bc3822a2aa7f4e6981d6538692b3cdf3e6df9eea6ed269eb41d93c22757b75a";
        assert_eq!(SecretKey(Zeroizing::new(unhex(secret))).public(), PublicKey(unhex(public)));
    }

    #[test]
    fn the_text_of_a_key_is_read_again() {
        let secret = SecretKey::generate(&mut || Some([7; 32])).unwrap();
        let text = secret.reveal();
        assert_eq!(text.len(), 44);
        assert_eq!(text.parse::<SecretKey>().unwrap().bytes(), secret.bytes());
        let public = secret.public();
        assert_eq!(format!(" {public}\n").parse::<PublicKey>(), Ok(public));
        let preshared = PresharedKey::generate(&mut || Some([9; 32])).unwrap();
        assert_eq!(preshared.reveal().parse::<PresharedKey>().unwrap().bytes(), &[9; 32]);
    }

    #[test]
    fn a_wrong_text_is_refused_with_the_place_of_the_error() {
        let parse = |text: &str| text.parse::<PublicKey>().unwrap_err();
        let right = PublicKey([200; KEY]).to_string();
        assert_eq!(parse(""), KeyError::Length(0));
        assert_eq!(parse(&right[1..]), KeyError::Length(43));
        assert_eq!(parse(&right.replacen('I', "?", 1)), KeyError::Character(4));
        assert_eq!(parse(&format!("é{}", &right[1..])), KeyError::Character(1));
        assert_eq!(parse(&format!("{}=", &right[..43]).replace("g=", "h=")), KeyError::Ending);
        assert_eq!(parse(&format!("{}A", &right[..43])), KeyError::Ending);
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let secret = SecretKey(Zeroizing::new([1; KEY]));
        let shown = format!("{secret:?} {:?}", PresharedKey(Zeroizing::new([1; KEY])));
        assert!(!shown.contains(&*secret.reveal()) && !shown.contains("1, 1"), "{shown}");
        assert!(shown.contains(&secret.public().to_string()));
    }

    #[test]
    fn a_point_of_small_order_has_no_shared_secret() {
        let secret = SecretKey(Zeroizing::new([1; KEY]));
        assert!(secret.shared(&PublicKey([0; KEY])).is_none());
        assert!(secret.shared(&secret.public()).is_some());
    }
}
