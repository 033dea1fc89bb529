//! Links in real time, as sockets of the kernel see them. Times are never asserted to be short: a
//! busy machine is late, and says so. That nothing is early is.

use crate::common::permitted;
use crate::pair::{ADDRESSES, Pair};
use base::{Duration, Rate, Seed, Time};
use host::{Boxes, Context, HostIndication, LinkEvent, Middlebox, Port};
use link::{Config, ErrorModel, Fate, Impairments, Link, Output, Uniform};
use live::emulator::{Corruption, Direction, Node, Surroundings, Verdict};
use live::{Clock, Error, Namespace, Netlink};
use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use tcp::Connectivity;
use wire::{Body, Packet};

/// Bytes of a packet that carries a number by IPv4.
const LEN: u32 = 20 + 8 + 4;

fn plain(config: Config) -> Direction {
    Direction { config, ..Direction::default() }
}

fn lossy(bit: f64, packet: f64) -> Config {
    let errors = ErrorModel::from(Uniform { bit, packet });
    Config { errors, delay: Duration::from_millis(5), ..Config::default() }
}

fn socket(namespace: &Namespace, node: usize, family: usize) -> UdpSocket {
    let address: IpAddr = ADDRESSES[node][family].parse().unwrap();
    let socket = namespace.run(|| UdpSocket::bind((address, 7000)).unwrap()).unwrap();
    // Nothing takes longer, but for what never comes.
    socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    socket
}

/// The sockets of both nodes, each of which sends to the other.
fn sockets(pair: &Pair, family: usize) -> [UdpSocket; 2] {
    let sockets = [0, 1].map(|node| socket(&pair.nodes[node], node, family));
    for node in [0, 1] {
        sockets[node].connect(sockets[1 - node].local_addr().unwrap()).unwrap();
    }
    sockets
}

/// Sends numbers, no more than fit into a socket's buffer, and returns those that arrive until one arrives that is none of them.
fn numbers([from, to]: &[UdpSocket; 2], count: u32) -> Vec<u32> {
    for number in 0..count {
        from.send(&number.to_be_bytes()).unwrap();
    }
    let mut bytes = [0; 4];
    let mut found = Vec::new();
    // What ends it may be lost as well.
    std::thread::scope(|scope| {
        let (stop, stopped) = channel::<()>();
        scope.spawn(move || {
            while stopped.recv_timeout(std::time::Duration::from_millis(20)).is_err() {
                from.send(&u32::MAX.to_be_bytes()).unwrap();
            }
        });
        loop {
            assert_eq!(to.recv(&mut bytes).unwrap(), 4);
            match u32::from_be_bytes(bytes) {
                u32::MAX => break,
                number => found.push(number),
            }
        }
        stop.send(()).unwrap();
    });
    found
}

/// What happens to the first packets of a direction, whenever they are sent.
fn fates(config: &Config, count: u32) -> Vec<Fate> {
    let mut link = Link::<u32>::new(config, Seed(5), "link.a->b");
    let mut fates = vec![Fate::Lost; count as usize];
    for number in 0..count {
        link.enqueue(Time::ZERO, number, LEN, wire::Ecn::NotCapable).unwrap();
    }
    while link.next_event() < Time::NEVER {
        if let Some(Output::Arrived(arrival)) = link.wake(link.next_event()) {
            fates[arrival.packet as usize] = arrival.fate;
        }
    }
    fates
}

fn intact(config: &Config, count: u32) -> Vec<u32> {
    let fates = fates(config, count);
    (0..count).filter(|&number| fates[number as usize] == Fate::Intact).collect()
}

