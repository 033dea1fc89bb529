//! What a packet costs a base station with SPEP, and what a flow: nanoseconds of CPU time, allocations, bytes.
//!
//! Prints one line of JSON for each number of flows. The packets of all flows take turns, so that with many flows
//! each finds its own no longer in the cache. Of a new flow, the memory is counted as well.

use base::{Seed, Time};
use core::net::{IpAddr, Ipv6Addr};
use host::{Middlebox, Outbox, Port};
use middlebox::{BoxSettings, Contents, Neighbour, Site, SpepStation};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use wire::{Body, Esp, Ip, Packet, Segment, Spep};

/// Counts allocations and bytes, and leaves them to the system.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call goes unchanged to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HOP: &str = "mobile";
const FROM_HOP: Port = Port(1);
const PACKETS: u32 = 4_000_000;

fn station() -> Box<dyn Middlebox + Send> {
    let settings = SpepStation { hop: HOP.to_owned(), ..SpepStation::default() };
    let own = IpAddr::V6(Ipv6Addr::LOCALHOST);
    BoxSettings::from(settings).build(&Site {
        own: [own, own],
        neighbours: &[Neighbour { name: HOP, address: own, port: FROM_HOP }],
        attached: None,
        flows: &BTreeMap::new(),
        tunnels: &[],
        readable: &[],
        tcp: &tcp::Config::default(),
        has_streams: true,
        contents: &Contents::default(),
        random: &|| Seed(1).stream("station"),
    })
}

/// A packet of a flow, as it leaves its source.
fn packet(flow: u32, sequence: u32) -> Packet {
    let [source, destination] =
        [1, 2].map(|n| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n)));
    let mut ip = Ip::new(source, destination);
    ip.flow_label = flow;
    let body = Body::Tcp(Segment::default());
    let mut packet = Packet { ip, body, ..Packet::BLANK };
    assert!(Spep::put(&mut packet) && packet.protect(Esp { spi: flow, sequence, iv: [0; 8] }));
    packet
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    for flows in [1, 1000, 65_536] {
        let template: Vec<Packet> = (0..flows).map(|flow| packet(flow, 1)).collect();
        let empty = BYTES.load(Ordering::Relaxed);
        let (mut station, mut outbox) = (station(), Outbox::default());
        let table = BYTES.load(Ordering::Relaxed) - empty;
        let mut pass = |packet: &mut Packet| {
            station.queued(Time::ZERO, FROM_HOP.opposite(), packet, &mut outbox.context());
        };
        for packet in &template {
            pass(&mut packet.clone());
        }
        let bytes = (BYTES.load(Ordering::Relaxed) - empty - table) as f64 / f64::from(flows);
        let allocations = ALLOCATIONS.load(Ordering::Relaxed);
        let (mut packets, begin) = (template, cpu_seconds());
        let mut passed = 0;
        while passed < PACKETS {
            for packet in &mut packets {
                pass(packet);
            }
            passed += flows;
        }
        let nanoseconds = (cpu_seconds() - begin) * 1e9 / f64::from(passed);
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
        let line = serde_json::json!({
            "flows": flows,
            "nanoseconds": nanoseconds,
            "allocations": allocations as f64 / f64::from(passed),
            "bytes_for_a_new_flow": bytes,
            "bytes_of_the_empty_table": table,
        });
        println!("{line}");
    }
}
