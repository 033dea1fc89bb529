//! Codes that are contained in packets (`bbn8333` §5): each packet of a flow, in the direction of its
//! data, carries redundancy, by which every node that it comes to corrects wrong bytes before it
//! forwards it.
//!
//! The links themselves count wrong bytes, as many as [`wire::UnparsedOptions::corrects`] says are none. The boxes here
//! give packets their codes at the sending host and take them off at the receiving one.

use super::{Flow, rates};
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use wire::{Packet, PathFields, Probability, UnparsedOptions};

/// How many wrong bytes in a packet its code corrects, at most [`PacketStrength::MOST`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PacketStrength {
    /// So many.
    Fixed(u8),
    /// The fewest with which a packet is damaged beyond them with no greater probability than this, as
    /// far as that is known, if bytes are wrong independently and one link of the path does all that
    /// Cumulative ETEN tells of the path.
    Following(f64),
}

impl PacketStrength {
    /// The strongest code, which a packet has room to tell of.
    pub const MOST: u8 = UnparsedOptions::MOST_CORRECTED;
    /// What a strength that follows corruption keeps to, unless something else is said: of a million
    /// packets, one is lost. A loss costs TCP a round trip at least, four bytes cost next to nothing.
    pub const TARGET: f64 = 1e-6;

    /// The strength for a packet of so many bytes without its code, where bytes are wrong with a
    /// probability. It is looked for from `near` on, which changes only how long that takes.
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

/// The probability that of so many bytes, each of which is wrong with probability `p`, more than
/// `corrects` are.
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

/// Gives the packets of a flow of the host in which it is codes of their own, in the direction of the
/// flow's data. Other boxes of that host that change the length of packets come before it.
///
/// Where Cumulative ETEN tells of the path, it tells how packets without a code would survive. Upper
/// layers are told, in its place, how packets survive with theirs.
#[derive(Debug)]
pub struct PacketEncoder {
    flow: Flow,
    strength: PacketStrength,
    /// How heavily nodes weigh a packet in their averages.
    a: f64,
    /// What acknowledgments tell of the path.
    told: rates::Corruption,
    /// The probability that bytes of a packet are wrong, as follows from that.
    damaged: f64,
    /// The loss that the latest acknowledgment told of.
    latest: f64,
    /// So many packets told of none, as far as that is sure.
    clean: u64,
    /// The flow's longest packet, without a code: packets on the path are taken to be as long, with
    /// the latest code.
    longest: u32,
    /// The latest code.
    corrects: u8,
}

/// What becomes of packets on a path, by their probabilities.
struct Course {
    /// Of being damaged beyond their code.
    lost: f64,
    /// Of being damaged, as those that arrive tell on average: each counts itself first, with weight.
    told: f64,
}

impl PacketEncoder {
    /// More is never taken to be damaged than this: of codes that are of use, all correct that.
    const MOST_DAMAGED: f64 = 0.999;

    /// An encoder for a flow, where nodes weigh a packet with `a` in the averages that they tell, if they
    /// tell any. They must be probabilities, not levels.
    #[must_use]
    pub fn new(flow: Flow, strength: PacketStrength, a: f64) -> PacketEncoder {
        let told = rates::Corruption::new(a);
        PacketEncoder {
            flow,
            strength,
            a,
            told,
            damaged: 0.0,
            latest: 0.0,
            clean: 0,
            longest: 0,
            corrects: 0,
        }
    }

    /// The probability that a byte is wrong, if that is the probability that some of a packet are.
    fn byte_errors(&self, damaged: f64) -> f64 {
        match coded_len(self.longest, self.corrects) {
            0 => 0.0,
            bytes => -libm::expm1(libm::log1p(-damaged) / f64::from(bytes)),
        }
    }

    /// The code for a packet of so many bytes.
    fn choose(&self, len: u32) -> u8 {
        // If none of n packets was damaged, the probability may still be 3 / n (the "rule of three" for
        // the upper end of an interval of 95 %): so at first a code is strong, and a path that is as
        // good as the target wants it has to prove that.
        let damaged = self.damaged.max(3.0 / (self.clean as f64 + 3.0));
        let damaged = damaged.min(PacketEncoder::MOST_DAMAGED);
        self.strength.corrects(len, self.byte_errors(damaged), self.corrects)
    }

    /// What becomes of packets with the latest code.
    fn course(&self) -> Course {
        let lost = match self.corrects {
            0 => self.damaged,
            corrects => {
                beyond(coded_len(self.longest, corrects), corrects, self.byte_errors(self.damaged))
            }
        };
        // Of those that arrive, so many have been corrected.
        let corrected = (self.damaged - lost) / (1.0 - lost);
        Course { lost, told: self.a * corrected + (1.0 - self.a) * self.damaged }
    }

    /// What an acknowledgment tells of the path's corruption is learnt, and made what it would be if all
    /// that the code corrects were no corruption.
    fn listen(&mut self, packet: &mut Packet) {
        if !self.flow.answers(packet) {
            return;
        }
        let Some(PathFields::Exact { forward, mut echoed }) = PathFields::of(packet) else {
            return;
        };
        self.told.hear(echoed);
        let loss = 1.0 - echoed.corruption.get();
        // Averages come down until something is damaged again. Of that, the mean is known then.
        let before = if loss > self.latest { rates::Corruption::MEMORY.into() } else { u64::MAX };
        (self.latest, self.clean) = (loss, self.clean.saturating_add(1).min(before));
        let mean = self.told.mean();
        // Step by step to the only probability of which packets tell that on average: what they tell
        // increases with it.
        let told = self.course().told;
        let damaged = if told > 0.0 { self.damaged * mean / told } else { mean };
        self.damaged = damaged.min(PacketEncoder::MOST_DAMAGED);
        let Course { lost, told } = self.course();
        if self.corrects > 0 && told > 0.0 {
            let residual = loss * (1.0 - self.a) * lost / told;
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

/// Takes the codes off the packets of a flow that come to the host in which it is. It comes before boxes
/// to which the length of packets matters.
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
