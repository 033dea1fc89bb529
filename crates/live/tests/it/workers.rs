//! A stack of several workers on the queues of one device, with the kernel as the peer.

use crate::common::permitted;
use base::{Duration, Seed, Time};
use host::{Host, Listener, Opening, Settings};
use live::stack::{self, Counts, Ended, Workers};
use live::{Clock, Error, Namespace, Netlink, Program, Socket, Stream, netlink};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::time::Duration as Span;
use tcp::{Config, Events};

const OURS: [&str; 2] = ["10.0.0.1", "fd00::1"];
const KERNELS: [&str; 2] = ["10.128.0.1", "fd01::1"];
const PATIENCE: Span = Span::from_secs(20);

fn ip(address: &str) -> IpAddr {
    address.parse().unwrap()
}

/// The bytes that a connection with this number carries.
fn pattern(number: u16, len: usize) -> Vec<u8> {
    (0..len as u32).map(|n| (n.wrapping_mul(n) >> 7) as u8 ^ number as u8).collect()
}

/// What a connection of ours reports.
#[derive(Debug, PartialEq)]
enum Report {
    /// A connection of this worker was accepted.
    Accepted(usize),
    /// A connection of this number got back the bytes that it had sent, or others.
    Whole(u16, bool),
    Ended(Events),
}

/// One end of a connection.
enum End {
    /// Sends back what it receives.
    Echo,
    /// Sends the bytes, and compares what comes back.
    Client { number: u16, bytes: Vec<u8>, sent: usize, digest: Sha256 },
    /// Sends as much as it can, and reads nothing.
    Burst(usize),
}

struct Side(End, Sender<Report>);

impl Program for Side {
    fn handle(&mut self, _: Time, socket: &mut Socket<'_>, events: Events) {
        match &mut self.0 {
            End::Echo => {
                let mut bytes = vec![0; socket.room()];
                let len = socket.read(&mut bytes);
                assert_eq!(socket.write(&bytes[..len]), len);
                if !socket.chunk().is_empty() {
                    // What is left is read once there is room.
                    assert_eq!(socket.write(&[0]), 0);
                } else if events.contains(Events::PEER_CLOSED) {
                    socket.close();
                }
            }
            End::Client { number, bytes, sent, digest } => {
                while let len @ 1.. = socket.chunk().len() {
                    digest.update(socket.chunk());
                    socket.consume(len);
                }
                *sent += socket.write(&bytes[*sent..]);
                if *sent == bytes.len() {
                    socket.close();
                }
                if events.contains(Events::PEER_CLOSED) {
                    let whole = digest.clone().finalize() == Sha256::digest(&bytes);
                    self.1.send(Report::Whole(*number, whole)).unwrap();
                }
            }
            End::Burst(left) => {
                *left -= socket.write(&vec![7; *left]);
            }
        }
        if events.contains(Events::CLOSED) {
            let _ = self.1.send(Report::Ended(events));
        }
    }
}

type Stack = Workers<Stream<Side>>;

/// Two workers; at port 7 they echo, at port 9 they send `burst` bytes. `memory` is the limit of
/// both.
fn start(
    namespace: &Namespace,
    memory: Option<u64>,
    burst: usize,
) -> (Stack, mpsc::Receiver<Report>) {
    let (sender, reports) = mpsc::channel();
    let workers = namespace.run(move || {
        netlink::prepare_node().unwrap();
        let netlink = Netlink::open().unwrap();
        for (address, prefix) in KERNELS.into_iter().zip([32, 128]) {
            netlink.add_address("lo", ip(address), prefix).unwrap();
        }
        let two = NonZeroUsize::new(2);
        let queues = stack::queues("host", 1500, 1000, &OURS.map(ip), two).unwrap();
        let make = |worker| {
            let mut host = Host::new(ip(OURS[0]), Seed(1).stream("host"));
            host.add_address(ip(OURS[1]));
            host.set(Settings { memory, ..Settings::default() });
            for port in [7, 9] {
                let sender = sender.clone();
                host.add_listener(Listener::new(port, move |_| {
                    sender.send(Report::Accepted(worker)).unwrap();
                    let end = if port == 7 { End::Echo } else { End::Burst(burst) };
                    let limit = burst.max(100_000) as u64;
                    (Config::default(), Stream::new(Side(end, sender.clone()), limit))
                }));
            }
            host
        };
        Workers::start(queues, Clock::start(), make).unwrap()
    });
    (workers.unwrap(), reports)
}

