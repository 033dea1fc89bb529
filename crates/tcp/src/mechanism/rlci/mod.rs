//! Response to lower-layer connectivity-change indications (`koutsianas2007` §3): both ends forget
//! what they knew of the path, and resume at once.

mod handshake;
mod limit;
#[cfg(test)]
mod model;

use super::{Action, Hooks, Incoming, Loss, Needs, Rules, Signal, Verdict, View};
use crate::Identity;
use crate::indication::{Connectivity, Indication};
use base::Time;
use handshake::{Actions, Handshake, is_later};
use limit::Limit;
use serde::{Deserialize, Serialize};
use wire::{ConnectivityChange, Encoding, Flags, Options, Packet, Segment, SeqNumber};

base::settings! {
    /// An end whose lower layers report a change of connectivity signals its peer, and both start from
    /// the initial window, as on a new path. Needs timestamps, and an option that both ends implement,
    /// unless `signal` is off.
    #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Rlci {
        /// Follow the report literally, with its gaps: an indication whose only carrier was lost, an
        /// echo that an idle receiver never acknowledges, a link that flaps. The report's suggestions
        /// are off unless set: `resend`, `suppress`, `rate_limit`.
        pub strict: bool,
        /// Signal the peer, which takes part. Without, the peer learns nothing, and need not know the option:
        /// this end alone starts from the initial window (beyond the report).
        pub signal: bool,
        /// The encoding of the option; a passive end uses its peer's.
        pub encoding: Encoding,
        /// The first two duplicates after a change send new data however much is outstanding
        /// (`koutsianas2007` §3.5.3, as in the report's experiments).
        pub limited_transmit: bool,
        /// A loss found while the window is the initial one of the new path leaves ssthresh
        /// (`koutsianas2007` §3.5.3, likewise).
        pub keep_ssthresh: bool,
        /// Retransmit everything outstanding in steady state, too (`koutsianas2007` §3.5.2, "a possible
        /// solution"); the opposite of `strict` if absent.
        pub resend: Option<bool>,
        /// Indications from both ends at the same time lead to one reprobe (`koutsianas2007` §3.5.4,
        /// "can be avoided"); the opposite of `strict` if absent.
        pub suppress: Option<bool>,
        /// At most one reprobe in ten round trips, and four a minute (`koutsianas2007` §3.6, "one
        /// possible defense"); the opposite of `strict` if absent.
        pub rate_limit: Option<bool>,
        #[serde(skip_serializing_if = "is_new")]
        state: State,
    }
}

/// The state once the connection has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct State {
    iss: SeqNumber,
    negotiation: Negotiation,
    limit: Limit,
    /// The timestamp of the last segment sent.
    stamp: u32,
    /// The probe of the current path, while acknowledgments of segments on the old one may arrive.
    probe: Option<Probe>,
    /// When the option is retransmitted, and how often it was.
    repeat: Option<(Time, u32)>,
}

fn is_new(state: &State) -> bool {
    *state == State::default()
}

/// The state of the negotiation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Negotiation {
    /// The peer's SYN has not arrived.
    #[default]
    Pending,
    /// The peer does not know the option, or timestamps.
    Refused,
    /// Both ends support it.
    Agreed(Handshake),
}

/// The state while CCI_CONTROLLED_CWND is true.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Probe {
    /// LAST_CCI_TIME, by our timestamps.
    last_cci_time: u32,
    cci_sndmax: SeqNumber,
    origin: Origin,
}

/// The end whose lower layers gave the indication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Origin {
    Local,
    Remote,
}

impl Rlci {
    /// The largest number of retransmissions of an unanswered option.
    const REPEATS: u32 = 6;

    /// Whether a suggestion of the report is in force.
    fn wants(&self, suggestion: Option<bool>) -> bool {
        suggestion.unwrap_or(!self.strict)
    }

