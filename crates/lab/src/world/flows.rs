//! The flows of a scenario in its world.

use crate::scenario::{Datagrams, Flow, IpVersion, Scenario, Sending, Traffic, Transfer, Workload};
use base::{Seed, Time};
use core::net::IpAddr;
use host::{
    Application, BufferedSource, DatagramFlow, DatagramSource, Listener, Opening, PacedSource,
    Requester, Responder, Sink, SlowSink, Source,
};
use sim::{NodeId, World};
use tcp::{Config, Connection, Events};

/// An end of a connection, which knows whose it is.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// The flow's index.
    pub(crate) flow: usize,
    /// What it is to send, unless it only answers.
    pub(crate) errand: Option<Errand>,
    /// What it does.
    pub(crate) traffic: host::Traffic,
}

/// A transfer, as whoever sends it knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errand {
    /// Names it, among all transfers under way in a run.
    pub(crate) stream: u32,
    /// When it was started.
    pub(crate) at: Time,
    /// Bytes; `None` for no end.
    pub(crate) size: Option<u64>,
}

impl Application for End {
    #[inline]
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        self.traffic.handle(now, connection, events);
    }

    #[inline]
    fn next_wake(&self) -> Time {
        self.traffic.next_wake()
    }

    fn wake(&mut self, now: Time, connection: &mut Connection) {
        self.traffic.wake(now, connection);
    }
}

/// The port to which a flow connects; ports below are for those with names.
pub(crate) fn port(flow: usize) -> u16 {
    const FIRST: u16 = 5001;
    FIRST + flow as u16
}

/// Puts in the flows, each to wait for its start.
pub(super) fn add(scenario: &Scenario, nodes: &[NodeId], seed: Seed, world: &mut World<End>) {
    for (index, flow) in scenario.flows.iter().enumerate() {
        // A stream has the number of its flow: every byte is accounted for.
        let stream = index as u32;
        let end = |errand, traffic| End { flow: index, errand, traffic };
        let [from, to] = [nodes[flow.from], nodes[flow.to]];
        match flow.traffic {
            Traffic::Transfer(transfer) => {
                let errand = Errand { stream, at: flow.start, size: transfer.size };
                let (source, sink) = applications(transfer, stream);
                let opens = (from, flow.sender.clone(), end(Some(errand), source));
                let accepts = (to, flow.receiver.clone(), end(None, sink));
                join(world, flow, index, opens, accepts, None);
            }
            Traffic::Requests(dialogue) => {
                let requester = host::Traffic::Requester(Requester::new(stream, dialogue).into());
                let responder = host::Traffic::Responder(Responder::new(stream, dialogue));
                let opens = (to, flow.receiver.clone(), end(None, requester));
                let accepts = (from, flow.sender.clone(), end(None, responder));
                // Data goes to the flow's port here, too.
                join(world, flow, index, opens, accepts, Some(port(index)));
            }
            Traffic::Workload(workload) => {
                let many = Many { flow, workload, index, of: scenario.flows.len() };
                many.add(nodes, seed, world);
            }
            Traffic::Datagrams(datagrams) => {
                let source = DatagramFlow {
                    stream,
                    remote: address(to, flow.ip),
                    remote_port: port(index),
                    local_port: port(index),
                    payload: u32::from(datagrams.packet - Datagrams::headers(flow.ip)),
                    rate: datagrams.rate,
                    start: flow.start,
                    stop: datagrams.lasts.map_or(Time::NEVER, |lasts| flow.start + lasts),
                    bursts: datagrams.bursts,
                };
                let random = seed.stream(&format!("flow.{}.datagrams", flow.name));
                world.host_mut(to).take_datagrams(port(index));
                world.host_mut(from).send_datagrams(DatagramSource::new(source, random));
            }
        }
    }
}

/// Lets one end of a flow accept the connection that the other is to open.
fn join(
    world: &mut World<End>,
    flow: &Flow,
    index: usize,
    (opens, config, application): (NodeId, Config, End),
    (accepts, accepted, accepting): (NodeId, Config, End),
    local_port: Option<u16>,
) {
    let accept = move || (accepted.clone(), accepting.clone());
    world.host_mut(accepts).listen(port(index), accept);
    let (remote, remote_port) = (address(accepts, flow.ip), port(index));
    let opening = Opening { at: flow.start, remote, remote_port, local_port, config, application };
    world.host_mut(opens).open(opening);
}

/// The applications at the ends of a transfer.
fn applications(transfer: Transfer, stream: u32) -> (host::Traffic, host::Traffic) {
    use host::Traffic::{Buffered, Paced, Sink as Reader, Slow, Source as Writer};
    let Transfer { size, sending, reading } = transfer;
    let source = match sending {
        Sending::Eager => Writer(Source::new(stream, size)),
        Sending::Buffered(buffer) => Buffered(BufferedSource::new(stream, size, buffer)),
        Sending::Paced(pace) => Paced(PacedSource::new(stream, size, pace.chunk, pace.interval)),
    };
    let sink = match reading {
        None => Reader(Sink::new(stream)),
        Some(pace) => Slow(SlowSink::new(stream, pace.chunk as u32, pace.interval)),
    };
    (source, sink)
}

/// A flow of many connections, `index` of so many flows.
struct Many<'a> {
    flow: &'a Flow,
    workload: Workload,
    index: usize,
    of: usize,
}

impl Many<'_> {
    fn add(&self, nodes: &[NodeId], seed: Seed, world: &mut World<End>) {
        let Many { flow, workload: Workload { arrivals, sizes, count }, index, of } = *self;
        let accepted = flow.receiver.clone();
        let accept = move || {
            let traffic = host::Traffic::Sink(Sink::of_any());
            (accepted.clone(), End { flow: index, errand: None, traffic })
        };
        // However many come at once: the number of flows is what is to be seen, not a backlog.
        let listener = Listener::new(port(index), accept).backlog(u32::MAX);
        world.host_mut(nodes[flow.to]).add_listener(listener);

        let stream = |part: &str| seed.stream(&format!("flow.{}.{part}", flow.name));
        let mut random = stream("sizes");
        let (config, remote) = (flow.sender.clone(), address(nodes[flow.to], flow.ip));
        let make = move |at, number: u64| {
            // Unlike that of any connection there is, in any flow.
            let stream = (number + 1).wrapping_mul(of as u64).wrapping_add(index as u64) as u32;
            let size = Some(sizes.draw(&mut random));
            let traffic = host::Traffic::Source(Source::new(stream, size));
            let errand = Some(Errand { stream, at, size });
            let application = End { flow: index, errand, traffic };
            let (remote_port, config) = (port(index), config.clone());
            Opening { at, remote, remote_port, local_port: None, config, application }
        };
        let workload = host::Workload::new(arrivals, flow.start, stream("arrivals"), make);
        let workload = workload.at_most(count.unwrap_or(u64::MAX));
        world.host_mut(nodes[flow.from]).add_workload(workload);
    }
}

/// A node's address of a version of IP.
pub(super) fn address(node: NodeId, ip: IpVersion) -> IpAddr {
    match ip {
        IpVersion::V4 => node.address(),
        IpVersion::V6 => node.address_v6(),
    }
}
