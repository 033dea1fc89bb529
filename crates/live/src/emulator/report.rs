//! What an emulator did, and whether its run is worth anything.

use base::{Duration, Histogram, Quantiles};
use host::DropReason;
use link::Statistics;

/// From what on a run is void.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// A packet is late if it leaves more than this after its time.
    pub lateness: Duration,
    /// The share of a direction's packets that may be late, or lost without the model having said
    /// so.
    pub share: f64,
}

impl Default for Limits {
    /// 1 % more than 1 ms late.
    fn default() -> Limits {
        Limits { lateness: Duration::from_millis(1), share: 0.01 }
    }
}

/// What happened to the packets of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionReport {
    /// The node where it begins.
    pub from: usize,
    /// The node where it ends.
    pub to: usize,
    /// Packets that were read, and so entered the link or met a full queue; where nodes move, by the
    /// link on their route, not by the device.
    pub read: u64,
    /// Packets that boxes at its start sent by it.
    pub injected: u64,
    /// Packets that were written, copies included.
    pub written: u64,
    /// What the model did.
    pub link: Statistics,
    /// The times from the acceptance of packets to the beginning of their transmission, nanoseconds.
    pub queue_delays: Option<Quantiles>,
    /// Packets that were still on their way in the end.
    pub unfinished: u64,
    /// Corrupted packets that were not forwarded, but indicated to the node's boxes.
    pub reported: u64,
    /// Reports of its driver that no program took ([`Direction::reports_to`](super::Direction)).
    pub untold: u64,
    /// Corrupted packets that the kernel did not take: a version of IP that there is not.
    pub refused: u64,
    /// Beyond the model: packets that the kernel dropped at the devices of its
    /// ends, mostly because they were not read in time.
    pub kernel_dropped: u64,
    /// Beyond the model: reads that failed, and writes of undamaged packets.
    pub failed: u64,
    /// Beyond the model: packets that were written later than [`Limits::lateness`] allows.
    pub late: u64,
    /// How much later than their time packets were written, in nanoseconds.
    pub lateness: Histogram,
}

impl DirectionReport {
    /// Packets that entered the link or met a full queue.
    #[must_use]
    pub fn entered(&self) -> u64 {
        self.read + self.injected
    }

    /// The share of packets that were late, or lost beyond the model.
    #[must_use]
    pub fn share_beyond_model(&self) -> f64 {
        let lost = self.kernel_dropped + self.failed;
        (lost + self.late) as f64 / (self.entered() + lost).max(1) as f64
    }
}

/// What an emulator did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// By direction: 2 i is link i's forward, 2 i + 1 its backward direction.
    pub directions: Vec<DirectionReport>,
    /// The limits in force.
    pub limits: Limits,
    /// Packets that boxes sent.
    pub injected: u64,
    /// Packets that no route led on, where nodes move.
    pub unroutable: u64,
    /// Packets that were dropped because boxes held more bytes than there is memory for (1 GiB), or
    /// sent bytes that they had not held: the run is void if there are any.
    pub without_bytes: u64,
    /// Packets that the boxes of a node dropped, by node and reason.
    pub box_drops: Vec<(usize, DropReason, u64)>,
    /// What boxes counted, by node and name.
    pub box_counts: Vec<(usize, &'static str, u64)>,
    /// How long it ran.
    pub span: Duration,
    /// How much of that its thread used a processor.
    pub busy: Duration,
    /// How long its thread waited for a processor that others used.
    pub waited: Duration,
    /// How long a hypervisor kept the machine's processors, all together, from working.
    pub stolen: Duration,
    /// Whether its thread had real-time priority.
    pub realtime: bool,
}

/// Whether a run says something of the model, or only of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It kept the limits.
    Valid,
    /// It did not, for this reason.
    Void(String),
}

impl Report {
    /// What [`Report::without_bytes`] means.
    #[must_use]
    pub fn about_bytes(&self) -> String {
        let packets = self.without_bytes;
        format!("{packets} packets of boxes were dropped: there was no memory for their bytes")
    }

    /// The worst direction, if the run is void because of it.
    #[must_use]
    pub fn void_by(&self) -> Option<&DirectionReport> {
        let worst = self
            .directions
            .iter()
            .max_by(|a, b| a.share_beyond_model().total_cmp(&b.share_beyond_model()));
        worst.filter(|worst| worst.share_beyond_model() > self.limits.share)
    }

    /// Judges the run by its worst direction.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.without_bytes > 0 {
            return Verdict::Void(self.about_bytes());
        }
        let Some(worst) = self.void_by() else { return Verdict::Valid };
        Verdict::Void(format!(
            "from node {} to node {}, {:.1} % of {} packets were late or lost beyond the model: {} \
             later than {} ms, {} dropped by the kernel, {} failed",
            worst.from,
            worst.to,
            100.0 * worst.share_beyond_model(),
            worst.entered(),
            worst.late,
            1e3 * self.limits.lateness.as_secs_f64(),
            worst.kernel_dropped,
            worst.failed
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(late: u64, kernel_dropped: u64) -> Report {
        let quiet = DirectionReport { read: 10, ..DirectionReport::default() };
        let busy =
            DirectionReport { from: 3, to: 5, read: 900, late, kernel_dropped, ..quiet.clone() };
        Report { directions: vec![quiet, busy], ..Report::default() }
    }

    #[test]
    fn a_run_is_void_above_one_percent_and_says_why() {
        assert_eq!(report(0, 0).verdict(), Verdict::Valid);
        assert_eq!(report(9, 0).verdict(), Verdict::Valid);
        let Verdict::Void(why) = report(10, 0).verdict() else { panic!("1.1 %") };
        assert!(why.contains("from node 3 to node 5, 1.1 % of 900 packets"), "{why}");
        assert!(matches!(report(0, 10).verdict(), Verdict::Void(_)));
    }

    #[test]
    fn a_run_is_void_if_the_bytes_of_a_packet_were_missing() {
        let report = Report { without_bytes: 1, ..report(0, 0) };
        let Verdict::Void(why) = report.verdict() else { panic!("one packet") };
        assert!(why.starts_with("1 packets of boxes were dropped"), "{why}");
    }

    #[test]
    fn without_packets_nothing_is_wrong() {
        assert_eq!(Report::default().verdict(), Verdict::Valid);
        // Unless none was read because all were dropped before.
        let deaf = DirectionReport { kernel_dropped: 3, ..DirectionReport::default() };
        let report = Report { directions: vec![deaf], ..Report::default() };
        assert!(matches!(report.verdict(), Verdict::Void(_)));
    }
}
