//! How a stack begins and ends, and what it does on its device.

use crate::common::permitted;
use base::{Duration, Seed, Time};
use host::{Host, HostIndication, Settings};
use live::stack::{self, Running, Stack};
use live::{Bytes, Clock, Error, Namespace, Netlink, Program, Socket, Stream, netlink};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration as Span;
use tcp::{Config, Events, ReceiveWindow};
use wire::{CorruptionNotice, Segment};

const OURS: &str = "10.0.0.1";
const OURS_V6: &str = "fd00::1";

/// Sends back what it receives; word by word, a while later, if it is slow.
struct Echo {
    wakes: Time,
    slow: bool,
}

impl Echo {
    fn answer(&mut self, socket: &mut Socket<'_>) {
        let mut bytes = vec![0; socket.room()];
        let len = socket.read(&mut bytes);
        assert_eq!(socket.write(&bytes[..len]), len);
        if !socket.chunk().is_empty() {
            // What is left is read once there is room.
            assert_eq!(socket.write(&[0]), 0);
        }
    }
}

impl Program for Echo {
    fn handle(&mut self, now: Time, socket: &mut Socket<'_>, events: Events) {
        if self.slow {
            self.wakes = now + Duration::from_micros(700);
        } else {
            self.answer(socket);
        }
        if events.contains(Events::PEER_CLOSED) && !self.slow {
            socket.close();
        }
    }

    fn next_wake(&self) -> Time {
        self.wakes
    }

    fn wake(&mut self, _: Time, socket: &mut Socket<'_>) {
        self.wakes = Time::NEVER;
        self.answer(socket);
    }
}

/// A host that echoes at port 7, and slowly at port 8; `limit` is the size of its buffers.
fn echo(namespace: &Namespace, limit: u32) -> Running<Stream<Echo>> {
    start(namespace, move |host| {
        host.set(Settings { keep_closed: true, ..Settings::default() });
        for (port, slow) in [(7, false), (8, true)] {
            host.listen(port, move || {
                let config = Config {
                    receive_window: ReceiveWindow::fixed(limit),
                    nagle: false,
                    ..Config::default()
                };
                (config, Stream::new(Echo { wakes: Time::NEVER, slow }, limit.into()))
            });
        }
    })
}

/// A host in a namespace.
fn start<P: Program + Send + 'static>(
    namespace: &Namespace,
    prepare: impl FnOnce(&mut Host<Stream<P>>) + Send,
) -> Running<Stream<P>> {
    let running = namespace.run(move || {
        netlink::prepare_node().unwrap();
        Netlink::open().unwrap().add_address("lo", "10.128.0.1".parse().unwrap(), 32).unwrap();
        let ours = [OURS, OURS_V6].map(|address| address.parse::<IpAddr>().unwrap());
        let tun = stack::device("host", 1500, 1000, &ours).unwrap();
        let mut host = Host::new(ours[0], Seed(1).stream("host"));
        host.add_address(ours[1]);
        prepare(&mut host);
        Stack::new(host, tun, Clock::start()).start().unwrap()
    });
    running.unwrap()
}

fn connect(namespace: &Namespace, port: u16) -> TcpStream {
    let stream = namespace.run(|| TcpStream::connect((OURS, port)).unwrap()).unwrap();
    stream.set_read_timeout(Some(Span::from_secs(20))).unwrap();
    stream
}

#[test]
fn it_ends_with_its_connections_and_its_device() {
    if !permitted("ends") {
        return;
    }
    let namespace = Namespace::create("ends").unwrap();
    let stack = echo(&namespace, 100_000);
    let mut streams: Vec<_> = (0..3).map(|_| connect(&namespace, 7)).collect();
    for stream in &mut streams {
        stream.write_all(b"hello").unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"hello");
    }
    // One ends by itself; the others are reset.
    let mut first = streams.remove(0);
    first.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(first.read(&mut [0]).unwrap(), 0);
    let ended = stack.stop(Duration::from_millis(200));
    assert_eq!((ended.reset, ended.counts.device.failed), (2, 0));
    assert_eq!(ended.host.connections().count(), 3);
    for mut stream in streams {
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    let counts = || Netlink::open().unwrap().counts("host");
    assert!(namespace.run(counts).unwrap().is_err_and(|e| matches!(e, Error::NoDevice(_))));
}

