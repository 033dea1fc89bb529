//! A code inside each packet (`bbn8333` §5): every packet of a flow, in the direction of its data,
//! carries redundancy with which every node corrects wrong bytes before it forwards the packet.
//!
//! Links decide which packets are damaged beyond [`wire::UnparsedOptions::corrects`] bytes. The boxes
//! here add the code at the sending host and remove it at the receiving host.

use super::{Flow, rates};
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use wire::{Packet, PathFields, Probability, UnparsedOptions};

/// How many wrong bytes of a packet its code corrects, at most [`PacketStrength::MOST`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PacketStrength {
    /// A fixed number.
    Fixed(u8),
    /// The fewest with which a packet is damaged beyond repair with at most this probability. It
    /// assumes that bytes are wrong independently, at the rate that Cumulative ETEN reports, all on one link of
    /// the path.
    Following(f64),
}

impl PacketStrength {
    /// The strongest code that a packet can announce.
    pub const MOST: u8 = UnparsedOptions::MOST_CORRECTED;
    /// The default target of a code that follows corruption: one loss in a million packets. A loss costs
    /// TCP at least a round trip, four bytes of code almost nothing.
    pub const TARGET: f64 = 1e-6;

    /// The strength for a packet of `len` bytes without its code, at a byte error probability. The search
    /// starts at `near`, which affects only its time.
    fn corrects(self, len: u32, byte_errors: f64, near: u8) -> u8 {
        match self {
            PacketStrength::Fixed(corrects) => corrects.min(PacketStrength::MOST),
            PacketStrength::Following(target) => {
                let enough = |t: u8| beyond(coded_len(len, t), t, byte_errors) <= target;
                let mut corrects = near.min(PacketStrength::MOST);
                while corrects < PacketStrength::MOST && !enough(corrects) {
                    corrects += 1;
                }
                while corrects > 0 && enough(corrects - 1) {
                    corrects -= 1;
                }
                corrects
            }
        }
    }

    /// The strongest code that a packet may get.
    #[must_use]
    pub fn most(self) -> u8 {
        match self {
            PacketStrength::Fixed(corrects) => corrects.min(PacketStrength::MOST),
            PacketStrength::Following(_) => PacketStrength::MOST,
        }
    }
}

/// The length of a packet with its code.
fn coded_len(len: u32, corrects: u8) -> u32 {
    len + Packet::REDUNDANCY * u32::from(corrects)
}

/// The probability that more than `corrects` of `len` bytes are wrong, each with probability `p`.
fn beyond(bytes: u32, corrects: u8, p: f64) -> f64 {
    // Beyond a half nothing is of any use, and below 0 nothing is wrong.
    let p = p.clamp(0.0, 0.5);
    let n = f64::from(bytes);
    let none = libm::log1p(-p) * n;
    if corrects == 0 {
        return -libm::expm1(none);
    }
    // Most of it is in the first terms, of which the sum is exact where it is small.
    let mut exactly = libm::exp(none);
    for wrong in 0..=u32::from(corrects) {
        let wrong = f64::from(wrong);
        exactly *= ((n - wrong) / (wrong + 1.0)).max(0.0) * (p / (1.0 - p));
    }
    let (mut sum, mut wrong) = (0.0, f64::from(corrects) + 1.0);
    while exactly > sum * f64::EPSILON && wrong <= n {
        sum += exactly;
        exactly *= ((n - wrong) / (wrong + 1.0)).max(0.0) * (p / (1.0 - p));
        wrong += 1.0;
    }
    sum.min(1.0)
}

/// Adds codes to the packets of a flow at its sending host, in the direction of the data. It comes
/// behind boxes that change the length of packets.
///
/// Cumulative ETEN reports the survival of packets without a code; upper layers get the survival of
/// packets with their code instead.
#[derive(Debug)]
pub struct PacketEncoder {
    flow: Flow,
    strength: PacketStrength,
    /// The weight that nodes give a packet in their averages.
    a: f64,
    /// The path's corruption, as acknowledgments report it.
    reported: rates::Corruption,
    /// The byte error probability that follows from it.
    damaged: f64,
    /// The loss that the latest acknowledgment reported.
    latest: f64,
    /// The number of successive packets that reported none.
    clean: u64,
    /// The flow's longest packet, without a code: packets on the path are assumed to have this length
    /// and the latest code.
    longest: u32,
    /// The latest code.
    corrects: u8,
}

/// Probabilities of a packet on the path.
struct Course {
    /// Damaged beyond its code.
    lost: f64,
    /// Damaged, as packets that arrive report on average: each counts itself first, with the weight.
    reported: f64,
}

