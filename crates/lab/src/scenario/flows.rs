//! From `[[flows]]` to flows.

use super::Traffic;
use super::{
    Flow, IpVersion, Link, Report, Scenario, coding, file, node, settings, stack, traffic,
};
use crate::error::Problem;
use crate::profile::Profile;
use crate::shape::{AtLeastOne, Told as _};
use base::{Duration, Time};
use std::collections::{BTreeSet, VecDeque};
use toml::Spanned;
use wire::{Ip, Packet};

/// What a flow is read against.
pub(super) struct Context<'a> {
    /// `None` if that of the file is none.
    pub(super) duration: Option<Duration>,
    pub(super) profile: Profile,
    pub(super) nodes: &'a [String],
    pub(super) links: &'a [Link],
    /// These are all the links.
    pub(super) routed: bool,
    /// Whether nodes that tell senders of loss tell probabilities.
    pub(super) probabilities: bool,
}

impl Context<'_> {
    /// The flows, checked.
    pub(super) fn resolve(
        &self,
        flows: Spanned<AtLeastOne<Spanned<file::Flow>>>,
        problems: &mut Vec<Problem>,
    ) -> Option<Vec<Flow>> {
        let span = flows.span();
        let flows = flows.into_inner().0;
        if flows.len() > Scenario::MOST_FLOWS {
            let most = Scenario::MOST_FLOWS;
            problems.push(Problem::at(span, format!("expected at most {most} flows")));
            return None;
        }
        let mut names = BTreeSet::new();
        let mut resolved = Vec::with_capacity(flows.len());
        for (index, flow) in flows.into_iter().enumerate() {
            let place = flow.get_ref().name.as_ref().map_or(flow.span(), Spanned::span);
            let flow = flow.into_inner();
            let name = name(index, &flow).told(problems);
            if let Some(name) = name.clone().filter(|name| !names.insert(name.clone())) {
                let message = format!("another flow is called `{name}` already");
                problems.push(Problem::at(place, message));
            }
            resolved.push(self.flow(name, flow, problems));
        }
        resolved.into_iter().collect()
    }

    fn flow(
        &self,
        name: Option<String>,
        flow: file::Flow,
        problems: &mut Vec<Problem>,
    ) -> Option<Flow> {
        let ends = self.ends(&flow, problems);
        let start = self.start(&flow).told(problems);
        let traffic = traffic::resolve(flow.traffic.unwrap_or_default(), flow.ip, problems);
        let stacks = stack::resolve(flow.stack, traffic.as_ref()).told(problems);
        let profile = flow.profile.unwrap_or(self.profile);
        if let (Some(Traffic::Datagrams(_)), Some(tcp)) = (&traffic, &flow.tcp) {
            let message = "datagrams of UDP know no TCP: expected either `tcp` or `traffic.udp`";
            problems.push(Problem::at(tcp.span(), message));
        }
        let tcp = flow.tcp.map(Spanned::into_inner).unwrap_or_default();
        let ecn = tcp.ecn;
        let mut defaults = profile.defaults();
        if flow.ip == IpVersion::V6 {
            defaults = defaults.over_ipv6();
        }
        if let Some(Traffic::Workload(_)) = traffic {
            defaults = defaults.of_many();
        }
        let settings = settings::resolve(tcp, flow.ip, &defaults, problems);
        let ((from, to), mut settings) = (ends?, settings?);
        let told = self.probabilities && settings.eten.report == Report::Cumulative;
        let carries =
            coding::Carrier { traffic: traffic.as_ref(), ecn, told, mss: settings.sender.mss };
        let codes = coding::resolve(flow.coding, &carries, problems);
        if let Some(strength) = codes.per_packet {
            // The packet with the strongest code is no longer than one without a code.
            let redundancy = Packet::REDUNDANCY as u16 * u16::from(strength.most());
            settings.sender.mss -= redundancy;
            settings.receiver.mss -= redundancy;
        }
        Some(Flow {
            name: name?,
            from,
            to,
            start: Time::ZERO + start?,
            ip: flow.ip,
            traffic: traffic?,
            sender: settings.sender,
            receiver: settings.receiver,
            report: settings.eten.report,
            notice_size: settings.eten.notice_size,
            transport: settings.eten.transport,
            headers: settings.eten.headers,
            mistakes: settings.eten.mistakes,
            coding: codes.erasure,
            packet_code: codes.per_packet,
            stacks: stacks?,
        })
    }

    fn start(&self, flow: &file::Flow) -> Result<Duration, Problem> {
        let Some(start) = &flow.start else { return Ok(Duration::ZERO) };
        match self.duration {
            Some(end) if start.get_ref().0 >= end => {
                let message = format!("expected a start before the end of the run, {end}");
                Err(Problem::at(start.span(), message))
            }
            _ => Ok(start.get_ref().0),
        }
    }

    fn ends(&self, flow: &file::Flow, problems: &mut Vec<Problem>) -> Option<(usize, usize)> {
        let index = |name: &Spanned<String>, problems: &mut Vec<Problem>| {
            node(name, self.nodes).told(problems)
        };
        let from = flow.from.as_ref().and_then(|name| index(name, problems));
        let to = flow.to.as_ref().and_then(|name| index(name, problems));
        let ends = (from?, to?);
        self.way(ends, flow.from.as_ref()?, flow.to.as_ref()?).told(problems)?;
        Some(ends)
    }

    /// Makes sure that packets get there.
    fn way(
        &self,
        (from, to): (usize, usize),
        sender: &Spanned<String>,
        receiver: &Spanned<String>,
    ) -> Result<(), Problem> {
        if from == to {
            let message = "expected another node than the one that sends";
            return Err(Problem::at(receiver.span(), message));
        }
        let limit = u32::from(Ip::HOP_LIMIT);
        match hops(self.nodes.len(), self.links, from, to) {
            _ if !self.routed => Ok(()),
            None => {
                let message = format!("there is no way from `{}` to here", sender.get_ref());
                Err(Problem::at(receiver.span(), message).help("is a link missing in [[links]]?"))
            }
            Some(hops) if hops > limit => {
                let message = format!("{hops} links away; packets live for {limit}");
                Err(Problem::at(receiver.span(), message))
            }
            Some(_) => Ok(()),
        }
    }
}

/// The number of links on the shortest way; `None` if there is no way.
pub(super) fn hops(nodes: usize, links: &[Link], from: usize, to: usize) -> Option<u32> {
    let mut hops = vec![None; nodes];
    hops[from] = Some(0);
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some((node, distance)) = queue.pop_front() {
        for link in links {
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

fn name(index: usize, flow: &file::Flow) -> Result<String, Problem> {
    match &flow.name {
        None => Ok(format!("flow {index}")),
        Some(name) if name.get_ref().trim().is_empty() => {
            Err(Problem::at(name.span(), "expected a name that is not empty"))
        }
        Some(name) => Ok(name.get_ref().clone()),
    }
}
