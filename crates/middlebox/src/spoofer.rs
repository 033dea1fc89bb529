//! TCP spoofing: a box before a long hop splits the connections that pass (`ishac2001` §2).

mod handshakes;
#[cfg(test)]
mod tests;

use crate::table::{Settings, Site};
use base::settings::Bytes;
use base::{Random, Time};
use core::net::IpAddr;
use handshakes::{Handshakes, Left};
use host::{Context, FourTuple, Middlebox, Outlet, Port, Verdict};
use relay::{Half, Policy, Relays, Split, Teardown};
use serde::{Deserialize, Serialize};
use tcp::mechanism::Needs;
use tcp::{Config, KeepAlive};
use wire::{Body, Packet, Segment};

base::settings! {
    /// Splits the TCP connections that pass the node in both directions, at this node. The handshake
    /// stays end to end; data and teardown are spoofed: the node acknowledges them in the name of
    /// the other end, and carries them on in a connection of its own.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Spoofer {
        /// The most data of a connection that the node holds in each direction, besides what its receive
        /// window takes: beyond it, the window closes. Without a limit if absent, as published.
        pub cache: Option<Bytes>,
        /// When the end of a stream (FIN) is acknowledged to its sender: at once, as published, or once
        /// the receiver has acknowledged it.
        pub teardown: Teardown,
    }
}

impl Settings for Spoofer {
    fn runs_tcp(&self) -> bool {
        true
    }

    fn remedies(_: &str) -> Vec<Spoofer> {
        vec![Spoofer::default()]
    }

    fn needs(&self) -> Needs {
        Needs::MIDDLEBOX
            | Needs::BOTH_DIRECTIONS
            | Needs::CLEAR_HEADERS
            | Needs::SPLIT_CONNECTION
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let capacity = self.cache.map(|Bytes(bytes)| bytes);
        let policy = Policy { capacity, teardown: self.teardown };
        let split = split(site.tcp, policy);
        Box::new(Splitter::new(site.address(false), (site.random)(), split))
    }
}

/// The way in which connections are split: with these settings, as far as they suit a relay.
fn split(config: &Config, policy: Policy) -> Split {
    let config = Config {
        // Its sender has decided to send it now.
        nagle: false,
        // An end that vanishes while nothing is outstanding would be remembered for ever.
        keep_alive: config.keep_alive.or(Some(KeepAlive::default())),
        ..config.clone()
    };
    Split { configs: [config.clone(), config], policy }
}

/// The box.
pub struct Splitter {
    relays: Relays,
    handshakes: Handshakes,
    split: Split,
}

impl Splitter {
    /// A box with an address that splits connections like this. `random` is for secrets.
    #[must_use]
    pub fn new(address: IpAddr, random: Random, split: Split) -> Splitter {
        let relays = Relays::new(address, random);
        Splitter { relays, handshakes: Handshakes::default(), split }
    }

    /// The split connections.
    #[must_use]
    pub fn relays(&self) -> &Relays {
        &self.relays
    }

    /// Considers a segment of a connection that is not split. Returns whether the connection is split now,
    /// beginning with this segment.
    fn consider(&mut self, now: Time, packet: &Packet, segment: &Segment) -> bool {
        let tuple = FourTuple::of_segment(&packet.ip, segment);
        let handshake = self.handshakes.see(now, tuple, packet, segment);
        handshake.is_some_and(|handshake| {
            self.relays.split(now, tuple.reversed(), &handshake, &self.split)
        })
    }

    fn transmit(&mut self, now: Time, cx: &mut Context<'_>) {
        self.relays.transmit(now, &mut Sending { cx, packet: Packet::BLANK });
    }
}

impl Middlebox for Splitter {
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        // The node's own connections pass as they are.
        if from.is_none() {
            return Verdict::Forward;
        }
        let mut is_split = self.relays.takes(packet);
        if let Body::Tcp(segment) = &packet.body {
            if is_split && handshakes::is_syn(segment) && self.relays.forget(now, packet) {
                is_split = false;
            }
            is_split = is_split || self.consider(now, packet, segment);
        }
        if !is_split {
            return Verdict::Forward;
        }
        self.relays.handle_packet(now, packet);
        self.transmit(now, cx);
        Verdict::Consume
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("split connections", self.relays.statistics().split);
        for why in Left::ALL {
            count(why.name(), self.handshakes.left(why));
        }
    }

    fn next_wake(&self) -> Time {
        self.relays.poll_timeout()
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.relays.handle_timeout(now);
        self.transmit(now, cx);
    }
}

/// Hands the packets of halves to the node.
struct Sending<'a, 'b> {
    cx: &'a mut Context<'b>,
    packet: Packet,
}

impl Outlet<Half> for Sending<'_, '_> {
    fn packet(&mut self) -> &mut Packet {
        &mut self.packet
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&Half>) {
        self.cx.send(self.packet);
    }
}

