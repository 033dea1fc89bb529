//! A user, a gateway and a server, with programs at both ends.

use gateway::Daemon;
use live::Netlink;
use scenario::{Experiment, Gateway, IpVersion, Scenario, Source, Style};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use testbed::{Emulation, Error, LinkSockets, Outcome};

/// The user's node, the gateway's and the server's.
pub(crate) const USER: usize = 0;
pub(crate) const GATEWAY: usize = 1;
pub(crate) const SERVER: usize = 2;
/// In a world with a pair, the other gateway, behind which the server is.
pub(crate) const FAR: usize = 3;

/// The interfaces of the gateway's node.
pub(crate) const INTERFACES: &str = "lan = \"link0\"\nwan = \"link1\"\n";

/// A hop that loses nothing.
pub(crate) const CLEAN: &str = "rate = \"50 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"500 packets\"";

/// A fast LAN, and a hop with these keys.
fn path(hop: &str) -> String {
    format!(
        r#"title = "a gateway"
duration = "1 s"
[nodes]
user = {{}}
gateway = {{}}
server = {{}}
[[links]]
between = ["user", "gateway"]
rate = "200 Mbit/s"
delay = "1 ms"
queue = "1000 packets"
[[links]]
between = ["gateway", "server"]
{hop}
[[flows]]
from = "server"
to = "user"
stack = "linux"
traffic = "bulk"
"#
    )
}

/// A hop with these keys between two gateways.
fn path_of_pair(hop: &str) -> String {
    let path = path(hop).replace("server = {}\n", "server = {}\nfar = {}\n");
    let hop = "between = [\"gateway\", \"server\"]";
    let lan = "[[links]]\nbetween = [\"far\", \"server\"]\nrate = \"200 Mbit/s\"\ndelay = \"1 ms\"\n\
               queue = \"1000 packets\"\n[[flows]]";
    path.replace(hop, "between = [\"gateway\", \"far\"]").replace("[[flows]]", lan)
}

/// A scenario, read.
fn scenario(text: &str) -> Scenario {
    let source = Source::new(text, "path.toml");
    let scenario = Experiment::read(&source).and_then(|experiment| experiment.testbed_scenario());
    scenario.unwrap_or_else(|error| panic!("{}", error.render(Style::Plain)))
}

/// A user, a gateway and a server, of which only the gateway's kernel forwards so far.
pub(crate) struct World {
    emulation: Emulation,
}

impl World {
    /// Makes one with a hop that has these keys; `None`, and a word about it, where real packets are not
    /// permitted.
    pub(crate) fn new(hop: &str, label: &str) -> Option<World> {
        World::of(&path(hop), label)
    }

    /// The same with a gateway at either end of the hop.
    pub(crate) fn pair(hop: &str, label: &str) -> Option<World> {
        World::of(&path_of_pair(hop), label)
    }

    /// The same with a driver at the gateway's end of the hop that reports to a socket what arrives damaged.
    pub(crate) fn pair_with_reports(hop: &str, label: &str, socket: PathBuf) -> Option<World> {
        let link_sockets = LinkSockets::from([((1, "gateway".to_owned()), socket)]);
        World::start(&path_of_pair(hop), label, &link_sockets)
    }

    /// That of a scenario, whose nodes are in the order of [`USER`], [`GATEWAY`] and [`SERVER`].
    pub(crate) fn of(text: &str, label: &str) -> Option<World> {
        World::start(text, label, &LinkSockets::new())
    }

