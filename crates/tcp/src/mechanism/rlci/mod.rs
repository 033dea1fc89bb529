//! Response to lower-layer connectivity-change indications (`koutsianas2007` §3): both ends forget
//! what they knew of the path, and resume at once.

mod handshake;
mod limit;
#[cfg(test)]
mod model;

use super::{Action, Hooks, Incoming, Loss, Needs, Rules, Signal, Verdict, View};
use crate::Identity;
use crate::indication::{Connectivity, Indication, Subject};
use base::Time;
use handshake::{Actions, Handshake, is_later};
use limit::Limit;
use serde::{Deserialize, Serialize};
use wire::{ConnectivityChange, Encoding, Flags, Options, Packet, Segment, SeqNumber};

/// An end that hears from its own layers below that its connectivity has changed tells its peer,
/// and both start from the initial window, as on a new path. Takes timestamps, and an option that
/// both ends must know.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rlci {
    /// To the letter of the report, with the holes that it leaves: an indication whose only
    /// carrier was lost, an echo that an idle receiver never acknowledges, a link that flaps. What
    /// the report only suggests is off, unless it is named: `resend`, `suppress`, `rate_limit`.
    pub strict: bool,
    /// The form of the option; who is offered a connection takes its peer's.
    pub encoding: Encoding,
    /// The first two duplicates after a change let out new data however much is outstanding
    /// (`koutsianas2007` §3.5.3, of which the report's experiments make use).
    pub limited_transmit: bool,
    /// A loss that is found while the window is the initial one of the new path leaves the
    /// slow-start threshold (`koutsianas2007` §3.5.3, likewise).
    pub keep_ssthresh: bool,
    /// In steady state, too, everything outstanding goes again (`koutsianas2007` §3.5.2, "a possible
    /// solution"). `None`: unless `strict`.
    pub resend: Option<bool>,
    /// Indications from both ends at the same time begin anew but once (`koutsianas2007` §3.5.4, "can
    /// be avoided"). `None`: unless `strict`.
    pub suppress: Option<bool>,
    /// Begin anew once in ten round trips at most, and four times a minute (`koutsianas2007` §3.6,
    /// "one possible defense"). `None`: unless `strict`.
    pub rate_limit: Option<bool>,
    #[serde(skip_serializing_if = "is_new")]
    state: State,
}

/// What there is once the connection has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct State {
    iss: SeqNumber,
    standing: Standing,
    limit: Limit,
    /// The timestamp of the last segment sent.
    stamp: u32,
    /// What both ends know of the present path, while acknowledgments of the old one may come.
    probe: Option<Probe>,
    /// When the option goes again, and how often it did.
    repeat: Option<(Time, u32)>,
}

fn is_new(state: &State) -> bool {
    *state == State::default()
}

/// What the ends have agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Standing {
    /// The peer has yet to speak.
    #[default]
    Open,
    /// The peer does not know the option, or timestamps.
    Refused,
    /// Both know it.
    Agreed(Handshake),
}

/// CCI_CONTROLLED_CWND, while it is true.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Probe {
    /// LAST_CCI_TIME, by our timestamps.
    last_cci_time: u32,
    cci_sndmax: SeqNumber,
    origin: Origin,
}

/// Whose layers below gave the indication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Origin {
    Local,
    Remote,
}

impl Rlci {
    /// So often an option goes again that is not answered.
    const REPEATS: u32 = 6;

    /// Whether something goes that the report only suggests.
    fn wants(&self, suggestion: Option<bool>) -> bool {
        suggestion.unwrap_or(!self.strict)
    }

    /// Whether an indication is of what the other end has told already. What has led to nothing but
    /// another timeout is told anew.
    fn is_known(&self, view: &View, origin: Origin) -> bool {
        let same = |probe: &Probe| self.strict || probe.origin != origin && !view.stalled;
        self.wants(self.suppress) && self.state.probe.as_ref().is_some_and(same)
    }

    /// Whether the path may be probed once more.
    fn is_allowed(&mut self, view: &View) -> bool {
        !self.wants(self.rate_limit) || self.state.limit.allows(view.now, view.srtt)
    }

    /// What the handshake asks for.
    fn act(
        &mut self,
        view: &View,
        actions: Actions,
        origin: Origin,
        window: Option<u32>,
    ) -> Option<Action> {
        if actions.contains(Actions::REPROBE_PATH) && !self.is_known(view, origin) {
            if !self.is_allowed(view) {
                // Nor does each forged indication let out a segment: while something is outstanding,
                // there will be one to carry the echo.
                return (view.una == view.nxt).then_some(Action::Acknowledge);
            }
            self.state.probe = Some(Probe {
                // The clock of our timestamps will have moved on.
                last_cci_time: self.state.stamp.wrapping_add(1),
                cci_sndmax: self.state.iss + view.nxt as u32,
                origin,
            });
            let resend = view.stalled || self.wants(self.resend);
            return Some(Action::Reprobe { window, resend });
        }
        if actions.contains(Actions::FORCE_SEND) {
            return Some(Action::SendNow);
        }
        actions.contains(Actions::ACKNOWLEDGE).then_some(Action::Acknowledge)
    }

