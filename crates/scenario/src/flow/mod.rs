//! `[[flows]]`: which node sends to which, what, and by which TCP.

mod coding;
mod datagrams;
mod ecn;
mod eten;
mod increase;
mod ip;
mod keep_alive;
mod mechanism;
mod profile;
mod receive_window;
pub(crate) mod settings;
mod stack;
mod traffic;
mod workload;

pub use coding::{Coding, Corruption};
pub use datagrams::{Datagrams, RateControl};
pub(crate) use eten::notice_size;
pub use eten::{Headers, Report, Transport};
pub use ip::IpVersion;
pub use profile::{Defaults, InitialSsthresh, Profile, ReceiveBuffer, Window};
pub use stack::{Stack, Stacks};
pub use traffic::Traffic;
pub use workload::Workload;

use crate::ceten::Ceten;
use crate::links::Link;
use crate::nodes::node;
use crate::reading::error::Problem;
use crate::reading::quantity::Written;
use crate::reading::shape::{AtLeastOne, OrReport as _, table};
use crate::routes::Routes;
use base::{Duration, Time};
use std::collections::BTreeSet;
use tcp::congestion::RoundTrip;
use tcp::mechanism::Mechanism;
use tcp::{Config, EcnMode};
use toml::Spanned;
use wire::{Ip, Packet};

/// A flow: which node sends to which, and what.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name, unique in the scenario.
    pub name: String,
    /// The node that sends data.
    pub from: usize,
    /// The node that receives it.
    pub to: usize,
    /// When the first connection is opened; before the end of the scenario.
    pub start: Time,
    /// The version of IP that carries it.
    pub ip: IpVersion,
    /// What it carries.
    pub traffic: Traffic,
    /// The settings of the sending end.
    pub sender: Config,
    /// The settings of the receiving end: the sender's, without the mechanisms that only the sender
    /// needs.
    pub receiver: Config,
    /// What reports corruption to the sender.
    pub report: Report,
    /// Size of a notice of corruption, bytes of the whole packet.
    pub notice_size: u16,
    /// The probability that the oracle reports a packet as corrupted that a link dropped.
    pub mistakes: f64,
    /// How the receiver is notified of corruption.
    pub transport: Transport,
    /// What nodes can read of a corrupted packet.
    pub headers: Headers,
    /// The erasure coding of its data from end to end.
    pub coding: Option<Coding>,
    /// The strength of the code in each of its packets, in the direction of its data; in the lab
    /// only.
    pub packet_code: Option<middlebox::fec::PacketStrength>,
    /// Which TCP its ends use on the testbed.
    pub stacks: Stacks,
}

table! {
    /// A flow: which node sends to which, and what.
    pub(crate) struct Table {
        /// Its name in rows and plots; `flow 0`, `flow 1`, ... if absent.
        name: Spanned<String>;
        /// The node that sends data.
        from: Spanned<String>, needed;
        /// The node that receives it.
        to: Spanned<String>, needed;
        /// When it starts; at the start of the run if absent.
        start: Spanned<Written<Duration>>;
        /// The version of IP that carries it.
        ip: IpVersion = IpVersion::default();
        /// What it carries: `"bulk"`, data without end; an amount, as in `{ size = "3 MB" }`;
        /// requests, UDP datagrams or many transfers; or an application with `application = NAME`
        /// and its settings.
        traffic: traffic::Form;
        /// Another profile for this flow.
        profile: Profile;
        /// TCP settings that differ from the profile, at both ends.
        tcp: Spanned<settings::Table>;
        /// Erasure coding of its data from end to end, and codes within its packets; `"off"` if absent.
        coding: Spanned<coding::Form>;
        /// Which TCP (or UDP) the ends use on the testbed: ours (`lasthop`), or the kernel's
        /// (`linux`). The lab always runs ours.
        stack: Spanned<stack::Written>;
    }
}

/// What the checks of a flow depend on.
pub(crate) struct Context<'a> {
    /// `None` if the file has no valid one.
    pub(crate) duration: Option<Duration>,
    pub(crate) profile: Profile,
    pub(crate) nodes: &'a [String],
    pub(crate) links: &'a [Link],
    /// `None` if a link could not be read.
    pub(crate) routes: Option<&'a Routes>,
    /// What nodes report if it has `eten = "cumulative"`.
    pub(crate) ceten: &'a Ceten,
}

impl Flow {
    /// How many flows have a port of their own. Those that come after them use other addresses of
    /// their nodes.
    pub const PORTS: usize = 60_000;

    /// The largest number of flows in a scenario: nodes have so many addresses.
    pub const MOST: usize = 16 * Flow::PORTS;

    /// Whether its sender ignores notices that do not repeat a nonce.
    pub(crate) fn has_nonces(&self) -> bool {
        let nonces =
            |m: &Mechanism| matches!(m, Mechanism::NoticeAuthentication(guard) if guard.nonce);
        self.sender.mechanisms.iter().any(nonces)
    }
}

