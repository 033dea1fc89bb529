//! The keys of a configuration.

use super::esp::{Esp, EspHost, Network};
use super::{DataPath, Mode};
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Count, Written as Quantity};
use crate::reading::shape::{AtLeastOne, Shape, table, unexpected};
use base::{Duration, Rate};
use middlebox::{Connect, HopTransport};
use relay::{HopRate, Teardown};
use serde_json::{Value, json};
use std::net::SocketAddr;
use toml::Spanned;

/// The name or the names of interfaces.
#[derive(Debug)]
pub(super) struct Interfaces(pub(super) Vec<Spanned<String>>);

impl Shape for Interfaces {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Interfaces> {
        if node.get_ref().is_array() {
            return AtLeastOne::read(node, problems).map(|names| Interfaces(names.0));
        }
        if node.get_ref().as_str().is_none() {
            let expected = "the name of an interface in quotes, or a list of names";
            return unexpected(node, expected, problems);
        }
        Some(Interfaces(vec![Spanned::read(node, problems)?]))
    }

    fn schema() -> Value {
        json!({ "anyOf": [String::schema(), AtLeastOne::<String>::schema()] })
    }
}

/// An address and a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listening(pub(super) SocketAddr);

impl Shape for Listening {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Listening> {
        let address = node.get_ref().as_str().and_then(|text| text.parse().ok());
        if let Some(address) = address {
            return Some(Listening(address));
        }
        unexpected(node, "an address and a port in quotes, such as \"127.0.0.1:9273\"", problems)
    }

    fn schema() -> Value {
        json!({ "type": "string", "title": "address and port", "examples": ["127.0.0.1:9273"] })
    }
}

/// The rate of the hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop(pub(super) HopRate);

impl Shape for Hop {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Hop> {
        match node.get_ref().as_str() {
            Some("measured") => Some(Hop(HopRate::Measured)),
            Some(_) => {
                let Quantity(rate) = Quantity::<Rate>::read(node, problems)?;
                Some(Hop(HopRate::Given(rate)))
            }
            None => unexpected(node, "a rate, such as \"10 Mbit/s\", or \"measured\"", problems),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [Quantity::<Rate>::schema(), { "const": "measured" }] })
    }
}

