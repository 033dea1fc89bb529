//! The thread that reads, waits and writes.

use super::buffers::{Handle, ROOM};
use super::core::{Core, Happening};
use super::driver::Driver;
use super::nodes::Passed;
use super::report::{DirectionReport, Report};
use super::routing::Routing;
use super::sleep::{Lead, wait};
use super::writer::Writer;
use super::{Direction, Emulator, End, machine};
use crate::Clock;
use base::Time;
use host::{Outgoing, Port};
use link::{Acted, Arrival, Output, Turn};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

/// Packets that are read from one device before it is another's turn.
const TURN: usize = 64;

/// What is done with devices.
pub(super) struct Worker {
    clock: Clock,
    core: Core,
    ends: Vec<End>,
    routing: Routing,
    /// Packets that no route leads on.
    unroutable: u64,
    writer: Writer,
    /// A packet that boxes have seen.
    passing: Vec<u8>,
}

impl Worker {
    pub(super) fn new(emulator: Emulator) -> Worker {
        let Emulator { clock, seed, directions, ends, outages, attachments, nodes, limits } =
            emulator;
        let drivers = directions
            .iter()
            .map(|direction| direction.reports_to.clone().map(Driver::new))
            .collect();
        let corruption = directions.iter().map(|direction| direction.corruption).collect();
        let directions =
            directions.into_iter().map(|Direction { name, config, .. }| (name, config));
        let core = Core::new(seed, directions.collect(), &outages, attachments);
        let reports = (0..ends.len()).map(|direction| DirectionReport {
            from: ends[direction].node,
            to: ends[direction ^ 1].node,
            ..DirectionReport::default()
        });
        let writer = Writer {
            clock,
            limits,
            corruption,
            drivers,
            flips: (0..ends.len()).map(|direction| core.flips(direction)).collect(),
            nodes,
            reports: reports.collect(),
            injected: 0,
            scratch: Vec::with_capacity(ROOM),
        };
        Worker {
            clock,
            routing: Routing::new(&core, &ends, &writer.nodes),
            unroutable: 0,
            core,
            ends,
            writer,
            passing: Vec::with_capacity(ROOM),
        }
    }

    /// Runs until `stop` is written to, or a device was removed: its name is then in `removed`.
    pub(super) fn run(mut self, stop: &OwnedFd, removed: &OnceLock<String>) -> Report {
        let realtime = machine::hurry();
        let (start, stolen) = (self.clock.now(), machine::stolen());
        let ends = std::mem::take(&mut self.ends);
        let mut buffer = vec![0; ROOM].into_boxed_slice();
        let stopped = PollFd::new(stop, PollFlags::IN);
        let devices = ends.iter().map(|end| PollFd::new(&end.tun, PollFlags::IN));
        let mut watched: Vec<PollFd<'_>> = std::iter::once(stopped).chain(devices).collect();
        let mut lead = Lead::default();
        while removed.get().is_none() {
            let now = self.deliver_due(&ends);
            let due = self.next();
            let until = due - lead.now();
            let ready = wait(&mut watched, now, until);
            let woken = self.clock.now();
            if until <= now {
                lead.asked(woken.since(now));
            } else {
                lead.slept(woken.since(now));
                if !ready {
                    lead.woken(woken <= due);
                }
            }
            if !ready {
                continue;
            }
            if !watched[0].revents().is_empty() {
                break;
            }
            for direction in 0..ends.len() {
                let device = &mut watched[1 + direction];
                if device.revents().is_empty() {
                    continue;
                }
                match self.read(direction, &ends, &mut buffer) {
                    Ok(()) => {}
                    Err(Errno::BADFD) => {
                        let _ = removed.set(ends[direction].tun.name().to_owned());
                    }
                    // It would be ready for ever.
                    Err(_) => *device = PollFd::new(stop, PollFlags::empty()),
                }
            }
        }
        machine::relax();
        let (busy, waited) = machine::scheduled();
        Report {
            limits: self.writer.limits,
            injected: self.writer.injected,
            unroutable: self.unroutable,
            without_bytes: self.writer.nodes.without_bytes,
            box_drops: self.writer.nodes.box_drops(),
            box_counts: self.writer.nodes.box_counts(),
            span: self.clock.now().since(start),
            busy,
            waited,
            stolen: machine::stolen() - stolen,
            realtime,
            directions: self.finish(&ends),
        }
    }

