//! Payloads that are too long for a datagram, in parts. They are rare: what an end has cut to a length before it
//! learns that the path takes less.

use std::collections::VecDeque;

/// Bytes of a part's header: the number of the payload, that of the part, and how many parts there are.
pub(crate) const PART: usize = 6;

/// Writes the header of a part.
pub(crate) fn header(number: u32, part: u8, of: u8) -> [u8; PART] {
    let [a, b, c, d] = number.to_be_bytes();
    [a, b, c, d, part, of]
}

/// Payloads of which some parts have arrived.
#[derive(Default)]
pub(crate) struct Parts {
    /// The latest last.
    incomplete: VecDeque<Incomplete>,
    /// One of which all have.
    pub(crate) joined: Option<Vec<u8>>,
}

struct Incomplete {
    number: u32,
    parts: Vec<Option<Vec<u8>>>,
    len: usize,
}

impl Parts {
    /// The most payloads that wait for parts, each of at most [`Parts::LONGEST`] bytes.
    const MOST: usize = 8;
    const LONGEST: usize = 1 << 16;

    /// Takes a part. Returns false if it is none.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> bool {
        let Some((&[a, b, c, d, part, of], bytes)) = bytes.split_first_chunk::<PART>() else {
            return false;
        };
        if part >= of {
            return false;
        }
        let number = u32::from_be_bytes([a, b, c, d]);
        let place = self.incomplete.iter().position(|one| one.number == number);
        let place = place.unwrap_or_else(|| {
            if self.incomplete.len() == Parts::MOST {
                self.incomplete.pop_front();
            }
            let parts = vec![None; of.into()];
            self.incomplete.push_back(Incomplete { number, parts, len: 0 });
            self.incomplete.len() - 1
        });
        let Incomplete { parts, len, .. } = &mut self.incomplete[place];
        let Some(slot @ None) = parts.get_mut(usize::from(part)) else { return false };
        *slot = Some(bytes.to_vec());
        *len += bytes.len();
        let is_whole = parts.iter().all(Option::is_some);
        if is_whole || *len > Parts::LONGEST {
            let all = self.incomplete.remove(place).filter(|one| one.len <= Parts::LONGEST);
            self.joined = all.map(|one| one.parts.into_iter().flatten().flatten().collect());
        }
        true
    }

    pub(crate) fn clear(&mut self) {
        *self = Parts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: u32, part: u8, of: u8, bytes: &[u8]) -> Vec<u8> {
        [&header(number, part, of), bytes].concat()
    }

    #[test]
    fn parts_are_joined_in_whatever_order_they_arrive() {
        let mut parts = Parts::default();
        for (number, at, bytes) in [(1, 2, &b"c"[..]), (2, 0, b"x"), (1, 0, b"a"), (1, 1, b"b")] {
            assert_eq!(parts.joined, None);
            assert!(parts.take(&part(number, at, 3, bytes)));
        }
        assert_eq!(parts.joined.take().as_deref(), Some(&b"abc"[..]));
        assert_eq!(parts.incomplete.len(), 1);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut parts = Parts::default();
        for number in 0..1000 {
            assert!(parts.take(&part(number, 0, 255, &[0; 1000])));
        }
        assert_eq!(parts.incomplete.len(), Parts::MOST);
        for at in 0..255 {
            parts.take(&part(5000, at, 255, &[0; 1000]));
        }
        assert_eq!(parts.joined, None, "it is too long");
        let held: usize = parts.incomplete.iter().map(|one| one.len).sum();
        assert!(held <= Parts::MOST * Parts::LONGEST);
    }

    #[test]
    fn what_contradicts_is_refused() {
        let mut parts = Parts::default();
        for wrong in [&b"12345"[..], &part(1, 0, 0, b"x"), &part(1, 3, 3, b"x")] {
            assert!(!parts.take(wrong));
        }
        assert!(parts.take(&part(1, 0, 2, b"x")));
        assert!(!parts.take(&part(1, 0, 2, b"y")), "it has arrived");
        assert!(!parts.take(&part(1, 5, 9, b"y")), "there were two");
        assert!(parts.take(&part(1, 1, 2, b"z")));
        assert_eq!(parts.joined.as_deref(), Some(&b"xz"[..]));
    }
}
