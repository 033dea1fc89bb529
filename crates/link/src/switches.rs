//! Links that go down and come up, and nodes that move from link to link.

use crate::{Intervals, OutageProcess, Routes};
use base::{Duration, Time};

/// The links by which a moving node is attached, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachments {
    /// The node.
    pub node: usize,
    /// The links, by their index; at other times the node is detached.
    pub links: Intervals<usize>,
    /// The nodes whose hosts are notified when it is attached anew: the node itself for all its
    /// connections, another for those with the node.
    pub notifies: Vec<usize>,
    /// How long before it is detached they are notified, too; when it is attached, if that is later.
    /// `None`: they are not.
    pub warning: Option<Duration>,
}

/// A link (both directions, by its index) that has just gone down or come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The link.
    pub link: usize,
    /// Whether it is up.
    pub up: bool,
}

/// What hosts are notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// The node has been attached anew.
    Attached,
    /// It is about to be detached.
    Leaving,
}

/// A node that moves, and the nodes whose hosts are notified of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The node.
    pub node: usize,
    /// The nodes whose hosts are notified.
    pub notifies: Vec<usize>,
    /// Of what.
    pub movement: Movement,
}

/// The result of a switch's action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acted {
    /// Links that went down or came up.
    pub turns: Vec<Turn>,
    /// Routes may have changed.
    pub routes: bool,
    /// Hosts are notified, once routes have changed.
    pub moved: Option<Move>,
}

/// A process that switches links. Each has a wake of its own in the schedule.
#[derive(Clone, Debug)]
enum Switch {
    Outages { link: usize, process: OutageProcess },
    Roaming(Roaming),
}

/// A node that is attached by one link at a time.
#[derive(Clone, Debug)]
struct Roaming {
    attachments: Attachments,
    /// Its points of attachment.
    links: Vec<usize>,
    /// The link by which it is attached.
    attached: Option<usize>,
    /// The link by which it is or was attached last; before the first attachment, the first.
    route: usize,
    /// Until when that holds.
    until: Time,
    /// When the next warning is due, if one is.
    warns: Time,
}

/// All switches of a network, and the state of its links. The simulator and the emulator of real
/// packets carry out the same actions, each in its own time.
#[derive(Clone, Debug)]
pub struct Switches {
    switches: Vec<Switch>,
    /// For every link, how many switches hold it down.
    down: Vec<u32>,
}

impl Switches {
    /// The switches of a network of so many links at time zero. A switch's index is its place among
    /// the outages, each of a link, and behind them the nodes that move.
    #[must_use]
    pub fn new(
        links: usize,
        outages: impl IntoIterator<Item = (usize, OutageProcess)>,
        attachments: impl IntoIterator<Item = Attachments>,
    ) -> Switches {
        let outages = outages.into_iter();
        let outages = outages.map(|(link, process)| Switch::Outages { link, process });
        let roaming = attachments.into_iter().filter_map(Roaming::new).map(Switch::Roaming);
        let switches: Vec<_> = outages.chain(roaming).collect();
        let mut down = vec![0; links];
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

    /// How many switches there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.switches.len()
    }

    /// Whether all links are always up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty()
    }

    /// Whether a link is up.
    #[must_use]
    pub fn is_up(&self, link: usize) -> bool {
        self.down[link] == 0
    }

    /// Whether routes may change.
    #[must_use]
    pub fn change_routes(&self) -> bool {
        self.switches.iter().any(|switch| matches!(switch, Switch::Roaming(_)))
    }

    /// Whether routes may take a link: not if it is a point of attachment that is not the present
    /// or the last one. An outage changes no routes.
    fn carries_routes(&self, link: usize) -> bool {
        self.switches.iter().all(|switch| match switch {
            Switch::Outages { .. } => true,
            Switch::Roaming(roaming) => roaming.route == link || !roaming.links.contains(&link),
        })
    }

    /// The routes between so many nodes as they are now; direction 2 i is link i's forward direction,
    /// 2 i + 1 its backward direction, each from one node to another.
    pub fn routes(
        &self,
        nodes: usize,
        directions: impl Iterator<Item = (usize, usize)> + Clone,
    ) -> Routes {
        Routes::shortest(nodes, directions, |direction| self.carries_routes(direction / 2))
    }

    /// When a switch acts next.
    #[must_use]
    pub fn next(&self, index: usize) -> Time {
        match &self.switches[index] {
            Switch::Outages { process, .. } => process.next_change(),
            Switch::Roaming(roaming) => roaming.until.min(roaming.warns),
        }
    }

    /// Carries out a switch's action, which is due at [`Switches::next`].
    pub fn act(&mut self, index: usize) -> Acted {
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
                acted.moved = Some(roaming.moved(Movement::Leaving));
            }
            Switch::Roaming(roaming) => {
                let before = roaming.attached;
                let at = roaming.until;
                let (attached, until) = roaming.attachments.links.at(at);
                (roaming.attached, roaming.until) = (attached.copied(), until);
                if roaming.attached != before {
                    if let Some(link) = before {
                        hold(link, false);
                    }
                    if let Some(link) = roaming.attached {
                        hold(link, true);
                        acted.routes = link != roaming.route;
                        roaming.route = link;
                        acted.moved = Some(roaming.moved(Movement::Attached));
                    }
                }
                roaming.expect_end(at);
            }
        }
        acted
    }
}