#[test]
fn a_kernel_that_routes_says_what_its_link_takes() {
    if !permitted("router") {
        return;
    }
    let [near, far] = ["near", "far"].map(|name| Namespace::create(name).unwrap());
    let stack = echo(&near, 100_000);
    // The router's end takes 1280 bytes, the client's end 1500: the client announces what fits there.
    let ends =
        ["link", "add", "out", "mtu", "1280", "type", "veth", "peer", "name", "in", "mtu", "1500"];
    let ends = ends.into_iter().chain(["netns", far.name()]);
    let made = near.run(|| Command::new("ip").args(ends).status().unwrap()).unwrap();
    assert!(made.success());
    for (namespace, device, addresses) in
        [(&near, "out", ["10.128.1.1", "fd01::1"]), (&far, "in", ["10.128.1.2", "fd01::2"])]
    {
        let set = || {
            if device == "in" {
                netlink::prepare_node().unwrap();
            }
            let netlink = Netlink::open().unwrap();
            netlink.set_up(device).unwrap();
            for (address, prefix) in addresses.into_iter().zip([24, 64]) {
                netlink.add_address(device, address.parse().unwrap(), prefix).unwrap();
            }
        };
        namespace.run(set).unwrap();
    }
    let routes = || {
        for args in [["-4", "10.0.0.0/24", "10.128.1.1"], ["-6", "fd00::/64", "fd01::1"]] {
            let [version, to, by] = args;
            let args = [version, "route", "add", to, "via", by];
            assert!(Command::new("ip").args(args).status().unwrap().success());
        }
    };
    far.run(routes).unwrap();
    for (address, mss) in [(OURS, 1228), (OURS_V6, 1208)] {
        let mut stream = far.run(|| TcpStream::connect((address, 7)).unwrap()).unwrap();
        stream.set_read_timeout(Some(Span::from_secs(20))).unwrap();
        for round in 0..6_u8 {
            let bytes: Vec<u8> = (0..50_000_u32).map(|n| (n >> 4) as u8 ^ round).collect();
            stream.write_all(&bytes).unwrap();
            let mut answer = vec![0; bytes.len()];
            stream.read_exact(&mut answer).unwrap();
            assert!(answer == bytes, "round {round}");
        }
        let of_last = |_, host: &mut Host<Stream<Echo>>| {
            host.connections().last().map(|(_, connection, _)| connection.info().mss)
        };
        assert_eq!(stack.call(of_last).unwrap(), Some(mss), "{address}");
    }
    let _ = stack.stop(Duration::ZERO);
}

#[test]
fn an_indication_from_another_thread_comes_to_the_host() {
    if !permitted("indicated") {
        return;
    }
    let namespace = Namespace::create("indicated").unwrap();
    let stack = echo(&namespace, 100_000);
    let [ours, theirs] = [OURS, "10.128.0.1"].map(|address| address.parse::<IpAddr>().unwrap());
    let notice = CorruptionNotice::about(ours, theirs, &Segment::default(), 1);
    let indications = stack.indications();
    std::thread::spawn(move || indications.send(HostIndication::Corruption(notice)))
        .join()
        .unwrap();
    // It is about no connection, and counted as that.
    assert_eq!(stack.call(|_, host| host.statistics().no_connection).unwrap(), 1);
    let late = stack.indications();
    let _ = stack.stop(Duration::ZERO);
    late.send(HostIndication::Corruption(notice));
}