#[test]
fn no_packet_is_earlier_than_rate_and_delay_permit() {
    if !permitted("early") {
        return;
    }
    let config = Config {
        rate: Rate::from_bps(1_000_000),
        delay: Duration::from_millis(10),
        ..Config::default()
    };
    let directions = [plain(config.clone()), plain(config)];
    let pair = Pair::new("early", directions, Seed(1)).unwrap();
    let pairs = [0, 1].map(|family| sockets(&pair, family));
    let running = pair.emulator.start().unwrap();
    let clock = Clock::start();
    let mut shortest = Duration::MAX;
    for [near, far] in &pairs {
        let headers = if near.local_addr().unwrap().is_ipv4() { 28 } else { 48 };
        for len in [1000, 10] {
            for _ in 0..5 {
                let mut buffer = [0; 1000];
                let start = clock.now();
                near.send(&buffer[..len]).unwrap();
                far.recv(&mut buffer).unwrap();
                far.send(&buffer[..len]).unwrap();
                near.recv(&mut buffer).unwrap();
                let taken = clock.now().since(start);
                let model = Duration::from_micros(20_000 + 2 * 8 * (len as u64 + headers));
                assert!(taken >= model, "{taken} instead of {model}");
                shortest = shortest.min(taken - model);
            }
        }
    }
    let report = running.stop().unwrap();
    eprintln!("at best {shortest} more than rate and delay, both ways; {:?}", report.verdict());
    assert_eq!([0, 1].map(|direction| report.directions[direction].written), [20, 20]);
    assert_eq!(report.directions[0].lateness.count(), 20);
}

#[test]
fn a_seeded_link_loses_the_same_packets_again_and_as_in_the_lab() {
    if !permitted("loss") {
        return;
    }
    let expected = intact(&lossy(0.0, 0.1), 200);
    assert!((150..200).contains(&expected.len()));
    for _ in 0..2 {
        let directions = [plain(lossy(0.0, 0.1)), plain(Config::default())];
        let pair = Pair::new("loss", directions, Seed(5)).unwrap();
        let sockets = sockets(&pair, 0);
        let _running = pair.emulator.start().unwrap();
        assert_eq!(numbers(&sockets, 200), expected);
    }
}

#[test]
fn flipped_bits_are_seen_by_the_kernels_checksums() {
    if !permitted("flips") {
        return;
    }
    let config = lossy(1e-3, 0.0);
    let pair =
        Pair::new("flips", [plain(config.clone()), plain(Config::default())], Seed(5)).unwrap();
    let sockets = sockets(&pair, 0);
    let running = pair.emulator.start().unwrap();
    let found = numbers(&sockets, 200);
    // The numbers that arrive are right. (Some bits of a header are covered by nothing that the
    // kernel looks at, its own checksum covers all of IPv4's.)
    assert_eq!(found, intact(&config, 200));
    let forward = &running.stop().unwrap().directions[0];
    assert!(forward.link.corrupted > 20 && forward.failed == 0);
    assert_eq!(forward.written + forward.refused + forward.unfinished, forward.read);
}

/// Answers every packet that was damaged with one to its sender.
struct Answers(Sender<(u32, Packet)>);

impl Middlebox for Answers {
    fn link(&mut self, _: Time, Port(direction): Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        let LinkEvent::Corrupted(packet) = event else { return };
        let _ = self.0.send((direction, *packet));
        let mut answer = *packet;
        (answer.ip.source, answer.ip.destination) = (packet.ip.destination, packet.ip.source);
        answer.payload.len = 0;
        cx.send(answer);
        cx.indicate(CHANGE);
    }
}

/// What the box indicates to its host.
const CHANGE: HostIndication =
    HostIndication::Connectivity { change: Connectivity::Ending, peers: Vec::new() };

/// Indications are passed on.
struct Back(Sender<(usize, HostIndication)>);

impl Surroundings for Back {
    fn indicate(&mut self, node: usize, indication: HostIndication) {
        let _ = self.0.send((node, indication));
    }
}

