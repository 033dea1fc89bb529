//! The mobile host's side of MHP (`yavatkar1994`): it tells each base station that it is attached to it,
//! and by which one its connections were served before.

mod connections;
mod hop;
mod unacknowledged;

use crate::mhp::{Attachment, Keys};
use crate::station::Station;
use crate::table::{Settings, Site};
use crate::{Hop as BadHop, Place, Remedy};
use base::settings::{Bytes, Kind, Setting, names};
use base::{Duration, Random, Time};
use connections::Connections;
use core::net::IpAddr;
use hop::Hop;
use host::{Context, FourTuple, LinkEvent, Middlebox, Port, Verdict};
use relay::{Handoff, HopRate, Relays, Teardown};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use tcp::Config;
use tcp::mechanism::Needs;
use unacknowledged::Unacknowledged;
use wire::{Body, Ip, Mobility, MobilityMessage, Outcome, Packet, Payload};

base::settings! {
    /// A mobile host, whose base stations (box `station`) split its connections. It tells each base
    /// station to which it is attached where the connections were before. Until that one has them, the
    /// host sends nothing of them.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Mobile {
        /// The transport of connections on the wireless hop: TCP (MTCP in the publication), or SRP.
        pub hop: HopTransport,
        /// The largest packet of the wireless hop, bytes: segments of SRP fit into it.
        pub mtu: u32 as Kind::at_least(Mobile::LEAST_MTU),
        /// The rate of the hops to base stations, at which SRP sends. With `"measured"`, SRP learns it from
        /// what is delivered.
        pub rate: HopRate,
        /// SRP shares the hops with other traffic: it has a congestion window (RFC 5681), and `rate` is an
        /// upper bound. Else a hop is taken as dedicated to it, and losses do not slow it down.
        pub share: bool,
        /// The most data of a connection over SRP that the host holds in each direction, besides what the
        /// receive window of its TCP takes.
        pub cache: Bytes,
        /// When the end of a stream (FIN) is acknowledged to the application's TCP, if the hop's
        /// transport is SRP: at once (`"spoofed"`), or once the base station has acknowledged it.
        pub semantics: Teardown,
        /// What becomes of the SRP association with the base station after a handoff: it is restored
        /// (`"restored"`), or a new one carries its streams on (`"new"`). The boxes `station` should have the
        /// same setting.
        pub handoff: Handoff,
        /// What the base stations and mobile hosts of a network share: the keys that authenticate
        /// their messages follow from it.
        pub secret: String,
    }
}

/// The transport of connections on the wireless hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HopTransport {
    /// TCP: the host's own connections end at the base station.
    #[default]
    Tcp,
    /// SRP: the host's connections end in the host, and are carried on by streams of an association.
    Srp,
}

impl Setting for HopTransport {
    const KIND: Kind = Kind::Words(names::<HopTransport>);
}

impl Mobile {
    /// The smallest MTU of a hop, bytes.
    const LEAST_MTU: u16 = 96;
    /// What is held as a remedy if the hop's rate or delay is not known.
    const UNKNOWN_CACHE: u64 = 1 << 20;
    /// The most that is held as a remedy, as by the spoofer.
    const MOST_CACHE: u64 = 16 << 20;
    /// A host has usually registered long before it opens a connection. Messages may be lost.
    const LEAD: Duration = Duration::from_secs(10);
}

impl Default for Mobile {
    fn default() -> Mobile {
        Mobile {
            hop: HopTransport::default(),
            mtu: 1500,
            rate: HopRate::default(),
            share: false,
            cache: Bytes(64 << 10),
            semantics: Teardown::default(),
            handoff: Handoff::default(),
            secret: String::new(),
        }
    }
}

