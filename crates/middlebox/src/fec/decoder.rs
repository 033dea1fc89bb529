//! At the receiving host: puts source packets in order, and rebuilds what was lost.

use super::beside::Come;
use super::losses::Losses;
use super::rates;
use super::{Beside, Flow, Settings};
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use std::collections::BTreeMap;
use wire::{Body, Ecn, Flags, Packet, PathFields, Place, Repair};

/// Which losses in the encoded stream TCP's congestion control hears of, as a mark that congestion was
/// experienced. The rest is taken for corruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signal {
    /// All: whoever cannot tell corruption from congestion must do that.
    #[default]
    All,
    /// None: coding hides congestion.
    None,
    /// As many as congestion caused of those on the path, as far as that is known.
    Share,
}

/// Decodes a flow of the host in which it is. Other boxes of that host come before it.
///
/// It delivers source packets in the order in which they were sent: what comes behind a gap waits
/// until the block of the gap is rebuilt or given up. It is given up when three packets of later
/// blocks have come, or after twice the time that a block may stay open.
#[derive(Debug)]
pub struct Decoder {
    flow: Flow,
    settings: Settings,
    signal: Signal,
    beside: Beside,
    /// The share of losses that congestion causes on the path.
    congestion: f64,
    losses: Losses,
    /// Losses to congestion that no mark has told of.
    untold: f64,
    current: Current,
    /// What has come of the current block and of later ones, by the place where they start.
    blocks: BTreeMap<u64, Come>,
    /// What waits, by place and order of arrival.
    held: BTreeMap<(u64, u64), Held>,
    arrivals: u64,
}

/// The block whose packets are delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    /// The place where it starts.
    first: u64,
    /// The index of the source packet that is due.
    due: u8,
    /// Gaps in it are passed over.
    given_up: bool,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    packet: Packet,
    arrived: Time,
    /// Of which block it is, and its index there; `None` without a tag.
    within: Option<(u64, u8)>,
}

/// So many packets of later blocks show that no more is to come of a block: some may have overtaken
/// it, as in the order of TCP (RFC 5681 §3.2).
const OVERTAKEN: u32 = 3;

