//! The applications of a scenario's flows, installed on hosts: those of the simulator, or of the
//! testbed.

use crate::flow::{Flow, IpVersion, Sending, Traffic, Transfer, Workload};
use crate::scenario::Scenario;
use base::{Random, Seed, Time};
use core::net::{IpAddr, SocketAddr};
use host::{
    Application, BufferedSource, Bytes, DatagramFlow, DatagramSource, Host, Listener, Middlebox,
    Opening, PacedSource, Prefix, Requester, Responder, Sink, SlowSink, Source,
};
use tcp::{Config, Connection, Events};
use wire::Payload;

/// The nodes of a world: what the ends of flows and boxes are installed in.
pub trait Placement {
    /// Whether packets carry the number of the stream that their bytes belong to.
    const STREAMS: bool;

    /// The host for the end of a flow at a node, both by their index; `None` if that end does not
    /// use our stack.
    fn host(&mut self, flow: usize, node: usize) -> Option<&mut Host<End>>;

    /// The address of that end.
    fn address(&self, flow: usize, node: usize) -> IpAddr;

    /// The host of our stack at a node, for what belongs to no flow.
    fn node_host(&mut self, node: usize) -> &mut Host<End>;

    /// The address of that host, from which boxes of the node send.
    fn own(&self, node: usize, ip: IpVersion) -> IpAddr;

    /// All addresses of a node, whichever stack has them.
    fn addresses(&self, node: usize) -> Vec<IpAddr>;

    /// Puts a box into a node, behind those that are there.
    fn add_box(&mut self, node: usize, middlebox: Box<dyn Middlebox + Send>);
}

/// The application at an end of a connection, and the flow that it belongs to.
#[derive(Clone, Debug)]
pub struct End {
    /// The flow's index.
    pub flow: usize,
    /// The transfer that it sends; `None` for an end that receives or answers.
    pub spec: Option<TransferSpec>,
    /// What it does.
    pub traffic: host::Traffic,
    /// Received bytes that differ from those that were sent at their offset, where packets have
    /// bytes.
    pub wrong: u64,
}

/// One transfer, as its sender knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferSpec {
    /// The stream of its bytes; no two transfers of a run use one stream at the same time.
    pub stream: u32,
    /// When it was started.
    pub at: Time,
    /// Bytes; `None` for no end.
    pub size: Option<u64>,
}

impl End {
    fn new<P: Placement>(
        _: &P,
        flow: usize,
        spec: Option<TransferSpec>,
        mut traffic: host::Traffic,
    ) -> End {
        if !P::STREAMS {
            traffic.expect_any();
        }
        End { flow, spec, traffic, wrong: 0 }
    }
}

/// The bytes from `offset` on that a flow carries in one direction: its data, or with `requests` the
/// requests for them. All connections of a flow carry the same bytes.
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

/// The port that a flow's accepting end listens on, by the flow's index; above the well-known ports.
#[must_use]
pub fn port(flow: usize) -> u16 {
    const FIRST: u16 = 5001;
    FIRST + (flow % Flow::PORTS) as u16
}

/// Which of their nodes' addresses the ends of a flow use, by the flow's index: where there are more
/// flows than ports, the next address has the same ports again.
#[must_use]
pub fn address_number(flow: usize) -> usize {
    flow / Flow::PORTS
}

/// Makes sure that a host has an address.
fn give(host: &mut Host<End>, address: IpAddr) {
    if !host.owns(address) {
        host.add_prefix(Prefix::new(address, u8::MAX));
    }
}

/// Installs the applications of a scenario's flows on their hosts; each flow starts at its time.
pub fn install(scenario: &Scenario, seed: u64, placement: &mut impl Placement) {
    for (index, flow) in scenario.flows.iter().enumerate() {
        Installer { scenario, flow, index, seed: Seed(seed) }.install(placement);
    }
}

/// Installs one flow.
struct Installer<'a> {
    scenario: &'a Scenario,
    flow: &'a Flow,
    index: usize,
    seed: Seed,
}

