//! What mode `pair` needs: keys, and a UDP port.

use super::Finding;
use crate::peer::{self, PeerError};
use scenario::{Gateway, Peer, Work};

pub(super) fn examine(gateway: &Gateway, running: bool) -> Vec<Finding> {
    let Work::Pair(_, peer) = &gateway.work else { return Vec::new() };
    let mut findings = vec![keys(peer)];
    if !running {
        findings.push(port(peer));
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

fn port(peer: &Peer) -> Finding {
    let about = format!("UDP at {}", peer.listen);
    match peer::listen(peer.listen) {
        Ok(_) => Finding::fine(about, "the address is free"),
        Err(error) => {
            let port = peer.listen.port();
            let mend = format!(
                "ss -lunp 'sport = :{port}' shows who has it; or listen = \"[::]:PORT\", in the configuration, is \
                 another"
            );
            Finding::error(about, error.to_string(), Some(mend))
        }
    }
}
