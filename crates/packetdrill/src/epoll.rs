//! The state of an epoll descriptor.

use std::collections::BTreeMap;
use std::os::fd::{OwnedFd, RawFd};

/// A descriptor that an epoll descriptor watches.
#[derive(Debug)]
pub(crate) struct Epoll {
    pub(crate) _fd: OwnedFd,
    pub(crate) interests: BTreeMap<RawFd, Interest>,
}

#[derive(Debug)]
pub(crate) struct Interest {
    pub(crate) events: u32,
    pub(crate) data: u64,
    /// The number of events when it was last reported.
    pub(crate) seen: Option<u64>,
}

impl Epoll {
    pub(crate) fn forget(&mut self, fd: RawFd) {
        self.interests.remove(&fd);
    }
}

/// A change of what an epoll descriptor watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add { events: u32, data: u64 },
    Modify { events: u32, data: u64 },
    Delete,
}
