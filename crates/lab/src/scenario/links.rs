//! From `[[links]]` to links.

use super::{Link, file, node};
use crate::error::Problem;
use base::units::Size;
use link::{ErrorModel, Queue, Uniform};
use toml::Spanned;

/// The links, checked.
pub(super) fn resolve(
    links: Vec<Spanned<file::Link>>,
    nodes: &[String],
) -> Result<Vec<Link>, Problem> {
    let mut resolved: Vec<Link> = Vec::with_capacity(links.len());
    for link in links {
        let link = link.into_inner();
        let ends = link.between.span();
        let (from, to) = between(&link.between, nodes)?;
        if resolved.iter().any(|l| (l.from, l.to) == (from, to) || (l.to, l.from) == (from, to)) {
            return Err(Problem::at(ends, "there is a link between these nodes already")
                .help("a route takes one link; a second one beside it would never be used"));
        }
        let (forward, backward) = errors(link.errors)?;
        resolved.push(Link {
            from,
            to,
            rate: link.rate.0,
            delay: link.delay.0,
            queue: queue(link.queue)?,
            forward,
            backward,
        });
    }
    Ok(resolved)
}

fn between(
    ends: &Spanned<Vec<Spanned<String>>>,
    nodes: &[String],
) -> Result<(usize, usize), Problem> {
    let [a, b] = ends.get_ref().as_slice() else {
        return Err(Problem::at(ends.span(), "expected the names of two nodes"));
    };
    let (from, to) = (node(a, nodes)?, node(b, nodes)?);
    if from == to {
        return Err(Problem::at(ends.span(), "expected two different nodes"));
    }
    Ok((from, to))
}

fn queue(queue: Option<Spanned<super::quantity::Written<Size>>>) -> Result<Queue, Problem> {
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
        let model = model(&bit, &packet)?;
        return Ok((model.clone(), model));
    }
    let direction = |errors: Option<file::DirectionErrors>| {
        let errors = errors.unwrap_or_default();
        model(&errors.bit, &errors.packet)
    };
    Ok((direction(forward)?, direction(backward)?))
}

fn model(bit: &Option<Spanned<f64>>, packet: &Option<Spanned<f64>>) -> Result<ErrorModel, Problem> {
    Ok(Uniform { bit: probability(bit)?, packet: probability(packet)? }.into())
}

fn probability(written: &Option<Spanned<f64>>) -> Result<f64, Problem> {
    match written {
        None => Ok(0.0),
        Some(p) if (0.0..=1.0).contains(p.get_ref()) => Ok(*p.get_ref()),
        Some(p) => Err(Problem::at(p.span(), "expected a probability, 0 to 1")),
    }
}
