//! One stream of an association: a connection that stands for one of the far ends.

mod receive;
mod send;

pub(crate) use receive::ReceiveHalf;
pub(crate) use send::SendHalf;

use base::Events;
use bitflags::bitflags;
use serde::{Deserialize, Serialize};
use wire::srp::{Continue, Ends, Reason};

/// Names a stream within its association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StreamId {
    pub(crate) slot: u32,
    /// Streams that were in the slot before.
    pub(crate) generation: u32,
}

bitflags! {
    /// Segments without data that a stream is to send.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(transparent)]
    pub(crate) struct Control: u8 {
        const OPEN = 1;
        const RESET = 1 << 1;
        const ACCEPT = 1 << 2;
        const FINISHED = 1 << 3;
        const CREDIT = 1 << 4;
        const CONTINUE = 1 << 5;
    }

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(transparent)]
    pub(crate) struct Flags: u16 {
        /// We have opened it.
        const OURS = 1;
        /// Its opening chunk was sent, or has arrived.
        const OPENED = 1 << 1;
        /// The owner has learned that the peer has opened it.
        const OFFERED = 1 << 2;
        /// The far end has accepted it, or our owner.
        const ACCEPTED = 1 << 3;
        /// All that we had to send has arrived, and its end.
        const FINISHED = 1 << 4;
        /// All that the peer had to send has arrived, and the owner agrees to its end.
        const PEER_CLOSED = 1 << 5;
        /// We have said so.
        const CONFIRMED = 1 << 6;
        /// It was reset, by either end.
        const RESET = 1 << 7;
        /// The peer has reset it, too.
        const PEER_RESET = 1 << 8;
        /// The owner has been told that it is over.
        const REPORTED = 1 << 9;
        /// The owner knows of it.
        const VISIBLE = 1 << 10;
        /// It is among the streams that have something to send.
        const ACTIVE = 1 << 11;
        /// It is among those with events.
        const EVENTFUL = 1 << 12;
        /// It is over for the owner.
        const OVER = 1 << 13;
        /// An earlier association carried it, and the peer has not said yet what it has of it.
        const UNSETTLED = 1 << 14;
    }
}

/// The state of a stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StreamState {
    /// Its number on the wire.
    pub(crate) number: u16,
    pub(crate) flags: Flags,
    pub(crate) control: Control,
    /// Segments with control chunks that are not acknowledged.
    pub(crate) outstanding_control: u32,
    pub(crate) ends: Option<Ends>,
    pub(crate) reason: Reason,
    pub(crate) events: Events,
    /// The number after the highest segment that the peer has sent on it; 0 if it has sent none.
    pub(crate) segments_end: u64,
    pub(crate) send: SendHalf,
    pub(crate) receive: ReceiveHalf,
}

impl StreamState {
    pub(crate) fn new(number: u16, flags: Flags, credit: u64, window: u64) -> StreamState {
        StreamState {
            number,
            flags,
            control: Control::empty(),
            outstanding_control: 0,
            ends: None,
            reason: Reason::Aborted,
            events: Events::empty(),
            segments_end: 0,
            send: SendHalf::new(credit),
            receive: ReceiveHalf::new(window),
        }
    }

    /// Whether a segment can be sent now, as far as the stream knows.
    pub(crate) fn has_segment(&self) -> bool {
        if !self.control.is_empty() {
            return true;
        }
        !self.flags.intersects(Flags::RESET | Flags::UNSETTLED)
            && self.flags.contains(Flags::OPENED)
            && self.send.has_segment()
    }

    /// Whether it is over on the wire, given the next segment number expected in sequence: nothing of it is
    /// outstanding, and no segment of the peer can follow.
    pub(crate) fn is_over_on_wire(&self, cumulative: u64) -> bool {
        let is_quiet = self.control.is_empty()
            && self.outstanding_control == 0
            && self.send.has_none_outstanding()
            && self.segments_end <= cumulative;
        // If all had arrived in both directions, the peer may have forgotten it before our reset arrived, which
        // it then does not answer.
        let is_finished = self.flags.contains(Flags::FINISHED | Flags::CONFIRMED);
        is_quiet && (is_finished || self.flags.contains(Flags::RESET | Flags::PEER_RESET))
    }

    /// Another association carries it from now on. What of the control chunks that were under way has arrived is
    /// not known: they are said again. A peer that does not know the stream has forgotten it, and ignores them.
    ///
    /// If its number is not `is_current`, another stream has taken it, because the peer has forgotten this one.
    pub(crate) fn renew(&mut self, is_current: bool) {
        let was_under_way = match self.outstanding_control {
            0 => self.control,
            _ => Control::all(),
        };
        (self.outstanding_control, self.segments_end) = (0, 0);
        self.send.forget_sent();
        let is_unknown_to_peer = self.flags & (Flags::OURS | Flags::OPENED) == Flags::OURS;
        if is_unknown_to_peer && is_current {
            return;
        }
        self.control = Control::empty();
        if !is_current || self.flags.contains(Flags::RESET) {
            // It is not answered if all has arrived in both directions: the peer may know it of ours, whose
            // acknowledgment was lost.
            self.flags.set(Flags::CONFIRMED, self.flags.contains(Flags::PEER_CLOSED));
            self.control.set(Control::RESET, is_current && was_under_way.contains(Control::RESET));
            return;
        }
        self.receive.forget_beyond();
        if self.flags.contains(Flags::FINISHED) {
            self.send.settle_all();
        } else {
            self.flags |= Flags::UNSETTLED;
        }
        let is_confirmed = self.flags.contains(Flags::CONFIRMED);
        let (is_closed, is_accepted) =
            (self.flags.contains(Flags::PEER_CLOSED), self.flags.contains(Flags::ACCEPTED));
        let accepts = is_accepted && !self.flags.contains(Flags::OURS);
        let is_open = !self.flags.contains(Flags::FINISHED | Flags::CONFIRMED);
        self.control.set(Control::CONTINUE, is_open);
        self.control.set(Control::FINISHED, is_closed && !is_confirmed);
        self.control.set(Control::ACCEPT, accepts && was_under_way.contains(Control::ACCEPT));
    }

    /// What is here of it.
    pub(crate) fn continuation(&mut self) -> Continue {
        let is_known = self.flags.intersects(Flags::ACCEPTED | Flags::PEER_CLOSED);
        Continue {
            received: self.receive.next(),
            limit: self.receive.tell_limit(),
            is_whole: self.receive.is_whole(),
            ends: self.ends.filter(|_| self.flags.contains(Flags::OURS) && !is_known),
        }
    }

    /// Discards all that was to be sent and all that has arrived: the stream is reset.
    pub(crate) fn reset(&mut self, reason: Reason) {
        self.flags |= Flags::RESET;
        self.reason = reason;
        self.control = Control::RESET;
        self.send.stop();
        self.receive.stop();
    }
}
