//! The sessions of a channel: one to send on, earlier ones for packets still on their way, and one that the
//! peer has not proved to have.

use crate::session::{Recognition, Session};
use base::{Duration, Time};

/// Sessions that both ends have proved to have, at a time. Where both ends initiate at once, each may
/// send on the session that it did not initiate; a rekeying then adds a third.
const MOST: usize = 3;

pub(crate) struct Sessions {
    /// The latest first.
    confirmed: [Option<Session>; MOST],
    /// This end has answered an initiation, which may be a replay.
    pending: Option<Session>,
    /// The age at which a session is dropped.
    lifetime: Duration,
    /// There is another one, or one less, than when they were asked for.
    is_changed: bool,
}

/// A session, by the index of its packets.
pub(crate) enum Found<'a> {
    /// That on which packets are sent.
    Latest(&'a mut Session),
    Earlier(&'a mut Session),
    Pending(&'a mut Session),
}

impl Sessions {
    pub(crate) fn new(lifetime: Duration) -> Sessions {
        Sessions { confirmed: [const { None }; MOST], pending: None, lifetime, is_changed: false }
    }

    /// The session that packets are sent on.
    pub(crate) fn latest(&self) -> Option<&Session> {
        self.confirmed[0].as_ref()
    }

    pub(crate) fn is_sending(&self, now: Time) -> bool {
        self.latest().is_some_and(|session| now < session.created + self.lifetime)
    }

    /// The session that packets are sent on, unless it is too old.
    pub(crate) fn sending(&mut self, now: Time) -> Option<&mut Session> {
        let lifetime = self.lifetime;
        self.confirmed[0].as_mut().filter(|session| now < session.created + lifetime)
    }

    /// The session with this index, unless it is too old.
    pub(crate) fn find(&mut self, now: Time, index: u32) -> Option<Found<'_>> {
        let lifetime = self.lifetime;
        let is_it = |session: &Session| session.local == index && now < session.created + lifetime;
        let [latest, earlier @ ..] = &mut self.confirmed;
        let latest = latest.iter_mut().map(Found::Latest);
        let earlier = earlier.iter_mut().flatten().map(Found::Earlier);
        let pending = self.pending.iter_mut().map(Found::Pending);
        latest.chain(earlier).chain(pending).find(|found| is_it(found.session()))
    }

    pub(crate) fn has(&self, index: u32) -> bool {
        self.all().any(|session| session.local == index)
    }

    fn all(&self) -> impl Iterator<Item = &Session> {
        self.confirmed.iter().flatten().chain(&self.pending)
    }

    /// All, if they are others than at the last call.
    pub(crate) fn poll(&mut self) -> Option<impl Iterator<Item = Recognition>> {
        let is_changed = std::mem::take(&mut self.is_changed);
        is_changed.then(|| self.all().map(Session::recognition))
    }

    /// Packets are sent on this session from now on.
    pub(crate) fn push(&mut self, session: Session) {
        self.is_changed = true;
        self.confirmed.rotate_right(1);
        self.confirmed[0] = Some(session);
    }

    /// The peer's next packet may prove that it has this session.
    pub(crate) fn set_pending(&mut self, session: Session) {
        self.is_changed = true;
        self.pending = Some(session);
    }

    pub(crate) fn take_pending(&mut self) -> Option<Session> {
        self.pending.take()
    }

    /// Drops those that both ends have proved to have.
    pub(crate) fn clear(&mut self) {
        self.is_changed = true;
        self.confirmed = [const { None }; MOST];
    }

    /// When the next session is dropped.
    pub(crate) fn expiry(&self) -> Time {
        self.all().map(|session| session.created + self.lifetime).min().unwrap_or(Time::NEVER)
    }

    /// Drops those that are too old.
    pub(crate) fn expire(&mut self, now: Time) {
        let lifetime = self.lifetime;
        for session in self.confirmed.iter_mut().chain([&mut self.pending]) {
            let dropped = session.take_if(|session| session.created + lifetime <= now);
            self.is_changed |= dropped.is_some();
        }
    }
}

impl Found<'_> {
    fn session(&self) -> &Session {
        match self {
            Found::Latest(session) | Found::Earlier(session) | Found::Pending(session) => session,
        }
    }
}
