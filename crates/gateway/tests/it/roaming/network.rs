//! Networks with base stations and a mobile host.

use crate::common::{Folder, Process, configuration_at, wait_for_devices_to_go};
use gateway::Daemon;
use live::Netlink;
use live::namespace::Namespace;
use live::netlink::Family;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The address of the mobile host, and that of the server.
pub(super) const MOBILE: &str = "198.18.9.9";
pub(super) const SERVER: &str = "198.18.0.1";

/// The addresses of a network of one version of IP.
pub(super) struct Addresses {
    pub(super) family: Family,
    pub(super) mobile: &'static str,
    pub(super) server: &'static str,
}

pub(super) const V4: Addresses = Addresses { family: Family::V4, mobile: MOBILE, server: SERVER };
pub(super) const V6: Addresses =
    Addresses { family: Family::V6, mobile: "2001:db8:9::9", server: "2001:db8::1" };

impl Addresses {
    pub(super) fn of(family: Family) -> &'static Addresses {
        match family {
            Family::V4 => &V4,
            Family::V6 => &V6,
        }
    }

    /// What all commands of this version begin with.
    pub(super) fn ip(&self, words: &str) {
        ip(&format!("{} {words}", if self.family == Family::V4 { "-4" } else { "-6" }));
    }

    /// Adds an address that is of use at once.
    pub(super) fn add(&self, address: &str, device: &str) {
        let nodad = if self.family == Family::V4 { "" } else { " nodad" };
        self.ip(&format!("address add {address} dev {device}{nodad}"));
    }

    /// Adds a node's address in a wired network, and with IPv6, the one of the link that its solicitations have.
    pub(super) fn add_wired(&self, network: usize, node: u8, device: &str) {
        self.add(&format!("{}/{}", self.wired(network, node), self.wired_prefix()), device);
        if self.family == Family::V6 {
            self.add(&format!("fe80::{node}/64"), device);
        }
    }

    /// The length of the prefix of one host.
    pub(super) fn host(&self) -> u8 {
        if self.family == Family::V4 { 32 } else { 128 }
    }

    /// A number's network between a base station and the router, or with 0, between that and the server: the address of a
    /// node in it.
    pub(super) fn wired(&self, network: usize, node: u8) -> String {
        match self.family {
            Family::V4 => format!("198.18.{network}.{node}"),
            Family::V6 if network == 0 => format!("2001:db8::{node}"),
            Family::V6 => format!("2001:db8:{network}::{node}"),
        }
    }

    pub(super) fn wired_prefix(&self) -> u8 {
        if self.family == Family::V4 { 24 } else { 64 }
    }

    /// The address of a base station on the radio channel: of IPv6, it has one of the link alone.
    pub(super) fn on_air(&self, station: usize) -> String {
        match self.family {
            Family::V4 => format!("198.18.9.{}", 1 + station),
            Family::V6 => format!("fe80::{}", 1 + station),
        }
    }
}

/// A server, a router, base stations and a mobile host on one radio channel.
pub(super) struct Network {
    pub(super) families: &'static [Family],
    pub(super) server: Namespace,
    pub(super) router: Namespace,
    pub(super) stations: Vec<Namespace>,
    pub(super) mobile: Namespace,
    /// The channel.
    pub(super) radio: Namespace,
}

pub(super) fn ip(words: &str) {
    let done = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(done.status.success(), "ip {words}: {}", String::from_utf8_lossy(&done.stderr));
}

pub(super) fn set(name: &str, value: &str) {
    live::netlink::set_sysctl(name, value).unwrap();
}

/// Joins two namespaces, whose devices get these names.
pub(super) fn join(left: (&Namespace, &str), right: (&Namespace, &str)) {
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
    pub(super) fn new(stations: usize) -> Option<Network> {
        Network::of(stations, &[Family::V4])
    }

    /// One with these versions of IP.
    pub(super) fn of(stations: usize, families: &'static [Family]) -> Option<Network> {
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

    pub(super) fn give_addresses(&self, of: &Addresses) {
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
    pub(super) fn roam(&self, station: usize) {
        for of in self.families.iter().map(|family| Addresses::of(*family)) {
            self.lead(of, station);
            let via = of.on_air(station);
            self.mobile.run(|| of.ip(&format!("route replace default via {via} dev air"))).unwrap();
        }
    }

    /// The packets to the mobile host go to a base station.
    pub(super) fn lead(&self, of: &Addresses, station: usize) {
        let (to, via) = (format!("{}/{}", of.mobile, of.host()), of.wired(10 + station, 1));
        self.router.run(|| of.ip(&format!("route replace {to} via {via}"))).unwrap();
    }

    /// A listener of the server's, for both versions of IP.
    pub(super) fn listen(&self) -> TcpListener {
        self.server.run(|| TcpListener::bind(("::", 80)).unwrap()).unwrap()
    }

    /// A connection of the mobile host's.
    pub(super) fn connect(&self) -> TcpStream {
        self.connect_by(self.families[0])
    }

    /// One by a version of IP.
    pub(super) fn connect_by(&self, family: Family) -> TcpStream {
        let server = Addresses::of(family).server;
        let stream = self.mobile.run(|| TcpStream::connect((server, 80)).unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// All gateways have ended: the host's settings are as they were, and the base stations have no routes to it.
    pub(super) fn assert_nothing_is_left(&self) {
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

    /// Waits until there is an association between the mobile host's process and a base station's.
    pub(super) fn wait_for_srp(&self, members: &Members) {
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
}

/// The members of a network, which share a key.
pub(super) struct Members(pub(super) Folder);

impl Members {
    pub(super) const STATION: &str = "lan = \"lan\"\nwan = \"air\"\nmode = \"station\"\n";
    pub(super) const MOBILE: &str = "wan = \"air\"\nmode = \"mobile\"\n";
    pub(super) const OVER_SRP: &str = "wan = \"air\"\nmode = \"mobile\"\nhop = \"srp\"\n";

    pub(super) fn new(label: &str) -> Members {
        let folder = Folder::new(label);
        gateway::make_network_key(&folder.0.join("network.key")).unwrap();
        Members(folder)
    }

    pub(super) fn key(&self) -> String {
        format!("network_key = \"{}\"\n", self.0.0.join("network.key").display())
    }

    pub(super) fn start(&self, node: &Namespace, keys: &str) -> Daemon {
        let gateway = configuration_at(keys, &self.key());
        let start = || {
            wait_for_devices_to_go();
            Daemon::start(&gateway)
        };
        node.run(start).unwrap().unwrap_or_else(|error| panic!("{keys}: {error}"))
    }

    /// The control socket of a process.
    pub(super) fn socket(&self, node: &Namespace) -> PathBuf {
        self.0.0.join(node.name())
    }

    /// A process, which can be killed.
    pub(super) fn process(&self, node: &Namespace, keys: &str) -> Process {
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
pub(super) fn wait_for_attachments(mobile: &Daemon, resumed: u64) {
    for _ in 0..500 {
        if count(mobile, "attachments after which transfer resumed") >= resumed {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the base station does not answer");
}

pub(super) fn count(daemon: &Daemon, name: &str) -> u64 {
    daemon.boxes().unwrap().get(name).copied().unwrap_or(0)
}

/// The routes to the mobile host alone, of the calling thread's namespace.
pub(super) fn routes_to_the_host() -> String {
    let shown = [&V4, &V6].map(|of| {
        let show = ["route", "show", &format!("{}/{}", of.mobile, of.host())];
        let done = Command::new("ip").args(show).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    });
    shown.concat()
}
