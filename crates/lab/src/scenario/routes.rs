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
        let ends = |link: &Link| [(link.from, link.to), (link.to, link.from)];
        let directions = self.links.iter().flat_map(ends);
        Routes(sim::Routes::shortest(self.nodes.len(), directions, |_| true))
    }

    /// The direction of a link that a hop takes.
    pub(crate) fn direction(&self, hop: Hop) -> &link::Config {
        let Link { forward, backward, .. } = &self.links[hop.link];
        if hop.forward { forward } else { backward }
    }
}

impl Routes {
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
        let mut node = from;
        std::iter::from_fn(move || {
            let hop = self.next(node, to)?;
            let Link { from, to, .. } = &scenario.links[hop.link];
            node = if hop.forward { *to } else { *from };
            Some(hop)
        })
    }
}
