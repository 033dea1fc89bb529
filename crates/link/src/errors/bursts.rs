//! Bursts.

use super::{Damage, Model, Process, Transmission};
use crate::Fate;
use base::{Duration, Random, Time};

/// Runs of damaged packets, whose number is geometric, with exponential gaps between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// From the end of a burst to the start of the next.
    pub gap: Gap,
    /// Damaged packets in a burst, on average; at least 1.
    pub length: f64,
    /// What happens to them.
    pub damage: Damage,
}

/// The mean gap between bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gap {
    /// In time, from the end of the last damaged packet. The burst begins with the packet that is
    /// in transmission at the end of the gap; without one, the burst damages nothing. A link
    /// without a rate never has a packet in transmission.
    Time(Duration),
    /// In undamaged packets, geometric. The share of damaged packets is length / (gap + length).
    Packets(f64),
    /// In undamaged bytes, geometric: the packet with the byte after them begins a burst.
    Bytes(f64),
}

#[derive(Clone, Debug)]
pub(super) struct Runs {
    model: Bursts,
    /// The gap in its unit: when it ends, or what is left of it.
    gap: u64,
    /// Packets that are still to be damaged.
    left: u64,
}

impl Runs {
    fn draw_gap(&mut self, since: Time, random: &mut Random) {
        // Failures before a success of probability 1 / (1 + mean) are `mean` on average.
        self.gap = match self.model.gap {
            Gap::Time(mean) => (since + random.exponential_span(mean)).as_nanos(),
            Gap::Packets(mean) | Gap::Bytes(mean) => random.geometric(1.0 / (1.0 + mean)),
        };
    }

    /// Whether the gap is over with this packet.
    fn begins(&mut self, packet: Transmission, random: &mut Random) -> bool {
        let used = match self.model.gap {
            Gap::Time(_) => {
                if self.gap < packet.began.as_nanos() {
                    // A burst between packets; the next gap is drawn anew.
                    self.draw_gap(packet.began, random);
                }
                return self.gap < packet.ended.as_nanos();
            }
            Gap::Packets(_) => 1,
            Gap::Bytes(_) => u64::from(packet.len),
        };
        let begins = self.gap < used;
        self.gap = self.gap.saturating_sub(used);
        begins
    }
}

impl Model for Bursts {
    type Process = Runs;

    fn start(&self, random: &mut Random) -> Runs {
        let mut runs = Runs { model: *self, gap: 0, left: 0 };
        runs.draw_gap(Time::ZERO, random);
        runs
    }
}

impl Process for Runs {
    fn next(&mut self, packet: Transmission, random: &mut Random) -> Fate {
        if self.left == 0 {
            if !self.begins(packet, random) {
                return Fate::Intact;
            }
            self.left = random.geometric(1.0 / self.model.length).saturating_add(1);
        }
        self.left -= 1;
        if self.left == 0 {
            self.draw_gap(packet.ended, random);
        }
        self.model.damage.into()
    }
}
