//! The association of two ends: what arrives, what is sent, and the deadlines.

mod input;
#[cfg(test)]
mod model;
mod output;
mod renewal;
mod slots;
mod snapshot;
mod timers;
mod transport;

pub use snapshot::{AdoptError, Snapshot};
pub use transport::Stream;

use crate::config::Config;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::stream::{Control, Flags, StreamId};
use base::{Clock, Duration, Events, Rate, Time};
use serde::{Deserialize, Serialize};
use slots::Slots;
use wire::srp::{Ends, Limits, Pdu, Reason};
use wire::{Payload, Srp};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// We have asked the peer to open it.
    Opening,
    Open,
    Closed,
}

/// Counts of an association, of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Segments sent for the first time.
    pub segments: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Segments sent again that were not lost as far as was known ([`Config::repeat`]).
    pub repetitions: u64,
    /// Segments that have arrived, each once.
    pub received: u64,
    /// Segments that have arrived again.
    pub duplicates: u64,
    /// PDUs that contradict what was sent or told, and were ignored.
    pub ignored: u64,
    /// SACKs sent.
    pub sacks: u64,
    /// SACKs that have arrived.
    pub sacks_received: u64,
    /// Probes sent.
    pub probes: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// One end of an association.
///
/// After each call that changes it, the owner calls [`Association::poll_transmit`] until there is nothing more
/// to send, and takes the events of the streams. The memory that a peer can claim is bounded by
/// [`Config`]: the number of streams, the window of each, and the number of segments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Association {
    clock: Clock,
    config: Config,
    token: u32,
    /// The first token, if it is another one: the association was renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<u32>,
    /// We have opened it.
    is_opener: bool,
    phase: Phase,
    is_suspended: bool,
    /// What the peer accepts.
    limits: Limits,
    receiver: Receiver,
    sender: Sender,
    slots: Slots,
    /// The slot of the stream of which a segment has arrived last: SACKs bring its credit.
    latest_stream: u32,
    /// The OPEN is to be sent (again) then.
    open_due: Time,
    opens_sent: u32,
    opened_at: Time,
    opened_due: bool,
    probe_due: bool,
    reset_due: Option<Reason>,
    /// The retransmission timeout.
    timer: Time,
    /// When the peer was heard last.
    heard_at: Time,
    /// Since when an answer is awaited.
    waiting_since: Option<Time>,
    statistics: Statistics,
}

impl Association {
    /// Opens an association. `token` is a random number, by which the peer finds it.
    #[must_use]
    pub fn connect(now: Time, config: &Config, token: u32) -> Association {
        let mut new = Association::new(now, config, token);
        (new.is_opener, new.open_due) = (true, now);
        new
    }

    /// Accepts an association that the peer opens; `None` if the PDU opens none.
    #[must_use]
    pub fn accept(now: Time, config: &Config, srp: &Srp) -> Option<Association> {
        let Pdu::Open(limits) = srp.pdu else { return None };
        let mut new = Association::new(now, config, srp.token);
        new.on_limits(limits);
        new.opened_due = true;
        Some(new)
    }

    fn new(now: Time, config: &Config, token: u32) -> Association {
        let config = config.in_range();
        Association {
            clock: Clock::default(),
            token,
            first: None,
            is_opener: false,
            phase: Phase::Opening,
            is_suspended: false,
            limits: Limits { segments: 1, window: 0, streams: 16 },
            receiver: Receiver::new(config.segments),
            sender: Sender::new(&config),
            slots: Slots::default(),
            latest_stream: 0,
            open_due: Time::NEVER,
            opens_sent: 0,
            opened_at: now,
            opened_due: false,
            probe_due: false,
            reset_due: None,
            timer: Time::NEVER,
            heard_at: now,
            waiting_since: None,
            statistics: Statistics::default(),
            config,
        }
    }

