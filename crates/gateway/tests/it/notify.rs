//! Mode `notify`: the router at the end of a link that damages packets tells their sources, and a gateway at the other
//! end of the link retransmits at once.

use crate::attack::wait_until;
use crate::common::{
    CLEAN, FAR, Folder, GATEWAY, Process, World, beside, beside_few, configuration_at, content,
};
use crate::process::Running;
use base::Seed;
use gateway::Daemon;
use gateway::doctor::{Severity, examine};
use live::{Netlink, Offload, Tun};
use scenario::IpVersion;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use wire::{Body, CopyId, CorruptionNotice, Icmp, Ip, Packet, SeqNumber};

/// A hop of 40 ms that damages 2 % of the full-sized packets to the user.
const DAMAGING: &str = "rate = \"20 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"200 packets\"\n\
                        backward = { errors = { bit = 1.7e-6 } }";

/// The gateway at the server's side, whose TCP over the hop takes losses for congestion, with these mechanisms.
fn sender(world: &World, mode: &str, mechanisms: &str) -> Daemon {
    let keys = format!(
        "mode = \"{mode}\"\ntcp = {{ congestion = \"cubic\", mechanisms = [{mechanisms}] }}\n"
    );
    world.gateway_at(FAR, "lan = \"link2\"\nwan = \"link1\"\n", &keys)
}

const ETEN: &str = "{ mechanism = \"eten\" }, { mechanism = \"guard\", trust = true }";

/// The router at the user's side.
fn reporter(world: &World, socket: &str) -> Daemon {
    let keys = format!("mode = \"notify\"\nlink_socket = \"{socket}\"\n");
    world.gateway_at(GATEWAY, HOP, &keys)
}

/// The interface of the router at the user's side.
const HOP: &str = "wan = \"link1\"\n";

fn count(daemon: &Daemon, name: &str) -> u64 {
    daemon.boxes().unwrap().get(name).copied().unwrap_or(0)
}

/// Where links report to the router at the user's side.
struct Link {
    folder: Folder,
}

impl Link {
    fn new(label: &str) -> Link {
        Link { folder: Folder::new(label) }
    }

    fn path(&self) -> PathBuf {
        self.folder.0.join("link.sock")
    }

    fn socket(&self) -> String {
        self.path().display().to_string()
    }

    /// A network whose hop reports there.
    fn world(&self, hop: &str, label: &str) -> Option<World> {
        World::pair_with_reports(hop, label, self.path())
    }
}

/// A connection of the user's, to which the server sends so many bytes.
fn download(world: &World, ip: IpVersion, bytes: usize) -> (TcpStream, thread::JoinHandle<()>) {
    let (listener, address) = world.listen(ip);
    let server = thread::spawn(move || {
        listener.accept().unwrap().0.write_all(&content(5, bytes)).unwrap();
    });
    (world.connect(address), server)
}

/// How long a download takes, of which every byte arrives.
#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn time_of_download(world: &World, ip: IpVersion, bytes: usize) -> Duration {
    let began = Instant::now();
    let (mut user, server) = download(world, ip, bytes);
    let mut got = Vec::new();
    user.read_to_end(&mut got).unwrap();
    let took = began.elapsed();
    assert!(got == content(5, bytes), "{} bytes of {bytes}", got.len());
    server.join().unwrap();
    took
}

#[test]
fn a_gateway_that_spoofs_and_is_told_of_damaged_packets_does_not_slow_down() {
    gain_by_notices("spoof", IpVersion::V4);
}

#[test]
fn a_gateway_that_splits_and_is_told_of_damaged_packets_does_not_slow_down() {
    gain_by_notices("split", IpVersion::V6);
}

fn gain_by_notices(mode: &str, ip: IpVersion) {
    beside_few(|| {
        const BYTES: usize = 4_000_000;
        let label = format!("notify-gain-{mode}");
        let link = Link::new(&label);
        let Some(world) = link.world(DAMAGING, &label) else { return };
        let router = reporter(&world, &link.socket());
        let gateway = sender(&world, mode, "");
        let without = time_of_download(&world, ip, BYTES);
        let sent = count(&router, "notices sent");
        assert!(sent > 10, "{sent} notices");
        gateway.stop();
        let gateway = sender(&world, mode, ETEN);
        let with = time_of_download(&world, ip, BYTES);
        let notices = count(&gateway, "notices of corruption");
        assert!(notices > 10, "{mode}: {notices} notices");
        assert_eq!(count(&gateway, "notices of corruption, incredible"), 0);
        assert!(with * 2 < without, "{mode}: {without:?} without, {with:?} with");
        gateway.stop();
        router.stop();
    });
}