impl Context<'_> {
    /// The flows, checked.
    pub(crate) fn resolve(
        &self,
        flows: Spanned<AtLeastOne<Spanned<Table>>>,
        problems: &mut Vec<Problem>,
    ) -> Option<Vec<Flow>> {
        let span = flows.span();
        let flows = flows.into_inner().0;
        if flows.len() > Flow::MOST {
            let most = Flow::MOST;
            problems.push(Problem::at(span, format!("expected at most {most} flows")));
            return None;
        }
        let mut names = BTreeSet::new();
        let mut resolved = Vec::with_capacity(flows.len());
        for (index, flow) in flows.into_iter().enumerate() {
            let place = flow.get_ref().name.as_ref().map_or(flow.span(), Spanned::span);
            let flow = flow.into_inner();
            let name = name(index, &flow).or_report(problems);
            if let Some(name) = name.clone().filter(|name| !names.insert(name.clone())) {
                let message = format!("another flow has the name `{name}`");
                problems.push(Problem::at(place.clone(), message));
            }
            let flow = self.flow(name, flow, problems);
            if index >= Flow::PORTS
                && let Some(Flow { traffic: Traffic::Datagrams(_), .. }) = flow
            {
                let first = Flow::PORTS;
                let message = format!("expected UDP datagrams in the first {first} flows only");
                problems.push(Problem::at(place, message));
            }
            resolved.push(flow);
        }
        resolved.into_iter().collect()
    }

    fn flow(&self, name: Option<String>, flow: Table, problems: &mut Vec<Problem>) -> Option<Flow> {
        let ends = self.ends(&flow, problems);
        let start = self.start(&flow).or_report(problems);
        let traffic = traffic::resolve(flow.traffic.unwrap_or_default(), flow.ip, problems);
        let stacks = stack::resolve(flow.stack, traffic.as_ref()).or_report(problems);
        let profile = flow.profile.unwrap_or(self.profile);
        if let (Some(Traffic::Datagrams(_)), Some(tcp)) = (&traffic, &flow.tcp) {
            let message =
                "UDP datagrams have no TCP settings: expected either `tcp` or `traffic.udp`";
            problems.push(Problem::at(tcp.span(), message));
        }
        let tcp = flow.tcp.map(Spanned::into_inner).unwrap_or_default();
        let ecn = tcp.ecn.0 != EcnMode::Off;
        let mut defaults = profile.defaults();
        if flow.ip == IpVersion::V6 {
            defaults = defaults.over_ipv6();
        }
        if let Some(Traffic::Workload(_)) = traffic {
            defaults = defaults.of_many();
        }
        let settings = settings::resolve(tcp, flow.ip, self.ceten, &defaults, problems);
        let ((from, to), mut settings) = (ends?, settings?);
        let reported =
            self.ceten.reports_probabilities() && settings.eten.report == Report::Cumulative;
        let carries =
            coding::Carrier { traffic: traffic.as_ref(), ecn, reported, mss: settings.sender.mss };
        let codes = coding::resolve(flow.coding, &carries, problems);
        if let Some(strength) = codes.per_packet {
            // A packet with the strongest code is no larger than one without a code.
            let redundancy = Packet::REDUNDANCY as u16 * u16::from(strength.most());
            settings.sender.mss -= redundancy;
            settings.receiver.mss -= redundancy;
        }
        for end in [&mut settings.sender, &mut settings.receiver] {
            if let Some(rtt @ RoundTrip::Propagation) = end.increase.round_trip() {
                *rtt = RoundTrip::Given(self.delay(from, to) + self.delay(to, from));
            }
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

    fn start(&self, flow: &Table) -> Result<Duration, Problem> {
        let Some(start) = &flow.start else { return Ok(Duration::ZERO) };
        match self.duration {
            Some(end) if start.get_ref().0 >= end => {
                let message = format!("expected a start before the end of the run, {end}");
                Err(Problem::at(start.span(), message))
            }
            _ => Ok(start.get_ref().0),
        }
    }

    fn ends(&self, flow: &Table, problems: &mut Vec<Problem>) -> Option<(usize, usize)> {
        let index = |name: &Spanned<String>, problems: &mut Vec<Problem>| {
            node(name, self.nodes).or_report(problems)
        };
        let from = flow.from.as_ref().and_then(|name| index(name, problems));
        let to = flow.to.as_ref().and_then(|name| index(name, problems));
        let ends = (from?, to?);
        self.check_path(ends, flow.from.as_ref()?, flow.to.as_ref()?).or_report(problems)?;
        Some(ends)
    }

    /// The propagation delay from a node to another at the start of a run.
    fn delay(&self, from: usize, to: usize) -> Duration {
        let hops = self.routes.map(|routes| routes.hops(self.links, from, to));
        let delays =
            hops.into_iter().flatten().map(|hop| hop.direction(self.links).initial_delay());
        delays.fold(Duration::ZERO, |sum, delay| sum + delay)
    }

    /// Checks that the receiver is within reach of the sender.
    fn check_path(
        &self,
        (from, to): (usize, usize),
        sender: &Spanned<String>,
        receiver: &Spanned<String>,
    ) -> Result<(), Problem> {
        if from == to {
            let message = "expected a node other than the sender";
            return Err(Problem::at(receiver.span(), message));
        }
        let limit = u32::from(Ip::HOP_LIMIT);
        let Some(routes) = self.routes else { return Ok(()) };
        match routes.distance(self.links, from, to) {
            None => {
                let message = format!("there is no path from `{}` to this node", sender.get_ref());
                Err(Problem::at(receiver.span(), message).help("is a link missing in [[links]]?"))
            }
            Some(hops) if hops > limit => {
                let message =
                    format!("{hops} links away from the sender: the hop limit is {limit}");
                Err(Problem::at(receiver.span(), message))
            }
            Some(_) => Ok(()),
        }
    }
}

fn name(index: usize, flow: &Table) -> Result<String, Problem> {
    match &flow.name {
        None => Ok(format!("flow {index}")),
        Some(name) if name.get_ref().trim().is_empty() => {
            Err(Problem::at(name.span(), "expected a name that is not empty"))
        }
        Some(name) => Ok(name.get_ref().clone()),
    }
}
