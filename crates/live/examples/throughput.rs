//! How fast our stack is without loss, beside the kernel's on the same path.
//!
//! The path is a veth pair between two namespaces. The kernel's sockets are at its far end; at the
//! near end are the kernel's as well, or our stack on a TUN device, for which the near kernel
//! forwards. Prints and writes JSON.

#![allow(clippy::unwrap_used, reason = "a failure ends the program with its cause")]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    bench::main();
}

#[cfg(target_os = "linux")]
#[path = "../tests/common/kernel.rs"]
mod kernel;

#[cfg(target_os = "linux")]
mod bench {
    use super::kernel;
    use base::{Duration, Seed, Time};
    use host::{Host, Opening};
    use live::stack::{self, Running, Stack};
    use live::{Bytes, Clock, Namespace, Netlink, Program, Socket, Stream, netlink};
    use serde_json::{Value, json};
    use std::io::{Read, Write};
    use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
    use std::process::Command;
    use std::sync::mpsc::{self, Sender};
    use tcp::{Config, Events, ReceiveWindow, Rto};

    const FAR: &str = "10.77.0.2";
    const NEAR: &str = "10.77.0.1";
    const OURS: &str = "10.0.0.1";
    const CHUNK: usize = 256 << 10;

    struct Bulk {
        send: u64,
        received: u64,
        block: &'static [u8],
        done: Sender<u64>,
    }

    impl Program for Bulk {
        fn handle(&mut self, _: Time, socket: &mut Socket<'_>, events: Events) {
            while let len @ 1.. = socket.chunk().len() {
                socket.consume(len);
                self.received += len as u64;
            }
            while self.send > 0 {
                let most = self.send.min(self.block.len() as u64) as usize;
                let len = socket.write_bytes(&mut Bytes::from_static(&self.block[..most]));
                self.send -= len as u64;
                if len < most {
                    return;
                }
            }
            if events.intersects(Events::CONNECTED | Events::WRITABLE) && self.block.len() > 1 {
                socket.close();
            }
            if events.contains(Events::PEER_CLOSED) {
                socket.close();
                let _ = self.done.send(self.received);
            }
        }
    }

    struct Path {
        stack: Running<Stream<Bulk>>,
        near: Namespace,
        far: Namespace,
    }

    fn ip(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    fn path() -> Path {
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
        let stack = near
            .run(|| {
                netlink::prepare_node().unwrap();
                let status = Command::new("ip")
                    .args([
                        "link", "add", "veth0", "type", "veth", "peer", "veth1", "netns", &other,
                    ])
                    .status();
                assert!(status.unwrap().success(), "there is no veth");
                prepare(NEAR, "veth0", None);
                let tun = stack::device("host", 1500, 5000, &[ip(OURS)]).unwrap();
                let host = Host::new(ip(OURS), Seed(1).stream("host"));
                Stack::new(host, tun, 1500, Clock::start()).start().unwrap()
            })
            .unwrap();
        far.run(|| prepare(FAR, "veth1", Some(OURS))).unwrap();
        Path { stack, near, far }
    }

    fn config() -> Config {
        let parameter = |name: &str, default: u32| {
            std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
        };
        Config {
            receive_window: ReceiveWindow::fixed(parameter("WINDOW", 4 << 20)),
            nagle: false,
            timestamps: true,
            rto: Rto { minimum: Duration::from_millis(200), ..Rto::default() },
            time_wait: Duration::from_millis(100),
            ..Config::default()
        }
    }

    /// Processor time of this process, and of the whole machine, seconds.
    fn cpu() -> (f64, f64) {
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

    /// The congestion control of the kernel's ends: one that paces, as BBR does, would be measured
    /// for its pacing.
    fn congestion() -> String {
        std::env::var("CONGESTION").unwrap_or_else(|_| "cubic".to_owned())
    }

    fn send(mut stream: TcpStream, size: u64) {
        let block = vec![7; CHUNK];
        let mut left = size;
        while left > 0 {
            left -= stream.write(&block[..block.len().min(left as usize)]).unwrap() as u64;
        }
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read(&mut [0]);
    }

    fn receive(mut stream: TcpStream) -> u64 {
        let mut buffer = vec![0; CHUNK];
        let mut received = 0;
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return received,
                len => received += len as u64,
            }
        }
    }