impl PacketEncoder {
    /// The upper bound of the damage: any useful code corrects that.
    const MOST_DAMAGED: f64 = 0.999;

    /// An encoder for a flow; nodes give each packet the weight `a` in the averages that they report, if
    /// they report any. They must be probabilities, not levels.
    #[must_use]
    pub fn new(flow: Flow, strength: PacketStrength, a: f64) -> PacketEncoder {
        let reported = rates::Corruption::new(a);
        PacketEncoder {
            flow,
            strength,
            a,
            reported,
            damaged: 0.0,
            latest: 0.0,
            clean: 0,
            longest: 0,
            corrects: 0,
        }
    }

    /// The byte error probability at which a packet is damaged with the given probability.
    fn byte_errors(&self, damaged: f64) -> f64 {
        match coded_len(self.longest, self.corrects) {
            0 => 0.0,
            bytes => -libm::expm1(libm::log1p(-damaged) / f64::from(bytes)),
        }
    }

    /// The code for a packet of `len` bytes.
    fn choose(&self, len: u32) -> u8 {
        // If none of n packets was damaged, the probability may still be 3 / n (the "rule of three" for
        // the upper end of an interval of 95 %): so at first a code is strong, and a path that is as
        // good as the target wants it has to prove that.
        let damaged = self.damaged.max(3.0 / (self.clean as f64 + 3.0));
        let damaged = damaged.min(PacketEncoder::MOST_DAMAGED);
        self.strength.corrects(len, self.byte_errors(damaged), self.corrects)
    }

    /// The probabilities of packets with the latest code.
    fn course(&self) -> Course {
        let lost = match self.corrects {
            0 => self.damaged,
            corrects => {
                beyond(coded_len(self.longest, corrects), corrects, self.byte_errors(self.damaged))
            }
        };
        // Of those that arrive, so many have been corrected.
        let corrected = (self.damaged - lost) / (1.0 - lost);
        Course { lost, reported: self.a * corrected + (1.0 - self.a) * self.damaged }
    }

    /// Learns the path's corruption from an acknowledgment, and replaces it there by the corruption that
    /// remains after the code.
    fn listen(&mut self, packet: &mut Packet) {
        if !self.flow.answers(packet) {
            return;
        }
        let Some(PathFields::Exact { forward, mut echoed }) = PathFields::of(packet) else {
            return;
        };
        self.reported.add(echoed);
        let loss = 1.0 - echoed.corruption.get();
        // Averages decrease until a packet is damaged again; then the mean is known.
        let before = if loss > self.latest { rates::Corruption::MEMORY.into() } else { u64::MAX };
        (self.latest, self.clean) = (loss, self.clean.saturating_add(1).min(before));
        let mean = self.reported.mean();
        // Iterate to the probability at which packets report this mean; the report increases with
        // it.
        let reported = self.course().reported;
        let damaged = if reported > 0.0 { self.damaged * mean / reported } else { mean };
        self.damaged = damaged.min(PacketEncoder::MOST_DAMAGED);
        let Course { lost, reported } = self.course();
        if self.corrects > 0 && reported > 0.0 {
            let residual = loss * (1.0 - self.a) * lost / reported;
            echoed.corruption = Probability::of(1.0 - residual);
            PathFields::Exact { forward, echoed }.renew(packet);
        }
    }
}

impl Middlebox for PacketEncoder {
    fn packet(
        &mut self,
        _now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        _cx: &mut Context<'_>,
    ) -> Verdict {
        if from.is_some() {
            self.listen(packet);
        } else if self.flow.carries(packet) {
            let len = packet.len();
            self.longest = self.longest.max(len);
            self.corrects = self.choose(len);
            packet.unparsed.set_corrects(self.corrects);
        }
        Verdict::Forward
    }
}

/// Removes the codes of a flow's packets at its receiving host. It comes before boxes that depend on
/// the length of packets.
#[derive(Debug)]
pub struct PacketDecoder {
    flow: Flow,
}

impl PacketDecoder {
    /// A decoder for a flow.
    #[must_use]
    pub fn new(flow: Flow) -> PacketDecoder {
        PacketDecoder { flow }
    }
}

impl Middlebox for PacketDecoder {
    fn packet(
        &mut self,
        _now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        _cx: &mut Context<'_>,
    ) -> Verdict {
        if from.is_some() && self.flow.has_ends(packet) {
            packet.unparsed.set_corrects(0);
        }
        Verdict::Forward
    }
}

#[cfg(test)]
mod tests;
