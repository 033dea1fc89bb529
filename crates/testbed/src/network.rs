//! Namespaces, devices and routes of a scenario.

use crate::addresses::{self, Purpose, VERSIONS};
use crate::{Error, settings};
use live::{Namespace, Netlink, Offload, Tun, netlink};
use scenario::{Attack, IpVersion, Method, Report, Routes, Scenario, Stack};

/// The network of a scenario. Dropping it removes it.
pub(crate) struct Network {
    /// By the index of the node.
    pub(crate) nodes: Vec<Node>,
    /// The devices at the two ends of each link, the end where its forward direction starts first.
    pub(crate) links: Vec<[Tun; 2]>,
}

/// A node.
pub(crate) struct Node {
    pub(crate) namespace: Namespace,
    pub(crate) netlink: Netlink,
    /// The device of our host, if there is one here.
    pub(crate) host: Option<Tun>,
}

/// The name of the device of our host.
pub(crate) const HOST: &str = "host";

/// The name of the device at either end of a link.
pub(crate) fn device(link: usize) -> String {
    format!("link{link}")
}

/// The queue length of a device: large enough that no packet is lost there.
const WAITING: u32 = 10_000;

impl Network {
    /// Makes the network for this purpose. The names of its namespaces have the label.
    pub(crate) fn build(
        scenario: &Scenario,
        label: Option<&str>,
        purpose: Purpose,
    ) -> Result<Network, Error> {
        let mtu = mtu(scenario);
        let make = |node| make_node(scenario, node, label, (purpose, mtu));
        let nodes = (0..scenario.nodes.len()).map(make).collect::<Result<Vec<Node>, Error>>()?;
        let links = scenario.links.iter().enumerate().map(|(index, link)| {
            let end = |node: usize| make_device(&nodes[node], &device(index), mtu);
            Ok([end(link.from)?, end(link.to)?])
        });
        let links = links.collect::<Result<_, Error>>()?;
        let network = Network { nodes, links };
        network.route(scenario, purpose)?;
        Ok(network)
    }

    /// Adds the routes from every node to every other. Where nodes move, the emulator decides on which
    /// link a packet goes: those of the kernels, over all links, do not change.
    fn route(&self, scenario: &Scenario, purpose: Purpose) -> Result<(), Error> {
        let routes = Routes::over(scenario.nodes.len(), &scenario.links);
        for (index, node) in self.nodes.iter().enumerate() {
            for other in 0..self.nodes.len() {
                let Some(hop) = routes.next(index, other) else { continue };
                for (stack, ip) in ends(purpose) {
                    let (to, own) =
                        (addresses::of(other, stack, ip), addresses::of(index, Stack::Linux, ip));
                    let prefix = addresses::whole(ip);
                    node.netlink.add_route(to, prefix, &device(hop.link), Some(own))?;
                }
            }
        }
        Ok(())
    }
}

/// The kinds of addresses of a node.
fn ends(purpose: Purpose) -> impl Iterator<Item = (Stack, IpVersion)> {
    purpose.stacks().iter().flat_map(|&stack| VERSIONS.map(|ip| (stack, ip)))
}

fn make_node(
    scenario: &Scenario,
    index: usize,
    label: Option<&str>,
    (purpose, mtu): (Purpose, u16),
) -> Result<Node, Error> {
    let name = part_of_a_name(&scenario.nodes[index], index);
    let name = label.map_or(name.clone(), |label| format!("{label}-{name}"));
    let namespace = Namespace::create(&name)?;
    let sysctls = match purpose {
        Purpose::Flows => settings::sysctls(scenario, index)?,
        Purpose::Programs => settings::for_programs(),
    };
    let netlink = namespace.run(|| -> Result<Netlink, live::Error> {
        netlink::prepare_node()?;
        for (name, value) in sysctls {
            netlink::set_sysctl(name, &value)?;
        }
        let netlink = Netlink::open()?;
        for ip in VERSIONS {
            let own = addresses::of(index, Stack::Linux, ip);
            netlink.add_address("lo", own, addresses::whole(ip))?;
        }
        Ok(netlink)
    })??;
    let mut node = Node { namespace, netlink, host: None };
    if has_host(scenario, index) {
        let own = VERSIONS.map(|ip| addresses::of(index, Stack::Lasthop, ip));
        let make = || live::stack::device(HOST, mtu, WAITING, &own);
        node.host = Some(node.namespace.run(make)??);
    }
    Ok(node)
}

fn make_device(node: &Node, name: &str, mtu: u16) -> Result<Tun, Error> {
    let tun = node.namespace.run(|| Tun::open(name, Offload::None, mtu))??;
    node.netlink.set_queue_length(name, WAITING)?;
    node.netlink.set_up(name)?;
    Ok(tun)
}

/// Whether an end of a flow at a node uses our stack, or an attacker sends from there.
pub(crate) fn has_host(scenario: &Scenario, node: usize) -> bool {
    let sends = |attack: &Attack| attack.at == node && matches!(attack.method, Method::Blind(_));
    if scenario.attacks.iter().any(sends) {
        return true;
    }
    scenario.flows.iter().any(|flow| {
        (flow.from == node && flow.stacks.from == Stack::Lasthop)
            || (flow.to == node && flow.stacks.to == Stack::Lasthop)
    })
}

/// The MTU of devices: no packet of a flow is larger.
fn mtu(scenario: &Scenario) -> u16 {
    const ETHERNET: u32 = 1500;
    /// The most that boxes add to a packet: tags, the headers of a tunnel or of a repair packet.
    const ADDED: u32 = 256;
    // The largest notices are those of flows with a `notice_size`.
    let largest = scenario.flows.iter().map(|flow| {
        let headers = if flow.ip == IpVersion::V6 { 60 } else { 40 };
        let notice = if flow.report == Report::None { 0 } else { flow.notice_size };
        let packet = match flow.traffic {
            scenario::Traffic::Datagrams(datagrams) => u32::from(datagrams.packet),
            _ => u32::from(flow.sender.mss) + headers,
        };
        packet.max(u32::from(notice))
    });
    let largest = largest.fold(ETHERNET, u32::max) + ADDED;
    u16::try_from(largest).unwrap_or(u16::MAX)
}

/// The part of a namespace's name that is its node's.
fn part_of_a_name(name: &str, index: usize) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    const LONGEST: usize = 60;
    if name.chars().all(fits) && name.len() <= LONGEST {
        return name.to_owned();
    }
    let valid = name.chars().take(LONGEST).map(|c| if fits(c) { c } else { '-' });
    format!("{index}.{}", valid.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_called_as_its_node_if_it_can_be() {
        assert_eq!(part_of_a_name("base-station", 3), "base-station");
        assert_eq!(part_of_a_name("Höhe/1", 3), "3.H-he-1");
    }
}