table! {
    /// The configuration of a gateway.
    pub(super) struct Written {
        /// The interface, or the interfaces, of the network of the users. In modes `mobile` and `notify`, there are
        /// none.
        lan: Interfaces;
        /// The interface of the hop.
        wan: Spanned<String>, needed;
        /// What the gateway does with TCP connections: it lets their handshakes pass, and splits them then (`spoof`);
        /// it splits them by handshakes of its own (`split`); or it carries them over the hop by SRP to another
        /// gateway at its other end (`pair`). As a base station, it splits those of mobile hosts, and hands them over
        /// to the next base station (`station`); `mobile` is the agent of such a host. Or it splits none, and marks
        /// packets of ESP instead, so that mobile hosts learn where others were lost (`spep`).
        /// In mode `notify`, it does nothing with them: it notifies the sources of segments that arrived damaged over
        /// the hop.
        mode: Mode = Mode::default();
        /// When the gateway accepts a client (mode `split`): once the server has accepted (`first`, which is the
        /// default there), or at once, before it connects to the server (`at-once`).
        connect: Spanned<Connect>;
        /// The transport of a mobile host's connections over the hop (mode `mobile`): TCP (`tcp`), or SRP (`srp`), for
        /// which they end in the host.
        hop: HopTransport = HopTransport::default();
        /// The rate of the hop in the direction away from the gateway, of IP packets. The gateway sends at this
        /// rate, with equal shares for the addresses behind the hop. With `measured`, it learns the rate from
        /// what is delivered. Without, each connection sends as its congestion control lets it. Modes `station` and
        /// `mobile` have it for SRP alone, which measures it unless it is given.
        rate: Hop;
        /// The most data of a connection that the gateway holds in each direction, besides what its receive
        /// window takes.
        cache: Spanned<Amount>;
        /// When the end of a stream (FIN) is acknowledged to its sender: at once (`spoofed`), or once the
        /// receiver has acknowledged it (`end-to-end`).
        teardown: Teardown = Teardown::default();
        /// The most connections that are carried at once. Further ones pass as they are.
        connections: Count;
        /// The most of them that a user has: an address that is not behind the hop, in IPv6 a network of 64 bits.
        /// Without, there is no limit.
        connections_per_user: Count;
        /// The most data that all connections hold together. Each user may hold as much as is free: one alone fills
        /// half of it, two a third each. Once it is used up, further connections pass as they are. Without, it is a
        /// quarter of the machine's memory.
        memory: Spanned<Amount>;
        /// Threads that carry connections, each of them a part, where the hop has no `rate` (modes `spoof` and `split`).
        /// Of `connections`, `connections_per_user` and `memory`, each has an equal part.
        workers: Spanned<Count>;
        /// The address and the UDP port of the other gateway (mode `pair`). Without, this one waits for the
        /// other.
        peer: Listening;
        /// The public key of the other gateway (mode `pair`).
        peer_key: Spanned<String>;
        /// The file with the private key of this gateway (mode `pair`).
        key: String = "/etc/lasthop/private.key".to_owned();
        /// The address and the UDP port at which this gateway listens to the other (mode `pair`).
        listen: Listening;
        /// The hop over which SRP goes carries other traffic, too (modes `pair`, `station` and `mobile`): what is in
        /// flight is bounded as by TCP's congestion window, and `rate` is the most. Without, all that is lost counts as
        /// corrupted.
        share: Spanned<bool>;
        /// The largest packet of the hop, bytes (mode `pair`). Without, it is found out, up to that of its interface.
        mtu: Spanned<Count>;
        /// The file with the key that the base stations and mobile hosts of a network share (modes `station` and
        /// `mobile`).
        network_key: String = "/etc/lasthop/network.key".to_owned();
        /// Connections over IPv6 go over the hop under ESP, to another gateway with this key (mode `split`; SPEP): this one
        /// stands beside the fixed host (`fixed`), whose packets get the option in which the base station marks what it
        /// has received; or beside the mobile host (`mobile`), where the marks say why packets are missing.
        esp: Spanned<EspHost>;
        /// The file with the key that both gateways share (`esp`).
        esp_key: String = Esp::KEY.to_owned();
        /// The networks of IPv6 behind the other gateway (`esp`): from there and to there, TCP passes under ESP, or not at
        /// all.
        esp_networks: AtLeastOne<Network>;
        /// The largest packet of the path to the other gateway, bytes (`esp`). Without, it is that of `wan`.
        esp_mtu: Spanned<Count>;
        /// Where packets are marked (mode `spep`): in the kernel, by a BPF program (`kernel`); in user space, as packets
        /// of other modes pass (`user-space`); or in the kernel if that is possible, else in user space (`auto`).
        data_path: DataPath = DataPath::default();
        /// The most flows that are known (mode `spep`); a new one takes the place of one that has been idle for long.
        flows: Count;
        /// A flow that has been idle for longer is forgotten (mode `spep`).
        idle: Quantity<Duration>;
        /// The Unix datagram socket at which the driver of the hop's device, or its agent, reports frames that arrived
        /// damaged (mode `notify`).
        link_socket: String = "/run/lasthop/link.sock".to_owned();
        /// The most notices that are sent in a second (mode `notify`).
        notices: Count = Count(1000);
        /// Where metrics for Prometheus are served, under `/metrics`. Whoever reaches this address can read them:
        /// it should be local. Without, there are none.
        metrics: Listening;
        /// The file to which a line of JSON is added for each connection that ends. Without, there are none.
        records: String;
    }
}
