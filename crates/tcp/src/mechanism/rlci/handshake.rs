//! The handshake about a change of connectivity (`koutsianas2007` §3.2), as tables that mirror
//! figures 3.2 and 3.3.

use bitflags::bitflags;
use serde::{Deserialize, Serialize};
use wire::{ConnectivityChange, Encoding, LocalStatus};

/// REMOTE_CCI_STATUS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum RemoteStatus {
    /// Nothing to echo.
    #[default]
    Idle,
    /// The peer's indication is echoed until the peer acknowledges the echo.
    Echo,
}

/// The events; an option causes those whose conditions it fulfils.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// E_LOCAL_CCI.
    LocalCci,
    /// E_REMOTE_CCI, C_NEW_REMOTE_CCI.
    NewRemoteCci,
    /// E_REMOTE_CCI, C_ECHOED_LOCAL_CCI.
    EchoedLocalCci,
    /// E_REMOTE_CCI, C_ECHOED_REMOTE_CCI.
    EchoedRemoteCci,
    /// E_SEGMENT_SENT.
    SegmentSent,
}

bitflags! {
    /// The actions.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Actions: u16 {
        const TGL_LOCAL_CCI = 1;
        const TGL_REMOTE_CCI = 1 << 1;
        const REPROBE_PATH = 1 << 2;
        const FORCE_SEND = 1 << 3;
        const UPD_CCI_PEER_TIME = 1 << 4;
        const UPD_CCI_PEER_E_TIME = 1 << 5;
        /// Beyond the report: keep the indication until the present one is done.
        const REMEMBER = 1 << 6;
        /// Beyond the report: acknowledge at once.
        const ACKNOWLEDGE = 1 << 7;
    }
}

/// A transition: in state `from`, `on` an event, do `actions` and enter state `to`.
pub(super) struct Edge<S> {
    pub(super) from: S,
    pub(super) on: Event,
    pub(super) actions: Actions,
    pub(super) to: S,
}

const fn edge<S>(from: S, on: Event, actions: Actions, to: S) -> Edge<S> {
    Edge { from, on, actions, to }
}

const NOTHING: Actions = Actions::empty();
const NEW_LOCAL: Actions =
    Actions::TGL_LOCAL_CCI.union(Actions::REPROBE_PATH).union(Actions::FORCE_SEND);
const NEW_REMOTE: Actions = Actions::TGL_REMOTE_CCI
    .union(Actions::UPD_CCI_PEER_TIME)
    .union(Actions::REPROBE_PATH)
    .union(Actions::FORCE_SEND);
const ANOTHER: Actions = Actions::REPROBE_PATH.union(Actions::FORCE_SEND).union(Actions::REMEMBER);

use Event::{EchoedLocalCci, EchoedRemoteCci, LocalCci, NewRemoteCci, SegmentSent};
use LocalStatus::{EchoAck, Idle, New};

/// Figure 3.2: the initiator.
pub(super) const INITIATOR: &[Edge<LocalStatus>] = &[
    edge(Idle, LocalCci, NEW_LOCAL, New),
    edge(New, EchoedLocalCci, Actions::UPD_CCI_PEER_E_TIME, EchoAck),
    edge(EchoAck, SegmentSent, NOTHING, Idle),
    // The acknowledgment of the echo was lost.
    edge(Idle, EchoedLocalCci, NOTHING, EchoAck),
];

/// Figure 3.3: the responder.
pub(super) const RESPONDER: &[Edge<RemoteStatus>] = &[
    edge(RemoteStatus::Idle, NewRemoteCci, NEW_REMOTE, RemoteStatus::Echo),
    edge(RemoteStatus::Echo, EchoedRemoteCci, NOTHING, RemoteStatus::Idle),
    // The acknowledgment of the last echo was lost, and there is a new indication.
    edge(RemoteStatus::Echo, NewRemoteCci, NEW_REMOTE, RemoteStatus::Echo),
];

/// The initiator without the report's gaps: an echo is acknowledged at once, whether there is data
/// to send or not; an indication during another one is acted on at once here, and signalled
/// afterwards.
pub(super) const CORRECTED: &[Edge<LocalStatus>] = &[
    edge(Idle, LocalCci, NEW_LOCAL, New),
    edge(New, LocalCci, ANOTHER, New),
    edge(EchoAck, LocalCci, ANOTHER, EchoAck),
    edge(New, EchoedLocalCci, Actions::UPD_CCI_PEER_E_TIME.union(Actions::ACKNOWLEDGE), EchoAck),
    edge(EchoAck, SegmentSent, NOTHING, Idle),
    edge(Idle, EchoedLocalCci, Actions::ACKNOWLEDGE, EchoAck),
];

