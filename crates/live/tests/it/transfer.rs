//! Transfers of files to and from the kernel's TCP, in namespaces.

use crate::common::permitted;
use live::transfer::{Direction, Error, Failure, Peer, PeerEnd, Progress, Report, Transfer};
use live::{Namespace, Netlink, transfer};
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tcp::Config;

const KERNEL: [&str; 2] = ["10.128.0.1", "fd00:0:0:1::1"];

/// A namespace whose kernel has [`KERNEL`]'s addresses.
fn machine(what: &str) -> Option<Namespace> {
    if !permitted(what) {
        return None;
    }
    let namespace = Namespace::create(what).unwrap();
    let prepare = || {
        let netlink = Netlink::open().unwrap();
        netlink.set_up("lo").unwrap();
        for (address, prefix) in KERNEL.into_iter().zip([32, 128]) {
            netlink.add_address("lo", address.parse().unwrap(), prefix).unwrap();
        }
    };
    namespace.run(prepare).unwrap();
    Some(namespace)
}

fn listener(machine: &Namespace, v6: bool) -> (TcpListener, SocketAddr) {
    let address: IpAddr = KERNEL[usize::from(v6)].parse().unwrap();
    let listener = machine.run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// A transfer under way.
struct Running {
    cancelled: Arc<AtomicBool>,
    progress: Arc<Progress>,
    thread: JoinHandle<Result<Result<Report, Error>, live::Error>>,
}

fn start(machine: &Namespace, direction: Direction, file: OwnedFd, peer: Peer) -> Running {
    let config = Config::default();
    let transfer = Transfer { direction, file, peer, config, address: None, masquerade: false };
    let (cancelled, progress) = (Arc::new(AtomicBool::new(false)), Arc::new(Progress::default()));
    let (stop, seen) = (Arc::clone(&cancelled), Arc::clone(&progress));
    let run = move || transfer::run(transfer, &stop, &seen);
    Running { cancelled, progress, thread: machine.spawn("transfer", run).unwrap() }
}

impl Running {
    fn end(self) -> Result<Report, Error> {
        self.thread.join().unwrap().unwrap()
    }
}

fn pipe() -> (PipeReader, PipeWriter) {
    std::io::pipe().unwrap()
}

fn data(len: usize) -> Vec<u8> {
    (0..len as u64).map(|n| (n.wrapping_mul(n) >> 9) as u8).collect()
}

#[test]
fn what_comes_by_a_pipe_arrives_at_a_listener_whichever_side_is_slow() {
    let Some(machine) = machine("pipe-in") else { return };
    for v6 in [false, true] {
        let (listener, at) = listener(&machine, v6);
        let (from, mut into) = pipe();
        let running = start(&machine, Direction::Send, from.into(), Peer::Connect(at));
        let sent = data(30_000_000);
        let bytes = sent.clone();
        let writing = std::thread::spawn(move || {
            into.write_all(&bytes[..10]).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            into.write_all(&bytes[10..]).unwrap();
        });
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = vec![0; 10];
        // What was written is sent at once, not when a block is full.
        stream.read_exact(&mut received).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        stream.read_to_end(&mut received).unwrap();
        drop(stream);
        writing.join().unwrap();
        let report = running.end().unwrap();
        assert!(received == sent);
        assert_eq!((report.bytes, report.remote), (30_000_000, at));
        assert_eq!(report.peer_end, PeerEnd::Closed);
        assert!(report.min_rtt <= report.srtt && report.min_rtt.is_some());
    }
}

#[test]
fn a_reader_that_does_not_read_holds_the_peer_back_and_not_the_stack() {
    let Some(machine) = machine("pipe-out") else { return };
    let (listener, at) = listener(&machine, false);
    let (mut from, into) = pipe();
    let running = start(&machine, Direction::Receive, into.into(), Peer::Connect(at));
    let (mut stream, _) = listener.accept().unwrap();
    let sent = data(60_000_000);
    let bytes = sent.clone();
    let writing = std::thread::spawn(move || stream.write_all(&bytes).unwrap());
    std::thread::sleep(Duration::from_secs(1));
    // Blocks, the receive window and the kernel's send buffer are full, and nothing more is taken.
    let moved = running.progress.moved();
    assert!(moved < 2_000_000, "{moved}");
    assert!(!writing.is_finished());
    let mut received = Vec::new();
    from.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert_eq!(running.end().unwrap().bytes, 60_000_000);
    assert!(received == sent);
}

#[test]
fn a_cancelled_transfer_ends_though_its_file_blocks_and_resets_the_peer() {
    let Some(machine) = machine("cancelled") else { return };
    for direction in [Direction::Send, Direction::Receive] {
        let (listener, at) = listener(&machine, false);
        let (from, into) = pipe();
        let (file, kept): (OwnedFd, OwnedFd) = match direction {
            Direction::Send => (from.into(), into.into()),
            Direction::Receive => (into.into(), from.into()),
        };
        let running = start(&machine, direction, file, Peer::Connect(at));
        let (mut stream, _) = listener.accept().unwrap();
        if direction == Direction::Receive {
            // More than the pipe takes.
            stream.write_all(&data(500_000)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(300));
        running.cancelled.store(true, Ordering::Relaxed);
        assert!(matches!(running.end(), Err(Error::Cancelled)));
        let end = stream.read(&mut [0]).unwrap_err();
        assert_eq!(end.kind(), ErrorKind::ConnectionReset);
        drop(kept);
        let gone = || Netlink::open().unwrap().counts("lasthop0").is_err();
        assert!(machine.run(gone).unwrap());
    }
}

#[test]
fn the_first_that_connects_is_received_from_and_others_are_refused() {
    let Some(machine) = machine("listen") else { return };
    let (mut from, into) = pipe();
    let running = start(&machine, Direction::Receive, into.into(), Peer::Listen(7000));
    let listening = loop {
        let words = running.progress.take_words();
        if let Some(listening) = words.into_iter().find(|words| words.starts_with("listening")) {
            break listening;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(listening, "listening at 198.18.0.2:7000 and [2001:2::2]:7000");
    let connect = || TcpStream::connect("[2001:2::2]:7000");
    let mut first = machine.run(connect).unwrap().unwrap();
    first.write_all(b"hello").unwrap();
    let mut received = [0; 5];
    from.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"hello");
    let second = machine.run(connect).unwrap();
    assert_eq!(second.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    drop(first);
    assert_eq!(running.end().unwrap().bytes, 5);
}

#[test]
fn a_peer_that_does_not_close_has_everything_and_no_reset() {
    let Some(machine) = machine("open") else { return };
    let (listener, at) = listener(&machine, false);
    let (from, mut into) = pipe();
    let running = start(&machine, Direction::Send, from.into(), Peer::Connect(at));
    let (mut stream, _) = listener.accept().unwrap();
    into.write_all(b"hello").unwrap();
    drop(into);
    stream.write_all(b"unasked").unwrap();
    let report = running.end().unwrap();
    assert_eq!((report.bytes, report.discarded), (5, 7));
    assert_eq!(report.peer_end, PeerEnd::Open);
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"hello");
}

#[test]
fn a_reset_in_the_middle_is_an_error_with_what_was_acknowledged() {
    let Some(machine) = machine("reset") else { return };
    let (listener, at) = listener(&machine, false);
    let (from, mut into) = pipe();
    let running = start(&machine, Direction::Send, from.into(), Peer::Connect(at));
    let (mut stream, _) = listener.accept().unwrap();
    // The reader has a block for the pump when the reset comes, and goes on.
    let writing = std::thread::spawn(move || into.write_all(&data(30_000_000)));
    stream.read_exact(&mut vec![0; 100_000]).unwrap();
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
    let error = running.end().unwrap_err();
    let Error::Failed(Failure::Reset { peer, bytes }) = error else { panic!("{error}") };
    assert!(peer == at && bytes >= 100_000, "{bytes}");
    assert_eq!(writing.join().unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn how_a_connection_failed_is_said() {
    let Some(machine) = machine("failed") else { return };
    let (listener, at) = listener(&machine, false);
    drop(listener);
    let (from, _into) = pipe();
    let refused = start(&machine, Direction::Send, from.into(), Peer::Connect(at)).end();
    let refused = refused.unwrap_err();
    assert!(matches!(refused, Error::Failed(Failure::Refused(peer)) if peer == at), "{refused}");
    for (to, why) in [
        ("192.0.2.1:9", "there is no route to 192.0.2.1:9"),
        ("[::1]:9", "::1 is reached by the loopback device alone"),
        ("[fe80::1]:9", "give a global address"),
        ("0.0.0.0:9", "the address of no machine"),
    ] {
        let (from, _into) = pipe();
        let peer = Peer::Connect(to.parse().unwrap());
        let error = start(&machine, Direction::Send, from.into(), peer).end().unwrap_err();
        assert!(error.to_string().contains(why), "{to}: {error}");
    }
}
