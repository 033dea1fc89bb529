//! The mobile hosts of a base station: where the state of their connections is.

#[cfg(test)]
mod tests;

use super::{Reply, Request};
use base::{Duration, Time};
use core::net::IpAddr;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use wire::{Mobility, MobilityMessage, Outcome};

/// What a base station is to do. `R` names a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action<R> {
    /// To tell the mobile host that data transfer is to resume; it is told again if it asks again.
    Confirm { mobile: IpAddr, attachment: u64, outcome: Outcome, is_first: bool },
    /// To request the state from another base station.
    Fetch { request: Request, from: IpAddr },
    /// To answer a requester with the state of all connections of the mobile host, and to remove them.
    Give { mobile: IpAddr, to: R },
    /// To answer a requester.
    Answer { mobile: IpAddr, to: R, reply: Reply },
    /// To process the packets that were held for the mobile host.
    Release { mobile: IpAddr },
    /// To drop the packets that were held for the mobile host, and its connections, if there are any.
    Forget { mobile: IpAddr, other: Option<IpAddr> },
}

/// The mobile hosts that a base station knows.
///
/// The attachments of a mobile host are numbered, and each of its messages and requests bears the
/// number of the attachment that it is about. Of the base stations at most one has the state; one that has
/// handed it over knows to which, so that a later one follows the chain. State that was handed over is never
/// used again, because the next base station may have gone on with it: if that one has lost it, it is lost.
#[derive(Clone, Debug)]
pub(crate) struct Registry<R> {
    own: [IpAddr; 2],
    /// Differs after a restart: what an earlier incarnation had is lost.
    incarnation: u32,
    mobiles: FxHashMap<IpAddr, Record<R>>,
    /// The mobile host of its address of the other version of IP.
    others: FxHashMap<IpAddr, IpAddr>,
    /// No mobile host is to be forgotten before.
    expires: Time,
    actions: VecDeque<Action<R>>,
}

#[derive(Clone, Debug)]
struct Record<R> {
    other: Option<IpAddr>,
    attachment: u64,
    /// The attachment that was confirmed last.
    confirmed: Option<u64>,
    attach: Mobility,
    state: State<R>,
    /// When it was last heard of.
    seen: Time,
}

#[derive(Clone, Debug)]
enum State<R> {
    /// It is attached here, or was; its connections are here.
    Serving { outcome: Outcome },
    /// It is attached here, and its connections are fetched.
    Fetching {
        /// This many base stations were asked.
        asked: u8,
        /// Those that ask for them in turn: the attachment, the base station, and how to answer it.
        waiting: Vec<(u64, (IpAddr, u32), R)>,
        /// The attachment with which the last of them was asked.
        about: u64,
        before: Before,
    },
    /// Its connections went to another base station.
    Moved { to: IpAddr, incarnation: u32 },
}

/// What a base station knew of the connections before it asked for them.
#[derive(Clone, Copy, Debug)]
enum Before {
    Nothing,
    /// They were here, with this outcome.
    Here(Outcome),
    /// They went to this base station, in this incarnation.
    Moved(IpAddr, u32),
}

impl<R> State<R> {
    /// One base station is asked.
    fn fetching(before: Before) -> State<R> {
        State::Fetching { asked: 1, waiting: Vec::new(), about: 0, before }
    }
}

impl<R: Copy> Registry<R> {
    /// How long a mobile host without connections is remembered that nothing was heard of.
    pub(crate) const LIFETIME: Duration = Duration::from_secs(120);
    /// The most base stations in a row that are asked for the state.
    const MOST_ASKED: u8 = 16;

    /// Of a base station with these addresses, in this incarnation.
    pub(crate) fn new(own: [IpAddr; 2], incarnation: u32) -> Registry<R> {
        Registry {
            own,
            incarnation,
            mobiles: FxHashMap::default(),
            others: FxHashMap::default(),
            expires: Time::NEVER,
            actions: VecDeque::new(),
        }
    }

    /// The incarnation.
    pub(crate) fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// What is to be done next.
    pub(crate) fn poll(&mut self) -> Option<Action<R>> {
        self.actions.pop_front()
    }

    /// The mobile host that has an address, by its first address.
    pub(crate) fn mobile(&self, address: IpAddr) -> Option<IpAddr> {
        match self.mobiles.contains_key(&address) {
            true => Some(address),
            false => self.others.get(&address).copied(),
        }
    }

