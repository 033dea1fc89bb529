//! Two nodes and a link between them.

use base::Seed;
use live::emulator::{Direction, Emulator, End};
use live::{Clock, Error, Namespace, Netlink, Offload, Tun, netlink};
use std::net::IpAddr;

/// IPv4 and IPv6 addresses of the two nodes.
pub(crate) const ADDRESSES: [[&str; 2]; 2] = [["10.9.0.1", "fd09::1"], ["10.9.0.2", "fd09::2"]];

/// An emulator with one link that is not running yet, between nodes 0 and 1.
pub(crate) struct Pair {
    pub(crate) nodes: [Namespace; 2],
    pub(crate) emulator: Emulator,
}

impl Pair {
    pub(crate) fn new(
        what: &str,
        mut directions: [Direction; 2],
        seed: Seed,
    ) -> Result<Pair, Error> {
        for (direction, name) in directions.iter_mut().zip(["link.a->b", "link.b->a"]) {
            name.clone_into(&mut direction.name);
        }
        let node = |side: &str| Namespace::create(&format!("{what}-{side}"));
        let nodes = [node("a")?, node("b")?];
        let end = |node: usize| nodes[node].run(|| end(node))?;
        let ends = [end(0)?, end(1)?];
        let mut emulator = Emulator::new(Clock::start(), seed);
        emulator.add_link(ends, directions);
        Ok(Pair { nodes, emulator })
    }
}

/// A device in the calling thread's namespace, with the node's addresses.
fn end(node: usize) -> Result<End, Error> {
    netlink::prepare_node()?;
    let tun = Tun::open("link0", Offload::None, 1500)?;
    let netlink = Netlink::open()?;
    netlink.set_queue_length("link0", 10_000)?;
    netlink.set_up("link0")?;
    for (address, prefix) in ADDRESSES[node].into_iter().zip([24, 64]) {
        let address: IpAddr = address.parse().expect("an address");
        netlink.add_address("link0", address, prefix)?;
    }
    Ok(End { node, tun })
}
