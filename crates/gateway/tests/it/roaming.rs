//! Modes `station` and `mobile`: a mobile host moves between base stations, and keeps its connections.

use crate::common::{
    Folder, Process, alone, beside_few, configuration_at, content, wait_for_devices_to_go,
};
use base::Time;
use gateway::Daemon;
use live::namespace::Namespace;
use live::netlink::Family;
use live::{Clock, Netlink};
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The address of the mobile host, and that of the server.
const MOBILE: &str = "198.18.9.9";
const SERVER: &str = "198.18.0.1";

/// The addresses of a network of one version of IP.
struct Addresses {
    family: Family,
    mobile: &'static str,
    server: &'static str,
}

const V4: Addresses = Addresses { family: Family::V4, mobile: MOBILE, server: SERVER };
const V6: Addresses =
    Addresses { family: Family::V6, mobile: "2001:db8:9::9", server: "2001:db8::1" };

impl Addresses {
    fn of(family: Family) -> &'static Addresses {
        match family {
            Family::V4 => &V4,
            Family::V6 => &V6,
        }
    }

    /// What all commands of this version begin with.
    fn ip(&self, words: &str) {
        ip(&format!("{} {words}", if self.family == Family::V4 { "-4" } else { "-6" }));
    }

    /// Adds an address that is of use at once.
    fn add(&self, address: &str, device: &str) {
        let nodad = if self.family == Family::V4 { "" } else { " nodad" };
        self.ip(&format!("address add {address} dev {device}{nodad}"));
    }

    /// Adds a node's address in a wired network, and with IPv6, the one of the link that its solicitations have.
    fn add_wired(&self, network: usize, node: u8, device: &str) {
        self.add(&format!("{}/{}", self.wired(network, node), self.wired_prefix()), device);
        if self.family == Family::V6 {
            self.add(&format!("fe80::{node}/64"), device);
        }
    }

    /// The length of the prefix of one host.
    fn host(&self) -> u8 {
        if self.family == Family::V4 { 32 } else { 128 }
    }

    /// A number's network between a base station and the router, or with 0, between that and the server: the address of a
    /// node in it.
    fn wired(&self, network: usize, node: u8) -> String {
        match self.family {
            Family::V4 => format!("198.18.{network}.{node}"),
            Family::V6 if network == 0 => format!("2001:db8::{node}"),
            Family::V6 => format!("2001:db8:{network}::{node}"),
        }
    }

    fn wired_prefix(&self) -> u8 {
        if self.family == Family::V4 { 24 } else { 64 }
    }

    /// The address of a base station on the radio channel: of IPv6, it has one of the link alone.
    fn on_air(&self, station: usize) -> String {
        match self.family {
            Family::V4 => format!("198.18.9.{}", 1 + station),
            Family::V6 => format!("fe80::{}", 1 + station),
        }
    }
}

/// A server, a router, base stations and a mobile host on one radio channel.
struct Network {
    families: &'static [Family],
    server: Namespace,
    router: Namespace,
    stations: Vec<Namespace>,
    mobile: Namespace,
    /// The channel.
    radio: Namespace,
}

fn ip(words: &str) {
    let done = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(done.status.success(), "ip {words}: {}", String::from_utf8_lossy(&done.stderr));
}

fn set(name: &str, value: &str) {
    live::netlink::set_sysctl(name, value).unwrap();
}

/// Joins two namespaces, whose devices get these names.
fn join(left: (&Namespace, &str), right: (&Namespace, &str)) {
    let ((left, left_device), (right, right_device)) = (left, right);
    let at = right.name().to_owned();
    let words = format!("link add dev {left_device} type veth peer name {right_device} netns {at}");
    left.run(|| ip(&words)).unwrap();
    for (node, device) in [(left, left_device), (right, right_device)] {
        node.run(|| ip(&format!("link set dev {device} up"))).unwrap();
    }
}

impl Network {
    /// One of IPv4.
    fn new(stations: usize) -> Option<Network> {
        Network::of(stations, &[Family::V4])
    }

    /// One with these versions of IP.
    fn of(stations: usize, families: &'static [Family]) -> Option<Network> {
        // Two tests may have one at the same time.
        static NETWORKS: AtomicU64 = AtomicU64::new(0);
        let number = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let create = |what: &str| Namespace::create(&format!("{what}-{number}")).ok();
        let Some(server) = create("server") else {
            eprintln!("SKIPPED: real packets are not permitted");
            return None;
        };
        let [router, mobile, radio] =
            ["router", "mobile", "radio"].map(|what| create(what).unwrap());
        let stations: Vec<_> =
            (0..stations).map(|n| create(&format!("station{n}")).unwrap()).collect();
        for node in stations.iter().chain([&server, &router, &mobile, &radio]) {
            node.run(|| {
                // No link-local addresses but those that are given: they would be of use only after a second.
                set("net.ipv6.conf.default.addr_gen_mode", "1");
                Netlink::open().unwrap().set_up("lo").unwrap();
            })
            .unwrap();
        }
        for node in stations.iter().chain([&router]) {
            node.run(|| {
                set("net.ipv4.ip_forward", "1");
                set("net.ipv6.conf.all.forwarding", "1");
            })
            .unwrap();
        }
        radio
            .run(|| {
                ip("link add dev channel type bridge");
                ip("link set dev channel up");
            })
            .unwrap();
        join((&server, "eth"), (&router, "server"));
        for (n, node) in stations.iter().enumerate() {
            join((node, "lan"), (&router, &format!("s{n}")));
            join((node, "air"), (&radio, &format!("a{n}")));
            radio.run(|| ip(&format!("link set dev a{n} master channel"))).unwrap();
        }
        join((&mobile, "air"), (&radio, "m"));
        radio.run(|| ip("link set dev m master channel")).unwrap();
        mobile.run(|| set("net.ipv4.conf.all.arp_notify", "1")).unwrap();
        let network = Network { families, server, router, stations, mobile, radio };
        for family in families {
            network.give_addresses(Addresses::of(*family));
        }
        Some(network)
    }

