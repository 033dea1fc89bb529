//! Attackers that forge the packets that mechanisms rely on (`bbn8333` §6.2, §7.1;
//! `koutsianas2007` §3.6), by their knowledge of the victim.

mod blind;
mod changes;
mod esp_packets;
mod notices;

pub use blind::{BlindAttacker, Guesser};
pub use changes::Changes;
pub use esp_packets::EspPackets;
pub use notices::Notices;

use crate::fec::Flow;
use crate::table::Site;
use base::settings::Span;
use base::{Random, Time};
use core::net::IpAddr;
use host::{Context, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use wire::{Body, Packet, Segment};

/// The victim of an attack, and the form of forged packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgery {
    /// The address of the attacker.
    pub attacker: IpAddr,
    /// The address of the victim's data sender.
    pub source: IpAddr,
    /// The address of the victim's data receiver.
    pub destination: IpAddr,
    /// The port of the data.
    pub destination_port: u16,
    /// The end that forged packets go to.
    pub target: IpAddr,
    /// Bytes of a forged notice, with its headers.
    pub size: u16,
}

impl Forgery {
    /// The packet's segment, if it is one of the victim's with data.
    pub(crate) fn data<'a>(&self, packet: &'a Packet) -> Option<&'a Segment> {
        let ends = (packet.ip.source, packet.ip.destination);
        match &packet.body {
            Body::Tcp(segment) if packet.payload.len > 0 => (ends
                == (self.source, self.destination)
                && segment.destination_port == self.destination_port)
                .then_some(segment),
            _ => None,
        }
    }

    /// The packet's segment, if it is one of the victim's in the other direction.
    pub(crate) fn acknowledgment<'a>(&self, packet: &'a Packet) -> Option<&'a Segment> {
        let ends = (packet.ip.destination, packet.ip.source);
        match &packet.body {
            Body::Tcp(segment) => (ends == (self.source, self.destination)
                && segment.source_port == self.destination_port)
                .then_some(segment),
            _ => None,
        }
    }
}

/// The end of a flow that forged packets go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The sender of its data.
    #[default]
    Sender,
    /// The receiver of its data.
    Receiver,
}

base::words!(Target);

impl Forgery {
    /// That of an attacker at a site against a flow, with packets of this size.
    pub(crate) fn new(site: &Site<'_>, flow: Flow, target: Target, size: u16) -> Forgery {
        let Flow { source, destination, port } = flow;
        Forgery {
            attacker: site.address(source.is_ipv6()),
            source,
            destination,
            destination_port: port,
            target: if target == Target::Sender { source } else { destination },
            size,
        }
    }
}

/// From when to when an attack lasts: from the start of the run, and to its end, if that is not set.
pub(crate) fn times(start: Option<Span>, stop: Option<Span>) -> (Time, Time) {
    let time = |Span(at)| Time::ZERO + at;
    (start.map_or(Time::ZERO, time), stop.map_or(Time::NEVER, time))
}

/// The attackers on the packets of several flows, one for each.
#[derive(Clone, Debug)]
pub(crate) struct OfEach<A>(pub(crate) Vec<A>);

impl<A: Middlebox> Middlebox for OfEach<A> {
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        // No attacker stops a packet.
        for attacker in &mut self.0 {
            attacker.packet(now, from, packet, cx);
        }
        Verdict::Forward
    }
}

/// How a blind attacker guesses the victim's sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Any of the 2^32.
    #[default]
    Anywhere,
    /// One in flight: the strongest guess.
    Window,
}

/// What attackers forge: [`Notices`] of corruption, [`Changes`] of connectivity, or [`EspPackets`].
pub trait Forged {
    /// Whether an attacker on the path can answer this packet.
    fn answers(&self, forgery: &Forgery, packet: &Packet) -> bool;

    /// The forged packet that answers it.
    fn answer(&mut self, forgery: &Forgery, packet: &Packet) -> Option<Packet>;

    /// A blind attacker's packet, which names the victim's ends and is otherwise blank.
    fn blank(&self, forgery: &Forgery) -> Body;

    /// Observes a packet at the target, for the strongest guess.
    fn observe(&mut self, forgery: &Forgery, packet: &Packet);

    /// Fills in a packet from the attacker to the target, if it is a blank one.
    fn guess(&mut self, forgery: &Forgery, aim: Aim, random: &mut Random, packet: &mut Packet);
}

/// A uniform 32-bit number.
fn any(random: &mut Random) -> u32 {
    (random.bits() >> 32) as u32
}
