//! Unpredictable copy numbers.

use core::hash::Hasher;
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use wire::CopyId;

/// A keyed permutation of the copy numbers: no two copies get the same nonce until all 2^32 are
/// used, and none has to be stored.
///
/// Four rounds of a Feistel network over a keyed hash (Luby and Rackoff 1988).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Nonces(u64);

impl Nonces {
    const ROUNDS: u64 = 4;

    /// A permutation by a secret key.
    pub(super) fn new(key: u64) -> Nonces {
        Nonces(key)
    }

    /// The nonce of a copy.
    pub(super) fn of(self, copy: CopyId) -> CopyId {
        // 0 means "no copy" and is not used as a nonce.
        match self.permute(copy.0) {
            0 => CopyId(self.permute(0)),
            nonce => CopyId(nonce),
        }
    }

    /// The copy of a nonce.
    pub(super) fn copy(self, nonce: CopyId) -> CopyId {
        match self.invert(nonce.0) {
            0 => CopyId(self.invert(0)),
            copy => CopyId(copy),
        }
    }

    fn permute(self, number: u32) -> u32 {
        let ends = ((number >> 16) as u16, number as u16);
        let (left, right) =
            (0..Nonces::ROUNDS).fold(ends, |(l, r), round| (r, l ^ self.mix(round, r)));
        u32::from(left) << 16 | u32::from(right)
    }

    fn invert(self, number: u32) -> u32 {
        let ends = ((number >> 16) as u16, number as u16);
        let (left, right) =
            (0..Nonces::ROUNDS).rev().fold(ends, |(l, r), round| (r ^ self.mix(round, l), l));
        u32::from(left) << 16 | u32::from(right)
    }

    fn mix(self, round: u64, half: u16) -> u16 {
        let mut hasher = SipHasher13::new_with_keys(self.0, round);
        hasher.write(&half.to_le_bytes());
        hasher.finish() as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_copy_comes_back_from_its_number_and_none_is_zero(key: u64, copy in 1u32..) {
            let nonces = Nonces::new(key);
            let nonce = nonces.of(CopyId(copy));
            prop_assert_ne!(nonce, CopyId::NONE);
            prop_assert_eq!(nonces.copy(nonce), CopyId(copy));
        }

        /// What it takes to be hit by a number drawn blindly is all 32 bits.
        #[test]
        fn numbers_in_a_row_differ_in_all_bits(key: u64) {
            let nonces = Nonces::new(key);
            let bits = (1u32..200).map(|copy| nonces.of(CopyId(copy)).0 ^ nonces.of(CopyId(copy + 1)).0);
            prop_assert_eq!(bits.fold(0, |all, one| all | one), u32::MAX);
        }
    }

    #[test]
    fn the_one_copy_that_would_get_zero_gets_what_zero_would_have_got() {
        let nonces = Nonces::new(99);
        let unlucky = nonces.invert(0);
        assert_eq!(nonces.of(CopyId(unlucky)), CopyId(nonces.permute(0)));
        assert_eq!(nonces.copy(CopyId(nonces.permute(0))), CopyId(unlucky));
    }
}
