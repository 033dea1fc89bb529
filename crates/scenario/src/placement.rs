//! The applications of a scenario's flows, installed on hosts: those of the simulator, or of the
//! testbed.

use crate::flow::{Datagrams, Flow, IpVersion, RateControl, Traffic, Workload};
use crate::scenario::Scenario;
use base::{Random, Seed, Time};
use core::net::{IpAddr, SocketAddr};
use host::{
    Application, ApplicationSettings, Bytes, DatagramFlow, DatagramSource, Departures, FourTuple,
    Host, Listener, Middlebox, Opening, Place, Prefix, Role, Sink, Source, TfrcReceiver,
    TfrcSender, Transport,
};
use middlebox::Contents;
use tcp::Events;
use wire::{Payload, Tfrc};

/// The nodes of a world: what the ends of flows and boxes are installed in.
pub trait Placement {
    /// Whether packets carry the number of the stream that their bytes belong to.
    const STREAMS: bool;

    /// What the end of a flow at a node, both by their index, is installed in.
    fn endpoint(&mut self, flow: usize, node: usize) -> &mut dyn Endpoint;

    /// The address of that end.
    fn address(&self, flow: usize, node: usize) -> IpAddr;

    /// The host of our stack at a node, for what belongs to no flow.
    fn node_host(&mut self, node: usize) -> &mut Host<End>;

    /// The address of that host, from which boxes of the node send.
    fn own(&self, node: usize, ip: IpVersion) -> IpAddr;

    /// All addresses of a node, whichever stack has them.
    fn addresses(&self, node: usize) -> Vec<IpAddr>;

    /// The bytes of what boxes write themselves.
    fn contents(&self) -> Contents {
        Contents::default()
    }

    /// Puts a box into a node, behind those that are there.
    fn add_box(&mut self, node: usize, middlebox: Box<dyn Middlebox + Send>);
}

/// What the ends of flows are installed in: a host of our stack, or the kernel's sockets.
pub trait Endpoint {
    /// Makes sure that it has an address.
    fn give(&mut self, address: IpAddr);

    /// Accepts connections.
    fn listen(&mut self, listener: Listener<End>);

    /// Opens a connection at its time.
    fn open(&mut self, opening: Opening<End>);

    /// Opens connections as a workload says.
    fn open_many(&mut self, workload: host::Workload<End>);

    /// Counts the datagrams that arrive at a port. With `departures` it measures their delays.
    fn take_datagrams(&mut self, port: u16, departures: Option<Departures>);

    /// Sends datagrams.
    fn send_datagrams(&mut self, source: DatagramSource);

    /// Receives the datagrams of a TFRC flow. Only ends of our stack can ([`crate::Stack`]).
    fn receive_tfrc(&mut self, ends: FourTuple, receiver: TfrcReceiver);

    /// Sends the datagrams of a TFRC flow. Only ends of our stack can ([`crate::Stack`]).
    fn send_tfrc(&mut self, ends: FourTuple, sender: TfrcSender);
}

impl Endpoint for Host<End> {
    fn give(&mut self, address: IpAddr) {
        if !self.owns(address) {
            self.add_prefix(Prefix::new(address, u8::MAX));
        }
    }

    fn listen(&mut self, listener: Listener<End>) {
        self.add_listener(listener);
    }

    fn open(&mut self, opening: Opening<End>) {
        Host::open(self, opening);
    }

    fn open_many(&mut self, workload: host::Workload<End>) {
        self.add_workload(workload);
    }

    fn take_datagrams(&mut self, port: u16, departures: Option<Departures>) {
        Host::take_datagrams_of(self, port, departures);
    }

    fn send_datagrams(&mut self, source: DatagramSource) {
        Host::send_datagrams(self, source);
    }

    fn receive_tfrc(&mut self, ends: FourTuple, receiver: TfrcReceiver) {
        Host::receive_tfrc(self, ends, receiver);
    }

