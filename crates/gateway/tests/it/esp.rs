//! `esp`: a gateway beside the fixed host and one beside the mobile host, ESP between them, and a base station that marks
//! it (`obanaik2003` ch. 4). The hosts have TCP of the kernel, and know nothing of it.

use crate::common::{
    FAR, Folder, GATEWAY, INTERFACES, Process, SERVER, USER, World, alone, beside,
    configuration_at, content, exchange,
};
use crate::process::Running;
use gateway::Daemon;
use live::inline::Counts;
use scenario::{Esp, IpVersion};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use testbed::Outcome;

/// The node of the base station.
const STATION: usize = 4;
const STATION_INTERFACES: &str = "lan = \"link1\"\nwan = \"link2\"\n";
const FAR_INTERFACES: &str = "lan = \"link3\"\nwan = \"link2\"\n";

/// A fixed host with its gateway, a link that loses packets, the base station, a hop that damages others, and a mobile
/// host with its gateway.
const PATH: &str = r#"title = "under ESP between gateways"
duration = "1 s"
[nodes]
user = {}
gateway = {}
server = {}
far = {}
station = {}
[[links]]
between = ["user", "gateway"]
rate = "100 Mbit/s"
delay = "0.1 ms"
[[links]]
between = ["gateway", "station"]
rate = "20 Mbit/s"
delay = "10 ms"
forward = { errors = { packet = 0.001 } }
[[links]]
between = ["station", "far"]
rate = "10 Mbit/s"
delay = "1 ms"
forward = { errors = { bursts = { gap = "32 KiB", length = 1, damage = "corruption" } } }
[[links]]
between = ["far", "server"]
rate = "100 Mbit/s"
delay = "0.1 ms"
[[flows]]
from = "user"
to = "server"
ip = 6
stack = "linux"
"#;

/// The port of the flow.
const PORT: u16 = 5001;
const PATIENCE: Duration = Duration::from_secs(20);
const BYTES: usize = 1_500_000;

/// A folder with a key.
struct Key(Folder);

impl Key {
    fn new(label: &str) -> Key {
        let key = Key(Folder::new(label));
        gateway::make_network_key(&key.path()).unwrap();
        key
    }

    fn path(&self) -> PathBuf {
        self.0.0.join("esp.key")
    }
}

fn keys(host: &str, key: &Key) -> String {
    format!("mode = \"split\"\nesp = \"{host}\"\nesp_key = \"{}\"\n", key.path().display())
}

fn fixed(world: &World, key: &Key) -> Daemon {
    world.gateway_at(GATEWAY, INTERFACES, &keys("fixed", key))
}

fn mobile(world: &World, key: &Key) -> Daemon {
    world.gateway_at(FAR, FAR_INTERFACES, &keys("mobile", key))
}

/// The base station.
fn station(world: &World) -> Daemon {
    let keys = "mode = \"spep\"\ndata_path = \"user-space\"";
    world.gateway_at(STATION, STATION_INTERFACES, keys)
}

fn count(daemon: &Daemon, name: &str) -> u64 {
    daemon.boxes().unwrap().get(name).copied().unwrap_or(0)
}

/// A listener at the mobile host, and its address.
fn listen(world: &World) -> (TcpListener, SocketAddr) {
    let server = SocketAddr::new(world.address(SERVER, IpVersion::V6), PORT);
    (world.at(SERVER, || TcpListener::bind(server)).unwrap(), server)
}

/// The fixed host sends bytes to the mobile one, all of which arrive. Returns how long it takes.
#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn download(world: &World, len: usize) -> Duration {
    let (listener, server) = listen(world);
    let began = Instant::now();
    let receiving = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    let send = || {
        let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&content(1, len))
    };
    world.at(USER, send).unwrap();
    assert!(receiving.join().unwrap() == content(1, len));
    began.elapsed()
}

/// Waits until nothing is in flight any more.
fn settle(daemons: &[&Daemon]) {
    let seen = || daemons.iter().map(|daemon| daemon.counts().unwrap()).collect::<Vec<_>>();
    let mut before = seen();
    loop {
        thread::sleep(Duration::from_millis(300));
        let now = seen();
        let is_still = |(before, now): (&Counts, &Counts)| before.devices == now.devices;
        if before.iter().zip(&now).all(is_still) {
            return;
        }
        before = now;
    }
}

