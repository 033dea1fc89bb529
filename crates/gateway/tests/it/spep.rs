//! Mode `spep`: between hosts under ESP, of which the kernels know nothing, the gateway marks packets, and the mobile host
//! tells by the marks what the hop has lost from what was lost before it (`obanaik2003` ch. 4).

use crate::common::{
    GATEWAY, INTERFACES, SERVER, USER, World, beside, content, wait_for_devices_to_go,
};
use crate::control_queues::give_up_bpf;
use crate::operation::Operated;
use crate::process::Running;
use scenario::IpVersion;
use socket2::{Domain, Socket, Type};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// A fixed host behind a link that loses packets, the gateway, and a mobile host behind a hop that damages others.
const PATH: &str = r#"title = "under ESP"
duration = "1 s"
[nodes]
user = { boxes = [{ box = "esp", spep = true }] }
gateway = {}
server = { boxes = [{ box = "esp", loss_causes = "station" }] }
[[links]]
between = ["user", "gateway"]
rate = "20 Mbit/s"
delay = "2 ms"
forward = { errors = { packet = 0.005 } }
[[links]]
between = ["gateway", "server"]
rate = "10 Mbit/s"
delay = "1 ms"
forward = { errors = { bursts = { gap = "32 KiB", length = 1, damage = "corruption" } } }
[[flows]]
from = "user"
to = "server"
ip = 6
stack = "linux"
"#;

/// The data paths of this program.
const DATA_PATHS: &[&str] =
    if cfg!(feature = "marker") { &["kernel", "user-space"] } else { &["user-space"] };

/// The port of the flow.
const PORT: u16 = 5001;
/// How long a transfer may take to begin, and to go on.
const PATIENCE: Duration = Duration::from_secs(20);
const BYTES: usize = 1_500_000;

/// Sends bytes from the fixed host to the mobile one.
fn transfer(world: &World, len: usize) {
    let server = SocketAddr::new(world.address(SERVER, IpVersion::V6), PORT);
    let listener = world.at(SERVER, || TcpListener::bind(server).map(Socket::from)).unwrap();
    let receiving = thread::spawn(move || {
        listener.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = TcpStream::from(listener.accept().unwrap().0);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    let send = || {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, None)?;
        // Room for ESP and the option.
        socket.set_tcp_mss(1300)?;
        socket.connect_timeout(&server.into(), PATIENCE)?;
        TcpStream::from(socket).write_all(&content(1, len))
    };
    world.at(USER, send).unwrap();
    assert!(receiving.join().unwrap() == content(1, len));
}

/// What the boxes of both hosts have counted in all.
#[derive(Debug)]
struct Counted(BTreeMap<String, u64>);

impl Counted {
    fn of(world: World) -> Counted {
        let run = world.stop();
        assert_eq!(run.run.box_drops, []);
        let mut counts = BTreeMap::new();
        for count in run.run.box_counts {
            *counts.entry(count.name.to_string()).or_default() += count.count;
        }
        Counted(counts)
    }

    /// Those with nothing to count are missing.
    fn count(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// What a gateway has counted, and the packets that it has passed, once the last ones of a transfer have come.
fn settled(daemon: &gateway::Daemon) -> (gateway::Observation, u64) {
    loop {
        let observed = daemon.observe().unwrap();
        thread::sleep(Duration::from_millis(50));
        let packets = daemon.counts().unwrap().passed;
        if daemon.observe().unwrap().counters == observed.counters {
            return (observed, packets);
        }
    }
}

#[test]
fn the_mobile_host_tells_corruption_from_congestion_by_the_marks_of_either_data_path() {
    beside(|| {
        for path in DATA_PATHS {
            let in_kernel = (*path == "kernel").then_some(1);
            let Some(world) = World::of(PATH, &format!("spep-{path}")) else { return };
            let keys = format!("mode = \"spep\"\ndata_path = \"{path}\"");
            let daemon = world.gateway(&keys);
            transfer(&world, BYTES);
            let (observed, packets) = settled(&daemon);
            daemon.stop();
            let counts = Counted::of(world);
            eprintln!("{path}: {observed:?} {counts:?}");
            let marked = observed.counters["marked"];
            assert!(marked > (BYTES / 1300) as u64, "{marked} were marked");
            assert_eq!((observed.gauges["flows"], observed.counters["new_flows"]), (1, 1));
            assert_eq!(observed.gauges.get("marking_in_kernel").copied(), in_kernel);
            // In the kernel, none passes the process; in user space, only those that go to the hop.
            assert_eq!(packets, if in_kernel.is_some() { 0 } else { marked });
            let count = |name: &str| counts.count(name);
            assert!(count("damaged_as_corruption") > 15, "{counts:?}");
            let mistaken =
                ["damaged_as_congestion", "damaged_as_forgotten", "damaged_as_before_station"];
            assert_eq!(mistaken.map(count), [0, 0, 0], "{counts:?}");
            assert_eq!(count("lost_to_corruption"), count("damaged_as_corruption"));
            assert!(count("lost_to_congestion") > 0, "{counts:?}");
        }
    });
}

#[test]
fn without_the_gateway_no_cause_is_known() {
    beside(|| {
        let Some(world) = World::of(PATH, "spep-none") else { return };
        transfer(&world, BYTES);
        let counts = Counted::of(world);
        assert_eq!(
            (counts.count("lost_to_corruption"), counts.count("lost_to_congestion")),
            (0, 0)
        );
        assert!(counts.count("damaged_as_before_station") > 15, "{counts:?}");
    });
}

#[test]
fn a_gateway_that_was_killed_leaves_nothing_that_marks_and_packets_go_on() {
    beside(|| {
        for path in DATA_PATHS {
            let Some(world) = World::of(PATH, &format!("spep-kill-{path}")) else { return };
            let keys = format!("mode = \"spep\"\ndata_path = \"{path}\"");
            let running = Running::with(&world, "spep-kill", &keys);
            running.told("READY=1");
            let next = running.killed(&world, || transfer(&world, BYTES));
            next.told("READY=1");
            let status = next.call(&world, &["status", "--json"]);
            let status: gateway::Status = serde_json::from_slice(&status.stdout).unwrap();
            assert_eq!((status.counters["marked"], status.mode.as_str()), (0, "spep"));
            drop(next);
            let counts = Counted::of(world);
            assert_eq!(counts.count("lost_to_corruption"), 0, "{path}: {counts:?}");
            assert!(counts.count("damaged_as_before_station") > 15, "{path}: {counts:?}");
        }
    });
}

#[cfg(feature = "marker")]
#[test]
fn an_interface_that_comes_again_is_marked_again() {
    beside(|| {
        let missing = live::rights::missing(&[live::rights::NET_ADMIN, live::rights::SYS_ADMIN]);
        if !missing.is_empty() {
            let test = thread::current().name().unwrap_or("a test").to_owned();
            let _ = writeln!(std::io::stderr(), "SKIPPED {test}: it lacks {}", missing.join(", "));
            return;
        }
        let namespace = live::Namespace::create("spep-again").unwrap();
        let ip = |words: &str| {
            let mut command = std::process::Command::new("ip");
            command.args(["-n", namespace.name()]).args(words.split(' '));
            assert!(command.status().unwrap().success(), "ip {words}");
        };
        let add = |interface: &str, address: &str| {
            ip(&format!("link add {interface} type veth peer name {interface}-peer"));
            ip(&format!("addr add {address}/64 dev {interface} nodad"));
            ip(&format!("link set {interface} up"));
            ip(&format!("link set {interface}-peer up"));
        };
        add("lan0", "fd01::1");
        add("sat0", "fd02::1");
        let keys = "mode = \"spep\"\ndata_path = \"kernel\"";
        let configured = crate::common::configuration_at("lan = \"lan0\"\nwan = \"sat0\"\n", keys);
        let start = || {
            live::netlink::set_sysctl("net.ipv6.conf.all.forwarding", "1").unwrap();
            gateway::Daemon::start(&configured)
        };
        let daemon = namespace.run(start).unwrap().unwrap_or_else(|error| panic!("{error}"));
        let is_marking = || daemon.observe().unwrap().gauges["marking_in_kernel"] == 1;
        assert!(is_marking());
        ip("link delete sat0");
        assert!(!is_marking());
        add("sat0", "fd02::1");
        let again = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(50));
            is_marking()
        });
        assert!(again, "it is not marked again");
        daemon.stop();
    });
}

