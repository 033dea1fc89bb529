//! ESP in transport mode, a bump in the stack of a host: it hides the transport of the host's connections
//! (RFC 4303), and finds out why packets were lost (SPEP, `obanaik2003` §4.2).

mod classifier;

use crate::table::{Settings, Site};
use base::settings::Kind;
use base::{Random, Time};
use classifier::{Classifier, Counts};
use core::net::IpAddr;
use core::num::NonZeroUsize;
use host::{
    Context, DropReason, FourTuple, HostIndication, LinkEvent, Middlebox, Ordered, Port, Verdict,
};
use lru::LruCache;
use rustc_hash::{FxBuildHasher, FxHashSet};
use serde::{Deserialize, Serialize};
use tcp::mechanism::Needs;
use wire::{Esp, FlowKey, Packet, ReplayWindow, Spep};

/// How a host learns why packets of a flow were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossCauses {
    /// Not at all.
    #[default]
    Unknown,
    /// From the base station, which has the box `spep`, by an option in the packets.
    Station,
    /// From its own link, which says what it has damaged (end-to-end ELN).
    Link,
}

base::words!(LossCauses);

base::settings! {
    /// Hides the transport of the host's flows by ESP in transport mode. Both ends must have it. Each connection has
    /// a security association for each direction, and over IPv6 a flow label.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct TransportEsp {
        /// The names of the flows; all flows if there is none.
        pub flows: Vec<String>,
        /// Packets have an option of 32 bytes, in which a base station with the box `spep` writes which packets
        /// it has received. Only over IPv6.
        pub spep: bool,
        /// How the host learns why packets were lost, which it passes on to TCP (mechanism `eln`)
        /// and to TFRC (`loss_causes` of `traffic.udp`): not at all
        /// (`unknown`); from the base station, if the other end has `spep` (`station`); or from its own link, which
        /// says what it has damaged (`link`).
        pub loss_causes: LossCauses,
        /// The security parameters index (SPI) of the host's first outgoing association; those of further connections
        /// follow. If it is 0, it is chosen at random. A peer with fixed associations needs to know it.
        pub first_spi: u32,
        /// The sequence number of an association's first packet.
        pub first_sequence: u32 as Kind::at_least(1),
    }
}

impl Default for TransportEsp {
    fn default() -> TransportEsp {
        TransportEsp {
            flows: Vec::new(),
            spep: false,
            loss_causes: LossCauses::Unknown,
            first_spi: 0,
            first_sequence: 1,
        }
    }
}

impl Settings for TransportEsp {
    fn flows(&self) -> &[String] {
        &self.flows
    }

    fn needs(&self) -> Needs {
        Needs::SENDER | Needs::RECEIVER | Needs::IPSEC
    }

    fn check(&self) -> Result<(), &'static str> {
        match self.first_spi {
            1..LEAST_SPI => Err("`first_spi`: expected 0, or 256 or more: the others are reserved"),
            _ => Ok(()),
        }
    }

    fn needs_damage_reports(&self) -> bool {
        self.loss_causes == LossCauses::Link
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let flows = site.flows(&self.flows).into_iter();
        let flows = flows.map(|flow| (flow.source, flow.destination, flow.port));
        let flows = Some(flows.collect());
        Box::new(Protector { flows, ..self.protector((site.random)()) })
    }
}

impl TransportEsp {
    /// The box for those who choose the packets: it protects what a node sends, and opens what arrives there, whatever
    /// its flow. It uses 32 bits of an association's sequence numbers: another association follows the last one, as
    /// where numbers are not extended (RFC 4303 §3.3.3).
    #[must_use]
    pub fn of_all_packets(&self, random: Random) -> Box<dyn Middlebox + Send> {
        Box::new(Protector { last_sequence: u32::MAX.into(), ..self.protector(random) })
    }

    fn protector(&self, mut random: Random) -> Protector {
        Protector {
            flows: None,
            spep: self.spep,
            loss_causes: self.loss_causes,
            first_sequence: self.first_sequence,
            last_sequence: u64::MAX,
            next_spi: match self.first_spi {
                0 => random.bits() as u32 | 1 << 31,
                first => first,
            },
            outgoing: LruCache::with_hasher(MOST_ASSOCIATIONS, FxBuildHasher),
            incoming: LruCache::with_hasher(MOST_ASSOCIATIONS, FxBuildHasher),
            protected: 0,
            opened: 0,
            counts: Counts::default(),
        }
    }
}

/// The least SPI that is not reserved (RFC 4303 §2.1).
const LEAST_SPI: u32 = 256;

/// The most security associations in a direction; the one that has been idle longest makes room.
const MOST_ASSOCIATIONS: NonZeroUsize = NonZeroUsize::new(65_536).unwrap();

/// A connection as its packets show it: protocol, ends.
type Connection = (u8, FourTuple);

/// A security association as its packets show it: source, destination, SPI.
type Association = (IpAddr, IpAddr, u32);

fn association(packet: &Packet, esp: Esp) -> Association {
    (packet.ip.source, packet.ip.destination, esp.spi)
}

