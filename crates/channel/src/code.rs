//! Message authentication codes of the headers of transport packets. The receiver's kernel can check them, and so keep
//! forged packets out of the queue of those that the peer sent.

use crate::packet::CODE;
use core::fmt;
use siphasher::sip::SipHasher24;

/// The key of the authentication codes of a session's headers in one direction. It neither opens a packet nor makes its
/// tag: who has it can only fill the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodeKey([u8; 16]);

impl CodeKey {
    /// The key with these bytes.
    #[must_use]
    pub const fn new(bytes: &[u8; 16]) -> CodeKey {
        CodeKey(*bytes)
    }

    /// Its bytes, as SipHash takes them.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The authentication code of a packet with this receiver's index and number: the lower half of SipHash-2-4 over both as they are in
    /// its header.
    #[must_use]
    pub fn code(&self, index: u32, number: u32) -> [u8; CODE] {
        let header = u64::from(index) << 32 | u64::from(number);
        let hash = SipHasher24::new_with_key(&self.0).hash(&header.to_be_bytes());
        (hash as u32).to_be_bytes()
    }
}

impl fmt::Debug for CodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of 8 bytes of SipHash's authors (Aumasson and Bernstein, 2012, its reference code).
    #[test]
    fn a_code_is_the_lower_half_of_siphash_2_4() {
        let key = CodeKey::new(&core::array::from_fn(|at| at as u8));
        assert_eq!(key.code(0x0001_0203, 0x0405_0607), [0x9a, 0x93, 0x24, 0x62]);
    }
}
