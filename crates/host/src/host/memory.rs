//! The memory of a host's connections, and what they do without when it is short (as Linux's `tcp_mem`).

use super::Host;
use crate::Application;
use tcp::{Pressure, State};

/// What all connections take, if that is limited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    used: u64,
    limit: Option<u64>,
}

impl Memory {
    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether no more connections are let in.
    pub(super) fn is_used_up(&self) -> bool {
        self.limit.is_some_and(|limit| self.used >= limit)
    }

    fn pressure(&self) -> Pressure {
        match self.limit {
            Some(limit) if self.used >= limit - limit / 4 => Pressure::Window,
            Some(limit) if self.used >= limit / 2 => Pressure::OutOfOrder,
            _ => Pressure::None,
        }
    }
}

impl<A: Application> Host<A> {
    /// A connection may have come to take more memory, or less, and hears how scarce it is: before it is
    /// given a segment, and after everything. The same work however many connections there are.
    #[inline]
    pub(super) fn weigh(&mut self, id: u32) {
        if self.memory.is_limited() {
            self.weigh_anew(id);
        }
    }

    #[cold]
    fn weigh_anew(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        let takes = match slot.connection.state() {
            State::Closed => 0,
            _ => slot.connection.memory(),
        };
        self.memory.used += takes;
        self.memory.used -= core::mem::replace(&mut slot.charged, takes);
        slot.connection.set_pressure(self.memory.pressure());
    }

    /// The limit may be another one.
    pub(super) fn limit_memory(&mut self) {
        self.memory = Memory { used: 0, limit: self.settings.memory };
        for slot in self.slots.iter_mut() {
            slot.charged = 0;
            slot.connection.set_pressure(Pressure::None);
        }
        for index in 0..self.slots.count() {
            if self.slots.get(index).is_some() {
                self.weigh(index as u32);
            }
        }
    }

    /// Bytes of memory that all connections take, if that is limited ([`super::Settings::memory`]).
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory.used
    }
}