    /// All addresses of a mobile host.
    pub(crate) fn addresses(&self, mobile: IpAddr) -> [Option<IpAddr>; 2] {
        [Some(mobile), self.mobiles.get(&mobile).and_then(|record| record.other)]
    }

    /// Whether the connections of a mobile host are here.
    pub(crate) fn serves(&self, mobile: IpAddr) -> bool {
        self.state(mobile).is_some_and(|state| matches!(state, State::Serving { .. }))
    }

    /// Whether their state is lost, which the mobile host does not know yet.
    pub(crate) fn has_lost(&self, mobile: IpAddr) -> bool {
        let lost = |state: &State<R>| matches!(state, State::Serving { outcome: Outcome::Lost });
        self.state(mobile).is_some_and(lost)
    }

    /// Whether they are fetched.
    pub(crate) fn fetches(&self, mobile: IpAddr) -> bool {
        self.state(mobile).is_some_and(|state| matches!(state, State::Fetching { .. }))
    }

    fn state(&self, mobile: IpAddr) -> Option<&State<R>> {
        self.mobiles.get(&mobile).map(|record| &record.state)
    }

    /// A mobile host says that it is attached here; its message is authentic.
    pub(crate) fn on_attach(&mut self, now: Time, mobile: IpAddr, attach: &Mobility) {
        let MobilityMessage::Attach { other, station, previous, incarnation } = attach.message
        else {
            return;
        };
        if !self.own.contains(&station) {
            return;
        }
        let attachment = attach.attachment;
        let elsewhere = elsewhere(&self.own, attach);
        // An earlier incarnation of this one has confirmed an attachment.
        let is_lost = elsewhere.is_none() && incarnation.is_some_and(|it| it != self.incarnation);
        let Some(record) = self.mobiles.get_mut(&mobile) else {
            let state = match (elsewhere, incarnation) {
                (Some(_), _) => State::fetching(Before::Nothing),
                // It was here, and nothing is known of it any more.
                (None, Some(_)) => State::Serving { outcome: Outcome::Lost },
                (None, None) => State::Serving { outcome: Outcome::Complete },
            };
            let (attach, confirmed) = (*attach, None);
            let record = Record { other, attachment, confirmed, attach, state, seen: now };
            self.expires = self.expires.min(now + Self::LIFETIME);
            self.mobiles.insert(mobile, record);
            if let Some(other) = other {
                self.others.insert(other, mobile);
            }
            return self.proceed(mobile, elsewhere);
        };
        if attachment < record.attachment {
            return;
        }
        record.seen = now;
        let is_new = attachment > record.attachment;
        (record.attachment, record.attach) = (attachment, *attach);
        // Its agent may have been started again, with another one.
        if let Some(before) = core::mem::replace(&mut record.other, other) {
            self.others.remove(&before);
        }
        if let Some(other) = other {
            self.others.insert(other, mobile);
        }
        match &mut record.state {
            // Who waits for a host that is here again is too late, and must not be waited for in turn.
            State::Fetching { waiting, .. } => {
                let late = waiting.extract_if(.., |&mut (number, ..)| number < attachment);
                let late: Vec<_> = late.collect();
                self.answer_all(mobile, late, Reply::Superseded);
            }
            _ if is_lost => {
                record.state = State::Serving { outcome: Outcome::Lost };
                self.proceed(mobile, None);
            }
            // That one may have the state, if the host was here only to be told of by a late message; or it
            // knows that this one has it.
            &mut State::Serving { outcome }
                if is_new && incarnation.is_some() && elsewhere.is_some() =>
            {
                record.state = State::fetching(Before::Here(outcome));
                self.proceed(mobile, elsewhere);
            }
            // It has come back before anybody asked for its state.
            State::Serving { .. } if is_new && previous.is_some() => self.proceed(mobile, None),
            _ if is_new && previous.is_none() => {
                record.state = State::Serving { outcome: Outcome::Complete };
                self.proceed(mobile, None);
            }
            State::Serving { .. } => self.proceed(mobile, None),
            // The base station that confirmed it last knows more than this one.
            &mut State::Moved { to, incarnation } if is_new => {
                record.state = State::fetching(Before::Moved(to, incarnation));
                self.proceed(mobile, Some(elsewhere.unwrap_or((to, Some(incarnation)))));
            }
            State::Moved { .. } => {}
        }
    }