impl Settings for Mobile {
    fn runs_tcp(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), &'static str> {
        let is_of_srp = self.share || self.rate != HopRate::Measured;
        match self.hop {
            HopTransport::Tcp if is_of_srp => Err("`rate` and `share` need `hop = \"srp\"`"),
            HopTransport::Tcp if self.handoff == Handoff::New => Err(
                "with `hop = \"tcp\"`, the connection over the hop ends in the host's own TCP, whose sequence \
                 numbers cannot change: `handoff = \"new\"` needs `hop = \"srp\"`, or use `handoff = \"restored\"`",
            ),
            _ => Ok(()),
        }
    }

    /// With both transports, and stations wherever the host is attached. What they hold of a
    /// connection is twice what is in flight over the hop, as SRP has it at most.
    fn remedies(hop: &BadHop<'_>) -> Vec<Remedy> {
        let mtu = hop.mtu.unwrap_or(Mobile::default().mtu);
        if mtu < u32::from(Mobile::LEAST_MTU) {
            return Vec::new();
        }
        let cache =
            hop.in_flight().map(|bytes| bytes.saturating_mul(2).checked_next_power_of_two());
        let cache = cache.map_or(Mobile::UNKNOWN_CACHE, |bytes| bytes.unwrap_or(u64::MAX));
        let cache = Bytes(cache.clamp(Mobile::default().cache.0, Mobile::MOST_CACHE));
        let station = Station { cache, mtu, ..Station::default() };
        let with = |name: &'static str, hop: HopTransport| {
            let mobile = Mobile { hop, mtu, cache, ..Mobile::default() };
            let boxes =
                vec![(Place::Attachments, station.clone().into()), (Place::Host, mobile.into())];
            Remedy { lead: Mobile::LEAD, ..Remedy::new(Some(name), boxes) }
        };
        vec![with("MTCP", HopTransport::Tcp), with("SRP", HopTransport::Srp)]
    }

    fn needs(&self) -> Needs {
        match self.hop {
            HopTransport::Tcp => Needs::HOST_AGENT,
            HopTransport::Srp => Needs::HOST_AGENT | Needs::HOP_TRANSPORT,
        }
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let mut agent = MobileAgent::new(self, site.own, site.tcp, (site.random)());
        if let Some(station) = site.attached {
            agent.on_attached(Time::ZERO, station);
        }
        Box::new(agent)
    }
}

/// The box in the mobile host.
pub struct MobileAgent {
    /// The address by which base stations know the host, and that of the other version of IP.
    name: IpAddr,
    other: Option<IpAddr>,
    keys: Keys,
    attachment: Attachment,
    connections: Connections,
    /// If the hop's transport is SRP.
    hop: Option<Hop>,
    /// Packets of the host that wait for the base station.
    held: VecDeque<Packet>,
    /// Segments that the host has sent while the hop was down.
    unacknowledged: Unacknowledged,
    /// The hop is down: nothing reaches the base station.
    is_down: bool,
    /// Connections whose other ends are to be reset, as this host names them.
    unreset: BTreeSet<[(IpAddr, u16); 2]>,
    /// When the base station is asked again to reset them.
    next_reset: Time,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    attachments: u64,
    resumed: u64,
    lost: u64,
    reset: u64,
    forged: u64,
    dropped: u64,
}

impl MobileAgent {
    /// The most packets that wait for the base station.
    const MOST_HELD: usize = 64;
    /// How often the base station is asked to reset the other ends.
    const RESET_INTERVAL: Duration = Duration::from_millis(500);

    /// The agent of a host with these addresses of IPv4 and of IPv6, one of which may be unspecified, and with these
    /// settings of TCP. Base stations know it by the first that is specified, and have to have one of that version, too.
    /// `random` is for secrets.
    #[must_use]
    pub fn new(settings: &Mobile, own: [IpAddr; 2], tcp: &Config, random: Random) -> MobileAgent {
        let mut specified = own.into_iter().filter(|address| !address.is_unspecified());
        let (name, other) = (specified.next().unwrap_or(own[0]), specified.next());
        let hop = match settings.hop {
            HopTransport::Tcp => None,
            HopTransport::Srp => Some(Hop::new(settings, own, tcp, random)),
        };
        MobileAgent {
            hop,
            name,
            other,
            keys: Keys::new(&settings.secret),
            attachment: Attachment::new(name, other, 0),
            connections: Connections::default(),
            held: VecDeque::new(),
            unacknowledged: Unacknowledged::default(),
            is_down: false,
            unreset: BTreeSet::new(),
            next_reset: Time::NEVER,
            counts: Counts::default(),
        }
    }

    /// Attachments are numbered from `first` on: higher than all numbers that an agent of the host before this one has
    /// used. To be called first.
    pub fn number_from(&mut self, first: u64) {
        self.attachment = Attachment::new(self.name, self.other, first);
    }