fn connect(namespace: &Namespace, to: &str, port: u16) -> TcpStream {
    let to = SocketAddr::new(ip(to), port);
    let stream = namespace.run(|| TcpStream::connect(to).unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends bytes to an echo and checks that they come back.
fn check_echo(stream: &TcpStream, number: u16, len: usize) {
    let bytes = pattern(number, len);
    let (mut reader, mut writer) = (stream, stream.try_clone().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| writer.write_all(&bytes).unwrap());
        let mut received = vec![0; len];
        reader.read_exact(&mut received).unwrap();
        assert_eq!(Sha256::digest(&received), Sha256::digest(&bytes), "connection {number}");
    });
}

/// An echo of the kernel's for so many connections.
fn kernel_echo(namespace: &Namespace, address: &str, connections: usize) -> u16 {
    let listen = || TcpListener::bind(SocketAddr::new(ip(address), 0)).unwrap();
    let listener = namespace.run(listen).unwrap();
    let port = listener.local_addr().unwrap().port();
    let echo = |mut stream: TcpStream| std::io::copy(&mut stream.try_clone().unwrap(), &mut stream);
    std::thread::spawn(move || {
        for _ in 0..connections {
            let (stream, _) = listener.accept().unwrap();
            std::thread::spawn(move || echo(stream));
        }
    });
    port
}

/// A connection of ours that sends bytes to an echo.
fn opening(to: &str, port: u16, number: u16, sender: &Sender<Report>) -> Opening<Stream<Side>> {
    let bytes = pattern(number, LEN);
    let client = End::Client { number, bytes, sent: 0, digest: Sha256::new() };
    Opening {
        at: Time::ZERO,
        remote: ip(to),
        remote_port: port,
        local: None,
        local_port: None,
        config: Config::default(),
        application: Stream::new(Side(client, sender.clone()), 100_000),
    }
}

/// Waits until so many connections of ours have got back what they sent.
fn wait_for(reports: &mpsc::Receiver<Report>, connections: u16) {
    let mut whole = Vec::new();
    while whole.len() < connections.into() {
        if let Report::Whole(number, is_whole) = reports.recv_timeout(PATIENCE).unwrap() {
            assert!(is_whole, "connection {number}");
            whole.push(number);
        }
    }
    whole.sort_unstable();
    assert!(whole.into_iter().eq(0..connections));
}

const LEN: usize = 300_000;

fn sum(ended: &[Ended<Stream<Side>>], of: impl Fn(&Counts) -> u64) -> u64 {
    ended.iter().map(|ended| of(&ended.counts)).sum()
}

#[test]
fn many_connections_of_both_directions_carry_every_byte() {
    if !permitted("workers-many") {
        return;
    }
    const EACH: u16 = 32;
    let namespace = Namespace::create("workers-many").unwrap();
    let (stack, reports) = start(&namespace, None, 0);
    let (sender, whole) = mpsc::channel();
    let echoes = KERNELS.map(|to| (to, kernel_echo(&namespace, to, EACH.into())));
    std::thread::scope(|scope| {
        for number in 0..EACH {
            let to = OURS[usize::from(number % 2)];
            let stream = connect(&namespace, to, 7);
            scope.spawn(move || check_echo(&stream, number, LEN));
            let (to, port) = echoes[usize::from(number % 2)];
            let opened = stack.connect(opening(to, port, number, &sender)).unwrap().unwrap();
            assert_eq!(opened.0, usize::from(number % 2), "workers take turns");
        }
        wait_for(&whole, EACH);
    });
    let accepted: Vec<_> = reports.try_iter().collect();
    for worker in [0, 1] {
        assert!(accepted.contains(&Report::Accepted(worker)), "worker {worker} has accepted none");
    }
    let ended = stack.stop(Duration::from_secs(5));
    println!("{:?}", ended.iter().map(|ended| ended.counts).collect::<Vec<_>>());
    assert_eq!(sum(&ended, |counts| counts.overflowed + counts.device.failed), 0);
    assert!(sum(&ended, |counts| counts.handed_over) > 0);
    for Ended { reset, host, .. } in ended {
        assert_eq!((reset, host.open_connections()), (0, 0));
    }
}

#[test]
fn the_kernel_steers_a_flow_to_its_worker_and_one_that_was_idle_comes_back() {
    if !permitted("workers-idle") {
        return;
    }
    const FLOWS: u16 = 32;
    for (version, ours) in OURS.into_iter().enumerate() {
        let namespace = Namespace::create("workers-idle").unwrap();
        let (stack, reports) = start(&namespace, None, 0);
        let streams: Vec<_> = (0..FLOWS).map(|_| connect(&namespace, ours, 7)).collect();
        let exchange = |len| {
            for (number, stream) in (0..).zip(&streams) {
                check_echo(stream, number, len);
            }
        };
        exchange(500_000);
        // The kernel forgets the queue of a flow after three seconds.
        std::thread::sleep(Span::from_secs(4));
        exchange(500_000);
        drop(streams);
        let ended = stack.stop(Duration::from_secs(5));
        let [handed_over, read] =
            [|c: &Counts| c.handed_over, |c: &Counts| c.device.read].map(|of| sum(&ended, of));
        println!("IPv{}: {handed_over} of {read} packets handed over", 4 + 2 * version);
        assert_eq!(sum(&ended, |counts| counts.overflowed + counts.device.failed), 0);
        // A SYN, and the first flight after the pause, for half of the flows.
        assert!((1..=10 * u64::from(FLOWS)).contains(&handed_over), "{handed_over} of {read}");
        assert!(read > 20 * u64::from(FLOWS));
        drop(reports);
    }
}

