//! Links that go down and come up, and nodes that move from link to link.

use crate::topology::Topology;
use base::{Duration, Seed, Time};
use link::{Intervals, OutageProcess};
use tcp::Connectivity;

/// A link (both directions, by its index) that has just gone down or come up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) link: usize,
    pub(crate) up: bool,
}

/// A node that moves has been attached anew, or is about to be detached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    /// Which of the network's.
    pub(crate) roaming: usize,
    pub(crate) connectivity: Connectivity,
}

/// What came of it when a switch acted.
#[derive(Debug, Default)]
pub(crate) struct Acted {
    /// Links that went down or came up.
    pub(crate) turns: Vec<Turn>,
    /// Routes may be others now.
    pub(crate) routes: bool,
    pub(crate) moved: Option<Move>,
}

/// What switches links. Each has a wake of its own in the schedule.
enum Switch {
    Outages { link: usize, process: OutageProcess },
    Roaming(Roaming),
}

/// A node that is attached by one link at a time.
struct Roaming {
    /// Its place among those of the network.
    index: usize,
    /// Its points of attachment.
    links: Vec<usize>,
    when: Intervals<usize>,
    /// By which link it is attached.
    attached: Option<usize>,
    /// By which it is or was attached last; before the first time, by which it will be.
    route: usize,
    /// Until when that holds.
    until: Time,
    /// How long before the node is detached a warning is given.
    warning: Option<Duration>,
    /// When the next is, if one is to come.
    warns: Time,
}

/// All switches of a network, and the state of its links.
pub(crate) struct Switches {
    switches: Vec<Switch>,
    /// For every link, how many switches hold it down.
    down: Vec<u32>,
}

impl Switches {
    pub(crate) fn new(topology: &Topology, seed: Seed) -> Switches {
        let outages = topology.outages.iter().map(|(link, outages)| {
            let name = &topology.links[2 * link].name;
            let random = seed.stream(&format!("{name}.outages"));
            Switch::Outages { link: *link, process: OutageProcess::new(outages, random) }
        });
        let roaming = topology.roaming.iter().enumerate().filter_map(|(index, roaming)| {
            let when = roaming.when.map(|link| link.0 / 2);
            let links: Vec<usize> = when.values().copied().collect();
            let (attached, until) = when.at(Time::ZERO);
            let attached = attached.copied();
            let route = attached.or(links.first().copied())?;
            let (warning, warns) = (roaming.warning, Time::NEVER);
            let mut roaming =
                Roaming { index, links, when, attached, route, until, warning, warns };
            roaming.expect_end(Time::ZERO);
            Some(Switch::Roaming(roaming))
        });
        let switches: Vec<_> = outages.chain(roaming).collect();
        let mut down = vec![0; topology.links.len() / 2];
        for switch in &switches {
            match switch {
                Switch::Outages { link, process } => down[*link] += u32::from(!process.is_up()),
                Switch::Roaming(roaming) => {
                    for link in roaming.distinct() {
                        down[link] += u32::from(roaming.attached != Some(link));
                    }
                }
            }
        }
        Switches { switches, down }
    }

    pub(crate) fn len(&self) -> usize {
        self.switches.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.switches.is_empty()
    }

    pub(crate) fn is_up(&self, link: usize) -> bool {
        self.down[link] == 0
    }

    /// Whether routes may change.
    pub(crate) fn change_routes(&self) -> bool {
        self.switches.iter().any(|switch| matches!(switch, Switch::Roaming(_)))
    }

    /// Whether routes may take a link: not if it is a point of attachment that is not the present
    /// or the last one. An outage changes no routes.
    pub(crate) fn carries_routes(&self, link: usize) -> bool {
        self.switches.iter().all(|switch| match switch {
            Switch::Outages { .. } => true,
            Switch::Roaming(roaming) => roaming.route == link || !roaming.links.contains(&link),
        })
    }

    /// When a switch acts next.
    pub(crate) fn next(&self, index: usize) -> Time {
        match &self.switches[index] {
            Switch::Outages { process, .. } => process.next_change(),
            Switch::Roaming(roaming) => roaming.until.min(roaming.warns),
        }
    }

    /// A switch acts.
    pub(crate) fn act(&mut self, index: usize) -> Acted {
        let mut acted = Acted::default();
        let mut hold = |link: usize, up: bool| {
            let before = self.down[link];
            self.down[link] = if up { before - 1 } else { before + 1 };
            if (before == 0) != (self.down[link] == 0) {
                acted.turns.push(Turn { link, up });
            }
        };
        match &mut self.switches[index] {
            Switch::Outages { link, process } => {
                let before = process.is_up();
                process.advance();
                if process.is_up() != before {
                    hold(*link, !before);
                }
            }
            Switch::Roaming(roaming) if roaming.warns < roaming.until => {
                roaming.warns = Time::NEVER;
                let connectivity = Connectivity::Ending;
                acted.moved = Some(Move { roaming: roaming.index, connectivity });
            }
            Switch::Roaming(roaming) => {
                let before = roaming.attached;
                let at = roaming.until;
                let (attached, until) = roaming.when.at(at);
                (roaming.attached, roaming.until) = (attached.copied(), until);
                if roaming.attached != before {
                    if let Some(link) = before {
                        hold(link, false);
                    }
                    if let Some(link) = roaming.attached {
                        hold(link, true);
                        acted.routes = link != roaming.route;
                        roaming.route = link;
                        let connectivity = Connectivity::Changed { window: None };
                        acted.moved = Some(Move { roaming: roaming.index, connectivity });
                    }
                }
                roaming.expect_end(at);
            }
        }
        acted
    }
}

impl Roaming {
    /// Sets when a warning is given, as things stand from `now` on.
    fn expect_end(&mut self, now: Time) {
        let leaves = self.attached.is_some()
            && self.until != Time::NEVER
            && self.when.at(self.until).0.copied() != self.attached;
        self.warns = match self.warning.filter(|_| leaves) {
            Some(warning) if self.until.since(now) > warning => self.until - warning,
            Some(_) => now,
            None => Time::NEVER,
        };
    }

    /// Its points of attachment, each once.
    fn distinct(&self) -> impl Iterator<Item = usize> {
        let first = |place: usize| !self.links[..place].contains(&self.links[place]);
        (0..self.links.len()).filter(move |&place| first(place)).map(|place| self.links[place])
    }
}