/// What a link has seen in one direction.
#[derive(Debug)]
struct Link {
    packets: u64,
    corrupted: u64,
    lost: u64,
}

impl Link {
    fn of(outcome: &Outcome, name: &str) -> Link {
        let (_, link) = outcome.run.links.iter().find(|(of, _)| of == name).unwrap();
        Link { packets: link.packets, corrupted: link.corrupted, lost: link.lost }
    }
}

#[test]
fn what_the_hop_damages_is_told_from_what_is_lost_before_it_and_nothing_passes_in_clear() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp") else { return };
        let key = Key::new("esp");
        let (fixed, station, mobile) = (fixed(&world, &key), station(&world), mobile(&world, &key));
        download(&world, BYTES);
        settle(&[&fixed, &station, &mobile]);
        let of_fixed = |name: &str| count(&fixed, name);
        let of_mobile = |name: &str| count(&mobile, name);
        let found = ["lost_to_corruption", "lost_to_congestion", "lost_and_forgotten"];
        let [corruption, congestion, forgotten] = found.map(of_mobile);
        let before_station = of_mobile("lost_before_station");
        let reports =
            (of_mobile("reports_of_corruption_sent"), of_fixed("reports_of_corruption_received"));
        let splits = [of_fixed("split connections"), of_mobile("split connections")];
        let protected = [of_fixed("protected"), of_mobile("protected")];
        let opened = [of_mobile("opened"), of_fixed("opened")];
        drop((fixed, station, mobile));
        let outcome = world.stop();
        let (first, hop) =
            (Link::of(&outcome, "gateway->station"), Link::of(&outcome, "station->far"));
        // The emulator knows. What is missing at the very end is not found.
        assert!(hop.corrupted > 25 && first.lost > 0, "{hop:?} {first:?}");
        let missed = (hop.corrupted - corruption) + (first.lost - congestion);
        assert!(missed <= 2, "{corruption} of {}, {congestion} of {}", hop.corrupted, first.lost);
        assert_eq!((forgotten, before_station), (0, 0));
        assert!(reports.0 > corruption && reports.1 > corruption, "{reports:?}");
        assert_eq!(splits, [1, 1]);
        // All that has crossed the links was under ESP.
        let back =
            ["station->gateway", "far->station"].map(|link| Link::of(&outcome, link).packets);
        assert_eq!([first.packets, back[1]], protected);
        assert_eq!(opened, [hop.packets - hop.corrupted, back[0]]);
    });
}

#[test]
fn the_sender_is_faster_if_the_base_station_marks() {
    alone(|| {
        let Some(world) = World::of(PATH, "esp-gain") else { return };
        let key = Key::new("esp-gain");
        let (fixed, mobile) = (fixed(&world, &key), mobile(&world, &key));
        let without = download(&world, BYTES);
        assert_eq!(count(&mobile, "lost_to_corruption"), 0);
        assert_eq!(count(&fixed, "reports_of_corruption_received"), 0);
        let station = station(&world);
        let with = download(&world, BYTES);
        assert!(count(&fixed, "reports_of_corruption_received") > 0);
        eprintln!("{without:?} without marks, {with:?} with");
        assert!(with * 3 < without * 2, "{without:?} without marks, {with:?} with");
        drop((fixed, station, mobile));
    });
}

#[test]
fn connections_go_both_ways_and_end_as_their_ends_do_and_those_over_ipv4_pass_beside() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp-both") else { return };
        let key = Key::new("esp-both");
        let (fixed, station, mobile) = (fixed(&world, &key), station(&world), mobile(&world, &key));
        exchange(&world, IpVersion::V6, [300_000, 200_000]);
        // One that the mobile host opens.
        let user = SocketAddr::new(world.address(USER, IpVersion::V6), PORT);
        let listener = world.at(USER, || TcpListener::bind(user)).unwrap();
        let accepting = thread::spawn(move || {
            let mut got = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut got).unwrap();
            got
        });
        let send = || TcpStream::connect_timeout(&user, PATIENCE)?.write_all(&content(3, 70_000));
        world.at(SERVER, send).unwrap();
        assert!(accepting.join().unwrap() == content(3, 70_000));
        assert_eq!([&fixed, &mobile].map(|end| count(end, "split connections")), [2, 2]);
        let before = [&fixed, &mobile].map(|end| count(end, "protected"));
        settle(&[&fixed, &mobile]);
        exchange(&world, IpVersion::V4, [50_000, 50_000]);
        assert_eq!([&fixed, &mobile].map(|end| count(end, "split connections")), [2, 2]);
        let after = [&fixed, &mobile].map(|end| count(end, "protected"));
        assert!(after.iter().zip(before).all(|(after, before)| after - before < 10));
        drop((fixed, station, mobile));
    });
}

