//! Connections that a host opens of its own accord.

use super::Host;
use crate::{Application, Workload};
use base::Time;

impl<A: Application> Host<A> {
    /// Opens connections as `workload` says, from now on.
    pub fn add_workload(&mut self, workload: Workload<A>) {
        self.spawn = self.spawn.min(workload.next);
        self.workloads.push(workload);
    }

    /// Opens what workloads have due.
    #[inline]
    pub(super) fn spawn_due(&mut self, now: Time) {
        if self.spawn > now {
            return;
        }
        for index in 0..self.workloads.len() {
            while let Some(opening) = self.workloads[index].due(now) {
                match self.connect(now, opening) {
                    Some(id) => self.slots[id.index as usize].workload = Some(index as u32),
                    None => {
                        self.statistics.unopened += 1;
                        self.workloads[index].failed(now);
                    }
                }
            }
        }
        self.spawn = self.workloads.iter().map(|w| w.next).min().unwrap_or(Time::NEVER);
    }

    /// A connection of a workload is over.
    pub(super) fn ended(&mut self, now: Time, workload: u32) {
        let workload = &mut self.workloads[workload as usize];
        workload.ended(now);
        self.spawn = self.spawn.min(workload.next);
    }
}
