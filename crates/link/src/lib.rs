//! One direction of a link, on logical timestamps: rate, delay, queue, errors.
//!
//! A FIFO link whose decisions fall at the tail needs no event for the end of a transmission: when
//! a packet is accepted, its departure and arrival are known. So [`Link::enqueue`] settles a
//! packet's fate at once, and the only event is the next arrival at the far end.

mod errors;
mod intervals;
mod ring;

pub use errors::{
    Bursts, Damage, DamagedPacket, ErrorModel, Errors, Fades, Gap, GilbertElliott, PacketTrace,
    PacketTraceError, Uniform,
};
pub use intervals::{Interval, IntervalError, Intervals};

use base::{Duration, Rate, Seed, Time};
use ring::Ring;

/// The settings of one direction. The default is infinitely fast, without delay or limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Transmission rate; `None` is infinitely fast.
    pub rate: Option<Rate>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// What may wait or be in transmission.
    pub queue: Queue,
    /// What happens to packets on their way.
    pub errors: ErrorModel,
}

/// The drop-tail limit. The packet being transmitted counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// Everything fits.
    #[default]
    Unlimited,
    /// So many packets.
    Packets(u32),
    /// So many bytes.
    Bytes(u64),
}

/// What became of a packet on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It arrives as it was sent.
    #[default]
    Intact,
    /// It arrives, and the node at the end can tell that it is damaged.
    Corrupted,
    /// It does not arrive, and nobody is told.
    Lost,
}

/// A packet at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<P> {
    /// The packet.
    pub packet: P,
    /// In what state.
    pub fate: Fate,
}

/// Counts of what a link did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Statistics {
    /// Packets accepted for transmission.
    pub packets: u64,
    /// Bytes accepted for transmission.
    pub bytes: u64,
    /// Packets that found the queue full.
    pub dropped: u64,
    /// Packets that arrived corrupted.
    pub corrupted: u64,
    /// Packets that vanished.
    pub lost: u64,
}

/// One direction of a FIFO link. `P` stands for a packet: a handle, or the packet itself.
#[derive(Clone, Debug)]
pub struct Link<P> {
    rate: Option<Rate>,
    delay: Duration,
    queue: Queue,
    errors: Errors,
    /// To packets with lower numbers in `flying` nothing else can happen than that they are sent: no
    /// error, and there was room for them when that was last looked into.
    plain_until: u64,
    /// When the transmitter has sent all it has accepted.
    free_at: Time,
    /// Accepted and not arrived, in order of arrival.
    flying: Ring<Flying<P>>,
    /// All packets before this one of `flying` have left the queue.
    departed: u64,
    /// The size that was transmitted last, and how long that took: packets come in two or three
    /// sizes, and a division costs as much as everything else.
    last_time: (u32, Duration),
    statistics: Statistics,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flying<P> {
    departs: Time,
    /// Bytes accepted before it.
    before: u64,
    packet: P,
    fate: Fate,
}

impl<P: Copy + Default> Link<P> {
    /// An idle link. What is random about it comes from sub-streams of `seed` whose names begin
    /// with `name`.
    #[must_use]
    pub fn new(config: &Config, seed: Seed, name: &str) -> Link<P> {
        Link {
            rate: config.rate,
            delay: config.delay,
            queue: config.queue,
            errors: Errors::new(&config.errors, seed.stream(&format!("{name}.errors"))),
            plain_until: 0,
            free_at: Time::ZERO,
            flying: Ring::new(),
            departed: 0,
            last_time: (0, Duration::ZERO),
            statistics: Statistics::default(),
        }
    }

    /// Takes a packet of `len` bytes at `now`.
    ///
    /// The next arrival changes only if the link was empty; it is returned then.
    ///
    /// # Errors
    /// Gives the packet back if the queue has no room for it.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: P, len: u32) -> Result<Option<Time>, P> {
        let plain = len == self.last_time.0 && self.flying.end() < self.plain_until;
        if !plain || self.flying.is_full() {
            return self.enqueue_any(now, packet, len);
        }
        Ok(self.send(now, packet, len, Fate::Intact))
    }