#[test]
fn connections_that_are_not_split_pass_under_esp_too_in_packets_that_fit() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp-unsplit") else { return };
        let key = Key::new("esp-unsplit");
        let short = format!("{}esp_mtu = 1300\n", keys("fixed", &key));
        let fixed = world.gateway_at(GATEWAY, INTERFACES, &short);
        let (station, mobile) = (station(&world), mobile(&world, &key));
        fixed.drain(true).unwrap();
        mobile.drain(true).unwrap();
        download(&world, 300_000);
        assert_eq!([&fixed, &mobile].map(|end| count(end, "split connections")), [0, 0]);
        let [protected, opened] = [count(&fixed, "protected"), count(&mobile, "opened")];
        let least = 300_000 / u64::from(Esp::segment_size(1300));
        assert!(opened > least && protected >= opened, "{protected} protected, {opened} opened");
        drop((fixed, station, mobile));
    });
}

/// Whether the fixed host gets a connection with the mobile one within two seconds.
fn connects(world: &World) -> bool {
    let (listener, server) = listen(world);
    listener.set_nonblocking(true).unwrap();
    let connect = || TcpStream::connect_timeout(&server, Duration::from_secs(2)).is_ok();
    let is_connected = world.at(USER, connect);
    // The last segment of the handshake may still be on its way.
    thread::sleep(Duration::from_millis(200));
    assert_eq!(is_connected, listener.accept().is_ok());
    is_connected
}

#[test]
fn with_another_key_at_one_end_no_data_passes_and_log_and_counters_name_it() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp-keys") else { return };
        let (key, other) = (Key::new("esp-key"), Key::new("esp-other"));
        let fixed = fixed(&world, &key);
        let folder = Folder::new("esp-mobile");
        let (config, log) = (folder.0.join("lasthopd.toml"), folder.0.join("log"));
        fs::write(&config, format!("{FAR_INTERFACES}{}", keys("mobile", &other))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthopd"));
        command.args(["run", "--config"]).arg(&config).arg("--socket").arg(folder.0.join("socket"));
        command.stderr(fs::File::create(&log).unwrap());
        let mobile = Process(world.at(FAR, || command.spawn()).unwrap());
        let status = || gateway::status(&folder.0.join("socket"));
        let started = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(50));
            status().is_ok()
        });
        assert!(started, "{}", fs::read_to_string(&log).unwrap());
        assert!(!connects(&world));
        assert!(count(&fixed, "protected") > 0);
        let counters = status().unwrap().counters;
        assert!(counters["refused: ESP with another key or changed"] > 0, "{counters:?}");
        let log = fs::read_to_string(&log).unwrap();
        assert!(log.contains("the other gateway has another key"), "{log}");
        drop((fixed, mobile));
    });
}

#[test]
fn with_a_gateway_at_one_end_alone_no_data_passes() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp-alone") else { return };
        let key = Key::new("esp-alone");
        assert!(connects(&world), "it is a path without any");
        let only_fixed = fixed(&world, &key);
        assert!(!connects(&world));
        assert!(count(&only_fixed, "protected") > 0);
        only_fixed.stop();
        let only_mobile = mobile(&world, &key);
        assert!(!connects(&world));
        assert!(count(&only_mobile, "refused: TCP without ESP") > 0);
        only_mobile.stop();
        assert!(connects(&world));
    });
}