/// A device of a node with one host, from which packets with any source come.
fn attacker(world: &World, node: usize) -> Tun {
    world.at(node, || {
        let tun = Tun::open("attack", Offload::None, 1500).unwrap();
        Netlink::open().unwrap().set_up("attack").unwrap();
        tun
    })
}

/// A notice about a segment from the server to the user.
fn forged(server: SocketAddr, user: SocketAddr, seq: u32, timestamp: Option<u32>) -> Vec<u8> {
    let notice = CorruptionNotice {
        source: server.ip(),
        destination: user.ip(),
        source_port: server.port(),
        destination_port: user.port(),
        seq: SeqNumber(seq),
        len: 1448,
        copy: CopyId::NONE,
        timestamp,
    };
    let body = Body::Icmp(Icmp::Corruption { notice, size: 56 });
    let ip = Ip::new(IpAddr::from([198, 51, 100, 7]), server.ip());
    let mut bytes = Vec::new();
    Packet { ip, body, ..Packet::BLANK }.emit(&[], &mut bytes).unwrap();
    bytes
}

#[test]
fn forged_notices_do_no_harm() {
    beside_few(|| {
        const BYTES: usize = 3_000_000;
        let link = Link::new("notify-forged");
        let Some(world) = link.world(DAMAGING, "notify-forged") else { return };
        let router = reporter(&world, &link.socket());
        let [near, far] = [GATEWAY, FAR].map(|node| attacker(&world, node));
        let keys = format!("tcp = {{ congestion = \"cubic\", mechanisms = [{ETEN}] }}");
        let interfaces = "lan = [\"link2\", \"attack\"]\nwan = \"link1\"\n";
        let gateway = world.gateway_at(FAR, interfaces, &keys);
        let undisturbed = time_of_download(&world, IpVersion::V4, BYTES);
        let mut random = Seed(7).stream("guesses");
        #[expect(clippy::disallowed_methods, reason = "it measures real time")]
        let began = Instant::now();
        let (mut user, server) = download(&world, IpVersion::V4, BYTES);
        let (ends, own) = (user.peer_addr().unwrap(), user.local_addr().unwrap());
        let reading = thread::spawn(move || {
            let mut got = Vec::new();
            user.read_to_end(&mut got).unwrap();
            (got, began.elapsed())
        });
        let mut sent = 0;
        while !reading.is_finished() {
            let guess = Some(random.bits() as u32);
            for (tun, timestamp) in [(&far, guess), (&near, guess), (&near, None)] {
                tun.write(&forged(ends, own, random.bits() as u32, timestamp)).unwrap();
            }
            sent += 1;
            thread::sleep(Duration::from_millis(1));
        }
        let (got, disturbed) = reading.join().unwrap();
        assert!(got == content(5, BYTES), "{} bytes of {BYTES}", got.len());
        server.join().unwrap();
        // From the side of the server, or without a timestamp; and guesses from beyond the hop.
        assert!(count(&gateway, "notices of corruption, incredible") > sent, "{sent}");
        assert!(count(&gateway, "notices of corruption") > sent / 2, "{sent}");
        assert!(disturbed < undisturbed * 2, "{undisturbed:?}, {disturbed:?} with {sent} notices");
        gateway.stop();
        router.stop();
    });
}

#[test]
fn garbage_at_the_link_socket_is_counted_and_stalls_nothing() {
    beside(|| {
        let link = Link::new("notify-garbage");
        let Some(world) = link.world(DAMAGING, "notify-garbage") else { return };
        let router = reporter(&world, &link.socket());
        let gateway = sender(&world, "spoof", ETEN);
        let agent = UnixDatagram::unbound().unwrap();
        let mut random = Seed(3).stream("garbage");
        let noise = |len: usize, random: &mut base::Random| -> Vec<u8> {
            (0..len).map(|_| random.bits() as u8).collect()
        };
        // The longest datagrams, too; each waits for the router to read the ones before it.
        let wrong = (0..2000).map(|number| [&[7], &noise(number % 300, &mut random)[..]].concat());
        for datagram in wrong.chain([vec![], vec![1], vec![1, 9, 0, 0], vec![1; 100_000]]) {
            agent.send_to(&datagram, link.path()).unwrap();
        }
        // Frames whose headers are anything at all, and a segment from nowhere.
        for number in 0..2000 {
            let headers = noise(20 + number % 80, &mut random);
            agent.send_to(&[&[1, 0, 0, 0], &headers[..]].concat(), link.path()).unwrap();
        }
        wait_until(|| router.counts().unwrap().refused >= 2004);
        time_of_download(&world, IpVersion::V4, 1_000_000);
        assert!(count(&router, "notices sent") > 5);
        gateway.stop();
        router.stop();
        assert!(!link.path().exists());
    });
}

