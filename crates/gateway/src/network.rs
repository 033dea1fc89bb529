//! What a gateway changes in its network namespace: two devices, and the rules and routes that send the
//! packets of TCP and ICMP which the kernel forwards through them.

use crate::host_settings::HostSettings;
use crate::mhp;
use live::inline::Owners;
use live::inline::Side;
use live::netlink::{self, Family, IpProtocol, Rule};
use live::{Error, Netlink, Offload, QueueProgram, Tun};
use scenario::{Gateway, Mode};
use std::io;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use tracing::warn;

/// The names of the devices, by [`Side`].
pub(crate) const DEVICES: [&str; 2] = ["lh-lan", "lh-wan"];

/// The routing tables of what arrives from a side, by [`Side`].
pub(crate) const TABLES: [u32; 2] = [201, 202];

/// The priority of the rules: after those of the local table (0), before that of the main table (32766).
pub(crate) const PRIORITY: u32 = 100;

/// The priority of the rules of a mobile host for packets to it: before that of the local table
/// ([`HostSettings::LOCAL`]).
const TO_HOST: u32 = 5;

/// The routing table of what the agent of a mobile host sends: by the base station to which it is attached.
pub(crate) const STATION_TABLE: u32 = 203;

/// The priority of the rule before it: what is directly behind an interface needs no base station.
const BUT_DEFAULT: u32 = PRIORITY - 1;

/// Packets that wait in each queue of a device until they are read.
const QUEUE: u32 = 4096;

/// ICMP for IPv6 (RFC 4443 §1).
const ICMPV6: IpProtocol = IpProtocol::Other(58);

/// The changes, which are undone when this is dropped. The devices are gone with their [`Tun`], and with them
/// all routes by them: then the kernel forwards packets as if there were no gateway.
pub(crate) struct Network {
    netlink: Netlink,
    rules: Vec<Rule>,
    /// Of a mobile host, what its settings were before.
    host: Option<HostSettings>,
}

impl Network {
    /// Makes the devices, and directs packets to them. Returns their queues, by worker, of which
    /// each owns its connections, and by [`Side`].
    /// What was set of a mobile host before is kept in the file `settings` until it is set again.
    pub(crate) fn set_up(
        gateway: &Gateway,
        owners: &Owners,
        settings: Option<&Path>,
    ) -> Result<(Network, Vec<[Tun; 2]>), Error> {
        let netlink = Netlink::open()?;
        for interface in gateway.lan.iter().chain([&gateway.wan]) {
            netlink.index(interface)?;
        }
        let own = match gateway.mode() {
            Mode::Mobile => Some(own_addresses(gateway)?),
            _ => None,
        };
        let program = queue_program(gateway, owners);
        let [lan, wan] =
            Side::ALL.map(|side| device(&netlink, gateway, side, own, program.as_ref()));
        let queues = lan?.into_iter().zip(wan?).map(<[Tun; 2]>::from).collect();
        if gateway.esp.is_some() {
            // Each packet is encrypted by itself.
            netlink.set_single_segments(DEVICES[Side::Lan as usize])?;
        }
        if own.is_some() {
            // The host's own TCP sends by it: what it sends is to fit the hop, too.
            let lan = DEVICES[Side::Lan as usize];
            netlink.set_mtu(lan, netlink.mtu(&gateway.wan)?)?;
            netlink.set_single_segments(lan)?;
        }
        let mut network = Network { netlink, rules: rules(gateway), host: None };
        if own.is_some() {
            let families = families(gateway).collect::<Vec<_>>();
            network.host = Some(HostSettings::set(&gateway.wan, &families, settings)?);
        }
        network.direct()?;
        Ok((network, queues))
    }

    /// Has what the gateway before this one, with the same interfaces, has set up.
    pub(crate) fn take_over(gateway: &Gateway) -> Result<Network, Error> {
        let network = Network { netlink: Netlink::open()?, rules: rules(gateway), host: None };
        // Its connections are worth more than the right rules.
        if let Err(error) = network.direct() {
            warn!(%error, "the rules are not those of this version");
        }
        Ok(network)
    }

    /// Sends packets to the devices by these rules only, not by those of another version or for other interfaces,
    /// which a gateway that was killed has left behind.
    fn direct(&self) -> Result<(), Error> {
        loop {
            self.rules.iter().try_for_each(|rule| self.netlink.add_rule(rule))?;
            let found = self.netlink.rules();
            check(&self.rules, &found)?;
            let mut others = found.iter().filter(|rule| !self.rules.contains(rule));
            // In place of one for all protocols, the kernel may remove one that comes before it.
            match others.next() {
                Some(other) => self.netlink.remove_rule(other)?,
                None => return Ok(()),
            }
        }
    }
}