    /// One transfer: whether it is our stack at the near end, and whether that end sends.
    fn run(path: &Path, port: u16, ours: bool, near_sends: bool, size: u64) -> Value {
        let remote = SocketAddr::new(ip(FAR), port);
        let listener = path.far.run(|| kernel::listen(remote, &congestion()).unwrap()).unwrap();
        let (start, before) = (Clock::start(), cpu());
        let far = std::thread::spawn(move || {
            let stream = kernel::accept(&listener, &congestion()).unwrap();
            if near_sends {
                receive(stream)
            } else {
                send(stream, size);
                size
            }
        });
        let received = if ours {
            let (finished, done) = mpsc::channel();
            path.stack
                .call(move |now, host| {
                    let block: &'static [u8] = if near_sends { &[7; CHUNK] } else { &[7] };
                    let program = Bulk {
                        send: if near_sends { size } else { 0 },
                        received: 0,
                        block,
                        done: finished,
                    };
                    host.connect(
                        now,
                        Opening {
                            at: now,
                            remote: ip(FAR),
                            remote_port: port,
                            local: None,
                            local_port: None,
                            config: config(),
                            application: Stream::new(
                                program,
                                config().receive_window.maximum.into(),
                            ),
                        },
                    )
                    .unwrap();
                })
                .unwrap();
            let received = done.recv().unwrap();
            let far = far.join().unwrap();
            if near_sends { far } else { received }
        } else {
            let near = path.near.run(|| {
                let stream = kernel::connect(remote, &congestion()).unwrap();
                if near_sends {
                    send(stream, size);
                    size
                } else {
                    receive(stream)
                }
            });
            let near = near.unwrap();
            let far = far.join().unwrap();
            if near_sends { far } else { near }
        };
        let seconds = start.now().as_nanos() as f64 / 1e9;
        let after = cpu();
        assert_eq!(received, size);
        let gigabytes = size as f64 / 1e9;
        json!({
            "stack": if ours { "ours" } else { "kernel" },
            "way": if near_sends { "sends" } else { "receives" },
            "gbps": gigabytes * 8.0 / seconds,
            "own_cpu_s_per_gb": (after.0 - before.0) / gigabytes,
            "machine_cpu_s_per_gb": (after.1 - before.1) / gigabytes,
        })
    }

    fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
        values.sort_by(f64::total_cmp);
        (values[0], values[values.len() / 2], values[values.len() - 1])
    }

    pub(super) fn main() {
        let mut arguments = std::env::args().skip(1);
        let file = arguments.next().filter(|file| file != "-");
        let rounds: u64 = arguments.next().map_or(5, |n| n.parse().unwrap());
        let size: u64 = arguments.next().map_or(2_000_000_000, |n| n.parse().unwrap());
        let only = arguments.next();
        let path = path();
        let mut rows = Vec::new();
        let mut port = 6000;
        for _ in 0..rounds {
            for near_sends in [true, false] {
                for ours in [true, false] {
                    let name = format!(
                        "{}-{}",
                        if ours { "ours" } else { "kernel" },
                        if near_sends { "sends" } else { "receives" }
                    );
                    if only.as_deref().is_some_and(|only| only != name) {
                        continue;
                    }
                    port += 1;
                    let row = run(&path, port, ours, near_sends, size);
                    println!("{row}");
                    rows.push(row);
                }
            }
        }
        let counts = path.stack.stop(Duration::from_secs(1)).counts;
        println!("{counts:?}");
        let mut summary = Vec::new();
        for way in ["sends", "receives"] {
            let of = |stack: &str, field: &str| {
                let rows = rows.iter().filter(|row| row["stack"] == stack && row["way"] == way);
                median(rows.map(|row| row[field].as_f64().unwrap()).collect())
            };
            if only.is_some() {
                continue;
            }
            let stacks = ["ours", "kernel"].map(|stack| {
                let (low, gbps, high) = of(stack, "gbps");
                json!({
                    "stack": stack, "gbps": gbps, "lowest": low, "highest": high,
                    "own_cpu_s_per_gb": of(stack, "own_cpu_s_per_gb").1,
                    "machine_cpu_s_per_gb": of(stack, "machine_cpu_s_per_gb").1,
                })
            });
            let ratio = of("ours", "gbps").1 / of("kernel", "gbps").1;
            println!("{way}: ratio {ratio:.2}, {} | {}", stacks[0], stacks[1]);
            summary.push(json!({ "way": way, "ratio": ratio, "stacks": stacks }));
        }
        if let Some(file) = file {
            let result = json!({
                "bytes": size, "rounds": rounds, "kernel_congestion_control": congestion(),
                "summary": summary, "rows": rows,
            });
            std::fs::write(file, serde_json::to_string_pretty(&result).unwrap() + "\n").unwrap();
        }
    }
}
