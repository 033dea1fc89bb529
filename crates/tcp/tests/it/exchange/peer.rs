//! What lies between a connection and the network at one end: a receiver's habits that a sender
//! must survive, made by changing what arrives and what is sent.

use crate::exchange::cases::Habits;
use base::{Duration, Random, Time};
use wire::{Body, Flags, Packet, SackBlock, Segment, SeqNumber};

/// One end's habits, and what they have come to so far. Sequence numbers are relative to the other
/// end's SYN.
pub(crate) struct Peer {
    habits: Habits,
    /// The other end's initial sequence number.
    irs: SeqNumber,
    /// Reported by SACK, and discarded.
    discarded: Vec<(u32, u32)>,
    /// Nothing from here on is accepted.
    edge: Option<u32>,
    /// The window field, if it were not for that.
    window: u16,
    /// Pure ACKs since the last that was sent.
    held: u32,
    waiting: Option<Waiting>,
    /// The last segment that was sent, as if it were an ACK after it.
    last: Option<Segment>,
}

/// A pure ACK that is held back for more to be acknowledged.
#[derive(Clone, Copy)]
struct Waiting {
    leaves: Time,
    /// Its place in flight, unless it is lost.
    key: Option<(Time, u64)>,
}

/// What becomes of a segment that arrives.
pub(crate) enum Accepted {
    Whole,
    Changed,
    /// Nothing of it is accepted; it is answered by an ACK.
    Refused(Box<Packet>),
    Discarded,
}

impl Peer {
    pub(crate) fn new(habits: Habits, irs: SeqNumber) -> Peer {
        Peer {
            habits,
            irs,
            discarded: Vec::new(),
            edge: None,
            window: 0,
            held: 0,
            waiting: None,
            last: None,
        }
    }

    /// A segment is about to be sent, with windows shifted by `shift`. Says whether it was changed.
    pub(crate) fn send(&mut self, packet: &mut Packet, shift: u8, chance: &mut Random) -> bool {
        let payload = packet.payload.len;
        let Some(segment) = packet.tcp_mut() else { return false };
        let end = segment.seq + (payload + segment.control_len());
        if !segment.flags.contains(Flags::ACK) || segment.flags.intersects(Flags::SYN | Flags::RST)
        {
            return false;
        }
        let ack = segment.ack - self.irs;
        self.edge = None;
        self.window = segment.window;
        let mut changed = false;
        if chance.chance(self.habits.shrinks) {
            let share = if chance.chance(0.3) { 0.0 } else { chance.uniform() };
            segment.window = (f64::from(segment.window) * share) as u16;
            self.edge = Some(ack + (u32::from(segment.window) << shift));
            changed = true;
        }
        // All at once, as a host short of memory does it.
        if !self.discarded.is_empty() && chance.chance(0.2) {
            self.discarded.clear();
            changed = true;
        }
        self.discarded.retain(|&(start, _)| start > ack);
        for &(start, end) in self.discarded.iter().filter(|_| payload == 0) {
            let block = SackBlock { start: self.irs + start, end: self.irs + end };
            if segment.options.len() + 8 <= 36 {
                segment.options.sack.push(block);
            }
        }
        // An ACK that follows is one of a later sequence number.
        let nxt =
            self.last.map_or(end, |last| if last.seq.beyond(end) > 0 { last.seq } else { end });
        self.last = Some(Segment { seq: nxt, ..*segment });
        changed
    }

    /// A segment arrives: how much of it does the connection get?
    pub(crate) fn accept(
        &mut self,
        packet: &mut Packet,
        sack: bool,
        chance: &mut Random,
    ) -> Accepted {
        let len = packet.payload.len;
        let (Some(last), Body::Tcp(segment)) = (self.last, &mut packet.body) else {
            return Accepted::Whole;
        };
        if len == 0 || segment.flags.contains(Flags::SYN) {
            return Accepted::Whole;
        }
        let (start, ack) = (segment.seq - self.irs, last.ack - self.irs);
        let end = start + len;
        self.discarded.retain(|&(from, to)| end <= from || to <= start);
        if sack && start > ack && chance.chance(self.habits.reneges) {
            self.discarded.push((start, end));
            return Accepted::Discarded;
        }
        let mut keep = len;
        if chance.chance(self.habits.truncates) {
            keep = 1 + (chance.bits() % u64::from(len)) as u32;
        }
        if let Some(edge) = self.edge {
            keep = keep.min(edge.saturating_sub(start));
        }
        if keep == 0 {
            let answer = self.answer(last);
            if chance.chance(0.5) {
                self.edge = None;
                self.last = Some(Segment { window: self.window, ..last });
            }
            return Accepted::Refused(Box::new(answer));
        }
        if keep == len {
            return Accepted::Whole;
        }
        segment.flags -= Flags::FIN | Flags::PSH;
        packet.payload = packet.payload.take(keep);
        Accepted::Changed
    }

    /// An ACK that says once more what the last segment said.
    fn answer(&self, last: Segment) -> Packet {
        let mut packet = Packet::BLANK;
        let answer = packet.make_tcp();
        *answer = Segment { flags: Flags::ACK, ..Segment::default() };
        (answer.source_port, answer.destination_port) = (last.source_port, last.destination_port);
        (answer.seq, answer.ack, answer.window) = (last.seq, last.ack, last.window);
        answer.options.timestamps = last.options.timestamps;
        packet
    }

    /// When a segment that is made now leaves, and which one it replaces: a pure ACK waits for the
    /// next, but not for long.
    pub(crate) fn leaves(&mut self, now: Time, packet: &Packet) -> (Time, Option<(Time, u64)>) {
        let (Some((acks, millis)), Body::Tcp(segment)) = (self.habits.stretch, &packet.body) else {
            return (now, None);
        };
        let waiting = self.waiting.take().filter(|waiting| waiting.leaves > now);
        let replaced = waiting.and_then(|waiting| waiting.key);
        self.held += 1;
        if packet.payload.len > 0 || segment.flags != Flags::ACK || self.held >= acks {
            self.held = 0;
            return (now, replaced);
        }
        let delay = Duration::from_millis(millis);
        let leaves = waiting.map_or(now + delay, |waiting| waiting.leaves);
        self.waiting = Some(Waiting { leaves, key: None });
        (leaves, replaced)
    }

    /// Notes that the segment that [`Peer::leaves`] decided on last is in flight.
    pub(crate) fn left(&mut self, key: (Time, u64)) {
        if let Some(waiting) = &mut self.waiting {
            waiting.key = Some(key);
        }
    }

    /// The time of good manners has come; stretch ACKs are none against them.
    pub(crate) fn behave(&mut self) {
        self.habits = Habits { stretch: self.habits.stretch, ..Habits::default() };
        self.edge = None;
        self.discarded.clear();
    }
}
