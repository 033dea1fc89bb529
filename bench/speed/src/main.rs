//! How fast the simulator is, on the two cases that the peers run too.
//!
//! Prints one line of JSON per case: segments delivered per second of CPU time, start-up excluded,
//! and allocations per delivered segment in steady state.

use base::{Duration, Rate, Seed, Time};
use host::{Opening, Sink, Source, Traffic};
use sim::{Network, NodeId, World};
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

struct Case {
    name: &'static str,
    flows: u32,
    delay: Duration,
    queue: u32,
    /// Segments.
    window: u32,
}

const CASES: [Case; 2] = [
    Case { name: "one", flows: 1, delay: Duration::from_millis(10), queue: 1000, window: 250 },
    Case { name: "fifty", flows: 50, delay: Duration::from_millis(20), queue: 500, window: 64 },
];

fn world(case: &Case) -> (World<Traffic>, NodeId) {
    let mut network = Network::new();
    let (sender, receiver) = (network.add_node(), network.add_node());
    let direction = link::Config {
        rate: Rate::from_bps(100_000_000),
        delay: case.delay,
        queue: link::Queue::Packets(case.queue),
        ..link::Config::default()
    };
    network.add_link(sender, receiver, direction.clone(), direction);
    let mut world = network.build(Seed(1));
    let config = tcp::Config {
        mss: MSS,
        receive_window: case.window * u32::from(MSS),
        delayed_ack: None,
        ..tcp::Config::default()
    };
    for flow in 0..case.flows {
        let port = 5000 + flow as u16;
        let accepted = config.clone();
        world
            .host_mut(receiver)
            .listen(port, move || (accepted.clone(), Traffic::Sink(Sink::new(flow))));
        world.host_mut(sender).open(Opening {
            at: Time::ZERO + Duration::from_millis(10) * u64::from(flow),
            remote: receiver.address(),
            remote_port: port,
            local_port: None,
            config: config.clone(),
            application: Traffic::Source(Source::new(flow, None)),
        });
    }
    world.wake(sender);
    (world, receiver)
}

fn delivered(world: &World<Traffic>, receiver: NodeId) -> u64 {
    let bytes: u64 = world
        .host(receiver)
        .connections()
        .filter_map(|(_, _, application)| application.sink())
        .map(|sink| sink.received)
        .sum();
    bytes / u64::from(MSS)
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let budget: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(3.0);
    let only = std::env::args().nth(2);
    for case in &CASES {
        if only.as_deref().is_some_and(|name| name != case.name) {
            continue;
        }
        let (mut world, receiver) = world(case);
        // Slow start, and every buffer at its size.
        world.run_until(Time::ZERO + Duration::from_secs(20));
        let (segments, allocations) =
            (delivered(&world, receiver), ALLOCATIONS.load(Ordering::Relaxed));
        let start = cpu_seconds();
        // At least the 120 s that the peers simulate, then on until the budget is used.
        let mut until = Duration::from_secs(140);
        loop {
            world.run_until(Time::ZERO + until);
            if cpu_seconds() - start >= budget {
                break;
            }
            until = until + Duration::from_secs(120);
        }
        let cpu = cpu_seconds() - start;
        let segments = delivered(&world, receiver) - segments;
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
        let row = serde_json::json!({
            "simulator": "lasthop",
            "case": case.name,
            "simulated_s": until.as_secs_f64() - 20.0,
            "delivered_segments": segments,
            "cpu_s": cpu,
            "segments_per_cpu_s": segments as f64 / cpu,
            "allocations_per_segment": allocations as f64 / segments as f64,
        });
        println!("{row}");
    }
}
