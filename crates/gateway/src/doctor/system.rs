//! The kernel's settings, devices, rules and routes.

use super::{Finding, interfaces};
use crate::network::{self, DEVICES, PRIORITY, TABLES};
use live::inline::Owners;
use live::netlink::{AnyRule, Family, IpProtocol, ORIGIN, Rule, sysctl};
use live::{Netlink, QueueProgram};
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
use scenario::{Gateway, Mode};
use std::net::TcpListener;

/// Where TUN devices come from.
const TUN: &str = "/dev/net/tun";

/// The smallest MTU of IPv6, bytes (RFC 8200 §5).
const IPV6_MTU: u32 = 1280;

pub(super) fn capability() -> Finding {
    let able = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_ADMIN));
    match able {
        true => Finding::fine("CAP_NET_ADMIN", "the process has it"),
        false => Finding::error(
            "CAP_NET_ADMIN",
            "the process may not change the network",
            Some("run it as root, or as the service: systemctl start lasthopd".to_owned()),
        ),
    }
}

/// Whether there can be devices of the gateway's.
pub(super) fn devices() -> Vec<Finding> {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open(TUN);
    let device = match opened {
        Ok(_) => Finding::fine(TUN, "can be opened"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::error(TUN, "does not exist", Some("modprobe tun".to_owned()))
        }
        Err(error) => {
            // As udev makes it: the capability decides.
            let mend = format!("chmod 0666 {TUN}");
            Finding::error(TUN, format!("cannot be opened: {error}"), Some(mend))
        }
    };
    let mut findings = vec![device];
    findings.extend(settings());
    findings
}

/// SYNs and RSTs should have queues of their own, which needs a BPF program. A running gateway may have fewer rights than
/// this process: its devices tell.
pub(super) fn control_queues(
    netlink: &Netlink,
    gateway: &Gateway,
    running: bool,
) -> Option<Finding> {
    const QUEUES: &str = "queues of SYNs and RSTs";
    if !network::needs_control_queues(gateway) {
        return None;
    }
    let why_none = match running {
        true if network::has_control_queues(netlink, gateway) => {
            return Some(Finding::fine(QUEUES, "the gateway has them"));
        }
        true => "its log says why".to_owned(),
        false => match QueueProgram::load(&Owners::new(gateway.workers.max(1), [0; 2])) {
            Ok(_) => return Some(Finding::fine(QUEUES, "the process can make them")),
            Err(error) => error.to_string(),
        },
    };
    let message = format!(
        "none: a flood of SYNs or RSTs can fill the queue of packets of connections ({why_none})"
    );
    Some(Finding::advice(QUEUES, message, Some(network::queues_rights())))
}

/// The gateway sets `rp_filter` of its devices to 0, unless new devices have that.
fn settings() -> Option<Finding> {
    let path = "/proc/sys/net/ipv4/conf/default/rp_filter";
    let is_strict = sysctl("net.ipv4.conf.default.rp_filter").is_ok_and(|value| value != "0");
    let denied = rustix::fs::access(path, Access::WRITE_OK) == Err(Errno::ROFS);
    (is_strict && denied).then(|| {
        let mend = "podman run --security-opt unmask=/proc/sys, or docker run --security-opt \
                    systempaths=unconfined, or sysctl -w net.ipv4.conf.default.rp_filter=0 outside of the container";
        let message = "cannot be written, and rp_filter has to be 0 for the gateway's devices";
        Finding::error("/proc/sys", message, Some(mend.to_owned()))
    })
}

/// The kernel has to forward packets of each version of IP that is in use on both sides.
pub(super) fn forwarding(netlink: &Netlink, gateway: &Gateway) -> Vec<Finding> {
    let of = |family| {
        let (setting, ip) = match family {
            Family::V4 => ("net.ipv4.ip_forward", "IPv4"),
            Family::V6 => ("net.ipv6.conf.all.forwarding", "IPv6"),
        };
        let is_used = || {
            (gateway.lan.is_empty()
                || gateway.lan.iter().any(|name| netlink.has_routes(family, name)))
                && netlink.has_routes(family, &gateway.wan)
        };
        match sysctl(setting).as_deref() {
            Ok("0") if is_used() => Finding::error(
                "forwarding",
                format!("the kernel does not forward packets: {setting} is 0"),
                Some(format!("sysctl -w {setting}=1")),
            ),
            Ok("0") => {
                let message = format!(
                    "{setting} is 0, and the LAN and the hop do not both have routes of {ip}"
                );
                Finding::fine("forwarding", message)
            }
            Ok(value) => Finding::fine("forwarding", format!("{setting} is {value}")),
            // Without IPv6 there is no such setting.
            Err(_) => Finding::fine("forwarding", format!("there is no {setting}")),
        }
    };
    let is_ipv6_alone = gateway.mode() == Mode::Spep;
    Family::ALL
        .into_iter()
        .filter(|family| !is_ipv6_alone || *family == Family::V6)
        .map(of)
        .collect()
}

