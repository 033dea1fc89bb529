//! Where the kernel sends TCP between the LAN and the hop, asked for a packet of each direction and family.

use super::{Finding, Severity};
use crate::network::{self, DEVICES};
use live::Netlink;
use live::netlink::{Family, IpProtocol};
use scenario::{Gateway, Mode};
use std::net::IpAddr;

/// What this is about, in findings.
const WAYS: &str = "way of packets";

/// With a running gateway, packets go to its devices, and from these on; without, from one interface to the other.
pub(super) fn examine(netlink: &Netlink, gateway: &Gateway, running: bool) -> Vec<Finding> {
    let wan = gateway.wan.as_str();
    let is_marking = gateway.mode() == Mode::Spep;
    let has_ipv4 = network::families(gateway).any(|family| family == Family::V4);
    let mut findings = Vec::new();
    let mut behind = |name: &str| {
        let found = netlink.behind(name).unwrap_or_default();
        if found.is_empty() {
            let message = format!("no route leads to another host by {name}");
            let mend = format!("ip route shows the routes; or {name} is the wrong interface");
            findings.push(Finding::advice(WAYS, message, Some(mend)));
        }
        found
    };
    let outside = behind(wan);
    let users: Vec<_> = gateway.lan.iter().map(|name| (name, behind(name))).collect();
    for (lan, users) in &users {
        for (user, other) in pairs(users, &outside) {
            if user.is_ipv4() && !has_ipv4 {
                continue;
            }
            let [to_lan, to_wan] = DEVICES;
            let ways: &[_] = match running {
                // What is marked goes to the hop; of the way of ESP to the gateway, the kernel says nothing.
                true if is_marking => &[(to_wan, user, other, wan)],
                false if is_marking => &[(lan, user, other, wan)],
                false => &[(lan, user, other, wan), (wan, other, user, lan)],
                true => &[
                    (lan, user, other, to_lan),
                    (to_wan, user, other, wan),
                    (wan, other, user, to_wan),
                    (to_lan, other, user, lan),
                ],
            };
            findings.extend(ways.iter().filter_map(|way| look(netlink, *way, running)));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::fine(WAYS, "between the LAN and the hop, as it should be"));
    }
    findings
}

/// Two addresses of each family.
fn pairs(users: &[IpAddr], outside: &[IpAddr]) -> impl Iterator<Item = (IpAddr, IpAddr)> {
    users.iter().flat_map(move |user| {
        let same = outside.iter().filter(|other| other.is_ipv4() == user.is_ipv4());
        same.map(|other| (*user, *other))
    })
}

/// Whether a packet of TCP that comes by one device from one address to another leaves by this device.
fn look(
    netlink: &Netlink,
    (from, source, destination, by): (&str, IpAddr, IpAddr, &str),
    running: bool,
) -> Option<Finding> {
    let goes = match netlink.forwarded_by(from, source, destination, IpProtocol::Tcp) {
        Ok(device) if device == by => return None,
        Ok(device) => format!("leave by {device}, not by {by}"),
        Err(error) => format!("are dropped: {error}"),
    };
    let message = format!("TCP packets by {from} from {source} to {destination} {goes}");
    let ip = if source.is_ipv4() { "ip" } else { "ip -6" };
    let mend = format!(
        "{ip} rule shows what comes first; {ip} route get {destination} from {source} iif {from} ipproto tcp asks again"
    );
    // Without the gateway, its rules are missing, too.
    let severity = if running { Severity::Error } else { Severity::Advice };
    Some(Finding::new(severity, WAYS, message, Some(mend)))
}
