//! Names of links, from which the names of their random streams are made.

use std::collections::BTreeMap;

/// Names the directions of a network's links by their ends, so that a link's random decisions do not
/// depend on which other links there are.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// How many directions between these ends have been named.
    taken: BTreeMap<(String, String), u32>,
}

impl Names {
    /// No link has been named.
    #[must_use]
    pub fn new() -> Names {
        Names::default()
    }

    /// The name of the next link's direction between two nodes: `link.a->b`; of a second link
    /// between the same nodes `link.a->b.2`, and so on.
    pub fn name(&mut self, from: &str, to: &str) -> String {
        let count = self.taken.entry((from.to_owned(), to.to_owned())).or_default();
        *count += 1;
        match count {
            1 => format!("link.{from}->{to}"),
            _ => format!("link.{from}->{to}.{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_between_the_same_nodes_have_names_of_their_own_and_others_do_not_matter() {
        let mut names = Names::new();
        assert_eq!(names.name("a", "b"), "link.a->b");
        assert_eq!(names.name("b", "a"), "link.b->a");
        assert_eq!(names.name("c", "a"), "link.c->a");
        assert_eq!(names.name("a", "b"), "link.a->b.2");
    }
}
