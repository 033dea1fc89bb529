//! What becomes of the connections of a run. Those of which there are many are looked at as they
//! end, and forgotten.

use crate::account::{Account, Counts, Pairing, Part};
use crate::ideal::{Ideal, ideals};
use crate::row::{Delivery, Row, rows};
use crate::scenario::{Flow, Scenario, Traffic};
use crate::stage::{End, Errand, port};
use base::{Histogram, Time};
use host::{DatagramSource, Host};
use std::collections::BTreeMap;
use tcp::Connection;

/// What the connections of a flow add up to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sender: Counts,
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
    /// Transfers that were not seen to end at both ends.
    pending: BTreeMap<u64, Pending>,
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
    fn enter(&mut self, flow: &Flow, ideal: &Ideal, account: Account) {
        let Account { part, transfer, over, misplaced } = account;
        self.misplaced += misplaced;
        match part {
            Part::Requester { received, asked, responses, finished_at } => {
                self.received += received;
                self.started = asked;
                self.times = responses;
                self.failed = if over { self.started - self.times.count() } else { 0 };
                self.finished_at = finished_at;
            }
            Part::Receiver { received, finished_at } => {
                self.received += received;
                if finished_at.is_some() {
                    self.pending.entry(transfer).or_default().finished_at = finished_at;
                    self.settle(transfer, flow, ideal);
                }
            }
            Part::Sender { errand, counts } => {
                self.sender += counts;
                if let Some(errand) = errand {
                    self.started += 1;
                    let pending = self.pending.entry(transfer).or_default();
                    // A number that is used again: of its last user no more will be heard.
                    self.failed += u64::from(pending.errand.is_some() && pending.over);
                    (pending.errand, pending.over) = (Some(errand), over);
                    self.settle(transfer, flow, ideal);
                }
            }
        }
    }

    /// Counts a transfer once it is known when it began and when it ended.
    fn settle(&mut self, transfer: u64, flow: &Flow, ideal: &Ideal) {
        let Some(pending) = self.pending.get(&transfer) else { return };
        let (Some(errand), Some(at)) = (pending.errand, pending.finished_at) else { return };
        self.pending.remove(&transfer);
        let took = at.since(errand.at).as_nanos();
        self.times.record(took);
        let least = errand.size.map_or(0, |size| ideal.transfer(size, flow).as_nanos());
        if least > 0 {
            self.slowdowns.record((took as f64 / least as f64 * 1e6) as u64);
        }
        self.finished_at = self.finished_at.max(Some(at));
    }
}

/// What there is at a host, by the index of the flow.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    connections: Vec<(usize, Account)>,
    /// With the bytes of payload that came.
    datagrams: Vec<(usize, Delivery, u64)>,
}

impl Accounts {
    /// All that there is at a host of a scenario's.
    #[must_use]
    pub fn of(scenario: &Scenario, pairing: Pairing, host: &Host<End>) -> Accounts {
        let connections = host.connections();
        let account = |(_, connection, end): (_, &Connection, &End)| {
            (end.flow, Account::of(pairing, connection, end))
        };
        let datagrams = |flow: &Flow| matches!(flow.traffic, Traffic::Datagrams(_));
        let flows = scenario.flows.iter().enumerate().filter(|(_, flow)| datagrams(flow));
        let delivery = |(index, _): (usize, &Flow)| {
            let of = |source: &&DatagramSource| source.flow().remote_port == port(index);
            let sent = host.datagram_sources().iter().find(of).map_or(0, |source| source.sent);
            let sink = host.datagram_sink(port(index)).copied().unwrap_or_default();
            (index, Delivery { sent, received: sink.received }, sink.bytes)
        };
        Accounts {
            connections: connections.map(account).collect(),
            datagrams: flows.map(delivery).collect(),
        }
    }

    /// Of flows of many connections those that are over, which the host forgets.
    #[must_use]
    pub fn of_ended(scenario: &Scenario, pairing: Pairing, host: &mut Host<End>) -> Accounts {
        let mut connections = Vec::new();
        host.drop_closed(|_, connection, end| {
            let forget = is_many(&scenario.flows[end.flow]);
            if forget {
                connections.push((end.flow, Account::of(pairing, connection, end)));
            }
            forget
        });
        Accounts { connections, datagrams: Vec::new() }
    }
}

/// The tallies of a run.
#[derive(Debug)]
pub struct Ledger<'s> {
    scenario: &'s Scenario,
    ideals: Vec<Ideal>,
    /// By the index of the flow.
    tallies: Vec<Tally>,
}

impl<'s> Ledger<'s> {
    /// An empty one, for a world in which nobody moves.
    #[must_use]
    pub fn new(scenario: &'s Scenario) -> Ledger<'s> {
        let routes = scenario.routes();
        let ideals = ideals(scenario, |from, to| {
            routes.path(scenario, from, to).map(|hop| scenario.direction(hop)).collect()
        });
        Ledger::with(scenario, ideals)
    }

    pub(crate) fn with(scenario: &'s Scenario, ideals: Vec<Ideal>) -> Ledger<'s> {
        let tallies = vec![Tally::default(); scenario.flows.len()];
        Ledger { scenario, ideals, tallies }
    }

    /// Enters an end of a connection of a flow, each once.
    pub fn enter(&mut self, flow: usize, account: Account) {
        self.tallies[flow].enter(&self.scenario.flows[flow], &self.ideals[flow], account);
    }

    /// Enters datagrams that a flow sent, or that arrived of it with so many bytes of payload.
    pub fn enter_datagrams(&mut self, flow: usize, delivery: Delivery, bytes: u64) {
        let tally = &mut self.tallies[flow];
        tally.datagrams.sent += delivery.sent;
        tally.datagrams.received += delivery.received;
        tally.received += bytes;
    }

    /// Whether there are many connections at a node, of which those that are over are forgotten.
    #[must_use]
    pub fn forgets(&self, node: usize) -> bool {
        let here = |flow: &Flow| [flow.from, flow.to].contains(&node);
        self.scenario.flows.iter().any(|flow| here(flow) && is_many(flow))
    }

    /// Enters what there was at a host, each once.
    pub fn enter_all(&mut self, accounts: Accounts) {
        for (flow, account) in accounts.connections {
            self.enter(flow, account);
        }
        for (flow, delivery, bytes) in accounts.datagrams {
            self.enter_datagrams(flow, delivery, bytes);
        }
    }

    /// A row for every flow, when everything is entered.
    #[must_use]
    pub fn rows(mut self) -> Vec<Row> {
        for tally in &mut self.tallies {
            let given_up = |pending: &&Pending| pending.errand.is_some() && pending.over;
            tally.failed += tally.pending.values().filter(given_up).count() as u64;
        }
        rows(self.scenario, &self.ideals, &self.tallies)
    }
}

fn is_many(flow: &Flow) -> bool {
    matches!(flow.traffic, Traffic::Workload(_))
}
