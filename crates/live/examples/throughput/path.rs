//! The path, and our stacks at its near end.

use base::{Duration, Seed};
use host::Host;
use live::stack::{self, Workers};
use live::{Clock, Namespace, Netlink, Stream, netlink};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::process::Command;
use tcp::{Config, ReceiveWindow, Rto};

use crate::flows::Bulk;

pub(crate) const FAR: &str = "10.77.0.2";
const NEAR: &str = "10.77.0.1";

/// Where the path leads: our stacks at the near end, or the kernel's.
pub(crate) struct Path {
    /// One with one worker, and, if there are several cores, one with a worker for each.
    pub(crate) stacks: Vec<Workers<Stream<Bulk>>>,
    pub(crate) near: Namespace,
    pub(crate) far: Namespace,
}

pub(crate) fn ip(address: &str) -> IpAddr {
    address.parse().unwrap()
}

/// The address of one of our stacks.
fn own(stack: usize) -> IpAddr {
    IpAddr::from([10, 0, 0, 1 + stack as u8])
}

/// The name of the device of one of our stacks.
fn device(stack: usize) -> String {
    format!("host{stack}")
}

/// A number from the environment.
fn parameter(name: &str) -> Option<u32> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

impl Path {
    pub(crate) fn build() -> Path {
        let (near, far) = (Namespace::create("near").unwrap(), Namespace::create("far").unwrap());
        let other = far.name().to_owned();
        let prepare = |own: &'static str, device: &'static str, route: Option<&'static str>| {
            let netlink = Netlink::open().unwrap();
            netlink.set_up(device).unwrap();
            netlink.add_address(device, ip(own), 24).unwrap();
            if let Some(route) = route {
                let status = Command::new("ip").args(["route", "add", route, "via", NEAR]).status();
                assert!(status.unwrap().success());
            }
            for key in ["tcp_rmem", "tcp_wmem"] {
                netlink::set_sysctl(&format!("net.ipv4.{key}"), "4096 4194304 33554432").unwrap();
            }
        };
        far.run(|| netlink::prepare_node().unwrap()).unwrap();
        let stacks = near.run(|| {
            netlink::prepare_node().unwrap();
            let status = Command::new("ip")
                .args(["link", "add", "veth0", "type", "veth", "peer", "veth1", "netns", &other])
                .status();
            assert!(status.unwrap().success(), "there is no veth");
            prepare(NEAR, "veth0", None);
            let cores = std::thread::available_parallelism().unwrap();
            let workers = parameter("WORKERS").and_then(|n| NonZeroUsize::new(n as usize));
            let mut workers = vec![NonZeroUsize::MIN, workers.unwrap_or(cores)];
            workers.dedup();
            workers.into_iter().enumerate().map(|(index, workers)| start(index, workers)).collect()
        });
        far.run(|| prepare(FAR, "veth1", Some("10.0.0.0/24"))).unwrap();
        Path { stacks: stacks.unwrap(), near, far }
    }

    /// Ends it. By stack: how its workers got their packets.
    pub(crate) fn stop(self) -> Vec<Value> {
        let stop = |(index, stack): (usize, Workers<Stream<Bulk>>)| {
            let device = device(index);
            let counts = self.near.run(|| Netlink::open().unwrap().counts(&device).unwrap());
            let ended = stack.stop(Duration::from_secs(1));
            let sum = |of: fn(&stack::Counts) -> u64| {
                ended.iter().map(|ended| of(&ended.counts)).sum::<u64>()
            };
            json!({
                "workers": ended.len(), "read": sum(|counts| counts.device.read),
                "handed_over": sum(|counts| counts.handed_over),
                "overflowed": sum(|counts| counts.overflowed),
                "failed": sum(|counts| counts.device.failed),
                "kernel_dropped": counts.unwrap().send_dropped,
            })
        };
        self.stacks.into_iter().enumerate().map(stop).collect()
    }
}

fn start(index: usize, workers: NonZeroUsize) -> Workers<Stream<Bulk>> {
    let own = own(index);
    let queues = stack::queues(&device(index), 1500, 5000, &[own], Some(workers));
    let host = |_| Host::new(own, Seed(1).stream("host"));
    Workers::start(queues.unwrap(), Clock::start(), host).unwrap()
}

/// The settings of our TCP for so many connections at a time. Their windows together are at most
/// 32 MiB: what is under way must fit into the queue of the TUN device.
pub(crate) fn config(flows: usize) -> Config {
    let window = ((32 << 20) / flows as u32).min(4 << 20);
    Config {
        receive_window: ReceiveWindow::fixed(parameter("WINDOW").unwrap_or(window)),
        nagle: false,
        timestamps: true,
        rto: Rto { minimum: Duration::from_millis(200), ..Rto::default() },
        time_wait: Duration::from_millis(100),
        ..Config::default()
    }
}

/// The congestion control of the kernel's ends: one that paces, as BBR does, would be measured for
/// its pacing.
pub(crate) fn congestion() -> String {
    std::env::var("CONGESTION").unwrap_or_else(|_| "cubic".to_owned())
}

/// Processor time of this process, and of the whole machine, seconds.
pub(crate) fn cpu() -> (f64, f64) {
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let own = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = own[own.rfind(')').unwrap() + 2..].split(' ').collect();
    let own = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    let all = std::fs::read_to_string("/proc/stat").unwrap();
    let all: Vec<f64> = all
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .skip(1)
        .map(|f| f.parse().unwrap())
        .collect();
    // user, nice, system, irq, softirq
    let busy = all[0] + all[1] + all[2] + all[5] + all[6];
    (own / ticks, busy / ticks)
}
