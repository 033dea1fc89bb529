//! One connection: the states of RFC 9293 §3.3.2 around a sender and a receiver.

mod budget;
mod clock;
mod fast_path;
mod input;
mod output;
mod snapshot;
mod timestamps;

pub use fast_path::{FastPath, FastPathOutcome, Reader};
pub use output::Transmit;
pub use snapshot::{AdoptError, Snapshot};

use crate::config::{Config, KeepAlive};
use crate::event::Event;
use crate::indication::{Indication, Subject};
use crate::mechanism::{Action, Hooks, Mechanisms};
use crate::receiver::Receiver;
use crate::recovery::Recovery;
use crate::sender::{Sender, Statistics};
use crate::state::{Info, Pressure, State, Vitals};
use base::{Duration, Time};
use bitflags::bitflags;
use budget::Budget;
use clock::Clock;
use serde::{Deserialize, Serialize};
use timestamps::Clocks;
use wire::{Payload, Segment, SeqNumber};

/// Which side opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// It sends the first SYN.
    Active,
    /// It has been sent one.
    Passive,
}

/// What a connection's host decides about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Our port.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
    /// Our initial sequence number (RFC 6528).
    pub iss: SeqNumber,
    /// Our timestamp at time zero (RFC 7323 §5.4).
    pub timestamp_offset: u32,
    /// The packets are IPv6: who names no segment size takes 1220 bytes and not 536 (RFC 9293
    /// §3.7.1).
    pub is_ipv6: bool,
    /// A number that nobody outside knows, for whatever of a mechanism is to be unpredictable.
    pub secret: u64,
}

bitflags! {
    /// What has happened since the last look.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct Events: u8 {
        /// The handshake is complete.
        const CONNECTED = 1;
        /// There is something to read.
        const READABLE = 1 << 1;
        /// The peer has sent everything, and it has arrived.
        const PEER_CLOSED = 1 << 2;
        /// The connection is over and forgotten.
        const CLOSED = 1 << 3;
        /// The peer has reset it.
        const RESET = 1 << 4;
        /// The peer has not been heard of for too long.
        const TIMED_OUT = 1 << 5;
        /// The peer cannot be reached.
        const UNREACHABLE = 1 << 6;
        /// No more is unacknowledged than [`Connection::notify_below`] has asked for.
        const WRITABLE = 1 << 7;
    }

    /// What both ends have agreed on; before the peer's SYN, what we offer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(transparent)]
    struct Agreed: u8 {
        const SACK = 1;
        const SCALE = 1 << 1;
        const TIMESTAMPS = 1 << 2;
        const ECN = 1 << 3;
    }
}

/// A segment that is no part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Aside {
    Reset(Reset),
    KeepAlive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Reset {
    seq: SeqNumber,
    /// It carries an acknowledgment, too.
    acks: bool,
}

/// One TCP connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    clock: Clock,
    state: State,
    side: Side,
    local_port: u16,
    remote_port: u16,
    /// Our initial sequence number.
    iss: SeqNumber,
    /// The peer's.
    irs: SeqNumber,
    /// Shifts of the window fields (RFC 7323 §2.3).
    send_shift: u8,
    receive_shift: u8,
    mss: u16,
    /// The least that is believed of the peer's.
    minimum_mss: u16,
    /// The peer's, unless it names another.
    default_mss: u16,
    agreed: Agreed,
    /// Segments may take the fast path: the connection is established, with nothing negotiated but SACK
    /// and timestamps, no mechanism that looks at segments, an open window and no keep-alive timer.
    fast: bool,
    timestamps: Clocks,
    requires_timestamps: bool,
    /// The peer is told that congestion was experienced until it says that it has heard
    /// (RFC 3168 §6.1.3).
    is_echoing: bool,
    /// To be sent before anything else.
    aside: Option<Aside>,
    /// Challenges, and how many there may be (RFC 5961 §7).
    challenges: Budget,
    challenges_allowed: u32,
    /// Answers to keep-alives and window probes.
    answers: Budget,
    answers_allowed: u32,
    /// Segments without data that PAWS has refused and that were answered, since the last segment
    /// that was acceptable.
    stale_answers: u32,
    time_wait: Duration,
    fin_wait_2: Option<Duration>,
    /// Nothing will be read any more.
    is_unread: bool,
    keep_alive: Option<KeepAlive>,
    /// Keep-alive probes that the peer has not answered.
    unanswered: u32,
    /// When TIME-WAIT ends, or FIN-WAIT-2 where it is limited; before that, when the peer has been silent
    /// for too long.
    alarm: Time,
    /// Of [`Connection::notify_below`].
    low_water: Option<u64>,
    sender: Sender,
    receiver: Receiver,
    mechanisms: Mechanisms,
    events: Events,
}

