//! A set of numbers from a sliding range.

use serde::{Deserialize, Serialize};

/// The members, among the numbers from `begin` on, of a set to which none below is ever added again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Bits {
    /// Each word has 64 numbers; their count is a power of two, or there is none.
    words: Vec<u64>,
    begin: u64,
}

impl Bits {
    /// The first number of the range.
    pub(crate) fn begin(&self) -> u64 {
        self.begin
    }

    fn room(&self) -> u64 {
        64 * self.words.len() as u64
    }

    /// The first number beyond the room.
    fn limit(&self) -> u64 {
        self.begin / 64 * 64 + self.room()
    }

    fn word(&self, number: u64) -> u64 {
        if number >= self.limit() {
            return 0;
        }
        let place = (number / 64) as usize & self.words.len().wrapping_sub(1);
        self.words.get(place).copied().unwrap_or(0)
    }

    /// Whether a number of the range is a member.
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.word(number) >> (number % 64) & 1 == 1
    }

    /// Adds a number of the range.
    pub(crate) fn insert(&mut self, number: u64) {
        debug_assert!(number >= self.begin);
        while number >= self.limit() {
            self.grow();
        }
        let place = (number / 64) as usize & (self.words.len() - 1);
        self.words[place] |= 1 << (number % 64);
    }

    #[cold]
    fn grow(&mut self) {
        let mut words = vec![0; (2 * self.words.len()).max(4)];
        let mask = words.len() - 1;
        for index in self.begin / 64..self.limit() / 64 {
            words[index as usize & mask] = self.word(64 * index);
        }
        self.words = words;
    }

    /// The first number from `number` on that is no member.
    pub(crate) fn first_absent(&self, number: u64) -> u64 {
        let mut number = number;
        loop {
            let ones = (self.word(number) >> (number % 64)).trailing_ones();
            number += u64::from(ones);
            if ones == 0 || !number.is_multiple_of(64) {
                return number;
            }
        }
    }

    /// Discards all members below `begin`.
    pub(crate) fn advance(&mut self, begin: u64) {
        if begin >= self.limit() {
            self.words.fill(0);
        } else {
            for index in self.begin / 64..begin / 64 {
                let place = index as usize & (self.words.len() - 1);
                self.words[place] = 0;
            }
        }
        self.begin = self.begin.max(begin);
    }

    /// The 32 numbers from `number` on, which is in the range; the first is the lowest bit.
    pub(crate) fn bits(&self, number: u64) -> u32 {
        let shift = number % 64;
        let low = self.word(number) >> shift;
        match shift > 32 {
            true => (low | self.word(number + 64) << (64 - shift)) as u32,
            false => low as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(steps in prop::collection::vec((any::<bool>(), 0u64..700), 0..200)) {
            let (mut bits, mut model, mut begin) = (Bits::default(), BTreeSet::new(), 0);
            for (inserts, by) in steps {
                if inserts {
                    bits.insert(begin + by);
                    model.insert(begin + by);
                } else {
                    begin += by / 8;
                    bits.advance(begin);
                    model.retain(|number| *number >= begin);
                }
                prop_assert_eq!(bits.begin(), begin);
                for number in begin..begin + 800 {
                    prop_assert_eq!(bits.contains(number), model.contains(&number));
                }
                let absent = (begin..).find(|number| !model.contains(number));
                prop_assert_eq!(Some(bits.first_absent(begin)), absent);
                for start in [begin, begin + 17, begin + by] {
                    let expected = (0..32).filter(|bit| model.contains(&(start + bit)));
                    let expected: u64 = expected.map(|bit| 1 << bit).sum();
                    prop_assert_eq!(u64::from(bits.bits(start)), expected);
                }
            }
        }
    }
}
