//! The lab's box.

use crate::frames::ETHERNET;
use base::settings::Span;
use base::{Seed, Time};
use host::{Middlebox, Outbox, Port};
use marker::Settings;
use middlebox::{BoxSettings, Contents, Neighbour, Site, SpepStation};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use tcp::Config;
use wire::Packet;

/// The port of packets from the hop.
const FROM_HOP: Port = Port(3);

/// The lab's box at a clock of the test's.
pub(crate) struct Lab {
    station: Box<dyn Middlebox + Send>,
    outbox: Outbox,
    pub(crate) now: Time,
}

impl Lab {
    pub(crate) fn new(settings: &Settings) -> Lab {
        let station = SpepStation {
            hop: "mobile".to_owned(),
            flows: settings.flows,
            idle: Span(settings.idle),
            ..SpepStation::default()
        };
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let seed = Seed(1);
        let station = BoxSettings::from(station).build(&Site {
            own: [any, any],
            neighbours: &[Neighbour { name: "mobile", address: any, port: FROM_HOP }],
            attached: None,
            flows: &BTreeMap::new(),
            tunnels: &[],
            readable: &[],
            tcp: &Config::default(),
            has_streams: false,
            contents: &Contents::default(),
            random: &|| seed.stream("station"),
        });
        Lab { station, outbox: Outbox::default(), now: Time::ZERO }
    }

    /// A frame as it leaves. What is no packet to the box passes as it is.
    pub(crate) fn left(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut left = frame.to_vec();
        let bytes = &frame[ETHERNET..];
        if let Ok((mut packet, payload)) = Packet::parse(bytes) {
            let before = packet;
            let to = FROM_HOP.opposite();
            self.station.queued(self.now, to, &mut packet, &mut self.outbox.context());
            if packet != before {
                let mut written = Vec::new();
                packet.emit(&bytes[payload], &mut written).unwrap();
                left[ETHERNET..ETHERNET + written.len()].copy_from_slice(&written);
            }
        }
        left
    }

    pub(crate) fn count(&self, of: &str) -> u64 {
        let mut found = 0;
        self.station.counts(&mut |name, count| {
            if name == of {
                found = count;
            }
        });
        found
    }
}
