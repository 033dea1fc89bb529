//! The mechanisms of one connection.

use super::{AckTiming, Action, Arrival, Hooks, Incoming, Loss, Mechanism, Outcome, Verdict, View};
use crate::Identity;
use crate::indication::Indication;
use base::Time;
use wire::{CopyId, Packet, Segment};

/// The mechanisms of one connection, asked in order. The first opinion counts, but for what all of
/// them take in.
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
        mechanisms.gather();
        mechanisms
    }

    /// Learns who answers what.
    fn gather(&mut self) {
        self.hooks = self.list.iter().fold(Hooks::empty(), |hooks, m| hooks | m.hooks());
    }

    pub(crate) fn agree(&mut self, syn: &Segment, timestamps: bool) {
        if self.answer(Hooks::AGREEMENT) {
            for mechanism in &mut self.list {
                mechanism.agree(syn, timestamps);
            }
            self.gather();
        }
    }

    /// Bytes of headers that all of them add to every segment.
    pub(crate) fn overhead(&self) -> u32 {
        self.list.iter().map(Mechanism::overhead).sum()
    }

    /// Whether anybody answers one of the questions.
    #[inline]
    pub(crate) fn answer(&self, hooks: Hooks) -> bool {
        self.hooks.intersects(hooks)
    }

    fn first<T>(&mut self, hook: Hooks, ask: impl FnMut(&mut Mechanism) -> Option<T>) -> Option<T> {
        if !self.hooks.contains(hook) {
            return None;
        }
        self.list.iter_mut().filter(|m| m.hooks().contains(hook)).find_map(ask)
    }

    /// The connection is over: nothing is due any more.
    pub(crate) fn stop(&mut self) {
        self.hooks -= Hooks::TIMER;
    }

    pub(crate) fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
        self.first(Hooks::INDICATION, |m| m.indication(view, indication))
    }

    /// How many there are, for what is told them one by one.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// What one of them makes of what concerns them all.
    pub(crate) fn indication_to(
        &mut self,
        index: usize,
        view: &View,
        indication: &Indication,
    ) -> Option<Action> {
        let hears = |m: &&mut Mechanism| m.hooks().contains(Hooks::INDICATION);
        self.list.get_mut(index).filter(hears)?.indication(view, indication)
    }

    pub(crate) fn loss(&mut self, view: &View, loss: &Loss) -> Verdict {
        self.first(Hooks::LOSS, |m| m.loss(view, loss)).unwrap_or(Verdict::STANDARD)
    }

    pub(crate) fn arrival(&mut self, arrival: &Arrival) -> Option<AckTiming> {
        self.first(Hooks::ARRIVAL, |m| m.arrival(arrival))
    }

    /// All that answer write what they have to say.
    pub(crate) fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        for mechanism in self.list.iter_mut().filter(|m| m.hooks().contains(Hooks::OUTGOING)) {
            mechanism.outgoing(view, packet);
        }
    }

    pub(crate) fn are_waiting(&self) -> bool {
        self.list.iter().any(Mechanism::is_waiting)
    }

    /// What one of them makes of a segment: it may be of several.
    pub(crate) fn incoming_to(
        &mut self,
        index: usize,
        view: &View,
        segment: &Segment,
    ) -> Option<Incoming> {
        let looks = |m: &&mut Mechanism| m.hooks().contains(Hooks::INCOMING);
        self.list.get_mut(index).filter(looks)?.incoming(view, segment)
    }

    /// The copy that somebody names, by the sender's own number, if it is to be believed.
    pub(crate) fn admit(&mut self, view: &View, copy: CopyId) -> Option<CopyId> {
        let mut asked = self.list.iter_mut().filter(|m| m.hooks().contains(Hooks::ADMISSION));
        asked.try_fold(copy, |copy, mechanism| mechanism.admit(view, copy))
    }

    pub(crate) fn outcome(&mut self, view: &View, outcome: Outcome) {
        for mechanism in self.list.iter_mut().filter(|m| m.hooks().contains(Hooks::OUTCOME)) {
            mechanism.outcome(view, outcome);
        }
    }

    /// When the first of them has something to do by itself.
    #[inline]
    pub(crate) fn wake(&self) -> Time {
        if !self.answer(Hooks::TIMER) {
            return Time::NEVER;
        }
        self.list.iter().map(Mechanism::wake).fold(Time::NEVER, Time::min)
    }

    /// Wakes the first for which it is time.
    pub(crate) fn on_wake(&mut self, view: &View) -> Option<Action> {
        let due = self.list.iter_mut().find(|mechanism| mechanism.wake() <= view.now)?;
        due.on_wake(view)
    }
}
