//! What came of a run.

use crate::failure::RunError;
use crate::log;
use crate::scenario::{Flow, Scenario};
use crate::table::{Column, Table};
use crate::watch::Watch;
use crate::world::{Built, End};
use base::Time;
use host::Traffic;
use sim::{Digest, FlowSample, LinkId, QueueSample, World};

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// One for every flow, in the order of declaration.
    pub rows: Vec<Row>,
    /// What happened on all links together.
    pub totals: Totals,
    /// Events of the simulation.
    pub events: u64,
    /// The fingerprint of every packet, if it was asked for.
    pub digest: Option<Digest>,
    /// Time series, if they were asked for.
    pub series: Option<Series>,
}

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
    /// Bytes that the receiving application got, in order.
    pub payload_bytes: u64,
    /// Those per second of `duration_s`, bits.
    pub payload_bps: f64,
    /// The same with 40 bytes of TCP and IPv4 headers for every full-sized segment: publications
    /// of old count them.
    pub goodput_bps: f64,
    /// From the flow's start until the receiver had everything, seconds; `None` for a flow that
    /// never ends or did not end in time.
    pub completed_s: Option<f64>,
    /// What the sender did.
    pub sender: tcp::Statistics,
    /// Runs of bytes that were not the next of the stream; 0, or the run is in error.
    pub misplaced: u64,
}

/// Counts over all links and both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Totals {
    /// Packets that found a queue full.
    pub dropped: u64,
    /// Packets that arrived corrupted.
    pub corrupted: u64,
    /// Packets that vanished.
    pub lost: u64,
}

/// Time series of a run. Each has a column `t_s`, seconds since the start of the run, and a row
/// for every change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Per flow, by name: what its sender thinks.
    pub flows: Vec<(String, Table)>,
    /// Per direction of a link, by the names of its ends (`a->b`): `packets`, those waiting or in
    /// transmission.
    pub queues: Vec<(String, Table)>,
}

/// TCP and IPv4 headers without options, bytes.
const HEADERS: f64 = 40.0;

/// The two ends of a flow after a run.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    sender: tcp::Statistics,
    received: u64,
    misplaced: u64,
    finished_at: Option<Time>,
}

/// Reads a world that has come to its end.
pub(crate) fn of(
    scenario: &Scenario,
    seed: u64,
    built: Built,
    watch: &Watch,
) -> Result<Outcome, RunError> {
    let world = &built.world;
    let ends = ends(scenario, &built);
    for (flow, ends) in scenario.flows.iter().zip(&ends) {
        if ends.misplaced > 0 {
            let (flow, misplaced) = (flow.name.clone(), ends.misplaced);
            return Err(RunError::Misplaced { flow, seed, misplaced });
        }
    }
    if world.unroutable() > 0 {
        return Err(RunError::Unroutable { packets: world.unroutable(), seed });
    }
    if let Some(fault) = world.byte_fault() {
        return Err(RunError::Bytes { fault, seed });
    }
    let rows = scenario.flows.iter().zip(&ends).map(|(flow, ends)| row(scenario, flow, ends));
    let mut totals = Totals::default();
    for link in built.links.iter().flat_map(|&(forward, backward)| [forward, backward]) {
        let link = world.link(link);
        totals.dropped += link.dropped;
        totals.corrupted += link.corrupted;
        totals.lost += link.lost;
    }
    let (rows, events) = (rows.collect(), world.events());
    let (series, digest) = observations(scenario, built, watch)?;
    Ok(Outcome { rows, totals, events, digest, series: watch.series.then_some(series) })
}

fn ends(scenario: &Scenario, built: &Built) -> Vec<Ends> {
    let mut ends = vec![Ends::default(); scenario.flows.len()];
    for &node in &built.nodes {
        for (_, connection, End { flow, traffic }) in built.world.host(node).connections() {
            let end = &mut ends[*flow];
            match traffic {
                Traffic::Source(_) => end.sender = connection.statistics(),
                Traffic::Sink(sink) => {
                    end.received += sink.received;
                    end.misplaced += sink.misplaced;
                    end.finished_at = end.finished_at.or(sink.finished_at);
                }
            }
        }
    }
    ends
}

