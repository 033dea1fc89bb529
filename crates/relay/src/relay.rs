//! One split connection: what goes from one half to the other.

use base::settings::{Kind, Setting, names};
use base::{LowWater, Time};
use host::Transport;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tcp::Events;
use wire::Payload;

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

/// When the end of a stream is acknowledged to its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Teardown {
    /// At once, as data is (`ishac2001` §2). If the other half fails afterwards, the sender does not learn
    /// it.
    #[default]
    Spoofed,
    /// Once the receiver has acknowledged all data and the end: a sender whose close was acknowledged
    /// knows that everything has arrived.
    EndToEnd,
}

impl Setting for Teardown {
    const KIND: Kind = Kind::Words(names::<Teardown>);
}

/// How a relay treats its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The most bytes that a half may hold that are written to it and not yet acknowledged; without a limit if
    /// `None`. Beyond them, the other half's receive window closes. At least 1. Of them, no more wait to be
    /// sent than are in flight, but for `waiting`.
    pub capacity: Option<u64>,
    /// Bytes that may wait to be sent however few are in flight: enough for a start, and for what a timer is late.
    pub waiting: u64,
    /// When the end of a stream is acknowledged.
    pub teardown: Teardown,
}

/// Bytes that may be held in each direction however little memory there is, so that the connection goes on.
const LEAST_HELD: u64 = 16 << 10;

impl Default for Policy {
    /// Without a limit; a quarter of a mebibyte may wait.
    fn default() -> Policy {
        Policy { capacity: None, waiting: 256 << 10, teardown: Teardown::default() }
    }
}

impl Policy {
    /// The limits for what `half` holds now, where no more than `share` bytes may be added to that.
    fn limits<T: Transport + ?Sized>(self, half: &T, share: Option<u64>) -> Limits {
        let (held, unsent) = (half.unacknowledged(), half.unsent());
        let shared = share.map_or(u64::MAX, |share| held.saturating_add(share).max(LEAST_HELD));
        let waiting = match self.capacity {
            Some(_) => self.waiting.max(held.saturating_sub(unsent)).max(1),
            None => u64::MAX,
        };
        Limits { held: self.capacity.unwrap_or(u64::MAX).min(shared).max(1), waiting }
    }
}

/// How many bytes a half may hold.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Written and not yet acknowledged.
    held: u64,
    /// Written and not yet sent. A capacity is not filled for its own sake: as many bytes may wait as are in
    /// flight, so that the window can double in a round trip (Linux: `tcp_sndbuf_expand`). More would only leave
    /// the caches.
    waiting: u64,
}

impl Limits {
    /// The bytes that may be added to those of `half`.
    fn room<T: Transport + ?Sized>(self, half: &T) -> u64 {
        let held = self.held.saturating_sub(half.unacknowledged());
        held.min(self.waiting.saturating_sub(half.unsent()))
    }

    /// When there is room again in `half`, which has none: not for every acknowledgment. While a segment is repaired,
    /// nothing is acknowledged; what waits to be sent must not run out meanwhile.
    fn low_water<T: Transport + ?Sized>(self, half: &T) -> LowWater {
        match self.waiting <= half.unsent() {
            true => LowWater::Unsent(self.waiting / 2),
            false => LowWater::Unacknowledged(self.held - self.held.div_ceil(4)),
        }
    }

    /// The bytes of a segment that may be added if nothing else is held.
    fn segment(self, size: u32) -> u64 {
        self.held.min(self.waiting).min(size.into())
    }

    /// When there is room for such a segment in a half with nothing to be sent.
    fn low_water_for(self, bytes: u64) -> LowWater {
        LowWater::Unacknowledged((self.held - self.held.div_ceil(4)).min(self.held - bytes))
    }
}

/// What may follow a segment that was passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another one.
    Segment,
    /// Another one, once the half that is to send it has sent all that it has got: its congestion
    /// window, its peer's window or its pacing held that back.
    Blocked,
    /// Nothing until the next event of either half.
    Nothing,
}

