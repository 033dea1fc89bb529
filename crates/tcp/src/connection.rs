//! One connection: the states of RFC 9293 §3.3.2 around a sender and a receiver.

mod accurate_ecn;
mod ack_budget;
mod acks;
mod application;
mod ecn;
mod fast_open;
mod fast_path;
mod from_handshake;
mod indications;
mod info;
mod input;
mod opening;
mod output;
mod path_mtu;
mod snapshot;
mod timers;
mod timestamps;
mod unacceptable;

pub(crate) use accurate_ecn::NewlyDelivered;
pub use base::{Clock, Events, LowWater};
pub use fast_open::{FastOpen, FastOpenResult};
use fast_path::Prediction;
pub use fast_path::{FastPath, FastPathOutcome, Predicted, Reader};
pub use from_handshake::Handshake;
pub use output::Transmit;
pub use snapshot::{AdoptError, Snapshot};

use crate::config::{Config, EcnMode, KeepAlive};
use crate::event::Event;
use crate::mechanism::{Hooks, Mechanisms};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::state::{Side, State};
use accurate_ecn::AccurateEcn;
use ack_budget::AckBudget;
use base::{Duration, Time};
use bitflags::bitflags;
use ecn::EcnOffer;
use fast_open::FastOpenState;
use serde::{Deserialize, Serialize};
use timestamps::TimestampState;
use wire::SeqNumber;

/// The parameters of a connection that its host chooses.
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
    /// The connection runs over IPv6: a peer that announces no MSS takes 1220 bytes instead of 536
    /// (RFC 9293 §3.7.1).
    pub is_ipv6: bool,
    /// A secret from which mechanisms derive unpredictable numbers.
    pub secret: u64,
}

bitflags! {
    /// The negotiated options; before the peer's SYN, those that we offer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(transparent)]
    struct Negotiated: u8 {
        const SACK = 1;
        const SCALE = 1 << 1;
        const TIMESTAMPS = 1 << 2;
        /// With one signal in a round trip (RFC 3168).
        const ECN = 1 << 3;
        /// With a count of marks (RFC 9768).
        const ACCURATE_ECN = 1 << 4;
    }
}

/// A segment outside the sequence of data and acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum OutOfBand {
    Reset(Reset),
    KeepAlive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Reset {
    seq: SeqNumber,
    /// The ACK flag is set.
    acks: bool,
}

/// One TCP connection.
//
// What a segment on the fast path touches comes first, here and in the receiver and the sender.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Connection {
    clock: Clock,
    /// Our initial sequence number.
    iss: SeqNumber,
    /// The peer's initial sequence number.
    irs: SeqNumber,
    local_port: u16,
    remote_port: u16,
    /// Answers to segments without data that PAWS refused, since the last acceptable segment.
    paws_acks: u32,
    /// Shifts of the window fields (RFC 7323 §2.3).
    send_shift: u8,
    receive_shift: u8,
    negotiated: Negotiated,
    events: Events,
    state: State,
    side: Side,
    /// Segments may take the fast path: the connection is established, with nothing negotiated but SACK,
    /// timestamps and ECN, no mechanism that looks at segments, an open window and no keep-alive timer.
    on_fast_path: bool,
    /// What is known about the fast path, for [`Predicted`].
    #[serde(skip)]
    prediction: Prediction,
    requires_timestamps: bool,
    /// Sent before any other segment.
    out_of_band: Option<OutOfBand>,
    /// As [`Connection::notify_at`] has set it.
    low_water: Option<LowWater>,
    timestamps: TimestampState,
    receiver: Receiver,
    sender: Sender,

    mechanisms: Mechanisms,
    mss: u16,
    /// The path MTU, as a host knows it at the start, less the fixed headers of IP and TCP.
    path_mss: u16,
    /// Lower bound of the peer's MSS.
    minimum_mss: u16,
    /// The peer's MSS if its SYN announces none.
    default_mss: u16,
    ecn_mode: EcnMode,
    ecn_offer: EcnOffer,
    /// The state of accurate ECN, if that is negotiated.
    accurate_ecn: Option<Box<AccurateEcn>>,
    fast_open: Option<Box<FastOpenState>>,
    /// ECE is set on outgoing segments until the peer answers with CWR (RFC 3168 §6.1.3).
    echoes_congestion: bool,
    /// The application has closed its reading half, too.
    is_read_closed: bool,
    /// The budget of challenge acknowledgments (RFC 5961 §7).
    challenges: AckBudget,
    challenges_allowed: u32,
    /// The budget of answers to keep-alives and window probes.
    out_of_window_acks: AckBudget,
    out_of_window_acks_allowed: u32,
    time_wait: Duration,
    fin_wait_2: Option<Duration>,
    keep_alive: Option<KeepAlive>,
    /// Keep-alive probes that the peer has not answered.
    unanswered_probes: u32,
    /// The end of TIME-WAIT, or of a limited FIN-WAIT-2; in other states, the next keep-alive
    /// probe.
    state_timer: Time,
}

