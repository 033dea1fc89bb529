//! From `[[flows]]` to flows.

use super::{Flow, Link, Scenario, file, node, settings};
use crate::error::Problem;
use crate::profile::Profile;
use base::units::Size;
use base::{Duration, Time};
use std::collections::VecDeque;
use toml::Spanned;
use wire::Ip;

/// What a flow is read against.
pub(super) struct Context<'a> {
    pub(super) duration: Duration,
    pub(super) profile: Profile,
    pub(super) nodes: &'a [String],
    pub(super) links: &'a [Link],
}

impl Context<'_> {
    /// The flows, checked.
    pub(super) fn resolve(
        &self,
        flows: Spanned<Vec<Spanned<file::Flow>>>,
    ) -> Result<Vec<Flow>, Problem> {
        let span = flows.span();
        let flows = flows.into_inner();
        if flows.is_empty() {
            return Err(Problem::at(span, "expected at least one flow"));
        }
        if flows.len() > Scenario::MOST_FLOWS {
            let most = Scenario::MOST_FLOWS;
            return Err(Problem::at(span, format!("expected at most {most} flows")));
        }
        let mut resolved: Vec<Flow> = Vec::with_capacity(flows.len());
        for (index, flow) in flows.into_iter().enumerate() {
            let place = flow.get_ref().name.as_ref().map_or(flow.span(), Spanned::span);
            let flow = self.flow(index, flow.into_inner())?;
            if let Some(other) = resolved.iter().position(|other| other.name == flow.name) {
                let message = format!("flows.{other} has this name already");
                return Err(Problem::at(place, message));
            }
            resolved.push(flow);
        }
        Ok(resolved)
    }

    fn flow(&self, index: usize, flow: file::Flow) -> Result<Flow, Problem> {
        let (from, to) = self.ends(&flow)?;
        let start = match &flow.start {
            None => Duration::ZERO,
            Some(start) if start.get_ref().0 >= self.duration => {
                let end = self.duration;
                let message = format!("expected a start before the end of the run, {end}");
                return Err(Problem::at(start.span(), message));
            }
            Some(start) => start.get_ref().0,
        };
        let name = match flow.name {
            None => format!("flow {index}"),
            Some(name) if name.get_ref().trim().is_empty() => {
                return Err(Problem::at(name.span(), "expected a name that is not empty"));
            }
            Some(name) => name.into_inner(),
        };
        let profile = flow.profile.unwrap_or(self.profile);
        let settings = settings::resolve(flow.tcp, &profile.defaults())?;
        Ok(Flow {
            name,
            from,
            to,
            start: Time::ZERO + start,
            size: size(flow.traffic)?,
            sender: settings.sender,
            receiver: settings.receiver,
            report: settings.report,
            notice_size: settings.notice_size,
        })
    }

    fn ends(&self, flow: &file::Flow) -> Result<(usize, usize), Problem> {
        let (from, to) = (node(&flow.from, self.nodes)?, node(&flow.to, self.nodes)?);
        if from == to {
            let message = "expected another node than the one that sends";
            return Err(Problem::at(flow.to.span(), message));
        }
        let limit = u32::from(Ip::HOP_LIMIT);
        match self.hops(from, to) {
            None => {
                let message = format!("there is no way from `{}` to here", flow.from.get_ref());
                Err(Problem::at(flow.to.span(), message).help("is a link missing in [[links]]?"))
            }
            Some(hops) if hops > limit => {
                let message = format!("{hops} links away; packets live for {limit}");
                Err(Problem::at(flow.to.span(), message))
            }
            Some(_) => Ok((from, to)),
        }
    }

    /// The number of links on the shortest way; `None` if there is no way.
    fn hops(&self, from: usize, to: usize) -> Option<u32> {
        let mut hops = vec![None; self.nodes.len()];
        hops[from] = Some(0);
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((node, distance)) = queue.pop_front() {
            for link in self.links {
                let other = match node {
                    _ if node == link.from => link.to,
                    _ if node == link.to => link.from,
                    _ => continue,
                };
                if hops[other].is_none() {
                    hops[other] = Some(distance + 1);
                    queue.push_back((other, distance + 1));
                }
            }
        }
        hops[to]
    }
}

/// What is sent, bytes; `None` never ends.
fn size(traffic: file::Traffic) -> Result<Option<u64>, Problem> {
    /// Far beyond what any run delivers.
    const MOST: u64 = 1 << 60;
    let file::Traffic::Transfer(transfer) = traffic else { return Ok(None) };
    match transfer.size.get_ref().0 {
        Size::Bytes(bytes) if (1..=MOST).contains(&bytes) => Ok(Some(bytes)),
        Size::Bytes(_) => {
            Err(Problem::at(transfer.size.span(), "expected at least 1 byte and at most 1 EiB"))
        }
        Size::Packets(_) | Size::Segments(_) => Err(Problem::at(
            transfer.size.span(),
            "a transfer is a number of bytes: expected a size such as \"3 MB\"",
        )),
    }
}