pub(super) fn links(netlink: &Netlink, gateway: &Gateway) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lan_mtu = 0;
    for name in interfaces(gateway) {
        let about = format!("interface {name}");
        let (up, mtu) = match (netlink.is_up(name), netlink.mtu(name)) {
            (Ok(up), Ok(mtu)) => (up, mtu),
            (Err(error), _) | (_, Err(error)) => {
                let mend = "ip link shows those that there are".to_owned();
                findings.push(Finding::error(about, error.to_string(), Some(mend)));
                continue;
            }
        };
        if !up {
            let mend = format!("ip link set dev {name} up");
            findings.push(Finding::error(&about, "is down", Some(mend)));
        } else if mtu < IPV6_MTU {
            let message = format!("its MTU of {mtu} bytes is too small for IPv6");
            let mend = format!("ip link set dev {name} mtu {IPV6_MTU}");
            findings.push(Finding::advice(&about, message, Some(mend)));
        } else {
            findings.push(Finding::fine(&about, format!("is up, MTU {mtu} bytes")));
        }
        if *name != gateway.wan {
            lan_mtu = mtu.max(lan_mtu);
        } else if mtu < lan_mtu {
            let message = format!(
                "its MTU of {mtu} bytes is below the LAN's {lan_mtu}: ends that do not know it send too long packets"
            );
            let mend = "nft add table inet lasthop; \
                        nft add chain inet lasthop mss '{ type filter hook forward priority mangle; }'; \
                        nft add rule inet lasthop mss tcp flags syn tcp option maxseg size set rt mtu";
            findings.push(Finding::advice(&about, message, Some(mend.to_owned())));
        }
    }
    findings
}

/// The kernel takes the larger of the setting of all devices and that of a device, and the gateway sets that of
/// its own devices to 0. Strict filtering asks for the route back as if a packet came by the interface by which
/// this one leaves. For TCP and ICMP between the LAN and the hop, the gateway's own rules give the device by which
/// they came; for those between two interfaces of the LAN they do not.
pub(super) fn reverse_paths() -> Option<Finding> {
    let setting = "net.ipv4.conf.all.rp_filter";
    // Without IPv4 there is none.
    let value = sysctl(setting).ok()?;
    if value != "1" {
        return Some(Finding::fine("rp_filter", format!("{setting} is {value}, not strict")));
    }
    let message = format!(
        "{setting} is 1 (strict): connections over the hop pass, but the kernel may drop TCP and ICMP between \
         two interfaces of the LAN"
    );
    Some(Finding::advice("rp_filter", message, Some(format!("sysctl -w {setting}=2"))))
}

/// The condition of `ip rule` for a protocol that a gateway's rules are about, or for all.
fn condition(protocol: Option<IpProtocol>) -> String {
    protocol.and_then(network::name).map_or_else(String::new, |name| format!(" ipproto {name}"))
}

/// Rules that come before the gateway's own.
pub(super) fn rules(netlink: &Netlink, gateway: &Gateway) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ours = network::rules(gateway);
    for rule in netlink.all_rules() {
        let AnyRule { family, priority, interface, protocol, table, is_own } = &rule;
        // That of the local table, one that comes later, or one for what the gateway does not get.
        let is_of_others = protocol.is_some() && ours.iter().all(|rule| rule.protocol != *protocol);
        let is_local = *table == Some(Rule::LOCAL);
        if is_local || *is_own || *priority > PRIORITY || is_of_others {
            continue;
        }
        let command = match family {
            Family::V4 => "ip",
            Family::V6 => "ip -6",
        };
        let shown = format!("{command} rule with priority {priority}");
        match interface {
            Some(name) if interfaces(gateway).any(|ours| ours == name) => {
                let message = format!("an {shown} takes what arrives by {name} before the gateway");
                let of = condition(*protocol);
                let mend = format!("{command} rule del priority {priority} iif {name}{of}");
                findings.push(Finding::error("rules", message, Some(mend)));
            }
            Some(_) => {}
            None if *priority < PRIORITY => {
                let message = format!(
                    "an {shown} may take packets before the gateway: those pass as they are, if it has a route"
                );
                let mend = format!(
                    "{command} rule shows it; a priority above {PRIORITY} is out of the way"
                );
                findings.push(Finding::advice("rules", message, Some(mend)));
            }
            None => {}
        }
    }
    if findings.is_empty() {
        findings.push(Finding::fine("rules", "none in the way"));
    }
    findings
}

