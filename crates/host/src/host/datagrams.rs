//! Datagrams that a host sends and takes.

use super::Host;
use crate::{Application, DatagramSink, DatagramSource};

impl<A: Application> Host<A> {
    /// Sends datagrams from now on, as their source says.
    pub fn send_datagrams(&mut self, source: DatagramSource) {
        self.datagrams.add(source);
    }

    /// Takes in the datagrams for a port from now on. Those for other ports are strays.
    pub fn take_datagrams(&mut self, port: u16) {
        self.datagrams.sinks.entry(port).or_default();
    }

    /// The sources of datagrams, in the order of the calls.
    #[must_use]
    pub fn datagram_sources(&self) -> &[DatagramSource] {
        &self.datagrams.sources
    }

    /// What has arrived at a port that takes datagrams.
    #[must_use]
    pub fn datagram_sink(&self, port: u16) -> Option<&DatagramSink> {
        self.datagrams.sinks.get(&port)
    }
}
