//! The kind of link that needs no event for the end of a transmission.

use crate::queue::{Average, Choice, Meeting};
use crate::{Arrival, Config, Discipline, Errors, Fate, Queue, Statistics, Transmission};
use base::{Duration, Quantiles, Rate, Ring, Seed, Time};
use core::ops::Range;
use std::collections::VecDeque;

/// A link whose decisions fall at the tail: when a packet is accepted, its departure, its arrival and
/// its fate are known.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    rate: Option<Rate>,
    delay: Duration,
    queue: Queue,
    /// How many packets the queue has room for.
    places: u64,
    red: Option<Box<Average>>,
    errors: Errors,
    /// Packets with lower numbers in `flying` are certain to be sent intact, if they have the last
    /// length and there is room for them.
    plain_until: u64,
    /// The first packet of `flying` that `errors` has not counted yet.
    uncounted: u64,
    /// When the transmitter has sent all it has accepted.
    free_at: Time,
    /// Accepted and not arrived, in order of arrival.
    flying: Ring<Flying<P>>,
    /// All packets before this one of `flying` have left the queue.
    departed: u64,
    /// The sizes of those that have not, if the queue is measured in bytes, and their sum.
    sizes: VecDeque<u32>,
    queued_bytes: u64,
    /// The size that was transmitted last, and how long that took: packets come in two or three
    /// sizes, and a division costs as much as everything else.
    last_time: (u32, Duration),
    statistics: Statistics,
    /// The queueing delays that are not 0, nanoseconds, if they are measured.
    delays: Option<Box<Quantiles>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flying<P> {
    departs: Time,
    packet: P,
    fate: Fate,
}

impl<P: Copy + Default> Fifo<P> {
    pub(crate) fn new(config: &Config, seed: Seed, name: &str) -> Fifo<P> {
        let red = match config.discipline {
            Discipline::Red(red) => Some(red),
            _ => None,
        };
        let random = || seed.stream(&format!("{name}.queue"));
        Fifo {
            red: red.map(|red| Box::new(Average::new(red, random()))),
            rate: config.rate,
            delay: config.delay,
            queue: config.queue,
            places: match config.queue {
                Queue::Packets(limit) => u64::from(limit),
                Queue::Unlimited | Queue::Bytes(_) => u64::MAX,
            },
            errors: Errors::new(&config.errors, seed.stream(&format!("{name}.errors"))),
            plain_until: 0,
            uncounted: 0,
            free_at: Time::ZERO,
            flying: Ring::new(),
            departed: 0,
            sizes: VecDeque::new(),
            queued_bytes: 0,
            last_time: (0, Duration::ZERO),
            statistics: Statistics::default(),
            delays: None,
        }
    }

    /// Whether a packet of `len` bytes at `now` is certain to be sent intact, behind others.
    #[inline]
    pub(crate) fn is_plain(&self, now: Time, len: u32) -> bool {
        let plain = len == self.last_time.0 && self.flying.end() < self.plain_until;
        plain && self.flying.is_in_use() && self.has_place(now)
    }

    /// Whether the queue has room for one more packet at `now`, if it is measured in packets: the
    /// packet as many places before as the limit has been sent.
    #[inline]
    fn has_place(&self, now: Time) -> bool {
        let before = self.flying.end().wrapping_sub(self.places);
        self.flying.get(before).is_none_or(|packet| packet.departs <= now)
    }

