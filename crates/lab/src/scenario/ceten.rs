//! What the nodes do where a flow has cumulative error notification.

use super::Flow;
use super::quantity::Probability;
use crate::document::Node;
use crate::error::Problem;
use crate::shape::{Shape, number, table, unexpected};
use serde_json::{Value, json};
use tcp::mechanism::{Mechanism, Network, Strategy, Transport};
use toml::Spanned;
use wire::PathForm;

/// What nodes measure of links, and how they tell it. Without meaning unless a flow has cumulative
/// error notification: then all nodes do it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceten {
    /// How they average, in which form they tell, and by which way.
    pub network: Network,
    /// The probability that a node sends a message about a packet, if they tell by messages.
    pub messages: f64,
}

impl Ceten {
    /// The heaviest that a packet may weigh for [`Strategy::Adaptive`].
    const ADAPTIVE: f64 = 1.0 / 64.0;
}

table! {
    /// What nodes measure of links, and how they tell it, where a flow has `eten = "cumulative"`.
    pub(super) struct Table {
        /// The weight of a packet in the average of what a link does with packets, above 0 and at most
        /// 1; 0.5 if absent. The strategy `adaptive` needs at most 1/64.
        a: Spanned<Weight>;
        /// What is told: the probability of survival, if absent; the loss as low, medium (from 1 %) or
        /// high (from 10 %); whether it is 1 % or more; or whether it has gone up or down one of these
        /// levels.
        form: Spanned<PathForm>;
        /// By which way: in the headers of packets, or by messages of the nodes to the sender, one for
        /// each link.
        transport: Transport = Transport::default();
        /// The probability that a node sends such a message about a packet of a flow that wants it.
        messages: Probability = Probability(0.01);
    }
}

/// The weight of one in an average.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight(f64);

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

/// The most of the flight that a loss may leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound(pub(super) f64);

impl Shape for Bound {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Bound> {
        match number(node) {
            Some(bound) if (0.5..=1.0).contains(&bound) => Some(Bound(bound)),
            _ => unexpected(node, "a number from 0.5 to 1", problems),
        }
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0.5, "maximum": 1, "default": 1 })
    }
}

/// Whether packets tell probabilities, which a code may follow.
pub(super) fn tells_probabilities(table: Option<&Table>) -> bool {
    table.is_none_or(|table| {
        let exact = table.form.as_ref().is_none_or(|form| form.get_ref().is_exact());
        exact && table.transport == Transport::Header
    })
}

impl Flow {
    /// Whether it wants nodes to measure their links.
    #[must_use]
    pub fn is_metered(&self) -> bool {
        self.sender.mechanisms.iter().any(|one| matches!(one, Mechanism::CumulativeEten(_)))
    }
}

/// The settings, of which all flows that they concern are told.
pub(super) fn resolve(
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
        let message = "messages tell probabilities: expected another form only with `transport = \
                       \"header\"`";
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
