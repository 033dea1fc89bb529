//! A sender, a receiver and the links between them, in a row: the path that these tests need.
#![allow(unreachable_pub)]

pub mod boxes;

use base::{Duration, Rate, Seed, Time};
use host::{Opening, Sink, Source, Traffic};
use link::{Queue, Uniform};
use middlebox::{Association, Egress, Ends, Forwarder, Ingress, Reading, Reporter};
use sim::{FlowSample, LinkId, NodeId, Topology, TraceTarget, World};
use tcp::mechanism::{Eten, ForwardEten, Mechanism, Suppression};
use tcp::{Connection, Recovery};

pub const PORT: u16 = 5000;

/// Bytes in a segment of most tests; with both headers it is a packet of 1040.
pub const MSS: u64 = 1000;

pub const RECOVERIES: [Recovery; 4] =
    [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack];

/// The source of corruption notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    None,
    Oracle,
    Backward,
    /// By a message, by the next packet, by the corrupted one.
    Forward(Transport),
}

/// How word gets to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Message,
    Piggyback,
    Marked,
}

pub const TRANSPORTS: [Transport; 3] =
    [Transport::Message, Transport::Piggyback, Transport::Marked];

/// A tunnel between two nodes of the path, by their index, the first before the second.
#[derive(Clone, Copy, Debug)]
pub struct Tunnel {
    pub from: usize,
    pub to: usize,
    /// The ingress of each direction finds out whose packet was corrupted.
    pub resolves: bool,
}

/// A link of the path.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    pub rate: Option<Rate>,
    pub delay: Duration,
    pub queue: Queue,
    pub forward: Uniform,
    pub backward: Uniform,
}

/// A path with one flow over it.
#[derive(Clone, Debug)]
pub struct Path {
    pub hops: Vec<Hop>,
    pub tcp: tcp::Config,
    /// Bytes; `None` never ends.
    pub size: Option<u64>,
    pub report: Report,
    /// Nodes read of corrupted headers what checksums leave; else all of them.
    pub checked: bool,
    pub tunnel: Option<Tunnel>,
    /// The flow is over IPv6.
    pub v6: bool,
    pub seed: u64,
}

impl Default for Hop {
    /// Infinitely fast, a round trip of 100 ms, no errors.
    fn default() -> Hop {
        Hop {
            rate: None,
            delay: Duration::from_millis(50),
            queue: Queue::Unlimited,
            forward: Uniform::default(),
            backward: Uniform::default(),
        }
    }
}

impl Default for Path {
    fn default() -> Path {
        Path {
            hops: vec![Hop::default()],
            tcp: plain(),
            size: None,
            report: Report::None,
            checked: false,
            tunnel: None,
            v6: false,
            seed: 1,
        }
    }
}

/// TCP of RFC 5681 and RFC 6675, with an acknowledgment for each segment, a first window of one and
/// a last of any size.
pub fn plain() -> tcp::Config {
    tcp::Config {
        mss: MSS as u16,
        receive_window: tcp::ReceiveWindow::fixed(1 << 29),
        recovery: tcp::Recovery::Sack,
        congestion: tcp::congestion::Congestion::Aimd,
        hystart: false,
        reduction: tcp::Reduction::Immediate,
        frto: false,
        initial_window: tcp::InitialWindow::Segments(1),
        limited_transmit: false,
        delayed_ack: None,
        timestamps: false,
        byte_counting: None,
        ..tcp::Config::default()
    }
}

pub fn mbps(megabits: u64) -> Option<Rate> {
    Rate::from_bps(megabits * 1_000_000)
}

pub fn secs(secs: u64) -> Time {
    Time::ZERO + Duration::from_secs(secs)
}

