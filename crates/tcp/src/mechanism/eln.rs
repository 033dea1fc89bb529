//! Explicit loss notification: the receiver knows the cause of each hole in its reassembly queue, and a bit
//! in its acknowledgments says that the first one is a corruption (`obanaik2003` §4.2.3).
//!
//! How the receiver learns of the causes (SPEP, or its own link) does not matter here.

mod holes;

use super::{
    AckTiming, Action, Arrival, Hooks, Incoming, Loss, Needs, Rules, Signal, Verdict, View,
};
use crate::indication::{Indication, PeerLosses};
use base::Time;
use holes::Holes;
use serde::{Deserialize, Serialize};
use wire::{Body, CopyId, CorruptionEcho, Flags, Options, Packet, Segment, SeqNumber};

base::settings! {
    /// Retransmits at once what the receiver says was lost to corruption, without a congestion response.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Eln {
        /// Acknowledgments also name the other corrupted holes, one at a time, in an option of 12 bytes; else
        /// only the first hole has a cause.
        pub every_hole: bool,
        /// The receiver's part.
        #[serde(skip_serializing_if = "Receiving::is_initial")]
        receiving: Receiving,
        /// The sender's part: what it has retransmitted, the oldest first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        answered: Vec<Answered>,
        /// The octet after the last one that was sent.
        #[serde(skip_serializing_if = "is_initial")]
        nxt: SeqNumber,
    }
}

impl Eln {
    /// The mechanism that also names the holes behind the first one.
    #[must_use]
    pub fn of_every_hole() -> Eln {
        Eln { every_hole: true, ..Eln::default() }
    }
}

/// What the receiver knows of lost segments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Receiving {
    /// Packets that are missing before the one that arrives now, and the time of that.
    pending: Option<(Time, PeerLosses)>,
    holes: Holes,
    /// Of the holes behind the first, the one to be named next begins here or later.
    next_named: u64,
}

impl Receiving {
    fn is_initial(&self) -> bool {
        *self == Receiving::default()
    }

    /// Names a corrupted hole behind the first one, if there is room.
    fn name_hole(&mut self, view: &View, bytes: u32, segment: &mut Segment) {
        let Some((first, hole)) = self.holes.corrupted_behind_first(self.next_named) else {
            return;
        };
        let mut options = segment.options;
        options.corrupted = Some(CorruptionEcho {
            seq: segment.ack + (hole.start - first) as u32,
            copy: CopyId::NONE,
            len: u16::try_from(hole.end - hole.start).unwrap_or(u16::MAX),
            alone: false,
        });
        let mut room = Options::ROOM;
        if bytes > 0 {
            let stamps = Options { timestamps: segment.options.timestamps, ..Options::default() };
            room = room.min(stamps.len() + view.mss.saturating_sub(bytes) as usize);
        }
        // SACK blocks get what is left, but the first one: it shows what arrived last.
        while options.len() > room {
            let Some(blocks @ 1..) = options.sack.as_slice().len().checked_sub(1) else { return };
            options.sack.truncate(blocks);
        }
        segment.options = options;
        self.next_named = hole.end;
    }
}

fn is_initial(nxt: &SeqNumber) -> bool {
    *nxt == SeqNumber::default()
}

/// A hole whose first segment was retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answered {
    /// Its first octet.
    seq: SeqNumber,
    /// SND.NXT at that time: octets from here on were sent later than the copy.
    nxt: SeqNumber,
    /// Without SACK: the most duplicates to come that segments cause which were sent before the copy.
    earlier: u32,
}

impl Eln {
    /// The most retransmissions whose copies are told apart; beyond, the oldest is forgotten.
    const MOST_ANSWERED: usize = 256;

    /// Both ends with this setting.
    #[must_use]
    pub fn new(every_hole: bool) -> Eln {
        Eln { every_hole, ..Eln::default() }
    }

    /// The action for a report that the segment at `seq` was lost to corruption: one for each lost copy. A report
    /// is about the latest copy if a segment has arrived that was sent after it.
    fn answer(&mut self, view: &View, seq: SeqNumber, segment: &Segment) -> Option<Action> {
        let blocks = segment.options.sack.as_slice();
        if let Some(index) = self.answered.iter().position(|answered| answered.seq == seq) {
            let answered = &mut self.answered[index];
            let is_of_latest = if blocks.is_empty() {
                answered.earlier = answered.earlier.saturating_sub(1);
                answered.earlier == 0
            } else {
                blocks.iter().any(|block| block.end.beyond(answered.nxt) > 0)
            };
            if !is_of_latest {
                return None;
            }
            self.answered.remove(index);
        }
        if self.answered.len() == Eln::MOST_ANSWERED {
            self.answered.remove(0);
        }
        let behind = self.nxt.beyond(seq).max(0).cast_unsigned();
        let earlier = behind.div_ceil(view.mss.max(1)).saturating_sub(1).max(1);
        self.answered.push(Answered { seq, nxt: self.nxt, earlier });
        Some(Action::Lost { seq, copy: CopyId::NONE })
    }
}

impl Rules for Eln {
    const HOOKS: Hooks = Hooks::INDICATION
        .union(Hooks::LOSS)
        .union(Hooks::ARRIVAL)
        .union(Hooks::OUTGOING)
        .union(Hooks::INCOMING);
    // Something has to tell the receiver the causes.
    const NEEDS: Needs = Needs::SENDER.union(Needs::RECEIVER).union(Needs::MIDDLEBOX);

    fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
        if let Indication::PeerLosses(losses) = *indication {
            self.receiving.pending = Some((view.now, losses));
        }
        None
    }

    fn arrival(&mut self, arrival: &Arrival) -> Option<AckTiming> {
        let Receiving { pending, holes, .. } = &mut self.receiving;
        // Packets that were missing before an earlier segment, which filled no hole and left none, are of no interest.
        let losses = pending.take().filter(|&(at, _)| at == arrival.now).map(|(_, losses)| losses);
        holes.on_arrival(arrival, &losses.unwrap_or_default());
        None
    }

    fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        let bytes = packet.payload.len;
        let Body::Tcp(segment) = &mut packet.body else { return };
        let end = segment.seq + bytes + segment.control_len();
        if end.beyond(self.nxt) > 0 || segment.flags.contains(Flags::SYN) {
            self.nxt = end;
        }
        let control = segment.flags & (Flags::ACK | Flags::SYN | Flags::RST);
        if control != Flags::ACK || !self.receiving.holes.has_corrupted() {
            return;
        }
        segment.flags.set(Flags::ELN, self.receiving.holes.is_first_corrupted());
        if self.every_hole {
            self.receiving.name_hole(view, bytes, segment);
        }
    }

    fn incoming(&mut self, view: &View, segment: &Segment) -> Option<Incoming> {
        self.answered.retain(|answered| answered.seq.beyond(segment.ack) >= 0);
        let first = segment.flags.contains(Flags::ELN).then_some(segment.ack);
        let named = segment.options.corrupted.filter(|_| self.every_hole).map(|hole| hole.seq);
        let action =
            [first, named].into_iter().flatten().find_map(|seq| self.answer(view, seq, segment))?;
        Some(Incoming { action: Some(action), ..Incoming::NO_OPINION })
    }

    fn loss(&mut self, _view: &View, loss: &Loss) -> Option<Verdict> {
        (loss.signal == Signal::Notice).then_some(Verdict::Corruption)
    }
}