#[test]
fn buffers_that_are_smaller_than_the_stream_hold_it_back() {
    if !permitted("small") {
        return;
    }
    let namespace = Namespace::create("small").unwrap();
    let stack = echo(&namespace, 5000);
    let mut stream = connect(&namespace, 7);
    let sent: Vec<u8> = (0..300_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    let (mut writer, bytes) = (stream.try_clone().unwrap(), sent.clone());
    let writing = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
    let mut received = vec![0; sent.len()];
    stream.read_exact(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == sent);
    drop(stream);
    assert_eq!(stack.stop(Duration::from_secs(5)).reset, 0);
}

/// Says which events its connection got.
struct Teller(mpsc::Sender<Events>);

impl Program for Teller {
    fn handle(&mut self, _: Time, _: &mut Socket<'_>, events: Events) {
        let _ = self.0.send(events);
    }
}

#[test]
fn a_removed_device_ends_the_stack_and_all_hear_of_it() {
    if !permitted("removed") {
        return;
    }
    let namespace = Namespace::create("removed").unwrap();
    let (told, events) = mpsc::channel();
    let stack = start(&namespace, move |host| {
        host.listen(7, move || (Config::default(), Stream::new(Teller(told.clone()), 100_000)));
    });
    let patience = Span::from_secs(20);
    let _stream = connect(&namespace, 7);
    assert_eq!(events.recv_timeout(patience).unwrap(), Events::CONNECTED);
    stack.check().unwrap();
    let remove = || Command::new("ip").args(["link", "delete", "host"]).status();
    assert!(namespace.run(remove).unwrap().unwrap().success());
    assert_eq!(events.recv_timeout(patience).unwrap(), Events::UNREACHABLE | Events::CLOSED);
    while stack.check().is_ok() {
        std::thread::sleep(Span::from_millis(1));
    }
    for result in [stack.check(), stack.call(|_, _| ())] {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::DeviceRemoved(name) if name == "host"), "{error}");
    }
    let ended = stack.stop(Duration::from_secs(100));
    assert!(ended.removed);
    assert_eq!((ended.reset, ended.host.open_connections()), (0, 0));
    assert!(ended.counts.slept < 100, "{:?}", ended.counts);
}

/// Sends as much as it can; then it is silent, and reads only what it is told to.
struct Burst(u64);

impl Program for Burst {
    fn handle(&mut self, _: Time, socket: &mut Socket<'_>, _: Events) {
        while self.0 > 0 {
            let block = [7; 10_000];
            let most = self.0.min(block.len() as u64) as usize;
            // Copies and buffers of its own in turn.
            let len = match self.0 % 20_000 {
                0 => socket.write_bytes(&mut Bytes::copy_from_slice(&block[..most])),
                _ => socket.write(&block[..most]),
            };
            self.0 -= len as u64;
            if len < most {
                return;
            }
        }
    }
}

/// What a host's connections take, and how many there are.
fn memory<P: Program + Send + 'static>(stack: &Running<Stream<P>>) -> (u64, usize) {
    stack.call(|_, host| (host.memory(), host.open_connections())).unwrap()
}

#[test]
fn memory_is_counted_and_given_back_after_a_burst() {
    if !permitted("burst") {
        return;
    }
    const SIZE: u64 = 2_000_000;
    let namespace = Namespace::create("burst").unwrap();
    let stack = start(&namespace, move |host| {
        let config = Config { receive_window: ReceiveWindow::fixed(1 << 20), ..Config::default() };
        host.listen(7, move || (config.clone(), Stream::new(Burst(SIZE), SIZE)));
    });
    let limit = stack.call(|_, host| host.settings().memory).unwrap();
    assert!(limit.is_some_and(|limit| limit > 1 << 20), "there is a limit: {limit:?}");
    let mut stream = connect(&namespace, 7);
    let wait = |what: &str, until: &dyn Fn(u64) -> bool| {
        for _ in 0..2000 {
            let (memory, connections) = memory(&stack);
            assert_eq!(connections, 1);
            if until(memory) {
                return memory;
            }
            std::thread::sleep(Span::from_millis(10));
        }
        panic!("{what}: {}", memory(&stack).0);
    };
    // It has written everything, and most of it cannot be sent.
    wait("its burst", &|memory| memory > SIZE / 4);
    let mut received = vec![0; SIZE as usize];
    stream.read_exact(&mut received).unwrap();
    assert!(received.iter().all(|&byte| byte == 7));
    let idle = wait("nothing is outstanding", &|memory| memory < 16_000);
    // The other way: unread bytes are counted, and given back when they are read.
    stream.write_all(&vec![1; 900_000]).unwrap();
    wait("unread bytes", &|memory| memory > 900_000);
    let read = |_, host: &mut Host<Stream<Burst>>| {
        let id = host.connections().next().unwrap().0;
        let read = |connection: &mut tcp::Connection, stream: &mut Stream<Burst>| {
            stream.using(connection, |_, socket| {
                let mut bytes = vec![0; 1_000_000];
                socket.read(&mut bytes)
            })
        };
        host.access(Time::ZERO, id, read).unwrap()
    };
    // Memory is more than bytes: not all of them need to have arrived.
    let mut bytes = 0;
    let whole = (0..2000).any(|_| {
        std::thread::sleep(Span::from_millis(10));
        bytes += stack.call(read).unwrap();
        bytes == 900_000
    });
    assert!(whole, "{bytes} bytes arrived");
    wait("all is read", &|memory| memory <= idle + 4096);
    drop(stack);
}