    /// Does what is due. Returns the time: all that was due until then is done.
    fn deliver_due(&mut self, ends: &[End]) -> Time {
        loop {
            let now = self.clock.now();
            if self.next() > now {
                return now;
            }
            // It takes time, in which more may come due.
            while self.next() <= now {
                self.deliver(ends);
            }
        }
    }

    /// When something happens next, on a link or in a box.
    fn next(&self) -> Time {
        self.core.next().min(self.writer.nodes.next_wake())
    }

    /// Does what is next. Boxes come before links, as in the lab.
    fn deliver(&mut self, ends: &[End]) {
        self.writer.nodes.free_payloads();
        let (due, wake) = (self.core.next(), self.writer.nodes.next_wake());
        if wake <= due {
            for node in 0..self.writer.nodes.len() {
                self.writer.nodes.wake(wake, node);
            }
            return self.empty_outboxes(wake, ends);
        }
        match self.core.wake() {
            None => {}
            Some(Happening::Switched(acted)) => self.switched(due, acted, ends),
            Some(Happening::Packet { direction, output }) => {
                self.give_back(due, direction, output, ends);
            }
        }
    }

    /// Links have gone down or come up, or a node moves. Routes change first, then boxes are
    /// notified of links, then hosts of moves, as in the lab.
    fn switched(&mut self, due: Time, acted: Acted, ends: &[End]) {
        if acted.routes {
            self.routing.update(&self.core);
        }
        for Turn { link, up } in acted.turns {
            for (near, far) in [(2 * link, 2 * link + 1), (2 * link + 1, 2 * link)] {
                // What arrives at this end comes by the direction from the other.
                let (node, peer) = (ends[near].node, ends[far].node);
                self.writer.nodes.turned(due, node, Port(far as u32), peer, up);
            }
        }
        self.empty_outboxes(due, ends);
        if let Some(moved) = acted.moved {
            self.writer.nodes.moved(moved);
        }
    }

    /// A link gives a packet back.
    fn give_back(&mut self, due: Time, direction: usize, output: Output<Handle>, ends: &[End]) {
        let mut passing = std::mem::take(&mut self.passing);
        let mut goes_on = None;
        let handle = match output {
            Output::Arrived(Arrival { packet, fate })
            | Output::Copied(Arrival { packet, fate }) => {
                let bytes = self.core.buffers.get(packet);
                let arrived = (due, direction);
                let written = self.writer.arrived(arrived, bytes, fate, ends, &mut passing);
                goes_on = written.then_some(fate);
                packet
            }
            Output::Dropped(packet) => {
                let bytes = self.core.buffers.get(packet);
                self.writer.dropped(due, direction, bytes, ends);
                packet
            }
            Output::Cut(packet) => packet,
        };
        // Of what was copied, the original is still to come.
        if !matches!(output, Output::Copied(_)) {
            self.core.buffers.release(handle);
        }
        self.empty_outboxes(due, ends);
        if let Some(fate) = goes_on {
            self.writer.write((due, direction), &passing, fate, &ends[direction ^ 1]);
        }
        self.passing = passing;
    }

    /// Does what boxes want to be done.
    fn empty_outboxes(&mut self, now: Time, ends: &[End]) {
        for node in 0..self.writer.nodes.len() {
            while let Some(outbox) = self.writer.nodes.outbox(node) {
                for indication in outbox.indications.iter().cloned() {
                    self.writer.nodes.surroundings.indicate(node, indication);
                }
                for Outgoing { packet, .. } in &outbox.packets {
                    let mut bytes = Vec::new();
                    let destination = packet.ip.destination;
                    if !self.writer.nodes.write_sent(packet, &outbox, &mut bytes) {
                        continue;
                    }
                    if self.writer.nodes.owns(node, destination)
                        || self.routing.leave_at(node, destination)
                    {
                        self.writer.inject(&bytes, node, ends);
                    } else if let Some(direction) = self.routing.next(node, destination) {
                        self.enter(now, direction, &bytes, ends);
                        self.writer.injected += 1;
                        self.writer.reports[direction].injected += 1;
                    }
                }
            }
        }
    }

