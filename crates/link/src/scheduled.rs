//! The kind of link that has an event at the end of every transmission.

use crate::flight::Flight;
use crate::impairments::Impairer;
use crate::{Config, Errors, Fate, Output, Queue, Statistics};
use base::{Duration, Rate, Seed, Time};
use std::collections::VecDeque;

/// A link that decides what becomes of a packet when its turn comes.
#[derive(Clone, Debug)]
pub(crate) struct Scheduled<P> {
    rate: Option<Rate>,
    delay: Duration,
    limit: Queue,
    waiting: VecDeque<Waiting<P>>,
    /// Bytes waiting or in transmission.
    queued_bytes: u64,
    sending: Option<Sending<P>>,
    errors: Errors,
    impairer: Impairer,
    flight: Flight<P>,
    statistics: Statistics,
}

#[derive(Clone, Copy, Debug)]
struct Waiting<P> {
    packet: P,
    len: u32,
}

/// The packet in transmission.
#[derive(Clone, Copy, Debug)]
struct Sending<P> {
    packet: Waiting<P>,
    done: Time,
}

impl<P: Copy> Scheduled<P> {
    pub(crate) fn new(config: &Config, seed: Seed, name: &str) -> Scheduled<P> {
        let stream = |part| seed.stream(&format!("{name}.{part}"));
        Scheduled {
            rate: config.rate,
            delay: config.delay,
            limit: config.queue,
            waiting: VecDeque::new(),
            queued_bytes: 0,
            sending: None,
            errors: Errors::new(&config.errors, stream("errors")),
            impairer: Impairer::new(config.impairments, stream("impairments")),
            flight: Flight::new(),
            statistics: Statistics::default(),
        }
    }

    /// Takes a packet of `len` bytes at `now`; returns the next event, which may have come forward.
    ///
    /// # Errors
    /// Gives the packet back if the queue does not take it.
    pub(crate) fn enqueue(&mut self, now: Time, packet: P, len: u32) -> Result<Option<Time>, P> {
        self.settle(now);
        if !self.limit.has_room(self.queued(), self.queued_bytes, len) {
            self.statistics.dropped += 1;
            return Err(packet);
        }
        self.statistics.packets += 1;
        self.statistics.bytes += u64::from(len);
        self.queued_bytes += u64::from(len);
        self.waiting.push_back(Waiting { packet, len });
        if self.sending.is_none() {
            self.start(now);
        }
        Ok(Some(self.next_event()))
    }

    /// When [`Scheduled::wake`] is to be called next.
    pub(crate) fn next_event(&self) -> Time {
        let sent = self.sending.map_or(Time::NEVER, |sending| sending.done);
        sent.min(self.flight.next_arrival())
    }

    /// Does what is due at `now`, and says what came of it.
    pub(crate) fn wake(&mut self, now: Time) -> Option<Output<P>> {
        self.settle(now);
        self.flight.pop(now)
    }

    /// Packets waiting or in transmission at `now`.
    pub(crate) fn queued_packets(&mut self, now: Time) -> usize {
        self.settle(now);
        self.queued()
    }

    fn queued(&self) -> usize {
        self.waiting.len() + usize::from(self.sending.is_some())
    }

    /// Counts of what the link did.
    pub(crate) fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Ends and begins transmissions up to `now`, each at its own time.
    fn settle(&mut self, now: Time) {
        while let Some(Sending { packet, done }) = self.sending.filter(|s| s.done <= now) {
            self.sending = None;
            self.launch(done, packet);
            self.start(done);
        }
    }

    /// Begins to transmit what waits longest.
    fn start(&mut self, now: Time) {
        let next = self.waiting.pop_front();
        self.sending = next.map(|packet| {
            let time =
                self.rate.map_or(Duration::ZERO, |rate| rate.time_for(u64::from(packet.len)));
            Sending { packet, done: now + time }
        });
    }

    /// A packet has been transmitted, and is on its way.
    fn launch(&mut self, now: Time, Waiting { packet, len }: Waiting<P>) {
        self.queued_bytes -= u64::from(len);
        let fate = self.errors.next(now, len);
        let treatment = self.impairer.next();
        match fate {
            Fate::Intact => {}
            Fate::Corrupted => self.statistics.corrupted += 1,
            Fate::Lost => self.statistics.lost += 1,
        }
        self.statistics.duplicated += u64::from(treatment.twice && fate != Fate::Lost);
        self.flight.push(now + self.delay, packet, fate, treatment);
    }
}