impl Installer<'_> {
    fn install(&self, placement: &mut impl Placement) {
        let Installer { flow, index, .. } = *self;
        // A stream has the number of its flow.
        let stream = index as u32;
        let end = |spec, traffic| End::new(placement, index, spec, traffic);
        match flow.traffic {
            Traffic::Transfer(transfer) => {
                let spec = TransferSpec { stream, at: flow.start, size: transfer.size };
                let (source, sink) = applications(transfer, stream);
                let opens = (flow.from, flow.sender.clone(), end(Some(spec), source));
                let accepts = (flow.to, flow.receiver.clone(), end(None, sink));
                self.connect(placement, opens, accepts, None);
            }
            Traffic::Requests(dialogue) => {
                let requester = host::Traffic::Requester(Requester::new(stream, dialogue).into());
                let responder = host::Traffic::Responder(Responder::new(stream, dialogue));
                let opens = (flow.to, flow.receiver.clone(), end(None, requester));
                let accepts = (flow.from, flow.sender.clone(), end(None, responder));
                // Data goes to the flow's port here, too.
                self.connect(placement, opens, accepts, Some(port(index)));
            }
            Traffic::Workload(workload) => self.install_workload(placement, workload),
            Traffic::Datagrams(datagrams) => {
                let source = DatagramFlow {
                    stream,
                    remote: placement.address(index, flow.to),
                    remote_port: port(index),
                    local_port: port(index),
                    payload: datagrams.payload(flow.ip),
                    rate: datagrams.rate,
                    start: flow.start,
                    stop: datagrams.lasts.map_or(Time::NEVER, |lasts| flow.start + lasts),
                    bursts: datagrams.bursts,
                };
                if let Some(host) = placement.host(index, flow.to) {
                    host.take_datagrams(port(index));
                }
                if let Some(host) = placement.host(index, flow.from) {
                    let random = self.stream("datagrams");
                    host.send_datagrams(DatagramSource::new(source, random));
                }
            }
        }
    }

    /// The random sub-stream of a part of the flow.
    fn stream(&self, part: &str) -> Random {
        self.seed.stream(&format!("flow.{}.{part}", self.flow.name))
    }

    /// Lets one end of the flow listen, and the other open the connection at the flow's start.
    fn connect(
        &self,
        placement: &mut impl Placement,
        (opens, config, application): (usize, Config, End),
        (accepts, accepted, accepting): (usize, Config, End),
        local_port: Option<u16>,
    ) {
        let (at, remote_port) = (self.flow.start, port(self.index));
        let [local, remote] = [opens, accepts].map(|node| placement.address(self.index, node));
        if let Some(host) = placement.host(self.index, accepts) {
            give(host, remote);
            let end = SocketAddr::new(remote, remote_port);
            let accept = move |_| (accepted.clone(), accepting.clone());
            host.add_listener(Listener::new(end, accept));
        }
        if let Some(host) = placement.host(self.index, opens) {
            give(host, local);
            host.open(Opening {
                at,
                remote,
                remote_port,
                local: Some(local),
                local_port,
                config,
                application,
            });
        }
    }

    /// Installs a flow of many connections.
    fn install_workload(&self, placement: &mut impl Placement, workload: Workload) {
        let Installer { flow, index, .. } = *self;
        let Workload { arrivals, sizes, count } = workload;
        let [local, remote] = [flow.from, flow.to].map(|node| placement.address(index, node));
        if let Some(host) = placement.host(index, flow.to) {
            let accepted = flow.receiver.clone();
            let traffic = host::Traffic::Sink(Sink::of_any());
            let sink = End { flow: index, spec: None, traffic, wrong: 0 };
            let accept = move |_| (accepted.clone(), sink.clone());
            give(host, remote);
            let end = SocketAddr::new(remote, port(index));
            // The number of connections is the workload's, not that of a backlog.
            host.add_listener(Listener::new(end, accept).backlog(u32::MAX));
        }
        let Some(host) = placement.host(index, flow.from) else { return };
        give(host, local);
        let mut random = self.stream("sizes");
        let (config, of) = (flow.sender.clone(), self.scenario.flows.len());
        let make = move |at, number: u64| {
            // No other connection of any flow has this number at the same time.
            let stream = (number + 1).wrapping_mul(of as u64).wrapping_add(index as u64) as u32;
            let size = Some(sizes.draw(&mut random));
            let traffic = host::Traffic::Source(Source::new(stream, size));
            let spec = Some(TransferSpec { stream, at, size });
            let application = End { flow: index, spec, traffic, wrong: 0 };
            let (remote_port, config) = (port(index), config.clone());
            let local = Some(local);
            Opening { at, remote, remote_port, local, local_port: None, config, application }
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