    /// Whether the other end has signalled the same change already. A reprobe that led only to
    /// another timeout is repeated.
    fn is_already_answered(&self, view: &View, origin: Origin) -> bool {
        let same = |probe: &Probe| self.strict || probe.origin != origin && !view.in_rto_recovery;
        self.wants(self.suppress) && self.state.probe.as_ref().is_some_and(same)
    }

    /// Whether the path may be probed once more.
    fn is_allowed(&mut self, view: &View) -> bool {
        !self.wants(self.rate_limit) || self.state.limit.allows(view.now, view.srtt)
    }

    /// The action for the handshake's result.
    fn act(
        &mut self,
        view: &View,
        actions: Actions,
        origin: Origin,
        window: Option<u32>,
    ) -> Option<Action> {
        if actions.contains(Actions::REPROBE_PATH) && !self.is_already_answered(view, origin) {
            if !self.is_allowed(view) {
                // Forged indications must not each release a segment: while data is outstanding, a
                // segment will carry the echo.
                return (view.una == view.nxt).then_some(Action::Acknowledge);
            }
            self.state.probe = Some(Probe {
                // Later segments have a later timestamp.
                last_cci_time: self.state.stamp.wrapping_add(1),
                cci_sndmax: self.state.iss + view.nxt as u32,
                origin,
            });
            let resend = view.in_rto_recovery || self.wants(self.resend);
            return Some(Action::Reprobe { window, resend });
        }
        if actions.contains(Actions::FORCE_SEND) {
            return Some(Action::ForceSend);
        }
        actions.contains(Actions::ACKNOWLEDGE).then_some(Action::Acknowledge)
    }

    /// Stops retransmission of the option after progress of the handshake.
    fn on_moved(&mut self, actions: Actions) {
        if let Negotiation::Agreed(handshake) = &self.state.negotiation
            && (!actions.is_empty() || handshake.is_idle())
        {
            self.state.repeat = None;
        }
    }

    /// Schedules the retransmission of the option, which a segment carries now.
    fn on_sent(&mut self, view: &View, actions: Actions) {
        let Negotiation::Agreed(handshake) = &self.state.negotiation else { return };
        self.state.repeat = match self.state.repeat {
            _ if self.strict || handshake.is_idle() => None,
            // A pending indication is signalled at once.
            _ if actions.contains(Actions::FORCE_SEND) => Some((view.now, 0)),
            Some((_, Rlci::REPEATS..)) => Some((Time::NEVER, Rlci::REPEATS)),
            repeat => {
                let times = repeat.map_or(0, |(_, times)| times);
                Some((view.now + view.rto.doubled(times), times))
            }
        };
    }
}

impl Default for Rlci {
    fn default() -> Rlci {
        Rlci {
            strict: false,
            signal: true,
            encoding: Encoding::default(),
            limited_transmit: true,
            keep_ssthresh: true,
            resend: None,
            suppress: None,
            rate_limit: None,
            state: State::default(),
        }
    }
}

impl Rules for Rlci {
    const HOOKS: Hooks = Hooks::PEER_SYN
        .union(Hooks::INDICATION)
        .union(Hooks::LOSS)
        .union(Hooks::OUTGOING)
        .union(Hooks::INCOMING)
        .union(Hooks::TIMER);
    const NEEDS: Needs = Needs::SENDER.union(Needs::RECEIVER);

    fn hooks(&self) -> Hooks {
        match self.state.negotiation {
            _ if !self.signal => Hooks::INDICATION,
            Negotiation::Pending => Hooks::PEER_SYN | Hooks::INDICATION | Hooks::OUTGOING,
            Negotiation::Refused => Hooks::empty(),
            Negotiation::Agreed(_) if self.strict => Rlci::HOOKS - Hooks::TIMER,
            Negotiation::Agreed(_) => Rlci::HOOKS,
        }
    }

    fn begin(&mut self, identity: &Identity) {
        self.state = State { iss: identity.iss, ..State::default() };
    }

