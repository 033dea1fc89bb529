//! Nodes that move: the nodes to which they are attached, and when.

use crate::flow::Flow;
use crate::links::Link;
use crate::node_boxes::Entry;
use crate::nodes::node;
use crate::reading::error::Problem;
use crate::reading::quantity::Warning;
use crate::reading::schedule::Schedule;
use crate::reading::shape::{OrReport as _, table};
use base::Duration;
use link::{Attachments, Intervals};
use toml::Spanned;

table! {
    /// A node.
    pub(crate) struct Settings {
        /// For a node that moves: the node to which it is attached, and when. Of its links to the
        /// named nodes only the present one is up; routes change as soon as it is attached anew.
        attached: Schedule<Place>;
        /// The nodes whose hosts are notified at once when this node is attached anew: this node
        /// for all its connections, other nodes for their connections with it. A list of names; the
        /// node itself if absent.
        notifies: Spanned<Vec<Spanned<String>>>;
        /// How long before the node is detached they are notified, too; on arrival, if the stay is
        /// shorter. `"off"` if absent.
        warning: Spanned<Warning>;
        /// When the host is notified of a change, one of its connections probes the path for all
        /// that have data outstanding; otherwise all probe at once.
        shared_probe: bool = false;
        /// Boxes of the node, in the order in which packets pass them.
        boxes: Vec<Spanned<Entry>>;
    }
}

table! {
    /// Where a node is attached.
    pub(crate) struct Place {
        /// The other end of the link by which it is attached.
        to: Spanned<String>, needed;
    }
}

impl Settings {
    /// Rejects keys that have no effect for a node that does not move.
    fn idle(&self, problems: &mut Vec<Problem>) {
        let notifies = self.notifies.as_ref().map(|notifies| ("notifies", notifies.span()));
        let warning = self.warning.as_ref().map(|warning| ("warning", warning.span()));
        for (key, span) in notifies.into_iter().chain(warning) {
            let message = format!("`{key}` has no effect: the node does not move");
            problems.push(Problem::at(span, message).help("expected `attached`, too"));
        }
    }

    fn warning(&self) -> Result<Option<Duration>, Problem> {
        match &self.warning {
            Some(written) => match *written.get_ref() {
                Warning::Before(Duration::ZERO) => {
                    Err(Problem::at(written.span(), "expected more than 0 s, or \"off\""))
                }
                Warning::Before(before) => Ok(Some(before)),
                Warning::Off => Ok(None),
            },
            None => Ok(None),
        }
    }
}

/// What attachments depend on.
pub(crate) struct Context<'a> {
    pub(crate) nodes: &'a [String],
    pub(crate) links: &'a [Link],
    pub(crate) flows: &'a [Flow],
}

impl Context<'_> {
    /// The attachments of the nodes that move, by the settings of all nodes.
    pub(crate) fn resolve(
        &self,
        settings: &[Settings],
        problems: &mut Vec<Problem>,
    ) -> Vec<Attachments> {
        let moving = (0..).zip(settings).filter_map(|(node, settings)| {
            let Some(schedule) = &settings.attached else {
                settings.idle(problems);
                return None;
            };
            let notifies = self.notifies(node, settings, problems);
            let warning = settings.warning().or_report(problems);
            let links = schedule.resolve(|place| self.link(node, place)).or_report(problems)?;
            self.check(schedule, &links, problems);
            Some(Attachments { node, links, notifies, warning: warning? })
        });
        moving.collect()
    }

    /// The nodes that are notified when a node is attached anew.
    fn notifies(&self, own: usize, settings: &Settings, problems: &mut Vec<Problem>) -> Vec<usize> {
        let Some(written) = &settings.notifies else { return vec![own] };
        let mut notifies = Vec::new();
        for name in written.get_ref() {
            match node(name, self.nodes) {
                Ok(node) if notifies.contains(&node) => {
                    problems.push(Problem::at(name.span(), "expected each node once"));
                }
                Ok(node) => notifies.push(node),
                Err(problem) => problems.push(problem),
            }
        }
        notifies
    }

    /// The link between a node and the place where it is attached.
    fn link(&self, from: usize, place: &Place) -> Result<usize, Problem> {
        // A missing one was reported where it was read.
        let Some(place) = &place.to else { return Ok(0) };
        let to = node(place, self.nodes)?;
        let joins = |link: &Link| [(from, to), (to, from)].contains(&(link.from, link.to));
        self.links.iter().position(joins).ok_or_else(|| {
            let message = format!("there is no link between `{}` and this node", self.nodes[from]);
            Problem::at(place.span(), message).help("is it missing in [[links]]?")
        })
    }

    /// Checks that every flow has a path wherever the node is attached.
    fn check(
        &self,
        schedule: &Schedule<Place>,
        links: &Intervals<usize>,
        problems: &mut Vec<Problem>,
    ) {
        for (&present, place) in links.values().zip(schedule.held()) {
            let usable = |link: usize| link == present || links.values().all(|&l| l != link);
            let cut = self.flows.iter().find(|flow| !self.joined(flow.from, flow.to, usable));
            if let (Some(flow), Some(to)) = (cut, &place.to) {
                let (from, end) = (&self.nodes[flow.from], &self.nodes[flow.to]);
                let message = format!(
                    "there is no path from `{from}` to `{end}` while attached to this node"
                );
                problems.push(Problem::at(to.span(), message));
            }
        }
    }

    /// Whether usable links join two nodes.
    fn joined(&self, from: usize, to: usize, usable: impl Fn(usize) -> bool) -> bool {
        let mut reached = vec![false; self.nodes.len()];
        let mut next = vec![from];
        while let Some(node) = next.pop() {
            if std::mem::replace(&mut reached[node], true) {
                continue;
            }
            for (_, link) in self.links.iter().enumerate().filter(|(index, _)| usable(*index)) {
                match node {
                    _ if node == link.from => next.push(link.to),
                    _ if node == link.to => next.push(link.from),
                    _ => {}
                }
            }
        }
        reached[to]
    }
}
