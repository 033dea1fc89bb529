//! Connections that others open: listeners, and who is let in.

use super::{Host, Key, cookies};
use crate::Application;
use base::Time;
use tcp::{Config, Side};
use wire::{Flags, Segment, SeqNumber};

/// Settings and application for whoever connects.
type Accept<A> = Box<dyn FnMut() -> (Config, A) + Send>;

/// What accepts connections to a port.
pub struct Listener<A> {
    port: u16,
    backlog: u32,
    pub(super) accept: Accept<A>,
    /// Its connections that are not yet established.
    pub(super) half_open: u32,
    /// The settings of its first connection: those of a connection by a cookie, which is answered before
    /// `accept` is asked for an application.
    pub(super) template: Option<Box<Config>>,
    /// Cookies are taken until this time of the host's.
    pub(super) cookies_until: Time,
}

impl<A> Listener<A> {
    /// The backlog of a listener that is not given another.
    pub const BACKLOG: u32 = 4096;

    /// A listener on `port`, to whose connections `accept` gives settings and an application. It is
    /// asked at the SYN; a connection that ends before it is established leaves no trace, and its
    /// application is dropped without having heard of anything.
    #[must_use]
    pub fn new(port: u16, accept: impl FnMut() -> (Config, A) + Send + 'static) -> Listener<A> {
        Listener {
            port,
            backlog: Self::BACKLOG,
            accept: Box::new(accept),
            half_open: 0,
            template: None,
            cookies_until: Time::ZERO,
        }
    }

    /// At most so many connections that are not yet established. SYNs beyond them are answered by
    /// cookies ([`super::Settings::syn_cookies`]) or dropped: a client that means it sends another.
    #[must_use]
    pub fn backlog(self, backlog: u32) -> Listener<A> {
        Listener { backlog, ..self }
    }
}

/// Why a segment for no connection opens none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stray {
    /// The listener's backlog is full.
    Overflow,
    /// The listener's backlog is full, and a cookie was the answer.
    Answered,
    /// A listener drops it without a word.
    Senseless,
    /// Its sender believes in a connection that is not there.
    Unwanted,
}

/// A segment that opens a connection. A FIN with the SYN has no honest purpose.
fn is_opening(flags: Flags) -> bool {
    let control = Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN;
    flags & control == Flags::SYN
}

impl<A: Application> Host<A> {
    /// Accepts whoever connects to `port`, as `accept` says.
    pub fn listen(&mut self, port: u16, accept: impl FnMut() -> (Config, A) + Send + 'static) {
        self.add_listener(Listener::new(port, accept));
    }

    /// Accepts whoever connects to a listener's port, instead of who has listened there before.
    pub fn add_listener(&mut self, mut listener: Listener<A>) {
        let slots = self.slots.iter();
        let own = slots.filter(|slot| slot.half_open && slot.key.local_port == listener.port);
        listener.half_open = own.count() as u32;
        self.listeners.insert(listener.port, listener);
    }

    /// Accepts nobody to `port` any more. Connections that are on their way to be established are
    /// none of the listener's business any more, and go on.
    pub fn unlisten(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// A segment for no connection comes to a listener (RFC 9293 §3.10.7.2), or to nobody.
    pub(super) fn accept(&mut self, now: Time, key: Key, segment: &Segment) -> Result<u32, Stray> {
        let listener = self.listeners.get_mut(&key.local_port).ok_or(Stray::Unwanted)?;
        if segment.flags & (Flags::ACK | Flags::RST | Flags::SYN) == Flags::ACK {
            return self.redeem(now, key, segment).ok_or(Stray::Unwanted);
        }
        if segment.flags.intersects(Flags::RST | Flags::ACK) {
            return Err(Stray::Unwanted);
        }
        if !is_opening(segment.flags) {
            return Err(Stray::Senseless);
        }
        if self.memory.is_used_up() {
            return Err(Stray::Overflow);
        }
        if listener.half_open >= listener.backlog {
            if !self.settings.syn_cookies {
                return Err(Stray::Overflow);
            }
            listener.cookies_until = self.numbering.local(now) + cookies::LIFETIME;
            return Err(self.send_cookie(now, &key, segment));
        }
        listener.half_open += 1;
        let (config, application) = (listener.accept)();
        listener.template.get_or_insert_with(|| Box::new(config.clone()));
        let local = self.addresses.towards(key.remote);
        let mut iss = self.numbering.sequence(now, local, &key);
        if let Some(last) = self.give_way(now, &key)
            && iss.beyond(last) <= 0
        {
            // It has sent faster than the clock of RFC 6528 ticks.
            iss = last + 1;
        }
        Ok(self.add(now, key, &config, Side::Passive, iss, application))
    }

    /// Whether a connection in TIME-WAIT makes room for a segment that opens another
    /// (RFC 9293 §3.6.1, RFC 6191).
    pub(super) fn is_reopened(&self, id: u32, segment: &Segment) -> bool {
        is_opening(segment.flags)
            && self.listeners.contains_key(&segment.destination_port)
            && self.slots[id as usize].connection.yields_to(segment)
    }

    /// Ends the connection that a new one replaces, if there is one. Returns its last sequence
    /// number.
    fn give_way(&mut self, now: Time, key: &Key) -> Option<SeqNumber> {
        let id = *self.by_key.get(key)?;
        let connection = &mut self.slots[id as usize].connection;
        let last = connection.last_sent();
        connection.abort();
        self.after(now, id);
        Some(last)
    }

    /// A connection is no longer on its way to be established.
    pub(super) fn leave_backlog(&mut self, port: u16) {
        if let Some(listener) = self.listeners.get_mut(&port) {
            listener.half_open = listener.half_open.saturating_sub(1);
        }
    }
}