#[test]
fn a_damaged_packet_may_be_reported_instead_and_the_node_answers() {
    if !permitted("reports") {
        return;
    }
    // Not one in a million survives.
    let direction = Direction { corruption: Corruption::Drop, ..plain(lossy(0.5, 0.0)) };
    let mut pair = Pair::new("reports", [direction, plain(Config::default())], Seed(5)).unwrap();
    let (report, reported) = channel();
    let mut boxes = Boxes::default();
    boxes.add(Box::new(Answers(report)));
    for (node, boxes) in [Boxes::default(), boxes].into_iter().enumerate() {
        let addresses = ADDRESSES[node].iter().map(|address| address.parse().unwrap()).collect();
        pair.emulator.set_node(node, Node { addresses, boxes });
    }
    let (indicate, indicated) = channel();
    pair.emulator.surround(Box::new(Back(indicate)));
    let pairs = [0, 1].map(|family| sockets(&pair, family));
    let running = pair.emulator.start().unwrap();
    for [near, _] in &pairs {
        near.send(b"damaged").unwrap();
        let (direction, packet) = reported.recv().unwrap();
        assert_eq!((direction, packet.payload.len), (0, 7));
        assert_eq!(indicated.recv().unwrap(), (1, CHANGE));
        assert_eq!(packet.ip.source, near.local_addr().unwrap().ip());
        assert!(matches!(packet.body, Body::Udp(_)));
        assert_eq!(near.recv(&mut [0; 10]).unwrap(), 0);
    }
    let report = running.stop().unwrap();
    assert_eq!((report.directions[0].reported, report.injected), (2, 2));
    assert_eq!((report.directions[0].written, report.directions[1].written), (0, 2));
}

#[test]
fn copies_arrive_besides_the_originals() {
    if !permitted("copies") {
        return;
    }
    let impairments = Impairments { duplication: 1.0, ..Impairments::default() };
    let twice = plain(Config { impairments, ..Config::default() });
    let pair = Pair::new("copies", [twice, plain(Config::default())], Seed(1)).unwrap();
    let sockets = sockets(&pair, 0);
    let running = pair.emulator.start().unwrap();
    let found = numbers(&sockets, 50);
    assert_eq!(found, (0..50).flat_map(|number| [number; 2]).collect::<Vec<_>>());
    let forward = &running.stop().unwrap().directions[0];
    assert_eq!(forward.written, 2 * (forward.read - forward.unfinished) + forward.unfinished);
}

#[test]
fn what_the_kernel_drops_makes_a_run_void() {
    if !permitted("void") {
        return;
    }
    let pair = Pair::new("void", Default::default(), Seed(1)).unwrap();
    let sockets = sockets(&pair, 0);
    pair.nodes[0].run(|| Netlink::open()?.set_queue_length("link0", 10)).unwrap().unwrap();
    // The emulator has not begun to read.
    for _ in 0..15 {
        let _ = sockets[0].send(b"early");
    }
    let running = pair.emulator.start().unwrap();
    for _ in 0..10 {
        sockets[1].recv(&mut [0; 10]).unwrap();
    }
    let report = running.stop().unwrap();
    assert_eq!((report.directions[0].read, report.directions[0].kernel_dropped), (10, 5));
    let Verdict::Void(why) = report.verdict() else { panic!("a third was lost") };
    assert!(why.contains("from node 0 to node 1, 33.3 % of 10 packets"), "{why}");
}

#[test]
fn a_removed_device_ends_the_run_with_an_error() {
    if !permitted("gone") {
        return;
    }
    let pair = Pair::new("gone", Default::default(), Seed(1)).unwrap();
    let running = pair.emulator.start().unwrap();
    running.check().unwrap();
    let remove = || Command::new("ip").args(["link", "delete", "link0"]).status();
    assert!(pair.nodes[1].run(remove).unwrap().unwrap().success());
    while running.check().is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    for error in [running.check().unwrap_err(), running.stop().unwrap_err()] {
        assert!(matches!(&error, Error::DeviceRemoved(name) if name == "link0"), "{error}");
    }
}

#[test]
fn an_emulator_ends_when_it_is_dropped_and_nothing_is_left() -> Result<(), Error> {
    if !permitted("end") {
        return Ok(());
    }
    let far = plain(Config { delay: Duration::from_secs(100), ..Config::default() });
    let pair = Pair::new("end", [far.clone(), far], Seed(1))?;
    let [near, _] = sockets(&pair, 0);
    let namespaces = pair.nodes;
    near.send(b"never to arrive").unwrap();
    let running = pair.emulator.start()?;
    drop(running);
    // The devices are gone, and so are the routes that led there: soon, because a program that
    // another test starts just now has them open until it is loaded.
    let gone = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        near.send(b"nowhere to go").is_err()
    });
    assert!(gone);
    let names = namespaces.each_ref().map(|namespace| namespace.name().to_owned());
    drop(namespaces);
    let left = live::namespace::list()?;
    assert!(!left.iter().any(|listed| names.contains(&listed.name)));
    Ok(())
}
