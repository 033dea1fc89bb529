//! Misbehaving receivers, which report every loss as corruption (`bbn8333` §6.2, §7.1).

use super::Forgery;
use base::{Random, Time};
use host::{Context, Middlebox, Port, Verdict};
use wire::{
    Body, Causes, Code, CopyId, CorruptionEcho, Flags, Options, Packet, PathFields, PathForm,
    Probability, Segment, SeqNumber,
};

/// The box at the receiver's node: its acknowledgments report the segments of every gap, one after the
/// other, as corrupted. Genuine reports are kept.
#[derive(Clone, Debug)]
pub struct FalseEchoes {
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

impl FalseEchoes {
    /// The receiver of the victim's flow, from `start` to `stop`, with its own random stream.
    #[must_use]
    pub fn new(
        forgery: Forgery,
        nonces: bool,
        (start, stop): (Time, Time),
        random: Random,
    ) -> FalseEchoes {
        FalseEchoes { forgery, nonces, start, stop, random, nxt: None, reported: 0 }
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

impl Middlebox for FalseEchoes {
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

/// The box at the receiver's node: replaces the path fields that its segments echo.
#[derive(Clone, Copy, Debug)]
pub struct FalseFields {
    forgery: Forgery,
    loss: Causes<f64>,
    start: Time,
    stop: Time,
}

impl FalseFields {
    /// The receiver of the victim's flow, which reports these loss probabilities from `start` to `stop`.
    #[must_use]
    pub fn new(forgery: Forgery, loss: Causes<f64>, (start, stop): (Time, Time)) -> FalseFields {
        FalseFields { forgery, loss, start, stop }
    }
}

impl Middlebox for FalseFields {
    fn packet(
        &mut self,
        now: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if !(self.start..self.stop).contains(&now) || self.forgery.acknowledgment(packet).is_none()
        {
            return Verdict::Forward;
        }
        let lie = match PathFields::of(packet) {
            Some(PathFields::Exact { forward, .. }) => {
                let echoed = self.loss.map(|loss| Probability::of(1.0 - loss));
                PathFields::Exact { forward, echoed }
            }
            Some(PathFields::Coded { forward, .. }) => {
                let echoed = self.loss.map(|loss| Code::level(PathForm::Levels.level(loss)));
                PathFields::Coded { forward, echoed }
            }
            None => return Verdict::Forward,
        };
        lie.renew(packet);
        Verdict::Forward
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
    fn receiver(nonces: bool) -> FalseEchoes {
        let random = Seed(1).stream("attack.0.guesses");
        let mut receiver = FalseEchoes::new(forgery(), nonces, (Time::ZERO, Time::NEVER), random);
        let mut data = Packet::BLANK;
        (data.ip.source, data.ip.destination) = (forgery().source, forgery().destination);
        let segment = Segment { destination_port: 5001, seq: SeqNumber(900), ..Segment::default() };
        data.body = Body::Tcp(segment);
        data.payload.len = 100;
        pass(&mut receiver, data);
        receiver
    }

    fn pass(receiver: &mut FalseEchoes, mut packet: Packet) -> Packet {
        let mut outbox = Outbox::default();
        let mut cx = outbox.context();
        assert_eq!(receiver.packet(Time::ZERO, None, &mut packet, &mut cx), Verdict::Forward);
        packet
    }

    /// What an acknowledgment with these blocks claims.
    fn claim(
        receiver: &mut FalseEchoes,
        ack: u32,
        blocks: &[(u32, u32)],
    ) -> Option<CorruptionEcho> {
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
    fn what_is_echoed_of_the_path_is_the_claim_and_the_rest_stays() {
        let claim = Causes { corruption: 1.0, congestion: 0.25 };
        let mut receiver = FalseFields::new(forgery(), claim, (Time::ZERO, Time::NEVER));
        let mut packet = Packet::BLANK;
        (packet.ip.source, packet.ip.destination) = (forgery().destination, forgery().source);
        packet.body = Body::Tcp(Segment { source_port: 5001, ..Segment::default() });
        let forward = Causes { corruption: Probability::of(0.5), congestion: Probability::of(0.9) };
        PathFields::Exact { forward, echoed: Causes::SURVIVES }.put(false, &mut packet.unparsed);
        receiver.packet(Time::ZERO, None, &mut packet, &mut Outbox::default().context());
        let [corruption, congestion] = [0.0, 0.75].map(Probability::of);
        let echoed = Causes { corruption, congestion };
        assert_eq!(PathFields::of(&packet), Some(PathFields::Exact { forward, echoed }));
    }

    #[test]
    fn nonces_are_guessed_anew_each_time() {
        let mut receiver = receiver(true);
        let copies: std::collections::BTreeSet<_> =
            (0..50).filter_map(|_| claim(&mut receiver, 100, &[]).map(|c| c.copy)).collect();
        assert_eq!(copies.len(), 50);
    }
}
