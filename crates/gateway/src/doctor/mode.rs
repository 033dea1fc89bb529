//! What modes need besides packets: keys, a UDP port, a socket of the link.

use super::Finding;
use crate::mhp::{self, NetworkKey};
use crate::network;
use crate::peer::{self, PeerError};
use live::Netlink;
use scenario::{Esp, Gateway, Notifier, Peer, Work};
use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

pub(super) fn examine(gateway: &Gateway, running: bool) -> Vec<Finding> {
    let peer = match &gateway.work {
        Work::Spoof(_) => return gateway.esp.iter().map(esp_key).collect(),
        Work::Spep(..) => return Vec::new(),
        Work::Pair(_, peer) => peer,
        Work::Station(_, file) | Work::Mobile(_, file) => {
            return vec![network_key(file), known_by(gateway)];
        }
        Work::Notify(notifier) => return vec![own_address(gateway), link(notifier)],
    };
    let mut findings = vec![keys(peer)];
    if !running {
        findings.extend(port(peer));
    }
    findings
}

fn keys(peer: &Peer) -> Finding {
    let file = peer.key.display();
    let own = match peer::read_key(&peer.key) {
        Ok(key) => key.public(),
        Err(error) => {
            let mend = match &error {
                PeerError::Key(_, cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                    format!("lasthopd key --file {file}")
                }
                PeerError::Key(..) => "run it as root, or as the service".to_owned(),
                _ => format!("rm {file}; lasthopd key --file {file}"),
            };
            return Finding::error("private key", error.to_string(), Some(mend));
        }
    };
    let mend = || Some("lasthopd key, at the other gateway, prints it".to_owned());
    match peer.peer_key.parse() {
        Err(error) => Finding::error("peer_key", PeerError::PeerKey(error).to_string(), mend()),
        Ok(theirs) if own == theirs => {
            Finding::error("peer_key", "is the key of this gateway, not of the other", mend())
        }
        Ok(_) => Finding::fine("keys", format!("that of this gateway is {own}")),
    }
}

/// Notices have an address of the router's own.
fn own_address(gateway: &Gateway) -> Finding {
    let found = Netlink::open().map(|netlink| network::notifying(&netlink, gateway));
    let (about, wan) = ("address of notices", &gateway.wan);
    match found {
        Ok(own) if own.is_empty() => {
            let message =
                format!("neither {wan} nor lo has an address from which notices could be sent");
            let mend = format!("ip address add ADDRESS dev lo; or give {wan} one");
            Finding::error(about, message, Some(mend))
        }
        Ok(own) => {
            let of = |is_ipv6| own.iter().find(|address| address.is_ipv6() == is_ipv6);
            let all: Vec<_> =
                [false, true].into_iter().filter_map(of).map(IpAddr::to_string).collect();
            Finding::fine(about, all.join(", "))
        }
        Err(error) => Finding::error(about, error.to_string(), None),
    }
}

/// The place of the socket at which the link reports.
fn link(notifier: &Notifier) -> Finding {
    let about = format!("link socket {}", notifier.link_socket.display());
    match std::fs::symlink_metadata(&notifier.link_socket) {
        Ok(found) if !found.file_type().is_socket() => {
            let mend = "link_socket = \"PATH\", in the configuration, is another place".to_owned();
            Finding::error(about, "a file that is no socket is there", Some(mend))
        }
        _ => Finding::fine(about, "the driver of the hop, or its agent, reports there"),
    }
}

/// The addresses by which base stations and mobile hosts know the node.
fn known_by(gateway: &Gateway) -> Finding {
    let about = "addresses";
    match mhp::addresses(gateway) {
        Ok(own) if own.iter().all(IpAddr::is_unspecified) => {
            let wan = &gateway.wan;
            let message =
                format!("{wan} has no address by which base stations could know this node");
            let mend = format!("ip address add ADDRESS dev {wan}");
            Finding::error(about, message, Some(mend))
        }
        Ok(own) => {
            let known = own.iter().filter(|address| !address.is_unspecified());
            let all: Vec<_> = known.map(IpAddr::to_string).collect();
            Finding::fine(about, format!("this node is known by {}", all.join(" and ")))
        }
        Err(error) => Finding::error(about, error.to_string(), None),
    }
}

/// The key that base stations and mobile hosts share.
fn network_key(file: &Path) -> Finding {
    match NetworkKey::read(file) {
        Ok(_) => Finding::fine("network key", "can be read"),
        Err(error) => {
            let file = file.display();
            let mend = format!(
                "lasthopd network-key --file {file}, once; the other members of the network need a copy"
            );
            Finding::error("network key", error.to_string(), Some(mend))
        }
    }
}

/// The key that two gateways share for ESP.
fn esp_key(esp: &Esp) -> Finding {
    match crate::esp::read_key(&esp.key) {
        Ok(_) => Finding::fine("key of ESP", "can be read"),
        Err(error) => {
            let file = esp.key.display();
            let mend =
                format!("lasthopd network-key --file {file}, once; the other gateway needs a copy");
            Finding::error("key of ESP", error.to_string(), Some(mend))
        }
    }
}

/// The port, and the BPF program that tells the other gateway's datagrams there.
fn port(peer: &Peer) -> Vec<Finding> {
    const CODES: &str = "authentication codes";
    let about = format!("UDP at {}", peer.listen);
    let codes = match peer::try_listen(peer.listen) {
        Ok(codes) => codes,
        Err(error) => {
            let port = peer.listen.port();
            let mend = format!(
                "ss -lunp 'sport = :{port}' shows who has it; or listen = \"[::]:PORT\", in the configuration, is \
                 another"
            );
            return vec![Finding::error(about, error.to_string(), Some(mend))];
        }
    };
    let codes = match codes {
        Ok(()) => Finding::fine(CODES, "the kernel can check them"),
        Err(error) => {
            let message = format!(
                "the kernel does not check them: a flood of replayed or forged datagrams can keep out those of the \
                 other gateway ({error})"
            );
            Finding::advice(CODES, message, Some(network::queues_rights()))
        }
    };
    vec![Finding::fine(about, "the address is free"), codes]
}
