//! How a window grows in congestion avoidance: the name of an increase function, or a table with
//! its settings.

use super::quantity::{Positive, Written};
use super::tagged::{self, Tagged};
use super::{Flow, Scenario};
use crate::document::Node;
use crate::error::Problem;
use crate::ideal::Way;
use crate::shape::{Shape, unexpected, word};
use base::Duration;
use core::cell::LazyCell;
use serde_json::{Value, json};
use tcp::congestion::{Congestion, Fast, Increase, RoundTrip};
use toml::Spanned;

impl Tagged for Increase {
    const TAG: &'static str = "policy";

    fn names() -> Vec<&'static str> {
        Increase::ALL.iter().map(|(name, _)| *name).collect()
    }

    fn setting(key: &str) -> Option<Value> {
        let (mut schema, description) = match key {
            "k" => (Positive::schema(), "Segments per window."),
            "c" => (Positive::schema(), "Segments per second squared."),
            "nit" => (
                Written::<Duration>::schema(),
                "The interval in which a window grows by a segment.",
            ),
            "rtt" => (
                json!({ "anyOf": [
                    { "enum": ["smoothed", "propagation"] },
                    Written::<Duration>::schema(),
                ] }),
                "Which round trip counts: the smoothed one, the delays of the links there and back \
                 at the start of the run, or what is written.",
            ),
            "cap" => (
                json!({ "anyOf": [{ "const": "off" }, Positive::schema()] }),
                "Segments that an acknowledgment adds at most.",
            ),
            "fast" => (name_or_table::<Fast>(), "What grows where the path has room for it."),
            _ => return None,
        };
        schema["description"] = description.into();
        Some(schema)
    }
}

impl Shape for Increase {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Increase> {
        if node.get_ref().is_table() {
            return tagged::read(node, problems);
        }
        let names = Increase::names();
        if !node.get_ref().is_str() {
            let name = names.first().copied().unwrap_or_default();
            let expected = format!("a name, such as \"{name}\", or {{ policy = \"{name}\", ... }}");
            return unexpected(node, &expected, problems);
        }
        let named = |name: &str| Increase::ALL.iter().find(|(known, _)| *known == name);
        word(node, &names, named, problems).map(|(_, increase)| *increase)
    }

    fn schema() -> Value {
        name_or_table::<Increase>()
    }
}

fn name_or_table<T: Tagged>() -> Value {
    let mut forms = vec![json!({ "enum": T::names() })];
    forms.extend(tagged::schemas::<T>());
    json!({ "anyOf": forms })
}

impl Tagged for Fast {
    const TAG: &'static str = Increase::TAG;

    fn names() -> Vec<&'static str> {
        Fast::ALL.iter().map(|(name, _)| *name).collect()
    }

    fn setting(key: &str) -> Option<Value> {
        Increase::setting(key)
    }
}

/// The increase function of a flow.
pub(super) fn resolve(
    written: Option<Spanned<Increase>>,
    congestion: Congestion,
) -> Result<Increase, Problem> {
    match (written, congestion) {
        (None, _) => Ok(Increase::default()),
        (Some(increase), Congestion::Aimd) => Ok(increase.into_inner()),
        (Some(increase), other) => {
            let name = Congestion::ALL.iter().find(|(_, one)| *one == other).map(|(name, _)| name);
            let message = format!(
                "the window of `{}` grows in its own way: expected an increase function with \
                 `congestion = \"aimd\"` only",
                name.unwrap_or(&"")
            );
            Err(Problem::at(increase.span(), message))
        }
    }
}

impl Scenario {
    /// Tells increase functions that go by the propagation delay of the path what that is.
    pub(super) fn tell_propagation(&mut self) {
        let mut flows = core::mem::take(&mut self.flows);
        let routes = LazyCell::new(|| self.routes());
        let delay = |from, to| {
            let path = routes.path(self, from, to);
            Way::over(path.map(|hop| self.direction(hop))).delay()
        };
        for Flow { from, to, sender, receiver, .. } in &mut flows {
            for end in [sender, receiver] {
                if let Some(rtt @ RoundTrip::Propagation) = end.increase.round_trip() {
                    *rtt = RoundTrip::Given(delay(*from, *to) + delay(*to, *from));
                }
            }
        }
        self.flows = flows;
    }
}
