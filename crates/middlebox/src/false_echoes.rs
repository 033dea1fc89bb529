//! A misbehaving receiver, which reports every loss as corruption (`bbn8333` §6.2, §7.1).

use crate::attack::{Forgery, OfEach, Target, times};
use crate::eten::Reporter;
use crate::table::{Settings, Site};
use base::settings::Span;
use base::{Random, Time};
use host::{Context, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use wire::{Body, CopyId, CorruptionEcho, Flags, Options, Packet, Segment, SeqNumber};

/// The box at the receiver's node: its acknowledgments report the segments of every gap, one after the
/// other, as corrupted. Genuine reports are kept.
#[derive(Clone, Debug)]
pub struct EchoForger {
    forgery: Forgery,
    /// The number of a copy that did not arrive is guessed. Without nonces no copy is named.
    nonces: bool,
    start: Time,
    stop: Time,
    random: Random,
    /// The end of the data that has arrived.
    nxt: Option<SeqNumber>,
    reported: usize,
}

impl EchoForger {
    /// The receiver of the victim's flow, from `start` to `stop`, with its own random stream.
    #[must_use]
    pub fn new(
        forgery: Forgery,
        nonces: bool,
        (start, stop): (Time, Time),
        random: Random,
    ) -> EchoForger {
        EchoForger { forgery, nonces, start, stop, random, nxt: None, reported: 0 }
    }

    fn lie(&mut self, segment: &mut Segment) {
        let Some(nxt) = self.nxt else { return };
        let blocks = segment.options.sack.as_slice();
        let ends = blocks.iter().map(|block| block.end).filter(|end| nxt.beyond(*end) > 0);
        let holes = 1 + ends.clone().count();
        let mut holes_from = core::iter::once(segment.ack).chain(ends);
        let Some(seq) = holes_from.nth(self.reported % holes) else { return };
        if nxt.beyond(seq) <= 0 {
            return; // Nothing is missing.
        }
        let copy = if self.nonces { self.random.bits() as u32 } else { CopyId::NONE.0 };
        let echo = CorruptionEcho { seq, copy: CopyId(copy), len: 1, alone: false };
        let mut options = Options { corrupted: Some(echo), ..segment.options };
        while options.len() > Options::ROOM {
            let Some(blocks) = options.sack.as_slice().len().checked_sub(1) else { return };
            options.sack.truncate(blocks);
        }
        segment.options = options;
        self.reported = self.reported.wrapping_add(1);
    }
}

impl Middlebox for EchoForger {
    fn packet(
        &mut self,
        now: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if let Some(segment) = self.forgery.data(packet) {
            let end = segment.seq + packet.payload.len;
            if self.nxt.is_none_or(|nxt| end.beyond(nxt) > 0) {
                self.nxt = Some(end);
            }
            return Verdict::Forward;
        }
        let lies = (self.start..self.stop).contains(&now)
            && packet.payload.len == 0
            && self.forgery.acknowledgment(packet).is_some();
        if let Body::Tcp(segment) = &mut packet.body
            && lies
            && segment.flags & (Flags::ACK | Flags::SYN | Flags::RST) == Flags::ACK
            && segment.options.corrupted.is_none()
        {
            self.lie(segment);
        }
        Verdict::Forward
    }
}

base::settings! {
    /// Adds reports of a corruption to the acknowledgments of the node, where it receives flows with
    /// `eten = "forward"`: of every gap, one after the other.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct FalseEchoes {
        /// The names of the flows whose receiver it is; all if the list is empty.
        pub flows: Vec<String>,
        /// Whether it guesses the number of the copy, which the defence `nonce` of the sender checks;
        /// otherwise its reports name none.
        pub nonces: bool,
        /// When it starts; at the start of the run if absent.
        pub start: Option<Span>,
        /// When it stops; at the end of the run if absent.
        pub stop: Option<Span>,
    }
}

impl Settings for FalseEchoes {
    fn flows(&self) -> &[String] {
        &self.flows
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let forgers = site.flows(&self.flows).into_iter().map(|flow| {
            let forgery = Forgery::new(site, flow, Target::Sender, Reporter::SIZE_ICMP);
            let times = times(self.start, self.stop);
            EchoForger::new(forgery, self.nonces, times, (site.random)())
        });
        Box::new(OfEach(forgers.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use core::net::IpAddr;
    use host::Outbox;
    use wire::SackBlock;

    fn forgery() -> Forgery {
        let [source, destination] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        let (attacker, target) = (destination, source);
        Forgery { attacker, source, destination, destination_port: 5001, target, size: 180 }
    }

    /// A receiver of all octets up to 1000.
    fn receiver(nonces: bool) -> EchoForger {
        let random = Seed(1).stream("attack.0.guesses");
        let mut receiver = EchoForger::new(forgery(), nonces, (Time::ZERO, Time::NEVER), random);
        let mut data = Packet::BLANK;
        (data.ip.source, data.ip.destination) = (forgery().source, forgery().destination);
        let segment = Segment { destination_port: 5001, seq: SeqNumber(900), ..Segment::default() };
        data.body = Body::Tcp(segment);
        data.payload.len = 100;
        pass(&mut receiver, data);
        receiver
    }

    fn pass(receiver: &mut EchoForger, mut packet: Packet) -> Packet {
        let mut outbox = Outbox::default();
        let mut cx = outbox.context();
        assert_eq!(receiver.packet(Time::ZERO, None, &mut packet, &mut cx), Verdict::Forward);
        packet
    }

    /// What an acknowledgment with these blocks claims.
    fn claim(receiver: &mut EchoForger, ack: u32, blocks: &[(u32, u32)]) -> Option<CorruptionEcho> {
        let mut packet = Packet::BLANK;
        (packet.ip.source, packet.ip.destination) = (forgery().destination, forgery().source);
        let mut segment = Segment {
            source_port: 5001,
            ack: SeqNumber(ack),
            flags: Flags::ACK,
            ..Segment::default()
        };
        for &(start, end) in blocks {
            segment.options.sack.push(SackBlock { start: SeqNumber(start), end: SeqNumber(end) });
        }
        packet.body = Body::Tcp(segment);
        let Body::Tcp(segment) = pass(receiver, packet).body else { panic!("no segment") };
        segment.options.corrupted
    }

    #[test]
    fn every_hole_is_called_corrupted_in_turn() {
        let mut receiver = receiver(false);
        let blocks = [(800, 1000), (300, 400)];
        let claims: Vec<_> =
            (0..4).map(|_| claim(&mut receiver, 100, &blocks).map(|c| (c.seq.0, c.copy))).collect();
        let [first, second] = [100, 400].map(|seq| Some((seq, CopyId::NONE)));
        assert_eq!(claims, [first, second, first, second]);
    }

    #[test]
    fn where_nothing_is_missing_nothing_is_claimed() {
        assert_eq!(claim(&mut receiver(false), 1000, &[]), None);
    }

    #[test]
    fn nonces_are_guessed_anew_each_time() {
        let mut receiver = receiver(true);
        let copies: std::collections::BTreeSet<_> =
            (0..50).filter_map(|_| claim(&mut receiver, 100, &[]).map(|c| c.copy)).collect();
        assert_eq!(copies.len(), 50);
    }
}
