//! Time series of a run.

use crate::table::{Column, Table, count};
use host::{ConnectionId, Role};
use scenario::{End, Scenario};
use sim::{BoxSample, FlowSample, LinkId, NodeId, QueueSample, World};

/// Time series of a run. Each has a column `t_s`, seconds since the start of the run. Those of
/// deliveries have a row for each hundredth of the run's duration, or for each second; the others
/// one for every change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Per flow, by name: the variables of its sender.
    pub flows: Vec<(String, Table)>,
    /// Per flow, by name: `payload_bytes`, those that its receiving application has, in order.
    pub deliveries: Vec<(String, Table)>,
    /// Per direction of a link, by the names of its ends (`a->b`): `packets`, those waiting or in
    /// transmission.
    pub queues: Vec<(String, Table)>,
    /// Per node whose boxes hold something, by its name: a column for each quantity.
    pub boxes: Vec<(String, Table)>,
}

/// A sending connection: its flow, and where it is.
pub(crate) type Sender = (usize, NodeId, ConnectionId);

/// The sending connections, by flow.
pub(crate) fn senders(world: &World<End>, nodes: &[NodeId]) -> Vec<Sender> {
    let mut senders = Vec::new();
    for &node in nodes {
        for (id, _, End { flow, role, .. }) in world.host(node).connections() {
            if *role == Role::Sender {
                senders.push((*flow, node, id));
            }
        }
    }
    senders
}

impl Series {
    /// The series of a run that were recorded.
    pub(crate) fn of(
        scenario: &Scenario,
        senders: &[Sender],
        (nodes, links): (&[NodeId], &[(LinkId, LinkId)]),
        recorded: &sim::Series,
    ) -> Series {
        let mut series = Series::default();
        for (index, flow) in scenario.flows.iter().enumerate() {
            if !flow.traffic.is_one_connection() {
                continue;
            }
            let samples = senders.iter().find(|(flow, ..)| *flow == index).and_then(|sender| {
                let of = recorded.flows.iter().find(|f| (f.0, f.1) == (sender.1, sender.2));
                of.map(|(_, _, samples)| samples.as_slice())
            });
            series.flows.push((flow.name.clone(), flow_table(samples.unwrap_or_default())));
        }
        for (link, &(forward, backward)) in scenario.links.iter().zip(links) {
            for (id, name) in [forward, backward].into_iter().zip(scenario.directions(link)) {
                let of = |queue: &&(LinkId, Vec<QueueSample>)| queue.0 == id;
                let samples =
                    recorded.queues.iter().find(of).map(|(_, samples)| samples.as_slice());
                series.queues.push((name, queue_table(samples.unwrap_or_default())));
            }
        }
        for (name, node) in scenario.nodes.iter().zip(nodes) {
            let samples =
                recorded.boxes.iter().find(|of| of.0 == *node).map(|(_, samples)| samples);
            let samples = samples.map(Vec::as_slice).unwrap_or_default();
            if samples.first().is_some_and(|sample| !sample.gauges.is_empty()) {
                series.boxes.push((name.clone(), box_table(samples)));
            }
        }
        series
    }
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
    table.push("cwnd_plus_dupacked_bytes", integers(|s| s.vitals.window + s.vitals.dupack_credit));
    table.push(
        "ssthresh_bytes",
        floats(|s| Some(s.vitals.ssthresh).filter(|&bytes| bytes != u64::MAX).map(|b| b as f64)),
    );
    table.push("srtt_s", floats(|s| s.vitals.srtt.map(|srtt| srtt.as_secs_f64())));
    table.push("rto_s", floats(|s| Some(s.vitals.rto.as_secs_f64())));
    table.push("flight_bytes", integers(|s| s.vitals.flight));
    table
}

fn box_table(samples: &[BoxSample]) -> Table {
    let mut table = Table::default();
    let times = samples.iter().map(|sample| Some(sample.at.as_secs_f64()));
    table.push("t_s", Column::Float(times.collect()));
    let names = samples.first().into_iter().flat_map(|first| &first.gauges);
    for (place, (name, _)) in names.enumerate() {
        let values = samples.iter().map(|sample| count(sample.gauges[place].1));
        table.push(*name, Column::Integer(values.collect()));
    }
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
