//! Static shortest-path routes over links: fewest hops, ties to the link declared first.

use std::collections::VecDeque;

/// For every node and destination, the link to take.
#[derive(Clone, Debug)]
pub struct Routes {
    nodes: usize,
    /// The next link; [`NOWHERE`] without a path, or at the destination.
    next: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Routes {
    /// The routes between this number of nodes over the `usable` ones of `links`, each from one
    /// node to another.
    pub fn shortest(
        nodes: usize,
        links: impl Iterator<Item = (usize, usize)> + Clone,
        usable: impl Fn(usize) -> bool,
    ) -> Routes {
        let mut next = vec![NOWHERE; nodes * nodes];
        for destination in 0..nodes {
            // Breadth first, backwards from the destination.
            let mut reached = vec![false; nodes];
            reached[destination] = true;
            let mut queue = VecDeque::from([destination]);
            while let Some(node) = queue.pop_front() {
                for (link, (from, to)) in links.clone().enumerate() {
                    if to == node && !reached[from] && usable(link) {
                        reached[from] = true;
                        next[from * nodes + destination] = link as u32;
                        queue.push_back(from);
                    }
                }
            }
        }
        Routes { nodes, next }
    }

    /// The link from `node` towards `destination`; `None` without a path, or at the destination.
    #[must_use]
    #[inline]
    pub fn next(&self, node: usize, destination: usize) -> Option<u32> {
        if destination >= self.nodes {
            return None;
        }
        Some(self.next[node * self.nodes + destination]).filter(|&link| link != NOWHERE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_take_the_fewest_hops() {
        // 0 - 1 - 2 - 3, and a short cut from 0 to 2.
        let links = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (0, 2), (2, 0)];
        let routes = Routes::shortest(4, links.into_iter(), |_| true);
        assert_eq!(routes.next(0, 3), Some(6));
        assert_eq!(routes.next(3, 0), Some(5));
        assert_eq!(routes.next(1, 3), Some(2));
        assert_eq!(routes.next(2, 2), None);
    }

    #[test]
    fn a_link_that_is_not_usable_is_gone_round() {
        let links = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)];
        let routes = Routes::shortest(3, links.into_iter(), |link| link < 4);
        assert_eq!(routes.next(0, 2), Some(0));
    }

    #[test]
    fn an_island_has_no_route() {
        let routes = Routes::shortest(3, [(0, 1), (1, 0)].into_iter(), |_| true);
        assert_eq!(routes.next(0, 2), None);
        assert_eq!(routes.next(0, 99), None);
    }
}
