//! `[ceten]`: what nodes measure of links for flows with `eten = "cumulative"`, and how they report it.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::Probability;
use crate::reading::shape::{Shape, number, table, unexpected};
use core::ops::Range;
use middlebox::LossMeter;
use serde_json::{Value, json};
use tcp::mechanism::{CumulativeEten, Transport};
use toml::Spanned;
use wire::PathForm;

/// The settings of nodes, and of the flows with `eten = "cumulative"`.
pub(crate) struct Ceten {
    /// The box of every node, if there is such a flow.
    pub(crate) meter: LossMeter,
    pub(crate) transport: Transport,
    /// Where the weight is written.
    pub(crate) a: Option<Range<usize>>,
}

table! {
    /// What nodes measure of links, and how they report it, where a flow has `eten = "cumulative"`:
    /// the settings of a box `loss-meter` in every node, and of the mechanism `cumulative-eten`.
    pub(crate) struct Table {
        /// The weight of one packet in the average of a link's losses, above 0 and at most 1; 0.5
        /// if absent. The strategy `adaptive` needs at most 1/64.
        a: Spanned<Weight>;
        /// What is reported: the probability of survival, if absent; the loss as low, medium (from
        /// 1 %) or high (from 10 %); whether the loss is 1 % or more; or whether it has gone up or
        /// down by one of these levels.
        form: Spanned<PathForm>;
        /// How it is reported: in the headers of packets, or by messages of the nodes to the
        /// sender, one for each link.
        transport: Transport = Transport::default();
        /// The probability that a node sends such a message about a packet of a flow with
        /// Cumulative ETEN.
        messages: Probability = Probability(0.01);
    }
}

/// The weight of one packet in an average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight(f64);

impl Shape for Weight {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Weight> {
        match number(node) {
            Some(weight) if weight > 0.0 && weight <= 1.0 => Some(Weight(weight)),
            _ => unexpected(node, "a number above 0 and at most 1", problems),
        }
    }

    fn schema() -> Value {
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 })
    }
}

/// The settings, checked.
pub(crate) fn resolve(table: Option<Table>, problems: &mut Vec<Problem>) -> Ceten {
    let table = table.unwrap_or_default();
    if let (Transport::Traceback, Some(form)) = (table.transport, &table.form)
        && !form.get_ref().is_exact()
    {
        let message = "messages report probabilities: expected this form with `transport = \
                       \"header\"` only";
        problems.push(Problem::at(form.span(), message));
    }
    let standard = LossMeter::default();
    let messages = match table.transport {
        Transport::Header => 0.0,
        Transport::Traceback => table.messages.0,
    };
    Ceten {
        transport: table.transport,
        a: table.a.as_ref().map(Spanned::span),
        meter: LossMeter {
            a: table.a.map_or(standard.a, |a| a.into_inner().0),
            form: table.form.map_or(standard.form, Spanned::into_inner),
            messages,
            ..standard
        },
    }
}

impl Ceten {
    /// Whether packet headers report probabilities, which a code may follow.
    pub(crate) fn reports_probabilities(&self) -> bool {
        self.meter.form.is_exact() && self.transport == Transport::Header
    }

    /// The mechanism of the ends of a flow, whose other settings are these, with those of the nodes.
    pub(crate) fn of_ends(&self, mut settings: CumulativeEten) -> CumulativeEten {
        (settings.a, settings.form) = (self.meter.a, self.meter.form);
        settings.transport = self.transport;
        settings
    }
}