    fn send_tfrc(&mut self, ends: FourTuple, sender: TfrcSender) {
        Host::send_tfrc(self, ends, sender);
    }
}

/// The application at an end of a connection, and the flow that it belongs to.
#[derive(Clone, Debug)]
pub struct End {
    /// The flow's index.
    pub flow: usize,
    /// Which end of the flow it is.
    pub role: Role,
    /// The transfer that it sends, if it sends one.
    pub spec: Option<TransferSpec>,
    /// What it does.
    pub traffic: host::Traffic,
    /// When the other end had acknowledged all data and the end of it.
    pub acknowledged_at: Option<Time>,
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

/// The bytes from `offset` on that an end of a flow sends. All connections of a flow carry the same
/// bytes.
#[must_use]
pub fn bytes_of(flow: usize, sender: Role, offset: u64, len: u32) -> Payload {
    let stream = 2 * flow as u32 + u32::from(sender == Role::Receiver);
    Payload { stream, offset, len }
}

impl End {
    /// An end at the start of its connection.
    #[must_use]
    pub fn new(flow: usize, role: Role, spec: Option<TransferSpec>, traffic: host::Traffic) -> End {
        End { flow, role, spec, traffic, acknowledged_at: None, wrong: 0 }
    }

    /// The bytes from `offset` on that the other end sends.
    #[must_use]
    pub fn expected(&self, offset: u64, len: u32) -> Payload {
        bytes_of(self.flow, self.role.other(), offset, len)
    }
}

impl Bytes for End {
    fn fetch(&self, payload: Payload, out: &mut [u8]) {
        bytes_of(self.flow, self.role, payload.offset, payload.len).render(out);
    }

    fn store(&mut self, place: u64, bytes: &[u8]) {
        self.wrong += self.expected(place, bytes.len() as u32).count_wrong(bytes);
    }
}

impl<C: Transport> Application<C> for End {
    #[inline]
    fn handle(&mut self, now: Time, connection: &mut C, events: Events) {
        if events.contains(Events::FINISHED) {
            self.acknowledged_at = Some(now);
        }
        self.traffic.handle(now, connection, events);
    }

    #[inline(always)]
    fn take(&mut self, now: Time, payload: Payload) -> bool {
        Application::<C>::take(&mut self.traffic, now, payload)
    }

    #[inline]
    fn next_wake(&self) -> Time {
        Application::<C>::next_wake(&self.traffic)
    }

    fn wake(&mut self, now: Time, connection: &mut C) {
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
        let flow = self.flow;
        match &flow.traffic {
            Traffic::Application(settings) => self.connect(placement, settings),
            Traffic::Workload(workload) => self.install_workload(placement, *workload),
            Traffic::Datagrams(datagrams) => self.install_datagrams(placement, datagrams),
        }
    }

    fn install_datagrams<P: Placement>(&self, placement: &mut P, datagrams: &Datagrams) {
        let Installer { flow, index, .. } = *self;
        let source = DatagramFlow {
            stream: index as u32,
            remote: placement.address(index, flow.to),
            remote_port: port(index),
            local_port: port(index),
            payload: datagrams.payload(flow.ip),
            rate: datagrams.rate,
            start: flow.start,
            stop: datagrams.lasts.map_or(Time::NEVER, |lasts| flow.start + lasts),
            bursts: datagrams.bursts,
        };
        match datagrams.rate_control {
            RateControl::None => {
                let source = DatagramSource::new(source, self.stream("datagrams"));
                // Real packets do not tell their place in the stream.
                let departures = source.departures().filter(|_| P::STREAMS);
                placement.endpoint(index, flow.to).take_datagrams(port(index), departures);
                placement.endpoint(index, flow.from).send_datagrams(source);
            }
            RateControl::Tfrc => {
                let source = DatagramFlow { local_port: Tfrc::PORT, ..source };
                let ends = FourTuple {
                    local: placement.address(index, flow.from),
                    local_port: source.local_port,
                    remote: source.remote,
                    remote_port: source.remote_port,
                };
                let receiver = TfrcReceiver::new(datagrams.loss_causes);
                placement.endpoint(index, flow.to).receive_tfrc(ends.reversed(), receiver);
                placement.endpoint(index, flow.from).send_tfrc(ends, TfrcSender::new(source));
            }
        }
    }

