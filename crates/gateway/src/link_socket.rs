//! The socket at which the driver of the hop's device, or its agent, reports frames that arrived damaged.

use crate::counted::Counted;
use crate::placed::Placed;
use base::Time;
use live::inline::{Received, Underlay};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::{FrameCounters, LinkReport, Packet};

/// What the reports have said so far.
#[derive(Debug, Default)]
pub(crate) struct LinkCounts {
    /// Frames that were reported one by one.
    reported: AtomicU64,
    /// Of these, those without a TCP segment that could be read.
    unread: AtomicU64,
    /// By the link's own counters, frames that arrived intact.
    received: AtomicU64,
    /// Likewise, those that arrived damaged.
    damaged: AtomicU64,
}

impl Counted for LinkCounts {
    fn each(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let mut read = |name, value: &AtomicU64| count(name, value.load(Ordering::Relaxed));
        read("damaged frames reported", &self.reported);
        read("damaged frames without a segment", &self.unread);
        read(LinkCounts::RECEIVED, &self.received);
        read(LinkCounts::DAMAGED, &self.damaged);
    }
}

impl LinkCounts {
    /// The name of the link's own count of intact frames.
    pub(crate) const RECEIVED: &str = "frames of the link received";
    /// The name of its count of damaged ones.
    pub(crate) const DAMAGED: &str = "frames of the link damaged";
}

/// The socket.
pub(crate) struct LinkSocket {
    socket: UnixDatagram,
    counts: Arc<LinkCounts>,
    /// The link's counters at their last report.
    last: FrameCounters,
    /// Datagrams that were no reports.
    refused: u64,
    _placed: Placed,
}

impl LinkSocket {
    /// Listens at a path, where only the owner may send.
    pub(crate) fn open(path: &Path, counts: Arc<LinkCounts>) -> io::Result<LinkSocket> {
        let (socket, placed) = Placed::bind(path, |path| UnixDatagram::bind(path))?;
        socket.set_nonblocking(true)?;
        let last = FrameCounters::default();
        Ok(LinkSocket { socket, counts, last, refused: 0, _placed: placed })
    }

    /// The damaged segment of a report, if it is one and has one.
    fn take(&mut self, datagram: &[u8]) -> Option<Box<Packet>> {
        let add = |to: &AtomicU64, count| {
            to.fetch_add(count, Ordering::Relaxed);
        };
        match LinkReport::parse(datagram) {
            Ok(LinkReport::Damaged(segment)) => {
                add(&self.counts.reported, 1);
                add(&self.counts.unread, segment.is_none().into());
                segment
            }
            Ok(LinkReport::Counters(now)) => {
                // Counters that have fallen have started anew.
                let since = |now: u64, last| now.checked_sub(last).unwrap_or(now);
                add(&self.counts.received, since(now.received, self.last.received));
                add(&self.counts.damaged, since(now.damaged, self.last.damaged));
                self.last = now;
                None
            }
            Err(_) => {
                self.refused += 1;
                None
            }
        }
    }
}

impl Underlay for LinkSocket {
    fn carries(&self, _: &Packet) -> bool {
        false
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self, _: Time, memory: &mut [u8]) -> Received {
        match self.socket.recv(memory) {
            Ok(len) => match self.take(&memory[..len]) {
                Some(segment) => Received::Damaged(segment),
                None => Received::Other,
            },
            Err(error) if error.kind() == ErrorKind::Interrupted => Received::Other,
            Err(_) => Received::Nothing,
        }
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn send(&mut self, _: Time, _: &Packet, _: &mut dyn FnMut(&mut Vec<u8>) -> bool) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_start_anew_go_on_from_what_was_counted() {
        let path = std::env::temp_dir().join(format!("lasthopd-{}-link.sock", std::process::id()));
        let counts = Arc::new(LinkCounts::default());
        let mut socket = LinkSocket::open(&path, Arc::clone(&counts)).unwrap();
        let agent = UnixDatagram::unbound().unwrap();
        let reports = [(100, 3), (150, 3), (20, 1), (25, 2)]
            .map(|(received, damaged)| FrameCounters { received, damaged }.to_bytes().to_vec());
        for report in reports.into_iter().chain([vec![], vec![9; 300], vec![1, 0, 0, 0]]) {
            agent.send_to(&report, &path).unwrap();
            assert_eq!(socket.receive(Time::ZERO, &mut [0; 2048]), Received::Other);
        }
        assert_eq!(socket.receive(Time::ZERO, &mut [0; 2048]), Received::Nothing);
        let mut all = Vec::new();
        counts.each(&mut |_, value| all.push(value));
        assert_eq!((all, socket.refused()), (vec![1, 1, 175, 5], 2));
        drop(socket);
        assert!(!path.exists());
    }
}
