//! Connections that others open: listeners, and which SYNs they accept.

use super::resets::Rejection;
use super::{FourTuple, Host};
use crate::Application;
use base::Time;
use core::net::{IpAddr, SocketAddr};
use rustc_hash::FxHashMap;
use tcp::{Config, Side};
use wire::{FastOpenCookie, Flags, Segment, SeqNumber};

/// Settings and application for a new connection.
type Accept<A> = Box<dyn FnMut(FourTuple) -> (Config, A) + Send>;

/// The address and port of a listener. Of several listeners that match a connection, one bound to
/// an address comes first, then one bound to a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The local address; any that the host owns for `None`.
    pub address: Option<IpAddr>,
    /// The local port; any for `None`.
    pub port: Option<u16>,
}

impl From<u16> for Binding {
    /// A port, whatever the address.
    fn from(port: u16) -> Binding {
        Binding { address: None, port: Some(port) }
    }
}

impl From<SocketAddr> for Binding {
    fn from(end: SocketAddr) -> Binding {
        Binding { address: Some(end.ip()), port: Some(end.port()) }
    }
}

/// A listener: it accepts connections.
pub struct Listener<A> {
    binding: Binding,
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

    /// Smaller backlogs count as this one when they are judged by how full they are (as in Linux).
    const SMALL: u32 = 8;

    /// A listener that is bound to a port, an address and a port, or any [`Binding`]. `accept` gives settings and an
    /// application to each connection. It is called at the SYN; a connection that ends before it is
    /// established leaves no trace, and its application is dropped without having been called.
    #[must_use]
    pub fn new(
        binding: impl Into<Binding>,
        accept: impl FnMut(FourTuple) -> (Config, A) + Send + 'static,
    ) -> Listener<A> {
        Listener {
            binding: binding.into(),
            backlog: Self::BACKLOG,
            accept: Box::new(accept),
            half_open: 0,
            template: None,
            cookies_until: Time::ZERO,
        }
    }

    /// The settings and the application of its next connection.
    pub fn accept(&mut self, connection: FourTuple) -> (Config, A) {
        (self.accept)(connection)
    }

    /// The most connections that are not yet established. SYNs beyond them are answered by cookies
    /// ([`super::Settings::syn_cookies`]) or dropped; the client retransmits its SYN. While more than
    /// half of the backlog is taken, a SYN-ACK is retransmitted only once.
    #[must_use]
    pub fn backlog(self, backlog: u32) -> Listener<A> {
        Listener { backlog, ..self }
    }
}

/// The listeners of a host.
pub(super) struct Listeners<A> {
    pub(super) by_binding: FxHashMap<Binding, Listener<A>>,
}

impl<A> Default for Listeners<A> {
    fn default() -> Listeners<A> {
        Listeners { by_binding: FxHashMap::default() }
    }
}

impl<A> Listeners<A> {
    /// The binding of the listener that a connection is for.
    fn binding(&self, tuple: &FourTuple) -> Option<Binding> {
        let (address, port) = (Some(tuple.local), Some(tuple.local_port));
        let bindings = [(address, port), (address, None), (None, port), (None, None)];
        let mut bindings = bindings.map(|(address, port)| Binding { address, port }).into_iter();
        bindings.find(|binding| self.by_binding.contains_key(binding))
    }

    /// The listener that a connection is for.
    pub(super) fn get_mut(&mut self, tuple: &FourTuple) -> Option<&mut Listener<A>> {
        self.by_binding.get_mut(&self.binding(tuple)?)
    }

    /// Whether a listener is bound to a port, at an address or at any.
    pub(super) fn has_port(&self, address: IpAddr, port: u16) -> bool {
        [port.into(), SocketAddr::new(address, port).into()]
            .iter()
            .any(|binding| self.by_binding.contains_key(binding))
    }
}

/// Whether the flags are those of a SYN that may open a connection; one with a FIN may not.
pub(super) fn opens(flags: Flags) -> bool {
    let control = Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN;
    flags & control == Flags::SYN
}

impl<A: Application> Host<A> {
    /// Accepts connections to `port`, each with the settings and the application that `accept` gives.
    pub fn listen(&mut self, port: u16, mut accept: impl FnMut() -> (Config, A) + Send + 'static) {
        self.add_listener(Listener::new(port, move |_| accept()));
    }

    /// Adds a listener, in the place of one with the same binding.
    pub fn add_listener(&mut self, listener: Listener<A>) {
        self.listeners.by_binding.insert(listener.binding, listener);
        self.count_half_open();
    }