    /// What [`Link::enqueue`] does, whatever becomes of the packet.
    #[inline(never)]
    fn enqueue_any(&mut self, now: Time, packet: P, len: u32) -> Result<Option<Time>, P> {
        if !self.has_room(now, len) {
            self.statistics.dropped += 1;
            return Err(packet);
        }
        if len != self.last_time.0 {
            let time = self.rate.map_or(Duration::ZERO, |rate| rate.time_for(u64::from(len)));
            self.last_time = (len, time);
        }
        let fate = self.errors.next(self.free_at.max(now) + self.last_time.1, len);
        match fate {
            Fate::Intact => {}
            Fate::Corrupted => self.statistics.corrupted += 1,
            Fate::Lost => self.statistics.lost += 1,
        }
        self.flying.make_room();
        let room_until = match self.queue {
            Queue::Unlimited => u64::MAX,
            Queue::Packets(limit) => self.departed + u64::from(limit),
            Queue::Bytes(_) => 0,
        };
        if self.errors.never() {
            self.plain_until = room_until;
        }
        Ok(self.send(now, packet, len, fate))
    }

    /// Transmits a packet of the same length as the last, behind those that wait.
    #[inline(always)]
    fn send(&mut self, now: Time, packet: P, len: u32, fate: Fate) -> Option<Time> {
        let first = self.flying.len() == 0;
        let before = self.statistics.bytes;
        self.statistics.bytes = before + u64::from(len);
        self.free_at = self.free_at.max(now) + self.last_time.1;
        self.flying.push(Flying { departs: self.free_at, before, packet, fate });
        first.then(|| self.free_at + self.delay)
    }

    /// Whether the queue has room for `len` bytes at `now`.
    fn has_room(&mut self, now: Time, len: u32) -> bool {
        match self.queue {
            Queue::Unlimited => true,
            Queue::Packets(limit) => self.queued_packets(now) < limit as usize,
            Queue::Bytes(limit) => self.queued_bytes(now) + u64::from(len) <= limit,
        }
    }

    /// When the next packet reaches the far end.
    #[must_use]
    #[inline]
    pub fn next_arrival(&self) -> Time {
        self.flying.first().map_or(Time::NEVER, |head| head.departs + self.delay)
    }

    /// The packet that reaches the far end next: to be taken at [`Link::next_arrival`].
    #[inline]
    pub fn arrive(&mut self) -> Option<Arrival<P>> {
        self.flying.pop().map(|head| Arrival { packet: head.packet, fate: head.fate })
    }

    /// When the next packet leaves the queue; it need not be in the future. For a time series: what
    /// departs between two calls of [`Link::queued_packets`] is seen by nobody else.
    #[must_use]
    pub fn next_departure(&self) -> Option<Time> {
        self.flying.get(self.departed.max(self.flying.begin())).map(|next| next.departs)
    }

    /// Packets waiting or in transmission at `now`.
    #[inline]
    pub fn queued_packets(&mut self, now: Time) -> usize {
        self.depart(now);
        (self.flying.end() - self.departed) as usize
    }

    fn queued_bytes(&mut self, now: Time) -> u64 {
        self.depart(now);
        self.flying.get(self.departed).map_or(0, |next| self.statistics.bytes - next.before)
    }

    /// Counts of what the link did.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics { packets: self.flying.end(), ..self.statistics }
    }

    /// Moves what has been transmitted by `now` out of the queue.
    #[inline]
    fn depart(&mut self, now: Time) {
        self.departed = self.departed.max(self.flying.begin());
        while self.flying.get(self.departed).is_some_and(|next| next.departs <= now) {
            self.departed += 1;
        }
    }
}

#[cfg(test)]
mod tests;
