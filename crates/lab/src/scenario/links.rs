//! From `[[links]]` to links.

use super::quantity::{Probability, Written};
use super::{Link, file, node};
use crate::error::Problem;
use crate::shape::Told as _;
use base::units::Size;
use link::{ErrorModel, Queue, Uniform};
use toml::Spanned;

/// The links, checked; those with which nothing is wrong.
pub(super) fn resolve(
    links: Vec<file::Link>,
    nodes: &[String],
    problems: &mut Vec<Problem>,
) -> Vec<Link> {
    let mut resolved: Vec<Link> = Vec::with_capacity(links.len());
    for link in links {
        let span = link.between.as_ref().map(Spanned::span);
        let Some(link) = self::link(link, nodes, problems) else { continue };
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

fn link(link: file::Link, nodes: &[String], problems: &mut Vec<Problem>) -> Option<Link> {
    let ends = link.between.and_then(|ends| between(&ends, nodes, problems));
    let queue = queue(link.queue).told(problems);
    let errors = errors(link.errors).told(problems);
    let ((from, to), (forward, backward)) = (ends?, errors?);
    let (rate, delay) = (link.rate?.0, link.delay?.0);
    Some(Link { from, to, rate, delay, queue: queue?, forward, backward })
}

fn between(
    ends: &Spanned<file::Pair>,
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

fn queue(queue: Option<Spanned<Written<Size>>>) -> Result<Queue, Problem> {
    let Some(queue) = queue else { return Ok(Queue::Unlimited) };
    match queue.get_ref().0 {
        Size::Packets(0) | Size::Bytes(0) => {
            Err(Problem::at(queue.span(), "nothing would ever pass: expected more than 0")
                .help("leave `queue` out for one without a limit"))
        }
        Size::Packets(packets) => match u32::try_from(packets) {
            Ok(packets) => Ok(Queue::Packets(packets)),
            Err(_) => Err(Problem::at(queue.span(), "expected fewer than 2^32 packets")),
        },
        Size::Bytes(bytes) => Ok(Queue::Bytes(bytes)),
        Size::Segments(_) => Err(Problem::at(
            queue.span(),
            "a queue holds packets: expected a size such as \"50 packets\" or \"64 KiB\"",
        )),
    }
}

/// Forward and backward.
fn errors(errors: Option<Spanned<file::Errors>>) -> Result<(ErrorModel, ErrorModel), Problem> {
    let Some(errors) = errors else { return Ok(Default::default()) };
    let span = errors.span();
    let file::Errors { bit, packet, forward, backward } = errors.into_inner();
    let both = bit.is_some() || packet.is_some();
    let each = forward.is_some() || backward.is_some();
    if both && each {
        return Err(Problem::at(
            span,
            "expected errors of both directions (`bit`, `packet`) or of each (`forward`, \
             `backward`), not a mixture",
        ));
    }
    if both {
        let model = model(bit, packet);
        return Ok((model.clone(), model));
    }
    let direction = |errors: Option<file::DirectionErrors>| {
        errors.map_or_else(ErrorModel::default, |errors| model(errors.bit, errors.packet))
    };
    Ok((direction(forward), direction(backward)))
}

fn model(bit: Option<Probability>, packet: Option<Probability>) -> ErrorModel {
    let written = |p: Option<Probability>| p.map_or(0.0, |p| p.0);
    Uniform { bit: written(bit), packet: written(packet) }.into()
}
