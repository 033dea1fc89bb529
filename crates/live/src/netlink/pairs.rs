//! Pairs of Ethernet devices, which join two namespaces.

use super::Netlink;
use crate::error::Doing;
use crate::{Error, Namespace};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage,
};
use std::os::fd::AsRawFd as _;

impl Netlink {
    /// Makes a pair of devices (veth): one here, and `peer` in another namespace. Both are down. They are gone when
    /// either is removed, or its namespace.
    ///
    /// # Errors
    /// If one of the names is taken, or the kernel refuses.
    pub fn add_pair(&self, device: &str, peer: &str, of: &Namespace) -> Result<(), Error> {
        let mut far = LinkMessage::default();
        let namespace = LinkAttribute::NetNsFd(of.descriptor().as_raw_fd());
        far.attributes = vec![LinkAttribute::IfName(peer.to_owned()), namespace];
        let mut near = LinkMessage::default();
        let data = InfoData::Veth(InfoVeth::Peer(far));
        near.attributes = vec![
            LinkAttribute::IfName(device.to_owned()),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(data)]),
        ];
        let action = || format!("making devices {device} and {peer}, of {}", of.name());
        self.create(RouteNetlinkMessage::NewLink(near), action)
    }

    /// Removes a device.
    ///
    /// # Errors
    /// If there is none of that name, or the kernel refuses.
    pub fn remove_device(&self, device: &str) -> Result<(), Error> {
        let message = RouteNetlinkMessage::DelLink(self.numbered(device)?);
        self.requests.change(message, 0).doing(|| format!("removing device {device}"))
    }
}