/// Devices and tables that the gateway needs for itself.
pub(super) fn taken(netlink: &Netlink) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in DEVICES {
        if netlink.index(name).is_ok() {
            let message = "exists: another lasthopd runs here, or another program has made it";
            let mend = format!("systemctl stop lasthopd, or ip link delete {name}");
            findings.push(Finding::error(format!("device {name}"), message, Some(mend)));
        }
    }
    for table in TABLES {
        let mut families = Vec::new();
        for (family, device) in netlink.table(table) {
            // Those of another gateway, whose devices are named above.
            let ours = device.is_some_and(|name| DEVICES.contains(&name.as_str()));
            if !ours && !families.contains(&family) {
                families.push(family);
            }
        }
        for family in families {
            let command = if family == Family::V4 { "ip" } else { "ip -6" };
            let message = "has routes of another program";
            let mend = format!("{command} route flush table {table}");
            findings.push(Finding::error(format!("routing table {table}"), message, Some(mend)));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::fine("devices and routing tables", "free"));
    }
    findings
}

/// The devices, routes and rules that a running gateway has made.
pub(super) fn own(netlink: &Netlink, gateway: &Gateway) -> Vec<Finding> {
    let mut findings = Vec::new();
    let restart = || Some("systemctl restart lasthopd".to_owned());
    for name in DEVICES {
        match netlink.is_up(name) {
            Ok(true) => {}
            Ok(false) => {
                let mend = restart();
                findings.push(Finding::error(format!("device {name}"), "is down", mend));
            }
            Err(error) => {
                let message = error.to_string();
                findings.push(Finding::error(format!("device {name}"), message, restart()));
            }
        }
    }
    let command = |family| if family == Family::V4 { "ip" } else { "ip -6" };
    for family in network::families(gateway) {
        for (device, table) in DEVICES.into_iter().zip(TABLES) {
            let leads = |(of, by): &(Family, Option<String>)| {
                *of == family && by.as_deref() == Some(device)
            };
            if !netlink.table(table).iter().any(leads) {
                let command = command(family);
                let message = format!("has no {command} route by {device}");
                let mend = format!("{command} route add default dev {device} table {table}");
                let about = format!("routing table {table}");
                findings.push(Finding::error(about, message, Some(mend)));
            }
        }
    }
    let (wanted, found) = (network::rules(gateway), netlink.rules());
    let about = |rule: &Rule| {
        let what = match rule.protocol.and_then(network::name) {
            Some(name) => format!("{name} that"),
            None => "whatever".to_owned(),
        };
        format!("{} rule sends {what} arrives by {}", command(rule.family), rule.interface)
    };
    for rule in wanted.iter().filter(|rule| !found.contains(rule)) {
        let Rule { family, priority, interface, protocol, table, but_default } = rule;
        let message = format!("no {} to the gateway", about(rule));
        let (command, of) = (command(*family), condition(*protocol));
        let but_default = if *but_default { " suppress_prefixlength 0" } else { "" };
        let mend = format!(
            "{command} rule add priority {priority} iif {interface}{of} table {table}{but_default} protocol {ORIGIN}"
        );
        findings.push(Finding::error("rules", message, Some(mend)));
    }
    for rule in found.iter().filter(|rule| !wanted.contains(rule)) {
        let message = format!("one more {} to the gateway", about(rule));
        findings.push(Finding::advice("rules", message, Some("lasthopd upgrade".to_owned())));
    }
    if findings.is_empty() {
        let message = "those of the gateway are there";
        findings.push(Finding::fine("devices, rules and routing tables", message));
    }
    findings
}

pub(super) fn metrics(gateway: &Gateway) -> Option<Finding> {
    let address = gateway.metrics?;
    let about = format!("metrics at {address}");
    Some(match TcpListener::bind(address) {
        Ok(_) => Finding::fine(about, "the address is free"),
        Err(error) => {
            let mend = format!("ss -ltnp 'sport = :{}' shows who has it", address.port());
            Finding::error(about, error.to_string(), Some(mend))
        }
    })
}
