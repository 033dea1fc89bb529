//! The tallies of a run's flows. In flows of many connections, each connection is entered when it
//! closes, and dropped.

use crate::account::{Account, Counts, Pairing, Part};
use crate::ideal::{Ideal, headers, ideals};
use crate::row::{Delivery, Distributions, Row, Spread, Tail};
use base::{Duration, Histogram, Quantiles, Time};
use host::{DatagramSource, Host};
use middlebox::fec;
use scenario::{End, Flow, Scenario, Traffic, TransferSpec, Workload, port};
use std::collections::BTreeMap;
use tcp::Connection;

/// The sums over the connections of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sender: Counts,
    pub(crate) received: u64,
    pub(crate) misplaced: u64,
    /// Transfers, requests or messages.
    pub(crate) started: u64,
    /// Of those, how many failed.
    pub(crate) failed: u64,
    /// The end that times requests or messages has closed.
    over: bool,
    /// The times of those that finished, nanoseconds.
    pub(crate) times: Histogram,
    /// The same in millionths of the least possible time.
    pub(crate) slowdowns: Histogram,
    pub(crate) datagrams: Delivery,
    distributions: Distributions,
    /// When the last was finished.
    pub(crate) finished_at: Option<Time>,
    /// When the sender of a single connection had everything acknowledged.
    pub(crate) acknowledged_at: Option<Time>,
    /// Transfers that have not ended at both ends.
    pending: BTreeMap<u64, Pending>,
}

/// One transfer so far.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    spec: Option<TransferSpec>,
    /// The sender is done, or has given up.
    over: bool,
    finished_at: Option<Time>,
}

impl Tally {
    /// Enters an end of a connection, once.
    fn enter(&mut self, flow: &Flow, ideal: &Ideal, account: Account) {
        let Account { part, transfer, over, misplaced, started, times } = account;
        self.misplaced += misplaced;
        self.started += started;
        if let Some(times) = times {
            self.times.merge(&times);
            self.over |= over;
        }
        match part {
            Part::Receiver { received, finished_at } => {
                self.received += received;
                if !flow.traffic.is_transfers() {
                    self.finished_at = finished_at;
                } else if finished_at.is_some() {
                    self.pending.entry(transfer).or_default().finished_at = finished_at;
                    self.settle(transfer, flow, ideal);
                }
            }
            Part::Sender { spec, acknowledged_at, counts, round_trips } => {
                self.sender += counts;
                self.acknowledged_at = acknowledged_at.filter(|_| !is_many(flow));
                if let Some(round_trips) = round_trips {
                    self.distributions.rtt.merge(&round_trips.samples);
                    self.distributions.srtt.merge(&round_trips.smoothed);
                }
                if let Some(spec) = spec {
                    self.started += 1;
                    let pending = self.pending.entry(transfer).or_default();
                    // A reused number: its previous connection reports no more.
                    self.failed += u64::from(pending.spec.is_some() && pending.over);
                    (pending.spec, pending.over) = (Some(spec), over);
                    self.settle(transfer, flow, ideal);
                }
            }
        }
    }

    /// Counts a transfer whose start and end are known.
    fn settle(&mut self, transfer: u64, flow: &Flow, ideal: &Ideal) {
        let Some(pending) = self.pending.get(&transfer) else { return };
        let (Some(spec), Some(at)) = (pending.spec, pending.finished_at) else { return };
        self.pending.remove(&transfer);
        let took = at.since(spec.at).as_nanos();
        self.times.record(took);
        let least = spec.size.map_or(0, |size| ideal.transfer(size, flow).as_nanos());
        if least > 0 {
            self.slowdowns.record((took as f64 / least as f64 * 1e6) as u64);
        }
        self.finished_at = self.finished_at.max(Some(at));
    }

