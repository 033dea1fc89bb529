//! SPEP, the base station: it writes into packets which packets of their flow it has received
//! (`obanaik2003` §4.2).

mod flows;
mod runs;

use crate::esp::LossCauses;
use crate::remedy::Place;
use crate::table::{Settings, Site};
use crate::{Hop, MssClamp, Remedy, TransportEsp};
use base::settings::{Kind, Span};
use base::{Duration, Time};
use core::num::NonZeroUsize;
use flows::{Flows, Secret};
use host::{Context, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use tcp::mechanism::{Eln, Mechanism, Needs};
use wire::{Esp, Packet, Spep};

/// What a base station writes into packets of what it has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claims {
    /// The runs that it has received.
    #[default]
    Received,
    /// That it has received every packet, whatever has become of it.
    Everything,
    /// Nothing: the option stays as it came.
    Nothing,
}

base::words!(Claims);

base::settings! {
    /// Writes into the packets that leave for the wireless hop which packets of their flow have left for it: the
    /// last three runs of ESP sequence numbers. The mobile host, with the box `esp`, tells by them a loss on the hop
    /// from one before. Only the addresses, the flow label and the ESP header are read, and only packets with
    /// the option for it are changed.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct SpepStation {
        /// The name of the neighbour behind the wireless hop. It must be given.
        pub hop: String,
        /// The most flows; a new one takes the place of the one that has been idle longest.
        pub flows: u32 as Kind::at_least(1),
        /// A flow that has been idle for longer is forgotten.
        pub idle: Span,
        /// Join runs when the packet between them arrives late. The publication does not.
        pub merge: bool,
        /// What it writes: the runs that it has received (`received`), or, for experiments with a base
        /// station that lies, that it has received every packet (`everything`), or `nothing`.
        pub claims: Claims,
    }
}

impl Default for SpepStation {
    fn default() -> SpepStation {
        SpepStation {
            hop: String::new(),
            flows: 65_536,
            idle: Span(Duration::from_secs(60)),
            merge: false,
            claims: Claims::Received,
        }
    }
}

impl Settings for SpepStation {
    fn neighbour(&self) -> Option<&str> {
        Some(&self.hop)
    }

    /// The hosts at both ends protect the flow by ESP, and its segments leave room for that.
    fn remedies(hop: &Hop<'_>) -> Vec<Remedy> {
        let Some(mss) = largest_mss(hop.mtu.unwrap_or(ETHERNET_MTU)) else { return Vec::new() };
        let flows: Vec<String> = hop.flow.map(str::to_owned).into_iter().collect();
        let peer = TransportEsp { flows: flows.clone(), spep: true, ..TransportEsp::default() };
        let host =
            TransportEsp { flows, loss_causes: LossCauses::Station, ..TransportEsp::default() };
        let station = SpepStation { hop: hop.neighbour.to_owned(), ..SpepStation::default() };
        let with = |eln: Eln| {
            let boxes = vec![
                (Place::Peer, peer.clone().into()),
                (Place::Peer, MssClamp { mss }.into()),
                (Place::BeforeHop, station.clone().into()),
                (Place::Host, host.clone().into()),
            ];
            let mechanisms = vec![Mechanism::Eln(eln)];
            Remedy { mechanisms, ipv6: true, ..Remedy::new(Some("SPEP"), boxes) }
        };
        // With SACK the first hole alone is little; without it the others say nothing.
        vec![with(Eln::default()), with(Eln::of_every_hole())]
    }

    fn needs(&self) -> Needs {
        Needs::MIDDLEBOX
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let mut random = (site.random)();
        let secret = Secret(random.bits(), random.bits());
        let most = NonZeroUsize::new(self.flows as usize).unwrap_or(NonZeroUsize::MIN);
        Box::new(Marker {
            hop: site.ports_from(&self.hop).into_iter().map(Port::opposite).collect(),
            flows: Flows::new(most, self.idle.0, self.merge, secret),
            claims: self.claims,
            marked: 0,
        })
    }
}

/// The MTU of a hop that has not said another, bytes.
const ETHERNET_MTU: u32 = 1500;

/// The largest segments that fit a hop of this MTU with the option and ESP around them. `None` if there would be
/// none.
fn largest_mss(mtu: u32) -> Option<u16> {
    const HEADERS: u32 = 40 + Spep::LEN + Esp::HEADER as u32;
    const TCP: u32 = 20;
    let inner = (0..=mtu).rev().find(|&inner| HEADERS + Esp::sealed_len(inner) <= mtu)?;
    u16::try_from(inner.checked_sub(TCP)?).ok().filter(|&mss| mss >= MssClamp::LEAST)
}

/// One block that holds every number that may be missing before this one, whatever wraps.
pub(crate) fn everything_before(sequence: u32) -> [(u32, u32); Spep::BLOCKS] {
    let mut blocks = Spep::default().blocks;
    blocks[0] = (sequence.wrapping_sub(1 << 30), sequence);
    blocks
}

/// The box.
struct Marker {
    /// The directions of links that lead to the hop.
    hop: Vec<Port>,
    flows: Flows,
    claims: Claims,
    /// Packets whose option was filled in.
    marked: u64,
}

impl Middlebox for Marker {
    fn shares_state(&self) -> bool {
        false
    }

    /// What a queue of the base station drops has not been sent over the hop: it is congestion.
    fn queued(&mut self, now: Time, to: Port, packet: &mut Packet, _: &mut Context<'_>) {
        if !self.hop.contains(&to) || Spep::of(packet).is_none() {
            return;
        }
        let Some(esp) = packet.esp() else { return };
        let blocks = match self.claims {
            Claims::Received => {
                let key = (packet.ip.source, packet.ip.flow_label, packet.ip.destination);
                self.flows.note(now, &key, esp.sequence).blocks()
            }
            Claims::Everything => everything_before(esp.sequence),
            Claims::Nothing => return,
        };
        Spep { blocks }.renew(packet);
        self.marked += 1;
    }

    fn packet(&mut self, _: Time, _: Option<Port>, _: &mut Packet, _: &mut Context<'_>) -> Verdict {
        Verdict::Forward
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let flows::Counts { new, evicted, expired } = self.flows.counts;
        count("marked", self.marked);
        count("new_flows", new);
        count("evicted_flows", evicted);
        count("expired_flows", expired);
    }

    fn gauges(&self, gauge: &mut dyn FnMut(&'static str, u64)) {
        gauge("flows", self.flows.len() as u64);
    }
}
