//! The decoder at the receiving host: delivers source packets in order and repairs losses.

use super::losses::Losses;
use super::rates;
use super::side_channel::Arrived;
use super::{Flow, Settings, SideChannel};
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use std::collections::BTreeMap;
use wire::{Body, Ecn, Flags, Packet, PathFields, Payload, Place, Repair};

/// Which losses of the encoded stream are signalled to TCP's congestion control, as ECN congestion
/// marks. The others count as corruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signal {
    /// All: required if corruption cannot be distinguished from congestion.
    #[default]
    All,
    /// None: coding hides congestion.
    None,
    /// The estimated share of congestion in the losses of the path.
    Share,
}

/// Decodes a flow at its receiving host. It comes behind the other boxes of that host.
///
/// It delivers source packets in the order of sending. Packets behind a gap wait until the gap's block
/// is repaired or abandoned: after three packets of later
/// blocks have arrived, or after twice the time that a block may stay open.
#[derive(Debug)]
pub struct Decoder {
    flow: Flow,
    settings: Settings,
    signal: Signal,
    side_channel: SideChannel,
    /// The share of congestion in the losses of the path.
    congestion: f64,
    losses: Losses,
    /// Congestion losses not yet signalled by a mark.
    unsignalled: f64,
    current: Current,
    /// What has arrived of the current block and of later ones, by the block's first place.
    blocks: BTreeMap<u64, Arrived>,
    /// Waiting packets, by place and order of arrival.
    held: BTreeMap<(u64, u64), Held>,
    arrivals: u64,
}

/// The block that is being delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    /// Its first place.
    first: u64,
    /// The index of the next source packet.
    due: u8,
    /// The block is abandoned: gaps are skipped.
    abandoned: bool,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    packet: Packet,
    arrived: Time,
    /// Its block and its index there; `None` without a tag.
    within: Option<(u64, u8)>,
}

/// A block is complete, or will not be, once this many packets of later blocks have arrived: packets
/// may be reordered by fewer (RFC 5681 §3.2).
const OVERTAKEN: u32 = 3;