#[test]
fn the_agent_of_the_book_reports_frames_and_counters() {
    beside(|| {
        let link = Link::new("notify-agent");
        let Some(world) = World::new(CLEAN, "notify-agent") else { return };
        let router = reporter(&world, &link.socket());
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/link_agent.py");
        let agent = Command::new("python3")
            .args([program, "lo", &link.socket()])
            .stdin(Stdio::piped())
            .spawn();
        let Ok(agent) = agent else {
            let _ = writeln!(std::io::stderr(), "SKIPPED the agent of the book: no python3");
            return;
        };
        let mut agent = Process(agent);
        let mut packet = Packet {
            ip: Ip::new(IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])),
            ..Packet::BLANK
        };
        packet.make_tcp();
        packet.payload.len = 1000;
        let mut bytes = Vec::new();
        packet.emit(&[7; 1000], &mut bytes).unwrap();
        let headers: String = bytes[..40].iter().map(|octet| format!("{octet:02x}")).collect();
        let mut input = agent.0.stdin.take().unwrap();
        write!(input, "{headers}\n\n").unwrap();
        drop(input);
        wait_until(|| count(&router, "damaged frames reported") == 2);
        assert_eq!(count(&router, "damaged frames without a segment"), 1);
        assert!(router.boxes().unwrap().contains_key("frames of the link received"));
        assert_eq!(router.counts().unwrap().refused, 0);
        router.stop();
    });
}

#[test]
fn while_the_reporter_is_killed_and_starts_again_downloads_go_on() {
    beside_few(|| {
        let folder = Link::new("notify-killed");
        let Some(world) = folder.world(DAMAGING, "notify-killed") else { return };
        let text = format!("{HOP}mode = \"notify\"\nlink_socket = \"{}\"\n", folder.socket());
        let router = Running::configured(&world, "notify-killed", &text);
        router.told("READY=1");
        let gateway = sender(&world, "spoof", ETEN);
        let (mut user, server) = download(&world, IpVersion::V4, 10_000_000);
        let mut got = vec![0; 2_000_000];
        user.read_exact(&mut got).unwrap();
        let before = count(&gateway, "notices of corruption");
        assert!(before > 5, "{before}");
        let router = router.killed(&world, || {
            let mut more = vec![0; 200_000];
            user.read_exact(&mut more).unwrap();
            got.extend(more);
        });
        router.told("READY=1");
        let again = count(&gateway, "notices of corruption");
        user.read_to_end(&mut got).unwrap();
        assert!(got == content(5, 10_000_000), "{} bytes", got.len());
        server.join().unwrap();
        let after = count(&gateway, "notices of corruption");
        assert!(after > again + 5, "{before}, {again}, {after}");
        gateway.stop();
        drop(router);
    });
}

#[test]
fn no_packet_of_others_passes_a_reporter_and_it_leaves_nothing_behind() {
    beside(|| {
        let link = Link::new("notify-rules");
        let Some(world) = World::new(CLEAN, "notify-rules") else { return };
        let rules = || world.at(GATEWAY, || Netlink::open().unwrap().rules());
        let before = rules();
        let router = reporter(&world, &link.socket());
        assert_eq!(rules(), before);
        time_of_download(&world, IpVersion::V4, 100_000);
        let counts = router.counts().unwrap();
        assert_eq!(counts.devices.map(|device| device.read), [0, 0]);
        router.stop();
        assert!(!link.path().exists());
    });
}

#[test]
fn the_examination_asks_for_an_address_of_notices_and_for_forwarding() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "notify-doctor") else { return };
        let gateway = configuration_at(HOP, "mode = \"notify\"");
        let found = || {
            let mut findings = world.at(GATEWAY, || examine(&gateway, false));
            findings.retain(|finding| finding.severity > Severity::Fine);
            findings
        };
        assert_eq!(found(), []);
        world.at(GATEWAY, || live::netlink::set_sysctl("net.ipv4.ip_forward", "0").unwrap());
        let about: Vec<_> = found().into_iter().map(|finding| finding.about).collect();
        assert_eq!(about, ["forwarding"]);
        world.at(GATEWAY, || {
            live::netlink::set_sysctl("net.ipv4.ip_forward", "1").unwrap();
            let mut flush = Command::new("ip");
            assert!(flush.args(["addr", "flush", "dev", "lo"]).status().unwrap().success());
        });
        let findings = found();
        let about: Vec<_> = findings.iter().map(|finding| finding.about.as_str()).collect();
        assert!(about.contains(&"address of notices"), "{findings:?}");
    });
}