    /// The PDU that tells the sender of `srp` that its association does not exist here; `None` if it needs
    /// no answer. Ports are the owner's.
    #[must_use]
    pub fn refusal(srp: &Srp) -> Option<Srp> {
        match srp.pdu {
            Pdu::Reset { .. } | Pdu::Open(_) => None,
            _ => {
                let pdu = Pdu::Reset { reason: Reason::Unknown };
                Some(Srp { source_port: 0, destination_port: 0, token: srp.token, pdu })
            }
        }
    }

    /// The number by which PDUs find the association.
    #[must_use]
    pub fn token(&self) -> u32 {
        self.token
    }

    /// The one that it began with. [`Association::renew`] takes the next ones in turn.
    #[must_use]
    pub fn first_token(&self) -> u32 {
        self.first.unwrap_or(self.token)
    }

    /// Whether a token is the present one or an earlier one.
    #[must_use]
    pub fn has_had(&self, token: u32) -> bool {
        let age = |token: u32| token.wrapping_sub(self.first_token());
        age(token) <= age(self.token)
    }

    /// Whether both ends have opened it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether it is over. A last PDU may still have to be sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Opens a stream for a connection between two ends. [`Events::CONNECTED`] follows once the far end has
    /// accepted it; else [`Events::RESET`], [`Events::UNREACHABLE`] or [`Events::TIMED_OUT`] with
    /// [`Events::CLOSED`]. Data may be written at once. `None` if the association is over, or the peer
    /// accepts no more streams.
    pub fn open(&mut self, now: Time, ends: Ends) -> Option<StreamId> {
        let _ = now;
        if self.phase == Phase::Closed || self.slots.ours() >= u32::from(self.limits.streams) {
            return None;
        }
        let credit = u64::from(self.limits.window);
        let id = self.slots.open_ours(self.is_opener, (credit, self.config.window))?;
        let stream = self.slots.get_mut(id.slot)?;
        stream.ends = Some(ends);
        stream.control = Control::OPEN;
        self.slots.activate(id.slot);
        Some(id)
    }

    /// The next stream that the peer has opened, and the ends of its connection. The owner answers with
    /// [`Association::accept_stream`] or [`Association::refuse`].
    pub fn poll_incoming(&mut self) -> Option<(StreamId, Ends)> {
        while let Some(id) = self.slots.incoming.pop_front() {
            let Some(stream) = self.slots.named_mut(id) else { continue };
            if stream.flags.contains(Flags::OVER) {
                continue;
            }
            stream.flags |= Flags::OFFERED;
            if let Some(ends) = stream.ends {
                return Some((id, ends));
            }
        }
        None
    }

    /// Tells the peer that the far end has accepted the connection. From now on the stream has events.
    pub fn accept_stream(&mut self, id: StreamId) {
        let Some(stream) = self.slots.named_mut(id) else { return };
        if stream.flags.intersects(Flags::OURS | Flags::ACCEPTED) {
            return;
        }
        stream.flags |= Flags::ACCEPTED | Flags::VISIBLE;
        let mut events = Events::empty();
        if !stream.flags.contains(Flags::OVER) {
            stream.control |= Control::ACCEPT;
            events = Events::CONNECTED;
        }
        self.slots.raise(id.slot, events);
        self.slots.activate(id.slot);
    }

    /// Tells the peer that the connection is not possible.
    pub fn refuse(&mut self, id: StreamId, reason: Reason) {
        if self.slots.named_mut(id).is_some() {
            self.slots.abort(id.slot, reason);
            self.slots.dismiss(id.slot);
        }
    }

    /// The ends of a stream's connection.
    #[must_use]
    pub fn ends(&self, id: StreamId) -> Option<Ends> {
        self.slots.named(id)?.ends
    }

