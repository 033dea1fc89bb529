//! At the sending host: tags source packets, and sends repair packets.

use super::rates;
use super::{Beside, Flow, Settings, codec};
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use wire::{Body, Ecn, Ip, Packet, PathFields, Payload, Place, Repair};

/// Codes a flow of the host in which it is. Other boxes of that host come before it.
///
/// A block for which no repair packet is worth while is left alone: its packets are not even tagged.
#[derive(Debug)]
pub struct Encoder {
    flow: Flow,
    settings: Settings,
    beside: Beside,
    /// The probability with which the path corrupts a packet.
    corruption: f64,
    /// What acknowledgments tell of the path, if they are to be heard.
    told: Option<rates::Corruption>,
    /// The next place in the encoded stream.
    next: u64,
    /// The source packets of the block that is open, canonical.
    open: Vec<Packet>,
    /// When that was opened.
    since: Time,
    /// How many wrong bytes the latest source packet's own code corrects.
    corrects: u8,
}

impl Encoder {
    /// Longer packets are not coded: their repair packets would be too long for IP.
    const LONGEST: u32 = 65_000;
    /// The stream of which the payload of repair packets is: no source's.
    const STREAM: u32 = u32::MAX;

    /// An encoder for a flow whose decoder has the same settings and the other end of `beside`.
    #[must_use]
    pub fn new(flow: Flow, settings: Settings, beside: Beside) -> Encoder {
        let open = Vec::with_capacity(usize::from(settings.block));
        Encoder {
            flow,
            settings,
            beside,
            corruption: 0.0,
            told: None,
            next: 0,
            open,
            since: Time::ZERO,
            corrects: 0,
        }
    }

    /// Tells the encoder with which probability the path corrupts a packet.
    pub fn set_corruption(&mut self, probability: f64) {
        self.corruption = probability;
    }

    /// Lets the encoder learn that by Cumulative ETEN, from what comes back of the flow, where nodes
    /// weigh a packet with `a` in their averages. It needs probabilities, not levels.
    pub fn follow(&mut self, a: f64) {
        self.told = Some(rates::Corruption::new(a));
    }

    fn listen(&mut self, packet: &Packet) {
        if let Some(told) = &mut self.told
            && self.flow.answers(packet)
            && let Some(PathFields::Exact { echoed, .. }) = PathFields::of(packet)
        {
            told.hear(echoed);
            self.corruption = told.get();
        }
    }

    fn repairs(&self, sources: u8) -> u8 {
        self.settings.strength.repairs(sources, self.corruption)
    }

    /// The repair packets of the block that is open, which ends it.
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
        self.beside.put(first, core::mem::take(&mut self.open), repairs);
        self.beside.count(|counts| {
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
}
