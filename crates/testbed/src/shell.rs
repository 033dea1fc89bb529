//! The network of a scenario for programs of the user's: at one end of a flow, and behind the other.

mod refusals;

use crate::addresses::{self, Purpose, VERSIONS};
use crate::network::{Network, device};
use crate::report::Outcome;
use crate::{Error, hosts, links, run};
use base::Duration;
use live::emulator::Running;
use live::namespace::Launch;
use live::netlink::{Family, Rule, set_sysctl};
use live::{Clock, Copies, Namespace, Nat};
use scenario::{IpVersion, Routes, Scenario, Stack};
use std::net::IpAddr;

/// What is wanted of a network.
#[derive(Clone, Debug, Default)]
pub struct Wanted<'a> {
    /// The seed of the random behaviour of links and boxes.
    pub seed: u64,
    /// The index of the flow at whose receiver programs run.
    pub flow: usize,
    /// At the sender, there is the network of this machine; else a namespace for a server.
    pub machine: bool,
    /// The congestion control of the kernels at both ends, if it is not the machine's.
    pub congestion: Option<&'a str>,
}

/// An end of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The receiver, where the user's programs are.
    Near,
    /// The sender, which they reach over the links of the scenario.
    Far,
}

/// The nodes, links and boxes of a scenario in real time, for programs. Dropping it ends them, and removes it.
pub struct Shell {
    /// Without flows.
    scenario: Scenario,
    /// The nodes at the near and the far end.
    ends: [usize; 2],
    /// Until it is stopped.
    emulator: Option<Running>,
    nat: Option<Nat>,
    // It is dropped after the emulator, which has its devices.
    network: Network,
}

/// The MTU at both ends: that of Ethernet. Between them there is room for what boxes add.
const MTU: u32 = 1500;

/// The time that programs have to end.
const PATIENCE: Duration = Duration::from_secs(2);

impl Shell {
    /// Makes the network and starts its links and boxes.
    ///
    /// # Errors
    /// If the process lacks a privilege, if something of the scenario belongs to its flows, or if the system refuses
    /// a setting.
    pub fn start(scenario: &Scenario, wanted: &Wanted<'_>) -> Result<Shell, Error> {
        run::check_rights()?;
        refusals::check(scenario)?;
        let flow = &scenario.flows[wanted.flow];
        let [near, far] = [flow.to, flow.from];
        // Programs send what they like. The settings of flows are for the lab's applications.
        let mut scenario = scenario.clone();
        scenario.flows.clear();
        let mut network = Network::build(&scenario, None, Purpose::Programs)?;
        let hosts::Made { nodes, bytes, .. } =
            hosts::make(&scenario, wanted.seed, Purpose::Programs);
        route_beyond(&scenario, &network, far)?;
        for end in [near, far] {
            prepare_end(&scenario, &network, end)?;
        }
        let inside = &network.nodes[far].namespace;
        let nat = wanted.machine.then(|| Nat::open(inside)).transpose();
        let nat = nat.map_err(|error| Error::System(error.to_string()))?;
        if let Some(control) = wanted.congestion {
            for end in [near, far] {
                network.nodes[end].netlink.set_congestion_control(control)?;
            }
        }
        let link_sockets = &links::LinkSockets::new();
        let default_gateway = wanted.machine.then_some(far);
        let nodes = links::Nodes { nodes, bytes, link_sockets, default_gateway };
        let (copies, clock, nowhere) = (Copies::default(), Clock::start(), links::Hosts::default());
        let seed = wanted.seed;
        let emulator = links::start(&scenario, seed, clock, &mut network, nodes, &copies, nowhere)?;
        Ok(Shell { scenario, ends: [near, far], emulator: Some(emulator), nat, network })
    }

    /// The address of an end. That of the far one is the machine's, if it is wanted, of those versions of IP that the
    /// machine has.
    #[must_use]
    pub fn address(&self, end: End, ip: IpVersion) -> Option<IpAddr> {
        match (end, &self.nat) {
            (End::Far, Some(nat)) => {
                let all = nat.addresses().iter();
                all.copied().find(|address| address.is_ipv6() == (ip == IpVersion::V6))
            }
            (end, _) => Some(addresses::of(self.node(end), Stack::Linux, ip)),
        }
    }

    /// What was changed on the machine, and what of its network cannot be reached.
    #[must_use]
    pub fn words(&self) -> &[String] {
        self.nat.as_ref().map_or(&[], Nat::words)
    }

    /// Starts a program at an end, as a child of the calling process, which waits for it. Returns its process id.
    ///
    /// # Errors
    /// The system's.
    pub fn launch(&self, end: End, launch: &Launch) -> Result<u32, live::Error> {
        self.namespace(end).start(launch)
    }

    /// Whether a program at the far end waits for connections or datagrams.
    ///
    /// # Errors
    /// If the process may not enter namespaces.
    pub fn is_served(&self) -> Result<bool, Error> {
        const LISTENS: &str = "0A";
        let sockets = |protocol: &str| {
            let path = format!("/proc/thread-self/net/{protocol}");
            std::fs::read_to_string(path).unwrap_or_default()
        };
        let waits = || {
            let is_listener = |line: &str| line.split_whitespace().nth(3) == Some(LISTENS);
            ["tcp", "tcp6"].iter().any(|of| sockets(of).lines().any(is_listener))
                // Below the line of titles.
                || ["udp", "udp6"].iter().any(|of| sockets(of).lines().count() > 1)
        };
        Ok(self.namespace(End::Far).run(waits)?)
    }

    /// Ends all programs and the network. The outcome has no rows.
    ///
    /// # Errors
    /// If a device was removed.
    pub fn stop(mut self) -> Result<Outcome, Error> {
        self.end_programs();
        let Some(emulator) = self.emulator.take() else {
            unreachable!("it is taken here alone");
        };
        let report = emulator.stop()?;
        Ok(run::outcome(&self.scenario, &report, Vec::new()))
    }

    fn end_programs(&self) {
        for node in &self.network.nodes {
            node.namespace.end_processes(PATIENCE);
        }
    }

    fn node(&self, end: End) -> usize {
        self.ends[end as usize]
    }

    fn namespace(&self, end: End) -> &Namespace {
        &self.network.nodes[self.node(end)].namespace
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.end_programs();
    }
}

/// Routes all that has no other route to a node.
fn route_beyond(scenario: &Scenario, network: &Network, to: usize) -> Result<(), Error> {
    let routes = Routes::over(scenario.nodes.len(), &scenario.links);
    for (index, node) in network.nodes.iter().enumerate() {
        let Some(hop) = routes.next(index, to) else { continue };
        for (family, ip) in Family::ALL.into_iter().zip(VERSIONS) {
            let own = addresses::of(index, Stack::Linux, ip);
            let by = device(hop.link);
            node.netlink.add_default_route(family, &by, Rule::MAIN, Some(own))?;
        }
    }
    Ok(())
}

/// Prepares a node for programs.
fn prepare_end(scenario: &Scenario, network: &Network, end: usize) -> Result<(), Error> {
    let node = &network.nodes[end];
    for (index, link) in scenario.links.iter().enumerate() {
        if link.from == end || link.to == end {
            node.netlink.set_mtu(&device(index), MTU)?;
        }
    }
    // Any user may ping. Not where groups of the machine are unknown: in a user namespace.
    let permit = || set_sysctl("net.ipv4.ping_group_range", "0 2147483647");
    let _ = node.namespace.run(permit)?;
    Ok(())
}
