//! Rules that choose the routing table of packets.

use super::Netlink;
use crate::Error;
use crate::error::Doing;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteScope, RouteType};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;

/// The origin (`FRA_PROTOCOL`, `rtm_protocol`) of the rules that are made here, and of routes for them: a number that no
/// other program has (`rt_protos` of iproute2). It tells them from those of others.
pub const ORIGIN: u8 = 76;

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// Those that the kernel has: it can do without IPv6 (`ipv6.disable=1`).
    pub fn available() -> impl Iterator<Item = Family> {
        let has_ipv6 = Path::new("/proc/sys/net/ipv6/conf").exists();
        Family::ALL.into_iter().filter(move |family| *family == Family::V4 || has_ipv6)
    }

    pub(super) fn number(self) -> AddressFamily {
        match self {
            Family::V4 => AddressFamily::Inet,
            Family::V6 => AddressFamily::Inet6,
        }
    }
}

/// Packets of a protocol that arrive by a device are routed by a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Of these packets.
    pub family: Family,
    /// Rules with lower numbers come first.
    pub priority: u32,
    /// The device.
    pub interface: String,
    /// The protocol over IP; `None` for all. The kernel (4.17 or newer; older ones ignore it) looks for it after the
    /// IPv6 extension headers for hops, destinations and routing.
    pub protocol: Option<IpProtocol>,
    /// The table. If it has no route, the next rule decides.
    pub table: u32,
    /// Without the default routes of the table (`suppress_prefixlength 0`).
    pub but_default: bool,
}

impl Rule {
    /// The table of the node's own addresses (`RT_TABLE_LOCAL` of linux/rtnetlink.h).
    pub const LOCAL: u32 = 255;
    /// The table of the node's routes (`RT_TABLE_MAIN`).
    pub const MAIN: u32 = 254;

    fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = self.family.number();
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Priority(self.priority),
            RuleAttribute::Iifname(self.interface.clone()),
            RuleAttribute::Table(self.table),
            RuleAttribute::Protocol(ORIGIN.into()),
        ];
        message.attributes.extend(self.protocol.map(RuleAttribute::IpProtocol));
        message.attributes.extend(self.but_default.then_some(RuleAttribute::SuppressPrefixLen(0)));
        message
    }

    /// `None` if a message is of another kind of rule, or of another program's.
    fn of(family: Family, message: &RuleMessage) -> Option<Rule> {
        let mut rule = Rule {
            family,
            priority: 0,
            interface: String::new(),
            protocol: None,
            table: 0,
            but_default: false,
        };
        let mut is_own = false;
        for attribute in &message.attributes {
            match attribute {
                RuleAttribute::Protocol(origin) => is_own = u8::from(*origin) == ORIGIN,
                RuleAttribute::Priority(priority) => rule.priority = *priority,
                RuleAttribute::Iifname(interface) => rule.interface.clone_from(interface),
                RuleAttribute::IpProtocol(protocol) => rule.protocol = Some(*protocol),
                RuleAttribute::Table(table) => rule.table = *table,
                RuleAttribute::SuppressPrefixLen(len) => rule.but_default = *len == 0,
                RuleAttribute::Oifname(_)
                | RuleAttribute::FwMark(_)
                | RuleAttribute::Source(_)
                | RuleAttribute::Destination(_)
                | RuleAttribute::SourcePortRange(_)
                | RuleAttribute::DestinationPortRange(_) => return None,
                _ => {}
            }
        }
        let is_such = message.header.action == RuleAction::ToTable && !rule.interface.is_empty();
        (is_such && is_own).then_some(rule)
    }
}

/// What there is of a rule of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyRule {
    /// The packets' version of IP.
    pub family: Family,
    /// Rules with lower numbers come first.
    pub priority: u32,
    /// The device by which they arrive; `None` for any.
    pub interface: Option<String>,
    /// Their protocol over IP; `None` for any.
    pub protocol: Option<IpProtocol>,
    /// The table that routes them, if one does.
    pub table: Option<u32>,
    /// Whether it was made here ([`ORIGIN`]).
    pub is_own: bool,
}

impl Netlink {
    /// All rules.
    #[must_use]
    pub fn all_rules(&self) -> Vec<AnyRule> {
        let of = |family: Family, message: &RuleMessage| {
            let is_table = message.header.action == RuleAction::ToTable;
            let mut rule = AnyRule {
                family,
                priority: 0,
                interface: None,
                protocol: None,
                table: is_table.then_some(message.header.table.into()),
                is_own: false,
            };
            for attribute in &message.attributes {
                match attribute {
                    RuleAttribute::Priority(priority) => rule.priority = *priority,
                    RuleAttribute::Iifname(interface) => rule.interface = Some(interface.clone()),
                    RuleAttribute::Protocol(origin) => rule.is_own = u8::from(*origin) == ORIGIN,
                    RuleAttribute::IpProtocol(protocol) => rule.protocol = Some(*protocol),
                    RuleAttribute::Table(table) => rule.table = is_table.then_some(*table),
                    _ => {}
                }
            }
            rule
        };
        self.rule_messages(of)
    }

