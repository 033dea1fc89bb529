//! The kind of link that has an event at the end of every transmission.

use crate::flight::Flight;
use crate::impairments::Impairer;
use crate::queue::{Average, Backlog, Choice, Control, FlowQueues, Meeting, RoundRobin, Waiting};
use crate::trace::Opportunities;
use crate::{
    Config, Discipline, Errors, Fate, Intervals, Output, Queue, Statistics, Transmission,
    Variation, WhenDown,
};
use base::{Duration, Quantiles, Rate, Seed, Time};
use std::collections::VecDeque;
use wire::FlowKey;

/// A link that decides about a packet when its transmission is due.
#[derive(Clone, Debug)]
pub(crate) struct Scheduled<P> {
    /// Rate and delay unless there is a variation.
    usual: (Option<Rate>, Duration),
    variations: Intervals<Variation>,
    next_variation: Time,
    /// The present rate.
    rate: Option<Rate>,
    delay: Duration,
    /// The delivery opportunities of a trace, in place of the rate.
    opportunities: Option<Opportunities>,
    when_down: WhenDown,
    up: bool,
    limit: Queue,
    management: Management<P>,
    /// The queue, unless there is one for each class: then it has at most the packet whose
    /// transmission was interrupted, which is sent first.
    backlog: Backlog<P>,
    sending: Option<Sending<P>>,
    /// Since when nothing has been waiting or in transmission, if nothing is.
    idle_since: Time,
    errors: Errors,
    impairer: Impairer,
    flight: Flight<P>,
    discarded: Discarded<P>,
    statistics: Statistics,
    /// The queueing delays of transmitted packets, nanoseconds, if they are measured.
    delays: Option<Box<Quantiles>>,
}

/// The discipline of the queue.
#[derive(Clone, Debug)]
enum Management<P> {
    DropTail,
    Red(Average),
    CoDel(Control),
    Drr(Box<RoundRobin<P>>),
    FqCoDel(Box<FlowQueues<P>>),
}

/// Packets that were dropped or cut off after they had been accepted.
#[derive(Clone, Debug)]
struct Discarded<P> {
    /// Those not yet returned.
    outputs: VecDeque<Output<P>>,
    /// When the last was dropped.
    at: Time,
    /// All of them.
    count: u64,
}

impl<P> Discarded<P> {
    fn push(&mut self, now: Time, output: Output<P>) {
        self.outputs.push_back(output);
        self.at = now;
        self.count += 1;
    }
}

/// The packet in transmission.
#[derive(Clone, Copy, Debug)]
struct Sending<P> {
    packet: Waiting<P>,
    began: Time,
    done: Time,
}

impl<P: Copy> Scheduled<P> {
    pub(crate) fn new(config: &Config, seed: Seed, name: &str) -> Scheduled<P> {
        let stream = |part| seed.stream(&format!("{name}.{part}"));
        let mut link = Scheduled {
            usual: (config.rate, config.delay),
            variations: config.variations.clone(),
            next_variation: Time::ZERO,
            rate: config.rate,
            delay: config.delay,
            opportunities: config.trace.clone().map(Opportunities::new),
            when_down: config.when_down.unwrap_or(WhenDown::KEEP),
            up: true,
            limit: config.queue,
            management: match config.discipline {
                Discipline::DropTail => Management::DropTail,
                Discipline::Red(red) => Management::Red(Average::new(red, stream("queue"))),
                Discipline::CoDel(codel) => Management::CoDel(Control::new(codel)),
                Discipline::Drr(drr) => Management::Drr(Box::new(RoundRobin::new(drr))),
                Discipline::FqCoDel(settings) => {
                    let key = stream("queue").bits();
                    Management::FqCoDel(Box::new(FlowQueues::new(settings, key)))
                }
            },
            backlog: Backlog::new(),
            sending: None,
            idle_since: Time::ZERO,
            errors: Errors::new(&config.errors, stream("errors")),
            impairer: Impairer::new(config.impairments, stream("impairments")),
            flight: Flight::new(),
            discarded: Discarded { outputs: VecDeque::new(), at: Time::ZERO, count: 0 },
            statistics: Statistics::default(),
            delays: None,
        };
        link.vary(Time::ZERO);
        link
    }

