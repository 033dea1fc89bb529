//! Calls that block, on the second of two threads, as packetdrill makes them.

use base::Duration;
use core::net::{Ipv4Addr, SocketAddr};
use lasthop_packetdrill::{Family, Reading, Setup, Shared, Stack};
use rustix::io::Errno;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use wire::{Flags, Packet};

const PEER: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 80);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The peer answers a segment of the stack.
fn answer(shared: &Shared, to: &[u8], flags: Flags, bytes: &[u8]) {
    let (packet, _) = Packet::parse(to).unwrap();
    shared.receive(&crate::common::answer(&packet, flags, bytes));
}

/// A socket whose connection is established by a thread of its own, which then does `call`.
fn with_thread<T: Send>(
    call: impl FnOnce(&Shared, RawFd) -> T + Send,
    script: impl FnOnce(&Shared, &[u8]),
) -> T {
    let shared = Shared::new(Stack::new(Setup::default()));
    let fd = shared.call(|stack| stack.socket(Family::Inet)).unwrap();
    let connecting = AtomicBool::new(false);
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            shared.call(|stack| stack.connect(fd, PEER)).unwrap();
            connecting.store(true, Ordering::Release);
            shared.wait_for(true, None, |stack| stack.connected(fd)).unwrap();
            call(&shared, fd)
        });
        while !connecting.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let syn = shared.sent().unwrap();
        shared.sleep(millis(100));
        answer(&shared, &syn.bytes, Flags::SYN | Flags::ACK, b"");
        let ack = shared.sent().unwrap();
        script(&shared, &ack.bytes);
        thread.join().unwrap()
    })
}

/// The main thread plays on only once the other waits: as packetdrill makes sure.
fn until_parked(shared: &Shared) {
    while !shared.is_waiting() {
        thread::yield_now();
    }
}

#[test]
fn a_read_ends_when_the_data_arrives_and_knows_the_time() {
    let (text, at) = with_thread(
        |shared, fd| {
            let mut bytes = [0; 10];
            let read = |stack: &mut Stack| stack.read(fd, &mut bytes, Reading::default());
            let length = shared.wait_for(true, None, read).unwrap();
            (bytes[..length].to_vec(), shared.time())
        },
        |shared, ack| {
            until_parked(shared);
            shared.sleep(millis(500));
            answer(shared, ack, Flags::ACK, b"hello");
            // The thread may ask for the time only when much more has gone by.
            shared.sleep(millis(5000));
        },
    );
    assert_eq!(text, b"hello");
    assert_eq!(at.as_nanos() / 1_000_000, 600);
}

#[test]
fn a_wait_with_a_timeout_ends_in_time() {
    let (result, at) = with_thread(
        |shared, fd| {
            let mut bytes = [0; 10];
            let read = |stack: &mut Stack| stack.read(fd, &mut bytes, Reading::default());
            let result = shared.wait_for(true, Some(millis(300)), read);
            (result, shared.time())
        },
        |shared, _| {
            until_parked(shared);
            shared.sleep(millis(5000));
        },
    );
    assert_eq!(result, Err(Errno::AGAIN));
    assert_eq!(at.as_nanos() / 1_000_000, 400);
}

#[test]
fn the_thread_that_moves_the_time_never_waits() {
    let shared = Shared::new(Stack::new(Setup::default()));
    let fd = shared.call(|stack| stack.socket(Family::Inet)).unwrap();
    shared.call(|stack| stack.connect(fd, PEER)).unwrap();
    assert_eq!(shared.wait_for(true, None, |stack| stack.connected(fd)), Err(Errno::AGAIN));
}

#[test]
fn time_goes_on_whenever_it_is_asked_for() {
    let shared = Shared::new(Stack::new(Setup::default()));
    let times: Vec<_> = (0..3).map(|_| shared.time().as_nanos()).collect();
    assert_eq!(times, [1000, 2000, 3000]);
}

#[test]
fn a_stack_that_has_nothing_to_send_is_not_waited_for_for_ever() {
    let shared = Shared::new(Stack::new(Setup::default()));
    assert_eq!(shared.sent(), None);
}
