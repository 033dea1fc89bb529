//! `[ceten]`: what nodes measure of links for flows with Cumulative ETEN, and how they report it.

use crate::flow::Flow;
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::Probability;
use crate::reading::shape::{Shape, number, table, unexpected};
use serde_json::{Value, json};
use tcp::mechanism::{Mechanism, Network, Strategy, Transport};
use toml::Spanned;
use wire::PathForm;

/// What nodes measure of links, and how they report it. All nodes do so if a flow has Cumulative
/// ETEN; otherwise it has no effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceten {
    /// How they average, and in which form and by which transport they report.
    pub network: Network,
    /// The probability that a node sends a message about a packet, if they report by messages.
    pub messages: f64,
}

impl Ceten {
    /// The largest weight of a packet that [`Strategy::Adaptive`] can use.
    const ADAPTIVE: f64 = 1.0 / 64.0;
}

table! {
    /// What nodes measure of links, and how they report it, where a flow has `eten = "cumulative"`.
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

/// Whether packet headers report probabilities, which a code may follow.
pub(crate) fn reports_probabilities(table: Option<&Table>) -> bool {
    table.is_none_or(|table| {
        let exact = table.form.as_ref().is_none_or(|form| form.get_ref().is_exact());
        exact && table.transport == Transport::Header
    })
}

/// The settings, checked, and passed on to the flows with Cumulative ETEN.
pub(crate) fn resolve(
    table: Option<Table>,
    flows: &mut [Flow],
    problems: &mut Vec<Problem>,
) -> Ceten {
    let table = table.unwrap_or_default();
    let written = table.a.as_ref().map(Spanned::span);
    let standard = Network::default();
    let a = table.a.map_or(standard.a, |a| a.into_inner().0);
    if let (Transport::Traceback, Some(form)) = (table.transport, &table.form)
        && !form.get_ref().is_exact()
    {
        let message = "messages report probabilities: expected this form with `transport = \
                       \"header\"` only";
        problems.push(Problem::at(form.span(), message));
    }
    let form = table.form.map(Spanned::into_inner).unwrap_or_default();
    let network = Network { a, form, transport: table.transport };
    let mechanisms = flows.iter_mut().flat_map(|flow| {
        let Flow { sender, receiver, .. } = flow;
        sender.mechanisms.iter_mut().chain(&mut receiver.mechanisms)
    });
    let mut adaptive = false;
    for mechanism in mechanisms {
        if let Mechanism::CumulativeEten(ceten) = mechanism {
            adaptive |= ceten.strategy == Strategy::Adaptive;
            ceten.set_network(network);
        }
    }
    if adaptive && a > Ceten::ADAPTIVE {
        // The share of one average in another says nothing if either remembers two packets.
        let message = "the strategy `adaptive` of a flow compares averages over many packets: \
                       expected `a` of [ceten] to be at most 0.015625 (1/64)";
        problems.push(Problem { span: written, message: message.to_owned(), ..Problem::default() });
    }
    Ceten { network, messages: table.messages.0 }
}
