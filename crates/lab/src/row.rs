//! What came of a flow, and rows as columns.

use crate::account::Counts;
use crate::ideal::{Ideal, headers};
use crate::ledger::Tally;
use crate::outcome::Outcome;
use crate::scenario::{Datagrams, Flow, Scenario, Traffic, Workload};
use crate::table::{Column, Table};
use base::{Histogram, Time};
use middlebox::fec;

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
    /// Those that were given up.
    pub failed: u64,
    /// How long each of those took, seconds; `None` without any.
    pub time_s: Option<Spread>,
    /// The same in units of the least possible time: that of the transfer alone on the path, with
    /// its handshake, or that of request and response.
    pub slowdown: Option<Spread>,
    /// What became of datagrams, if it was some that the flow sent.
    pub datagrams: Delivery,
    /// What the sender did; of many connections, all together.
    pub sender: Counts,
    /// What its erasure coding did; nothing if it has none.
    pub coding: fec::Statistics,
    /// Runs of bytes that were not the next of the stream; 0, or the run is in error.
    pub misplaced: u64,
}

/// What became of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Those that were sent.
    pub sent: u64,
    /// Those that arrived by the end of the run, each as often as it did.
    pub received: u64,
}

impl Delivery {
    /// The share of those sent that did not arrive; `None` if none was sent.
    #[must_use]
    pub fn loss(self) -> Option<f64> {
        let lost = self.sent.saturating_sub(self.received);
        (self.sent > 0).then(|| lost as f64 / self.sent as f64)
    }
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

    /// Of the same numbers, each divided by `unit`.
    fn over(self, unit: f64) -> Spread {
        Spread { mean: self.mean / unit, median: self.median / unit, p95: self.p95 / unit }
    }
}

/// A row for every flow of a run that has come to its end.
pub(crate) fn rows(scenario: &Scenario, ideals: &[Ideal], tallies: &[Tally]) -> Vec<Row> {
    let flows = scenario.flows.iter().zip(ideals).zip(tallies);
    flows.map(|((flow, ideal), tally)| row(scenario, flow, ideal, tally)).collect()
}

fn row(scenario: &Scenario, flow: &Flow, ideal: &Ideal, tally: &Tally) -> Row {
    let time_s = Spread::of(&tally.times, 1e9);
    let finished = tally.times.count();
    let completed_at = tally.finished_at.filter(|_| match flow.traffic {
        Traffic::Workload(Workload { count, .. }) => count == Some(finished),
        _ => true,
    });
    let slowdown = match &flow.traffic {
        Traffic::Requests(dialogue) => {
            let least = ideal.response(dialogue, flow).as_secs_f64();
            time_s.filter(|_| least > 0.0).map(|time| time.over(least))
        }
        _ => Spread::of(&tally.slowdowns, 1e6),
    };
    let mut end = completed_at.unwrap_or(Time::ZERO + scenario.duration);
    let mss = f64::from(flow.sender.mss);
    let mut headers = (mss + headers(flow.ip) as f64) / mss;
    if let Traffic::Datagrams(datagrams) = flow.traffic {
        end = datagrams.lasts.map_or(end, |lasts| end.min(flow.start + lasts));
        let packet = f64::from(datagrams.packet);
        headers = packet / (packet - f64::from(Datagrams::headers(flow.ip)));
    }
    let duration_s = end.since(flow.start).as_secs_f64();
    let payload_bps = tally.received as f64 * 8.0 / duration_s;
    Row {
        flow: flow.name.clone(),
        from: scenario.nodes[flow.from].clone(),
        to: scenario.nodes[flow.to].clone(),
        duration_s,
        payload_bytes: tally.received,
        payload_bps,
        goodput_bps: payload_bps * headers,
        completed_s: completed_at.map(|at| at.since(flow.start).as_secs_f64()),
        started: tally.started,
        finished,
        failed: tally.failed,
        time_s,
        slowdown,
        datagrams: tally.datagrams,
        sender: tally.sender,
        coding: fec::Statistics::default(),
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
    let counts = |value: fn(&Counts) -> Option<u64>| {
        Column::Count(records.iter().map(|r| value(&r.row.sender).map(count)).collect())
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
    table.push("failed", integers(|r| r.row.failed));
    table.push("time_mean_s", floats(|row| row.time_s.map(|time| time.mean)));
    table.push("time_median_s", floats(|row| row.time_s.map(|time| time.median)));
    table.push("time_p95_s", floats(|row| row.time_s.map(|time| time.p95)));
    table.push("slowdown_mean", floats(|row| row.slowdown.map(|slowdown| slowdown.mean)));
    table.push("slowdown_median", floats(|row| row.slowdown.map(|slowdown| slowdown.median)));
    table.push("slowdown_p95", floats(|row| row.slowdown.map(|slowdown| slowdown.p95)));
    table.push("datagrams_sent", integers(|r| r.row.datagrams.sent));
    table.push("datagrams_received", integers(|r| r.row.datagrams.received));
    table.push("datagram_loss", floats(|row| row.datagrams.loss()));
    table.push("segments", counts(|c| c.segments));
    table.push("retransmissions", counts(|c| c.retransmissions));
    table.push("timeouts", counts(|c| c.timeouts));
    table.push("reductions", counts(|c| c.reductions));
    table.push("notices", counts(|c| c.notices));
    table.push("reprobes", counts(|c| c.reprobes));
    table.push("repairs", integers(|r| r.row.coding.repairs));
    table.push("rebuilt", integers(|r| r.row.coding.rebuilt));
    table.push("misplaced", integers(|r| r.row.misplaced));
    table.push("dropped", integers(|r| r.outcome.totals.dropped));
    table.push("corrupted", integers(|r| r.outcome.totals.corrupted));
    table.push("corrected", integers(|r| r.outcome.totals.corrected));
    table.push("lost", integers(|r| r.outcome.totals.lost));
    table.push("events", integers(|r| r.outcome.events));
}