    /// The random sub-stream of a part of the flow.
    fn stream(&self, part: &str) -> Random {
        self.seed.stream(&format!("flow.{}.{part}", self.flow.name))
    }

    /// Lets one end of the flow listen, and the other open the connection at the flow's start.
    fn connect<P: Placement>(&self, placement: &mut P, settings: &ApplicationSettings) {
        let Installer { flow, index, .. } = *self;
        let settings = settings.settings();
        // A stream has the number of its flow.
        let stream = index as u32;
        let place = Place { stream, is_carried: P::STREAMS, start: flow.start };
        let [sender, receiver] = settings.ends(&place);
        let transfer = TransferSpec { stream, at: flow.start, size: settings.size() };
        let spec = settings.is_transfer().then_some(transfer);
        let end = |role, spec, traffic| End::new(index, role, spec, traffic);
        let sender = (flow.from, flow.sender.clone(), end(Role::Sender, spec, sender));
        let receiver = (flow.to, flow.receiver.clone(), end(Role::Receiver, None, receiver));
        let (opens, accepts, local_port) = match settings.opener() {
            Role::Sender => (sender, receiver, None),
            // Data goes to the flow's port here, too.
            Role::Receiver => (receiver, sender, Some(port(index))),
        };
        let [local, remote] = [opens.0, accepts.0].map(|node| placement.address(index, node));
        let (node, config, end) = accepts;
        let endpoint = placement.endpoint(index, node);
        endpoint.give(remote);
        let accept = move |_| (config.clone(), end.clone());
        endpoint.listen(Listener::new(SocketAddr::new(remote, port(index)), accept));
        let (node, config, application) = opens;
        let endpoint = placement.endpoint(index, node);
        endpoint.give(local);
        let (at, remote_port, local) = (flow.start, port(index), Some(local));
        endpoint.open(Opening { at, remote, remote_port, local, local_port, config, application });
    }

    /// Installs a flow of many connections.
    fn install_workload(&self, placement: &mut impl Placement, workload: Workload) {
        let Installer { flow, index, .. } = *self;
        let Workload { arrivals, sizes, count } = workload;
        let [local, remote] = [flow.from, flow.to].map(|node| placement.address(index, node));
        let accepted = flow.receiver.clone();
        let traffic = host::Traffic::Sink(Sink::of_any());
        let sink = End::new(index, Role::Receiver, None, traffic);
        let accept = move |_| (accepted.clone(), sink.clone());
        let endpoint = placement.endpoint(index, flow.to);
        endpoint.give(remote);
        let end = SocketAddr::new(remote, port(index));
        // The number of connections is the workload's, not that of a backlog.
        endpoint.listen(Listener::new(end, accept).backlog(u32::MAX));
        let mut random = self.stream("sizes");
        let (config, of) = (flow.sender.clone(), self.scenario.flows.len());
        let make = move |at, number: u64| {
            // No other connection of any flow has this number at the same time.
            let stream = (number + 1).wrapping_mul(of as u64).wrapping_add(index as u64) as u32;
            let size = Some(sizes.draw(&mut random));
            let traffic = host::Traffic::Source(Source::new(stream, size));
            let spec = Some(TransferSpec { stream, at, size });
            let application = End::new(index, Role::Sender, spec, traffic);
            let (remote_port, config) = (port(index), config.clone());
            let local = Some(local);
            Opening { at, remote, remote_port, local, local_port: None, config, application }
        };
        let workload = host::Workload::new(arrivals, flow.start, self.stream("arrivals"), make);
        let endpoint = placement.endpoint(index, flow.from);
        endpoint.give(local);
        endpoint.open_many(workload.at_most(count.unwrap_or(u64::MAX)));
    }
}