    /// Takes a packet of `len` bytes at `now`.
    ///
    /// The next arrival changes only if the link was empty; it is returned then.
    ///
    /// # Errors
    /// Gives the packet back if the queue has no room for it.
    #[inline(always)]
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: P,
        len: u32,
        capable: bool,
        corrects: u8,
    ) -> Result<Option<Time>, P> {
        let room = self.has_room(now, len);
        let choice = match self.red {
            Some(_) => self.choose(now, room, capable),
            None if room => Choice::Accept,
            None => Choice::Drop,
        };
        if choice == Choice::Drop {
            self.statistics.dropped += 1;
            return Err(packet);
        }
        // Plain packets are all of the last length.
        self.errors.skip(self.flying.end() - self.uncounted, self.last_time.0);
        self.uncounted = self.flying.end() + 1;
        if len != self.last_time.0 {
            let time = self.rate.map_or(Duration::ZERO, |rate| rate.time_for(u64::from(len)));
            self.last_time = (len, time);
        }
        let began = self.free_at.max(now);
        let ended = began + self.last_time.1;
        let mut fate = self.errors.next(Transmission { began, ended, len, corrects });
        match fate {
            Fate::Intact | Fate::Marked => {}
            Fate::Corrected { .. } => self.statistics.corrected += 1,
            Fate::Corrupted => self.statistics.corrupted += 1,
            Fate::Lost => self.statistics.lost += 1,
        }
        if choice == Choice::Mark {
            self.statistics.marked += 1;
            fate = fate.marked();
        }
        self.flying.make_room();
        let by_packets = !matches!(self.queue, Queue::Bytes(_));
        if !by_packets {
            self.sizes.push_back(len);
            self.queued_bytes += u64::from(len);
        }
        self.plain_until = if self.red.is_none() && by_packets {
            self.uncounted.saturating_add(self.errors.clear(len))
        } else {
            0
        };
        let first = self.flying.is_empty();
        self.send(now, packet, len, fate);
        Ok(first.then(|| self.next_arrival()))
    }

    /// Transmits a packet of the same length as the last, behind those that wait: there must be
    /// room for it.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: Time, packet: P, len: u32, fate: Fate) {
        self.statistics.bytes += u64::from(len);
        if self.delays.is_some() {
            self.record_delay(now);
        }
        self.free_at = self.free_at.max(now) + self.last_time.1;
        self.flying.push(Flying { departs: self.free_at, packet, fate });
    }

    /// The decision of random early detection about a packet.
    #[cold]
    fn choose(&mut self, now: Time, room: bool, capable: bool) -> Choice {
        let queue = self.queued_packets(now);
        let Some(red) = &mut self.red else { return Choice::Accept };
        let mean_packet = u64::from(red.mean_packet());
        let mean_time = self.rate.map_or(Duration::ZERO, |rate| rate.time_for(mean_packet));
        let idle = now.since(self.free_at);
        red.choose(&Meeting { queue, idle, mean_time, room, capable })
    }

    /// Whether the queue has room for `len` bytes at `now`.
    fn has_room(&mut self, now: Time, len: u32) -> bool {
        match self.queue {
            Queue::Unlimited => true,
            Queue::Packets(0) => false,
            Queue::Packets(_) => self.has_place(now),
            Queue::Bytes(limit) => self.queued_bytes(now) + u64::from(len) <= limit,
        }
    }

    /// When the next packet reaches the far end.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Time {
        self.coming().map_or(Time::NEVER, |(at, _)| at)
    }

    /// The packet that reaches the far end next, and when.
    #[inline]
    pub(crate) fn coming(&self) -> Option<(Time, Arrival<P>)> {
        let arrival = |head: &Flying<P>| Arrival { packet: head.packet, fate: head.fate };
        self.flying.first().map(|head| (head.departs + self.delay, arrival(head)))
    }

    /// The packet that reaches the far end next: to be taken at [`Fifo::next_arrival`].
    #[inline]
    pub(crate) fn arrive(&mut self) -> Option<Arrival<P>> {
        self.flying.pop().map(|head| Arrival { packet: head.packet, fate: head.fate })
    }

    /// The same for the packet that [`Fifo::coming`] has returned.
    #[inline]
    pub(crate) fn take_coming(&mut self) {
        self.flying.discard(1);
    }

    /// All packets, in the order of arrival.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = P> {
        self.flying.iter().map(|one| one.packet)
    }

    /// Their numbers.
    #[inline]
    pub(crate) fn numbers(&self) -> Range<u64> {
        self.flying.begin()..self.flying.end()
    }

    /// When the next packet leaves the queue; it need not be in the future.
    pub(crate) fn next_departure(&self) -> Option<Time> {
        self.flying.get(self.departed.max(self.flying.begin())).map(|next| next.departs)
    }

    /// Packets waiting or in transmission at `now`.
    #[inline]
    pub(crate) fn queued_packets(&mut self, now: Time) -> usize {
        self.depart(now);
        (self.flying.end() - self.departed) as usize
    }

    fn queued_bytes(&mut self, now: Time) -> u64 {
        self.depart(now);
        self.queued_bytes
    }

    /// Counts of what the link did.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics { packets: self.flying.end(), ..self.statistics }
    }

    /// Records the queueing delay of a packet that is accepted at `now`.
    //
    // A separate function, so that links that measure nothing keep their registers.
    #[inline(never)]
    fn record_delay(&mut self, now: Time) {
        if self.free_at > now
            && let Some(delays) = &mut self.delays
        {
            delays.record(self.free_at.since(now).as_nanos());
        }
    }

    /// Measures queueing delays from now on: no packet was accepted yet.
    pub(crate) fn measure_delays(&mut self) {
        self.delays = Some(Box::default());
    }

    /// The queueing delays, nanoseconds, if they are measured.
    pub(crate) fn delays(&self) -> Option<Quantiles> {
        let mut delays = self.delays.as_deref().cloned()?;
        delays.record_zeros(self.flying.end() - delays.count());
        Some(delays)
    }

    /// Removes the packets that have been transmitted by `now` from the queue.
    #[inline]
    fn depart(&mut self, now: Time) {
        let before = self.departed;
        self.departed = before.max(self.flying.begin());
        while self.flying.get(self.departed).is_some_and(|next| next.departs <= now) {
            self.departed += 1;
        }
        if !self.sizes.is_empty() {
            let departed = self.sizes.drain(..(self.departed - before) as usize);
            self.queued_bytes -= departed.map(u64::from).sum::<u64>();
        }
    }
}
