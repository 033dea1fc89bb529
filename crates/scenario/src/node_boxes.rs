//! `boxes` of a node: boxes that stand in it by themselves.

use crate::attacks;
use crate::loss_meters;
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::nearest::did_you_mean;
use crate::reading::shape::Shape;
use crate::reading::tagged;
use middlebox::BoxSettings;
use serde_json::{Value, json};
use toml::Spanned;

/// One of `boxes`.
#[derive(Debug)]
pub(crate) struct Entry(BoxSettings);

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
    node: usize,
    boxes: &[Spanned<Entry>],
    context: &attacks::Context<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<BoxSettings> {
    let flows = context.flows;
    for entry in boxes {
        let Entry(settings) = entry.get_ref();
        if let BoxSettings::LossMeter(meter) = settings
            && let Err(message) = loss_meters::check_meter(meter, flows)
        {
            problems.push(Problem::at(entry.span(), message));
        }
        if let Err(message) = context.check(node, settings) {
            problems.push(Problem::at(entry.span(), message));
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
