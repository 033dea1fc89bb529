//! What comes of a run: the lab's rows, and how far they can be trusted.

use base::Duration;

/// What came of a run on real packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Rows, and what the links did. It has neither digest nor series; its events are the packets
    /// that the links took.
    pub run: lab::Outcome,
    /// How far it can be trusted.
    pub health: Health,
}

/// How well the machine kept up with what it emulated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// Packets that came to links.
    pub packets: u64,
    /// Those that left a link too late.
    pub late: u64,
    /// Those that were lost, but not by a link's model.
    pub lost: u64,
    /// Half of the packets left their link no later than this after their time.
    pub median: Duration,
    /// And 99 % of them no later than this.
    pub p99: Duration,
    /// The longest.
    pub worst: Duration,
    /// From when on a packet is late.
    pub limit: Duration,
    /// Which share of the machine's time a hypervisor took from it during the run, 0 to 1.
    pub steal: f64,
    /// Why the run says nothing about the scenario: the machine was too slow for it.
    pub void: Option<String>,
}

impl Health {
    /// Which share of the packets was late, 0 to 1.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        share(self.late, self.packets)
    }

    /// Which share of the packets was lost beyond what links lose, 0 to 1.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        share(self.lost, self.packets + self.lost)
    }
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}