/// The state of a split connection besides that of its halves.
///
/// The bytes between the halves are in the halves: received by one and not yet read, or written to the
/// other and not yet acknowledged. So the memory in each direction is at most the receive window of one and
/// the [`Policy::capacity`] of the other.
///
/// A direction may be scheduled ([`Relay::schedule`]): then its bytes stay in the half that has received
/// them until [`Relay::pass_segment`] is called, and the window of that half holds its peer back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    policy: Policy,
    /// The bytes that its user may hold besides those that he does; without a limit if `None`.
    #[serde(skip)]
    share: Option<u64>,
    /// By [`Side`].
    halves: [State; 2],
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// All that its peer sends has arrived, up to the end.
    is_ended: bool,
    /// It is closed towards its peer, after all data or by a reset.
    is_closed: bool,
    /// The connection is over.
    is_over: bool,
    /// What is written to it is scheduled.
    is_scheduled: bool,
    /// What its peer has sent and was not passed on when it was over.
    rest: VecDeque<Payload>,
    /// Bytes of its peer's that were passed on by this box.
    #[serde(skip)]
    passed: u64,
}

impl State {
    /// The next run of bytes of its peer, at most `bytes`.
    fn read<T: Transport + ?Sized>(&mut self, half: Option<&mut T>, bytes: u32) -> Option<Payload> {
        let Some(first) = self.rest.front_mut() else { return half?.read_up_to(bytes) };
        let len = first.len.min(bytes);
        let read = Payload { len, ..*first };
        (first.offset, first.len) = (first.offset + u64::from(len), first.len - len);
        if first.len == 0 {
            self.rest.pop_front();
        }
        Some(read)
    }
}

impl Relay {
    /// A relay, whose halves are to join ([`Relay::join`]).
    #[must_use]
    pub fn new(policy: Policy) -> Relay {
        Relay { policy, share: None, halves: Default::default() }
    }

    /// So many bytes may be held in each direction besides those that are, until this is called again.
    pub(crate) fn set_share(&mut self, share: Option<u64>) {
        self.share = share;
    }

    /// A half joins; to be called before its first event is handled.
    pub fn join<T: Transport + ?Sized>(&self, half: &mut T) {
        if self.policy.teardown == Teardown::EndToEnd {
            half.hold_end();
        }
    }

    /// From now on, what is written to the half of a side is scheduled.
    pub fn schedule(&mut self, side: Side) {
        self.halves[side as usize].is_scheduled = true;
    }

    /// Whether it is.
    #[must_use]
    pub fn is_scheduled(&self, side: Side) -> bool {
        self.halves[side as usize].is_scheduled
    }

    /// What is written to the half of a side, `far`, is not scheduled any more.
    pub(crate) fn unschedule<T: Transport + ?Sized>(&mut self, side: Side, far: &mut T) {
        let [from, to] = self.both(side.other());
        to.is_scheduled = false;
        for Payload { stream, offset, len } in from.rest.drain(..) {
            from.passed += u64::from(len);
            far.write(stream, offset, len.into());
        }
        if from.is_over && from.is_ended && !to.is_closed {
            to.is_closed = true;
            far.close();
        }
    }

    /// What is held besides the bytes in the halves.
    pub(crate) fn rest(&self) -> impl Iterator<Item = Payload> {
        self.halves.iter().flat_map(|half| &half.rest).copied()
    }

    /// Bytes of the end at a side that were passed on to the other half.
    pub(crate) fn passed(&self, side: Side) -> u64 {
        self.halves[side as usize].passed
    }

    /// So many bytes were passed on before this box had the relay, by [`Side`].
    pub(crate) fn continue_passed(&mut self, passed: [u64; 2]) {
        for (half, passed) in self.halves.iter_mut().zip(passed) {
            half.passed += passed;
        }
    }

    /// Bytes of the end at a side that are held besides those in the halves.
    pub(crate) fn rest_of(&self, side: Side) -> u64 {
        self.halves[side as usize].rest.iter().map(|rest| u64::from(rest.len)).sum()
    }

    /// Whether one of the ends has sent all that it sends.
    pub(crate) fn is_closing(&self) -> bool {
        self.halves.iter().any(|half| half.is_ended || half.is_closed)
    }

