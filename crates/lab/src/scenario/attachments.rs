//! Nodes that move: to whom they are attached, and when.

use super::schedule::Schedule;
use super::{Attachments, Flow, Link, node};
use crate::error::Problem;
use crate::shape::{Told as _, table};
use link::Intervals;
use toml::Spanned;

table! {
    /// A node.
    pub(super) struct Settings {
        /// For a node that moves: to whom it is attached, and when. Its links with those that are
        /// named are down but for the present one; routes follow as soon as it is attached anew.
        attached: Schedule<Place>;
    }
}

table! {
    /// Where a node is attached.
    pub(super) struct Place {
        /// The other end of the link by which it is attached.
        to: Spanned<String>, needed;
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
            let schedule = settings.attached.as_ref()?;
            let links = schedule.resolve(|place| self.link(node, place)).told(problems)?;
            self.check(schedule, &links, problems);
            Some(Attachments { node, links })
        });
        moving.collect()
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