impl Decoder {
    /// A decoder for a flow whose encoder has the same settings and the other end of `beside`.
    #[must_use]
    pub fn new(flow: Flow, settings: Settings, signal: Signal, beside: Beside) -> Decoder {
        Decoder {
            flow,
            settings,
            signal,
            beside,
            congestion: 1.0,
            losses: Losses::new(),
            untold: 0.0,
            current: Current::default(),
            blocks: BTreeMap::new(),
            held: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// Tells the decoder which share of the losses on the path congestion causes.
    pub fn set_congestion(&mut self, share: f64) {
        self.congestion = share;
    }

    /// Packets of the flow may tell that by Cumulative ETEN, in probabilities. What the latest tells
    /// counts: it is of the losses that have just been, if nodes forget soon.
    fn listen(&mut self, packet: &Packet) {
        if self.signal == Signal::Share
            && let Some(PathFields::Exact { forward, .. }) = PathFields::of(packet)
        {
            self.congestion = rates::congestion_share(forward).unwrap_or(self.congestion);
        }
    }

    /// A packet of the encoded stream has come: what is missing before it is seen.
    fn count(&mut self, place: u64) {
        let lost = self.losses.arrived(place);
        if lost > 0 {
            self.beside.count(|counts| counts.lost += lost);
            self.untold += lost as f64
                * match self.signal {
                    Signal::All => 1.0,
                    Signal::None => 0.0,
                    Signal::Share => self.congestion,
                };
        }
    }

    /// What has come of the block in which this place is; `None` if that is settled.
    fn block(&mut self, whole: u64, index: u8) -> Option<(u64, &mut Come)> {
        let first = whole.checked_sub(u64::from(index))?;
        let late = first < self.current.first;
        (!late).then(|| (first, self.blocks.entry(first).or_default()))
    }

    fn take_repair(&mut self, packet: &Packet, repair: &Repair) {
        let index = repair.place.index;
        let Some(place) = self.losses.unwrap(repair.place) else { return };
        self.count(place);
        if packet.ip.ecn == Ecn::Congested {
            self.untold += 1.0;
        }
        if let Some((_, come)) = self.block(place, index) {
            come.note(index);
            come.sources = Some(repair.sources);
        }
    }

    /// Whether a source packet waits for its turn; it has if nothing was said.
    fn take_source(&mut self, now: Time, packet: &Packet, tag: Place) -> bool {
        let Some(place) = self.losses.unwrap(tag) else { return false };
        self.count(place);
        let beside = self.beside.clone();
        let Some((first, come)) = self.block(place, tag.index) else { return false };
        come.source(tag.index, packet, &beside);
        self.hold(now, packet, place, Some((first, tag.index)));
        true
    }

    fn hold(&mut self, now: Time, packet: &Packet, place: u64, within: Option<(u64, u8)>) {
        self.arrivals += 1;
        self.held.insert((place, self.arrivals), Held { packet: *packet, arrived: now, within });
    }

    /// Delivers what can be, having heard something new.
    fn advance(&mut self, now: Time, cx: &mut Context<'_>) {
        loop {
            self.deliver_due(cx);
            if !self.is_over() && !self.rebuild(cx) {
                if !self.is_hopeless(now) {
                    return;
                }
                self.current.given_up = true;
                self.beside.count(|counts| counts.given_up += 1);
                self.deliver_due(cx);
            }
            let Some((&first, _)) = self.blocks.range(self.current.first + 1..).next() else {
                return;
            };
            self.current = Current { first, ..Current::default() };
            self.blocks = self.blocks.split_off(&first);
            self.beside.forget_before(first);
        }
    }

    /// Delivers what waits for nothing.
    fn deliver_due(&mut self, cx: &mut Context<'_>) {
        while let Some(entry) = self.held.first_entry() {
            let current = &mut self.current;
            match entry.get().within {
                Some((first, _)) if first > current.first => return,
                Some((first, index)) if first == current.first => {
                    if index > current.due && !current.given_up {
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

    /// Whether no more is to be delivered of the current block.
    fn is_over(&self) -> bool {
        let told = self.blocks.get(&self.current.first).and_then(|come| come.sources);
        self.current.given_up || self.current.due >= told.unwrap_or(self.settings.block)
    }

    /// Delivers all that is left of the current block, if that is possible.
    fn rebuild(&mut self, cx: &mut Context<'_>) -> bool {
        let Current { first, due, .. } = self.current;
        let Some(come) = self.blocks.get(&first) else { return false };
        let Some(sources) = come.sources.filter(|&sources| come.count() >= u32::from(sources))
        else {
            return false;
        };
        let Some(rebuilt) = self.beside.rebuild(first, due, come) else { return false };
        let missing: Vec<bool> = (due..sources).map(|index| !come.has(index)).collect();
        self.beside.count(|counts| counts.rebuilt += rebuilt.len() as u64);
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

    /// Whether no more is to be expected of the current block.
    fn is_hopeless(&self, now: Time) -> bool {
        let later = self.blocks.range(self.current.first + 1..);
        let later: u32 = later.map(|(_, come)| come.count()).sum();
        later >= OVERTAKEN || self.next_wake() <= now
    }

    /// Hands a packet to the host. If congestion is to be told of, it tells.
    fn deliver(&mut self, mut packet: Packet, cx: &mut Context<'_>) {
        if self.untold >= 1.0 && matches!(packet.ip.ecn, Ecn::Capable | Ecn::Capable1) {
            // One mark is as good as many: TCP answers once per window of data (RFC 3168 §6.1.2).
            packet.ip.ecn = Ecn::Congested;
            self.untold %= 1.0;
            self.beside.count(|counts| counts.marked += 1);
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
}
