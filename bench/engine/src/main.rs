//! How fast the simulator is, on the two cases that the peers run too, and beside UDP cross traffic.
//!
//! Prints one line of JSON per case: segments delivered per second of CPU time, start-up excluded,
//! and allocations per delivered segment in steady state. Of UDP cross traffic, every datagram that
//! is sent counts as a segment.

use base::{Duration, Rate, Seed, Time};
use host::{DatagramFlow, DatagramSource, Host, OnOff, Opening, Sink, Source, Traffic};
use sim::{NodeId, Topology, World};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts allocations, and leaves them to the system.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes unchanged to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MSS: u16 = 1448;

/// What is measured: how many packets a world deals with.
struct Case {
    world: World<Traffic>,
    /// The nodes whose packets count.
    nodes: Vec<NodeId>,
    packets: fn(&Host<Traffic>) -> u64,
}

/// A case by its name, and what sets it up.
type Named = (&'static str, fn() -> Case);

const CASES: [Named; 3] = [
    ("one", || bulk(1, 10, 1000, 250)),
    ("fifty", || bulk(50, 20, 500, 64)),
    ("udp", cross_traffic),
];

/// A link of 100 Mbit/s; `queue` is in packets.
fn direction(delay_ms: u64, queue: u32) -> link::Config {
    link::Config {
        rate: Rate::from_bps(100_000_000),
        delay: Duration::from_millis(delay_ms),
        queue: link::Queue::Packets(queue),
        ..link::Config::default()
    }
}

/// Transfers without end over one link; `window` is in segments.
fn bulk(flows: u32, delay_ms: u64, queue: u32, window: u32) -> Case {
    let mut network = Topology::new();
    let (sender, receiver) = (network.add_node("sender"), network.add_node("receiver"));
    let direction = direction(delay_ms, queue);
    network.add_link(sender, receiver, direction.clone(), direction);
    let mut world = network.build(Seed(1));
    for flow in 0..flows {
        let at = Time::ZERO + Duration::from_millis(10) * u64::from(flow);
        transfer(&mut world, (sender, receiver), flow, at, window);
    }
    world.wake(sender);
    Case { world, nodes: vec![receiver], packets: delivered_segments }
}

/// A bulk transfer from one node to another.
fn transfer(
    world: &mut World<Traffic>,
    (sender, receiver): (NodeId, NodeId),
    flow: u32,
    at: Time,
    window: u32,
) {
    let config = tcp::Config {
        mss: MSS,
        receive_window: tcp::ReceiveWindow::fixed(window * u32::from(MSS)),
        delayed_ack: None,
        timestamps: false,
        // What the peers of this comparison run.
        recovery: tcp::Recovery::Sack,
        congestion: tcp::congestion::Congestion::Aimd,
        hystart: false,
        reduction: tcp::Reduction::Immediate,
        frto: false,
        byte_counting: None,
        ..tcp::Config::default()
    };
    let port = 5000 + flow as u16;
    let accepted = config.clone();
    world
        .host_mut(receiver)
        .listen(port, move || (accepted.clone(), Traffic::Sink(Sink::new(flow))));
    world.host_mut(sender).open(Opening {
        at,
        remote: receiver.address(),
        remote_port: port,
        local: None,
        local_port: None,
        config,
        application: Traffic::Source(Source::new(flow, None)),
    });
}

fn delivered_segments(receiver: &Host<Traffic>) -> u64 {
    let sinks = receiver.connections().filter_map(|(_, _, application)| application.sink());
    sinks.map(|sink| sink.received).sum::<u64>() / u64::from(MSS)
}

/// The heaviest of `bbn8333`'s settings (§3.5): a transfer over three hops with bit errors, and over
/// the middle one eight on-off flows of 210-byte packets each way, each a quarter of its rate.
fn cross_traffic() -> Case {
    let mut network = Topology::new();
    let nodes: Vec<NodeId> = (0..4).map(|n| network.add_node(n.to_string())).collect();
    for ends in nodes.windows(2) {
        let errors = link::Uniform { bit: 1.56e-6, packet: 0.0 }.into();
        let direction = link::Config { errors, ..direction(100, 50) };
        network.add_link(ends[0], ends[1], direction.clone(), direction);
    }
    let mut world = network.build(Seed(1));
    transfer(&mut world, (nodes[0], nodes[3]), 0, Time::ZERO, 20);
    let half = Duration::from_millis(500);
    for (from, to) in [(nodes[1], nodes[2]), (nodes[2], nodes[1])] {
        for flow in 0..8u16 {
            let datagrams = DatagramFlow {
                stream: u32::from(flow),
                remote: to.address(),
                remote_port: 6000 + flow,
                local_port: 6000 + flow,
                payload: 182,
                rate: Rate::from_bps(25_000_000).expect("it is not 0"),
                start: Time::ZERO + Duration::from_millis(40 + 50 * u64::from(flow)),
                stop: Time::NEVER,
                bursts: Some(OnOff { on: half, off: half }),
            };
            let random = Seed(1).stream(&format!("{}.{flow}", from.index()));
            world.host_mut(to).take_datagrams(6000 + flow);
            world.host_mut(from).send_datagrams(DatagramSource::new(datagrams, random));
        }
    }
    nodes.iter().for_each(|&node| world.wake(node));
    Case { world, nodes, packets: sent_datagrams }
}

fn sent_datagrams(host: &Host<Traffic>) -> u64 {
    host.datagram_sources().iter().map(|source| source.sent).sum()
}

impl Case {
    fn packets(&self) -> u64 {
        self.nodes.iter().map(|&node| (self.packets)(self.world.host(node))).sum()
    }
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let budget: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(3.0);
    let only = std::env::args().nth(2);
    for (name, start) in CASES {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let mut case = start();
        // Slow start, and every buffer at its size.
        case.world.run_until(Time::ZERO + Duration::from_secs(20));
        let (packets, allocations) = (case.packets(), ALLOCATIONS.load(Ordering::Relaxed));
        let start = cpu_seconds();
        // At least the 120 s that the peers simulate, then on until the budget is used.
        let mut until = Duration::from_secs(140);
        loop {
            case.world.run_until(Time::ZERO + until);
            if cpu_seconds() - start >= budget {
                break;
            }
            until = until + Duration::from_secs(120);
        }
        let cpu = cpu_seconds() - start;
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
        let packets = case.packets() - packets;
        let row = serde_json::json!({
            "simulator": "lasthop",
            "case": name,
            "simulated_s": until.as_secs_f64() - 20.0,
            "delivered_segments": packets,
            "cpu_s": cpu,
            "segments_per_cpu_s": packets as f64 / cpu,
            "allocations_per_segment": allocations as f64 / packets as f64,
        });
        println!("{row}");
    }
}
