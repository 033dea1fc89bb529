//! Accounting of the memory of a host's connections, and its limit (as Linux's `tcp_mem`).

use super::Host;
use crate::Application;
use tcp::{Pressure, State};

/// The memory of all connections, if that is limited.
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

    /// Whether new connections are refused.
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
    /// Counts a connection's memory anew and sets its memory pressure, before each segment and
    /// after each step. The cost does not depend on the number of connections.
    #[inline]
    pub(super) fn count_memory(&mut self, id: u32) {
        if self.memory.is_limited() {
            self.recount_memory(id);
        }
    }

    #[cold]
    fn recount_memory(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        let memory = match slot.connection.state() {
            State::Closed => 0,
            // Both count the bytes that are to be read.
            _ => {
                let bytes = slot.application.memory();
                slot.connection.memory() + bytes.saturating_sub(slot.connection.readable())
            }
        };
        self.memory.used += memory;
        self.memory.used -= core::mem::replace(&mut slot.memory_counted, memory);
        let pressure = self.memory.pressure();
        slot.connection.set_pressure(pressure);
        slot.application.set_pressure(pressure);
    }

    /// Applies the limit of the settings.
    pub(super) fn limit_memory(&mut self) {
        self.memory = Memory { used: 0, limit: self.settings.memory };
        for slot in self.slots.iter_mut() {
            slot.memory_counted = 0;
            slot.connection.set_pressure(Pressure::None);
            slot.application.set_pressure(Pressure::None);
        }
        for index in 0..self.slots.count() {
            if self.slots.get(index).is_some() {
                self.count_memory(index as u32);
            }
        }
    }

    /// Memory of all connections, bytes, if that is limited ([`super::Settings::memory`]).
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory.used
    }
}