    /// Puts a packet on a link, and shows the boxes where the link begins what its queue makes of it.
    /// What has no room is counted by the link.
    fn enter(&mut self, now: Time, direction: usize, bytes: &[u8], ends: &[End]) {
        let node = ends[direction].node;
        let to = Port(direction as u32);
        if self.writer.nodes.inspect(node) && !self.writer.nodes.leaving(now, node, to, bytes) {
            return;
        }
        let handle = self.core.enter(now, direction, bytes);
        if self.writer.nodes.inspect(node) {
            let queued = (to, handle.is_some());
            let mut changed = std::mem::take(&mut self.writer.scratch);
            let passed = self.writer.nodes.queued(now, node, queued, bytes, &mut changed);
            if let (Some(handle), Passed::Changed) = (handle, passed) {
                self.core.buffers.replace(handle, &changed);
            }
            self.writer.scratch = changed;
        }
    }

    /// A packet leaves a node, whose kernel sent it by the device at the start of a direction. Returns
    /// the direction that it takes, or would have taken.
    fn leave(&mut self, now: Time, direction: usize, bytes: &[u8], ends: &[End]) -> usize {
        let node = ends[direction].node;
        if !self.writer.nodes.inspect(node) {
            return self.put(now, direction, bytes, ends);
        }
        self.writer.nodes.free_payloads();
        let mut passing = std::mem::take(&mut self.passing);
        let passed = self.writer.nodes.pass(now, node, None, bytes, &mut passing);
        // What boxes make leaves before the packet that they saw.
        self.empty_outboxes(now, ends);
        let taken = match passed {
            Passed::AsItIs => self.put(now, direction, bytes, ends),
            Passed::Changed => self.put(now, direction, &passing, ends),
            Passed::Gone => direction,
        };
        self.passing = passing;
        self.empty_outboxes(now, ends);
        taken
    }

    /// Puts a packet on the link that it takes.
    fn put(&mut self, now: Time, direction: usize, bytes: &[u8], ends: &[End]) -> usize {
        let taken = self.routing.taken(direction, bytes);
        match taken {
            Some(taken) => self.enter(now, taken, bytes, ends),
            None => self.unroutable += 1,
        }
        taken.unwrap_or(direction)
    }

    /// Reads the waiting packets and puts them on their link.
    ///
    /// # Errors
    /// If a packet cannot be read; [`Errno::BADFD`] if the device was removed.
    fn read(&mut self, direction: usize, ends: &[End], buffer: &mut [u8]) -> Result<(), Errno> {
        for _ in 0..TURN {
            match ends[direction].tun.read(buffer) {
                Ok(len) => {
                    // What is due before a packet enters happens before.
                    let now = self.deliver_due(ends);
                    let taken = self.leave(now, direction, &buffer[..len], ends);
                    self.writer.reports[taken].read += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.writer.reports[direction].failed += 1;
                    return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, ends: &[End]) -> Vec<DirectionReport> {
        for (direction, report) in self.writer.reports.iter_mut().enumerate() {
            report.link = self.core.statistics(direction);
            report.queue_delays = self.core.queue_delays(direction);
            report.untold =
                self.writer.drivers[direction].as_ref().map_or(0, |driver| driver.untold);
            report.unfinished = self.core.unfinished(direction);
            // A device that cannot be asked has gone with its namespace.
            let counts = |end: usize| ends[end].tun.counts().unwrap_or_default();
            // The kernel counts writes that failed as well.
            let known = report.failed + report.refused;
            let not_taken = counts(direction ^ 1).receive_dropped.saturating_sub(known);
            report.kernel_dropped = counts(direction).send_dropped + not_taken;
        }
        self.writer.reports
    }
}
