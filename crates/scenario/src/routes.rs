//! The routes of packets at the start of a run.

use crate::links::Link;
use link::{Attachments, Switches};

/// For every node, the link towards every other node: fewest hops, ties to the link declared first,
/// as in the simulator.
#[derive(Clone, Debug)]
pub struct Routes(link::Routes);

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The link's index.
    pub link: usize,
    /// Whether it is taken in its forward direction.
    pub forward: bool,
}

impl Routes {
    /// The routes between this many nodes over links.
    #[must_use]
    pub fn over(nodes: usize, links: &[Link]) -> Routes {
        Routes::at_start(nodes, links, &[])
    }

    /// The routes while nodes that move are where they are at the start.
    pub(crate) fn at_start(nodes: usize, links: &[Link], attachments: &[Attachments]) -> Routes {
        let ends = |link: &Link| [(link.from, link.to), (link.to, link.from)];
        let switches = Switches::new(links.len(), [], attachments.iter().cloned());
        Routes(switches.routes(nodes, links.iter().flat_map(ends)))
    }

    /// The link from one node towards another; `None` if there is no path, or the nodes are the
    /// same.
    #[must_use]
    pub fn next(&self, node: usize, destination: usize) -> Option<Hop> {
        let direction = self.0.next(node, destination)? as usize;
        Some(Hop { link: direction / 2, forward: direction.is_multiple_of(2) })
    }

    /// The hops of the path from one node to another.
    pub fn hops<'a>(
        &'a self,
        links: &'a [Link],
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = Hop> + 'a {
        let mut node = from;
        std::iter::from_fn(move || {
            let hop = self.next(node, to)?;
            node = hop.end(links);
            Some(hop)
        })
    }

    /// The nodes on the path, with both ends.
    #[must_use]
    pub fn nodes(&self, links: &[Link], from: usize, to: usize) -> Vec<usize> {
        let behind = self.hops(links, from, to).map(|hop| hop.end(links));
        std::iter::once(from).chain(behind).collect()
    }

    /// The number of links from one node to another; `None` if there is no path.
    pub(crate) fn distance(&self, links: &[Link], from: usize, to: usize) -> Option<u32> {
        let way = self.nodes(links, from, to);
        (way.last() == Some(&to)).then(|| way.len() as u32 - 1)
    }
}

impl Hop {
    /// The direction of the link, of these, that it takes.
    pub(crate) fn direction(self, links: &[Link]) -> &link::Config {
        let Link { forward, backward, .. } = &links[self.link];
        if self.forward { forward } else { backward }
    }

    /// The node where it ends.
    fn end(self, links: &[Link]) -> usize {
        let Link { from, to, .. } = &links[self.link];
        if self.forward { *to } else { *from }
    }
}