    fn on_peer_syn(&mut self, syn: &Segment, timestamps: bool) {
        self.state.negotiation = match (syn.options.connectivity.get(), syn.options.timestamps) {
            (Some(option), Some(stamps)) if timestamps && self.signal => {
                self.encoding = option.encoding;
                Negotiation::Agreed(Handshake::new(self.strict, stamps.value))
            }
            _ => Negotiation::Refused,
        };
    }

    fn overhead(&self) -> u32 {
        match self.state.negotiation {
            Negotiation::Agreed(_) => self.encoding.aligned() as u32,
            Negotiation::Pending | Negotiation::Refused => 0,
        }
    }

    fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
        let window = match *indication {
            Indication::Connectivity(Connectivity::Changed { window }) => window,
            Indication::Connectivity(Connectivity::Full) => return Some(Action::EndSlowStart),
            _ => return None,
        };
        match &mut self.state.negotiation {
            Negotiation::Agreed(handshake) if view.una > 0 => {
                let actions = handshake.on_local_cci();
                self.on_moved(actions);
                self.act(view, actions, Origin::Local, window)
            }
            // Before the handshake, our SYN is retransmitted.
            _ => self.is_allowed(view).then_some(Action::Reprobe {
                window,
                resend: view.una == 0 || view.in_rto_recovery || self.wants(self.resend),
            }),
        }
    }

    fn incoming(&mut self, view: &View, segment: &Segment) -> Option<Incoming> {
        let stamps = segment.options.timestamps?;
        let Negotiation::Agreed(handshake) = &mut self.state.negotiation else { return None };
        let actions = handshake.on_segment(segment.options.connectivity.get(), stamps.value);
        self.on_moved(actions);
        let action = self.act(view, actions, Origin::Remote, None);
        let mut incoming = Incoming { action, ..Incoming::NO_OPINION };
        if let Some(probe) = &self.state.probe {
            incoming.on_current_path = !is_later(probe.last_cci_time, stamps.echo);
            incoming.force_limited_transmit = self.limited_transmit;
            if segment.ack.beyond(probe.cci_sndmax) >= 0 {
                self.state.probe = None;
            }
        }
        (incoming != Incoming::NO_OPINION).then_some(incoming)
    }

    fn loss(&mut self, view: &View, loss: &Loss) -> Option<Verdict> {
        let kept = self.keep_ssthresh
            && self.state.probe.is_some()
            && matches!(loss.signal, Signal::Dupack | Signal::Sack | Signal::Rack)
            // §3.5.3: "CWND == INITIAL_WINDOW". It is less only where connections share one probe: what
            // reduces it lasts until the probing is over.
            && view.window <= view.initial_window;
        kept.then_some(Verdict::Congestion { keep_ssthresh: true })
    }

    fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        let Some(segment) = packet.tcp_mut() else { return };
        let Some(stamps) = segment.options.timestamps else { return };
        self.state.stamp = stamps.value;
        if segment.flags.contains(Flags::SYN) {
            if self.state.negotiation != Negotiation::Refused {
                let encoding = self.encoding;
                let option = ConnectivityChange { encoding, ..ConnectivityChange::default() };
                segment.options.connectivity = option.into();
            }
            return;
        }
        let Negotiation::Agreed(handshake) = &mut self.state.negotiation else { return };
        let Some(option) = handshake.option(self.encoding) else { return };
        segment.options.connectivity = option.into();
        while segment.options.len() > Options::ROOM && !segment.options.sack.is_empty() {
            let blocks = segment.options.sack.as_slice().len();
            segment.options.sack.truncate(blocks - 1);
        }
        let actions = handshake.on_segment_sent();
        self.on_sent(view, actions);
    }

    fn deadline(&self) -> Time {
        self.state.repeat.map_or(Time::NEVER, |(at, _)| at)
    }

    fn on_deadline(&mut self, _view: &View) -> Option<Action> {
        let (at, times) = self.state.repeat.as_mut()?;
        (*at, *times) = (Time::NEVER, *times + 1);
        Some(Action::Acknowledge)
    }
}
