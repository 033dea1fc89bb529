//! From `[[links]]` to links.

mod down;
mod errors;
mod file;
mod impairments;
mod queue;
mod rate;

pub(super) use down::Fortune;
pub(super) use file::Link as Written;

use super::{Link, node};
use crate::error::Problem;
use crate::files::Files;
use crate::shape::{Both, Told as _};
use file::{Direction, Directions, Ends, Pair};
use impairments::{Jitter, Reordering, variation};
use link::{ErrorModel, Impairments, Intervals};
use toml::Spanned;

/// The links, checked; those with which nothing is wrong.
pub(super) fn resolve(
    links: Vec<Written>,
    nodes: &[String],
    files: &Files,
    problems: &mut Vec<Problem>,
) -> Vec<Link> {
    let mut resolved: Vec<Link> = Vec::with_capacity(links.len());
    for Written(Both(Ends { between: ends }, Both(common, directions))) in links {
        let span = ends.as_ref().map(Spanned::span);
        let ends = ends.and_then(|ends| between(&ends, nodes, problems));
        let Directions { forward, backward, outages, when_down } = directions;
        let forward = direction(forward.as_ref(), &common, files, problems);
        let backward = direction(backward.as_ref(), &common, files, problems);
        let (Some((from, to)), Some(forward), Some(backward)) = (ends, forward, backward) else {
            continue;
        };
        let when_down = when_down.map(|written| written.0);
        let [forward, backward] =
            [forward, backward].map(|direction| link::Config { when_down, ..direction });
        let link = Link { from, to, forward, backward, outages: outages.map(|o| o.0) };
        let ends = |l: &Link| (l.from.min(l.to), l.from.max(l.to));
        if resolved.iter().any(|other| ends(other) == ends(&link)) {
            let message = "there is a link between these nodes already".to_owned();
            problems.push(
                Problem { span, message, ..Problem::default() }
                    .help("a route takes one link; a second one beside it would never be used"),
            );
        }
        resolved.push(link);
    }
    resolved
}

/// A direction by its own settings, and by the common ones where it has none.
fn direction(
    own: Option<&Direction>,
    common: &Direction,
    files: &Files,
    problems: &mut Vec<Problem>,
) -> Option<link::Config> {
    macro_rules! written {
        ($key:ident) => {
            own.and_then(|own| own.$key.as_ref()).or(common.$key.as_ref())
        };
    }
    let queue = written!(queue).map_or(Ok(Default::default()), queue::resolve).told(problems);
    let errors = |errors| errors::resolve(errors, files);
    let errors = written!(errors).map_or(Ok(ErrorModel::default()), errors).told(problems);
    let changes = written!(changes).map(|changes| changes.get_ref().resolve(|c| Ok(variation(c))));
    let variations = changes.unwrap_or_else(|| Ok(Intervals::default())).told(problems);
    let impairments = Impairments {
        reordering: written!(reordering).map(Reordering::resolve).unwrap_or_default(),
        duplication: written!(duplication).map_or(0.0, |p| p.0),
        jitter: written!(jitter).map(Jitter::resolve).unwrap_or_default(),
    };
    let rate = written!(rate).and_then(|rate| rate.resolve(files).told(problems));
    let (queue, discipline) = queue?;
    let (rate, trace) = rate?;
    let variations = variations?;
    if let (Some(_), Some(changes)) = (&trace, written!(changes))
        && variations.values().any(|variation| variation.rate.is_some())
    {
        let message = "expected no other rate: the link transmits when its trace says so";
        problems.push(Problem::at(changes.span(), message));
    }
    Some(link::Config {
        rate,
        trace,
        delay: written!(delay)?.0,
        queue,
        discipline,
        errors: errors?,
        impairments,
        variations,
        ..link::Config::default()
    })
}

fn between(
    ends: &Spanned<Pair>,
    nodes: &[String],
    problems: &mut Vec<Problem>,
) -> Option<(usize, usize)> {
    let [a, b] = &ends.get_ref().0;
    let (from, to) = (node(a, nodes).told(problems), node(b, nodes).told(problems));
    let (from, to) = (from?, to?);
    if from == to {
        problems.push(Problem::at(ends.span(), "expected two different nodes"));
        return None;
    }
    Some((from, to))
}
