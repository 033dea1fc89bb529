//! Modes `station` and `mobile`: a mobile host moves between base stations, and keeps its connections.

use crate::common::{Folder, alone, configuration_at, content, wait_for_devices_to_go};
use gateway::Daemon;
use live::Netlink;
use live::namespace::Namespace;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The address of the mobile host, and that of the server.
const MOBILE: &str = "198.18.9.9";
const SERVER: &str = "198.18.0.1";

/// A server, a router, base stations and a mobile host on one radio channel.
struct Network {
    server: Namespace,
    router: Namespace,
    stations: Vec<Namespace>,
    mobile: Namespace,
    /// The channel.
    _radio: Namespace,
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
    fn new(stations: u8) -> Option<Network> {
        let create = |what: &str| Namespace::create(what).ok();
        let Some(server) = create("server") else {
            eprintln!("SKIPPED: real packets are not permitted");
            return None;
        };
        let [router, mobile, radio] =
            ["router", "mobile", "radio"].map(|what| create(what).unwrap());
        let nodes: Vec<_> =
            (0..stations).map(|n| create(&format!("station{n}")).unwrap()).collect();
        for node in nodes.iter().chain([&server, &router, &mobile, &radio]) {
            node.run(|| Netlink::open().unwrap().set_up("lo").unwrap()).unwrap();
        }
        join((&server, "eth"), (&router, "server"));
        server
            .run(|| {
                ip(&format!("address add {SERVER}/24 dev eth"));
                ip("route add default via 198.18.0.2");
            })
            .unwrap();
        router
            .run(|| {
                set("net.ipv4.ip_forward", "1");
                ip("address add 198.18.0.2/24 dev server");
            })
            .unwrap();
        radio
            .run(|| {
                ip("link add dev channel type bridge");
                ip("link set dev channel up");
            })
            .unwrap();
        for (n, node) in nodes.iter().enumerate() {
            let (lan, air) = (format!("s{n}"), format!("a{n}"));
            join((node, "lan"), (&router, &lan));
            join((node, "air"), (&radio, &air));
            radio.run(|| ip(&format!("link set dev {air} master channel"))).unwrap();
            router.run(|| ip(&format!("address add 198.18.{}.2/24 dev {lan}", 10 + n))).unwrap();
            node.run(|| {
                set("net.ipv4.ip_forward", "1");
                ip(&format!("address add 198.18.{}.1/24 dev lan", 10 + n));
                ip(&format!("address add 198.18.9.{}/24 dev air", 1 + n));
                ip(&format!("route add default via 198.18.{}.2", 10 + n));
            })
            .unwrap();
            // By which one station finds another one.
            router
                .run(|| ip(&format!("route add 198.18.9.{}/32 via 198.18.{}.1", 1 + n, 10 + n)))
                .unwrap();
        }
        for (n, node) in nodes.iter().enumerate() {
            for other in (0..nodes.len()).filter(|&other| other != n) {
                let via = format!("route add 198.18.9.{}/32 via 198.18.{}.2", 1 + other, 10 + n);
                node.run(|| ip(&via)).unwrap();
            }
        }
        join((&mobile, "air"), (&radio, "m"));
        radio.run(|| ip("link set dev m master channel")).unwrap();
        mobile
            .run(|| {
                set("net.ipv4.conf.all.arp_notify", "1");
                ip(&format!("address add {MOBILE}/24 dev air"));
            })
            .unwrap();
        Some(Network { server, router, stations: nodes, mobile, _radio: radio })
    }

    /// The mobile host goes to a base station, and its packets follow.
    fn roam(&self, station: usize) {
        self.router
            .run(|| ip(&format!("route replace {MOBILE}/32 via 198.18.{}.1", 10 + station)))
            .unwrap();
        self.mobile
            .run(|| ip(&format!("route replace default via 198.18.9.{}", 1 + station)))
            .unwrap();
    }

    fn start(&self, folder: &Folder) -> (Vec<Daemon>, Daemon) {
        let key = folder.0.join("network.key");
        gateway::make_network_key(&key).unwrap();
        let keys = |mode: &str| format!("mode = \"{mode}\"\nnetwork_key = \"{}\"", key.display());
        let start = |node: &Namespace, interfaces: &str, mode: &str| {
            let gateway = configuration_at(interfaces, &keys(mode));
            node.run(|| {
                wait_for_devices_to_go();
                Daemon::start(&gateway)
            })
            .unwrap()
            .unwrap_or_else(|error| panic!("{mode}: {error}"))
        };
        let station = |node| start(node, "lan = \"lan\"\nwan = \"air\"\n", "station");
        let stations = self.stations.iter().map(station).collect();
        (stations, start(&self.mobile, "wan = \"air\"\n", "mobile"))
    }
}

fn count(daemon: &Daemon, name: &str) -> u64 {
    daemon.boxes().unwrap().get(name).copied().unwrap_or(0)
}

#[test]
fn a_download_and_an_upload_go_on_through_handoffs_between_three_base_stations() {
    alone(|| {
        let Some(network) = Network::new(3) else { return };
        let folder = Folder::new("roaming");
        network.roam(0);
        let (stations, mobile) = network.start(&folder);
        let listener = network.server.run(|| TcpListener::bind((SERVER, 80)).unwrap()).unwrap();
        const LEN: usize = 3_000_000;
        let serving = thread::spawn(move || {
            let (mut stream, from) = listener.accept().unwrap();
            assert_eq!(from.ip().to_string(), MOBILE);
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
        let address: SocketAddr = format!("{SERVER}:80").parse().unwrap();
        let mut stream = network.mobile.run(|| TcpStream::connect(address).unwrap()).unwrap();
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
        // The host's settings are as they were, and the base stations have no routes to it.
        network
            .mobile
            .run(move || {
                mobile.stop();
                let netlink = Netlink::open().unwrap();
                assert!(netlink.rules().is_empty());
                assert!(netlink.all_rules().iter().any(|rule| rule.priority == 0));
                let forwarding = fs::read_to_string("/proc/sys/net/ipv4/conf/air/forwarding");
                assert_eq!(forwarding.unwrap().trim(), "0");
            })
            .unwrap();
        for station in &network.stations {
            station
                .run(|| {
                    let route = Netlink::open().unwrap().route_to(MOBILE.parse().unwrap()).unwrap();
                    assert_eq!(route.device, "air");
                    let done = Command::new("ip").args(["route", "show", MOBILE]).output().unwrap();
                    assert!(done.stdout.is_empty(), "{}", String::from_utf8_lossy(&done.stdout));
                })
                .unwrap();
        }
    });
}
