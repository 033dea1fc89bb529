//! The encoder at the sending host: tags source packets and sends repair packets.

use super::rates;
use super::{Flow, Settings, SideChannel, codec};
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use wire::{Body, Ecn, Ip, Packet, PathFields, Payload, Place, Repair};

/// Encodes a flow at its sending host. It comes behind the other boxes of that host.
///
/// A block that gets no repair packets is not tagged either.
#[derive(Debug)]
pub struct Encoder {
    flow: Flow,
    settings: Settings,
    side_channel: SideChannel,
    /// The probability that the path corrupts a packet.
    corruption: f64,
    /// The path's corruption as acknowledgments report it, if the encoder follows it.
    reported: Option<rates::Corruption>,
    /// The next place in the encoded stream.
    next: u64,
    /// The source packets of the open block, canonical.
    open: Vec<Packet>,
    /// When the block was opened.
    since: Time,
    /// How many wrong bytes the code of the latest source packet corrects.
    corrects: u8,
}

impl Encoder {
    /// Longer packets are not encoded: their repair packets would exceed IP's limit.
    const LONGEST: u32 = 65_000;
    /// The stream number in the payload of repair packets; no source has it.
    const STREAM: u32 = u32::MAX;

    /// An encoder; the flow's decoder has the same settings and the other end of `side_channel`.
    #[must_use]
    pub fn new(flow: Flow, settings: Settings, side_channel: SideChannel) -> Encoder {
        let open = Vec::with_capacity(usize::from(settings.block));
        Encoder {
            flow,
            settings,
            side_channel,
            corruption: 0.0,
            reported: None,
            next: 0,
            open,
            since: Time::ZERO,
            corrects: 0,
        }
    }

    /// Sets the probability that the path corrupts a packet.
    pub fn set_corruption(&mut self, probability: f64) {
        self.corruption = probability;
    }

    /// Takes that probability from the Cumulative ETEN fields of the flow's acknowledgments
    /// (probabilities only); nodes give each packet the weight `a` in their averages.
    pub fn follow(&mut self, a: f64) {
        self.reported = Some(rates::Corruption::new(a));
    }

    fn listen(&mut self, packet: &Packet) {
        if let Some(reported) = &mut self.reported
            && self.flow.answers(packet)
            && let Some(PathFields::Exact { echoed, .. }) = PathFields::of(packet)
        {
            reported.add(echoed);
            self.corruption = reported.get();
        }
    }

    fn repairs(&self, sources: u8) -> u8 {
        self.settings.strength.repairs(sources, self.corruption)
    }

    /// Closes the open block and returns its repair packets.
    fn close(&mut self, cx: &mut Context<'_>) {
        let sources = self.open.len() as u8;
        let first = self.next - u64::from(sources);
        // It was opened because there was to be one.
        let repairs = self.repairs(sources).clamp(1, u8::MAX - sources);
        let capable = |packet: &Packet| packet.ip.ecn != Ecn::NotCapable;
        let ecn = if self.open.iter().any(capable) { Ecn::Capable } else { Ecn::NotCapable };
        let ip = Ip { ecn, ..Ip::new(self.flow.source, self.flow.destination) };
        let len = codec::symbol_size(&self.open);
        for index in sources..sources + repairs {
            let place = Place { sequence: (self.next % u64::from(Place::MODULUS)) as u32, index };
            let repair = Repair { port: self.flow.port, place, sources, repairs };
            let payload = Payload { stream: Encoder::STREAM, offset: self.next << 17, len };
            let mut packet = Packet { ip, body: Body::Repair(repair), payload, ..Packet::BLANK };
            packet.unparsed.set_corrects(self.corrects);
            cx.send(packet);
            self.next += 1;
        }
        self.side_channel.put(first, core::mem::take(&mut self.open), repairs);
        self.side_channel.count(|counts| {
            counts.sources += u64::from(sources);
            counts.repairs += u64::from(repairs);
        });
    }
}

impl Middlebox for Encoder {
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        if from.is_some() {
            self.listen(packet);
            return Verdict::Forward;
        }
        let codable = packet.payload.len > 0 && packet.len() <= Encoder::LONGEST;
        if !self.flow.carries(packet) || !codable {
            return Verdict::Forward;
        }
        if self.open.is_empty() && self.repairs(self.settings.block) == 0 {
            return Verdict::Forward;
        }
        let sequence = (self.next % u64::from(Place::MODULUS)) as u32;
        let place = Place { sequence, index: self.open.len() as u8 };
        let canonical = codec::canonical(packet);
        self.corrects = packet.unparsed.corrects();
        if place.tag(packet).is_err() {
            // It has so many options that there is no room; it goes without.
            return Verdict::Forward;
        }
        if self.open.is_empty() {
            self.since = now;
        }
        self.open.push(canonical);
        self.next += 1;
        if self.open.len() < usize::from(self.settings.block) {
            return Verdict::Forward;
        }
        // What a box makes leaves before the packet that it sees, so that is sent along.
        cx.send(*packet);
        self.close(cx);
        Verdict::Consume
    }

    fn next_wake(&self) -> Time {
        if self.open.is_empty() { Time::NEVER } else { self.since + self.settings.wait }
    }

    fn wake(&mut self, _now: Time, cx: &mut Context<'_>) {
        self.close(cx);
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.open.iter().for_each(|packet| held(packet.payload));
        self.side_channel.held_payloads(held);
    }
}