#[test]
fn an_upgrade_goes_on_with_a_connection_in_new_associations() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp-upgrade") else { return };
        let key = Key::new("esp-upgrade");
        let fixed = Running::with(&world, "esp-upgrade", &keys("fixed", &key));
        fixed.told("READY=1");
        let (station, mobile) = (station(&world), mobile(&world, &key));
        let upgraded = thread::scope(|scope| {
            let upgrade = scope.spawn(|| {
                thread::sleep(Duration::from_millis(500));
                fixed.call(&world, &["upgrade"])
            });
            download(&world, BYTES);
            upgrade.join().unwrap()
        });
        assert!(upgraded.status.success(), "{}", String::from_utf8_lossy(&upgraded.stderr));
        let status = gateway::status(&fixed.path("socket")).unwrap();
        assert_eq!(status.counters["connections taken over"], 1);
        assert!(status.counters["protected"] > 0 && count(&mobile, "opened") > 1000);
        drop((fixed, station, mobile));
    });
}

#[test]
fn a_rule_of_the_firewall_keeps_tcp_from_leaving_in_clear_while_the_gateway_is_gone() {
    beside(|| {
        if Command::new("nft").arg("--version").output().is_err() {
            eprintln!("SKIPPED: there is no nft");
            return;
        }
        let Some(world) = World::of(PATH, "esp-clear") else { return };
        let server = world.address(SERVER, IpVersion::V6);
        // As the book has it.
        let rules = format!(
            "nft add table inet lasthop && \
             nft add chain inet lasthop clear '{{ type filter hook forward priority filter; }}' && \
             nft add rule inet lasthop clear oifname link1 ip6 daddr {server} meta l4proto tcp drop"
        );
        let shell = || Command::new("sh").args(["-c", &rules]).status().unwrap().success();
        assert!(world.at(GATEWAY, shell));
        assert!(!connects(&world));
        let key = Key::new("esp-clear");
        let (fixed, mobile) = (fixed(&world, &key), mobile(&world, &key));
        download(&world, 100_000);
        drop((fixed, mobile));
    });
}

#[test]
fn hosts_outside_of_the_networks_are_reached_without_esp() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp-networks") else { return };
        let key = Key::new("esp-networks");
        let networks = format!("{}esp_networks = [\"2001:db8::/32\"]\n", keys("fixed", &key));
        let fixed = world.gateway_at(GATEWAY, INTERFACES, &networks);
        exchange(&world, IpVersion::V6, [50_000, 50_000]);
        assert_eq!((count(&fixed, "protected"), count(&fixed, "split connections")), (0, 1));
        fixed.stop();
        let server = world.address(SERVER, IpVersion::V6);
        let networks = format!("{}esp_networks = [\"{server}\"]\n", keys("fixed", &key));
        let fixed = world.gateway_at(GATEWAY, INTERFACES, &networks);
        assert!(!connects(&world));
        drop(fixed);
    });
}

#[test]
fn hosts_of_two_networks_of_users_reach_each_other_without_esp() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp-users") else { return };
        let key = Key::new("esp-users");
        let interfaces = "lan = [\"link0\", \"link1\"]\nwan = \"lo\"\n";
        let fixed = world.gateway_at(GATEWAY, interfaces, &keys("fixed", &key));
        for is_draining in [false, true] {
            fixed.drain(is_draining).unwrap();
            exchange(&world, IpVersion::V6, [50_000, 50_000]);
        }
        assert_eq!((count(&fixed, "protected"), count(&fixed, "split connections")), (0, 1));
        assert!(fixed.counts().unwrap().passed > 50);
        drop(fixed);
    });
}

#[test]
fn a_gateway_with_the_key_on_the_path_leaves_packets_of_others_as_they_are() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp-path") else { return };
        let key = Key::new("esp-path");
        let (fixed, mobile) = (fixed(&world, &key), mobile(&world, &key));
        let interfaces = "lan = \"lo\"\nwan = \"link1\"\n";
        let between = world.gateway_at(STATION, interfaces, &keys("mobile", &key));
        download(&world, 200_000);
        assert_eq!(count(&between, "opened"), 0);
        assert!(between.counts().unwrap().passed > 100);
        drop((fixed, between, mobile));
    });
}

#[test]
fn a_gateway_without_the_key_does_not_start() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp-no-key") else { return };
        let keys = "mode = \"split\"\nesp = \"fixed\"\nesp_key = \"/nonexistent/esp.key\"\n";
        let configured = configuration_at(INTERFACES, keys);
        let error = world.at(GATEWAY, || Daemon::start(&configured).err()).unwrap().to_string();
        let mend = "lasthopd network-key --file /nonexistent/esp.key";
        assert!(error.contains("key of ESP") && error.contains(mend), "{error}");
    });
}