    fn give_addresses(&self, of: &Addresses) {
        let prefix = of.wired_prefix();
        self.server
            .run(|| {
                of.add_wired(0, 1, "eth");
                of.ip(&format!("route add default via {}", of.wired(0, 2)));
            })
            .unwrap();
        self.router.run(|| of.add_wired(0, 2, "server")).unwrap();
        for (n, node) in self.stations.iter().enumerate() {
            let [station, router] = [1, 2].map(|node| of.wired(10 + n, node));
            self.router.run(|| of.add_wired(10 + n, 2, &format!("s{n}"))).unwrap();
            node.run(|| {
                of.add_wired(10 + n, 1, "lan");
                of.add(&format!("{}/{prefix}", of.on_air(n)), "air");
                of.ip(&format!("route add default via {router}"));
            })
            .unwrap();
            // By which one station finds another one.
            if of.family == Family::V4 {
                let air = of.on_air(n);
                self.router.run(|| of.ip(&format!("route add {air}/32 via {station}"))).unwrap();
                for other in (0..self.stations.len()).filter(|&other| other != n) {
                    let via = format!("route add {}/32 via {router}", of.on_air(other));
                    node.run(|| of.ip(&via)).unwrap();
                }
            }
        }
        self.mobile
            .run(|| match of.family {
                Family::V4 => of.add(&format!("{}/24", of.mobile), "air"),
                Family::V6 => {
                    of.add("fe80::9/64", "air");
                    of.add(&format!("{}/128", of.mobile), "air");
                }
            })
            .unwrap();
    }

    /// The mobile host goes to a base station, and its packets follow.
    fn roam(&self, station: usize) {
        for of in self.families.iter().map(|family| Addresses::of(*family)) {
            self.lead(of, station);
            let via = of.on_air(station);
            self.mobile.run(|| of.ip(&format!("route replace default via {via} dev air"))).unwrap();
        }
    }

    /// The packets to the mobile host go to a base station.
    fn lead(&self, of: &Addresses, station: usize) {
        let (to, via) = (format!("{}/{}", of.mobile, of.host()), of.wired(10 + station, 1));
        self.router.run(|| of.ip(&format!("route replace {to} via {via}"))).unwrap();
    }

    /// A listener of the server's, for both versions of IP.
    fn listen(&self) -> TcpListener {
        self.server.run(|| TcpListener::bind(("::", 80)).unwrap()).unwrap()
    }

    /// A connection of the mobile host's.
    fn connect(&self) -> TcpStream {
        self.connect_by(self.families[0])
    }

    /// One by a version of IP.
    fn connect_by(&self, family: Family) -> TcpStream {
        let server = Addresses::of(family).server;
        let stream = self.mobile.run(|| TcpStream::connect((server, 80)).unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }
}

/// The members of a network, which share a key.
struct Members(Folder);

impl Members {
    const STATION: &str = "lan = \"lan\"\nwan = \"air\"\nmode = \"station\"\n";
    const MOBILE: &str = "wan = \"air\"\nmode = \"mobile\"\n";
    const OVER_SRP: &str = "wan = \"air\"\nmode = \"mobile\"\nhop = \"srp\"\n";

    fn new(label: &str) -> Members {
        let folder = Folder::new(label);
        gateway::make_network_key(&folder.0.join("network.key")).unwrap();
        Members(folder)
    }

    fn key(&self) -> String {
        format!("network_key = \"{}\"\n", self.0.0.join("network.key").display())
    }

    fn start(&self, node: &Namespace, keys: &str) -> Daemon {
        let gateway = configuration_at(keys, &self.key());
        let start = || {
            wait_for_devices_to_go();
            Daemon::start(&gateway)
        };
        node.run(start).unwrap().unwrap_or_else(|error| panic!("{keys}: {error}"))
    }

    /// The control socket of a process.
    fn socket(&self, node: &Namespace) -> PathBuf {
        self.0.0.join(node.name())
    }

