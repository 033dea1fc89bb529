//! `[[tunnels]]`: IPsec tunnels, which hide packets between two nodes, and what becomes of notices
//! of corruption there (`bbn8333` §7.2).

use crate::flow::{Flow, Headers, IpVersion, Profile, Report, notice_size};
use crate::links::Link;
use crate::nodes::node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Count};
use crate::reading::shape::{OrReport as _, table};
use crate::reading::words::words;
use crate::routes::Routes;
use core::ops::Range;
use std::collections::BTreeSet;
use toml::Spanned;

/// An IPsec tunnel between two nodes, its gateways, in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// A gateway, by its index.
    pub from: usize,
    /// The other gateway.
    pub to: usize,
    /// The version of IP of outer packets.
    pub ip: IpVersion,
    /// What becomes of notices of corruption.
    pub notices: TunnelNotices,
    /// The size of those that nodes inside send to a gateway, bytes of the whole packet.
    pub notice_size: u16,
    /// The number of packets of registered flows for which an ingress remembers the inner headers.
    pub remembers: usize,
    /// Whether the fields of Cumulative ETEN are copied into the outer header and back.
    pub copy_fields: bool,
}

/// What becomes of notices of corruption about packets in a tunnel.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum TunnelNotices {
    /// No notices: nodes inside the tunnel cannot read which flow a packet belongs to.
    #[default]
    Lost,
    /// They go to the ingress, which looks up the packet's flow and notifies its source.
    Resolve,
    /// They go to the source: packets are authenticated but not encrypted (RFC 4543), so that nodes
    /// inside can read them.
    Readable,
}

words! { TunnelNotices }

table! {
    /// An IPsec tunnel between two nodes, its gateways: ESP in tunnel mode (RFC 4303), in sizes and
    /// numbers that of AES-GCM-16 (RFC 4106). What has to pass both gateways is hidden between them.
    pub(crate) struct Table {
        /// One gateway; it may be an end of flows.
        from: Spanned<String>, needed;
        /// The other. Packets enter at either and leave at the other.
        to: Spanned<String>, needed;
        /// The version of IP of outer packets.
        ip: IpVersion = IpVersion::default();
        /// What becomes of notices about packets corrupted in the tunnel: no node sends any
        /// (`lost`); the node that detects the corruption notifies the gateway where the packet
        /// entered, which looks up the packet's flow and notifies its source (`resolve`); or
        /// packets are authenticated but not encrypted, and that node notifies the source itself
        /// (`readable`).
        notices: TunnelNotices = TunnelNotices::default();
        /// Size of a notice to a gateway, bytes of the whole packet; that of the profile if absent.
        /// Only with `notices = "resolve"`.
        notice_size: Spanned<Amount>;
        /// The number of most recent packets, of flows with notices, whose inner headers a gateway
        /// remembers. Only with `notices = "resolve"`.
        remembers: Count = Count(4096);
        /// Copy the fields of Cumulative ETEN into the outer header and back, as RFC 6040 does with
        /// ECN; otherwise the links in the tunnel report nothing.
        copy_fields: bool = false;
    }
}

/// What the checks of tunnels depend on.
pub(crate) struct Context<'a> {
    pub(crate) profile: Profile,
    pub(crate) nodes: &'a [String],
    pub(crate) links: &'a [Link],
    pub(crate) flows: &'a [Flow],
    pub(crate) routes: &'a Routes,
    /// Whether a node moves.
    pub(crate) moving: bool,
}

impl Tunnel {
    /// Its directions: from which gateway to which.
    #[must_use]
    pub fn directions(&self) -> [(usize, usize); 2] {
        [(self.from, self.to), (self.to, self.from)]
    }
}

impl Flow {
    /// Whether its data pass one node and then another.
    #[must_use]
    pub fn passes(&self, (first, then): (usize, usize), routes: &Routes, links: &[Link]) -> bool {
        let way = routes.nodes(links, self.from, self.to);
        let at = |node| way.iter().position(|other| *other == node);
        at(first).zip(at(then)).is_some_and(|(first, then)| first < then)
    }
}

