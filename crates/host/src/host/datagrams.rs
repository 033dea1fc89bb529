//! Datagrams that a host sends and receives.

use super::tfrc::TfrcEnds;
use super::{Host, Outlet};
use crate::{Application, DatagramSink, DatagramSource, Departures};
use base::{Schedule, Time};
use wire::{Ip, Payload, Udp};

impl<A: Application> Host<A> {
    /// Adds a source of datagrams.
    pub fn send_datagrams(&mut self, source: DatagramSource) {
        let remote = source.flow().remote;
        self.datagrams.add(source, Ip::new(self.addresses.towards(remote), remote));
    }

    /// Receives the datagrams for a port from now on. Those for other ports are counted in
    /// [`Statistics::no_connection`](super::Statistics::no_connection).
    pub fn take_datagrams(&mut self, port: u16) {
        self.datagrams.sinks.add(port);
    }

    /// The same for the datagrams of one source, with their delays.
    pub fn take_datagrams_of(&mut self, port: u16, departures: Option<Departures>) {
        let sink = self.datagrams.sinks.add(port);
        if let Some(departures) = departures {
            sink.expect(departures);
        }
    }

    /// The sources of datagrams, in the order of the calls.
    #[must_use]
    pub fn datagram_sources(&self) -> &[DatagramSource] {
        &self.datagrams.sources
    }

    /// The sink of a port that receives datagrams.
    #[must_use]
    pub fn datagram_sink(&self, port: u16) -> Option<&DatagramSink> {
        self.datagrams.sinks.get(port)
    }

    /// Processes a datagram.
    #[inline]
    pub(super) fn on_datagram(&mut self, now: Time, udp: Udp, payload: Payload) {
        match self.datagrams.sinks.get_mut(udp.destination_port) {
            Some(sink) => {
                sink.take(payload);
                if self.settings.measure_latency {
                    sink.measure(now, payload);
                }
            }
            None => self.statistics.no_connection += 1,
        }
    }
}

/// The sources and sinks of a host.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    sources: Vec<DatagramSource>,
    /// The headers and route of each source's datagrams.
    ways: Vec<Way>,
    /// When each source sends next.
    schedule: Schedule,
    /// Datagrams that are due wait to be sent.
    due: bool,
    sinks: Sinks,
    pub(super) tfrc: TfrcEnds,
}

#[derive(Debug)]
struct Way {
    ip: Ip,
    udp: Udp,
    /// For the outlet.
    route: Option<u32>,
}

impl Datagrams {
    fn add(&mut self, source: DatagramSource, ip: Ip) {
        let flow = source.flow();
        let udp = Udp { source_port: flow.local_port, destination_port: flow.remote_port };
        let id = self.schedule.add();
        self.schedule.set(id, source.next());
        self.ways.push(Way { ip, udp, route: None });
        self.sources.push(source);
    }

    /// When the next is due.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.schedule.first().0.min(self.tfrc.next())
    }

    /// Marks the datagrams that are due at `now`.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.due = self.schedule.first().0 <= now;
        self.tfrc.handle_timeout(now);
    }

    /// Sends the datagrams that [`Datagrams::handle_timeout`] has marked, and those of TFRC that are due. Returns
    /// whether [`Datagrams::next`] may be earlier than before.
    pub(super) fn transmit<A>(&mut self, now: Time, outlet: &mut impl Outlet<A>) -> bool {
        if core::mem::take(&mut self.due) {
            self.send_sources(now, outlet);
        }
        self.tfrc.transmit(now, outlet)
    }

    /// Sends the datagrams that are due at `now`.
    #[inline]
    pub(super) fn send_due<A>(&mut self, now: Time, outlet: &mut impl Outlet<A>) {
        self.send_sources(now, outlet);
        self.tfrc.send_due(now, outlet);
    }

    /// Sends the datagrams of sources that are due at `now`, by time and then by source.
    #[inline]
    fn send_sources<A>(&mut self, now: Time, outlet: &mut impl Outlet<A>) {
        loop {
            let (time, id) = self.schedule.first();
            if time > now {
                return;
            }
            let (source, way) = (&mut self.sources[id as usize], &mut self.ways[id as usize]);
            let payload = source.take();
            self.schedule.set(id, source.next());
            let packet = outlet.packet();
            packet.make_udp(way.udp);
            packet.ip = way.ip;
            packet.payload = payload;
            outlet.send(payload.len, &mut way.route, None);
        }
    }
}

/// The sinks by port, from the lowest port with one on.
#[derive(Debug, Default)]
struct Sinks {
    first: u16,
    ports: Vec<Option<DatagramSink>>,
}

impl Sinks {
    fn add(&mut self, port: u16) -> &mut DatagramSink {
        if self.ports.is_empty() {
            self.first = port;
        }
        if port < self.first {
            let more = usize::from(self.first - port);
            self.ports.splice(..0, core::iter::repeat_n(None, more));
            self.first = port;
        }
        let place = usize::from(port - self.first);
        if place >= self.ports.len() {
            self.ports.resize(place + 1, None);
        }
        self.ports[place].get_or_insert_default()
    }

    #[inline]
    fn place(&self, port: u16) -> usize {
        // A port below the first is a place behind the last: of 65,536 ports, no two are alike.
        usize::from(port.wrapping_sub(self.first))
    }

    fn get(&self, port: u16) -> Option<&DatagramSink> {
        self.ports.get(self.place(port))?.as_ref()
    }

    #[inline]
    fn get_mut(&mut self, port: u16) -> Option<&mut DatagramSink> {
        let place = self.place(port);
        self.ports.get_mut(place)?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_port_that_takes_datagrams_has_a_sink_of_its_own(
            ports in prop::collection::vec(any::<u16>(), 0..20),
            others in prop::collection::vec(any::<u16>(), 0..20),
        ) {
            let mut sinks = Sinks::default();
            for (number, &port) in ports.iter().enumerate() {
                sinks.add(port);
                for _ in 0..number {
                    sinks.get_mut(port).unwrap().take(Payload::default());
                }
            }
            for port in ports.iter().chain(&others) {
                let of_port = (0..).zip(&ports).filter(|(_, other)| *other == port);
                let (count, expected) = of_port.fold((0, 0), |(n, sum), (i, _)| (n + 1, sum + i));
                let received = sinks.get(*port).map(|sink| sink.received);
                prop_assert_eq!(received, (count > 0).then_some(expected));
            }
        }
    }
}