    /// Asks the base station `from`, which is known to have had the state in an incarnation or not; or
    /// confirms the attachment.
    fn proceed(&mut self, mobile: IpAddr, from: Option<(IpAddr, Option<u32>)>) {
        let Some(Record { state, attachment, confirmed, attach, .. }) =
            self.mobiles.get_mut(&mobile)
        else {
            return;
        };
        match (state, from) {
            (State::Fetching { about, .. }, Some((from, expects))) => {
                *about = *attachment;
                let incarnation = self.incarnation;
                let request = Request { mobile, attach: *attach, expects, incarnation };
                self.actions.push_back(Action::Fetch { request, from });
            }
            (&mut State::Serving { outcome }, _) => {
                let attachment = *attachment;
                let is_first = confirmed.replace(attachment) != Some(attachment);
                let confirm = Action::Confirm { mobile, attachment, outcome, is_first };
                self.actions.push_back(confirm);
            }
            _ => {}
        }
    }

    /// A base station, `station`, asks for the state of a mobile host; the message of the host in
    /// the request is authentic.
    pub(crate) fn on_request(&mut self, now: Time, request: &Request, station: IpAddr, to: R) {
        let (mobile, attachment) = (request.mobile, request.attach.attachment);
        match request.attach.message {
            // The host has said that it is attached there.
            MobilityMessage::Attach { station: named, .. } if named == station => {}
            _ => return self.answer(mobile, to, Reply::Superseded),
        }
        if request.expects.is_some_and(|it| it != self.incarnation) {
            return self.answer(mobile, to, Reply::Nothing);
        }
        let Some(record) = self.mobiles.get_mut(&mobile) else {
            return self.answer(mobile, to, Reply::Nothing);
        };
        if attachment < record.attachment {
            return self.answer(mobile, to, Reply::Superseded);
        }
        record.seen = now;
        match &mut record.state {
            State::Fetching { waiting, .. } => {
                waiting.push((attachment, (station, request.incarnation), to));
            }
            &mut State::Serving { outcome } => {
                self.give(mobile, attachment, outcome, ((station, request.incarnation), to));
            }
            // Also if it is the one that asks: it knows whether the state has arrived.
            &mut State::Moved { to: next, incarnation } => {
                self.answer(mobile, to, Reply::Moved(next, incarnation));
            }
        }
    }

    fn answer(&mut self, mobile: IpAddr, to: R, reply: Reply) {
        self.actions.push_back(Action::Answer { mobile, to, reply });
    }

    /// Hands the state of a mobile host over. The next base station learns, too, if it is lost.
    fn give(
        &mut self,
        mobile: IpAddr,
        attachment: u64,
        outcome: Outcome,
        ((station, incarnation), to): ((IpAddr, u32), R),
    ) {
        if let Some(record) = self.mobiles.get_mut(&mobile) {
            record.attachment = attachment;
            record.state = State::Moved { to: station, incarnation };
            match outcome {
                Outcome::Complete => self.actions.push_back(Action::Give { mobile, to }),
                Outcome::Lost => self.answer(mobile, to, Reply::Nothing),
            }
        }
    }

