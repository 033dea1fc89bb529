//! What a gateway changes in its network namespace: two devices, and the rules and routes that send the
//! packets which the kernel forwards through them.

use live::inline::Side;
use live::netlink::{self, Family, Rule};
use live::{Error, Netlink, Offload, Tun};
use scenario::Gateway;
use tracing::warn;

/// The names of the devices, by [`Side`].
pub(crate) const DEVICES: [&str; 2] = ["lh-lan", "lh-wan"];

/// The routing tables of what arrives from a side, by [`Side`].
pub(crate) const TABLES: [u32; 2] = [201, 202];

/// The priority of the rules: after those of the local table (0), before that of the main table (32766).
pub(crate) const PRIORITY: u32 = 100;

/// Packets that wait at a device until they are read.
const QUEUE: u32 = 4096;

/// The changes, which are undone when this is dropped. The devices are gone with their [`Tun`], and with them
/// all routes by them: then the kernel forwards packets as if there were no gateway.
pub(crate) struct Network {
    netlink: Netlink,
    rules: Vec<Rule>,
}

impl Network {
    /// Makes the devices, by [`Side`], and directs packets to them.
    pub(crate) fn set_up(gateway: &Gateway) -> Result<(Network, [Tun; 2]), Error> {
        let netlink = Netlink::open()?;
        for interface in gateway.lan.iter().chain([&gateway.wan]) {
            netlink.index(interface)?;
        }
        let lan = device(&netlink, Side::Lan)?;
        let wan = device(&netlink, Side::Wan)?;
        let mut network = Network { netlink, rules: Vec::new() };
        for interface in &gateway.lan {
            network.direct(interface, Side::Lan)?;
        }
        network.direct(&gateway.wan, Side::Wan)?;
        Ok((network, [lan, wan]))
    }

    /// Has what the gateway before this one, with the same interfaces, has set up.
    pub(crate) fn take_over(gateway: &Gateway) -> Result<Network, Error> {
        let lan = gateway.lan.iter().flat_map(|interface| rules(interface, Side::Lan));
        let rules = lan.chain(rules(&gateway.wan, Side::Wan)).collect();
        Ok(Network { netlink: Netlink::open()?, rules })
    }

    /// Sends what arrives by an interface to the device of its side.
    fn direct(&mut self, interface: &str, side: Side) -> Result<(), Error> {
        for rule in rules(interface, side) {
            self.netlink.add_rule(&rule)?;
            self.rules.push(rule);
        }
        Ok(())
    }
}

/// Those that send what arrives by an interface to the device of its side.
fn rules(interface: &str, side: Side) -> impl Iterator<Item = Rule> {
    let table = TABLES[side as usize];
    let rule =
        move |family| Rule { family, priority: PRIORITY, interface: interface.to_owned(), table };
    Family::ALL.into_iter().map(rule)
}

impl Drop for Network {
    fn drop(&mut self) {
        for rule in &self.rules {
            if let Err(error) = self.netlink.remove_rule(rule) {
                warn!(%error, "a rule is left behind");
            }
        }
    }
}

/// Makes the device of a side, and the routes by it.
fn device(netlink: &Netlink, side: Side) -> Result<Tun, Error> {
    let name = DEVICES[side as usize];
    // No packet is too long for it: the interfaces' MTUs count.
    let tun = Tun::open(name, Offload::Full, u16::MAX)?;
    // Packets come from anywhere, and the kernel sends none of its own.
    let filter = format!("net.ipv4.conf.{name}.rp_filter");
    // In a container, it may be as it should be, and not be ours to set.
    if netlink::sysctl(&filter).is_ok_and(|value| value != "0") {
        netlink::set_sysctl(&filter, "0")?;
    }
    let mode = format!("net.ipv6.conf.{name}.addr_gen_mode");
    match netlink::sysctl(&mode).map(|_| netlink::set_sysctl(&mode, "1")) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(%error, "the device has an IPv6 address of its own"),
        Err(error) => warn!(%error, "without IPv6"),
    }
    netlink.set_queue_length(name, QUEUE)?;
    netlink.set_up(name)?;
    for family in Family::ALL {
        match netlink.add_default_route(family, name, TABLES[side as usize]) {
            Err(error) if family == Family::V6 => warn!(%error, "without IPv6"),
            result => result?,
        }
    }
    Ok(tun)
}
