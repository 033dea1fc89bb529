//! The applications of a scenario's flows, on any stage: the simulator's hosts, or others.

use crate::scenario::{Flow, Scenario, Sending, Traffic, Transfer, Workload};
use base::{Random, Seed, Time};
use core::net::IpAddr;
use host::{
    Application, BufferedSource, Bytes, DatagramFlow, DatagramSource, Host, Listener, Opening,
    PacedSource, Requester, Responder, Sink, SlowSink, Source,
};
use tcp::{Config, Connection, Events};
use wire::Payload;

/// Where the ends of flows live.
pub trait Stage {
    /// Whether packets say of which stream their bytes are.
    const STREAMS: bool;

    /// The host at which the end of a flow lives that is at a node, both by their index; `None` if
    /// that end is not one of ours.
    fn host(&mut self, flow: usize, node: usize) -> Option<&mut Host<End>>;

    /// The address of that end.
    fn address(&self, flow: usize, node: usize) -> IpAddr;
}

/// The application at an end of a connection, which knows whose it is.
#[derive(Clone, Debug)]
pub struct End {
    /// The flow's index.
    pub flow: usize,
    /// What it is to send, unless it only answers.
    pub errand: Option<Errand>,
    /// What it does.
    pub traffic: host::Traffic,
    /// Bytes that came and were not those of their place, in a world that has bytes.
    pub wrong: u64,
}

/// A transfer, as whoever sends it knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errand {
    /// The stream of its bytes, which no other transfer of a run has at the same time.
    pub stream: u32,
    /// When it was started.
    pub at: Time,
    /// Bytes; `None` for no end.
    pub size: Option<u64>,
}

impl End {
    fn new<S: Stage>(
        _: &S,
        flow: usize,
        errand: Option<Errand>,
        mut traffic: host::Traffic,
    ) -> End {
        if !S::STREAMS {
            traffic.expect_any();
        }
        End { flow, errand, traffic, wrong: 0 }
    }
}

/// The bytes from `offset` on of what goes from one end of a flow to the other: data, or with
/// `requests` what asks for it. Connections of one flow all carry the same.
#[must_use]
pub fn bytes_of(flow: usize, requests: bool, offset: u64, len: u32) -> Payload {
    Payload { stream: 2 * flow as u32 + u32::from(requests), offset, len }
}

impl Bytes for End {
    fn fetch(&self, payload: Payload, out: &mut [u8]) {
        let asks = matches!(self.traffic, host::Traffic::Requester(_));
        bytes_of(self.flow, asks, payload.offset, payload.len).render(out);
    }

    fn store(&mut self, place: u64, bytes: &[u8]) {
        let asked = matches!(self.traffic, host::Traffic::Responder(_));
        let expected = bytes_of(self.flow, asked, place, bytes.len() as u32);
        self.wrong += expected.count_wrong(bytes);
    }
}

impl Application for End {
    #[inline]
    fn handle(&mut self, now: Time, connection: &mut Connection, events: Events) {
        self.traffic.handle(now, connection, events);
    }

    #[inline(always)]
    fn take(&mut self, now: Time, payload: Payload) -> bool {
        self.traffic.take(now, payload)
    }

    #[inline]
    fn next_wake(&self) -> Time {
        self.traffic.next_wake()
    }

    fn wake(&mut self, now: Time, connection: &mut Connection) {
        self.traffic.wake(now, connection);
    }
}

/// The port to which a flow connects, by the flow's index; ports below are for those with names.
#[must_use]
pub fn port(flow: usize) -> u16 {
    const FIRST: u16 = 5001;
    FIRST + flow as u16
}

/// Puts the flows of a scenario on a stage, each to wait for its start.
pub fn enact(scenario: &Scenario, seed: u64, stage: &mut impl Stage) {
    for (index, flow) in scenario.flows.iter().enumerate() {
        Putting { scenario, flow, index, seed: Seed(seed) }.on(stage);
    }
}

/// A flow on its way to a stage.
struct Putting<'a> {
    scenario: &'a Scenario,
    flow: &'a Flow,
    index: usize,
    seed: Seed,
}