    /// A stream, as a transport.
    pub fn stream(&mut self, id: StreamId) -> Option<Stream<'_>> {
        self.slots.named(id)?;
        Some(Stream { association: self, slot: id.slot })
    }

    /// The events of the next stream that has some. A stream is there until this is called again after
    /// [`Events::CLOSED`], and then until all its data is read.
    pub fn poll_events(&mut self) -> Option<(StreamId, Events)> {
        self.sweep();
        self.slots.poll_events()
    }

    /// Streams that are not over for their owner.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.slots.iter().filter(|(_, stream)| !stream.flags.contains(Flags::OVER)).count()
    }

    /// Streams of which something may still have to be sent or received, or read.
    #[must_use]
    pub fn held_streams(&self) -> usize {
        self.slots.iter().count()
    }

    /// Ends the association and all its streams at once. The peer is told.
    pub fn abort(&mut self) {
        if self.phase != Phase::Closed {
            let is_known = !self.is_opener || self.opens_sent > 0;
            self.fail(Events::CLOSED);
            self.reset_due = is_known.then_some(Reason::Aborted);
        }
    }

    /// Ends the association: its streams get `events`.
    fn fail(&mut self, events: Events) {
        self.phase = Phase::Closed;
        self.sender.stop();
        self.receiver.stop();
        (self.open_due, self.timer) = (Time::NEVER, Time::NEVER);
        (self.opened_due, self.probe_due, self.waiting_since) = (false, false, None);
        self.slots.fail_all(events | Events::CLOSED);
    }

    /// A handoff has begun: until [`Association::resume`] nothing is sent, and no time passes for timeouts.
    pub fn suspend(&mut self, now: Time) {
        let _ = now;
        self.is_suspended = true;
    }

    /// The handoff is over, or the link is back: a SACK and a probe are sent at once. What the answer shows to be
    /// lost is retransmitted at once. With [`Config::repeat`], if the peer was not heard for a while, some segments that
    /// may be lost are sent again even before.
    pub fn resume(&mut self, now: Time) {
        let now = self.clock.local(now);
        let was_heard_at = self.heard_at;
        let is_interrupted =
            self.is_suspended || now.since(was_heard_at) > self.sender.rtt.timeout();
        self.is_suspended = false;
        (self.heard_at, self.timer, self.waiting_since) = (now, Time::NEVER, None);
        if self.phase == Phase::Opening && !self.is_opener {
            // It does not wait for a renewal any more.
            self.phase = Phase::Open;
        }
        match self.phase {
            Phase::Opening => self.open_due = now,
            Phase::Open => {
                self.probe_due = true;
                self.receiver.request_sack(now);
                if is_interrupted {
                    self.sender.on_interruption(was_heard_at);
                }
                self.sender.rtt.on_path_change(now);
                self.sender.pacing.on_path_change(now);
            }
            Phase::Closed => {}
        }
    }

    /// Whether it is suspended.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Sets what the settings say of the hop: [`Config::segment_size`], for segments that are not sent yet,
    /// [`Config::overhead`], [`Config::rate`], [`Config::share`], [`Config::repeat`] and
    /// [`Config::gather`]. If it is another hop,
    /// [`Association::resume`] follows.
    pub fn set_hop(&mut self, config: &Config) {
        let Config { segment_size, overhead, rate, share, repeat, gather, .. } = config.in_range();
        let own = self.config.clone();
        self.config = Config { segment_size, overhead, rate, share, repeat, gather, ..own };
        self.sender.set_hop(&self.config);
    }

    /// The payload that is held: what may still be read or sent.
    pub fn held_payloads(&self) -> impl Iterator<Item = Payload> {
        let streams = self.slots.iter().map(|(_, stream)| stream);
        streams.flat_map(|stream| stream.receive.payloads().chain(stream.send.payloads()))
    }

    /// Counts since the association began.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The smoothed round trip.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.sender.rtt.smoothed()
    }

    /// The share of our segments' copies that was lost of late, for whatever reason.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        self.sender.loss()
    }

    /// The rate of the hop in our direction, counted in bytes of IP packets: given, or measured once that is
    /// done.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.sender.pacing.rate()
    }

    /// Bytes of packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.sender.in_flight_bytes()
    }

    /// The clock of the association, in which [`Snapshot`]s count.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }
}