    /// A process, which can be killed.
    fn process(&self, node: &Namespace, keys: &str) -> Process {
        let config = self.0.0.join("lasthopd.toml");
        fs::write(&config, format!("{keys}{}", self.key())).unwrap();
        let socket = self.socket(node);
        let log = socket.with_extension("log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthopd"));
        command.args(["run", "--config"]).arg(config).arg("--socket").arg(&socket);
        command.stderr(fs::File::create(&log).unwrap());
        let process = Process(node.run(|| command.spawn().unwrap()).unwrap());
        for _ in 0..1000 {
            if gateway::status(&socket).is_ok() {
                return process;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{}", fs::read_to_string(log).unwrap());
    }
}

/// Waits until the mobile host has resumed its transfers so often.
fn wait_for_attachments(mobile: &Daemon, resumed: u64) {
    for _ in 0..500 {
        if count(mobile, "attachments after which transfer resumed") >= resumed {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the base station does not answer");
}

fn count(daemon: &Daemon, name: &str) -> u64 {
    daemon.boxes().unwrap().get(name).copied().unwrap_or(0)
}

#[test]
fn a_download_and_an_upload_go_on_through_handoffs_between_three_base_stations() {
    beside_few(|| {
        let Some(network) = Network::new(3) else { return };
        let members = Members::new("roaming");
        network.roam(0);
        let station = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(station).collect();
        let mobile = members.start(&network.mobile, Members::MOBILE);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        const LEN: usize = 3_000_000;
        let serving = thread::spawn(move || {
            let (mut stream, from) = listener.accept().unwrap();
            assert_eq!(from.ip().to_canonical().to_string(), MOBILE);
            let mut reading = stream.try_clone().unwrap();
            let writing = thread::spawn(move || {
                for part in content(2, LEN).chunks(LEN / 100) {
                    stream.write_all(part).unwrap();
                    thread::sleep(Duration::from_millis(40));
                }
                stream.shutdown(std::net::Shutdown::Write).unwrap();
            });
            let mut got = Vec::new();
            reading.read_to_end(&mut got).unwrap();
            assert!(got == content(1, LEN), "{} bytes of the upload", got.len());
            writing.join().unwrap();
        });
        let mut stream = network.connect();
        let mut sending = stream.try_clone().unwrap();
        let upload = thread::spawn(move || {
            for part in content(1, LEN).chunks(LEN / 100) {
                sending.write_all(part).unwrap();
                thread::sleep(Duration::from_millis(40));
            }
            sending.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let download = thread::spawn(move || {
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            assert!(got == content(2, LEN), "{} bytes of the download", got.len());
        });
        // Six handoffs, one of them back at once.
        for station in [1, 2, 0, 1, 0, 2] {
            thread::sleep(Duration::from_millis(500));
            network.roam(station);
        }
        upload.join().unwrap();
        download.join().unwrap();
        serving.join().unwrap();
        let total = |name| stations.iter().map(|station| count(station, name)).sum::<u64>();
        assert_eq!(total("split connections"), 1);
        assert!(total("connections taken over") >= 4, "{}", total("connections taken over"));
        assert_eq!(total("connections taken over"), total("connections handed over"));
        assert_eq!(count(&mobile, "attachments whose state was lost"), 0);
        // What is no mobile host cannot be attached.
        assert!(!stations[0].attach("198.18.9.2".parse().unwrap()).unwrap());
        stations.into_iter().for_each(Daemon::stop);
        network.mobile.run(|| mobile.stop()).unwrap();
        network.assert_nothing_is_left();
    });
}

#[test]
fn over_srp_a_download_and_an_upload_go_on_through_handoffs_with_losses() {
    beside_few(|| {
        let Some(network) = Network::new(3) else { return };
        let members = Members::new("srp");
        network.lose(2);
        network.count_segments();
        network.roam(0);
        let station = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(station).collect();
        let mobile = members.start(&network.mobile, Members::OVER_SRP);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        const LEN: usize = 6_000_000;
        let transfers: Vec<_> = (0..4)
            .map(|number| {
                let stream = network.connect();
                thread::spawn(move || assert!(transfer(stream, 2 * number, LEN), "it was reset"))
            })
            .collect();
        for station in [1, 2, 0, 1, 0, 2] {
            thread::sleep(Duration::from_millis(300));
            network.roam(station);
        }
        transfers.into_iter().for_each(|transfer| transfer.join().unwrap());
        let total = |name| stations.iter().map(|station| count(station, name)).sum::<u64>();
        assert_eq!(total("split connections"), 4);
        assert_eq!(count(&mobile, "split connections"), 4);
        // What went over the hop went by SRP, but for what passed a base station that did not know the host yet.
        let segments = network.segments();
        assert!(segments < 1000, "{segments}");
        // Those that the server opens, too.
        let accept = || TcpListener::bind((MOBILE, 81)).unwrap();
        let listener = network.mobile.run(accept).unwrap();
        let connect = || TcpStream::connect((MOBILE, 81)).unwrap();
        let mut caller = network.server.run(connect).unwrap();
        let (mut called, from) = listener.accept().unwrap();
        assert_eq!(from.ip().to_string(), SERVER);
        caller.write_all(b"a").unwrap();
        called.read_exact(&mut [0]).unwrap();
        assert_eq!(network.segments(), segments);
        assert!(total("connections taken over") >= 4, "{}", total("connections taken over"));
        assert_eq!(count(&mobile, "attachments whose state was lost"), 0);
        network.mobile.run(|| mobile.stop()).unwrap();
        stations.into_iter().for_each(Daemon::stop);
    });
}

#[test]
fn over_ipv6_transfers_go_on_through_handoffs_with_losses() {
    transfers_by(&[Family::V6], Members::MOBILE);
}

#[test]
fn over_srp_and_ipv6_transfers_go_on_through_handoffs_with_losses() {
    transfers_by(&[Family::V6], Members::OVER_SRP);
}

#[test]
fn connections_of_both_versions_of_ip_move_with_their_host() {
    transfers_by(&[Family::V4, Family::V6], Members::MOBILE);
}

#[test]
fn over_srp_connections_of_both_versions_of_ip_move_with_their_host() {
    transfers_by(&[Family::V4, Family::V6], Members::OVER_SRP);
}

/// Two transfers of each version of IP, through handoffs and losses. Base stations have addresses of IPv6 that are of the
/// link alone on the radio channel.
fn transfers_by(families: &'static [Family], agent: &str) {
    beside_few(|| {
        let Some(network) = Network::of(3, families) else { return };
        let members = Members::new("versions");
        network.lose(1);
        // Segments of SRP that were cut: they are to fit the hop by either version.
        network.count_arriving(&format!("udp dport {} @th,72,8 8", wire::Mobility::PORT));
        network.roam(0);
        let station = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(station).collect();
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        const LEN: usize = 4_000_000;
        let transfers: Vec<_> = families
            .iter()
            .flat_map(|family| [*family; 2])
            .zip(0..)
            .map(|(family, number)| {
                let stream = network.connect_by(family);
                // It goes on longer than the handoffs.
                let lasts = Duration::from_secs(3);
                let transfer = move || slow_transfer(stream, 2 * number, LEN, lasts);
                thread::spawn(move || assert!(transfer(), "it was reset"))
            })
            .collect();
        let count_of = transfers.len() as u64;
        for station in [1, 2, 0, 1, 0, 2] {
            thread::sleep(Duration::from_millis(400));
            network.roam(station);
        }
        transfers.into_iter().for_each(|transfer| transfer.join().unwrap());
        let total = |name| stations.iter().map(|station| count(station, name)).sum::<u64>();
        assert_eq!(total("split connections"), count_of);
        assert_eq!(network.segments(), 0);
        assert!(total("connections taken over") >= count_of, "{}", total("connections taken over"));
        assert_eq!(count(&mobile, "attachments whose state was lost"), 0);
        // Those that the server opens, too.
        for family in families {
            let of = Addresses::of(*family);
            let accept = || TcpListener::bind((of.mobile, 81)).unwrap();
            let listener = network.mobile.run(accept).unwrap();
            let connect = || TcpStream::connect((of.mobile, 81)).unwrap();
            let mut caller = network.server.run(connect).unwrap();
            let (mut called, from) = listener.accept().unwrap();
            assert_eq!(from.ip().to_string(), of.server);
            caller.write_all(b"a").unwrap();
            called.read_exact(&mut [0]).unwrap();
        }
        assert_eq!(total("split connections"), count_of + families.len() as u64);
        network.mobile.run(|| mobile.stop()).unwrap();
        stations.into_iter().for_each(Daemon::stop);
        network.assert_nothing_is_left();
    });
}

#[test]
fn connections_that_are_over_do_not_move() {
    beside_few(|| {
        let Some(network) = Network::new(2) else { return };
        let members = Members::new("over");
        network.roam(0);
        let station = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(station).collect();
        let mobile = members.start(&network.mobile, Members::MOBILE);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        let lasting = network.connect();
        (0..5).for_each(|number| assert!(transfer(network.connect(), 2 * number, 1000)));
        let left = |station: &Daemon| station.observe().unwrap().gauges["split_connections"];
        thread::sleep(Duration::from_millis(200));
        // They are in TIME-WAIT.
        assert_eq!(left(&stations[0]), 6);
        network.roam(1);
        wait_for_attachments(&mobile, 2);
        assert_eq!(count(&stations[1], "connections taken over"), 1);
        assert_eq!(stations.iter().map(left).collect::<Vec<_>>(), [0, 1]);
        assert!(transfer(lasting, 20, 1000));
        network.mobile.run(|| mobile.stop()).unwrap();
        stations.into_iter().for_each(Daemon::stop);
    });
}

#[test]
fn a_handoff_by_hand_goes_to_the_address_by_which_base_stations_know_each_other() {
    beside_few(|| {
        let Some(network) = Network::of(2, &[Family::V6]) else { return };
        let members = Members::new("by-hand");
        network.roam(0);
        let station = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(station).collect();
        let mobile = members.start(&network.mobile, Members::OVER_SRP);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        let mut user = network.connect();
        let (mut server, _) = listener.accept().unwrap();
        user.write_all(b"a").unwrap();
        server.read_exact(&mut [0]).unwrap();
        // The host's default route does not change, but there is one to the other base station.
        let other = V6.wired(11, 1);
        network.lead(&V6, 1);
        network
            .mobile
            .run(|| V6.ip(&format!("route add {other} via {} dev air", V6.on_air(1))))
            .unwrap();
        assert!(mobile.attach(other.parse().unwrap()).unwrap());
        wait_for_attachments(&mobile, 2);
        server.write_all(b"b").unwrap();
        user.read_exact(&mut [0]).unwrap();
        assert_eq!(count(&stations[1], "connections taken over"), 1);
        // One of another version of IP knows nothing of the host.
        let error = mobile.attach("198.18.9.2".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("version of IP"), "{error}");
        network.mobile.run(|| mobile.stop()).unwrap();
        stations.into_iter().for_each(Daemon::stop);
        network.assert_nothing_is_left();
    });
}

#[test]
fn data_goes_on_at_once_when_the_carrier_of_the_hop_is_back() {
    go_on_after_an_outage(Members::MOBILE, Outage::Carrier);
}

#[test]
fn over_srp_data_goes_on_at_once_when_the_carrier_of_the_hop_is_back() {
    go_on_after_an_outage(Members::OVER_SRP, Outage::Carrier);
}

#[test]
fn data_goes_on_at_once_when_the_host_has_its_address_again() {
    go_on_after_an_outage(Members::MOBILE, Outage::Address);
}

#[test]
fn over_srp_data_goes_on_at_once_when_the_host_has_its_address_again() {
    go_on_after_an_outage(Members::OVER_SRP, Outage::Address);
}

#[test]
fn data_of_each_version_of_ip_goes_on_when_its_router_is_known_again() {
    go_on_after_an_outage(Members::MOBILE, Outage::CarrierAndRouter);
}

/// What the hop lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outage {
    Carrier,
    /// The carrier, and for a while after it is back, the router of IPv6.
    CarrierAndRouter,
    Address,
}

/// A hop that lacks something for so long that timers have backed off; then it is there again, with the same router. Data
/// of both versions of IP and of both directions goes on.
fn go_on_after_an_outage(agent: &str, outage: Outage) {
    alone(|| {
        let Some(network) = Network::of(1, &Family::ALL) else { return };
        let members = Members::new("outage");
        network.roam(0);
        // The kernel does not wait with the next solicitation for the router's link address when the hop is there again.
        for version in ["ipv4", "ipv6"] {
            let name = format!("net.{version}.neigh.air.retrans_time_ms");
            network.mobile.run(|| set(&name, "20")).unwrap();
        }
        let station = members.start(&network.stations[0], Members::STATION);
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        let mut ends = Vec::new();
        for family in Family::ALL {
            let mut user = network.connect_by(family);
            let (mut server, _) = listener.accept().unwrap();
            server.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            user.write_all(b"a").unwrap();
            server.read_exact(&mut [0]).unwrap();
            ends.extend([user, server]);
        }
        let before = count(&mobile, "attachments");
        let take = || match outage {
            Outage::Carrier | Outage::CarrierAndRouter => {
                network.radio.run(|| ip("link set dev m down")).unwrap();
            }
            Outage::Address => {
                let remove = || {
                    V4.ip(&format!("address del {MOBILE}/24 dev air"));
                    V6.ip(&format!("address del {}/128 dev air", V6.mobile));
                    V6.ip("route del default");
                };
                network.mobile.run(remove).unwrap();
            }
        };
        let give = || match outage {
            Outage::Carrier => network.radio.run(|| ip("link set dev m up")).unwrap(),
            Outage::CarrierAndRouter => {
                network.mobile.run(|| V6.ip("route del default")).unwrap();
                network.radio.run(|| ip("link set dev m up")).unwrap();
                thread::sleep(Duration::from_millis(300));
                network.roam(0);
            }
            Outage::Address => {
                let add = || {
                    V4.add(&format!("{MOBILE}/24"), "air");
                    V6.add(&format!("{}/128", V6.mobile), "air");
                };
                network.mobile.run(add).unwrap();
                network.roam(0);
            }
        };
        take();
        thread::sleep(Duration::from_millis(100));
        ends.iter_mut().for_each(|end| end.write_all(b"b").unwrap());
        // The last retransmission was after 3 s, the next one is after 6 s.
        thread::sleep(Duration::from_millis(3500));
        give();
        let clock = Clock::start();
        ends.iter_mut().for_each(|end| end.read_exact(&mut [0]).unwrap());
        let took = clock.now().since(Time::ZERO);
        // A busy machine takes some time, too.
        eprintln!("data went on after {took:?}");
        assert!(took < base::Duration::from_secs(2), "{took:?}");
        assert!(count(&mobile, "attachments") > before);
        assert_eq!(count(&mobile, "attachments whose state was lost"), 0);
        network.mobile.run(|| mobile.stop()).unwrap();
        station.stop();
        network.assert_nothing_is_left();
    });
}

#[test]
fn both_ends_are_reset_if_the_base_station_that_has_the_state_is_gone() {
    reset_with_the_station(Members::MOBILE);
}

#[test]
fn over_srp_both_ends_are_reset_if_the_base_station_that_has_the_state_is_gone() {
    reset_with_the_station(Members::OVER_SRP);
}

fn reset_with_the_station(agent: &str) {
    beside_few(|| {
        let Some(network) = Network::new(2) else { return };
        let members = Members::new("station-gone");
        network.roam(0);
        let first = members.process(&network.stations[0], Members::STATION);
        let second = members.start(&network.stations[1], Members::STATION);
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        let mut user = network.connect();
        let (mut server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        user.write_all(b"a").unwrap();
        server.read_exact(&mut [0]).unwrap();
        drop(first);
        network.roam(1);
        for end in [&mut user, &mut server] {
            let error = end.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        assert_eq!(count(&mobile, "attachments whose state was lost"), 1);
        // The next connection is the new base station's.
        let mut user = network.connect();
        let (mut server, _) = listener.accept().unwrap();
        user.write_all(b"b").unwrap();
        server.read_exact(&mut [0]).unwrap();
        assert_eq!(count(&second, "split connections"), 1);
        network.mobile.run(|| mobile.stop()).unwrap();
        second.stop();
    });
}

#[test]
fn over_srp_connections_go_on_with_a_base_station_or_an_agent_that_is_started_again() {
    beside_few(|| {
        let Some(network) = Network::new(1) else { return };
        let members = Members::new("srp-again");
        network.count_segments();
        network.roam(0);
        let listener = network.listen();
        let open = || {
            let mut user = network.connect();
            let (mut server, _) = listener.accept().unwrap();
            server.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            user.write_all(b"a").unwrap();
            server.read_exact(&mut [0]).unwrap();
            [user, server]
        };
        let start = |index: usize| match index {
            0 => members.process(&network.stations[0], Members::STATION),
            _ => members.process(&network.mobile, Members::OVER_SRP),
        };
        let mut processes = [0, 1].map(|index| Some(start(index)));
        for killed in [0, 1, 0, 1] {
            network.wait_for_srp(&members);
            let clock = Clock::start();
            let ends = open();
            // An end of a tunnel whose other end is lost is silent for 5 s before it is another one.
            assert!(clock.now() < Time::ZERO + base::Duration::from_secs(4));
            // What it had is lost, and both ends learn it.
            processes[killed] = None;
            processes[killed] = Some(start(killed));
            for mut end in ends {
                let error = end.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{killed}: {error}");
            }
        }
        network.wait_for_srp(&members);
        let before = network.segments();
        open();
        assert_eq!(network.segments(), before);
        drop(processes);
    });
}

#[test]
fn a_station_with_another_key_gets_no_state() {
    at_a_station_with_another_key(Members::MOBILE);
}

#[test]
fn over_srp_a_station_with_another_key_gets_no_state() {
    at_a_station_with_another_key(Members::OVER_SRP);
}

fn at_a_station_with_another_key(agent: &str) {
    beside_few(|| {
        let Some(network) = Network::new(2) else { return };
        let (members, others) = (Members::new("key"), Members::new("other-key"));
        network.roam(0);
        let first = members.start(&network.stations[0], Members::STATION);
        let second = others.start(&network.stations[1], Members::STATION);
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        let mut user = network.connect();
        let (mut server, _) = listener.accept().unwrap();
        user.write_all(b"a").unwrap();
        server.read_exact(&mut [0]).unwrap();
        network.roam(1);
        thread::sleep(Duration::from_millis(700));
        assert!(count(&second, "messages that are not authentic") > 0);
        assert_eq!(count(&second, "SRP segments"), 0);
        assert_eq!(count(&first, "connections handed over"), 0);
        // Who opens a connection to a base station without the key gets no answer.
        let ask = || TcpStream::connect(("198.18.9.1", wire::Mobility::PORT)).unwrap();
        let mut stranger = network.stations[1].run(ask).unwrap();
        stranger.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stranger.write_all(&[1; 48]).unwrap();
        let mut answer = Vec::new();
        let end = stranger.read_to_end(&mut answer);
        assert!(end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
        assert!(answer.is_empty(), "{answer:?}");
        // Back at the base station that has them, connections go on.
        network.roam(0);
        wait_for_attachments(&mobile, 2);
        user.write_all(b"b").unwrap();
        server.read_exact(&mut [0]).unwrap();
        network.mobile.run(|| mobile.stop()).unwrap();
        [first, second].into_iter().for_each(Daemon::stop);
    });
}

#[test]
fn over_srp_a_host_with_another_key_has_no_association_and_its_connections_pass_as_they_are() {
    beside_few(|| {
        let Some(network) = Network::new(1) else { return };
        let (members, others) = (Members::new("host-key"), Members::new("other-host-key"));
        network.roam(0);
        network.count_segments();
        let station = members.start(&network.stations[0], Members::STATION);
        let mobile = others.start(&network.mobile, Members::OVER_SRP);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        // It waits until the agent knows that there is no base station of its network, 12 s at most.
        let clock = Clock::start();
        let stream = network.connect();
        assert!(clock.now() < Time::ZERO + base::Duration::from_secs(16));
        let before = network.segments();
        const LEN: usize = 300_000;
        assert!(transfer(stream, 1, LEN));
        // The next one need not wait.
        let clock = Clock::start();
        assert!(transfer(network.connect(), 2, LEN));
        assert!(clock.now() < Time::ZERO + base::Duration::from_secs(5));
        assert!(network.segments() > before);
        assert!(count(&station, "messages that are not authentic") > 0);
        assert_eq!(count(&mobile, "attachments after which transfer resumed"), 0);
        for end in [&station, &mobile] {
            assert_eq!(count(end, "split connections"), 0);
            assert_eq!(count(end, "SRP segments"), 0);
        }
        assert_eq!(network.stations[0].run(routes_to_the_host).unwrap(), "");
        network.mobile.run(|| mobile.stop()).unwrap();
        station.stop();
        network.assert_nothing_is_left();
    });
}

#[test]
fn a_base_station_that_ends_while_it_waits_for_state_leaves_no_route_behind() {
    beside_few(|| {
        let Some(network) = Network::new(2) else { return };
        let members = Members::new("ends");
        network.roam(0);
        let start = |node| members.start(node, Members::STATION);
        let [old, new] = [0, 1].map(|index| start(&network.stations[index]));
        let mobile = members.start(&network.mobile, Members::MOBILE);
        wait_for_attachments(&mobile, 1);
        network.lose_requests(99);
        network.roam(1);
        let routes = || network.stations[1].run(routes_to_the_host).unwrap();
        for _ in 0..500 {
            if !routes().is_empty() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert!(!routes().is_empty());
        // It still asks: a connection between base stations takes two seconds to fail.
        new.stop();
        assert_eq!(routes(), "");
        network.mobile.run(|| mobile.stop()).unwrap();
        old.stop();
    });
}

#[test]
fn what_an_agent_that_was_killed_has_left_is_taken_back() {
    beside_few(|| {
        let Some(network) = Network::of(1, &Family::ALL) else { return };
        let members = Members::new("agent-killed");
        network.roam(0);
        let setting = || live::netlink::sysctl("net.ipv4.conf.air.forwarding").unwrap();
        let priorities = || -> Vec<(bool, u32)> {
            let rules = Netlink::open().unwrap().all_rules();
            rules.iter().map(|rule| (rule.family == Family::V6, rule.priority)).collect()
        };
        let before = network.mobile.run(priorities).unwrap();
        // The second one knows what was before the first one.
        for _ in 0..2 {
            drop(members.process(&network.mobile, Members::MOBILE));
            assert_eq!(network.mobile.run(setting).unwrap(), "1");
            assert_ne!(network.mobile.run(priorities).unwrap(), before);
        }
        let socket = members.socket(&network.mobile);
        let rules = network.mobile.run(|| gateway::clean_up(&socket).unwrap()).unwrap();
        assert_eq!(rules, 8);
        assert_eq!(network.mobile.run(priorities).unwrap(), before);
        network.assert_nothing_is_left();
        assert!(!socket.with_extension("settings").exists());
    });
}

/// The routes to the mobile host alone, of the calling thread's namespace.
fn routes_to_the_host() -> String {
    let shown = [&V4, &V6].map(|of| {
        let show = ["route", "show", &format!("{}/{}", of.mobile, of.host())];
        let done = Command::new("ip").args(show).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    });
    shown.concat()
}

/// The bytes of a transfer, at most.
const MOST: usize = 200_000;

/// Answers each connection: so many bytes each way, as its first bytes say.
fn serve(listener: &TcpListener) {
    for stream in listener.incoming().map_while(Result::ok) {
        thread::spawn(move || {
            let _ = answer(stream);
        });
    }
}

/// How long a transfer may stand still. The kernel's TCP at its ends waits for up to two minutes between its
/// retransmissions (TCP_RTO_MAX), and here most of what would let them pass may be lost for as long.
const PATIENCE: Duration = Duration::from_secs(180);

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = [0; 16];
    stream.read_exact(&mut head)?;
    let [number, len] = [&head[..8], &head[8..]].map(|b| u64::from_be_bytes(b.try_into().unwrap()));
    let mut sending = stream.try_clone()?;
    let writing = thread::spawn(move || {
        let sent = sending.write_all(&content(number + 1, len as usize));
        sent.and_then(|()| sending.shutdown(Shutdown::Write))
    });
    let mut got = vec![0; len as usize];
    stream.read_exact(&mut got)?;
    assert!(got == content(number, len as usize), "the upload {number} is wrong");
    writing.join().unwrap()
}

/// A transfer in both directions. Returns whether it is whole; it may be reset instead.
fn transfer(stream: TcpStream, number: u64, len: usize) -> bool {
    slow_transfer(stream, number, len, Duration::ZERO)
}

/// One that lasts so long at least.
fn slow_transfer(stream: TcpStream, number: u64, len: usize, lasts: Duration) -> bool {
    let run = || -> std::io::Result<()> {
        let mut sending = stream.try_clone()?;
        let writing = thread::spawn(move || {
            let head = [number.to_be_bytes(), (len as u64).to_be_bytes()].concat();
            sending.write_all(&head)?;
            for part in content(number, len).chunks(len.div_ceil(50).max(1)) {
                sending.write_all(part)?;
                thread::sleep(lasts / 50);
            }
            Ok::<(), std::io::Error>(())
        });
        let mut got = Vec::new();
        let read = (&stream).take(len as u64 + 1).read_to_end(&mut got);
        // Of the two, only one is told of a reset.
        writing.join().unwrap()?;
        read?;
        assert!(
            got == content(number + 1, len),
            "{} of {len} bytes of {number}, port {}",
            got.len(),
            stream.local_addr()?.port()
        );
        Ok(())
    };
    match run() {
        Ok(()) => true,
        Err(error) => {
            let may_be = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
            assert!(
                may_be.contains(&error.kind()),
                "transfer {number}, {:?}: {error}",
                stream.local_addr()
            );
            false
        }
    }
}

/// What became of transfers: whole ones, and those that were reset.
type Outcomes = [AtomicU64; 2];

impl Network {
    /// All gateways have ended: the host's settings are as they were, and the base stations have no routes to it.
    fn assert_nothing_is_left(&self) {
        self.mobile
            .run(|| {
                let netlink = Netlink::open().unwrap();
                assert!(netlink.rules().is_empty());
                assert_eq!(netlink.table(203), []);
                for family in Family::ALL {
                    let rules = netlink.all_rules().into_iter();
                    let priorities: Vec<_> =
                        rules.filter(|rule| rule.family == family).map(|it| it.priority).collect();
                    assert!(priorities.contains(&0) && !priorities.contains(&10), "{priorities:?}");
                }
                for (setting, value) in [
                    ("net.ipv4.conf.air.forwarding", "0"),
                    ("net.ipv6.conf.air.forwarding", "0"),
                    ("net.ipv6.conf.all.forwarding", "0"),
                    ("net.ipv4.tcp_early_demux", "1"),
                ] {
                    assert_eq!(live::netlink::sysctl(setting).unwrap(), value, "{setting}");
                }
                if let Ok(forces) = live::netlink::sysctl("net.ipv6.conf.air.force_forwarding") {
                    assert_eq!(forces, "0");
                }
            })
            .unwrap();
        for station in &self.stations {
            station.run(|| assert_eq!(routes_to_the_host(), "")).unwrap();
        }
    }

    /// From now on, counts the segments of TCP that arrive at the mobile host by the radio channel.
    fn count_segments(&self) {
        self.count_arriving("ip protocol tcp");
    }

    /// From now on, counts these packets that arrive at the mobile host by the radio channel.
    fn count_arriving(&self, what: &str) {
        let rules = format!(
            "table netdev counts {{ counter segments {{ }}\n chain arriving {{ type filter hook ingress \
             device \"air\" priority -1; {what} counter name segments\n}}\n}}"
        );
        let nft = || Command::new("nft").arg(&rules).status().unwrap();
        assert!(self.mobile.run(nft).unwrap().success());
    }

    /// How many there were.
    fn segments(&self) -> u64 {
        let list = || Command::new("nft").args(["list", "counters"]).output().unwrap();
        let listed = String::from_utf8(self.mobile.run(list).unwrap().stdout).unwrap();
        let words = listed.split_whitespace();
        words.skip_while(|word| *word != "packets").nth(1).unwrap().parse().unwrap()
    }

    /// Waits until there is an association between the mobile host's process and a base station's.
    fn wait_for_srp(&self, members: &Members) {
        let resumed = || {
            let status = gateway::status(&members.socket(&self.mobile)).unwrap();
            let name = "attachments after which transfer resumed";
            status.counters.get(name).copied().unwrap_or(0) > 0
        };
        for _ in 0..1000 {
            if resumed() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the base station does not answer");
    }

    /// Loses a share of the packets that arrive by the radio channel, of all kinds.
    fn lose(&self, per_cent: u32) {
        let rules = format!(
            "table netdev radio {{ chain loss {{ type filter hook ingress device \"air\" priority 0; \
             meta protocol {{ ip, ip6 }} numgen random mod 100 < {per_cent} drop\n}}\n}}"
        );
        for node in self.stations.iter().chain([&self.mobile]) {
            let nft = || Command::new("nft").arg(&rules).status().unwrap();
            assert!(node.run(nft).unwrap().success());
        }
    }

    /// Loses a share of the messages between mobile hosts and base stations, and of the handshakes of their tunnels, but no
    /// data of SRP.
    fn lose_messages(&self, per_cent: u32) {
        // The second byte of a datagram is its type: 4 and 8 are data.
        let what = format!("udp dport {} @th,72,8 != {{ 4, 8 }}", wire::Mobility::PORT);
        let rules = Network::losing("air", &what, per_cent);
        for node in self.stations.iter().chain([&self.mobile]) {
            let nft = || Command::new("nft").arg(&rules).status().unwrap();
            assert!(node.run(nft).unwrap().success());
        }
    }

    /// Loses a share of the packets of connections between base stations.
    fn lose_requests(&self, per_cent: u32) {
        for port in ["dport", "sport"] {
            let what = format!("tcp {port} {}", wire::Mobility::PORT);
            let rules = Network::losing("lan", &what, per_cent);
            for node in &self.stations {
                let nft = || Command::new("nft").arg(&rules).status().unwrap();
                assert!(node.run(nft).unwrap().success());
            }
        }
    }

    /// Rules that lose a share of these packets that arrive by a device.
    fn losing(device: &str, what: &str, per_cent: u32) -> String {
        let random = format!("numgen random mod 100 < {per_cent} drop");
        format!(
            "table netdev losing {{ chain {device} {{ type filter hook ingress device \"{device}\" priority 1; \
             {what} {random}\n}}\n}}"
        )
    }

    /// Lets eight transfers run at any time, until `is_over`, and calls `roam` meanwhile.
    fn transfers(&self, outcomes: &Outcomes, roam: impl FnOnce()) {
        let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let number = next.fetch_add(2, Ordering::Relaxed);
                        let len = (number as usize * 7919) % MOST;
                        let families = self.families.len() as u64;
                        let family = self.families[(number / 2 % families) as usize];
                        let server = Addresses::of(family).server;
                        let connect = || TcpStream::connect((server, 80));
                        // While a station is away, none may be there to answer.
                        let Ok(stream) = self.mobile.run(connect).unwrap() else { continue };
                        stream.set_read_timeout(Some(PATIENCE)).unwrap();
                        stream.set_write_timeout(Some(PATIENCE)).unwrap();
                        let is_whole = transfer(stream, number, len);
                        outcomes[usize::from(!is_whole)].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            roam();
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn transfers_are_whole_although_most_exchanges_of_messages_fail_at_first() {
    lose_messages(Members::MOBILE, 8);
}

#[test]
fn over_srp_transfers_are_whole_although_most_exchanges_of_messages_fail_at_first() {
    lose_messages(Members::OVER_SRP, 8);
}

#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn transfers_are_whole_through_hundreds_of_handoffs_whose_messages_are_lost() {
    lose_messages(Members::MOBILE, 300);
}

#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn over_srp_transfers_are_whole_through_hundreds_of_handoffs_whose_messages_are_lost() {
    lose_messages(Members::OVER_SRP, 300);
}

/// 30 % of the control messages are lost, and no data: half of the exchanges of a message and its answer fail. No
/// connection is reset for it. If as much is lost of the connections between base stations, state may come too late: then
/// both ends are reset, and none waits in vain.
fn lose_messages(agent: &str, handoffs: u32) {
    beside_few(|| {
        let Some(network) = Network::of(3, &Family::ALL) else { return };
        let members = Members::new("messages");
        network.roam(0);
        let start = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(start).collect();
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        let mut random = base::Seed(9).stream("messages");
        network.lose_messages(30);
        for between_stations in [false, true] {
            if between_stations {
                network.lose_requests(30);
            }
            let outcomes = Outcomes::default();
            network.transfers(&outcomes, || {
                for _ in 0..handoffs {
                    network.roam(random.bits() as usize % 3);
                    thread::sleep(Duration::from_millis(100 + random.bits() % 800));
                }
            });
            let [whole, reset] = outcomes.each_ref().map(|count| count.load(Ordering::Relaxed));
            eprintln!("{whole} transfers during {handoffs} handoffs, {reset} reset");
            // The first eight may be all there are: they wait until their host is attached.
            assert!(between_stations || whole >= 8, "{whole} of {} transfers", whole + reset);
            assert!(between_stations || reset == 0, "{reset} of {} were reset", whole + reset);
            assert!(between_stations || count(&mobile, "attachments whose state was lost") == 0);
        }
        // The last connections are in TIME-WAIT, or their vanished ends are asked whether they are there, which takes longer
        // than the short form does.
        let left = |station: &Daemon| station.observe().unwrap().gauges["split_connections"];
        if handoffs > 100 {
            for _ in 0..1500 {
                if stations.iter().map(left).sum::<u64>() == 0 {
                    break;
                }
                thread::sleep(Duration::from_millis(100));
            }
            assert_eq!(stations.iter().map(left).collect::<Vec<_>>(), [0, 0, 0]);
        }
        network.mobile.run(|| mobile.stop()).unwrap();
        stations.into_iter().for_each(Daemon::stop);
        network.assert_nothing_is_left();
    });
}

#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn a_thousand_handoffs_lose_no_byte_and_leave_nothing_behind() {
    hand_off_a_thousand_times(Members::MOBILE);
}

#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn over_srp_a_thousand_handoffs_lose_no_byte_and_leave_nothing_behind() {
    hand_off_a_thousand_times(Members::OVER_SRP);
}

fn hand_off_a_thousand_times(agent: &str) {
    beside_few(|| {
        let Some(network) = Network::new(3) else { return };
        let members = Members::new("soak");
        network.lose(3);
        network.roam(0);
        let start = |node| members.process(node, Members::STATION);
        let mut stations: Vec<_> = network.stations.iter().map(start).collect();
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        let mut random = base::Seed(7).stream("roaming");
        let mut roam_at_random = |handoffs: u32, mut then: Box<dyn FnMut(u64) + '_>| {
            for _ in 0..handoffs {
                network.roam(random.bits() as usize % 3);
                thread::sleep(Duration::from_millis(random.bits() % 300));
                then(random.bits());
            }
        };
        // State moves, whatever is lost.
        let outcomes = Outcomes::default();
        network.transfers(&outcomes, || roam_at_random(500, Box::new(|_| ())));
        let [whole, reset] = outcomes.each_ref().map(|count| count.load(Ordering::Relaxed));
        eprintln!("{whole} transfers during 500 handoffs, {reset} reset");
        assert_eq!(reset, 0);
        assert_eq!(count(&mobile, "attachments whose state was lost"), 0);
        // State is lost with a station that is killed: its ends are reset.
        let outcomes = Outcomes::default();
        network.transfers(&outcomes, || {
            let kill = |random: u64| {
                if random.is_multiple_of(20) {
                    let which = random as usize / 20 % 3;
                    drop(stations.remove(which));
                    thread::sleep(Duration::from_millis(random % 1000));
                    stations.insert(which, start(&network.stations[which]));
                }
            };
            roam_at_random(500, Box::new(kill));
        });
        let [whole, reset] = outcomes.each_ref().map(|count| count.load(Ordering::Relaxed));
        eprintln!("{whole} transfers during 500 handoffs with {reset} reset");
        assert!(whole > reset && reset > 0);
        // The last connections are in TIME-WAIT, or their vanished ends are asked whether they are there.
        let left = |node: &Namespace| {
            let status = gateway::status(&members.socket(node)).unwrap();
            status.gauges["split_connections"]
        };
        for _ in 0..1500 {
            if network.stations.iter().map(left).sum::<u64>() == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(network.stations.iter().map(left).collect::<Vec<_>>(), [0, 0, 0]);
        network.mobile.run(|| mobile.stop()).unwrap();
    });
}
