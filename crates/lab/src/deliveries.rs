//! What has arrived of each flow, over time.

use crate::table::{Column, Table, count};
use crate::world::Built;
use base::Time;
use host::{Reports as _, Role};
use scenario::{End, Flow, Scenario};

/// Samples of the bytes that receiving applications have.
#[derive(Debug)]
pub(crate) struct Deliveries<'s> {
    scenario: &'s Scenario,
    times: Vec<Time>,
    /// Of each flow of one connection, by its index: its bytes at these times.
    received: Vec<(usize, Vec<u64>)>,
}

impl<'s> Deliveries<'s> {
    /// Without a sample.
    pub(crate) fn new(scenario: &'s Scenario) -> Deliveries<'s> {
        let one = |(_, flow): &(usize, &Flow)| flow.traffic.is_one_connection();
        let flows = scenario.flows.iter().enumerate().filter(one);
        let received = flows.map(|(index, _)| (index, Vec::new())).collect();
        Deliveries { scenario, times: Vec::new(), received }
    }

    /// Samples all flows.
    pub(crate) fn sample(&mut self, now: Time, built: &Built) {
        self.times.push(now);
        for (index, samples) in &mut self.received {
            let host = built.world.host(built.nodes[self.scenario.flows[*index].to]);
            let here = |end: &&End| end.flow == *index && end.role == Role::Receiver;
            let end = host.connections().map(|(_, _, end)| end).find(here);
            let sink = end.and_then(|end| end.traffic.progress().sink);
            samples.push(sink.map_or(0, |sink| sink.received));
        }
    }

    /// A table for each flow, by its name.
    pub(crate) fn tables(self) -> Vec<(String, Table)> {
        let times: Vec<_> = self.times.iter().map(|at| Some(at.as_secs_f64())).collect();
        let tables = self.received.into_iter().map(|(index, samples)| {
            let mut table = Table::default();
            table.push("t_s", Column::Float(times.clone()));
            table.push("payload_bytes", Column::Integer(samples.into_iter().map(count).collect()));
            (self.scenario.flows[index].name.clone(), table)
        });
        tables.collect()
    }
}
