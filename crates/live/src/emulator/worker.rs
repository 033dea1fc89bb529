//! The thread that reads, waits and writes.

use super::buffers::ROOM;
use super::core::{Core, Happening};
use super::report::{DirectionReport, Limits, Report};
use super::{Corruption, Emulator, End, Observer, edit, machine};
use crate::Clock;
use base::{Duration, Random, Time};
use link::{Arrival, Fate, Output};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use wire::Packet;

/// Packets that are read from one device before it is another's turn.
const TURN: usize = 64;

/// What is done with devices.
pub(super) struct Worker {
    clock: Clock,
    core: Core,
    ends: Vec<End>,
    writer: Writer,
}

impl Worker {
    pub(super) fn new(emulator: Emulator) -> Worker {
        let Emulator { clock, core, corruption, ends, observer, limits } = emulator;
        let reports = (0..ends.len()).map(|direction| DirectionReport {
            from: ends[direction].node,
            to: ends[direction ^ 1].node,
            ..DirectionReport::default()
        });
        let writer = Writer {
            clock,
            limits,
            corruption,
            flips: (0..ends.len()).map(|direction| core.flips(direction)).collect(),
            observer,
            reports: reports.collect(),
            injected: 0,
            scratch: Vec::with_capacity(ROOM),
        };
        Worker { clock, core, ends, writer }
    }