    fn rule_messages<T>(&self, of: impl Fn(Family, &RuleMessage) -> T) -> Vec<T> {
        let mut rules = Vec::new();
        for family in Family::ALL {
            let mut all = RuleMessage::default();
            all.header.family = family.number();
            let found = self.requests.dump(RouteNetlinkMessage::GetRule(all)).unwrap_or_default();
            rules.extend(found.into_iter().filter_map(|message| match message {
                RouteNetlinkMessage::NewRule(message) => Some(of(family, &message)),
                _ => None,
            }));
        }
        rules
    }

    /// The routes of a table: their versions of IP, and the devices by which they lead, if by any.
    #[must_use]
    pub fn table(&self, table: u32) -> Vec<(Family, Option<String>)> {
        let mut found = Vec::new();
        for family in Family::ALL {
            for route in self.routes(family.number()) {
                let number = route.attributes.iter().find_map(|attribute| match attribute {
                    RouteAttribute::Table(number) => Some(*number),
                    _ => None,
                });
                if number.unwrap_or_else(|| route.header.table.into()) == table {
                    found.push((family, self.device_of(&route)));
                }
            }
        }
        found
    }

    /// Adds a rule, unless it is there.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_rule(&self, rule: &Rule) -> Result<(), Error> {
        let message = RouteNetlinkMessage::NewRule(rule.message());
        let added = self.requests.change(message, NLM_F_CREATE | NLM_F_EXCL);
        let done = added.or_else(|error| match error.kind() {
            ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        });
        done.doing(|| format!("routing what arrives by {} by table {}", rule.interface, rule.table))
    }

    /// Removes a rule. The kernel takes the first that has all that is said: where `protocol` is `None`, it may be one
    /// with a protocol.
    ///
    /// # Errors
    /// If there is none.
    pub fn remove_rule(&self, rule: &Rule) -> Result<(), Error> {
        let message = RouteNetlinkMessage::DelRule(rule.message());
        self.requests.change(message, 0).doing(|| format!("removing a rule for {}", rule.interface))
    }

    /// The rules for packets that arrive by some device, without those of other programs.
    #[must_use]
    pub fn rules(&self) -> Vec<Rule> {
        self.rule_messages(Rule::of).into_iter().flatten().collect()
    }

    /// Lets the table of the node's own addresses come after rules of its priority, which is 0 at first.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn move_local_rule(&self, family: Family, [from, to]: [u32; 2]) -> Result<(), Error> {
        let rule = |priority| {
            let mut message = RuleMessage::default();
            message.header.family = family.number();
            message.header.action = RuleAction::ToTable;
            let table = RuleAttribute::Table(Rule::LOCAL);
            message.attributes = vec![RuleAttribute::Priority(priority), table];
            message
        };
        let action = || format!("moving the rule of the local table from {from} to {to}");
        // There must be one at any time: packets to the node arrive by it.
        let added = RouteNetlinkMessage::NewRule(rule(to));
        match self.requests.change(added, NLM_F_CREATE | NLM_F_EXCL) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error).doing(action),
            _ => match self.requests.change(RouteNetlinkMessage::DelRule(rule(from)), 0) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error).doing(action),
                _ => Ok(()),
            },
        }
    }

    /// Routes all packets that a table decides about by a device; those of the node's own from `source`, if it is given.
    ///
    /// # Errors
    /// If there is no such device, or the table has such a route.
    pub fn add_default_route(
        &self,
        family: Family,
        device: &str,
        table: u32,
        source: Option<IpAddr>,
    ) -> Result<(), Error> {
        let mut route = default_route(family.number(), self.index(device)?, table);
        route.attributes.extend(source.map(|from| RouteAttribute::PrefSource(from.into())));
        let action = || format!("routing packets of table {table} by {device}");
        self.create(RouteNetlinkMessage::NewRoute(route), action)
    }

    /// Routes all packets that a table decides about by a router behind a device, whatever routed them before.
    ///
    /// # Errors
    /// If there is no such device, or the router is not directly behind it.
    pub fn set_default_router(
        &self,
        router: IpAddr,
        device: &str,
        table: u32,
    ) -> Result<(), Error> {
        let mut route = default_route(super::family(router), self.index(device)?, table);
        route.attributes.push(RouteAttribute::Gateway(router.into()));
        let action = || format!("routing packets of table {table} by {router} behind {device}");
        let message = RouteNetlinkMessage::NewRoute(route);
        self.requests.change(message, NLM_F_CREATE | NLM_F_REPLACE).doing(action)
    }

    /// Removes the default route that was made here from a table, if it has one.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove_default_route(&self, family: Family, table: u32) -> Result<(), Error> {
        let mut route = RouteMessage::default();
        route.header.address_family = family.number();
        route.header.protocol = ORIGIN.into();
        route.attributes = vec![RouteAttribute::Table(table)];
        match self.requests.change(RouteNetlinkMessage::DelRoute(route), 0) {
            Err(error) if Errno::from_io_error(&error) != Some(Errno::SRCH) => {
                Err(error).doing(|| format!("removing the default route of table {table}"))
            }
            _ => Ok(()),
        }
    }
}

/// That of a table, by a device.
fn default_route(family: AddressFamily, device: u32, table: u32) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header.address_family = family;
    route.header.protocol = ORIGIN.into();
    route.header.scope = RouteScope::Universe;
    route.header.kind = RouteType::Unicast;
    route.attributes = vec![RouteAttribute::Table(table), RouteAttribute::Oif(device)];
    route
}
