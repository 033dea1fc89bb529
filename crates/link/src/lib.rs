//! One direction of a link, on logical timestamps: rate, delay, queue, errors and impairments.
//!
//! There are two kinds. A FIFO link decides when it accepts a packet: departure and arrival are
//! known then, and the only event is the next arrival. A scheduled link has an event at the end of
//! each transmission, too. [`Link::new`] takes a FIFO link wherever the settings allow.

mod config;
mod errors;
mod fifo;
mod flight;
mod impairments;
mod intervals;
mod names;
mod outages;
mod queue;
mod routes;
mod scheduled;
mod switches;
mod trace;

pub use config::{Config, Variation, WhenDown};
pub use errors::{
    Bursts, Damage, DamagedPacket, ErrorModel, Errors, Fades, Gap, GilbertElliott, PacketTrace,
    PacketTraceError, Transmission, Uniform,
};
pub use impairments::{Impairments, Jitter, JitterShape, Reordering};
pub use intervals::{Interval, IntervalError, Intervals};
pub use names::Names;
pub use outages::{OutageProcess, Outages};
pub use queue::{CoDel, Discipline, Drr, FqCoDel, HostIsolation, Isolation, Queue, Red};
pub use routes::Routes;
pub use switches::{Acted, Attachments, Move, Movement, Switches, Turn};
pub use trace::{DeliveryTrace, DeliveryTraceError};

use base::{Quantiles, Seed, Time};
use core::ops::Range;
use fifo::Fifo;
use queue::Waiting;
use scheduled::Scheduled;
use wire::{Ecn, FlowKey};

/// The fate of a packet on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It arrives as it was sent.
    #[default]
    Intact,
    /// It arrives, and the node at the end detects the damage.
    Corrupted,
    /// It is lost without an indication.
    Lost,
    /// It arrives, and is to be marked: it has experienced congestion (RFC 3168 §5).
    Marked,
    /// It arrives with wrong bytes, all of which its own code corrects.
    Corrected {
        /// It is to be marked, too.
        marked: bool,
    },
}

impl Fate {
    /// The fate of such a packet if it is marked as well.
    fn marked(self) -> Fate {
        match self {
            Fate::Intact => Fate::Marked,
            Fate::Corrected { .. } => Fate::Corrected { marked: true },
            Fate::Corrupted | Fate::Lost | Fate::Marked => self,
        }
    }

    /// Whether the packet is to be marked as having experienced congestion.
    #[must_use]
    pub fn is_marked(self) -> bool {
        matches!(self, Fate::Marked | Fate::Corrected { marked: true })
    }
}

/// A packet at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<P> {
    /// The packet.
    pub packet: P,
    /// Its state.
    pub fate: Fate,
}

/// An event of a packet that the link had accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// It has arrived at the far end.
    Arrived(Arrival<P>),
    /// A copy of it has arrived at the far end; the packet itself follows.
    Copied(Arrival<P>),
    /// The queue has dropped it after accepting it.
    Dropped(P),
    /// It waited or was in flight when the link went down, and is lost.
    Cut(P),
}

/// Counts of what a link did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Statistics {
    /// Packets accepted for transmission.
    pub packets: u64,
    /// Bytes accepted for transmission.
    pub bytes: u64,
    /// Packets that were not accepted.
    pub dropped: u64,
    /// Packets that were accepted and dropped later.
    pub discarded: u64,
    /// Packets that were marked as having experienced congestion, and sent.
    pub marked: u64,
    /// Packets that arrived corrupted.
    pub corrupted: u64,
    /// Packets that arrived with wrong bytes, all of which their own code corrected.
    pub corrected: u64,
    /// Packets lost to errors.
    pub lost: u64,
    /// Packets that arrived twice.
    pub duplicated: u64,
    /// Packets that arrived after one that was sent later (RFC 4737 §3).
    pub reordered: u64,
}

/// One direction of a link. `P` stands for a packet: a handle, or the packet itself.
#[derive(Clone, Debug)]
pub struct Link<P> {
    /// Always empty if the link is of the other kind, which is consulted only if this one is empty.
    fifo: Fifo<P>,
    scheduled: Option<Box<Scheduled<P>>>,
}

impl<P: Copy + Default> Link<P> {
    /// An idle link. Its random streams are sub-streams of `seed` whose names begin with `name`.
    #[must_use]
    pub fn new(config: &Config, seed: Seed, name: &str) -> Link<P> {
        let scheduled = !config.has_no_dequeue_events();
        Link {
            fifo: Fifo::new(config, seed, name),
            scheduled: scheduled.then(|| Box::new(Scheduled::new(config, seed, name))),
        }
    }