    /// The row of a flow at the end of the run.
    fn row(&self, scenario: &Scenario, end: Time, flow: &Flow, ideal: &Ideal, keep: bool) -> Row {
        let time_s = Spread::of(&self.times, 1e9);
        let finished = self.times.count();
        let completed_at = self.finished_at.filter(|_| match flow.traffic {
            Traffic::Workload(Workload { count, .. }) => count == Some(finished),
            _ => true,
        });
        let slowdown = match &flow.traffic {
            Traffic::Application(application) if !flow.traffic.is_transfers() => {
                let least = ideal.least_time(application.settings(), flow);
                let least = least.map(Duration::as_secs_f64).filter(|least| *least > 0.0);
                time_s.zip(least).map(|(time, least)| time.over(least))
            }
            _ => Spread::of(&self.slowdowns, 1e6),
        };
        let mut end = completed_at.unwrap_or(end);
        let mss = f64::from(flow.sender.mss);
        let mut headers = (mss + headers(flow.ip) as f64) / mss;
        if let Traffic::Datagrams(datagrams) = flow.traffic {
            end = datagrams.lasts.map_or(end, |lasts| end.min(flow.start + lasts));
            let packet = f64::from(datagrams.packet);
            headers = packet / f64::from(datagrams.payload(flow.ip));
        }
        let duration_s = end.since(flow.start).as_secs_f64();
        let payload_bps = self.received as f64 * 8.0 / duration_s;
        Row {
            flow: flow.name.clone(),
            from: scenario.nodes[flow.from].clone(),
            to: scenario.nodes[flow.to].clone(),
            duration_s,
            payload_bytes: self.received,
            payload_bps,
            goodput_bps: payload_bps * headers,
            completed_s: completed_at.map(|at| at.since(flow.start).as_secs_f64()),
            acknowledged_s: self.acknowledged_at.map(|at| at.since(flow.start).as_secs_f64()),
            started: self.started,
            finished,
            failed: self.failed,
            time_s,
            slowdown,
            datagrams: self.datagrams,
            data_dropped: None,
            rtt_s: Tail::of(&self.distributions.rtt),
            srtt_s: Tail::of(&self.distributions.srtt),
            delay_s: Tail::of(&self.distributions.delay),
            distributions: keep.then(|| Box::new(self.distributions.clone())),
            sender: self.sender,
            coding: fec::Statistics::default(),
            misplaced: self.misplaced,
        }
    }
}

/// The accounts of a host, by the index of the flow.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    connections: Vec<(usize, Account)>,
    /// With the received bytes of payload.
    datagrams: Vec<(usize, Delivery, u64)>,
    /// One-way delays of datagrams, nanoseconds.
    delays: Vec<(usize, Quantiles)>,
}

impl Accounts {
    /// All accounts of a host of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario, pairing: Pairing, host: &Host<End>) -> Accounts {
        let connections = host.connections();
        let account = |(_, connection, end): (_, &Connection, &End)| {
            (end.flow, Account::of(pairing, connection, end))
        };
        let datagrams = |flow: &Flow| matches!(flow.traffic, Traffic::Datagrams(_));
        let flows = scenario.flows.iter().enumerate().filter(|(_, flow)| datagrams(flow));
        let delivery = |(index, _): (usize, &Flow)| {
            let port = port(index);
            let of = |source: &&DatagramSource| source.flow().remote_port == port;
            let plain = host.datagram_sources().iter().find(of).map(|source| source.sent);
            let mut senders = host.tfrc_senders().filter(|(ends, _)| ends.remote_port == port);
            let mut receivers = host.tfrc_receivers().filter(|(ends, _)| ends.local_port == port);
            let sent = plain.or_else(|| Some(senders.next()?.1.sent())).unwrap_or(0);
            let tfrc = || Some(receivers.next()?.1.sink());
            let sink = host.datagram_sink(port).or_else(tfrc);
            let (received, bytes) = sink.map_or((0, 0), |sink| (sink.received, sink.bytes));
            (index, Delivery { sent, received }, bytes)
        };
        let delays = |(index, _): (usize, &Flow)| {
            Some((index, host.datagram_sink(port(index))?.delays()?.clone()))
        };
        Accounts {
            connections: connections.map(account).collect(),
            delays: flows.clone().filter_map(delays).collect(),
            datagrams: flows.map(delivery).collect(),
        }
    }

    /// Whether an end of a single transfer is here to which nothing is left to do: all data has
    /// arrived, or was acknowledged.
    pub(crate) fn has_completed(&self, flow: usize) -> bool {
        let mut ends = self.connections.iter().filter(|(of, _)| *of == flow);
        ends.any(|(_, account)| match account.part {
            Part::Sender { acknowledged_at, .. } => acknowledged_at.is_some(),
            Part::Receiver { finished_at, .. } => finished_at.is_some(),
        })
    }

    /// The accounts of closed connections of flows of many, which the host drops.
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
        Accounts { connections, ..Accounts::default() }
    }
}