    /// The handshake has moved: what was repeated is answered.
    fn on_moved(&mut self, actions: Actions) {
        if let Standing::Agreed(handshake) = &self.state.standing
            && (!actions.is_empty() || handshake.is_idle())
        {
            self.state.repeat = None;
        }
    }

    /// A segment with the option goes out.
    fn on_sent(&mut self, view: &View, actions: Actions) {
        let Standing::Agreed(handshake) = &self.state.standing else { return };
        self.state.repeat = match self.state.repeat {
            _ if self.strict || handshake.is_idle() => None,
            // What had to wait is told at once.
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
    const HOOKS: Hooks = Hooks::AGREEMENT
        .union(Hooks::INDICATION)
        .union(Hooks::LOSS)
        .union(Hooks::OUTGOING)
        .union(Hooks::INCOMING)
        .union(Hooks::TIMER);
    const NEEDS: Needs = Needs::SENDER.union(Needs::RECEIVER);

    fn hooks(&self) -> Hooks {
        match self.state.standing {
            Standing::Open => Hooks::AGREEMENT | Hooks::INDICATION | Hooks::OUTGOING,
            Standing::Refused => Hooks::empty(),
            Standing::Agreed(_) if self.strict => Rlci::HOOKS - Hooks::TIMER,
            Standing::Agreed(_) => Rlci::HOOKS,
        }
    }

    fn begin(&mut self, identity: &Identity) {
        self.state = State { iss: identity.iss, ..State::default() };
    }

    fn agree(&mut self, syn: &Segment, timestamps: bool) {
        self.state.standing = match (syn.options.connectivity, syn.options.timestamps) {
            (Some(option), Some(stamps)) if timestamps => {
                self.encoding = option.encoding;
                Standing::Agreed(Handshake::new(self.strict, stamps.value))
            }
            _ => Standing::Refused,
        };
    }

    fn overhead(&self) -> u32 {
        match self.state.standing {
            Standing::Agreed(_) => self.encoding.aligned() as u32,
            Standing::Open | Standing::Refused => 0,
        }
    }

    fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
        let window = match indication.subject {
            Subject::Connectivity(Connectivity::Changed { window }) => window,
            Subject::Connectivity(Connectivity::Full) => return Some(Action::EndSlowStart),
            _ => return None,
        };
        match &mut self.state.standing {
            Standing::Agreed(handshake) if view.una > 0 => {
                let actions = handshake.on_local_cci();
                self.on_moved(actions);
                self.act(view, actions, Origin::Local, window)
            }
            // Our SYN goes again; there is nobody to agree with yet.
            _ => self.is_allowed(view).then_some(Action::Reprobe { window, resend: true }),
        }
    }

    fn incoming(&mut self, view: &View, segment: &Segment) -> Option<Incoming> {
        let stamps = segment.options.timestamps?;
        let Standing::Agreed(handshake) = &mut self.state.standing else { return None };
        let actions = handshake.on_segment(segment.options.connectivity, stamps.value);
        self.on_moved(actions);
        let action = self.act(view, actions, Origin::Remote, None);
        let mut incoming = Incoming { action, ..Incoming::PLAIN };
        if let Some(probe) = &self.state.probe {
            incoming.is_current = !is_later(probe.last_cci_time, stamps.echo);
            incoming.lets_out = self.limited_transmit;
            if segment.ack.beyond(probe.cci_sndmax) >= 0 {
                self.state.probe = None;
            }
        }
        (incoming != Incoming::PLAIN).then_some(incoming)
    }

    fn loss(&mut self, view: &View, loss: &Loss) -> Option<Verdict> {
        let kept = self.keep_ssthresh
            && self.state.probe.is_some()
            && matches!(loss.signal, Signal::Dupack | Signal::Sack)
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
            if self.state.standing != Standing::Refused {
                let encoding = self.encoding;
                let option = ConnectivityChange { encoding, ..ConnectivityChange::default() };
                segment.options.connectivity = Some(option);
            }
            return;
        }
        let Standing::Agreed(handshake) = &mut self.state.standing else { return };
        let Some(option) = handshake.option(self.encoding) else { return };
        segment.options.connectivity = Some(option);
        while segment.options.len() > Options::ROOM && !segment.options.sack.is_empty() {
            let blocks = segment.options.sack.as_slice().len();
            segment.options.sack.truncate(blocks - 1);
        }
        let actions = handshake.on_segment_sent();
        self.on_sent(view, actions);
    }

    fn wake(&self) -> Time {
        self.state.repeat.map_or(Time::NEVER, |(at, _)| at)
    }

    fn on_wake(&mut self, _view: &View) -> Option<Action> {
        let (at, times) = self.state.repeat.as_mut()?;
        (*at, *times) = (Time::NEVER, *times + 1);
        Some(Action::Acknowledge)
    }
}