impl Context<'_> {
    /// The tunnels, checked.
    pub(crate) fn resolve(
        &self,
        tunnels: Vec<Spanned<Table>>,
        problems: &mut Vec<Problem>,
    ) -> Vec<Tunnel> {
        if let (Some(tunnel), true) = (tunnels.first(), self.moving) {
            let message = "a tunnel needs fixed paths, and a node moves: expected no tunnels";
            problems.push(Problem::at(tunnel.span(), message));
            return Vec::new();
        }
        let mut resolved: Vec<Tunnel> = Vec::with_capacity(tunnels.len());
        for written in tunnels {
            let span = written.span();
            let tunnel = self.tunnel(written.into_inner(), problems);
            let Some((tunnel, to)) = tunnel else { continue };
            self.check(&tunnel, span, problems);
            let links = self.covers(&tunnel);
            let other = resolved.iter().find(|other| !self.covers(other).is_disjoint(&links));
            if let Some(other) = other {
                let [from, end] = [other.from, other.to].map(|node| &self.nodes[node]);
                let message = format!("this and the tunnel from `{from}` to `{end}` share a link");
                let problem = Problem::at(to, message);
                problems.push(problem.help("expected tunnels one behind the other"));
            }
            resolved.push(tunnel);
        }
        resolved
    }

    /// A tunnel, and the place of its `to`.
    fn tunnel(&self, table: Table, problems: &mut Vec<Problem>) -> Option<(Tunnel, Range<usize>)> {
        let mut defaults = self.profile.defaults();
        if table.ip == IpVersion::V6 {
            defaults = defaults.over_ipv6();
        }
        let size = notice_size(&table.notice_size, table.ip, &defaults).or_report(problems);
        let end = |name: &Option<Spanned<String>>, problems: &mut Vec<Problem>| {
            name.as_ref().and_then(|name| node(name, self.nodes).or_report(problems))
        };
        let (from, to) = (end(&table.from, problems), end(&table.to, problems));
        let (from, to, place) = (from?, to?, table.to?.span());
        let tunnel = Tunnel {
            from,
            to,
            ip: table.ip,
            notices: table.notices,
            notice_size: size?,
            remembers: usize::try_from(table.remembers.0).unwrap_or(usize::MAX),
            copy_fields: table.copy_fields,
        };
        let passed = |way| self.flows.iter().any(|flow| flow.passes(way, self.routes, self.links));
        if from == to {
            let message = "expected a node other than the first gateway";
            problems.push(Problem::at(place, message));
            return None;
        }
        if !tunnel.directions().into_iter().any(passed) {
            let message = format!("no flow passes both `{}` and this node", self.nodes[from]);
            let problem = Problem::at(place, message);
            problems.push(problem.help("expected two nodes on the path of a flow"));
            return None;
        }
        Some((tunnel, place))
    }

    /// The links between the gateways.
    fn covers(&self, tunnel: &Tunnel) -> BTreeSet<usize> {
        let ways = tunnel.directions().into_iter();
        ways.flat_map(|(from, to)| self.routes.hops(self.links, from, to))
            .map(|hop| hop.link)
            .collect()
    }

    /// Rejects settings of flows that cannot work in a tunnel.
    fn check(&self, tunnel: &Tunnel, span: Range<usize>, problems: &mut Vec<Problem>) {
        let ways = tunnel.directions();
        for flow in self.flows {
            if !ways.into_iter().any(|way| flow.passes(way, self.routes, self.links)) {
                continue;
            }
            let name = &flow.name;
            let known = tunnel.notices != TunnelNotices::Lost;
            let ends = [tunnel.from, tunnel.to];
            let wrong = if known && flow.report == Report::Forward {
                "an egress cannot read a packet that did not arrive: expected `notices = \"lost\"` \
                 where a flow has `eten = \"forward\"`"
            } else if known && flow.headers == Headers::Checked {
                "nodes in a tunnel have no checksum of ESP to verify: expected `notices = \"lost\"` \
                 where a flow has `headers = \"checked\"`"
            } else if flow.mistakes > 0.0 {
                "an oracle with mistakes cannot see into a tunnel: expected no `mistakes`"
            } else if flow.coding.is_some()
                && ends.iter().any(|end| [flow.from, flow.to].contains(end))
            {
                "a coded flow ends at a gateway: expected gateways between its ends"
            } else {
                continue;
            };
            let problem = Problem::at(span.clone(), wrong);
            problems.push(problem.help(format!("flow `{name}` passes this tunnel")));
        }
    }
}