    /// If the hop's transport is SRP: from now on, segments carry bytes whose payloads do not continue each other, and
    /// packets of SRP have `overheads` bytes of headers before that of SRP, over IPv4 and over IPv6.
    pub fn gather(&mut self, overheads: [u32; 2]) {
        if let Some(hop) = &mut self.hop {
            hop.gather(overheads);
        }
    }

    /// The address by which base stations know the host.
    #[must_use]
    pub fn name(&self) -> IpAddr {
        self.name
    }

    /// The connections that it carries on by SRP, to be looked at; none if the hop's transport is TCP.
    pub fn relays_mut(&mut self) -> Option<&mut Relays> {
        self.hop.as_mut().map(Hop::relays_mut)
    }

    /// The host is attached to a base station. Of one with an address of the link alone (`fe80::/10`), the agent asks for
    /// the other one first. [`Middlebox::wake`] is to be called at [`Middlebox::next_wake`].
    pub fn on_attached(&mut self, now: Time, station: IpAddr) {
        self.is_down = false;
        self.counts.attachments += 1;
        self.attachment.on_attached(now, station);
        self.unacknowledged.on_attached(now);
        if let Some(hop) = &mut self.hop {
            hop.suspend(now);
        }
    }

    /// The hop is down until the host is attached again. SRP sends nothing meanwhile; what the host's own TCP sends is lost,
    /// but the last segment of each connection is kept and goes again then: its timer has backed off.
    pub fn on_down(&mut self, now: Time) {
        self.is_down = true;
        if let Some(hop) = &mut self.hop {
            hop.suspend(now);
        }
    }

    /// Processes a message of a base station.
    fn on_message(&mut self, now: Time, message: &Mobility, cx: &mut Context<'_>) {
        if !self.keys.verify(self.name, message) {
            self.counts.forged += 1;
            return;
        }
        if let MobilityMessage::Reset { mobile, fixed, is_done: true } = message.message {
            self.unreset.remove(&[mobile, fixed]);
            return;
        }
        match self.attachment.on_message(now, message) {
            Some(Outcome::Complete) => {
                self.counts.resumed += 1;
                self.next_reset = now;
                if let (Some(hop), Some(station)) = (&mut self.hop, self.attachment.station()) {
                    hop.resume(now, station);
                }
            }
            Some(Outcome::Lost) => {
                self.counts.lost += 1;
                self.held.clear();
                self.unacknowledged.clear();
                if let Some(hop) = &mut self.hop {
                    hop.abort(now);
                }
                self.reset_all(cx);
            }
            None => {}
        }
    }

    /// Whether the host's packets can pass: the base station has its connections, or there is none.
    fn can_send(&self) -> bool {
        !self.attachment.is_waiting() && !self.is_down
    }

    /// Lets the packets go that have waited.
    fn release(&mut self, now: Time, cx: &mut Context<'_>) {
        for packet in core::mem::take(&mut self.held) {
            if self.take(now, &packet) == Verdict::Forward {
                cx.pass_on(None, packet);
            }
        }
        for packet in self.unacknowledged.poll(now) {
            cx.pass_on(None, *packet);
        }
    }

    /// Processes a packet of the host's own connections, which need not wait.
    fn take(&mut self, now: Time, packet: &Packet) -> Verdict {
        let station = self.attachment.station();
        match (&mut self.hop, station) {
            (Some(hop), Some(station)) => hop.on_departure(now, packet, station),
            _ => Verdict::Forward,
        }
    }

    /// Resets all connections: their state is lost.
    fn reset_all(&mut self, cx: &mut Context<'_>) {
        for (connection, reset) in self.connections.take_all() {
            self.counts.reset += 1;
            let FourTuple { local, local_port, remote, remote_port } = connection;
            self.unreset.insert([(local, local_port), (remote, remote_port)]);
            cx.send(reset);
        }
    }

