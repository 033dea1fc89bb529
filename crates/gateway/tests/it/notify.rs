//! Mode `notify`: the router at the end of a link that damages packets tells their sources, and a gateway at the other
//! end of the link retransmits at once.

use crate::attack::wait_until;
use crate::common::{FAR, Folder, GATEWAY, Process, SERVER, USER, World, alone, beside, content};
use gateway::Daemon;
use live::{Netlink, Offload, Tun};
use scenario::IpVersion;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
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
    world.gateway_at(GATEWAY, "wan = \"link1\"\n", &keys)
}

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
fn a_gateway_that_is_told_of_damaged_packets_does_not_slow_down() {
    alone(|| {
        const BYTES: usize = 4_000_000;
        for (mode, ip) in [("spoof", IpVersion::V4), ("split", IpVersion::V6)] {
            let link = Link::new("notify-gain");
            let Some(world) = link.world(DAMAGING, "notify-gain") else { return };
            let router = reporter(&world, &link.socket());
            let gateway = sender(&world, mode, "");
            let without = time_of_download(&world, ip, BYTES);
            let sent = count(&router, "notices sent");
            eprintln!("{:?} {:?}", router.boxes().unwrap(), router.counts().unwrap());
            assert!(sent > 10, "{sent} notices");
            gateway.stop();
            let gateway = sender(&world, mode, ETEN);
            let with = time_of_download(&world, ip, BYTES);
            let notices = count(&gateway, "notices of corruption");
            assert!(notices > 10, "{mode}: {notices} notices");
            assert_eq!(count(&gateway, "notices of corruption from elsewhere"), 0);
            eprintln!("{mode}: {without:?} without, {with:?} with {notices} notices");
            assert!(with * 2 < without, "{mode}: {without:?} without, {with:?} with");
            gateway.stop();
            router.stop();
        }
    });
}