    /// A base station has answered a request of this one; none if it could not be reached. If it sent
    /// the state, the connections are here now.
    pub(crate) fn on_reply(&mut self, mobile: IpAddr, reply: Option<Reply>) {
        let Some(record) = self.mobiles.get_mut(&mobile) else { return };
        let State::Fetching { asked, waiting, about, before } = &mut record.state else { return };
        let before = *before;
        let elsewhere = elsewhere(&self.own, &record.attach);
        let onward = match (reply, before) {
            (Some(Reply::Moved(to, incarnation)), _) if !self.own.contains(&to) => {
                Some((to, incarnation))
            }
            // It came here, and went on from here.
            (Some(Reply::Moved(_, here)), Before::Moved(to, incarnation))
                if here == self.incarnation =>
            {
                Some((to, incarnation))
            }
            _ => None,
        };
        // The host was attached anew in the meantime, and knows better where its connections are. If it was here last as
        // far as it knows, they are where they were, and that one would answer the new attachment.
        let anew = match (reply, before) {
            _ if *about == record.attachment => None,
            (Some(Reply::Superseded), Before::Moved(to, incarnation)) => {
                elsewhere.or(Some((to, Some(incarnation))))
            }
            _ => elsewhere,
        };
        let waiting = match reply {
            Some(Reply::State) => core::mem::take(waiting),
            _ if anew.is_some() => {
                *asked = 1;
                return self.proceed(mobile, anew);
            }
            _ => match onward.filter(|_| *asked < Self::MOST_ASKED) {
                Some((to, incarnation)) => {
                    *asked += 1;
                    return self.proceed(mobile, Some((to, Some(incarnation))));
                }
                None => core::mem::take(waiting),
            },
        };
        let outcome = match (reply, before, record.attach.message) {
            // The host is elsewhere; what was known of its connections is still so.
            (Some(Reply::Superseded), Before::Nothing, _) => {
                self.forget(mobile);
                return self.answer_all(mobile, waiting, Reply::Nothing);
            }
            (Some(Reply::Superseded), Before::Moved(to, incarnation), _) => {
                record.state = State::Moved { to, incarnation };
                self.actions.push_back(Action::Release { mobile });
                return self.answer_all(mobile, waiting, Reply::Moved(to, incarnation));
            }
            (Some(Reply::Superseded), Before::Here(outcome), _) => outcome,
            (Some(Reply::State), ..) => Outcome::Complete,
            (Some(Reply::Moved(_, incarnation)), ..) if incarnation == self.incarnation => {
                match before {
                    Before::Here(outcome) => outcome,
                    Before::Nothing | Before::Moved(..) => Outcome::Lost,
                }
            }
            // It was told of the attachment, but did not confirm it: perhaps it never learned of it.
            (.., MobilityMessage::Attach { incarnation: None, .. }) => Outcome::Complete,
            _ => Outcome::Lost,
        };
        record.state = State::Serving { outcome };
        // The latest of those that wait has the host; the others are too late.
        let latest = waiting.iter().map(|&(attachment, ..)| attachment).max();
        if latest.is_none_or(|latest| latest < record.attachment) {
            self.proceed(mobile, None);
        }
        self.actions.push_back(Action::Release { mobile });
        for (attachment, station, to) in waiting {
            let here = self.mobiles.get(&mobile).map_or(0, |record| record.attachment);
            match Some(attachment) == latest && attachment >= here && self.serves(mobile) {
                true => self.give(mobile, attachment, outcome, (station, to)),
                false => self.answer(mobile, to, Reply::Superseded),
            }
        }
    }

    fn answer_all(&mut self, mobile: IpAddr, all: Vec<(u64, (IpAddr, u32), R)>, reply: Reply) {
        for (_, _, to) in all {
            self.answer(mobile, to, reply);
        }
    }

    fn forget(&mut self, mobile: IpAddr) {
        let Some(Record { other, .. }) = self.mobiles.remove(&mobile) else { return };
        if let Some(other) = other {
            self.others.remove(&other);
        }
        self.actions.push_back(Action::Forget { mobile, other });
    }

    /// When [`Registry::expire`] is to be called.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.expires
    }

    /// Forgets mobile hosts that nothing was heard of for long, but for those that have connections here;
    /// it is asked by all addresses of a host.
    pub(crate) fn expire(
        &mut self,
        now: Time,
        has_connections: impl Fn([Option<IpAddr>; 2]) -> bool,
    ) {
        let is_due = |record: &Record<R>| record.seen + Self::LIFETIME <= now;
        let due = self.mobiles.iter().filter(|(_, record)| is_due(record)).map(|(&m, _)| m);
        let mut due: Vec<IpAddr> = due.collect();
        due.sort_unstable();
        for mobile in due {
            if !has_connections(self.addresses(mobile)) {
                self.forget(mobile);
            } else if let Some(record) = self.mobiles.get_mut(&mobile) {
                record.seen = now;
            }
        }
        let expires = self.mobiles.values().map(|record| record.seen + Self::LIFETIME);
        self.expires = expires.min().unwrap_or(Time::NEVER);
    }
}

/// The base station that a mobile host says it was attached to before, if that is not this one; and its
/// incarnation, if it has confirmed the attachment.
fn elsewhere(own: &[IpAddr; 2], attach: &Mobility) -> Option<(IpAddr, Option<u32>)> {
    let MobilityMessage::Attach { previous, incarnation, .. } = attach.message else { return None };
    previous.filter(|previous| !own.contains(previous)).map(|station| (station, incarnation))
}