    /// Sends the messages that are due.
    fn tell(&mut self, now: Time, cx: &mut Context<'_>) {
        if let Some((station, message)) = self.attachment.poll(now) {
            cx.send(self.message_to(station, message));
        }
        if self.can_send() {
            self.release(now, cx);
        }
        if let Some(hop) = &mut self.hop {
            hop.transmit(now, cx);
        }
        if self.next_reset > now {
            return;
        }
        self.next_reset = Time::NEVER;
        if let Some(station) = self.attachment.station().filter(|_| !self.unreset.is_empty()) {
            for &[mobile, fixed] in &self.unreset {
                let message = MobilityMessage::Reset { mobile, fixed, is_done: false };
                let message = Mobility::new(self.attachment.number(), message);
                cx.send(self.message_to(station, message));
            }
            self.next_reset = now + MobileAgent::RESET_INTERVAL;
        }
    }

    fn message_to(&self, station: IpAddr, message: Mobility) -> Packet {
        let body = Body::Mobility(self.keys.sign(self.name, message));
        Packet { ip: Ip::new(self.name, station), body, ..Packet::BLANK }
    }
}

impl Middlebox for MobileAgent {
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        match &packet.body {
            Body::Mobility(message) if from.is_some() => {
                let message = *message;
                self.on_message(now, &message, cx);
                self.tell(now, cx);
                Verdict::Consume
            }
            Body::Srp(_) if from.is_some() => {
                if let Some(hop) = &mut self.hop {
                    hop.on_srp(now, packet);
                    hop.transmit(now, cx);
                }
                Verdict::Consume
            }
            Body::Tcp(segment) => {
                let segment = *segment;
                let to = FourTuple::of_segment(&packet.ip, &segment);
                match from {
                    Some(_) => {
                        self.connections.on_arrival(&to, &segment);
                        self.unacknowledged.on_arrival(&to, &segment);
                    }
                    None => self.connections.on_departure(&to.reversed(), &segment),
                }
                if from.is_some() {
                    // A base station that does not know the host yet lets segments pass, whose numbers are others: the
                    // host would reset what is being opened.
                    let is_ours = self.hop.as_ref().is_some_and(|hop| hop.carries(&to));
                    return if is_ours { Verdict::Consume } else { Verdict::Forward };
                }
                if !self.attachment.is_waiting() {
                    let verdict = self.take(now, packet);
                    if let (Verdict::Consume, Some(hop)) = (verdict, &mut self.hop) {
                        hop.transmit(now, cx);
                    }
                    if verdict == Verdict::Forward && self.is_down {
                        self.unacknowledged.keep(packet);
                    }
                    return verdict;
                }
                match self.held.len() < MobileAgent::MOST_HELD {
                    true => self.held.push_back(*packet),
                    false => self.counts.dropped += 1,
                }
                Verdict::Consume
            }
            _ => Verdict::Forward,
        }
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.held.iter().for_each(|packet| held(packet.payload));
        self.unacknowledged.payloads().for_each(&mut *held);
        if let Some(hop) = &self.hop {
            hop.held_payloads(held);
        }
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("attachments", self.counts.attachments);
        count("attachments after which transfer resumed", self.counts.resumed);
        count("attachments whose state was lost", self.counts.lost);
        count("connections reset", self.counts.reset);
        count("packets dropped during an attachment", self.counts.dropped);
        count("messages that are not authentic", self.counts.forged);
        if let Some(hop) = &self.hop {
            hop.counts(count);
        }
    }

    fn next_wake(&self) -> Time {
        let hop = self.hop.as_ref().map_or(Time::NEVER, Hop::poll_timeout);
        let unacknowledged =
            if self.can_send() { self.unacknowledged.poll_timeout() } else { Time::NEVER };
        self.attachment.poll_timeout().min(self.next_reset).min(hop).min(unacknowledged)
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        if let Some(hop) = &mut self.hop {
            hop.handle_timeout(now);
        }
        self.tell(now, cx);
    }

    fn link(&mut self, now: Time, _: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        match event {
            LinkEvent::Up { peer } => {
                self.on_attached(now, peer);
                self.tell(now, cx);
            }
            LinkEvent::Down { peer } => {
                self.attachment.on_detached(peer);
                if let Some(hop) = self.hop.as_mut().filter(|_| self.attachment.station().is_none())
                {
                    hop.suspend(now);
                }
            }
            LinkEvent::Corrupted(_)
            | LinkEvent::Corrected(_)
            | LinkEvent::Dropped(_)
            | LinkEvent::Mtu { .. } => {}
        }
    }
}
