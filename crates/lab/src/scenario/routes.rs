//! The ways of packets, where nobody moves.

use super::{Link, Scenario};

/// For every node, the link towards every other: fewest hops, ties to the link declared first, as
/// in the simulator.
#[derive(Clone, Debug)]
pub struct Routes(sim::Routes);

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The link's index.
    pub link: usize,
    /// Whether it is taken in its forward direction.
    pub forward: bool,
}

impl Scenario {
    /// The ways over all links.
    #[must_use]
    pub fn routes(&self) -> Routes {
        Routes::over(self.nodes.len(), &self.links)
    }

    /// The direction of a link that a hop takes.
    pub(crate) fn direction(&self, hop: Hop) -> &link::Config {
        let Link { forward, backward, .. } = &self.links[hop.link];
        if hop.forward { forward } else { backward }
    }
}

impl Routes {
    /// The ways between so many nodes over links.
    pub(crate) fn over(nodes: usize, links: &[Link]) -> Routes {
        let ends = |link: &Link| [(link.from, link.to), (link.to, link.from)];
        Routes(sim::Routes::shortest(nodes, links.iter().flat_map(ends), |_| true))
    }

    /// The link from one node towards another; `None` if there is no way, or it is there.
    #[must_use]
    pub fn next(&self, node: usize, destination: usize) -> Option<Hop> {
        let direction = self.0.next(node, destination)? as usize;
        Some(Hop { link: direction / 2, forward: direction.is_multiple_of(2) })
    }

    /// The whole way from one node to another.
    pub fn path<'a>(
        &'a self,
        scenario: &'a Scenario,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = Hop> + 'a {
        self.hops(&scenario.links, from, to)
    }

    /// The same over these links.
    pub(crate) fn hops<'a>(
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

    /// The nodes on the way, with both ends.
    pub(crate) fn nodes(&self, links: &[Link], from: usize, to: usize) -> Vec<usize> {
        let behind = self.hops(links, from, to).map(|hop| hop.end(links));
        std::iter::once(from).chain(behind).collect()
    }
}

impl Hop {
    /// The node where it ends.
    fn end(self, links: &[Link]) -> usize {
        let Link { from, to, .. } = &links[self.link];
        if self.forward { *to } else { *from }
    }
}
