//! The ends of flows that our stack plays: a host at each node, at a device of its own.

use crate::Error;
use crate::addresses::{self, VERSIONS};
use crate::network::{Network, has_host};
use crate::play::{Play, address};
use base::{Duration, Seed};
use host::{Host, Settings};
use lab::{Accounts, End, Pairing, Scenario, enact};
use live::Clock;
use live::stack::Stack;
use std::net::IpAddr;
use std::sync::Arc;

/// Our hosts, by the index of their node, with the applications of the scenario's flows.
pub(crate) fn make(scenario: &Scenario, seed: u64) -> Vec<Option<Host<End>>> {
    let host = |node: usize| {
        let [v4, v6] = VERSIONS.map(|ip| addresses::of(node, lab::Stack::Lasthop, ip));
        let mut host = Host::new(v4, Seed(seed).stream(&format!("host.{node}")));
        host.add_address(v6);
        host.set(Settings { keep_closed: true, ..Settings::default() });
        host
    };
    let nodes = 0..scenario.nodes.len();
    let hosts = nodes.map(|node| has_host(scenario, node).then(|| host(node))).collect();
    let mut stage = Places { scenario, hosts };
    enact(scenario, seed, &mut stage);
    stage.hosts
}

/// Where applications live.
struct Places<'a> {
    scenario: &'a Scenario,
    hosts: Vec<Option<Host<End>>>,
}

impl lab::Stage for Places<'_> {
    const STREAMS: bool = false;

    fn host(&mut self, flow: usize, node: usize) -> Option<&mut Host<End>> {
        let flow = &self.scenario.flows[flow];
        let stack = if node == flow.from { flow.stacks.from } else { flow.stacks.to };
        self.hosts[node].as_mut().filter(|_| stack == lab::Stack::Lasthop)
    }

    fn address(&self, flow: usize, node: usize) -> IpAddr {
        address(self.scenario, flow, node)
    }
}

/// A host at work.
pub(crate) struct Running {
    pub(crate) node: usize,
    stack: live::stack::Running<End>,
}

impl Running {
    /// What its many ends have to say that are over; they are forgotten.
    pub(crate) fn collect(&self, play: &Arc<Play>) -> Result<Accounts, Error> {
        let play = Arc::clone(play);
        Ok(self.stack.call(move |_, host| Accounts::of_ended(&play.scenario, PAIRING, host))?)
    }

    /// What its ends have to say that are left; then it is gone.
    pub(crate) fn stop(self, play: &Arc<Play>) -> Result<Accounts, Error> {
        let play = Arc::clone(play);
        let told = self.stack.call(move |_, host| Accounts::of(&play.scenario, PAIRING, host))?;
        // What is under way stays unfinished.
        let _ = self.stack.stop(Duration::ZERO);
        Ok(told)
    }
}

/// What both ends of a connection know on real packets.
const PAIRING: Pairing = Pairing::ClientPort;

/// Starts the hosts on the devices of their nodes, which they take.
pub(crate) fn start(
    hosts: Vec<Option<Host<End>>>,
    clock: Clock,
    network: &mut Network,
) -> Result<Vec<Running>, Error> {
    let mtu = network.mtu;
    let devices = network.nodes.iter_mut().map(|node| node.host.take());
    let both = hosts.into_iter().zip(devices).enumerate();
    let both = both.filter_map(|(node, (host, device))| Some((node, host?, device?)));
    let start = |(node, host, device)| {
        Ok(Running { node, stack: Stack::new(host, device, mtu, clock).start()? })
    };
    both.map(start).collect()
}