impl Roaming {
    /// A node at time zero; `None` if it is never attached.
    fn new(attachments: Attachments) -> Option<Roaming> {
        let links: Vec<usize> = attachments.links.values().copied().collect();
        let (attached, until) = attachments.links.at(Time::ZERO);
        let attached = attached.copied();
        let route = attached.or(links.first().copied())?;
        let warns = Time::NEVER;
        let mut roaming = Roaming { attachments, links, attached, route, until, warns };
        roaming.expect_end(Time::ZERO);
        Some(roaming)
    }

    fn moved(&self, movement: Movement) -> Move {
        let Attachments { node, notifies, .. } = &self.attachments;
        Move { node: *node, notifies: notifies.clone(), movement }
    }

    /// Sets the time of the next warning from `now` on.
    fn expect_end(&mut self, now: Time) {
        let leaves = self.attached.is_some()
            && self.until != Time::NEVER
            && self.attachments.links.at(self.until).0.copied() != self.attached;
        self.warns = match self.attachments.warning.filter(|_| leaves) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, Outages};
    use base::Seed;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Node 2 is at node 0 by link 0 until 100 ms, and at node 1 by link 1 from 150 ms on; link 2 is
    /// between those two.
    fn switches(warning: Option<u64>, outages: Option<Outages>) -> Switches {
        let span = |start, end, value| Interval {
            start: Duration::from_millis(start),
            end: Duration::from_millis(end),
            value,
        };
        let links = Intervals::new([span(0, 100, 0), span(150, 300, 1)], None).unwrap();
        let warning = warning.map(Duration::from_millis);
        let moving = Attachments { node: 2, links, notifies: vec![2, 0], warning };
        let outages = outages.map(|of| (1, OutageProcess::new(&of, Seed(1).stream("outages"))));
        Switches::new(3, outages, [moving])
    }

    /// What the only node that moves does, and when, until 200 ms.
    fn course(mut switches: Switches) -> Vec<(Time, Acted)> {
        let index = switches.len() - 1;
        let mut acted = Vec::new();
        while switches.next(index) <= at(200) {
            acted.push((switches.next(index), switches.act(index)));
        }
        acted
    }

    fn moved(movement: Movement) -> Option<Move> {
        Some(Move { node: 2, notifies: vec![2, 0], movement })
    }

    /// The ways to and from the node that moves.
    fn ways(switches: &Switches) -> [Option<u32>; 4] {
        let ends = [(0, 2), (2, 0), (1, 2), (2, 1), (0, 1), (1, 0)];
        let routes = switches.routes(3, ends.into_iter());
        [routes.next(0, 2), routes.next(1, 2), routes.next(2, 0), routes.next(2, 1)]
    }

    #[test]
    fn a_node_that_moves_has_one_link_at_a_time_and_routes_follow_when_it_is_attached() {
        let mut switches = switches(None, None);
        let up = |switches: &Switches| [0, 1, 2].map(|link| switches.is_up(link));
        assert!(switches.change_routes());
        assert_eq!(up(&switches), [true, false, true]);
        let before = ways(&switches);
        assert_eq!(before, [Some(0), Some(5), Some(1), Some(1)]);
        assert_eq!(switches.next(0), at(100));
        let left = switches.act(0);
        let turns = vec![Turn { link: 0, up: false }];
        assert_eq!(left, Acted { turns, routes: false, moved: None });
        assert_eq!((up(&switches), ways(&switches)), ([false, false, true], before));
        assert_eq!(switches.next(0), at(150));
        let back = switches.act(0);
        let turns = vec![Turn { link: 1, up: true }];
        assert_eq!(back, Acted { turns, routes: true, moved: moved(Movement::Attached) });
        assert_eq!(up(&switches), [false, true, true]);
        assert_eq!(ways(&switches), [Some(4), Some(2), Some(3), Some(3)]);
    }

    #[test]
    fn a_warning_comes_before_the_end_of_a_stay_and_no_earlier_than_its_start() {
        let when = |warning| {
            let course = course(switches(Some(warning), None)).into_iter();
            let moves = course.filter_map(|(when, acted)| Some((when, acted.moved?.movement)));
            moves.collect::<Vec<_>>()
        };
        assert_eq!(when(30), [(at(70), Movement::Leaving), (at(150), Movement::Attached)]);
        // The second stay ends at 300 ms.
        let (leaving, attached) = (Movement::Leaving, Movement::Attached);
        assert_eq!(when(120), [(at(0), leaving), (at(150), attached), (at(180), leaving)]);
    }

    #[test]
    fn a_link_is_up_if_neither_an_outage_nor_a_move_holds_it_down() {
        let down = Interval { start: Duration::ZERO, end: Duration::from_millis(170), value: () };
        let outages = Outages::At(Intervals::new([down], None).unwrap());
        let mut switches = switches(None, Some(outages));
        assert_eq!((switches.next(0), switches.next(1)), (at(170), at(100)));
        assert_eq!(switches.act(1).turns, [Turn { link: 0, up: false }]);
        let back = switches.act(1);
        assert!(back.turns.is_empty() && back.routes && back.moved.is_some());
        assert!(!switches.is_up(1));
        assert_eq!(switches.act(0).turns, [Turn { link: 1, up: true }]);
    }
}
