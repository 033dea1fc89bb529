//! The result of a run: the lab's rows, and how well the machine kept up.

use base::Duration;

/// The result of a run on real packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Rows and link statistics. It has neither digest nor series; its events are the packets that
    /// entered links.
    pub run: lab::Outcome,
    /// How well the machine kept up.
    pub health: Health,
}

/// How well the machine kept up with what it emulated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// Packets that entered links.
    pub packets: u64,
    /// Packets that left a link late.
    pub late: u64,
    /// Packets lost outside the link models.
    pub lost: u64,
    /// The median lateness.
    pub median: Duration,
    /// The 99th percentile of lateness.
    pub p99: Duration,
    /// The largest lateness.
    pub worst: Duration,
    /// The lateness from which a packet counts as late.
    pub limit: Duration,
    /// The share of the machine's time that a hypervisor took during the run (steal time), 0 to 1.
    pub steal: f64,
    /// Why the run is void: the machine was too slow for the scenario.
    pub void: Option<String>,
}

impl Health {
    /// The share of packets that were late, 0 to 1.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        share(self.late, self.packets)
    }

    /// The share of packets that were lost outside the link models, 0 to 1.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        share(self.lost, self.packets + self.lost)
    }
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}