/// What sends the packets of a connection.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    spi: u32,
    /// The number of the next packet.
    sequence: u64,
}

/// What receives the packets of a connection.
#[derive(Clone, Debug, Default)]
struct Incoming {
    window: ReplayWindow,
    classifier: Classifier,
}

/// The protocol of a packet, and its ends as its sender names them.
fn ends(packet: &Packet) -> Connection {
    let FlowKey { source, destination, protocol, ports, .. } = packet.flow_key();
    let (local_port, remote_port) = (ports.source(), ports.destination());
    (protocol, FourTuple { local: source, local_port, remote: destination, remote_port })
}

/// The box.
struct Protector {
    /// Source, destination and port of the flows; all if there is none.
    flows: Option<FxHashSet<(IpAddr, IpAddr, u16)>>,
    spep: bool,
    loss_causes: LossCauses,
    first_sequence: u32,
    /// The number of an association's last packet.
    last_sequence: u64,
    next_spi: u32,
    outgoing: LruCache<Connection, Outgoing, FxBuildHasher>,
    incoming: LruCache<Association, Incoming, FxBuildHasher>,
    protected: u64,
    opened: u64,
    counts: Counts,
}

impl Protector {
    /// The connection of a packet from this host, if it is to be protected.
    fn connection(&self, packet: &Packet) -> Option<Connection> {
        let (protocol, ends) = ends(packet);
        let FourTuple { local, local_port, remote, remote_port } = ends;
        let is_of_flow = self.flows.as_ref().is_none_or(|flows| {
            flows.contains(&(local, remote, remote_port))
                || flows.contains(&(remote, local, local_port))
        });
        is_of_flow.then_some((protocol, ends))
    }

    /// Hides the transport of a packet.
    fn protect(&mut self, packet: &mut Packet) -> Verdict {
        let Some(connection) = self.connection(packet) else { return Verdict::Forward };
        let (first, spi) = (self.first_sequence.into(), &mut self.next_spi);
        let mut new = || {
            let outgoing = Outgoing { spi: *spi, sequence: first };
            *spi = spi.checked_add(1).unwrap_or(LEAST_SPI);
            outgoing
        };
        let outgoing = self.outgoing.get_or_insert_mut(connection, &mut new);
        if outgoing.sequence > self.last_sequence {
            *outgoing = new();
        }
        let &mut Outgoing { spi, sequence } = outgoing;
        outgoing.sequence += 1;
        if packet.ip.source.is_ipv6() {
            packet.ip.flow_label = spi & 0xf_ffff;
            // Without room for it the packet goes without.
            let _ = self.spep && Spep::put(packet);
        }
        if !packet.protect(Esp::numbered(spi, sequence)) {
            return Verdict::Drop(DropReason::Unprotected);
        }
        self.protected += 1;
        Verdict::Forward
    }

    /// Uncovers the transport of a packet, and finds out which packets of its association are missing before it.
    fn open(&mut self, packet: &mut Packet, cx: &mut Context<'_>) -> Verdict {
        let Some(esp) = packet.unprotect() else {
            // RFC 4301 §5.2: a packet that should be protected and is not is discarded.
            return match (packet.esp(), self.connection(packet)) {
                (Some(esp), _) if self.incoming.contains(&association(packet, esp)) => {
                    Verdict::Drop(DropReason::Unauthentic)
                }
                (_, Some(_)) => Verdict::Drop(DropReason::Unprotected),
                (_, None) => Verdict::Forward,
            };
        };
        let Incoming { window, classifier } =
            self.incoming.get_or_insert_mut(association(packet, esp), Incoming::default);
        let number = window.extended(esp.sequence);
        if !window.check(number) {
            return Verdict::Drop(DropReason::Replay);
        }
        window.update(number);
        self.opened += 1;
        let losses = match (self.loss_causes, Spep::of(packet)) {
            (LossCauses::Station, Some(spep)) => {
                classifier.arrive(esp.sequence, &spep, &mut self.counts)
            }
            (LossCauses::Link, _) => classifier.arrive_knowing(esp.sequence, &mut self.counts),
            (LossCauses::Unknown | LossCauses::Station, _) => return Verdict::Forward,
        };
        if !losses.is_empty()
            && let Some(before) = Ordered::of(packet)
        {
            cx.indicate(HostIndication::PeerLosses { before, losses });
        }
        Verdict::Forward
    }
}

impl Middlebox for Protector {
    fn shares_state(&self) -> bool {
        false
    }

    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        match from {
            None => self.protect(packet),
            Some(_) => self.open(packet, cx),
        }
    }

    fn link(&mut self, _: Time, _: Port, event: LinkEvent<'_>, _: &mut Context<'_>) {
        if let LinkEvent::Corrupted(packet) = event
            && let Some(esp) = packet.esp()
            && let Some(incoming) = self.incoming.get_mut(&association(packet, esp))
        {
            incoming.classifier.damaged(esp.sequence, &mut self.counts);
        }
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("protected", self.protected);
        count("opened", self.opened);
        self.counts.each(count);
    }
}

#[cfg(test)]
mod tests;