/// The smallest shift that lets the window field express `window` (RFC 7323 §2.2: at most 14).
fn shift_for(window: u32) -> u8 {
    (0..14).find(|&shift| window >> shift <= u32::from(u16::MAX)).unwrap_or(14)
}

impl Connection {
    /// A new connection. A passive one is then given the SYN by [`Connection::handle_segment`].
    #[must_use]
    pub fn new(config: &Config, side: Side, identity: Identity) -> Connection {
        let mut negotiated = Negotiated::SCALE;
        negotiated.set(Negotiated::SACK, config.recovery.needs_sack());
        negotiated.set(Negotiated::TIMESTAMPS, config.timestamps);
        negotiated.set(Negotiated::ECN, config.ecn != EcnMode::Off);
        negotiated.set(Negotiated::ACCURATE_ECN, config.ecn == EcnMode::Accurate);
        let receiver = Receiver::new(config);
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
            receive_shift: shift_for(receiver.capacity()),
            mss: config.mss,
            path_mss: u16::MAX,
            minimum_mss: config.minimum_mss,
            default_mss: if identity.is_ipv6 { 1220 } else { 536 },
            negotiated,
            ecn_mode: config.ecn,
            ecn_offer: EcnOffer::default(),
            accurate_ecn: None,
            fast_open: None,
            on_fast_path: false,
            prediction: Prediction::empty(),
            timestamps: TimestampState::new(identity.timestamp_offset),
            requires_timestamps: config.require_timestamps,
            echoes_congestion: false,
            out_of_band: None,
            challenges: AckBudget::default(),
            challenges_allowed: config.challenges,
            out_of_window_acks: AckBudget::default(),
            out_of_window_acks_allowed: config.out_of_window_acks,
            paws_acks: 0,
            time_wait: config.time_wait,
            fin_wait_2: config.fin_wait_2,
            is_read_closed: false,
            keep_alive: config.keep_alive,
            unanswered_probes: 0,
            state_timer: Time::NEVER,
            low_water: None,
            sender: Sender::new(config, side),
            receiver,
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

    /// The absolute number of `seq` in our own sequence space; `None` if it precedes the SYN.
    #[inline]
    fn sent_offset(&self, seq: SeqNumber) -> Option<u64> {
        absolute(seq, self.iss, self.sender.una())
    }

    fn enter(&mut self, state: State) {
        let from = core::mem::replace(&mut self.state, state);
        self.update_fast_path();
        self.sender.log.push(|| Event::State { from, to: state });
    }

    /// Decides anew whether segments may take the fast path.
    fn update_fast_path(&mut self) {
        self.on_fast_path = self.state == State::Established
            && !self.mechanisms.has_hook(Hooks::OUTGOING | Hooks::INCOMING | Hooks::TIMER)
            && !self.receiver.announces_zero_window()
            && !self.sender.log.is_enabled()
            && self.keep_alive.is_none();
    }

    fn enter_closed(&mut self, events: Events) {
        if events.contains(Events::RESET) {
            self.sender.log.push(|| Event::Reset);
        }
        self.enter(State::Closed);
        self.state_timer = Time::NEVER;
        self.out_of_band = None;
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