    /// Takes a packet of `len` bytes at `now`; its ECN codepoint decides whether it may be marked.
    /// All packets taken this way are of one flow. The next event is returned if it may be earlier
    /// now.
    ///
    /// # Errors
    /// Gives the packet back if the queue does not take it.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: P, len: u32, ecn: Ecn) -> Result<Option<Time>, P> {
        self.enqueue_classed(now, packet, len, ecn, 0, || FlowKey::UNKNOWN)
    }

    /// Like [`Link::enqueue`], for a packet of the given flow whose own code corrects a number of
    /// wrong bytes. `len` includes its redundancy. The flow is not determined if the link's queue
    /// does not need it.
    ///
    /// # Errors
    /// Gives the packet back if the queue does not take it.
    #[inline(always)]
    pub fn enqueue_classed(
        &mut self,
        now: Time,
        packet: P,
        len: u32,
        ecn: Ecn,
        corrects: u8,
        flow: impl FnOnce() -> FlowKey,
    ) -> Result<Option<Time>, P> {
        if self.fifo.is_plain(now, len) {
            self.fifo.send(now, packet, len, Fate::Intact);
            return Ok(None);
        }
        self.enqueue_any(now, packet, len, ecn, corrects, flow)
    }

    /// [`Link::enqueue_classed`], for either kind of link.
    #[inline(never)]
    fn enqueue_any(
        &mut self,
        now: Time,
        packet: P,
        len: u32,
        ecn: Ecn,
        corrects: u8,
        flow: impl FnOnce() -> FlowKey,
    ) -> Result<Option<Time>, P> {
        let capable = ecn != Ecn::NotCapable;
        match &mut self.scheduled {
            None => self.fifo.enqueue(now, packet, len, capable, corrects),
            Some(link) => {
                let waiting = Waiting { packet, len, since: now, capable, marked: false, corrects };
                link.enqueue(now, waiting, flow)
            }
        }
    }

    /// When [`Link::wake`] is to be called next.
    #[must_use]
    pub fn next_event(&self) -> Time {
        match &self.scheduled {
            None => self.fifo.next_arrival(),
            Some(link) => link.next_event(),
        }
    }

    /// Handles what is due at `now`, the time from [`Link::next_event`], and returns the result.
    /// More may be due at the same time.
    pub fn wake(&mut self, now: Time) -> Option<Output<P>> {
        match &mut self.scheduled {
            None => self.fifo.arrive().map(Output::Arrived),
            Some(link) => link.wake(now),
        }
    }

    /// Whether it is a FIFO link, whose only events are arrivals.
    #[must_use]
    #[inline]
    pub fn has_no_dequeue_events(&self) -> bool {
        self.scheduled.is_none()
    }

    /// Like [`Link::wake`], at less cost, for a FIFO link: the next arrival. `None` for a scheduled
    /// link.
    #[inline]
    pub fn arrive(&mut self) -> Option<Arrival<P>> {
        self.fifo.arrive()
    }

    /// Like [`Link::arrive`], for the packet that [`Link::coming`] has returned.
    #[inline]
    pub fn take_coming(&mut self) {
        self.fifo.take_coming();
    }

    /// The next arrival of a FIFO link, and its time.
    #[must_use]
    #[inline]
    pub fn coming(&self) -> Option<(Time, Arrival<P>)> {
        self.fifo.coming()
    }

    /// The packets on a FIFO link, in the order of arrival.
    pub fn under_way(&self) -> impl Iterator<Item = P> {
        self.fifo.under_way()
    }

    /// The numbers of the packets on a FIFO link: `start` packets have arrived, `end` were
    /// accepted.
    #[must_use]
    #[inline]
    pub fn numbers(&self) -> Range<u64> {
        self.fifo.numbers()
    }

    /// Sets the link down or up; at the beginning it is up. The next event may change.
    ///
    /// # Panics
    /// If the link has no [`Config::when_down`].
    pub fn set_up(&mut self, now: Time, up: bool) {
        let link = self.scheduled.as_mut().expect("a link that goes down says what happens then");
        link.set_up(now, up);
    }

    /// When the next packet leaves the queue of a FIFO link, where that is no event; it may be in
    /// the past. A time series needs it to see departures between two calls of
    /// [`Link::queued_packets`].
    #[must_use]
    pub fn next_departure(&self) -> Option<Time> {
        self.fifo.next_departure()
    }

    /// Packets waiting or in transmission at `now`.
    pub fn queued_packets(&mut self, now: Time) -> usize {
        match &mut self.scheduled {
            None => self.fifo.queued_packets(now),
            Some(link) => link.queued_packets(now),
        }
    }

    /// Measures queueing delays from now on: [`Link::queue_delays`]. No packet may have been accepted.
    pub fn measure_queue_delays(&mut self) {
        match &mut self.scheduled {
            None => self.fifo.measure_delays(),
            Some(link) => link.measure_delays(),
        }
    }

    /// The times from the acceptance of packets to the beginning of their transmission, nanoseconds,
    /// if they are measured. Packets that a scheduled link has not transmitted do not count.
    #[must_use]
    pub fn queue_delays(&self) -> Option<Quantiles> {
        self.scheduled.as_ref().map_or_else(|| self.fifo.delays(), |link| link.delays())
    }

    /// Counts of what the link did.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.scheduled.as_ref().map_or_else(|| self.fifo.statistics(), |link| link.statistics())
    }
}

#[cfg(test)]
mod tests;