    /// Whether both halves are over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.halves.iter().all(|half| half.is_over)
    }

    /// Whether the half of a side is over.
    pub(crate) fn is_over_at(&self, side: Side) -> bool {
        self.halves[side as usize].is_over
    }

    /// Handles the events of one half, `near`. Without `far`, the other half is over, and gone; or it has not
    /// joined yet, and [`Events::READABLE`] of this one is to follow once it has.
    ///
    /// Its data goes to the other half, as far as that has room, and its end after all data: a FIN becomes
    /// a FIN (half-close stays half-close), and a reset, a timeout or an unreachable peer becomes a reset.
    pub fn handle<N: Transport + ?Sized, F: Transport + ?Sized>(
        &mut self,
        now: Time,
        (side, events): (Side, Events),
        near: &mut N,
        far: Option<&mut F>,
    ) {
        let half = &mut self.halves[side as usize];
        half.is_ended |= events.intersects(Events::PEER_CLOSED | Events::PEER_CLOSING);
        half.is_over |= events.contains(Events::CLOSED);
        if events.contains(Events::TIMED_OUT) {
            // Perhaps its peer is not gone: what it sends was lost.
            near.abort();
        }
        let Some(far) = far else { return };
        let failed = Events::RESET | Events::TIMED_OUT | Events::UNREACHABLE;
        // A passive open that is reset fails silently (RFC 9293 §3.10.7.4).
        let has_vanished = events.contains(Events::CLOSED) && !half.is_ended;
        if events.intersects(failed) || has_vanished {
            return self.reset(side.other(), far);
        }
        if events.contains(Events::FINISHED) {
            far.release_end(now);
        }
        self.pass(side, near, far);
        if events.contains(Events::WRITABLE) {
            self.pass(side.other(), far, near);
        }
    }

    /// Resets a half after the failure of the other.
    fn reset<T: Transport + ?Sized>(&mut self, side: Side, half: &mut T) {
        let state = &mut self.halves[side as usize];
        if !state.is_over {
            state.is_closed = true;
            half.abort();
        }
    }

    /// Passes on all that one half has received and the other has room for, unless it is scheduled.
    fn pass<N: Transport + ?Sized, F: Transport + ?Sized>(
        &mut self,
        side: Side,
        near: &mut N,
        far: &mut F,
    ) {
        let [from, to] = self.both(side);
        if to.is_closed || to.is_over {
            return;
        }
        if to.is_scheduled {
            if from.is_over {
                // It will be removed.
                from.rest.extend(core::iter::from_fn(|| near.read()));
            }
            return;
        }
        let (is_ended, is_over) = (from.is_ended, from.is_over);
        let limits = self.policy.limits(far, self.share);
        loop {
            // All that an ended connection has received moves at once: it will be removed.
            let room = match is_over {
                true => u64::MAX,
                false => limits.room(far),
            };
            if room == 0 {
                return far.notify_at(limits.low_water(far));
            }
            let Some(payload) = near.read_up_to(u32::try_from(room).unwrap_or(u32::MAX)) else {
                break;
            };
            far.write(payload.stream, payload.offset, u64::from(payload.len));
            self.halves[side as usize].passed += u64::from(payload.len);
        }
        if is_ended {
            self.halves[side.other() as usize].is_closed = true;
            far.close();
        }
    }

    /// Passes on at most one segment to the half of a side, `far`. Without `near`, the other half is
    /// over, and gone.
    pub fn pass_segment<N: Transport + ?Sized, F: Transport + ?Sized>(
        &mut self,
        side: Side,
        mut near: Option<&mut N>,
        far: &mut F,
    ) -> Next {
        let limits = self.policy.limits(far, self.share);
        let [from, to] = self.both(side.other());
        if to.is_closed || to.is_over {
            return Next::Nothing;
        }
        if far.unsent() > 0 {
            return Next::Blocked;
        }
        let bytes = limits.segment(far.segment_size());
        if limits.room(far) < bytes {
            far.notify_at(limits.low_water_for(bytes));
            return Next::Nothing;
        }
        let mut left = bytes as u32; // At most a segment.
        while left > 0
            && let Some(payload) = from.read(near.as_deref_mut(), left)
        {
            far.write(payload.stream, payload.offset, u64::from(payload.len));
            from.passed += u64::from(payload.len);
            left -= payload.len;
        }
        if !from.rest.is_empty() || near.is_some_and(|near| near.readable() > 0) {
            return Next::Segment;
        }
        if from.is_ended {
            to.is_closed = true;
            far.close();
        }
        Next::Nothing
    }

    /// The states of a half and of the other one.
    fn both(&mut self, side: Side) -> [&mut State; 2] {
        let [client, server] = &mut self.halves;
        match side {
            Side::Client => [client, server],
            Side::Server => [server, client],
        }
    }
}

#[cfg(test)]
mod tests;
