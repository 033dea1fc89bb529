//! The mechanisms of one connection.

use super::{AckTiming, Action, Arrival, Hooks, Incoming, Loss, Mechanism, Outcome, Verdict, View};
use crate::Identity;
use crate::indication::Indication;
use base::Time;
use wire::{CopyId, Packet, Segment};

/// The mechanisms of one connection, in order. The first opinion counts, except for hooks that all
/// of them receive.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Mechanisms {
    list: Vec<Mechanism>,
    hooks: Hooks,
}

impl Mechanisms {
    pub(crate) fn new(mut list: Vec<Mechanism>, identity: &Identity) -> Mechanisms {
        for (mechanism, number) in list.iter_mut().zip(0..) {
            let secret = identity.secret.wrapping_add(number);
            mechanism.begin(&Identity { secret, ..*identity });
        }
        let mut mechanisms = Mechanisms { list, hooks: Hooks::empty() };
        mechanisms.update_hooks();
        mechanisms
    }

    /// Collects the hooks of all mechanisms.
    fn update_hooks(&mut self) {
        self.hooks = self.list.iter().fold(Hooks::empty(), |hooks, m| hooks | m.hooks());
    }

    pub(crate) fn on_peer_syn(&mut self, syn: &Segment, timestamps: bool) {
        if self.has_hook(Hooks::PEER_SYN) {
            for mechanism in &mut self.list {
                mechanism.on_peer_syn(syn, timestamps);
            }
            self.update_hooks();
        }
    }

    /// Bytes of headers that all of them add to every segment.
    pub(crate) fn overhead(&self) -> u32 {
        self.list.iter().map(Mechanism::overhead).sum()
    }

    /// Whether any mechanism implements one of the hooks.
    #[inline]
    pub(crate) fn has_hook(&self, hooks: Hooks) -> bool {
        self.hooks.intersects(hooks)
    }

    fn first<T>(&mut self, hook: Hooks, ask: impl FnMut(&mut Mechanism) -> Option<T>) -> Option<T> {
        if !self.hooks.contains(hook) {
            return None;
        }
        self.list.iter_mut().filter(|m| m.hooks().contains(hook)).find_map(ask)
    }

    /// Stops the timers: the connection is closed.
    pub(crate) fn stop(&mut self) {
        self.hooks -= Hooks::TIMER;
    }

    pub(crate) fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
        self.first(Hooks::INDICATION, |m| m.indication(view, indication))
    }

    /// The number of mechanisms, for hooks called one by one.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Calls one mechanism's hook for an indication that concerns all.
    pub(crate) fn indication_to(
        &mut self,
        index: usize,
        view: &View,
        indication: &Indication,
    ) -> Option<Action> {
        let has_hook = |m: &&mut Mechanism| m.hooks().contains(Hooks::INDICATION);
        self.list.get_mut(index).filter(has_hook)?.indication(view, indication)
    }

    pub(crate) fn loss(&mut self, view: &View, loss: &Loss) -> Verdict {
        self.first(Hooks::LOSS, |m| m.loss(view, loss)).unwrap_or(Verdict::STANDARD)
    }

    pub(crate) fn arrival(&mut self, arrival: &Arrival) -> Option<AckTiming> {
        self.first(Hooks::ARRIVAL, |m| m.arrival(arrival))
    }

    /// Calls every mechanism's hook for an outgoing segment.
    pub(crate) fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        for mechanism in self.list.iter_mut().filter(|m| m.hooks().contains(Hooks::OUTGOING)) {
            mechanism.outgoing(view, packet);
        }
    }

    pub(crate) fn have_pending_options(&self) -> bool {
        self.list.iter().any(Mechanism::has_pending_option)
    }

    /// Calls one mechanism's hook for an arriving segment.
    pub(crate) fn incoming_to(
        &mut self,
        index: usize,
        view: &View,
        segment: &Segment,
    ) -> Option<Incoming> {
        let looks = |m: &&mut Mechanism| m.hooks().contains(Hooks::INCOMING);
        self.list.get_mut(index).filter(looks)?.incoming(view, segment)
    }

    /// The copy that a notice names, by the sender's own number, if all admit it.
    pub(crate) fn admit(&mut self, view: &View, copy: CopyId) -> Option<CopyId> {
        let mut asked = self.list.iter_mut().filter(|m| m.hooks().contains(Hooks::ADMISSION));
        asked.try_fold(copy, |copy, mechanism| mechanism.admit(view, copy))
    }

    pub(crate) fn outcome(&mut self, view: &View, outcome: Outcome) {
        for mechanism in self.list.iter_mut().filter(|m| m.hooks().contains(Hooks::OUTCOME)) {
            mechanism.outcome(view, outcome);
        }
    }

    /// The earliest deadline.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        if !self.has_hook(Hooks::TIMER) {
            return Time::NEVER;
        }
        self.list.iter().map(Mechanism::deadline).fold(Time::NEVER, Time::min)
    }

    /// Calls the first mechanism whose deadline has passed.
    pub(crate) fn on_deadline(&mut self, view: &View) -> Option<Action> {
        let due = self.list.iter_mut().find(|mechanism| mechanism.deadline() <= view.now)?;
        due.on_deadline(view)
    }
}
