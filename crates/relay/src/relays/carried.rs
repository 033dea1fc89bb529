//! What is known of split connections: of those that there are, and of those that are over.

use super::halves::Amounts;
use super::{Entry, HalfId, Relays, SIDES};
use crate::Side;
use base::Time;
use host::FourTuple;
use serde::{Deserialize, Serialize};
use tcp::Events;

/// What is known of a split connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The connection as its client names it.
    pub client: FourTuple,
    /// The end that is not behind the hop, as far as that is known.
    pub user: Side,
    /// When this box began to carry it.
    pub began: Time,
    /// By [`Side`], its ends.
    pub ends: [End; 2],
    /// Bytes that the box holds of it.
    pub held: u64,
    /// How far it is.
    pub stage: Stage,
}

/// What an end of a split connection has sent and got since this box carries the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Bytes that have arrived from it, in order.
    pub received: u64,
    /// Bytes that it has acknowledged.
    pub acknowledged: u64,
    /// Segments that were sent to it again; `None` if it is reached by a stream of SRP.
    pub retransmissions: Option<u64>,
}

/// How far a split connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The server has not accepted it yet.
    Opening,
    /// Both ends may send.
    Open,
    /// An end has closed it.
    Closing,
}

/// A split connection begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The box carries it from now on; its client names it so.
    Began(FourTuple),
    /// It is over.
    Ended(Ended),
}

/// A split connection that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What it was.
    pub carried: Carried,
    /// When the last of its ends did something.
    pub at: Time,
    /// How it has ended.
    pub ending: Ending,
}

/// How a split connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Both ends have closed it.
    Closed,
    /// An end has reset it, or refused it.
    Reset(Side),
    /// An end did not answer any more.
    TimedOut(Side),
    /// There was no way to an end.
    Unreachable(Side),
    /// The box has reset it.
    Abandoned,
}

/// What is kept of a connection for its end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Life {
    /// The last event other than that a half is over, which may come from a timer.
    active: Time,
    /// The first failure.
    failure: Option<Ending>,
    /// By [`Side`], the half as it was when it was over.
    last: [Option<Amounts>; 2],
}

impl Life {
    pub(super) fn new(now: Time) -> Life {
        Life { active: now, failure: None, last: [None; 2] }
    }

    /// When there was an event last.
    pub(super) fn active(&self) -> Time {
        self.active
    }

    /// The same in another box, by whose clock that was then.
    pub(super) fn continued(self, active: Time) -> Life {
        Life { active, ..self }
    }

    /// A half has had events. `amounts` tells what it has.
    pub(super) fn on_events(
        &mut self,
        now: Time,
        side: Side,
        events: Events,
        amounts: impl FnOnce() -> Amounts,
    ) {
        if events != Events::CLOSED {
            self.active = now;
        }
        let failure = [
            (Events::RESET, Ending::Reset(side)),
            (Events::TIMED_OUT, Ending::TimedOut(side)),
            (Events::UNREACHABLE, Ending::Unreachable(side)),
        ];
        let failure = failure.into_iter().find(|(event, _)| events.intersects(*event));
        self.failure = self.failure.or(failure.map(|(_, ending)| ending));
        if events.contains(Events::CLOSED) {
            self.last[side as usize] = Some(amounts());
        }
    }
}

impl Relays {
    /// From now on, no connection is split but those that another box opens over SRP or hands over; those that
    /// there are go on. Or, with `false`, they are split again.
    pub fn drain(&mut self, is_draining: bool) {
        self.is_draining = is_draining;
    }

    /// Whether no connection is split any more ([`Relays::drain`]).
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Keeps note of connections that begin and end from now on, until [`Relays::take_changes`] is called; or, with
    /// `false`, does not.
    pub fn keep_changes(&mut self, keep: bool) {
        self.changes = keep.then(|| self.changes.take().unwrap_or_default());
    }

    /// The connections that have begun and ended, in order, if note is kept of them.
    pub fn take_changes(&mut self) -> impl Iterator<Item = Change> {
        self.changes.iter_mut().flat_map(|changes| changes.drain(..))
    }

    /// The split connections at `places` of the table; `None` if there are no such places. So a large table can
    /// be looked at in parts.
    pub fn carried(
        &mut self,
        places: core::ops::Range<usize>,
    ) -> Option<impl Iterator<Item = Carried>> {
        let end = places.end.min(self.splits.len());
        let Relays { splits, halves, .. } = self;
        let some = splits.get(places.start..end).filter(|some| !some.is_empty())?;
        Some(some.iter().flatten().map(|entry| entry.carried(|id| halves.amounts(id))))
    }

    /// Takes a connection that is over out of the table.
    pub(super) fn finish(&mut self, number: u32) -> Option<Entry> {
        let Relays { splits, halves, changes, .. } = self;
        if let (Some(changes), Some(Some(entry))) = (changes, splits.get(number as usize)) {
            let without = match entry.relay.is_over() {
                true => Ending::Closed,
                false => Ending::Abandoned,
            };
            changes.push(Change::Ended(Ended {
                carried: entry.carried(|id| halves.amounts(id)),
                at: entry.life.active,
                ending: entry.life.failure.unwrap_or(without),
            }));
        }
        self.statistics.over += 1;
        self.take(number)
    }
}

impl Entry {
    fn carried(&self, mut amounts: impl FnMut(HalfId) -> Amounts) -> Carried {
        let Entry { relay, halves, client, held, began, life, .. } = self;
        let ends = SIDES.map(|side| {
            let half = life.last[side as usize].or(halves[side as usize].map(&mut amounts));
            let Amounts { readable, unacknowledged, retransmissions } = half.unwrap_or_default();
            // What a half that is over had received is passed on, or in the rest.
            let readable = if life.last[side as usize].is_some() { 0 } else { readable };
            End {
                received: relay.passed(side) + relay.rest_of(side) + readable,
                acknowledged: relay.passed(side.other()).saturating_sub(unacknowledged),
                retransmissions,
            }
        });
        let stage = match (&self.waiting, relay.is_closing()) {
            (Some(_), _) => Stage::Opening,
            (None, false) => Stage::Open,
            (None, true) => Stage::Closing,
        };
        let user = self.user_side();
        Carried { client: *client, user, began: *began, ends, held: *held, stage }
    }
}