#[test]
fn memory_of_a_host_is_bounded_whatever_its_programs_write() {
    if !permitted("bounded") {
        return;
    }
    const LIMIT: u64 = 7_000_000;
    let namespace = Namespace::create("bounded").unwrap();
    let stack = start(&namespace, move |host| {
        host.set(Settings { memory: Some(LIMIT), ..host.settings() });
        let config = Config::default();
        host.listen(7, move || (config.clone(), Stream::new(Burst(2_000_000), 2_000_000)));
    });
    // The peers read nothing.
    let streams: Vec<_> = (0..8).map(|_| connect(&namespace, 7)).collect();
    let mut largest = 0;
    // For a while after it is in use, and until then for long.
    for poll in 0..2000 {
        std::thread::sleep(Span::from_millis(10));
        largest = largest.max(memory(&stack).0);
        if poll >= 30 && largest >= LIMIT * 3 / 4 {
            break;
        }
    }
    // Three write everything; then memory is scarce, and the others write a little each.
    assert!((LIMIT * 3 / 4..LIMIT).contains(&largest), "{largest}");
    // They get everything all the same.
    let readers = streams.into_iter().map(|mut stream| {
        std::thread::spawn(move || {
            let mut received = vec![0; 2_000_000];
            stream.read_exact(&mut received).unwrap();
        })
    });
    readers.collect::<Vec<_>>().into_iter().for_each(|reader| reader.join().unwrap());
    drop(stack);
}

#[test]
fn timers_are_kept_to_well_under_a_millisecond() {
    if !permitted("timers") {
        return;
    }
    let namespace = Namespace::create("timers").unwrap();
    let stack = echo(&namespace, 100_000);
    let mut stream = connect(&namespace, 8);
    stream.set_nodelay(true).unwrap();
    let clock = Clock::start();
    let mut spans: Vec<_> = (0..100)
        .map(|_| {
            let before = clock.now();
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            clock.now().since(before)
        })
        .collect();
    spans.sort();
    // No answer comes before the time; how long after it depends on the machine.
    assert!(spans[0] >= Duration::from_micros(700), "{:?}", spans[0]);
    println!("asked for 0.7 ms: median {:?}, 99 % {:?}", spans[50], spans[99]);
    drop(stream);
    drop(stack);
}

#[test]
fn events_are_recorded_and_calls_are_executed() {
    if !permitted("calls") {
        return;
    }
    let namespace = Namespace::create("calls").unwrap();
    let stack = echo(&namespace, 100_000);
    stack.call(|_, host| host.watch(true)).unwrap();
    assert_eq!(stack.call(|_, host| host.open_connections()).unwrap(), 0);
    let stream = connect(&namespace, 7);
    let tuple = stack.call(|_, host| {
        let id = host.connections().next().map(|(id, _, _)| id).unwrap();
        host.four_tuple(id).unwrap()
    });
    let tuple = tuple.unwrap();
    assert_eq!(tuple.remote_end(), stream.local_addr().unwrap());
    assert_eq!(tuple.local_end(), stream.peer_addr().unwrap());
    let _ = stack.stop(Duration::ZERO);
}