#[test]
fn a_local_port_of_the_callers_choice_is_its_owners() {
    if !permitted("workers-port") {
        return;
    }
    let namespace = Namespace::create("workers-port").unwrap();
    let (stack, _reports) = start(&namespace, None, 0);
    let (sender, whole) = mpsc::channel();
    let port = kernel_echo(&namespace, KERNELS[0], 20);
    let mut workers: Vec<_> = (0..20)
        .map(|number| {
            let opening = Opening {
                local_port: Some(2000 + number),
                ..opening(KERNELS[0], port, number, &sender)
            };
            stack.connect(opening).unwrap().unwrap().0
        })
        .collect();
    wait_for(&whole, 20);
    workers.sort_unstable();
    workers.dedup();
    assert_eq!(workers, [0, 1]);
}

#[test]
fn a_removed_device_ends_the_connections_of_all_workers() {
    if !permitted("workers-removed") {
        return;
    }
    let namespace = Namespace::create("workers-removed").unwrap();
    let (stack, reports) = start(&namespace, None, 0);
    let _streams: Vec<_> = (0..16).map(|_| connect(&namespace, OURS[0], 7)).collect();
    let open = stack.call_each(|_, host| host.open_connections()).unwrap();
    assert!(open.iter().all(|&open| open > 0), "{open:?}");
    stack.check().unwrap();
    let remove = || Command::new("ip").args(["link", "delete", "host"]).status();
    assert!(namespace.run(remove).unwrap().unwrap().success());
    let mut failed = 0;
    while failed < 16 {
        match reports.recv_timeout(PATIENCE).unwrap() {
            Report::Ended(events) => {
                assert_eq!(events, Events::UNREACHABLE | Events::CLOSED);
                failed += 1;
            }
            report => assert!(matches!(report, Report::Accepted(_)), "{report:?}"),
        }
    }
    while stack.hosts().iter().any(|host| host.check().is_ok()) {
        std::thread::sleep(Span::from_millis(1));
    }
    for error in [stack.check().unwrap_err(), stack.call_each(|_, _| ()).unwrap_err()] {
        assert!(matches!(&error, Error::DeviceRemoved(name) if name == "host"), "{error}");
    }
    for Ended { removed, reset, host, .. } in stack.stop(Duration::from_secs(100)) {
        assert_eq!((removed, reset, host.open_connections()), (true, 0, 0));
    }
}

#[test]
fn the_limit_of_memory_is_that_of_all_workers() {
    if !permitted("workers-memory") {
        return;
    }
    const LIMIT: u64 = 20_000_000;
    const BURST: usize = 1_000_000;
    const CONNECTIONS: usize = 40;
    // Each worker has half of the limit. Below three quarters of that a connection may still write all of
    // its burst; from there on each may write 64 KiB.
    const MOST: u64 = LIMIT * 3 / 4 + 2 * BURST as u64 + (CONNECTIONS << 16) as u64;
    const { assert!(MOST < LIMIT && (CONNECTIONS * BURST) as u64 > LIMIT * 3 / 2) };
    let namespace = Namespace::create("workers-memory").unwrap();
    let (stack, _reports) = start(&namespace, Some(LIMIT), BURST);
    // The peers read nothing.
    let streams: Vec<_> = (0..CONNECTIONS).map(|_| connect(&namespace, OURS[0], 9)).collect();
    let mut largest = 0;
    // For a while after it is in use, and until then for long.
    for poll in 0..2000 {
        std::thread::sleep(Span::from_millis(10));
        let of_each = stack.call_each(|_, host| host.memory()).unwrap();
        largest = largest.max(of_each.iter().sum());
        if poll >= 30 && largest >= LIMIT / 2 {
            break;
        }
    }
    assert!((LIMIT / 2..LIMIT).contains(&largest), "{largest}");
    // They get everything all the same.
    std::thread::scope(|scope| {
        for mut stream in streams {
            scope.spawn(move || stream.read_exact(&mut vec![0; BURST]).unwrap());
        }
    });
}