/// Those that send what arrives by the interfaces of a gateway to the device of its side: TCP, and ICMP, which has
/// the errors about it; or what is to be marked, ESP from the LAN. None if no packets are to pass the gateway.
pub(crate) fn rules(gateway: &Gateway) -> Vec<Rule> {
    if gateway.mode() == Mode::Notify {
        return Vec::new();
    }
    if gateway.mode() == Mode::Mobile {
        let [from_host, to_host] = TABLES;
        let sent = DEVICES[Side::Wan as usize];
        // What the host sends, what arrives for it, and what the agent sends.
        let of_host = [
            ("lo", PRIORITY, from_host),
            (&gateway.wan, TO_HOST, to_host),
            (sent, BUT_DEFAULT, Rule::MAIN),
            (sent, PRIORITY, STATION_TABLE),
        ];
        let of_family = |family| {
            of_host.map(|(interface, priority, table)| Rule {
                family,
                priority,
                interface: interface.to_owned(),
                protocol: Some(IpProtocol::Tcp),
                table,
                but_default: table == Rule::MAIN,
            })
        };
        return families(gateway).flat_map(of_family).collect();
    }
    let is_marking = gateway.mode() == Mode::Spep;
    let mut rules = Vec::new();
    let lan = gateway.lan.iter().map(|interface| (interface, Side::Lan));
    let wan = (!is_marking).then_some((&gateway.wan, Side::Wan));
    for (interface, side) in lan.chain(wan) {
        for family in families(gateway) {
            let protocols: &[IpProtocol] = match family {
                _ if is_marking => &[IpProtocol::Esp],
                _ if gateway.esp.is_some() && side == Side::Wan => {
                    &[IpProtocol::Tcp, ICMPV6, IpProtocol::Esp]
                }
                Family::V4 => &[IpProtocol::Tcp, IpProtocol::Icmp],
                Family::V6 => &[IpProtocol::Tcp, ICMPV6],
            };
            rules.extend(protocols.iter().map(|protocol| Rule {
                family,
                priority: PRIORITY,
                interface: interface.clone(),
                protocol: Some(*protocol),
                table: TABLES[side as usize],
                but_default: false,
            }));
        }
    }
    rules
}

/// The name of a protocol that [`rules`] are about, for `ip rule`; `None` of others.
pub(crate) fn name(protocol: IpProtocol) -> Option<&'static str> {
    match protocol {
        IpProtocol::Tcp => Some("tcp"),
        IpProtocol::Icmp => Some("icmp"),
        ICMPV6 => Some("ipv6-icmp"),
        IpProtocol::Esp => Some("esp"),
        _ => None,
    }
}

/// The versions of IP that a gateway carries: the agent of a mobile host, those of which the host has an address; and the
/// option that is marked is of IPv6, also where it gets into the packets.
pub(crate) fn families(gateway: &Gateway) -> impl Iterator<Item = Family> {
    let mode = gateway.mode();
    let own = match mode {
        Mode::Mobile => mhp::addresses(gateway).ok(),
        _ => None,
    };
    Family::available().filter(move |family| match mode {
        Mode::Mobile => own.is_some_and(|own| !of_family(own, *family).is_unspecified()),
        Mode::Spep => *family == Family::V6,
        Mode::Split if gateway.esp.is_some() => *family == Family::V6,
        _ => true,
    })
}

/// Whether the rules that there are now are as they were to be: before Linux 4.17, the kernel adds rules without
/// their protocol.
fn check(wanted: &[Rule], found: &[Rule]) -> Result<(), Error> {
    match wanted.iter().all(|rule| found.contains(rule)) {
        true => Ok(()),
        false => Err(Error::System {
            action: "sending only some protocols to the gateway".to_owned(),
            source: io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel has no rules by protocol, as Linux 4.17 and newer have",
            ),
        }),
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for rule in &self.rules {
            match self.netlink.remove_rule(rule) {
                Err(Error::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => warn!(%error, "a rule is left behind"),
                Ok(()) => {}
            }
        }
    }
}

/// The addresses of a mobile host: those of its interface.
fn own_addresses(gateway: &Gateway) -> Result<[IpAddr; 2], Error> {
    let own = mhp::addresses(gateway)?;
    match own.iter().all(IpAddr::is_unspecified) {
        false => Ok(own),
        true => Err(Error::System {
            action: format!("looking for the address of {}", gateway.wan),
            source: io::ErrorKind::AddrNotAvailable.into(),
        }),
    }
}

/// That of the addresses of IPv4 and of IPv6.
fn of_family([v4, v6]: [IpAddr; 2], family: Family) -> IpAddr {
    match family {
        Family::V4 => v4,
        Family::V6 => v6,
    }
}

/// The router's own addresses for its notices: those of the interface of the hop, and of a version of IP of which it has
/// none, those of `lo`.
pub(crate) fn notifying(netlink: &Netlink, gateway: &Gateway) -> Vec<IpAddr> {
    let of = |name: &str| netlink.attachment(name).addresses.into_iter();
    of(&gateway.wan).chain(of("lo")).filter(|address| !address.is_loopback()).collect()
}

/// Removes the rules that a gateway which was killed has left in the network namespace of the calling thread. Returns how
/// many there were.
pub(crate) fn remove_rules() -> Result<usize, Error> {
    let netlink = Netlink::open()?;
    let ours = netlink.rules();
    ours.iter().try_for_each(|rule| netlink.remove_rule(rule))?;
    remove_station_routes(&netlink)?;
    Ok(ours.len())
}

