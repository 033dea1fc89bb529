//! Nodes that move: to whom they are attached, and when.

use super::quantity::Warning;
use super::schedule::Schedule;
use super::{Attachments, Flow, Link, node};
use crate::error::Problem;
use crate::shape::{Told as _, table};
use base::Duration;
use link::Intervals;
use toml::Spanned;

table! {
    /// A node.
    pub(super) struct Settings {
        /// For a node that moves: to whom it is attached, and when. Its links with those that are
        /// named are down but for the present one; routes follow as soon as it is attached anew.
        attached: Schedule<Place>;
        /// The nodes whose hosts hear of it at once when this one is attached anew, and may tell
        /// their connections: this one for all that it has, others for those with it. A list of
        /// names; the node itself if absent.
        tells: Spanned<Vec<Spanned<String>>>;
        /// They hear of it so long before the node is detached, too; on arrival, if the stay is
        /// shorter. `"off"` if absent.
        warning: Spanned<Warning>;
        /// When the host hears of a change, let one of its connections probe the path for all that
        /// have data outstanding; otherwise all do so at once.
        shared_probe: bool = false;
    }
}

table! {
    /// Where a node is attached.
    pub(super) struct Place {
        /// The other end of the link by which it is attached.
        to: Spanned<String>, needed;
    }
}

impl Settings {
    /// Refuses what means nothing for a node that does not move.
    fn idle(&self, problems: &mut Vec<Problem>) {
        let tells = self.tells.as_ref().map(|tells| ("tells", tells.span()));
        let warning = self.warning.as_ref().map(|warning| ("warning", warning.span()));
        for (key, span) in tells.into_iter().chain(warning) {
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
pub(super) struct Context<'a> {
    pub(super) nodes: &'a [String],
    pub(super) links: &'a [Link],
    pub(super) flows: &'a [Flow],
}

impl Context<'_> {
    /// The attachments of the nodes that move, by the settings of all nodes.
    pub(super) fn resolve(
        &self,
        settings: &[Settings],
        problems: &mut Vec<Problem>,
    ) -> Vec<Attachments> {
        let moving = (0..).zip(settings).filter_map(|(node, settings)| {
            let Some(schedule) = &settings.attached else {
                settings.idle(problems);
                return None;
            };
            let tells = self.tells(node, settings, problems);
            let warning = settings.warning().told(problems);
            let links = schedule.resolve(|place| self.link(node, place)).told(problems)?;
            self.check(schedule, &links, problems);
            Some(Attachments { node, links, tells, warning: warning? })
        });
        moving.collect()
    }

    /// The nodes that hear of it when a node is attached anew.
    fn tells(&self, own: usize, settings: &Settings, problems: &mut Vec<Problem>) -> Vec<usize> {
        let Some(written) = &settings.tells else { return vec![own] };
        let mut tells = Vec::new();
        for name in written.get_ref() {
            match node(name, self.nodes) {
                Ok(node) if tells.contains(&node) => {
                    problems.push(Problem::at(name.span(), "expected each node once"));
                }
                Ok(node) => tells.push(node),
                Err(problem) => problems.push(problem),
            }
        }
        tells
    }

    /// The link between a node and the place where it is attached.
    fn link(&self, from: usize, place: &Place) -> Result<usize, Problem> {
        // One that is not there was told of where it was read.
        let Some(place) = &place.to else { return Ok(0) };
        let to = node(place, self.nodes)?;
        let joins = |link: &Link| [(from, to), (to, from)].contains(&(link.from, link.to));
        self.links.iter().position(joins).ok_or_else(|| {
            let message = format!("there is no link between `{}` and here", self.nodes[from]);
            Problem::at(place.span(), message).help("is it missing in [[links]]?")
        })
    }

    /// Makes sure that there is a way for every flow wherever the node is attached.
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
                let message =
                    format!("there is no way from `{from}` to `{end}` while attached here");
                problems.push(Problem::at(to.span(), message));
            }
        }
    }

    /// Whether there is a way over usable links.
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
