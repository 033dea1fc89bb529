//! The buffers that packets are read into.
//!
//! A received buffer that holds much payload is handed to its program and comes back when the
//! program has read it, so that the next packet is read into memory that is still in the cache.

use bytes::Bytes;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The length of every buffer: the largest packet with the header of the device in front of it.
pub(crate) const LEN: usize = crate::tun::VIRTIO_HEADER_LEN + 40 + u16::MAX as usize;

/// The most buffers that are kept for later, by all stacks of the process: 4 MiB.
const SPARE: usize = 64;

static POOL: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn pool() -> MutexGuard<'static, Vec<Vec<u8>>> {
    // A list of buffers is consistent at every point under the lock.
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A buffer of [`LEN`] bytes, whatever they are.
pub(crate) fn take() -> Vec<u8> {
    let spare = pool().pop();
    spare.unwrap_or_else(|| vec![0; LEN])
}

/// A range of a buffer; the buffer is spare again when no reader has bytes of it.
pub(crate) fn share(buffer: Vec<u8>, range: Range<usize>) -> Bytes {
    Bytes::from_owner(Lent(buffer)).slice(range)
}

/// A buffer that is being read.
struct Lent(Vec<u8>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut pool = pool();
        if self.0.len() == LEN && pool.len() < SPARE {
            pool.push(std::mem::take(&mut self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_its_last_reader_has_gone_and_not_too_many_are_kept() {
        let mut all: Vec<_> = (0..SPARE + 9).map(|_| share(take(), 5..9)).collect();
        assert!(all.iter().all(|bytes| bytes.len() == 4));
        let one = all[0].clone();
        all.clear();
        // Other tests take some, too.
        assert!((1..=SPARE).contains(&pool().len()));
        assert_eq!(take().len(), LEN);
        assert_eq!(one.len(), 4);
    }
}