impl Decoder {
    /// A decoder; the flow's encoder has the same settings and the other end of `side_channel`.
    #[must_use]
    pub fn new(
        flow: Flow,
        settings: Settings,
        signal: Signal,
        side_channel: SideChannel,
    ) -> Decoder {
        Decoder {
            flow,
            settings,
            signal,
            side_channel,
            congestion: 1.0,
            losses: Losses::new(),
            unsignalled: 0.0,
            current: Current::default(),
            blocks: BTreeMap::new(),
            held: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// Sets the share of congestion in the losses of the path.
    pub fn set_congestion(&mut self, share: f64) {
        self.congestion = share;
    }

    /// Takes that share from the Cumulative ETEN fields of the flow's packets (probabilities only). The
    /// latest packet counts: with a large weight per packet it reports the most recent losses.
    fn listen(&mut self, packet: &Packet) {
        if self.signal == Signal::Share
            && let Some(PathFields::Exact { forward, .. }) = PathFields::of(packet)
        {
            self.congestion = rates::congestion_share(forward).unwrap_or(self.congestion);
        }
    }

    /// Processes the place of a packet of the encoded stream: counts the losses before it.
    fn count(&mut self, place: u64) {
        let lost = self.losses.arrived(place);
        if lost > 0 {
            self.side_channel.count(|counts| counts.lost += lost);
            self.unsignalled += lost as f64
                * match self.signal {
                    Signal::All => 1.0,
                    Signal::None => 0.0,
                    Signal::Share => self.congestion,
                };
        }
    }

    /// The block that this place belongs to; `None` if it is delivered already.
    fn block(&mut self, whole: u64, index: u8) -> Option<(u64, &mut Arrived)> {
        let first = whole.checked_sub(u64::from(index))?;
        let late = first < self.current.first;
        (!late).then(|| (first, self.blocks.entry(first).or_default()))
    }

    fn take_repair(&mut self, packet: &Packet, repair: &Repair) {
        let index = repair.place.index;
        let Some(place) = self.losses.unwrap(repair.place) else { return };
        self.count(place);
        if packet.ip.ecn == Ecn::Congested {
            self.unsignalled += 1.0;
        }
        if let Some((_, arrived)) = self.block(place, index) {
            arrived.note(index);
            arrived.sources = Some(repair.sources);
        }
    }

    /// Whether a source packet has to wait, and queues it then.
    fn take_source(&mut self, now: Time, packet: &Packet, tag: Place) -> bool {
        let Some(place) = self.losses.unwrap(tag) else { return false };
        self.count(place);
        let side_channel = self.side_channel.clone();
        let Some((first, arrived)) = self.block(place, tag.index) else { return false };
        arrived.source(tag.index, packet, &side_channel);
        self.hold(now, packet, place, Some((first, tag.index)));
        true
    }

    fn hold(&mut self, now: Time, packet: &Packet, place: u64, within: Option<(u64, u8)>) {
        self.arrivals += 1;
        self.held.insert((place, self.arrivals), Held { packet: *packet, arrived: now, within });
    }

    /// Delivers all that can be delivered after an arrival.
    fn advance(&mut self, now: Time, cx: &mut Context<'_>) {
        loop {
            self.deliver_due(cx);
            if !self.is_over() && !self.rebuild(cx) {
                if !self.is_hopeless(now) {
                    return;
                }
                self.current.abandoned = true;
                self.side_channel.count(|counts| counts.abandoned += 1);
                self.deliver_due(cx);
            }
            let Some((&first, _)) = self.blocks.range(self.current.first + 1..).next() else {
                return;
            };
            self.current = Current { first, ..Current::default() };
            self.blocks = self.blocks.split_off(&first);
            self.side_channel.forget_before(first);
        }
    }

    /// Delivers waiting packets that are next in order.
    fn deliver_due(&mut self, cx: &mut Context<'_>) {
        while let Some(entry) = self.held.first_entry() {
            let current = &mut self.current;
            match entry.get().within {
                Some((first, _)) if first > current.first => return,
                Some((first, index)) if first == current.first => {
                    if index > current.due && !current.abandoned {
                        return;
                    }
                    current.due = current.due.max(index + 1);
                }
                // Its block is settled, or it has none: all before it is delivered.
                _ => {}
            }
            let packet = entry.remove().packet;
            self.deliver(packet, cx);
        }
    }

    /// Whether the current block is delivered.
    fn is_over(&self) -> bool {
        let sources = self.blocks.get(&self.current.first).and_then(|arrived| arrived.sources);
        self.current.abandoned || self.current.due >= sources.unwrap_or(self.settings.block)
    }

    /// Repairs and delivers the rest of the current block, if possible.
    fn rebuild(&mut self, cx: &mut Context<'_>) -> bool {
        let Current { first, due, .. } = self.current;
        let Some(arrived) = self.blocks.get(&first) else { return false };
        let Some(sources) =
            arrived.sources.filter(|&sources| arrived.count() >= u32::from(sources))
        else {
            return false;
        };
        let Some(rebuilt) = self.side_channel.rebuild(first, due, arrived) else { return false };
        let missing: Vec<bool> = (due..sources).map(|index| !arrived.has(index)).collect();
        self.side_channel.count(|counts| counts.rebuilt += rebuilt.len() as u64);
        let mut rebuilt = rebuilt.into_iter();
        for (index, missing) in (due..sources).zip(missing) {
            let place = first + u64::from(index);
            let next = if missing {
                rebuilt.next()
            } else {
                let key =
                    self.held.range((place, 0)..=(place, u64::MAX)).next().map(|(key, _)| *key);
                key.and_then(|key| self.held.remove(&key)).map(|held| held.packet)
            };
            if let Some(packet) = next {
                self.deliver(packet, cx);
            }
        }
        self.current.due = sources;
        true
    }

    /// Whether no further packet of the current block is expected.
    fn is_hopeless(&self, now: Time) -> bool {
        let later = self.blocks.range(self.current.first + 1..);
        let later: u32 = later.map(|(_, arrived)| arrived.count()).sum();
        later >= OVERTAKEN || self.next_wake() <= now
    }

    /// Delivers a packet to the host, with a congestion mark if a loss is to be signalled.
    fn deliver(&mut self, mut packet: Packet, cx: &mut Context<'_>) {
        if self.unsignalled >= 1.0 && matches!(packet.ip.ecn, Ecn::Capable | Ecn::Capable1) {
            // One mark is as good as many: TCP answers once per window of data (RFC 3168 §6.1.2).
            packet.ip.ecn = Ecn::Congested;
            self.unsignalled %= 1.0;
            self.side_channel.count(|counts| counts.marked += 1);
        }
        cx.send(packet);
    }
}

/// Whether the order of a packet matters to the receiver.
fn has_sequence(packet: &Packet) -> bool {
    let fin = matches!(&packet.body, Body::Tcp(segment) if segment.flags.contains(Flags::FIN));
    packet.payload.len > 0 || fin
}

impl Middlebox for Decoder {
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        if from.is_none() || !self.flow.has_ends(packet) {
            return Verdict::Forward;
        }
        let kept = match packet.body {
            Body::Repair(repair) if repair.port == self.flow.port => {
                self.take_repair(packet, &repair);
                true
            }
            _ if !self.flow.carries(packet) => return Verdict::Forward,
            _ => {
                self.listen(packet);
                match Place::of(packet) {
                    Some(tag) => self.take_source(now, packet, tag),
                    None if self.held.is_empty() || !has_sequence(packet) => false,
                    None => {
                        // Behind everything that was sent before it, as far as is known.
                        let place = self.losses.next().saturating_sub(1);
                        self.hold(now, packet, place, None);
                        true
                    }
                }
            }
        };
        if !kept {
            return Verdict::Forward;
        }
        self.advance(now, cx);
        Verdict::Consume
    }

    fn next_wake(&self) -> Time {
        let patience = self.settings.wait * 2;
        self.held.first_key_value().map_or(Time::NEVER, |(_, held)| held.arrived + patience)
    }

    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        self.advance(now, cx);
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        // The encoder names those of the side channel.
        self.held.values().for_each(|waiting| held(waiting.packet.payload));
    }
}
