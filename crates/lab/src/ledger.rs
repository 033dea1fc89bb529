//! What becomes of the connections of a run. Those of which there are many are looked at as they
//! end, and forgotten.

use crate::ideal::Ideal;
use crate::log::{Owners, owners};
use crate::row::Delivery;
use crate::scenario::{Flow, Scenario, Traffic};
use crate::world::{Built, End, Errand, port};
use base::{Histogram, Time};
use host::DatagramSource;
use sim::NodeId;
use std::collections::BTreeMap;
use tcp::{Connection, State};

/// What the connections of a flow add up to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sender: tcp::Statistics,
    pub(crate) received: u64,
    pub(crate) misplaced: u64,
    /// Transfers, or requests.
    pub(crate) started: u64,
    /// Those of which not everything came, nor will.
    pub(crate) failed: u64,
    /// Of those that were finished, nanoseconds.
    pub(crate) times: Histogram,
    /// The same as millionths of the least possible.
    pub(crate) slowdowns: Histogram,
    pub(crate) datagrams: Delivery,
    /// When the last was finished.
    pub(crate) finished_at: Option<Time>,
    /// Transfers that were not seen to end at both ends, by stream.
    pending: BTreeMap<u32, Pending>,
}

/// What is known of a transfer.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    errand: Option<Errand>,
    /// The sender is done, or has given up.
    over: bool,
    finished_at: Option<Time>,
}

impl Tally {
    /// Takes note of an end of a connection, once.
    fn look(&mut self, flow: &Flow, ideal: &Ideal, connection: &Connection, end: &End) {
        let over = connection.state() == State::Closed;
        if let Some(sink) = end.traffic.sink() {
            self.received += sink.received;
            self.misplaced += sink.misplaced;
            if let host::Traffic::Requester(requester) = &end.traffic {
                self.started = requester.asked;
                self.times = requester.responses.clone();
                self.failed = if over { self.started - self.times.count() } else { 0 };
                self.finished_at = sink.finished_at;
            } else if let (Some(stream), Some(at)) = (sink.stream, sink.finished_at) {
                self.pending.entry(stream).or_default().finished_at = Some(at);
                self.settle(stream, flow, ideal);
            }
            return;
        }
        self.sender += connection.statistics();
        if let host::Traffic::Responder(responder) = &end.traffic {
            self.misplaced += responder.sink.misplaced;
        }
        if let Some(errand) = end.errand {
            self.started += 1;
            let pending = self.pending.entry(errand.stream).or_default();
            (pending.errand, pending.over) = (Some(errand), over);
            self.settle(errand.stream, flow, ideal);
        }
    }

    /// Counts a transfer once it is known when it began and when it ended.
    fn settle(&mut self, stream: u32, flow: &Flow, ideal: &Ideal) {
        let Some(pending) = self.pending.get(&stream) else { return };
        let (Some(errand), Some(at)) = (pending.errand, pending.finished_at) else { return };
        self.pending.remove(&stream);
        let took = at.since(errand.at).as_nanos();
        self.times.record(took);
        let least = errand.size.map_or(0, |size| ideal.transfer(size, flow).as_nanos());
        if least > 0 {
            self.slowdowns.record((took as f64 / least as f64 * 1e6) as u64);
        }
        self.finished_at = self.finished_at.max(Some(at));
    }
}

/// The tallies of a run.
pub(crate) struct Ledger {
    /// By the index of the flow.
    pub(crate) tallies: Vec<Tally>,
    /// Nodes with connections to be forgotten.
    nodes: Vec<NodeId>,
    /// Whose those were that are forgotten, if a log is to say so.
    pub(crate) owners: Option<Owners>,
}

impl Ledger {
    /// An empty one.
    pub(crate) fn new(scenario: &Scenario, built: &Built, logged: bool) -> Ledger {
        let many = |flow: &&Flow| matches!(flow.traffic, Traffic::Workload(_));
        let flows = scenario.flows.iter().filter(many);
        let mut nodes: Vec<NodeId> =
            flows.flat_map(|flow| [built.nodes[flow.from], built.nodes[flow.to]]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let tallies = vec![Tally::default(); scenario.flows.len()];
        Ledger { tallies, nodes, owners: logged.then(Owners::new) }
    }

    /// Enters what has ended of many, and forgets it.
    pub(crate) fn collect(&mut self, scenario: &Scenario, built: &mut Built) {
        for &node in &self.nodes {
            if let Some(all) = &mut self.owners {
                all.extend(owners(&built.world, &[node]));
            }
            built.world.host_mut(node).drop_closed(|_, connection, end| {
                let flow = &scenario.flows[end.flow];
                let forget = matches!(flow.traffic, Traffic::Workload(_));
                if forget {
                    let ideal = &built.ideals[end.flow];
                    self.tallies[end.flow].look(flow, ideal, connection, end);
                }
                forget
            });
        }
    }

    /// Enters what is left at the end.
    pub(crate) fn close(&mut self, scenario: &Scenario, built: &Built) {
        for &node in &built.nodes {
            for (_, connection, end) in built.world.host(node).connections() {
                let (flow, ideal) = (&scenario.flows[end.flow], &built.ideals[end.flow]);
                self.tallies[end.flow].look(flow, ideal, connection, end);
            }
        }
        for (index, flow) in scenario.flows.iter().enumerate() {
            let [from, to] = [flow.from, flow.to].map(|node| built.world.host(built.nodes[node]));
            let of = |source: &&DatagramSource| source.flow().remote_port == port(index);
            let source = from.datagram_sources().iter().find(of);
            if let (Some(source), Some(sink)) = (source, to.datagram_sink(port(index))) {
                let tally = &mut self.tallies[index];
                tally.datagrams = Delivery { sent: source.sent, received: sink.received };
                tally.received = sink.bytes;
            }
        }
        if let Some(all) = &mut self.owners {
            all.extend(owners(&built.world, &built.nodes));
        }
        for tally in &mut self.tallies {
            let given_up = |pending: &&Pending| pending.errand.is_some() && pending.over;
            tally.failed += tally.pending.values().filter(given_up).count() as u64;
        }
    }
}
