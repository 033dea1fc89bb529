//! What the emulator decides, without clock and devices.

use super::buffers::{Buffers, Handle};
use super::edit;
use base::{Random, Schedule, Seed, Time};
use link::{Config, Link, OutageProcess, Outages, Output, Statistics};

/// Links, the packets on them, and when they go down.
pub(super) struct Core {
    pub(super) buffers: Buffers,
    seed: Seed,
    links: Vec<Link<Handle>>,
    /// By direction: what random streams are called by.
    names: Vec<String>,
    /// By direction: packets on it.
    unfinished: Vec<u64>,
    /// Which link (both directions) it is about.
    outages: Vec<(usize, OutageProcess)>,
    /// Directions, then outages.
    schedule: Schedule,
    last: Time,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Happening {
    /// A link gives a packet back, whatever became of it.
    Packet {
        /// By which direction.
        direction: usize,
        /// The packet. The receiver of the event releases it, unless it is a copy.
        output: Output<Handle>,
    },
    /// A link (both directions) is up again or down.
    Turned {
        /// Which.
        link: usize,
        /// Whether it is up.
        up: bool,
    },
}

impl Core {
    pub(super) fn new(seed: Seed) -> Core {
        Core {
            buffers: Buffers::default(),
            seed,
            links: Vec::new(),
            names: Vec::new(),
            unfinished: Vec::new(),
            outages: Vec::new(),
            schedule: Schedule::new(),
            last: Time::ZERO,
        }
    }

    /// Adds a link with these names and settings of its directions.
    pub(super) fn add_link(
        &mut self,
        directions: [(String, Config); 2],
        outages: Option<&Outages>,
    ) -> usize {
        let index = self.links.len() / 2;
        for (name, config) in directions {
            self.links.push(Link::new(&config, self.seed, &name));
            self.names.push(name);
            self.unfinished.push(0);
        }
        if let Some(outages) = outages {
            let random = self.seed.stream(&format!("{}.outages", self.names[2 * index]));
            let process = OutageProcess::new(outages, random);
            if !process.is_up() {
                for link in &mut self.links[2 * index..] {
                    link.set_up(Time::ZERO, false);
                }
            }
            self.outages.push((index, process));
        }
        // Outages come behind all directions, so that ties are as in the lab.
        let links = self.links.iter().map(Link::next_event);
        let outages = self.outages.iter().map(|(_, process)| process.next_change());
        self.schedule = Schedule::new();
        for next in links.chain(outages) {
            let id = self.schedule.add();
            self.schedule.set(id, next);
        }
        index
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Time {
        self.schedule.first().0
    }

    /// A packet enters a direction. All that happens until then has happened: time does not go
    /// backward. Returns where it waits, unless there was no room.
    pub(super) fn enter(&mut self, now: Time, direction: usize, packet: &[u8]) -> Option<Handle> {
        debug_assert!(
            self.last <= now && now <= self.next(),
            "{} {now} {}",
            self.last,
            self.next()
        );
        self.last = now;
        let (len, ecn) = (packet.len() as u32, edit::ecn(packet));
        let handle = self.buffers.insert(packet);
        match self.links[direction].enqueue(now, handle, len, ecn) {
            Ok(next) => {
                self.unfinished[direction] += 1;
                if let Some(next) = next {
                    self.schedule.bring_forward(direction as u32, next);
                }
                Some(handle)
            }
            Err(handle) => {
                self.buffers.release(handle);
                None
            }
        }
    }

    /// What happens at [`Core::next`]; that may be nothing.
    pub(super) fn wake(&mut self) -> Option<Happening> {
        let (now, id) = self.schedule.first();
        self.last = now;
        let direction = id as usize;
        if direction < self.links.len() {
            let link = &mut self.links[direction];
            let output = link.wake(now);
            self.schedule.set(id, link.next_event());
            // Of what was copied, the original is still to come.
            if !matches!(output, None | Some(Output::Copied(_))) {
                self.unfinished[direction] -= 1;
            }
            return output.map(|output| Happening::Packet { direction, output });
        }
        let (link, process) = &mut self.outages[direction - self.links.len()];
        let before = process.is_up();
        process.advance();
        let (link, up) = (*link, process.is_up());
        self.schedule.set(id, process.next_change());
        (up != before).then(|| {
            self.set_up(link, now, up);
            Happening::Turned { link, up }
        })
    }

    fn set_up(&mut self, link: usize, now: Time, up: bool) {
        for direction in [2 * link, 2 * link + 1] {
            self.links[direction].set_up(now, up);
            self.schedule.set(direction as u32, self.links[direction].next_event());
        }
    }

    /// Which bits a direction's corruption flips. Nothing else draws from it, so that the links'
    /// decisions are the lab's.
    pub(super) fn flips(&self, direction: usize) -> Random {
        self.seed.stream(&format!("{}.flips", self.names[direction]))
    }

    /// Packets that are on a direction.
    pub(super) fn unfinished(&self, direction: usize) -> u64 {
        self.unfinished[direction]
    }

    pub(super) fn statistics(&self, direction: usize) -> Statistics {
        self.links[direction].statistics()
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