/// The smallest shift that lets the window field express `window` (RFC 7323 §2.2: at most 14).
fn shift_for(window: u32) -> u8 {
    (0..14).find(|&shift| window >> shift <= u32::from(u16::MAX)).unwrap_or(14)
}

impl Connection {
    /// A new connection. A passive one is then given the SYN by [`Connection::handle_segment`].
    #[must_use]
    pub fn new(config: &Config, side: Side, identity: Identity) -> Connection {
        let mut agreed = Agreed::SCALE;
        agreed.set(Agreed::SACK, config.recovery == Recovery::Sack);
        agreed.set(Agreed::TIMESTAMPS, config.timestamps);
        agreed.set(Agreed::ECN, config.ecn);
        Connection {
            clock: Clock::default(),
            state: match side {
                Side::Active => State::SynSent,
                Side::Passive => State::SynReceived,
            },
            side,
            local_port: identity.local_port,
            remote_port: identity.remote_port,
            iss: identity.iss,
            irs: SeqNumber::default(),
            send_shift: 0,
            receive_shift: shift_for(config.receive_window),
            mss: config.mss,
            minimum_mss: config.minimum_mss,
            default_mss: if identity.is_ipv6 { 1220 } else { 536 },
            agreed,
            fast: false,
            timestamps: Clocks::new(identity.timestamp_offset),
            requires_timestamps: config.require_timestamps,
            is_echoing: false,
            aside: None,
            challenges: Budget::default(),
            challenges_allowed: config.challenges,
            answers: Budget::default(),
            answers_allowed: config.out_of_window_acks,
            stale_answers: 0,
            time_wait: config.time_wait,
            fin_wait_2: config.fin_wait_2,
            is_unread: false,
            keep_alive: config.keep_alive,
            unanswered: 0,
            alarm: Time::NEVER,
            low_water: None,
            sender: Sender::new(config, side),
            receiver: Receiver::new(config),
            mechanisms: Mechanisms::new(config.mechanisms.clone(), &identity),
            events: Events::empty(),
        }
    }

    /// The port of the end that opened the connection; of a simultaneous open, our own.
    #[must_use]
    pub fn client_port(&self) -> u16 {
        match self.side {
            Side::Active => self.local_port,
            Side::Passive => self.remote_port,
        }
    }

    // --- the application's side ---

    /// Appends `len` bytes of `stream`, from `offset` on, to what is to be sent. Ignored after
    /// [`Connection::close`].
    ///
    /// A segment never carries bytes of two streams: where another begins, so does a segment.
    pub fn write(&mut self, stream: u32, offset: u64, len: u64) {
        self.sender.stream.write(stream, offset, len, true);
    }

    /// The same, but more is to follow: what does not fill a segment waits for it, at most as long
    /// as for a retransmission. It is not pushed (RFC 9293 §3.9.1.2).
    pub fn write_more(&mut self, stream: u32, offset: u64, len: u64) {
        self.sender.stream.write(stream, offset, len, false);
    }

    /// From now on, whatever is written waits until it fills a segment, at most as long as for a
    /// retransmission (`TCP_CORK` of Linux, `TCP_NOPUSH` of BSD); or no longer.
    pub fn cork(&mut self, corked: bool) {
        self.sender.stream.cork(corked);
    }

    /// What was written goes, although more will follow.
    pub fn flush(&mut self) {
        self.sender.stream.flush();
    }

    /// Changes [`Config::nagle`].
    pub fn set_nagle(&mut self, nagle: bool) {
        self.sender.set_nagle(nagle);
    }