pub fn millis(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Losses of whole packets, without an indication.
pub fn lossy(packet: f64) -> Uniform {
    Uniform { bit: 0.0, packet }
}

/// The bit error rate that corrupts a packet of `bytes` with probability `p`.
pub fn noisy(p: f64, bytes: u32) -> Uniform {
    let bit = -libm::expm1(libm::log1p(-p) / f64::from(8 * bytes));
    Uniform { bit, packet: 0.0 }
}

/// A world with the flow of a path, and where things are in it.
pub struct Lab {
    pub world: World<Traffic>,
    /// The sender, the routers, the receiver.
    pub nodes: Vec<NodeId>,
    /// From each node to the next, and back.
    pub links: Vec<(LinkId, LinkId)>,
}

impl Path {
    /// The same with other settings of the only link.
    pub fn over(hop: Hop) -> Path {
        Path { hops: vec![hop], ..Path::default() }
    }

    pub fn build(&self) -> Lab {
        self.build_beside(|_| {})
    }

    /// The path in a network in which `others` has declared more, behind it.
    pub fn build_beside(&self, others: impl FnOnce(&mut Topology)) -> Lab {
        let links = self.hops.iter().map(|hop| {
            let Hop { rate, delay, queue, .. } = *hop;
            let direction = |errors: Uniform| {
                let errors = errors.into();
                link::Config { rate, delay, queue, errors, ..link::Config::default() }
            };
            (direction(hop.forward), direction(hop.backward))
        });
        self.build_over(links.collect(), |network, _, _| others(network))
    }

    /// The flow over other links than those of `hops`: forward and backward.
    pub fn build_over(
        &self,
        links: Vec<(link::Config, link::Config)>,
        others: impl FnOnce(&mut Topology, &[NodeId], &[(LinkId, LinkId)]),
    ) -> Lab {
        let mut network = Topology::new();
        let nodes: Vec<_> = (0..=links.len()).map(|n| network.add_node(n.to_string())).collect();
        let ends = nodes.windows(2).zip(links);
        let links: Vec<_> = ends
            .map(|(ends, (forward, backward))| {
                network.add_link(ends[0], ends[1], forward, backward)
            })
            .collect();
        others(&mut network, &nodes, &links);
        let mut lab = Lab { world: network.build(Seed(self.seed)), nodes, links };
        self.report_corruption(&mut lab);
        self.add_tunnel(&mut lab);
        self.open_flow(&mut lab);
        lab
    }

    fn report_corruption(&self, lab: &mut Lab) {
        let (sender, receiver) = (lab.sender(), lab.receiver());
        match self.report {
            Report::None => {}
            Report::Oracle => lab.world.add_oracle(sender.address(), receiver.address(), PORT),
            Report::Backward => {
                for (number, node) in (1..).zip(lab.nodes[1..].to_vec()) {
                    let size = Reporter::SIZE_ICMP;
                    let mut reporter = Reporter::new(node.address(), size, self.reading(number));
                    reporter.register(sender.address(), receiver.address(), PORT);
                    lab.world.add_box(node, Box::new(reporter));
                }
            }
            Report::Forward(transport) => {
                for (number, node) in (1..).zip(lab.nodes[1..].to_vec()) {
                    let (size, reading) = (Reporter::SIZE_ICMP, self.reading(number));
                    let mut forwarder = match transport {
                        Transport::Message => Forwarder::by_message(node.address(), size, reading),
                        Transport::Piggyback => Forwarder::by_next_packet(reading),
                        Transport::Marked => Forwarder::by_mark(reading),
                    };
                    forwarder.register(sender.address(), receiver.address(), PORT);
                    lab.world.add_box(node, Box::new(forwarder));
                }
            }
        }
    }

    fn add_tunnel(&self, lab: &mut Lab) {
        let Some(Tunnel { from, to, resolves }) = self.tunnel else { return };
        let nodes = lab.nodes.clone();
        let directions = [(from, to, &nodes[to..]), (to, from, &nodes[..=from])];
        let mut ingresses = Vec::new();
        for (spi, (source, destination, behind)) in (256..).zip(directions) {
            let association = Association::new(Ends {
                source: nodes[source].address(),
                destination: nodes[destination].address(),
                spi,
                key: self.seed,
            });
            let inside = association.clone();
            lab.world.see_inside(move |packet| inside.inside(packet));
            let protected = behind.iter().map(|node| node.address());
            let mut ingress = Ingress::new(association.clone(), protected.collect());
            if resolves {
                let own = [nodes[source].address(), nodes[source].address_v6()];
                ingress = ingress.resolves(own, 256);
                let (sender, receiver) = (lab.sender().address(), lab.receiver().address());
                ingress.register(sender, receiver, PORT, Reporter::SIZE_ICMP);
                for &node in &nodes[from..=to] {
                    let size = Reporter::SIZE_ICMP;
                    let mut reporter = Reporter::new(node.address(), size, Reading::Whole);
                    reporter.register_tunnel(association.ends());
                    lab.world.add_box(node, Box::new(reporter));
                }
            }
            lab.world.add_box(nodes[destination], Box::new(Egress::new(association)));
            ingresses.push((nodes[source], ingress));
        }
        for (node, ingress) in ingresses {
            lab.world.add_box(node, Box::new(ingress));
        }
    }

    fn reading(&self, node: u32) -> Reading {
        match self.checked {
            true => Reading::Checked(Seed(self.seed).stream(&format!("reading.{node}"))),
            false => Reading::Whole,
        }
    }

    fn open_flow(&self, lab: &mut Lab) {
        let (sender, receiver) = (lab.sender(), lab.receiver());
        let config = self.tcp.clone();
        lab.world
            .host_mut(receiver)
            .listen(PORT, move || (config.clone(), Traffic::Sink(Sink::new(0))));
        lab.world.host_mut(sender).open(Opening {
            at: Time::ZERO,
            remote: if self.v6 { receiver.address_v6() } else { receiver.address() },
            remote_port: PORT,
            local: self.v6.then(|| sender.address_v6()),
            local_port: None,
            config: self.tcp.clone(),
            application: Traffic::Source(Source::new(0, self.size)),
        });
        lab.world.wake(sender);
    }

    /// A world that has run until `end`.
    pub fn run(&self, end: Time) -> Lab {
        let mut lab = self.build();
        lab.world.run_until(end);
        lab
    }
}

impl Lab {
    pub fn sender(&self) -> NodeId {
        self.nodes[0]
    }

    pub fn receiver(&self) -> NodeId {
        self.nodes[self.nodes.len() - 1]
    }

    /// Runs until nothing is left to happen, which must be before so many events.
    pub fn run_to_peace(&mut self, events: u64) {
        loop {
            let next = self.world.next_event();
            if next == Time::NEVER {
                return;
            }
            self.world.run_until(next);
            assert!(self.world.events() < events, "no peace at {next}");
        }
    }

    /// Records the sender's time series.
    pub fn trace(&mut self) {
        self.world.trace(&[TraceTarget::Flows(self.sender())]);
    }

    /// The sender's time series, which [`Lab::trace`] asked for.
    pub fn samples(self) -> Vec<FlowSample> {
        let mut series = self.world.observations().0;
        series.flows.swap_remove(0).2
    }

    /// The sending connection.
    pub fn sending(&self) -> &Connection {
        self.world.host(self.sender()).connections().next().expect("it was opened").1
    }

    /// The receiving connection and its application.
    pub fn receiving(&self) -> (&Connection, &Sink) {
        match self.world.host(self.receiver()).connections().next() {
            Some((_, connection, Traffic::Sink(sink))) => (connection, sink),
            _ => panic!("the connection was never accepted"),
        }
    }

    /// Bytes that have arrived in order.
    pub fn received(&self) -> u64 {
        let sink = self.receiving().1;
        assert_eq!(sink.misplaced, 0, "bytes came twice or in disorder");
        sink.received
    }

    pub fn statistics(&self) -> tcp::Statistics {
        self.sending().statistics()
    }
}

/// A sender that heeds notices of corruption.
pub fn eten(suppress_dupacks: Suppression) -> Vec<Mechanism> {
    vec![Mechanism::Eten(Eten::new(suppress_dupacks))]
}

/// The mechanism of both ends of a flow whose receiver is notified of corruption.
pub fn forward_eten(suppress_dupacks: Suppression) -> Vec<Mechanism> {
    vec![Mechanism::ForwardEten(ForwardEten::new(suppress_dupacks))]
}
