//! A few bytes in place.

use core::fmt;
use core::hash::{Hash, Hasher};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Up to `N` bytes (255 at most). Emptying it touches one byte.
#[derive(Clone, Copy)]
pub(crate) struct Inline<const N: usize> {
    len: u8,
    bytes: [u8; N],
}

impl<const N: usize> Inline<N> {
    pub(crate) const EMPTY: Inline<N> = Inline { len: 0, bytes: [0; N] };

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds bytes behind those that are there; false, and nothing done, if they do not fit.
    #[must_use]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        let start = self.len();
        let end = start + bytes.len();
        let fits = end <= N;
        if fits {
            self.bytes[start..end].copy_from_slice(bytes);
            self.len = end as u8;
        }
        fits
    }
}

impl<const N: usize> PartialEq for Inline<N> {
    fn eq(&self, other: &Inline<N>) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<const N: usize> Eq for Inline<N> {}

impl<const N: usize> Hash for Inline<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl<const N: usize> fmt::Debug for Inline<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl<const N: usize> Serialize for Inline<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize(serializer)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Inline<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Inline<N>, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        let mut inline = Inline::EMPTY;
        if inline.push(&bytes) {
            Ok(inline)
        } else {
            Err(de::Error::invalid_length(bytes.len(), &"fewer bytes"))
        }
    }
}
