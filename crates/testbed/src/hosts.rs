//! What our stack does in a scenario: the ends of flows, in a host at each node with a device of its
//! own, and the boxes.

use crate::Error;
use crate::addresses::{self, Purpose, VERSIONS};
use crate::kernel::KernelEnds;
use crate::network::{Network, has_host};
use crate::state::{RunState, address};
use base::{Duration, Seed};
use host::{Boxes, Host, Middlebox, Settings};
use lab::{Accounts, Pairing};
use live::emulator::{Bytes, Node};
use live::stack::Stack;
use live::{Clock, Copies};
use middlebox::Contents;
use scenario::{End, Endpoint, Flow, IpVersion, Report, Scenario, install, install_boxes};
use std::net::IpAddr;
use std::sync::Arc;
use tcp::mechanism::Mechanism;

/// What our code does in a network.
pub(crate) struct Made {
    /// By the index of the node, our hosts with the applications of the scenario's flows.
    pub(crate) hosts: Vec<Option<Host<End>>>,
    /// What nodes do besides what their kernels do.
    pub(crate) nodes: Vec<Node>,
    /// The bytes of what has arrived at their boxes, and of what these write themselves.
    pub(crate) bytes: (Bytes, Contents),
    /// The ends of flows on the kernel's stack.
    pub(crate) kernel: KernelEnds,
}

/// Makes what our code does in a scenario with this purpose.
pub(crate) fn make(scenario: &Scenario, seed: u64, purpose: Purpose) -> Made {
    let host = |node: usize| {
        let [v4, v6] = VERSIONS.map(|ip| addresses::of(node, scenario::Stack::Lasthop, ip));
        let mut host = Host::new(v4, Seed(seed).stream(&format!("host.{node}")));
        host.add_address(v6);
        let shared_probe = scenario.shared_probes.contains(&node);
        host.set(Settings {
            keep_closed: true,
            shared_probe,
            measure_latency: true,
            ..Settings::default()
        });
        host
    };
    let nodes = 0..scenario.nodes.len();
    let hosts = nodes.map(|node| has_host(scenario, node).then(|| host(node))).collect();
    let node =
        |node| Node { addresses: purpose.addresses(node).collect(), boxes: Boxes::default() };
    let nodes = (0..scenario.nodes.len()).map(node).collect();
    let arrived = Bytes::default();
    let read = arrived.clone();
    let contents = Contents::beside(move |payload, out| read.read(payload, out));
    let kernel = KernelEnds::default();
    let mut places = Places { scenario, purpose, hosts, nodes, contents: contents.clone(), kernel };
    install(scenario, seed, &mut places);
    // What is coded or hidden goes beside the packets here, too.
    let _ = install_boxes(scenario, seed, &mut places);
    let Places { hosts, nodes, kernel, .. } = places;
    Made { hosts, nodes, bytes: (arrived, contents), kernel }
}

/// The nodes of the testbed.
struct Places<'a> {
    scenario: &'a Scenario,
    purpose: Purpose,
    hosts: Vec<Option<Host<End>>>,
    nodes: Vec<Node>,
    contents: Contents,
    kernel: KernelEnds,
}

impl scenario::Placement for Places<'_> {
    const STREAMS: bool = false;

    fn endpoint(&mut self, flow: usize, node: usize) -> &mut dyn Endpoint {
        let Flow { from, stacks, .. } = &self.scenario.flows[flow];
        let stack = if node == *from { stacks.from } else { stacks.to };
        match &mut self.hosts[node] {
            Some(host) if stack == scenario::Stack::Lasthop => host,
            _ => self.kernel.end(flow, node),
        }
    }

    fn address(&self, flow: usize, node: usize) -> IpAddr {
        address(self.scenario, flow, node)
    }

    fn node_host(&mut self, node: usize) -> &mut Host<End> {
        let host = self.hosts[node].as_mut();
        host.expect("`has_host` says that what belongs to no flow has one")
    }

    fn own(&self, node: usize, ip: IpVersion) -> IpAddr {
        self.purpose.own(node, ip)
    }

    fn addresses(&self, node: usize) -> Vec<IpAddr> {
        self.purpose.addresses(node).collect()
    }

    fn contents(&self) -> Contents {
        self.contents.clone()
    }

    fn add_box(&mut self, node: usize, middlebox: Box<dyn Middlebox + Send>) {
        self.nodes[node].boxes.add(middlebox);
    }
}

/// A running host.
pub(crate) struct Running {
    pub(crate) node: usize,
    stack: live::stack::Running<End>,
}

impl Running {
    /// The way of indications to the host.
    pub(crate) fn indications(&self) -> live::stack::Indications<End> {
        self.stack.indications()
    }

    /// Whether it still runs.
    pub(crate) fn check(&self) -> Result<(), Error> {
        Ok(self.stack.check()?)
    }

    /// Whether its host sends nothing of its own accord any more.
    pub(crate) fn is_finished(&self) -> Result<bool, Error> {
        Ok(self.stack.call(|_, host| host.is_finished())?)
    }

    /// The accounts of closed connections of flows of many, which the host drops.
    pub(crate) fn collect(&self, state: &Arc<RunState>) -> Result<Accounts, Error> {
        let state = Arc::clone(state);
        Ok(self.stack.call(move |_, host| Accounts::of_ended(&state.scenario, PAIRING, host))?)
    }

    /// The accounts of the remaining ends; the host then stops.
    pub(crate) fn stop(self, state: &Arc<RunState>) -> Result<Accounts, Error> {
        let state = Arc::clone(state);
        let accounts =
            self.stack.call(move |_, host| Accounts::of(&state.scenario, PAIRING, host))?;
        // Connections in progress stay unfinished.
        let _ = self.stack.stop(Duration::ZERO);
        Ok(accounts)
    }
}

/// How the two ends of a connection are matched on real packets.
const PAIRING: Pairing = Pairing::ClientPort;

/// Whether boxes must say which copy of a segment was corrupted.
fn name_copies(scenario: &Scenario) -> bool {
    scenario.flows.iter().any(|flow| {
        let nonce =
            |m: &Mechanism| matches!(m, Mechanism::NoticeAuthentication(guard) if guard.nonce);
        flow.report == Report::Forward || flow.sender.mechanisms.iter().any(nonce)
    })
}

/// Starts the hosts on the devices of their nodes, which they take.
pub(crate) fn start(
    hosts: Vec<Option<Host<End>>>,
    clock: Clock,
    network: &mut Network,
    scenario: &Scenario,
    copies: &Copies,
) -> Result<Vec<Running>, Error> {
    let devices = network.nodes.iter_mut().map(|node| node.host.take());
    let both = hosts.into_iter().zip(devices).enumerate();
    let both = both.filter_map(|(node, (host, device))| Some((node, host?, device?)));
    let start = |(node, host, device)| {
        let stack = Stack::new(host, device, clock);
        let stack = if name_copies(scenario) { stack.copies(copies.clone()) } else { stack };
        Ok(Running { node, stack: stack.start()? })
    };
    both.map(start).collect()
}
