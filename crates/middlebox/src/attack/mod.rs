//! Attackers that forge what the mechanisms rely on (`bbn8333` §6.2, §7.1; `koutsianas2007` §3.6),
//! by what they know of their victim.

mod blind;
mod changes;
mod notices;
mod on_path;
mod receiver;

pub use blind::{BlindAttacker, Guesser};
pub use changes::Changes;
pub use notices::Notices;
pub use on_path::{DISCARD, OnPathAttacker};
pub use receiver::{FalseEchoes, FalseFields};

use base::Random;
use core::net::IpAddr;
use wire::{Body, Packet, Segment};

/// The victim of an attack, and what the forged packets look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgery {
    /// The address of the attacker.
    pub attacker: IpAddr,
    /// The victim's end that sends data.
    pub source: IpAddr,
    /// The one that receives it.
    pub destination: IpAddr,
    /// The port that data goes to.
    pub destination_port: u16,
    /// To which of them the forged packets go.
    pub target: IpAddr,
    /// Bytes of a forged notice, with its headers.
    pub size: u16,
}

impl Forgery {
    /// A segment of the victim's that carries data.
    fn data<'a>(&self, packet: &'a Packet) -> Option<&'a Segment> {
        let ends = (packet.ip.source, packet.ip.destination);
        match &packet.body {
            Body::Tcp(segment) if packet.payload.len > 0 => (ends
                == (self.source, self.destination)
                && segment.destination_port == self.destination_port)
                .then_some(segment),
            _ => None,
        }
    }

    /// A segment of the other direction.
    fn acknowledgment<'a>(&self, packet: &'a Packet) -> Option<&'a Segment> {
        let ends = (packet.ip.destination, packet.ip.source);
        match &packet.body {
            Body::Tcp(segment) => (ends == (self.source, self.destination)
                && segment.source_port == self.destination_port)
                .then_some(segment),
            _ => None,
        }
    }
}

/// What a blind attacker guesses of the victim's sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Any of the 2^32.
    #[default]
    Anywhere,
    /// One of those in flight: the strongest guess that there is.
    Window,
}

/// A kind of packets that attackers forge: [`Notices`] of corruption, or [`Changes`] of connectivity.
pub trait Forged {
    /// Whether an attacker on the path can make one of a packet that passes it.
    fn answers(&self, forgery: &Forgery, packet: &Packet) -> bool;

    /// The one that it makes of such a packet.
    fn answer(&mut self, forgery: &Forgery, packet: &Packet) -> Option<Packet>;

    /// One of a blind attacker's, which names the victim's ends and says nothing else yet.
    fn blank(&self, forgery: &Forgery) -> Body;

    /// A packet passes the target: what a guess of the strongest kind knows.
    fn observe(&mut self, forgery: &Forgery, packet: &Packet);

    /// Fills in a packet from the attacker to the target, if it is a blank one.
    fn guess(&mut self, forgery: &Forgery, aim: Aim, random: &mut Random, packet: &mut Packet);
}

/// A uniform 32-bit number.
fn any(random: &mut Random) -> u32 {
    (random.bits() >> 32) as u32
}