impl Putting<'_> {
    fn on(&self, stage: &mut impl Stage) {
        let Putting { flow, index, .. } = *self;
        // A stream has the number of its flow: every byte is accounted for.
        let stream = index as u32;
        let end = |errand, traffic| End::new(stage, index, errand, traffic);
        match flow.traffic {
            Traffic::Transfer(transfer) => {
                let errand = Errand { stream, at: flow.start, size: transfer.size };
                let (source, sink) = applications(transfer, stream);
                let opens = (flow.from, flow.sender.clone(), end(Some(errand), source));
                let accepts = (flow.to, flow.receiver.clone(), end(None, sink));
                self.join(stage, opens, accepts, None);
            }
            Traffic::Requests(dialogue) => {
                let requester = host::Traffic::Requester(Requester::new(stream, dialogue).into());
                let responder = host::Traffic::Responder(Responder::new(stream, dialogue));
                let opens = (flow.to, flow.receiver.clone(), end(None, requester));
                let accepts = (flow.from, flow.sender.clone(), end(None, responder));
                // Data goes to the flow's port here, too.
                self.join(stage, opens, accepts, Some(port(index)));
            }
            Traffic::Workload(workload) => self.many(stage, workload),
            Traffic::Datagrams(datagrams) => {
                let source = DatagramFlow {
                    stream,
                    remote: stage.address(index, flow.to),
                    remote_port: port(index),
                    local_port: port(index),
                    payload: datagrams.payload(flow.ip),
                    rate: datagrams.rate,
                    start: flow.start,
                    stop: datagrams.lasts.map_or(Time::NEVER, |lasts| flow.start + lasts),
                    bursts: datagrams.bursts,
                };
                if let Some(host) = stage.host(index, flow.to) {
                    host.take_datagrams(port(index));
                }
                if let Some(host) = stage.host(index, flow.from) {
                    let random = self.stream("datagrams");
                    host.send_datagrams(DatagramSource::new(source, random));
                }
            }
        }
    }

    /// The randomness of a part of the flow.
    fn stream(&self, part: &str) -> Random {
        self.seed.stream(&format!("flow.{}.{part}", self.flow.name))
    }

    /// Lets one end of the flow accept the connection that the other is to open.
    fn join(
        &self,
        stage: &mut impl Stage,
        (opens, config, application): (usize, Config, End),
        (accepts, accepted, accepting): (usize, Config, End),
        local_port: Option<u16>,
    ) {
        let (at, remote_port) = (self.flow.start, port(self.index));
        if let Some(host) = stage.host(self.index, accepts) {
            host.listen(remote_port, move || (accepted.clone(), accepting.clone()));
        }
        let remote = stage.address(self.index, accepts);
        if let Some(host) = stage.host(self.index, opens) {
            host.open(Opening { at, remote, remote_port, local_port, config, application });
        }
    }

    /// A flow of many connections.
    fn many(&self, stage: &mut impl Stage, workload: Workload) {
        let Putting { flow, index, .. } = *self;
        let Workload { arrivals, sizes, count } = workload;
        if let Some(host) = stage.host(index, flow.to) {
            let accepted = flow.receiver.clone();
            let traffic = host::Traffic::Sink(Sink::of_any());
            let sink = End { flow: index, errand: None, traffic, wrong: 0 };
            let accept = move || (accepted.clone(), sink.clone());
            // However many come at once: the number of flows is what is to be seen, not a backlog.
            host.add_listener(Listener::new(port(index), accept).backlog(u32::MAX));
        }
        let remote = stage.address(index, flow.to);
        let Some(host) = stage.host(index, flow.from) else { return };
        let mut random = self.stream("sizes");
        let (config, of) = (flow.sender.clone(), self.scenario.flows.len());
        let make = move |at, number: u64| {
            // Unlike that of any connection there is, in any flow.
            let stream = (number + 1).wrapping_mul(of as u64).wrapping_add(index as u64) as u32;
            let size = Some(sizes.draw(&mut random));
            let traffic = host::Traffic::Source(Source::new(stream, size));
            let errand = Some(Errand { stream, at, size });
            let application = End { flow: index, errand, traffic, wrong: 0 };
            let (remote_port, config) = (port(index), config.clone());
            Opening { at, remote, remote_port, local_port: None, config, application }
        };
        let workload = host::Workload::new(arrivals, flow.start, self.stream("arrivals"), make);
        host.add_workload(workload.at_most(count.unwrap_or(u64::MAX)));
    }
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