    fn start(text: &str, label: &str, link_sockets: &LinkSockets) -> Option<World> {
        match Emulation::start_with(&scenario(text), 1, label, link_sockets) {
            Ok(emulation) => Some(World { emulation }),
            Err(error @ (Error::Forbidden(_) | Error::Absent)) => {
                let test = thread::current().name().unwrap_or("a test").to_owned();
                // What is printed is not shown of tests that pass, but what is written is.
                let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Ends it. The result has what was counted.
    pub(crate) fn stop(self) -> Outcome {
        self.emulation.stop().unwrap()
    }

    /// Starts a gateway with these keys besides its interfaces.
    pub(crate) fn gateway(&self, keys: &str) -> Daemon {
        self.gateway_at(GATEWAY, INTERFACES, keys)
    }

    /// Starts a gateway with these interfaces and keys at a node.
    pub(crate) fn gateway_at(&self, node: usize, interfaces: &str, keys: &str) -> Daemon {
        let gateway = configuration_at(interfaces, keys);
        let start = || {
            wait_for_devices_to_go();
            Daemon::start(&gateway)
        };
        self.at(node, start).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The address of a node.
    pub(crate) fn address(&self, node: usize, ip: IpVersion) -> IpAddr {
        self.emulation.address(node, ip)
    }

    /// Calls `f` on a thread in the namespace of a node.
    pub(crate) fn at<T: Send>(&self, node: usize, f: impl FnOnce() -> T + Send) -> T {
        self.emulation.namespace(node).run(f).unwrap()
    }

    /// A listener at the server, and its address.
    pub(crate) fn listen(&self, ip: IpVersion) -> (TcpListener, SocketAddr) {
        let address = SocketAddr::new(self.emulation.address(SERVER, ip), 0);
        let listener = self.at(SERVER, || TcpListener::bind(address).unwrap());
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// A connection of the user's.
    pub(crate) fn connect(&self, to: SocketAddr) -> TcpStream {
        let stream = self.at(USER, || TcpStream::connect(to)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }
}

/// Waits until the devices of a gateway that has ended are gone from the calling thread's namespace. A program that
/// another test starts at this moment has copies of their descriptors, until it is executed.
pub(crate) fn wait_for_devices_to_go() {
    let netlink = Netlink::open().unwrap();
    let is_there = |name: &&str| netlink.index(name).is_ok();
    for _ in 0..500 {
        if !["lh-lan", "lh-wan"].iter().any(is_there) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("devices of a gateway are left");
}

/// The configuration of the gateway with these keys besides its interfaces.
pub(crate) fn configuration(keys: &str) -> Gateway {
    configuration_at(INTERFACES, keys)
}

/// One with these interfaces.
pub(crate) fn configuration_at(interfaces: &str, keys: &str) -> Gateway {
    let text = format!("{interfaces}{keys}\n");
    let gateway = Gateway::read(&Source::new(text, "gateway.toml"));
    gateway.unwrap_or_else(|error| panic!("{}", error.render(Style::Plain)))
}

/// A folder that is removed with all that is in it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(label: &str) -> Folder {
        static FOLDERS: AtomicUsize = AtomicUsize::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("lasthopd-{}-{number}-{label}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed with this.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many tests run at the same time: their threads need to be in time, but mostly wait for the packets of slow
/// links.
const PLACES: usize = 4;

/// The places that are taken.
static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// Places that are given back with this.
struct Places(usize);

impl Places {
    /// Waits for so many places.
    fn take(count: usize) -> Places {
        // Who waits for many of them is not passed by those who need few.
        static TURN: Mutex<()> = Mutex::new(());
        without_signals_of_children();
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |taken: &mut usize| *taken + count > PLACES;
        *FREED.wait_while(taken, full).unwrap_or_else(PoisonError::into_inner) += count;
        Places(count)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        FREED.notify_all();
    }
}

/// Keeps the signal that a child has ended from this thread, and from those that it starts: while a thread starts a
/// program, the kernel gives the signal to another thread, whose call with a timeout is interrupted.
fn without_signals_of_children() {
    #[expect(
        unsafe_code,
        reason = "rustix has no pthread_sigmask; a mask of signals is plain data"
    )]
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGCHLD);
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut()), 0);
    }
}

/// At the same time as a few others. What a test needs of the machine is in namespaces of its own, and in files of its
/// label.
pub(crate) fn beside<T>(f: impl FnOnce() -> T) -> T {
    let _place = Places::take(1);
    f()
}

/// At the same time as one other of these, or as two that are [`beside`] others: it mostly waits, and the times that it
/// measures are long beside those for which a thread waits for a processor.
pub(crate) fn beside_few<T>(f: impl FnOnce() -> T) -> T {
    let _places = Places::take(PLACES / 2);
    f()
}

/// While no other test runs: it measures times, or keeps the processors busy.
pub(crate) fn alone<T>(f: impl FnOnce() -> T) -> T {
    let _places = Places::take(PLACES);
    f()
}

/// Bytes that differ from those of another number at every place.
pub(crate) fn content(of: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|place| (place * 131 + place / 251 + of * 17) as u8).collect()
}

/// Both ends of a connection send so many bytes at the same time, close one after the other, and check what
/// they got.
pub(crate) fn exchange(world: &World, ip: IpVersion, [up, down]: [usize; 2]) {
    let (listener, address) = world.listen(ip);
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut copy = stream.try_clone().unwrap();
        let sending = thread::spawn(move || copy.write_all(&content(2, down)).unwrap());
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        assert!(got == content(1, up), "the server got {} bytes of {up}", got.len());
        sending.join().unwrap();
    });
    let mut stream = world.connect(address);
    let mut copy = stream.try_clone().unwrap();
    let sending = thread::spawn(move || {
        copy.write_all(&content(1, up)).unwrap();
        // The server may still send.
        copy.shutdown(Shutdown::Write).unwrap();
    });
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert!(got == content(2, down), "the user got {} bytes of {down}", got.len());
    sending.join().unwrap();
    server.join().unwrap();
}