    /// Works until somebody writes to `stop`.
    pub(super) fn run(mut self, stop: &OwnedFd) -> Report {
        let realtime = machine::hurry();
        let (start, stolen) = (self.clock.now(), machine::stolen());
        let ends = std::mem::take(&mut self.ends);
        let mut buffer = vec![0; ROOM].into_boxed_slice();
        let stopped = PollFd::new(stop, PollFlags::IN);
        let devices = ends.iter().map(|end| PollFd::new(&end.tun, PollFlags::IN));
        let mut watched: Vec<PollFd<'_>> = std::iter::once(stopped).chain(devices).collect();
        let mut lead = Lead::default();
        loop {
            let now = self.deliver_due(&ends);
            let due = self.core.next();
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
                if !device.revents().is_empty() && !self.read(direction, &ends, &mut buffer) {
                    // It would be ready for ever.
                    *device = PollFd::new(stop, PollFlags::empty());
                }
            }
        }
        machine::relax();
        let (busy, waited) = machine::scheduled();
        Report {
            limits: self.writer.limits,
            injected: self.writer.injected,
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
            if self.core.next() > now {
                return now;
            }
            // It takes time, in which more may come due.
            while self.core.next() <= now {
                self.deliver(ends);
            }
        }
    }

    /// Does what is next.
    fn deliver(&mut self, ends: &[End]) {
        let due = self.core.next();
        match self.core.wake() {
            None => {}
            Some(Happening::Turned { link, up }) => self.writer.turned(due, link, up, ends),
            Some(Happening::Packet { direction, output }) => {
                let handle = match output {
                    Output::Arrived(Arrival { packet, fate })
                    | Output::Copied(Arrival { packet, fate }) => {
                        let bytes = self.core.buffers.get(packet);
                        self.writer.arrived(due, direction, bytes, fate, ends);
                        packet
                    }
                    Output::Dropped(packet) | Output::Cut(packet) => packet,
                };
                // Of what was copied, the original is still to come.
                if !matches!(output, Output::Copied(_)) {
                    self.core.buffers.release(handle);
                }
            }
        }
    }

    /// Reads what is there, and puts it on its link. Says whether there may be more one day: not if
    /// somebody has removed the device.
    fn read(&mut self, direction: usize, ends: &[End], buffer: &mut [u8]) -> bool {
        for _ in 0..TURN {
            match ends[direction].tun.read(buffer) {
                Ok(len) => {
                    // What is due before a packet enters happens before.
                    let now = self.deliver_due(ends);
                    // What has no room is counted by the link.
                    self.core.enter(now, direction, &buffer[..len]);
                    self.writer.reports[direction].read += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.writer.reports[direction].failed += 1;
                    return false;
                }
            }
        }
        true
    }

    fn finish(mut self, ends: &[End]) -> Vec<DirectionReport> {
        for (direction, report) in self.writer.reports.iter_mut().enumerate() {
            report.link = self.core.statistics(direction);
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

/// How much earlier than needed it asks to be woken: a processor that slept takes its time. What is
/// too early by then is spent asking for packets again and again.
#[derive(Default)]
struct Lead {
    enough: Duration,
    /// How long it may ask again and again.
    credit: Duration,
}

impl Lead {
    /// One that is longer would keep a processor busy.
    const LONGEST: Duration = Duration::from_micros(150);

    /// Nothing is left to other threads by one of real-time priority that never sleeps, until the
    /// kernel stops it for 50 ms: at most half of the time without work is spent awake.
    const AWAKE_PER_SLEEP: u64 = 1;

    fn now(&self) -> Duration {
        if self.credit == Duration::ZERO { Duration::ZERO } else { self.enough }
    }

    /// It slept until it was woken for what is due. Follows what is enough three times out of four.
    fn woken(&mut self, punctual: bool) {
        self.enough = if punctual {
            self.enough - Duration::from_nanos(500)
        } else {
            (self.enough + Duration::from_nanos(1500)).min(Lead::LONGEST)
        };
    }

    fn slept(&mut self, span: Duration) {
        self.credit = (self.credit + span * Lead::AWAKE_PER_SLEEP).min(Duration::from_millis(1));
    }

    fn asked(&mut self, span: Duration) {
        self.credit = self.credit - span;
    }
}

/// Sleeps until a device can be read, or until some time. Says whether one can be read.
fn wait(watched: &mut [PollFd<'_>], now: Time, until: Time) -> bool {
    let nanos = until.since(now).as_nanos();
    let timeout = Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    };
    let timeout = (until < Time::NEVER - Lead::LONGEST).then_some(&timeout);
    match poll(watched, timeout) {
        Ok(ready) => ready > 0,
        Err(Errno::INTR) => false,
        // The descriptors are open and the timeout is one; memory for a few of them was there the
        // last time.
        Err(error) => panic!("ppoll: {error}"),
    }
}

/// The far ends of links.
struct Writer {
    clock: Clock,
    limits: Limits,
    /// By direction.
    corruption: Vec<Corruption>,
    /// By direction: which bits are flipped.
    flips: Vec<Random>,
    observer: Box<dyn Observer>,
    reports: Vec<DirectionReport>,
    injected: u64,
    /// A packet that is being changed.
    scratch: Vec<u8>,
}

impl Writer {
    /// A packet, or a copy of it, is at the far end.
    fn arrived(&mut self, due: Time, direction: usize, bytes: &[u8], fate: Fate, ends: &[End]) {
        let far = &ends[direction ^ 1];
        match fate {
            Fate::Lost => {}
            Fate::Intact | Fate::Corrected { marked: false } => {
                self.write(due, direction, bytes, far);
            }
            Fate::Corrupted if self.corruption[direction] == Corruption::Drop => {
                self.report(due, direction, bytes, far);
            }
            Fate::Corrupted | Fate::Marked | Fate::Corrected { marked: true } => {
                let mut changed = std::mem::take(&mut self.scratch);
                changed.clear();
                changed.extend_from_slice(bytes);
                if fate.is_marked() {
                    edit::mark(&mut changed);
                    self.write(due, direction, &changed, far);
                } else {
                    edit::flip(&mut changed, &mut self.flips[direction]);
                    self.write_damaged(due, direction, &changed, far);
                }
                self.scratch = changed;
            }
        }
    }

    fn write(&mut self, due: Time, direction: usize, bytes: &[u8], far: &End) {
        self.count_lateness(due, direction);
        match far.tun.write(bytes) {
            Ok(()) => self.reports[direction].written += 1,
            Err(_) => self.reports[direction].failed += 1,
        }
    }

    fn write_damaged(&mut self, due: Time, direction: usize, bytes: &[u8], far: &End) {
        self.count_lateness(due, direction);
        match far.tun.write(bytes) {
            Ok(()) => self.reports[direction].written += 1,
            // The device looks at the version, which may be what was hit.
            Err(_) => self.reports[direction].refused += 1,
        }
    }

    fn count_lateness(&mut self, due: Time, direction: usize) {
        let lateness = self.clock.now().since(due);
        let report = &mut self.reports[direction];
        report.lateness.record(lateness.as_nanos());
        report.late += u64::from(lateness > self.limits.lateness);
    }

    /// Tells the observer of a corrupted packet, which ends here.
    fn report(&mut self, due: Time, direction: usize, bytes: &[u8], far: &End) {
        self.reports[direction].reported += 1;
        // What was sent need not be something that we understand.
        let Ok((packet, _)) = Packet::parse(bytes) else { return };
        let mut answers = Vec::new();
        self.observer.corrupted(due, far.node, direction, &packet, &mut answers);
        for answer in answers {
            self.inject(&answer, far);
        }
    }

    fn turned(&mut self, due: Time, link: usize, up: bool, ends: &[End]) {
        for end in &ends[2 * link..2 * link + 2] {
            let mut answers = Vec::new();
            self.observer.turned(due, end.node, link, up, &mut answers);
            for answer in answers {
                self.inject(&answer, end);
            }
        }
    }

    /// A packet of the observer's, which the node's kernel takes as if it came by the link, and
    /// routes.
    fn inject(&mut self, packet: &Packet, end: &End) {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        if packet.emit(&[], &mut bytes).is_ok() && end.tun.write(&bytes).is_ok() {
            self.injected += 1;
        }
        self.scratch = bytes;
    }
}
