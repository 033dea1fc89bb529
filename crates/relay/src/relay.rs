//! One split connection: what goes from one half to the other.

use host::Transport;
use serde::{Deserialize, Serialize};
use tcp::Events;

/// A half of a split connection, by the end that it speaks with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// How many bytes a half may hold that are written to it and not yet acknowledged. Beyond them, the
/// other half's receive window closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity(Option<u64>);

impl Capacity {
    /// No limit.
    pub const UNLIMITED: Capacity = Capacity(None);

    /// This many bytes, at least one.
    #[must_use]
    pub fn bytes(bytes: u64) -> Capacity {
        Capacity(Some(bytes.max(1)))
    }

    /// The bytes that may be added to those held.
    fn room(self, held: u64) -> u64 {
        self.0.map_or(u64::MAX, |bytes| bytes.saturating_sub(held))
    }

    /// Reading starts again once this many bytes are held: a quarter is free, so that it is not
    /// done for every acknowledgment.
    fn low_water(self) -> u64 {
        self.0.map_or(u64::MAX, |bytes| bytes - bytes.div_ceil(4))
    }
}

/// The state of a split connection besides that of its halves.
///
/// The bytes between the halves are in the halves: received by one and not yet read, or written to the
/// other and not yet acknowledged. So the memory in each direction is at most the receive window of one and
/// the [`Capacity`] of the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    capacity: Capacity,
    halves: [State; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// Its peer's FIN and all data before it have arrived.
    is_ended: bool,
    /// It is closed, by a FIN after all data or by a reset.
    is_closed: bool,
    /// The connection is over.
    is_over: bool,
}

impl Relay {
    /// A relay between two open halves.
    #[must_use]
    pub fn new(capacity: Capacity) -> Relay {
        Relay { capacity, halves: [State::default(); 2] }
    }

    /// Whether both halves are over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.halves.iter().all(|half| half.is_over)
    }

    /// Handles the events of one half, `near`. Without `far`, the other half is over, and gone.
    ///
    /// Its data goes to the other half, as far as that has room, and its end after all data: a FIN becomes
    /// a FIN (half-close stays half-close), and a reset, a timeout or an unreachable peer becomes a reset.
    pub fn handle<T: Transport>(
        &mut self,
        side: Side,
        events: Events,
        near: &mut T,
        far: Option<&mut T>,
    ) {
        let half = &mut self.halves[side as usize];
        half.is_ended |= events.contains(Events::PEER_CLOSED);
        half.is_over |= events.contains(Events::CLOSED);
        let Some(far) = far else { return };
        let failed = Events::RESET | Events::TIMED_OUT | Events::UNREACHABLE;
        if events.intersects(failed) {
            return self.fail(side, far);
        }
        self.pass(side, near, far);
        if events.contains(Events::WRITABLE) {
            self.pass(side.other(), far, near);
        }
    }

    /// Resets the other half after the failure of one.
    fn fail<T: Transport>(&mut self, side: Side, far: &mut T) {
        let other = &mut self.halves[side.other() as usize];
        if !other.is_over {
            other.is_closed = true;
            far.abort();
        }
    }

    /// Passes on what one half has received.
    fn pass<T: Transport>(&mut self, side: Side, near: &mut T, far: &mut T) {
        let State { is_ended, is_over, .. } = self.halves[side as usize];
        let other = &mut self.halves[side.other() as usize];
        if other.is_closed || other.is_over {
            return;
        }
        loop {
            // What an ended connection has received is moved all at once: it will be removed.
            let room = match is_over {
                true => u64::MAX,
                false => self.capacity.room(far.unacknowledged()),
            };
            if room == 0 {
                return far.notify_below(self.capacity.low_water());
            }
            let Some(payload) = near.read_up_to(u32::try_from(room).unwrap_or(u32::MAX)) else {
                break;
            };
            far.write(payload.stream, payload.offset, u64::from(payload.len));
        }
        if is_ended {
            other.is_closed = true;
            far.close();
        }
    }
}