/// Removes the routes by the base station to which a mobile host is attached.
pub(crate) fn remove_station_routes(netlink: &Netlink) -> Result<(), Error> {
    Family::available().try_for_each(|family| netlink.remove_default_route(family, STATION_TABLE))
}

/// What lets the process load BPF programs that need these capabilities.
pub(crate) fn bpf_rights(capabilities: &str) -> String {
    format!(
        "run it as root, or give the service the right: systemctl edit lasthopd, with the lines [Service], \
         AmbientCapabilities={capabilities}, CapabilityBoundingSet={capabilities} and SystemCallFilter=bpf; \
         and systemctl restart lasthopd"
    )
}

/// What lets it load the programs that choose queues: for SYNs and RSTs, and for the datagrams of a pair.
pub(crate) fn queues_rights() -> String {
    bpf_rights("CAP_BPF")
}

/// Whether SYNs and RSTs should have queues of their own: TCP passes the devices.
pub(crate) fn needs_control_queues(gateway: &Gateway) -> bool {
    rules(gateway).iter().any(|rule| rule.protocol == Some(IpProtocol::Tcp))
}

/// Whether SYNs and RSTs have them in the devices of a running gateway that should have them.
pub(crate) fn has_control_queues(netlink: &Netlink, gateway: &Gateway) -> bool {
    let expected = 3 * gateway.workers.max(1);
    DEVICES.iter().all(|name| netlink.queues(name).is_ok_and(|queues| queues as usize >= expected))
}

/// The program that gives SYNs and RSTs queues of their own, if they should have them and can.
fn queue_program(gateway: &Gateway, owners: &Owners) -> Option<QueueProgram> {
    if !needs_control_queues(gateway) {
        return None;
    }
    let refused = |error: &Error| {
        warn!(%error, remedy = queues_rights(), "a flood of SYNs or RSTs can fill the queues of packets of connections");
    };
    QueueProgram::load(owners).inspect_err(refused).ok()
}

/// The device of a side: with the queues of the program, if there is one, or with a queue for each worker.
fn open(name: &str, gateway: &Gateway, program: Option<&QueueProgram>) -> Result<Vec<Tun>, Error> {
    // No packet is too long for it: the interfaces' MTUs count.
    const MTU: u16 = u16::MAX;
    if let Some(program) = program {
        match Tun::open_with_program(name, Offload::Full, MTU, program) {
            Ok(tuns) => return Ok(tuns),
            Err(error) => {
                warn!(%error, "a flood of SYNs or RSTs can fill the queue of packets of connections")
            }
        }
    }
    let queues = NonZeroUsize::new(gateway.workers).unwrap_or(NonZeroUsize::MIN);
    Tun::open_queues(name, Offload::Full, MTU, queues)
}

/// Makes the device of a side, and the routes by it; a host's own packets are from its own addresses of IPv4 and of IPv6.
fn device(
    netlink: &Netlink,
    gateway: &Gateway,
    side: Side,
    own: Option<[IpAddr; 2]>,
    program: Option<&QueueProgram>,
) -> Result<Vec<Tun>, Error> {
    let name = DEVICES[side as usize];
    let tuns = open(name, gateway, program)?;
    // Packets come from anywhere, and the kernel sends none of its own.
    let filter = format!("net.ipv4.conf.{name}.rp_filter");
    // In a container, it may be as it should be, and not be ours to set.
    if netlink::sysctl(&filter).is_ok_and(|value| value != "0") {
        netlink::set_sysctl(&filter, "0")?;
    }
    if gateway.mode() == Mode::Notify {
        // Its notices have an address of the router's own.
        let local = format!("net.ipv4.conf.{name}.accept_local");
        if netlink::sysctl(&local).is_ok_and(|value| value != "1") {
            netlink::set_sysctl(&local, "1")?;
        }
    }
    let mode = format!("net.ipv6.conf.{name}.addr_gen_mode");
    match netlink::sysctl(&mode).map(|_| netlink::set_sysctl(&mode, "1")) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(%error, "the device has an IPv6 address of its own"),
        Err(error) => warn!(%error, "without IPv6"),
    }
    netlink.set_queue_length(name, QUEUE)?;
    netlink.set_up(name)?;
    for family in families(gateway) {
        let source = own.filter(|_| side == Side::Lan).map(|own| of_family(own, family));
        match netlink.add_default_route(family, name, TABLES[side as usize], source) {
            Err(error) if family == Family::V6 => warn!(%error, "without IPv6"),
            result => result?,
        }
    }
    Ok(tuns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_ignores_the_protocol_of_rules_is_named() {
        let rule = |protocol| Rule {
            family: Family::V4,
            priority: PRIORITY,
            interface: "lan0".to_owned(),
            protocol,
            table: TABLES[0],
            but_default: false,
        };
        let wanted = [IpProtocol::Tcp, IpProtocol::Icmp].map(|protocol| rule(Some(protocol)));
        assert!(check(&wanted, &wanted).is_ok());
        // The second is the same as the first to it.
        let error = check(&wanted, &[rule(None)]).unwrap_err().to_string();
        assert!(error.contains("Linux 4.17"), "{error}");
    }
}
