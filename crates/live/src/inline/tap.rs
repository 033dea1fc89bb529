//! Copies of packets for a capture. Packets never wait for it: copies are dropped, and counted.

use super::Side;
use crate::Clock;
use base::Time;
use std::io::IoSlice;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::Duration;

/// The most copies that wait.
const MOST: usize = 16_384;

/// The most bytes of copies that wait.
const MOST_BYTES: usize = 16 << 20;

/// A copy of a packet, which may be a unit of several segments whose checksum is left to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// From where it came, or where it went.
    pub side: Side,
    /// When it was read from the device of this side, or written to it.
    pub at: Time,
    /// The packet, from the IP header on.
    pub bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: AtomicUsize,
    dropped: AtomicU64,
}

/// Takes copies of the packets from and to an address.
#[derive(Clone, Debug)]
pub(crate) struct Tap {
    address: IpAddr,
    clock: Clock,
    side: Side,
    sender: SyncSender<Captured>,
    shared: Arc<Shared>,
}

/// Where copies arrive. None are taken any more once this is dropped.
#[derive(Debug)]
pub struct Captures {
    receiver: Receiver<Captured>,
    shared: Arc<Shared>,
}

impl Captures {
    /// The next copy; `None` if there is none for so long.
    ///
    /// # Errors
    /// If there will be no more: the middlebox has ended, or another capture has begun.
    pub fn next(&self, timeout: Duration) -> Result<Option<Captured>, crate::Error> {
        match self.receiver.recv_timeout(timeout) {
            Ok(captured) => {
                self.shared.waiting.fetch_sub(captured.bytes.len(), Ordering::Relaxed);
                Ok(Some(captured))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(crate::Error::Stopped),
        }
    }

    /// Packets of which there are no copies because too many waited.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl Tap {
    /// By [`Side`], what takes the copies, and where they arrive.
    pub(crate) fn new(address: IpAddr, clock: Clock) -> ([Tap; 2], Captures) {
        let (sender, receiver) = mpsc::sync_channel(MOST);
        let shared = Arc::<Shared>::default();
        let tap = |side| Tap {
            address: address.to_canonical(),
            clock,
            side,
            sender: sender.clone(),
            shared: Arc::clone(&shared),
        };
        (Side::ALL.map(tap), Captures { receiver, shared })
    }

    /// Copies a packet if it is one of those. `pieces` begin with `before` bytes of something else, in the first of
    /// them, which has the IP header, too. Says whether the capture goes on, as far as it knows.
    pub(crate) fn take(&self, pieces: &[IoSlice<'_>], before: usize) -> bool {
        let Some(first) = pieces.first().and_then(|piece| piece.get(before..)) else { return true };
        if !concerns(first, self.address) {
            return true;
        }
        let len = pieces.iter().map(|piece| piece.len()).sum::<usize>() - before;
        // Only this thread adds.
        if self.shared.waiting.load(Ordering::Relaxed) + len <= MOST_BYTES {
            let mut bytes = Vec::with_capacity(len);
            bytes.extend_from_slice(first);
            pieces[1..].iter().for_each(|piece| bytes.extend_from_slice(piece));
            self.shared.waiting.fetch_add(len, Ordering::Relaxed);
            let captured = Captured { side: self.side, at: self.clock.now(), bytes };
            match self.sender.try_send(captured) {
                Ok(()) => return true,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(_)) => {
                    self.shared.waiting.fetch_sub(len, Ordering::Relaxed);
                }
            }
        }
        self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// Whether an address is the source or the destination of a packet.
fn concerns(packet: &[u8], address: IpAddr) -> bool {
    let is = |at: usize, octets: &[u8]| packet.get(at..at + octets.len()) == Some(octets);
    match (packet.first().map(|first| first >> 4), address) {
        (Some(4), IpAddr::V4(address)) => is(12, &address.octets()) || is(16, &address.octets()),
        (Some(6), IpAddr::V6(address)) => is(8, &address.octets()) || is(24, &address.octets()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(to: u8, len: usize) -> Vec<u8> {
        let mut packet = vec![0x45; len];
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, to]);
        packet
    }

    #[test]
    fn copies_are_of_one_address_and_whole() {
        let ([_, wan], captures) = Tap::new("10.0.0.2".parse().unwrap(), Clock::start());
        for to in [2, 3] {
            let bytes = packet(to, 40);
            let with_header = [&[9; 10], &bytes[..]].concat();
            wan.take(&[IoSlice::new(&with_header), IoSlice::new(b"payload")], 10);
        }
        let captured = captures.next(Duration::ZERO).unwrap().unwrap();
        assert_eq!(
            (captured.side, captured.bytes),
            (Side::Wan, [&packet(2, 40), &b"payload"[..]].concat())
        );
        assert_eq!(captures.next(Duration::ZERO).unwrap(), None);
        drop(captures);
        assert!(!wan.take(&[IoSlice::new(&packet(2, 40))], 0));
    }

    #[test]
    fn too_many_copies_are_dropped_and_counted_and_there_is_room_once_they_are_taken() {
        let (taps, captures) = Tap::new("10.0.0.2".parse().unwrap(), Clock::start());
        let bytes = packet(2, 60_000);
        let fit = (MOST_BYTES / 60_000) as u64;
        for _ in 0..fit + 5 {
            taps[0].take(&[IoSlice::new(&bytes)], 0);
        }
        assert_eq!(captures.dropped(), 5);
        assert!(captures.next(Duration::ZERO).unwrap().is_some());
        taps[0].take(&[IoSlice::new(&bytes)], 0);
        assert_eq!(captures.dropped(), 5);
        drop(taps);
        let rest = std::iter::from_fn(|| captures.next(Duration::ZERO).ok()).count();
        assert_eq!(rest as u64, fit);
    }
}