    /// Takes a packet at `now`; returns the next event, which may have come forward.
    ///
    /// # Errors
    /// Gives the packet back if the queue does not take it.
    #[inline(never)]
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: Waiting<P>,
        flow: impl FnOnce() -> FlowKey,
    ) -> Result<Option<Time>, P> {
        self.settle(now);
        if !self.put(now, packet, flow) {
            self.statistics.dropped += 1;
            return Err(packet.packet);
        }
        self.statistics.packets += 1;
        self.statistics.bytes += u64::from(packet.len);
        self.start(now);
        Ok(Some(self.next_event()))
    }

    /// Puts a packet into the queue, if that takes it: returns whether it does.
    fn put(&mut self, now: Time, mut packet: Waiting<P>, flow: impl FnOnce() -> FlowKey) -> bool {
        let accepts = self.up || self.when_down.accept;
        let sending = self.sending.map_or(0, |sending| u64::from(sending.packet.len));
        let queue = self.backlog.packets() + usize::from(self.sending.is_some());
        let bytes = self.backlog.bytes() + sending;
        let room = accepts && self.limit.has_room(queue, bytes, packet.len);
        let choice = match &mut self.management {
            Management::Red(red) => {
                let trace = self.opportunities.as_ref().map(|o| o.trace.mean_rate());
                let rate = trace.or(self.rate);
                let mean_packet = u64::from(red.mean_packet());
                let mean_time = rate.map_or(Duration::ZERO, |rate| rate.time_for(mean_packet));
                let idle = now.since(self.idle_since);
                red.choose(&Meeting { queue, idle, mean_time, room, capable: packet.capable })
            }
            Management::Drr(drr) => {
                let drop = |packet| self.discarded.push(now, Output::Dropped(packet));
                let limit = (self.limit, (queue, bytes));
                return accepts && drr.enqueue(packet, flow(), limit, drop);
            }
            Management::FqCoDel(queues) => {
                if accepts {
                    let drop = |packet| self.discarded.push(now, Output::Dropped(packet));
                    queues.enqueue(packet, &flow(), (self.limit, (queue, bytes)), drop);
                }
                return accepts;
            }
            Management::DropTail | Management::CoDel(_) if room => Choice::Accept,
            Management::DropTail | Management::CoDel(_) => Choice::Drop,
        };
        packet.marked = choice == Choice::Mark;
        if choice != Choice::Drop {
            self.backlog.push(packet);
        }
        choice != Choice::Drop
    }

    /// When [`Scheduled::wake`] is to be called next.
    pub(crate) fn next_event(&self) -> Time {
        if !self.discarded.outputs.is_empty() {
            return self.discarded.at;
        }
        self.next_departure().min(self.next_variation).min(self.flight.next_arrival())
    }

    /// When the transmission under way ends.
    fn next_departure(&self) -> Time {
        self.sending.map_or(Time::NEVER, |sending| sending.done)
    }

    /// Handles what is due at `now`, and returns the result.
    pub(crate) fn wake(&mut self, now: Time) -> Option<Output<P>> {
        self.settle(now);
        if let Some(output) = self.discarded.outputs.pop_front() {
            return Some(output);
        }
        let overtaken = self.flight.next_is_overtaken();
        let output = self.flight.pop(now);
        match output {
            Some(Output::Arrived(arrival)) => {
                match arrival.fate {
                    Fate::Intact | Fate::Marked => {}
                    Fate::Corrected { .. } => self.statistics.corrected += 1,
                    Fate::Corrupted => self.statistics.corrupted += 1,
                    Fate::Lost => self.statistics.lost += 1,
                }
                let arrived = arrival.fate != Fate::Lost;
                self.statistics.reordered += u64::from(overtaken && arrived);
            }
            Some(Output::Copied(_)) => self.statistics.duplicated += 1,
            Some(Output::Dropped(_) | Output::Cut(_)) | None => {}
        }
        output
    }

    /// The link goes down, or comes up again.
    pub(crate) fn set_up(&mut self, now: Time, up: bool) {
        self.settle(now);
        self.up = up;
        if up {
            self.start(now);
            return;
        }
        if let Some(Sending { packet, .. }) = self.sending.take() {
            self.backlog.put_back(packet);
        }
        if let Some(opportunities) = &mut self.opportunities {
            opportunities.pause();
        }
        if !self.when_down.keep_queued {
            while let Some(waiting) = self.pop() {
                self.discarded.push(now, Output::Cut(waiting.packet));
            }
            self.idle_since = now;
        }
        if !self.when_down.keep_flying {
            for packet in self.flight.clear() {
                self.discarded.push(now, Output::Cut(packet));
            }
        }
    }

    /// Takes any packet out of the queue.
    fn pop(&mut self) -> Option<Waiting<P>> {
        self.backlog.pop().or_else(|| match &mut self.management {
            Management::DropTail | Management::Red(_) | Management::CoDel(_) => None,
            Management::Drr(drr) => drr.dequeue(),
            Management::FqCoDel(queues) => queues.pop(),
        })
    }

    /// Packets waiting or in transmission at `now`.
    pub(crate) fn queued_packets(&mut self, now: Time) -> usize {
        self.settle(now);
        self.queued()
    }

    fn queued(&self) -> usize {
        let classed = match &self.management {
            Management::DropTail | Management::Red(_) | Management::CoDel(_) => 0,
            Management::Drr(drr) => drr.packets(),
            Management::FqCoDel(queues) => queues.packets(),
        };
        self.backlog.packets() + classed + usize::from(self.sending.is_some())
    }

    /// Counts of what the link did.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics { discarded: self.discarded.count, ..self.statistics }
    }

    /// Measures queueing delays from now on.
    pub(crate) fn measure_delays(&mut self) {
        self.delays = Some(Box::default());
    }

    /// The queueing delays, nanoseconds, if they are measured.
    pub(crate) fn delays(&self) -> Option<Quantiles> {
        self.delays.as_deref().cloned()
    }

    /// Does what is due up to `now`, each thing at its own time.
    fn settle(&mut self, now: Time) {
        loop {
            let (done, varies) = (self.next_departure(), self.next_variation);
            if varies <= now && varies <= done {
                self.vary(varies);
            } else if let Some(sent) = self.sending.filter(|_| done <= now) {
                self.sending = None;
                self.launch(sent);
                self.idle_since = done;
                self.start(done);
            } else {
                return;
            }
        }
    }

    /// Begins the next transmission, if one is possible.
    fn start(&mut self, now: Time) {
        if self.sending.is_some() || !self.up {
            return;
        }
        if let Some(packet) = self.dequeue(now) {
            let done = match (&mut self.opportunities, self.rate) {
                (Some(opportunities), _) => opportunities.transmit(now, packet.len),
                (None, Some(rate)) => now + rate.time_for(u64::from(packet.len)),
                (None, None) => now,
            };
            self.sending = Some(Sending { packet, began: now, done });
        } else if let Some(opportunities) = &mut self.opportunities {
            opportunities.pause();
        }
    }

    /// The next packet to transmit.
    fn dequeue(&mut self, now: Time) -> Option<Waiting<P>> {
        match &mut self.management {
            Management::DropTail | Management::Red(_) => self.backlog.pop(),
            Management::CoDel(control) => control.dequeue(now, &mut self.backlog, |packet| {
                self.discarded.push(now, Output::Dropped(packet));
            }),
            Management::Drr(drr) => self.backlog.pop().or_else(|| drr.dequeue()),
            Management::FqCoDel(queues) => self.backlog.pop().or_else(|| {
                queues.dequeue(now, |packet| self.discarded.push(now, Output::Dropped(packet)))
            }),
        }
    }

    /// Changes rate and delay to what they are from `now` on.
    fn vary(&mut self, now: Time) {
        let (variation, until) = self.variations.at(now);
        let variation = variation.copied().unwrap_or_default();
        let old = self.rate;
        self.rate = variation.rate.or(self.usual.0);
        self.delay = variation.delay.unwrap_or(self.usual.1);
        self.next_variation = until;
        if let Some(sending) = &mut self.sending
            && self.opportunities.is_none()
        {
            sending.done = now + rescaled(sending.done.since(now), old, self.rate);
        }
    }

    /// Puts a transmitted packet in flight.
    fn launch(&mut self, Sending { packet, began, done }: Sending<P>) {
        let Waiting { len, corrects, since, .. } = packet;
        if let Some(delays) = &mut self.delays {
            delays.record(began.since(since).as_nanos());
        }
        let mut fate = self.errors.next(Transmission { began, ended: done, len, corrects });
        if packet.marked {
            fate = fate.marked();
        }
        self.statistics.marked += u64::from(packet.marked);
        let treatment = self.impairer.next();
        self.flight.push(done + self.delay, packet.packet, fate, treatment);
    }
}

/// The rest of a transmission at the new rate; at the old one it was `left`.
fn rescaled(left: Duration, old: Option<Rate>, new: Option<Rate>) -> Duration {
    let (Some(old), Some(new)) = (old, new) else { return Duration::ZERO };
    let nanos = u128::from(left.as_nanos()) * u128::from(old.as_bps()) / u128::from(new.as_bps());
    Duration::from_nanos(nanos.min(u128::from(Duration::MAX.as_nanos())) as u64)
}
