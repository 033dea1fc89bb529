//! Connections that workloads open.

use super::Host;
use crate::{Application, Workload};
use base::Time;

impl<A: Application> Host<A> {
    /// Opens the connections of `workload` from now on.
    pub fn add_workload(&mut self, workload: Workload<A>) {
        self.next_task = self.next_task.min(workload.next);
        self.workloads.push(workload);
    }

    /// Runs the workloads and the shared probe as far as they are due.
    #[inline]
    pub(super) fn run_tasks(&mut self, now: Time) {
        if self.next_task <= now {
            self.spawn_due(now);
            self.poll_shared_probe(now);
        }
    }

    /// Opens the connections of workloads that are due.
    fn spawn_due(&mut self, now: Time) {
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
    }

    /// Sets the next deadline of either.
    pub(super) fn set_next_task(&mut self) {
        let workload = self.workloads.iter().map(|w| w.next).min().unwrap_or(Time::NEVER);
        self.next_task = self.probe.as_ref().map_or(workload, |probe| probe.wake().min(workload));
    }

    /// Handles the end of a workload's connection.
    pub(super) fn ended(&mut self, now: Time, workload: u32) {
        let workload = &mut self.workloads[workload as usize];
        workload.ended(now);
        self.next_task = self.next_task.min(workload.next);
    }
}