/// The tallies of a run.
#[derive(Debug)]
pub struct Ledger<'s> {
    scenario: &'s Scenario,
    ideals: Vec<Ideal>,
    /// By the index of the flow.
    tallies: Vec<Tally>,
    /// The end of the run.
    end: Time,
}

impl<'s> Ledger<'s> {
    /// An empty ledger.
    #[must_use]
    pub fn new(scenario: &'s Scenario) -> Ledger<'s> {
        let tallies = vec![Tally::default(); scenario.flows.len()];
        let end = Time::ZERO + scenario.duration;
        Ledger { scenario, ideals: ideals(scenario), tallies, end }
    }

    /// The run has ended before its duration.
    pub(crate) fn end_at(&mut self, end: Time) {
        self.end = end;
    }

    /// Enters an end of a connection of a flow, each once.
    pub fn enter(&mut self, flow: usize, account: Account) {
        self.tallies[flow].enter(&self.scenario.flows[flow], &self.ideals[flow], account);
    }

    /// Enters datagrams that a flow sent or received, with the received bytes of payload.
    pub fn enter_datagrams(&mut self, flow: usize, delivery: Delivery, bytes: u64) {
        let tally = &mut self.tallies[flow];
        tally.datagrams.sent += delivery.sent;
        tally.datagrams.received += delivery.received;
        tally.received += bytes;
    }

    /// Whether a flow of many connections ends at a node, whose closed connections are dropped.
    #[must_use]
    pub fn forgets(&self, node: usize) -> bool {
        let here = |flow: &Flow| [flow.from, flow.to].contains(&node);
        self.scenario.flows.iter().any(|flow| here(flow) && is_many(flow))
    }

    /// Enters the accounts of a host, each once.
    pub fn enter_all(&mut self, accounts: Accounts) {
        for (flow, account) in accounts.connections {
            self.enter(flow, account);
        }
        for (flow, delivery, bytes) in accounts.datagrams {
            self.enter_datagrams(flow, delivery, bytes);
        }
        for (flow, delays) in accounts.delays {
            self.tallies[flow].distributions.delay.merge(&delays);
        }
    }

    /// A row for every flow, when everything is entered; `keep` says whether with its
    /// [`Distributions`].
    #[must_use]
    pub fn rows(mut self, keep: bool) -> Vec<Row> {
        for tally in &mut self.tallies {
            let abandoned = |pending: &&Pending| pending.spec.is_some() && pending.over;
            tally.failed += tally.pending.values().filter(abandoned).count() as u64;
            if tally.over {
                tally.failed += tally.started.saturating_sub(tally.times.count());
            }
        }
        let flows = self.scenario.flows.iter().zip(&self.ideals).zip(&self.tallies);
        flows
            .map(|((flow, ideal), tally)| tally.row(self.scenario, self.end, flow, ideal, keep))
            .collect()
    }
}

fn is_many(flow: &Flow) -> bool {
    matches!(flow.traffic, Traffic::Workload(_))
}
