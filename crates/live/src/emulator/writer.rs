//! The far ends of links: packets that arrive are written to devices.

use super::driver::Driver;
use super::nodes::{Nodes, Passed};
use super::report::{DirectionReport, Limits};
use super::{Corruption, End, edit};
use crate::Clock;
use base::{Random, Time};
use host::{LinkEvent, Port};
use link::Fate;

/// The far ends of links.
pub(super) struct Writer {
    pub(super) clock: Clock,
    pub(super) limits: Limits,
    /// By direction.
    pub(super) corruption: Vec<Corruption>,
    /// By direction: who reports what arrives damaged.
    pub(super) drivers: Vec<Option<Driver>>,
    /// By direction: which bits are flipped.
    pub(super) flips: Vec<Random>,
    pub(super) nodes: Nodes,
    pub(super) reports: Vec<DirectionReport>,
    pub(super) injected: u64,
    /// A packet that is being changed.
    pub(super) scratch: Vec<u8>,
}

impl Writer {
    /// A packet, or a copy of it, is at the far end. Says whether what boxes made of it, which is in
    /// `passing`, is still to be written.
    pub(super) fn arrived(
        &mut self,
        (due, direction): (Time, usize),
        bytes: &[u8],
        fate: Fate,
        ends: &[End],
        passing: &mut Vec<u8>,
    ) -> bool {
        let far = &ends[direction ^ 1];
        let port = Port(direction as u32);
        if let Some(driver) = &mut self.drivers[direction] {
            match fate {
                Fate::Lost => {}
                Fate::Corrupted => driver.on_damaged(due, bytes),
                Fate::Intact | Fate::Corrected { .. } | Fate::Marked => driver.on_intact(due),
            }
        }
        match fate {
            Fate::Lost => return false,
            Fate::Intact => return self.show((due, direction), bytes, fate, far, passing),
            Fate::Corrupted if self.corruption[direction] == Corruption::Drop => {
                self.reports[direction].reported += 1;
                self.nodes
                    .indicate(due, far.node, port, bytes, |packet| LinkEvent::Corrupted(packet));
                return false;
            }
            Fate::Corrected { .. } => {
                self.nodes
                    .indicate(due, far.node, port, bytes, |packet| LinkEvent::Corrected(packet));
            }
            Fate::Corrupted | Fate::Marked => {}
        }
        let mut changed = std::mem::take(&mut self.scratch);
        changed.clear();
        changed.extend_from_slice(bytes);
        if fate == Fate::Corrupted {
            edit::flip(&mut changed, &mut self.flips[direction]);
        } else if fate.is_marked() {
            edit::mark(&mut changed);
        }
        let goes_on = self.show((due, direction), &changed, fate, far, passing);
        self.scratch = changed;
        goes_on
    }

    /// Shows a packet at the far end to the boxes there, which cannot know that one of its bits was flipped. Says as
    /// [`Writer::arrived`] whether it is still to be written.
    fn show(
        &mut self,
        (due, direction): (Time, usize),
        bytes: &[u8],
        fate: Fate,
        far: &End,
        passing: &mut Vec<u8>,
    ) -> bool {
        if !self.nodes.inspect(far.node) {
            self.write((due, direction), bytes, fate, far);
            return false;
        }
        match self.nodes.pass(due, far.node, Some(Port(direction as u32)), bytes, passing) {
            Passed::AsItIs => {
                passing.clear();
                passing.extend_from_slice(bytes);
                true
            }
            Passed::Changed => true,
            Passed::Gone => false,
        }
    }

    /// The queue of a link drops a packet that it had taken.
    pub(super) fn dropped(&mut self, due: Time, direction: usize, bytes: &[u8], ends: &[End]) {
        let node = ends[direction].node;
        if self.nodes.inspect(node) {
            self.nodes.indicate(due, node, Port(direction as u32), bytes, |packet| {
                LinkEvent::Dropped(packet)
            });
        }
    }

    pub(super) fn write(
        &mut self,
        (due, direction): (Time, usize),
        bytes: &[u8],
        fate: Fate,
        far: &End,
    ) {
        self.count_lateness(due, direction);
        let report = &mut self.reports[direction];
        match far.tun.write(bytes) {
            Ok(()) => report.written += 1,
            // The device looks at the version, which may be what was hit.
            Err(_) if fate == Fate::Corrupted => report.refused += 1,
            Err(_) => report.failed += 1,
        }
    }

    fn count_lateness(&mut self, due: Time, direction: usize) {
        let lateness = self.clock.now().since(due);
        let report = &mut self.reports[direction];
        report.lateness.record(lateness.as_nanos());
        report.late += u64::from(lateness > self.limits.lateness);
    }

    /// A packet of a box's for its own node, whose kernel takes it as if it came by a link.
    pub(super) fn inject(&mut self, bytes: &[u8], node: usize, ends: &[End]) {
        let end = ends.iter().find(|end| end.node == node);
        if end.is_some_and(|end| end.tun.write(bytes).is_ok()) {
            self.injected += 1;
        }
    }
}
