//! What the emulator decides, without clock and devices.

use super::buffers::{Buffers, Handle};
use super::edit;
use base::{Quantiles, Random, Schedule, Seed, Time};
use link::{
    Acted, Attachments, Config, Link, OutageProcess, Outages, Output, Routes, Statistics, Switches,
    Turn,
};

/// Links, the packets on them, when they go down, and where routes lead.
pub(super) struct Core {
    pub(super) buffers: Buffers,
    seed: Seed,
    links: Vec<Link<Handle>>,
    /// By direction: what random streams are called by.
    names: Vec<String>,
    /// By direction: packets on it.
    unfinished: Vec<u64>,
    switches: Switches,
    /// Directions, then switches, so that ties are as in the lab.
    schedule: Schedule,
    last: Time,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Happening {
    /// A link gives a packet back, whatever became of it.
    Packet {
        /// By which direction.
        direction: usize,
        /// The packet. The receiver of the event releases it, unless it is a copy.
        output: Output<Handle>,
    },
    /// Links are up again or down, or a node moves.
    Switched(Acted),
}

impl Core {
    /// Links by the names and settings of their directions, of which 2 i and 2 i + 1 are link i's;
    /// outages, each of a link; and nodes that move.
    pub(super) fn new(
        seed: Seed,
        directions: Vec<(String, Config)>,
        outages: &[(usize, Outages)],
        attachments: Vec<Attachments>,
    ) -> Core {
        let outages = outages.iter().map(|(link, outages)| {
            let random = seed.stream(&format!("{}.outages", directions[2 * link].0));
            (*link, OutageProcess::new(outages, random))
        });
        let switches = Switches::new(directions.len() / 2, outages, attachments);
        let make = |(index, (name, config)): (usize, &(String, Config))| {
            let mut link = Link::new(config, seed, name);
            link.measure_queue_delays();
            if !switches.is_up(index / 2) {
                link.set_up(Time::ZERO, false);
            }
            link
        };
        let links: Vec<_> = directions.iter().enumerate().map(make).collect();
        let mut schedule = Schedule::new();
        let switched = (0..switches.len()).map(|index| switches.next(index));
        for next in links.iter().map(Link::next_event).chain(switched) {
            let id = schedule.add();
            schedule.set(id, next);
        }
        Core {
            buffers: Buffers::default(),
            seed,
            unfinished: vec![0; links.len()],
            links,
            names: directions.into_iter().map(|(name, _)| name).collect(),
            switches,
            schedule,
            last: Time::ZERO,
        }
    }

    /// Whether routes may change.
    pub(super) fn change_routes(&self) -> bool {
        self.switches.change_routes()
    }

    /// The routes between so many nodes as they are now, by the ends of directions.
    pub(super) fn routes(
        &self,
        nodes: usize,
        directions: impl Iterator<Item = (usize, usize)> + Clone,
    ) -> Routes {
        self.switches.routes(nodes, directions)
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
        let flow = || wire::FlowKey::read(packet);
        match self.links[direction].enqueue_classed(now, handle, len, ecn, 0, flow) {
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
        let index = direction - self.links.len();
        let acted = self.switches.act(index);
        self.schedule.set(id, self.switches.next(index));
        for &Turn { link, up } in &acted.turns {
            self.set_up(link, now, up);
        }
        Some(Happening::Switched(acted))
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

    /// The times from the acceptance of packets by a direction to the beginning of their transmission,
    /// nanoseconds.
    pub(super) fn queue_delays(&self, direction: usize) -> Option<Quantiles> {
        self.links[direction].queue_delays()
    }

    pub(super) fn statistics(&self, direction: usize) -> Statistics {
        self.links[direction].statistics()
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
