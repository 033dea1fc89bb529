//! A stream as its owner sees it.

use super::Association;
use crate::stream::{Control, Flags, StreamState};
use base::{Events, LowWater, Time};
use wire::Payload;
use wire::srp::Reason;

/// A stream of an [`Association`], as a transport. Its events are those of
/// [`Association::poll_events`].
#[derive(Debug)]
pub struct Stream<'a> {
    pub(super) association: &'a mut Association,
    pub(super) slot: u32,
}

impl Stream<'_> {
    fn state(&self) -> Option<&StreamState> {
        self.association.slots.get(self.slot)
    }

    fn state_mut(&mut self) -> Option<&mut StreamState> {
        self.association.slots.get_mut(self.slot)
    }

    /// Appends `len` bytes of `stream`, from `offset` on, to what is to be sent. Ignored after
    /// [`Stream::close`]. A segment never carries bytes of two streams, except with
    /// [`Config::gather`](crate::Config::gather).
    pub fn write(&mut self, stream: u32, offset: u64, len: u64) {
        if let Some(state) = self.state_mut() {
            state.send.write(stream, offset, len);
        }
        self.association.slots.activate(self.slot);
    }

    /// The next run of bytes that has arrived in order, at most `bytes`. The peer may send as many more.
    /// `None`: until [`Events::READABLE`] there is no more.
    pub fn read_up_to(&mut self, bytes: u32) -> Option<Payload> {
        let state = self.state_mut()?;
        let payload = state.receive.read_up_to(bytes)?;
        if state.receive.needs_credit() && !state.flags.contains(Flags::RESET) {
            state.control |= Control::CREDIT;
            self.association.slots.activate(self.slot);
        }
        Some(payload)
    }

    /// Nothing more will be written: the end follows the data. The peer may still send (half-close).
    /// [`Events::FINISHED`] follows once all has arrived.
    pub fn close(&mut self) {
        if let Some(state) = self.state_mut() {
            state.send.close();
        }
        self.association.slots.activate(self.slot);
    }

    /// Bytes written and not yet acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.state().map_or(0, |state| state.send.unacknowledged())
    }

    /// Bytes written and not yet sent: the peer's window has no room for them, or pacing holds them back.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.state().map_or(0, |state| state.send.unsent())
    }

    /// Bytes that can be read.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.state().map_or(0, |state| state.receive.readable())
    }

    /// Bytes of data in a full segment.
    #[must_use]
    pub fn segment_size(&self) -> u32 {
        self.association.config.segment_size
    }

    /// Requests [`Events::WRITABLE`], once, for this state.
    pub fn notify_at(&mut self, low_water: LowWater) {
        if let Some(state) = self.state_mut() {
            state.send.notify_at(low_water);
        }
        self.association.notify(self.slot);
    }

    /// Ends the stream at once with a reset, whatever is outstanding or unread. [`Events::CLOSED`]
    /// follows.
    pub fn abort(&mut self) {
        self.association.slots.abort(self.slot, Reason::Aborted);
    }

    /// From now on, the peer does not learn before [`Stream::release_end`] that its data and its end have
    /// arrived. [`Events::PEER_CLOSING`] tells that they have.
    pub fn hold_end(&mut self) {
        if let Some(state) = self.state_mut()
            && !state.flags.contains(Flags::PEER_CLOSED)
        {
            state.receive.holds_end = true;
        }
    }

    /// Confirms the peer's end, if it has arrived, or once it does.
    pub fn release_end(&mut self, now: Time) {
        let _ = now;
        let Some(state) = self.state_mut() else { return };
        if core::mem::replace(&mut state.receive.holds_end, false) && state.receive.is_whole() {
            self.association.on_peer_finished(self.slot);
        }
    }
}

impl Association {
    /// Tells the owner of a stream that more may be written, if that was requested.
    pub(super) fn notify(&mut self, slot: u32) {
        if self.slots.get_mut(slot).is_some_and(|stream| stream.send.takes_low_water()) {
            self.slots.raise(slot, Events::WRITABLE);
        }
    }
}
