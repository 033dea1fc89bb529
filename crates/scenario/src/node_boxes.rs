//! `boxes` of a node: boxes that stand in it by themselves.

use crate::flow::Flow;
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::nearest::did_you_mean;
use crate::reading::shape::Shape;
use crate::reading::tagged::{self, Tagged};
use crate::reading::words::schema;
use middlebox::{BoxSettings, Headers, Transport};
use serde_json::{Value, json};
use toml::Spanned;

/// One of `boxes`.
#[derive(Debug)]
pub(crate) struct Entry(BoxSettings);

impl Tagged for BoxSettings {
    const TAG: &'static str = "box";

    fn names() -> Vec<&'static str> {
        BoxSettings::NAMES.to_vec()
    }

    fn setting(key: &str) -> Option<Value> {
        let described = |mut schema: Value, description: &str| {
            schema["description"] = json!(description);
            schema
        };
        Some(match key {
            "flows" => described(
                json!({ "type": "array", "items": { "type": "string" } }),
                "The names of the flows that it is for; all if the list is empty.",
            ),
            "headers" => described(schema::<Headers>(), "What it can read of a corrupted packet."),
            "transport" => described(schema::<Transport>(), "How receivers are notified."),
            "notice_size" => described(
                json!({ "type": "integer", "minimum": 56 }),
                "The size of a notice, bytes of the whole packet.",
            ),
            "mss" => described(
                json!({ "type": "integer", "minimum": 48 }),
                "The largest maximum segment size that SYNs announce behind it, bytes.",
            ),
            _ => return None,
        })
    }
}

impl Shape for Entry {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Entry> {
        tagged::read(node, problems).map(Entry)
    }

    fn schema() -> Value {
        json!({ "oneOf": tagged::schemas::<BoxSettings>() })
    }
}

/// The boxes of a node, checked against the flows.
pub(crate) fn resolve(
    boxes: &[Spanned<Entry>],
    flows: &[Flow],
    problems: &mut Vec<Problem>,
) -> Vec<BoxSettings> {
    for entry in boxes {
        let Entry(settings) = entry.get_ref();
        if let Err((key, expected)) = settings.check() {
            problems.push(Problem::at(entry.span(), format!("`{key}`: {expected}")));
        }
        for name in settings.flows() {
            if flows.iter().any(|flow| flow.name == *name) {
                continue;
            }
            let known: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
            let problem = Problem::at(entry.span(), format!("there is no flow `{name}`"));
            problems.push(match did_you_mean(name, &known) {
                Some(help) => problem.help(help),
                None => problem.help(format!("the flows are: {}", known.join(", "))),
            });
        }
    }
    boxes.iter().map(|entry| entry.get_ref().0.clone()).collect()
}
