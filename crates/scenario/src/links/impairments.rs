//! Impairments: reordering, jitter, and changes of rate and delay.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Probability, Written};
use crate::reading::schedule::Schedule;
use crate::reading::shape::{Shape, table, unexpected};
use base::{Duration, Rate};
use link::JitterShape;
use serde_json::{Value, json};

table! {
    /// Reordering: some packets are delayed, and others overtake them.
    pub(super) struct Reordering {
        /// The probability that a packet is delayed, independently of others.
        probability: Probability, needed;
        /// The additional delay.
        delay: Written<Duration>, needed;
    }
}

impl Reordering {
    pub(super) fn resolve(&self) -> link::Reordering {
        // A missing value was reported where it was read.
        let probability = self.probability.map_or(0.0, |p| p.0);
        link::Reordering { probability, delay: self.delay.map_or(Duration::ZERO, |d| d.0) }
    }
}

table! {
    /// A random delay of every packet, independent of others, in addition to that of the link.
    pub(super) struct JitterTable {
        /// The upper bound; the mean is half of it.
        bound: Written<Duration>, needed;
        /// The distribution from 0 to the bound: `uniform`, if absent, or `bell`, with a standard
        /// deviation of a seventh of the bound.
        shape: JitterShape;
        /// Whether packets may overtake each other. Otherwise each waits for those before it, and
        /// the mean delay is longer.
        reorders: bool = link::Jitter::default().reorders;
    }
}

/// The upper bound of a random delay, or a table with it.
#[derive(Debug)]
pub(super) struct Jitter(JitterTable);

impl Jitter {
    pub(super) fn resolve(&self) -> link::Jitter {
        let JitterTable { bound, shape, reorders } = self.0;
        let bound = bound.map_or(Duration::ZERO, |bound| bound.0);
        link::Jitter { bound, shape: shape.unwrap_or_default(), reorders }
    }
}

impl Shape for Jitter {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Jitter> {
        if node.get_ref().is_table() {
            return JitterTable::read(node, problems).map(Jitter);
        }
        if !node.get_ref().is_str() {
            let expected = "a duration in quotes, such as \"5 ms\", or { bound = \"5 ms\", ... }";
            return unexpected(node, expected, problems);
        }
        let bound = Some(Written::read(node, problems)?);
        Some(Jitter(JitterTable { bound, ..JitterTable::default() }))
    }

    fn schema() -> Value {
        json!({ "anyOf": [Written::<Duration>::schema(), JitterTable::schema()] })
    }
}

table! {
    /// Another rate or delay; the link's own, where one is absent.
    pub(super) struct Variation {
        /// The rate.
        rate: Written<Rate>;
        /// The propagation delay, one way.
        delay: Written<Duration>;
    }
}

/// Times with another rate or delay.
pub(super) type Changes = Schedule<Variation>;

pub(super) fn variation(written: &Variation) -> link::Variation {
    let Variation { rate, delay } = written;
    link::Variation { rate: rate.map(|rate| rate.0), delay: delay.map(|delay| delay.0) }
}