#[test]
fn what_an_operator_sees_is_the_same_on_either_data_path() {
    beside(|| {
        let Some(world) = World::of(PATH, "spep-operated") else { return };
        for path in ["auto", "user-space"] {
            let keys =
                format!("mode = \"spep\"\ndata_path = \"{path}\"\nmetrics = \"127.0.0.1:0\"\n");
            let operated = Operated::start_with(&world, "spep", &keys, "");
            transfer(&world, 100_000);
            let status = gateway::status(&operated.socket()).unwrap();
            assert!(status.counters["marked"] > 70, "{path}: {status}");
            assert_eq!(status.gauges["flows"], 1);
            assert_eq!(operated.connections(), []);
            let findings = crate::doctor::found(&world, &keys.replace("metrics", "#"), true);
            assert_eq!(findings, [], "{path}");
            gateway::drain(&operated.socket(), false).unwrap();
            gateway::reload(&operated.socket()).unwrap();
            operated.write(&format!("{INTERFACES}mode = \"spep\"\nflows = 9\n"));
            let refused = gateway::reload(&operated.socket()).unwrap_err().to_string();
            assert!(
                refused.contains("only a restart can change") && refused.contains("`flows`"),
                "{refused}"
            );
            let refused = gateway::upgrade(&operated.socket()).unwrap_err().to_string();
            assert!(
                refused.contains("more than the gateway") || refused.contains("restart"),
                "{refused}"
            );
            operated.service.stop();
            world.at(GATEWAY, wait_for_devices_to_go);
        }
    });
}

#[test]
fn the_examination_sees_that_a_running_gateway_may_not_mark_in_the_kernel() {
    beside(|| {
        let Some(world) = World::of(PATH, "spep-rights") else { return };
        let keys = "mode = \"spep\"";
        // Where the kernel takes no such program, or takes it from all.
        let can = crate::doctor::found(&world, keys, false).is_empty();
        if !can || !world.at(GATEWAY, give_up_bpf) {
            return;
        }
        let running = |prepare: fn()| {
            let text = format!("{INTERFACES}{keys}\n");
            let running = Running::prepared(&world, "spep-rights", &text, prepare);
            running.told("READY=1");
            running
        };
        let found = || crate::doctor::found(&world, keys, true);
        let able = running(|| ());
        assert_eq!(found(), []);
        drop(able);
        let _unable = running(|| assert!(give_up_bpf()));
        let [finding] = &found()[..] else { panic!("{:?}", found()) };
        assert!(finding.message.starts_with("in user space: the process may not"), "{finding}");
        assert!(finding.mend.as_ref().unwrap().contains("=CAP_BPF CAP_PERFMON, "), "{finding}");
    });
}