fn row(scenario: &Scenario, flow: &Flow, ends: &Ends) -> Row {
    let completed = ends.finished_at.filter(|_| flow.size.is_some());
    let end = completed.unwrap_or(Time::ZERO + scenario.duration);
    let duration_s = end.since(flow.start).as_secs_f64();
    let payload_bps = ends.received as f64 * 8.0 / duration_s;
    let mss = f64::from(flow.sender.mss);
    Row {
        flow: flow.name.clone(),
        from: scenario.nodes[flow.from].clone(),
        to: scenario.nodes[flow.to].clone(),
        duration_s,
        payload_bytes: ends.received,
        payload_bps,
        goodput_bps: payload_bps * (mss + HEADERS) / mss,
        completed_s: completed.map(|at| at.since(flow.start).as_secs_f64()),
        sender: ends.sender,
        misplaced: ends.misplaced,
    }
}

fn observations(
    scenario: &Scenario,
    built: Built,
    watch: &Watch,
) -> Result<(Series, Option<Digest>), RunError> {
    let Built { world, nodes, links } = built;
    let (owners, all) = (owners(&world, &nodes), log::owners(&world, &nodes));
    let (recorded, digest) = world.observations();
    if let Some(file) = &watch.log {
        log::write(file, scenario, &all, &recorded.events)?;
    }
    let mut series = Series::default();
    for (index, flow) in scenario.flows.iter().enumerate() {
        let samples = owners.iter().find(|(flow, ..)| *flow == index).and_then(|owner| {
            let of = recorded.flows.iter().find(|f| (f.0, f.1) == (owner.1, owner.2));
            of.map(|(_, _, samples)| samples.as_slice())
        });
        series.flows.push((flow.name.clone(), flow_table(samples.unwrap_or_default())));
    }
    for (link, &(forward, backward)) in scenario.links.iter().zip(&links) {
        for (id, name) in [forward, backward].into_iter().zip(scenario.directions(link)) {
            let of = |queue: &&(LinkId, Vec<QueueSample>)| queue.0 == id;
            let samples = recorded.queues.iter().find(of).map(|(_, samples)| samples.as_slice());
            series.queues.push((name, queue_table(samples.unwrap_or_default())));
        }
    }
    Ok((series, digest))
}

/// Whose the sending connections are.
fn owners(
    world: &World<End>,
    nodes: &[sim::NodeId],
) -> Vec<(usize, sim::NodeId, host::ConnectionId)> {
    let mut owners = Vec::new();
    for &node in nodes {
        for (id, _, End { flow, traffic }) in world.host(node).connections() {
            if matches!(traffic, Traffic::Source(_)) {
                owners.push((*flow, node, id));
            }
        }
    }
    owners
}

fn flow_table(samples: &[FlowSample]) -> Table {
    let floats =
        |value: fn(&FlowSample) -> Option<f64>| Column::Float(samples.iter().map(value).collect());
    let integers = |value: fn(&FlowSample) -> u64| {
        Column::Integer(samples.iter().map(|s| count(value(s))).collect())
    };
    let mut table = Table::default();
    table.push("t_s", floats(|s| Some(s.at.as_secs_f64())));
    table.push("cwnd_bytes", integers(|s| s.vitals.window));
    table.push("cwnd_plus_dupacked_bytes", integers(|s| s.vitals.window + s.vitals.dupacked));
    table.push(
        "ssthresh_bytes",
        floats(|s| Some(s.vitals.ssthresh).filter(|&bytes| bytes != u64::MAX).map(|b| b as f64)),
    );
    table.push("srtt_s", floats(|s| s.vitals.srtt.map(|srtt| srtt.as_secs_f64())));
    table.push("rto_s", floats(|s| Some(s.vitals.rto.as_secs_f64())));
    table.push("flight_bytes", integers(|s| s.vitals.flight));
    table
}

fn queue_table(samples: &[QueueSample]) -> Table {
    let mut table = Table::default();
    let times = samples.iter().map(|sample| Some(sample.at.as_secs_f64()));
    table.push("t_s", Column::Float(times.collect()));
    let packets = samples.iter().map(|sample| i64::from(sample.packets));
    table.push("packets", Column::Integer(packets.collect()));
    table
}

/// A count as a column has it. No count of a run comes near 2^63.
fn count(value: u64) -> i64 {
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

impl Outcome {
    /// The rows as columns.
    #[must_use]
    pub fn table(&self, seed: u64) -> Table {
        let records: Vec<_> =
            self.rows.iter().map(|row| Record { seed, outcome: self, row }).collect();
        let mut table = Table::default();
        tabulate(&mut table, &records);
        table
    }
}
