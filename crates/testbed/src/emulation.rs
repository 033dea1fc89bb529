//! The network of a scenario without its flows, for other programs.

use crate::addresses::Purpose;
use crate::links::LinkSockets;
use crate::network::Network;
use crate::report::Outcome;
use crate::{Error, addresses, hosts, links, run};
use live::emulator::Running;
use live::{Clock, Copies, Namespace};
use scenario::{IpVersion, Scenario, Stack};
use std::net::IpAddr;

/// The nodes, links and boxes of a scenario in real time, for the traffic of other programs in the
/// namespaces of its nodes. Its flows are not started; they only decide about settings of the
/// kernels, such as ECN. Dropping it removes the network.
pub struct Emulation {
    scenario: Scenario,
    emulator: Running,
    // It is dropped after the emulator, which has its devices.
    network: Network,
}

impl Emulation {
    /// Makes the network and starts its links and boxes, whose random behaviour the seed determines. The
    /// names of its namespaces have the label.
    ///
    /// # Errors
    /// As [`crate::run_beside`].
    pub fn start(scenario: &Scenario, seed: u64, label: &str) -> Result<Emulation, Error> {
        Emulation::start_with(scenario, seed, label, &LinkSockets::new())
    }

    /// The same, with drivers that report what arrives damaged at the ends of links ([`wire::LinkReport`]).
    ///
    /// # Errors
    /// As [`Emulation::start`].
    pub fn start_with(
        scenario: &Scenario,
        seed: u64,
        label: &str,
        link_sockets: &LinkSockets,
    ) -> Result<Emulation, Error> {
        run::check_rights()?;
        let mut network = Network::build(scenario, Some(label), Purpose::Flows)?;
        let hosts::Made { nodes, bytes, .. } = hosts::make(scenario, seed, Purpose::Flows);
        let (copies, clock, nowhere) = (Copies::default(), Clock::start(), links::Hosts::default());
        let nodes = links::Nodes { nodes, bytes, link_sockets, default_gateway: None };
        let emulator = links::start(scenario, seed, clock, &mut network, nodes, &copies, nowhere)?;
        Ok(Emulation { scenario: scenario.clone(), emulator, network })
    }

    /// The namespace of the node with this index.
    #[must_use]
    pub fn namespace(&self, node: usize) -> &Namespace {
        &self.network.nodes[node].namespace
    }

    /// The address of the kernel of the node with this index.
    #[must_use]
    pub fn address(&self, node: usize, ip: IpVersion) -> IpAddr {
        addresses::of(node, Stack::Linux, ip)
    }

    /// Ends it. The outcome has no rows.
    ///
    /// # Errors
    /// If a device was removed.
    pub fn stop(self) -> Result<Outcome, Error> {
        let report = self.emulator.stop()?;
        Ok(run::outcome(&self.scenario, &report, Vec::new()))
    }
}