    /// Removes the listener with a binding. Its connections that are not yet established go on.
    pub fn unlisten(&mut self, binding: impl Into<Binding>) {
        self.listeners.by_binding.remove(&binding.into());
        self.count_half_open();
    }

    /// Connections that are not yet established count for the listener that would accept them now.
    fn count_half_open(&mut self) {
        // A host is often given thousands of listeners before its first connection.
        if self.slots.count() == 0 {
            return;
        }
        self.listeners.by_binding.values_mut().for_each(|listener| listener.half_open = 0);
        for slot in self.slots.iter().filter(|slot| slot.half_open) {
            if let Some(listener) = self.listeners.get_mut(&slot.tuple()) {
                listener.half_open += 1;
            }
        }
    }

    /// A segment of no connection comes to a listener (RFC 9293 §3.10.7.2), if there is one.
    pub(super) fn accept(
        &mut self,
        now: Time,
        tuple: FourTuple,
        segment: &Segment,
        fast_open: Option<FastOpenCookie>,
    ) -> Result<u32, Rejection> {
        let listener = self.listeners.get_mut(&tuple).ok_or(Rejection::Closed)?;
        if segment.flags & (Flags::ACK | Flags::RST | Flags::SYN) == Flags::ACK {
            return self.accept_cookie(now, tuple, segment).ok_or(Rejection::Closed);
        }
        if segment.flags.intersects(Flags::RST | Flags::ACK) {
            return Err(Rejection::Closed);
        }
        if !opens(segment.flags) {
            return Err(Rejection::Ignored);
        }
        if self.memory.is_used_up() {
            return Err(Rejection::BacklogFull);
        }
        if listener.half_open >= listener.backlog {
            if !self.settings.syn_cookies {
                return Err(Rejection::BacklogFull);
            }
            return Err(self.send_cookie(now, &tuple, segment));
        }
        listener.half_open += 1;
        let (config, application) = (listener.accept)(tuple);
        listener.template.get_or_insert_with(|| Box::new(config.clone()));
        let mut iss = self.numbering.sequence(now, &tuple);
        if let Some(last) = self.replace(now, &tuple)
            && iss.beyond(last) <= 0
        {
            // It has sent faster than the clock of RFC 6528 ticks.
            iss = last + 1;
        }
        let id = self.add(now, tuple, &config, Side::Passive, iss, application);
        if let Some(cookie) = fast_open.filter(|_| config.fast_open) {
            self.accept_fast(now, id, &cookie);
        }
        Ok(id)
    }

    /// Whether a half-open connection whose timer is due makes room for others (RFC 4987 §3.3): more than
    /// half of its listener's backlog is taken, as Linux decides it, and its SYN-ACK was retransmitted
    /// before, three seconds after the SYN or later. One that is younger stays: its path may be slow.
    pub(super) fn is_to_be_abandoned(&mut self, now: Time, id: u32) -> bool {
        let slot = &self.slots[id as usize];
        if slot.connection.poll_timeout() > now || slot.connection.statistics().timeouts == 0 {
            return false;
        }
        let tuple = slot.tuple();
        let listener = self.listeners.get_mut(&tuple);
        listener.is_some_and(|listener| {
            let full = u64::from(listener.backlog.max(Listener::<A>::SMALL));
            2 * u64::from(listener.half_open) > full
        })
    }

    /// Whether a connection in TIME-WAIT makes room for a segment that opens another
    /// (RFC 9293 §3.6.1, RFC 6191).
    pub(super) fn is_reopened(&self, id: u32, tuple: &FourTuple, segment: &Segment) -> bool {
        opens(segment.flags)
            && self.listeners.binding(tuple).is_some()
            && self.slots[id as usize].connection.yields_to(segment)
    }

    /// Ends the connection that a new one replaces, if there is one. Returns its last sequence
    /// number.
    fn replace(&mut self, now: Time, tuple: &FourTuple) -> Option<SeqNumber> {
        let id = *self.by_tuple.get(tuple)?;
        let connection = &mut self.slots[id as usize].connection;
        let last = connection.last_sent();
        connection.abort();
        self.after(now, id);
        Some(last)
    }

    /// Removes a connection from the count of those not yet established.
    pub(super) fn leave_backlog(&mut self, tuple: &FourTuple) {
        if let Some(listener) = self.listeners.get_mut(tuple) {
            listener.half_open = listener.half_open.saturating_sub(1);
        }
    }
}