    /// Bytes written and not yet acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.sender.stream.written().saturating_sub(self.sender.una().saturating_sub(1))
    }

    /// Asks for [`Events::WRITABLE`], once, as soon as at most `bytes` are unacknowledged.
    pub fn notify_below(&mut self, bytes: u64) {
        self.low_water = Some(bytes);
        self.notify();
    }

    /// The next run of bytes that has arrived in order.
    #[inline]
    pub fn read(&mut self) -> Option<Payload> {
        self.receiver.read(u32::MAX)
    }

    /// The same, but at most `bytes` of it; the rest stays for the next call.
    #[inline]
    pub fn read_up_to(&mut self, bytes: u32) -> Option<Payload> {
        self.receiver.read(bytes)
    }

    /// Bytes that can be read.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// What [`Connection::read`] would return, run by run, without taking it.
    pub fn peek(&self) -> impl Iterator<Item = Payload> {
        self.receiver.peek()
    }

    /// Nothing more will be written: a FIN follows the data. What the peer sends can be read on
    /// (half-close, RFC 9293 §3.6).
    pub fn close(&mut self) {
        self.sender.stream.close();
        match self.state {
            State::Established | State::SynReceived => self.enter(State::FinWait1),
            State::CloseWait => self.enter(State::LastAck),
            State::SynSent => self.enter_closed(Events::CLOSED),
            _ => {}
        }
    }

    /// Closes, and nothing will be read any more, either (RFC 9293 §3.6.1, MAY-1): what `close` does to a
    /// BSD socket, where [`Connection::close`] is `shutdown`. Data that is unread, or arrives later, is
    /// lost, and a reset says so (SHLD-3). The peer has as long to close, too, as
    /// [`Config::fin_wait_2`] says.
    pub fn close_both(&mut self, now: Time) {
        self.is_unread = true;
        if self.receiver.readable() > 0 {
            return self.abort();
        }
        self.close();
        if self.state == State::FinWait2 {
            self.limit_fin_wait_2(self.clock.local(now));
        }
    }

    /// Ends the connection at once, whatever is outstanding or unread; the peer is told by a reset
    /// (RFC 9293 §3.10.5).
    pub fn abort(&mut self) {
        let tells = !matches!(
            self.state,
            State::SynSent | State::Closing | State::LastAck | State::TimeWait | State::Closed
        );
        if self.state != State::Closed {
            self.enter_closed(Events::CLOSED);
        }
        if tells {
            let seq = self.iss + self.sender.nxt() as u32;
            self.aside = Some(Aside::Reset(Reset { seq, acks: true }));
        }
    }

    /// What has happened since the last call.
    #[inline]
    pub fn take_events(&mut self) -> Events {
        core::mem::take(&mut self.events)
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Counts of what the sender did.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.sender.statistics
    }

    /// What a time series shows.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        Vitals {
            window: self.sender.window(),
            dupacked: self.sender.dupacked(),
            ssthresh: self.sender.ssthresh(),
            flight: self.sender.outstanding(),
            srtt: self.sender.srtt(),
            rto: self.sender.rto(),
        }
    }

    /// Since when what is outstanding waits for an acknowledgment: since the last one, or since it
    /// was sent. `None` if no data is outstanding.
    #[must_use]
    pub fn waits_since(&self) -> Option<Time> {
        let waits = self.sender.una() > 0 && self.sender.outstanding() > 0;
        waits.then(|| self.clock.world(self.sender.progress_at()))
    }

    /// What else there is to know.
    #[must_use]
    pub fn info(&self) -> Info {
        let scaled = self.agreed.contains(Agreed::SCALE) && self.receiver.nxt() > 0;
        Info {
            mss: self.sender.mss(),
            offered_mss: self.mss,
            standing: self.sender.standing(),
            sack: self.agreed.contains(Agreed::SACK),
            timestamps: self.agreed.contains(Agreed::TIMESTAMPS),
            ecn: self.agreed.contains(Agreed::ECN),
            window_shifts: scaled.then_some((self.send_shift, self.receive_shift)),
            peer_window: self.sender.peer_window(),
            own_window: self.receiver.window(),
            written: self.sender.stream.written(),
            sent: self.sender.nxt().saturating_sub(1).min(self.sender.stream.written()),
            received: self.receiver.received(),
        }
    }

    /// Bytes of memory that it takes: its own, what is unread or out of order, and the records of what is
    /// outstanding. What it has to send is its application's.
    #[must_use]
    pub fn memory(&self) -> u64 {
        size_of::<Connection>() as u64 + self.receiver.memory() + self.sender.memory()
    }

    /// The host is short of memory, or no longer. Data in order that was asked for is always taken.
    pub fn set_pressure(&mut self, pressure: Pressure) {
        self.receiver.set_pressure(pressure);
    }

    /// Keeps [`Event`]s for [`Connection::poll_event`] from now on, or no longer.
    pub fn watch(&mut self, keep: bool) {
        self.sender.log.keep(keep);
    }

    /// The next event, for whoever has asked by [`Connection::watch`].
    pub fn poll_event(&mut self) -> Option<Event> {
        if !self.sender.log.is_kept() {
            return None;
        }
        let vitals = self.vitals();
        self.sender.log.pop(vitals)
    }

    // --- the world's side ---

    /// Takes in what a layer below, a router or the peer tells.
    pub fn indicate(&mut self, now: Time, indication: &Indication) {
        if self.state == State::Closed {
            return;
        }
        let now = self.clock.local(now);
        if let Subject::Unreachable { seq, hard } = indication.subject {
            return self.on_unreachable(seq, hard);
        }
        if !self.mechanisms.answer(Hooks::INDICATION) {
            return;
        }
        // Of what has arrived, or cannot arrive, nobody needs to hear (RFC 5927 §4.1).
        if let Subject::PeerCorrupted { .. } = indication.subject
            && !self.is_concerned(&indication.subject)
        {
            return;
        }
        if let Subject::Connectivity(_) = indication.subject {
            return self.on_connectivity(now, indication);
        }
        let view = self.sender.view(now);
        if let Some(action) = self.mechanisms.indication(&view, indication) {
            self.act(now, action);
        }
    }

    /// The way to the peer concerns every mechanism.
    fn on_connectivity(&mut self, now: Time, indication: &Indication) {
        for index in 0..self.mechanisms.len() {
            let view = self.sender.view(now);
            if let Some(action) = self.mechanisms.indication_to(index, &view, indication) {
                self.act(now, action);
            }
        }
    }

    /// Whether what is told can be of this connection as it stands: of the latest copy of what is
    /// outstanding, or of what the peer may send and has not got through.
    #[must_use]
    pub fn is_concerned(&self, subject: &Subject) -> bool {
        match *subject {
            Subject::Corrupted { seq, copy, .. } => {
                self.sent(seq).is_some_and(|start| self.sender.is_missing(start, copy))
            }
            Subject::PeerCorrupted { seq, len, .. } => {
                let nxt = self.receiver.nxt();
                let start = absolute(seq, self.irs, nxt).filter(|_| nxt > 0);
                start.is_some_and(|start| self.receiver.misses(start, start + u64::from(len)))
            }
            Subject::Unreachable { seq, .. } => self.is_outstanding(seq),
            // That is of a path, not of what goes over it.
            Subject::Path(_) | Subject::Link { .. } | Subject::Connectivity(_) => false,
        }
    }

    fn is_outstanding(&self, seq: SeqNumber) -> bool {
        self.sent(seq).is_some_and(|seq| (self.sender.una()..self.sender.nxt()).contains(&seq))
    }

    /// Does what a mechanism asks for.
    fn act(&mut self, now: Time, action: Action) {
        let (seq, copy, judged) = match action {
            Action::Lost { seq, copy } => (seq, copy, true),
            Action::RetransmitNow { seq, copy } => (seq, copy, false),
            Action::Acknowledge => return self.receiver.acknowledge_now(),
            Action::SendNow => return self.send_now(),
            Action::Reprobe { window, resend } => return self.reprobe(now, window, resend),
            Action::EndSlowStart => return self.sender.end_slow_start(),
            Action::CloseWindow => {
                self.receiver.close_window();
                return self.update_fast_path();
            }
            Action::OpenWindow => {
                self.receiver.open_window();
                return self.update_fast_path();
            }
        };
        let Some(copy) = self.mechanisms.admit(&self.sender.view(now), copy) else { return };
        if let Some(start) = self.sent(seq) {
            self.sender.on_notice(now, start, copy, judged, &mut self.mechanisms);
        }
    }

    /// The path is another one.
    fn reprobe(&mut self, now: Time, window: Option<u32>, resend: bool) {
        self.timestamps.step();
        let resends = self.sender.reprobe(now, window, resend);
        if !resends {
            self.send_now();
        }
    }

    /// One segment of new data goes at once, or else an acknowledgment.
    fn send_now(&mut self) {
        if !self.sender.let_out() {
            self.receiver.acknowledge_now();
        }
    }

    /// RFC 5461 §4: once the peer has answered, an ICMP error is no reason to give it up.
    fn on_unreachable(&mut self, seq: SeqNumber, hard: bool) {
        // RFC 5927 §4.1: whoever does not know what is outstanding is not believed.
        if self.is_outstanding(seq) && hard && self.state == State::SynSent {
            self.enter_closed(Events::UNREACHABLE | Events::CLOSED);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.state == State::Closed {
            return;
        }
        let now = self.clock.local(now);
        self.sender.on_deadline(now, &mut self.mechanisms);
        if self.sender.gives_up() {
            return self.enter_closed(Events::TIMED_OUT | Events::CLOSED);
        }
        self.receiver.on_deadline(now);
        if self.mechanisms.wake() <= now {
            let view = self.sender.view(now);
            if let Some(action) = self.mechanisms.on_wake(&view) {
                self.act(now, action);
            }
        }
        if self.alarm <= now {
            self.on_alarm(now);
        }
    }

    /// TIME-WAIT or FIN-WAIT-2 is over, or the peer has been silent for long.
    fn on_alarm(&mut self, now: Time) {
        let keep_alive = match self.keep_alive {
            Some(keep_alive) if !self.is_ending() => keep_alive,
            _ => return self.enter_closed(Events::CLOSED),
        };
        if self.unanswered >= keep_alive.probes {
            self.abort();
            self.events |= Events::TIMED_OUT;
            return;
        }
        // What is outstanding asks the question by itself.
        if self.sender.outstanding() == 0 {
            self.unanswered += 1;
            self.aside = Some(Aside::KeepAlive);
            self.sender.log.push(|| Event::KeptAlive { probes: self.unanswered });
        }
        self.alarm = now + keep_alive.interval;
    }

    /// When [`Connection::handle_timeout`] is next worth calling.
    #[must_use]
    #[inline(always)]
    pub fn poll_timeout(&self) -> Time {
        let own = self.sender.deadline().min(self.receiver.deadline());
        // On the fast path there is no other timer.
        let others = || self.alarm.min(self.mechanisms.wake());
        self.clock.world(if self.fast { own } else { own.min(others()) })
    }

    /// Whether a SYN may take this connection's place before TIME-WAIT is over: it is later than
    /// anything that the peer has sent (RFC 9293 §3.6.1, RFC 6191 §2).
    #[must_use]
    pub fn yields_to(&self, syn: &Segment) -> bool {
        if self.state != State::TimeWait {
            return false;
        }
        let is_beyond = syn.seq.beyond(self.irs + self.receiver.nxt() as u32) >= 0;
        match syn.options.timestamps {
            Some(stamp) if self.agreed.contains(Agreed::TIMESTAMPS) => {
                match self.timestamps.age(stamp.value) {
                    0 => is_beyond,
                    age => age > 0,
                }
            }
            _ => is_beyond,
        }
    }

    /// Our sequence number after everything sent: the next connection between the same ports must
    /// start beyond it (RFC 9293 §3.4.3).
    #[must_use]
    pub fn last_sent(&self) -> SeqNumber {
        self.iss + self.sender.nxt() as u32
    }

    // --- inside ---

    /// Our own sequence number `seq`, absolute; `None` if before the SYN.
    #[inline]
    fn sent(&self, seq: SeqNumber) -> Option<u64> {
        absolute(seq, self.iss, self.sender.una())
    }

    /// Says that more may be written, if that was asked for.
    fn notify(&mut self) {
        if self.low_water.is_some_and(|bytes| self.unacknowledged() <= bytes) {
            self.low_water = None;
            self.events |= Events::WRITABLE;
        }
    }

    fn enter(&mut self, state: State) {
        let from = core::mem::replace(&mut self.state, state);
        self.update_fast_path();
        self.sender.log.push(|| Event::State { from, to: state });
    }

    /// Segments may take the fast path from now on, or no longer.
    fn update_fast_path(&mut self) {
        self.fast = self.state == State::Established
            && !self.agreed.contains(Agreed::ECN)
            && !self.mechanisms.answer(Hooks::OUTGOING | Hooks::INCOMING | Hooks::TIMER)
            && !self.receiver.is_closed()
            && self.keep_alive.is_none();
    }

    fn enter_time_wait(&mut self, now: Time) {
        if self.state != State::TimeWait {
            self.enter(State::TimeWait);
        }
        self.alarm = now + self.time_wait;
    }

    /// In FIN-WAIT-2, the peer has so long to close if what it sends is read no more.
    fn limit_fin_wait_2(&mut self, now: Time) {
        if let Some(limit) = self.fin_wait_2.filter(|_| self.is_unread) {
            self.alarm = now + limit;
        }
    }

    /// Whether the connection will be over at a time that is known.
    fn is_ending(&self) -> bool {
        match self.state {
            State::TimeWait => true,
            State::FinWait2 => self.is_unread && self.fin_wait_2.is_some(),
            _ => false,
        }
    }

    fn enter_closed(&mut self, events: Events) {
        self.enter(State::Closed);
        self.alarm = Time::NEVER;
        self.aside = None;
        self.sender.stop();
        self.receiver.stop();
        self.mechanisms.stop();
        self.events |= events;
    }
}

/// The absolute number of `seq`, given the initial number and an absolute one nearby.
#[inline]
fn absolute(seq: SeqNumber, initial: SeqNumber, near: u64) -> Option<u64> {
    near.checked_add_signed(i64::from(seq.beyond(initial + near as u32)))
}

#[cfg(test)]
mod tests;
