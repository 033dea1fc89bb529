//! What came of a flow, and rows as columns.

use crate::outcome::Outcome;
use crate::scenario::{Flow, IpVersion, Scenario, Traffic};
use crate::table::{Column, Table};
use crate::world::{Built, End};
use base::{Histogram, Time};
use tcp::Connection;

/// What came of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The flow's name.
    pub flow: String,
    /// The name of the node that sends data.
    pub from: String,
    /// The name of the node that receives it.
    pub to: String,
    /// From the flow's start to its completion, or to the end of the run, seconds.
    pub duration_s: f64,
    /// Bytes that the receiving application got, in order; of a dialogue, the responses.
    pub payload_bytes: u64,
    /// Those per second of `duration_s`, bits.
    pub payload_bps: f64,
    /// The same with the headers of TCP and IP, 40 bytes or in IPv6 60, for every full-sized segment:
    /// publications of old count them.
    pub goodput_bps: f64,
    /// From the flow's start until the receiver had everything, seconds; `None` for a flow that
    /// never ends or did not end in time.
    pub completed_s: Option<f64>,
    /// Transfers that were started, or requests that were made.
    pub started: u64,
    /// Those of which everything has come.
    pub finished: u64,
    /// How long each of those took, seconds; `None` without any.
    pub time_s: Option<Spread>,
    /// What the sender did.
    pub sender: tcp::Statistics,
    /// Runs of bytes that were not the next of the stream; 0, or the run is in error.
    pub misplaced: u64,
}

/// How some numbers are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// Half of them are no larger, to a thousandth.
    pub median: f64,
    /// 95 % of them are no larger, to a thousandth.
    pub p95: f64,
}

impl Spread {
    /// Of numbers that were counted in units of which there are `per` in one.
    fn of(histogram: &Histogram, per: f64) -> Option<Spread> {
        let quantile = |q| histogram.quantile(q).map(|value| value as f64 / per);
        let mean = histogram.mean()? / per;
        Some(Spread { mean, median: quantile(0.5)?, p95: quantile(0.95)? })
    }
}

/// TCP and IP headers without options, bytes.
fn headers(ip: IpVersion) -> f64 {
    match ip {
        IpVersion::V4 => 40.0,
        IpVersion::V6 => 60.0,
    }
}

/// What the connections of a flow add up to.
#[derive(Clone, Debug, Default)]
struct Tally {
    sender: tcp::Statistics,
    received: u64,
    misplaced: u64,
    started: u64,
    /// Nanoseconds.
    times: Histogram,
    finished_at: Option<Time>,
}

impl Tally {
    fn add(&mut self, flow: &Flow, connection: &Connection, traffic: &host::Traffic) {
        let Some(sink) = traffic.sink() else {
            self.sender = connection.statistics();
            if let host::Traffic::Responder(responder) = traffic {
                self.misplaced += responder.sink.misplaced;
            }
            return;
        };
        self.received += sink.received;
        self.misplaced += sink.misplaced;
        self.finished_at = self.finished_at.or(sink.finished_at);
        if let host::Traffic::Requester(requester) = traffic {
            self.started = requester.asked;
            self.times = requester.responses.clone();
        } else if let Some(at) = sink.finished_at {
            self.times.record(at.since(flow.start).as_nanos());
        }
    }
}

/// A row for every flow of a world that has come to its end.
pub(crate) fn rows(scenario: &Scenario, built: &Built) -> Vec<Row> {
    let tally = |flow: &Flow| Tally {
        started: u64::from(matches!(flow.traffic, Traffic::Transfer(_))),
        ..Tally::default()
    };
    let mut tallies: Vec<Tally> = scenario.flows.iter().map(tally).collect();
    for &node in &built.nodes {
        for (_, connection, End { flow, traffic }) in built.world.host(node).connections() {
            tallies[*flow].add(&scenario.flows[*flow], connection, traffic);
        }
    }
    scenario.flows.iter().zip(&tallies).map(|(flow, tally)| row(scenario, flow, tally)).collect()
}

fn row(scenario: &Scenario, flow: &Flow, tally: &Tally) -> Row {
    let end = tally.finished_at.unwrap_or(Time::ZERO + scenario.duration);
    let duration_s = end.since(flow.start).as_secs_f64();
    let payload_bps = tally.received as f64 * 8.0 / duration_s;
    let mss = f64::from(flow.sender.mss);
    Row {
        flow: flow.name.clone(),
        from: scenario.nodes[flow.from].clone(),
        to: scenario.nodes[flow.to].clone(),
        duration_s,
        payload_bytes: tally.received,
        payload_bps,
        goodput_bps: payload_bps * (mss + headers(flow.ip)) / mss,
        completed_s: tally.finished_at.map(|at| at.since(flow.start).as_secs_f64()),
        started: tally.started,
        finished: tally.times.count(),
        time_s: Spread::of(&tally.times, 1e9),
        sender: tally.sender,
        misplaced: tally.misplaced,
    }
}

/// A count as a column has it. No count of a run comes near 2^63.
pub(crate) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// An outcome and what it is the outcome of.
pub(crate) struct Record<'a> {
    pub(crate) seed: u64,
    pub(crate) outcome: &'a Outcome,
    pub(crate) row: &'a Row,
}

/// Rows as columns, behind those that are there.
pub(crate) fn tabulate(table: &mut Table, records: &[Record<'_>]) {
    let texts = |value: fn(&Row) -> &String| {
        Column::Text(records.iter().map(|r| value(r.row).clone()).collect())
    };
    let floats = |value: fn(&Row) -> Option<f64>| {
        Column::Float(records.iter().map(|r| value(r.row)).collect())
    };
    let integers = |value: fn(&Record<'_>) -> u64| {
        Column::Integer(records.iter().map(|record| count(value(record))).collect())
    };
    table.push("seed", integers(|r| r.seed));
    table.push("flow", texts(|row| &row.flow));
    table.push("from", texts(|row| &row.from));
    table.push("to", texts(|row| &row.to));
    table.push("duration_s", floats(|row| Some(row.duration_s)));
    table.push("payload_bytes", integers(|r| r.row.payload_bytes));
    table.push("payload_bps", floats(|row| Some(row.payload_bps)));
    table.push("goodput_bps", floats(|row| Some(row.goodput_bps)));
    table.push("completed_s", floats(|row| row.completed_s));
    table.push("started", integers(|r| r.row.started));
    table.push("finished", integers(|r| r.row.finished));
    table.push("time_mean_s", floats(|row| row.time_s.map(|time| time.mean)));
    table.push("time_median_s", floats(|row| row.time_s.map(|time| time.median)));
    table.push("time_p95_s", floats(|row| row.time_s.map(|time| time.p95)));
    table.push("segments", integers(|r| r.row.sender.segments));
    table.push("retransmissions", integers(|r| r.row.sender.retransmissions));
    table.push("timeouts", integers(|r| r.row.sender.timeouts));
    table.push("reductions", integers(|r| r.row.sender.reductions));
    table.push("notices", integers(|r| r.row.sender.notices));
    table.push("misplaced", integers(|r| r.row.misplaced));
    table.push("dropped", integers(|r| r.outcome.totals.dropped));
    table.push("corrupted", integers(|r| r.outcome.totals.corrupted));
    table.push("lost", integers(|r| r.outcome.totals.lost));
    table.push("events", integers(|r| r.outcome.events));
}
