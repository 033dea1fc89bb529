//! Base stations and mobile hosts (MHP, `yavatkar1994`): what their boxes need besides packets that pass. Mobile hosts
//! and base stations tell each other by datagrams who is attached where, and send SRP to each other; the state of
//! connections goes from one base station to the next over a connection of the kernel's, which is encrypted.

mod agent;
mod courier;
mod guests;
mod mailbox;
mod messages;
mod sealed;
mod tunnels;

pub(crate) use agent::Agent;
pub(crate) use courier::Courier;
pub(crate) use guests::Guests;
pub(crate) use mailbox::Mailbox;
pub(crate) use messages::Messages;
pub(crate) use tunnels::{End, Tunnels};

use crate::peer::PeerError;
use channel::PresharedKey;
use live::{Error, Netlink};
use scenario::Gateway;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// The key of a network, as its members read it from their files.
#[derive(Clone)]
pub(crate) struct NetworkKey {
    /// For what goes between base stations, and for SRP over the hop.
    pub(crate) preshared: PresharedKey,
    /// For messages of mobile hosts and to them.
    pub(crate) secret: String,
}

impl NetworkKey {
    pub(crate) fn read(path: &Path) -> Result<NetworkKey, PeerError> {
        let text = crate::peer::read_secret(path)?;
        let secret = text.trim().to_owned();
        let shown = || path.display().to_string();
        let preshared = secret.parse().map_err(|error| PeerError::BadKey(shown(), error))?;
        Ok(NetworkKey { preshared, secret })
    }
}

/// The addresses of IPv4 and of IPv6 by which others know a gateway's node: those of the interface of the hop that are
/// not of the link alone, or, of a version that it has none of, those of its LAN; the unspecified one where there is none.
pub(crate) fn addresses(gateway: &Gateway) -> Result<[IpAddr; 2], Error> {
    let netlink = Netlink::open()?;
    let addresses: Vec<IpAddr> = [&gateway.wan]
        .into_iter()
        .chain(&gateway.lan)
        .flat_map(|interface| netlink.attachment(interface).addresses)
        .filter(|address| !matches!(address, IpAddr::V4(address) if address.is_link_local()))
        .collect();
    let of = |is_ipv6, none: IpAddr| {
        addresses.iter().copied().find(|address| address.is_ipv6() == is_ipv6).unwrap_or(none)
    };
    Ok([of(false, Ipv4Addr::UNSPECIFIED.into()), of(true, Ipv6Addr::UNSPECIFIED.into())])
}
