//! A device for a host of ours on this machine's network, whose kernel is its router.

use super::addresses::{DEVICES, Ends};
use super::masquerade::{Masquerade, Setting};
use super::{Error, Failure, Peer};
use crate::netlink::{Network, Route};
use crate::{Netlink, Offload, Tun};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The names of the devices, before their numbers.
const DEVICE: &str = "lasthop";
/// Of Ethernet.
const MTU: u16 = 1500;
/// The least that IPv6 permits.
const LEAST_MTU: u16 = 1280;
/// Packets that may wait for our host.
const WAITING: u32 = 10_000;

/// The device, and what was changed for it. All of it is gone when this and the device are dropped.
pub(super) struct Uplink {
    pub(super) tun: Tun,
    /// The addresses of our host.
    pub(super) own: Vec<IpAddr>,
    pub(super) mtu: u16,
    pub(super) changes: Changes,
}

/// What remains to be undone after the device.
pub(super) struct Changes {
    /// Dropped last of all.
    _masquerade: Option<Masquerade>,
    /// What was changed or is still needed, in words.
    pub(super) words: Vec<String>,
}

impl Uplink {
    /// A device by which our host reaches the peer, or the peer our host. `address` is that of our
    /// host, if it is given.
    pub(super) fn open(
        peer: &Peer,
        address: Option<IpAddr>,
        masquerade: bool,
    ) -> Result<Uplink, Error> {
        let netlink = Netlink::open()?;
        let mut taken = netlink.networks();
        let route = match peer {
            Peer::Connect(to) => {
                let prefix = if to.is_ipv4() { 32 } else { 128 };
                taken.push(Network { address: to.ip(), prefix });
                Some((to.ip(), route(&netlink, *to)?))
            }
            Peer::Listen(_) => None,
        };
        let families = match (&route, address) {
            (Some((to, _)), Some(own)) if to.is_ipv4() != own.is_ipv4() => {
                let message = format!("{own} and {to} are of two versions of IP");
                return Err(Error::Unusable(message));
            }
            (Some((to, _)), _) => vec![to.is_ipv6()],
            (None, Some(own)) => vec![own.is_ipv6()],
            (None, None) if has_ipv6() => vec![false, true],
            (None, None) => vec![false],
        };
        let mtu = route.as_ref().map_or(MTU, |(_, route)| mtu(route));
        let (number, tun) = device(mtu)?;
        let ends = |&v6: &bool| match address {
            Some(ours) => Ends::given(ours, &taken),
            None => Ends::choose(number, v6, &taken),
        };
        let ends: Vec<Ends> = families.iter().map(ends).collect::<Result<_, Error>>()?;
        set(&tun, &ends, route.as_ref().map(|(to, route)| (*to, route)))?;
        netlink.set_queue_length(tun.name(), WAITING)?;
        netlink.set_up(tun.name())?;
        for end in &ends {
            netlink.add_address(tun.name(), end.kernels, end.prefix())?;
        }
        let own: Vec<IpAddr> = ends.iter().map(|end| end.ours).collect();
        let changes = changes(&tun, &ends, route.as_ref().map(|(_, route)| route), masquerade)?;
        Ok(Uplink { tun, own, mtu, changes })
    }
}

/// The way to the peer, if our host can take it.
fn route(netlink: &Netlink, peer: SocketAddr) -> Result<Route, Error> {
    let to = peer.ip();
    let unusable = |why: &str| Err(Error::Unusable(format!("{to} {why}")));
    match to {
        IpAddr::V6(address) if address.is_loopback() => {
            return unusable(
                "is reached by the loopback device alone: give another address of this machine, \
                 such as 127.0.0.1",
            );
        }
        IpAddr::V6(address) if address.is_unicast_link_local() => {
            return unusable("is reached from its own link alone: give a global address");
        }
        to if to.is_unspecified() => return unusable("is the address of no machine"),
        _ => {}
    }
    match netlink.route_to(to) {
        Err(_) => Err(Error::Failed(Failure::NoRoute(peer))),
        Ok(route) if !route.unicast => unusable("is not the address of one machine"),
        Ok(route) => Ok(route),
    }
}

fn mtu(route: &Route) -> u16 {
    u16::try_from(route.mtu).unwrap_or(u16::MAX).clamp(LEAST_MTU, MTU)
}

pub(crate) fn has_ipv6() -> bool {
    let disabled = Setting::of(true, "default", "disable_ipv6");
    Path::new("/proc/sys/net/ipv6").exists() && !disabled.is_on()
}

/// The first device whose name is free, and its number.
fn device(mtu: u16) -> Result<(u32, Tun), Error> {
    let mut number = 0;
    loop {
        match Tun::open(&format!("{DEVICE}{number}"), Offload::Full, mtu) {
            Ok(tun) => return Ok((number, tun)),
            Err(crate::Error::System { source, .. })
                if source.kind() == ErrorKind::ResourceBusy && number + 1 < DEVICES =>
            {
                number += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Settings of the device itself, which go with it.
fn set(tun: &Tun, ends: &[Ends], route: Option<(IpAddr, &Route)>) -> Result<(), Error> {
    let of = |v6: bool, key: &str| Setting::of(v6, tun.name(), key);
    if has_ipv6() {
        // No link-local address, and so no solicitations to our host.
        of(true, "addr_gen_mode").set(1)?;
    }
    let loopback = route.is_some_and(|(to, _)| to.is_loopback());
    if loopback {
        // Our host alone can send packets from this device.
        of(false, "route_localnet").set(1)?;
    }
    if route.is_none_or(|(_, route)| !route.local) {
        for end in ends {
            // An error concerns all devices: see `changes`.
            if let Ok(Some(forwarding)) = Setting::forwarding(end.ours.is_ipv6(), tun.name()) {
                forwarding.set(1)?;
            }
        }
    }
    Ok(())
}

/// The changes beyond the device, if the peer is beyond this machine.
fn changes(
    tun: &Tun,
    ends: &[Ends],
    route: Option<&Route>,
    masquerade: bool,
) -> Result<Changes, Error> {
    let device = tun.name();
    let both = |end: &Ends| format!("{} for lasthop, {} for the kernel", end.ours, end.kernels);
    let both = ends.iter().map(both).collect::<Vec<_>>().join("; ");
    let mut words = vec![format!("device {device}: {both}")];
    let mut made = None;
    match (ends, route) {
        ([end], Some(route)) if !route.local && masquerade => {
            let (table, changed) = Masquerade::new(end.ours, device, &route.device)?;
            made = Some(table);
            words.extend(changed);
        }
        // The kernel routes between devices of ours.
        ([end], Some(route)) if !route.local && !route.device.starts_with(DEVICE) => {
            let (ours, out) = (end.ours, &route.device);
            let off = match Setting::forwarding(ours.is_ipv6(), out) {
                Ok(setting) => setting.filter(|setting| !setting.is_on()),
                Err(all) => Some(all),
            };
            if let Some(setting) = off {
                return Err(Error::Unusable(format!(
                    "the peer is beyond this machine, behind {out}, whose packets are not forwarded \
                     to {ours}: use --masquerade, which forwards and translates while it runs; or \
                     `sysctl -w {setting}=1`, and at the peer a route to {ours} by way of this machine"
                )));
            }
            words.push(format!(
                "the peer is beyond this machine: it needs a route to {ours} by way of this \
                 machine; or use --masquerade"
            ));
        }
        _ => {}
    }
    Ok(Changes { _masquerade: made, words })
}