/// Takes the transition from `state` on an event, if there is one.
fn take<S: Copy + PartialEq>(table: &[Edge<S>], state: &mut S, on: Event) -> Actions {
    match table.iter().find(|edge| edge.from == *state && edge.on == on) {
        Some(edge) => {
            *state = edge.to;
            edge.actions
        }
        None => Actions::empty(),
    }
}

/// The state variables of the handshake (§3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Handshake {
    /// Follow the report literally.
    strict: bool,
    pub(super) local_cci: bool,
    pub(super) remote_cci: bool,
    pub(super) local_cci_status: LocalStatus,
    pub(super) remote_cci_status: RemoteStatus,
    pub(super) remote_cci_peer_time: u32,
    pub(super) local_cci_peer_echo_time: u32,
    /// Beyond the report: an indication waits until the present one is done.
    pub(super) pending: bool,
}

/// Whether a timestamp is later than another (RFC 7323 §5.2).
pub(super) fn is_later(stamp: u32, than: u32) -> bool {
    (stamp.wrapping_sub(than) as i32) > 0
}

impl Handshake {
    /// The age up to which a timestamp is kept, so that it never counts as a future one.
    const LIFETIME: u32 = 1 << 30;

    /// The handshake after the peer's SYN with this timestamp.
    pub(super) fn new(strict: bool, peer_time: u32) -> Handshake {
        Handshake {
            strict,
            remote_cci_peer_time: peer_time,
            local_cci_peer_echo_time: peer_time,
            ..Handshake::default()
        }
    }

    /// Handles an indication of the lower layers.
    pub(super) fn on_local_cci(&mut self) -> Actions {
        self.step(LocalCci, 0)
    }

    /// Handles a segment with this timestamp, perhaps with an option.
    pub(super) fn on_segment(&mut self, option: Option<ConnectivityChange>, time: u32) -> Actions {
        self.refresh(time);
        let Some(option) = option else { return Actions::empty() };
        let new = is_later(time, self.remote_cci_peer_time);
        let new_remote = option.c != self.remote_cci && option.cs == New && new;
        let echoed_remote = option.c == self.remote_cci && option.cs == EchoAck && new;
        let echoed_local = option.ec == self.local_cci
            && option.ecs
            && is_later(time, self.local_cci_peer_echo_time);
        let mut actions = Actions::empty();
        for (fulfilled, event) in [
            (echoed_local, EchoedLocalCci),
            (echoed_remote, EchoedRemoteCci),
            (new_remote, NewRemoteCci),
        ] {
            if fulfilled {
                actions |= self.step(event, time);
            }
        }
        actions
    }

    /// Notes that a segment with the option is sent.
    pub(super) fn on_segment_sent(&mut self) -> Actions {
        let actions = self.step(SegmentSent, 0);
        if self.pending && self.local_cci_status == Idle {
            self.pending = false;
            // The path was reprobed when it came.
            return actions | (self.step(LocalCci, 0) - Actions::REPROBE_PATH);
        }
        actions
    }

    /// The option that outgoing segments carry at present, if any.
    pub(super) fn option(&self, encoding: Encoding) -> Option<ConnectivityChange> {
        (!self.is_idle()).then_some(ConnectivityChange {
            c: self.local_cci,
            ec: self.remote_cci,
            cs: self.local_cci_status,
            ecs: self.remote_cci_status == RemoteStatus::Echo,
            encoding,
        })
    }

    /// Whether nothing is being signalled or echoed.
    pub(super) fn is_idle(&self) -> bool {
        self.local_cci_status == Idle && self.remote_cci_status == RemoteStatus::Idle
    }

    /// Takes the transitions of an event; `time` is the timestamp of the segment that caused it, if
    /// one did.
    fn step(&mut self, event: Event, time: u32) -> Actions {
        let initiator = if self.strict { INITIATOR } else { CORRECTED };
        let actions = take(initiator, &mut self.local_cci_status, event)
            | take(RESPONDER, &mut self.remote_cci_status, event);
        self.local_cci ^= actions.contains(Actions::TGL_LOCAL_CCI);
        self.remote_cci ^= actions.contains(Actions::TGL_REMOTE_CCI);
        if actions.contains(Actions::UPD_CCI_PEER_TIME) {
            self.remote_cci_peer_time = time;
        }
        if actions.contains(Actions::UPD_CCI_PEER_E_TIME) {
            self.local_cci_peer_echo_time = time;
        }
        self.pending |= actions.contains(Actions::REMEMBER);
        actions
    }

    /// Renews stored timestamps: they are compared modulo 2^32, and would lie in the future after
    /// half of that.
    fn refresh(&mut self, time: u32) {
        for known in [&mut self.remote_cci_peer_time, &mut self.local_cci_peer_echo_time] {
            if is_later(time, known.wrapping_add(Handshake::LIFETIME)) {
                *known = time.wrapping_sub(Handshake::LIFETIME);
            }
        }
    }
}

#[cfg(test)]
mod tests;
