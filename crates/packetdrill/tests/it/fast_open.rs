//! Data that opens a connection: `MSG_FASTOPEN` and `TCP_FASTOPEN_CONNECT`.

use core::net::{Ipv4Addr, SocketAddr};
use lasthop_packetdrill::{Family, Setup, Stack, Writing};
use rustix::io::Errno;
use std::fs;
use std::os::fd::RawFd;
use wire::{Body, FastOpenCookie, Flags, Packet};

/// Whether this machine permits clients of Fast Open, as is Linux's default.
fn is_permitted() -> bool {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").unwrap_or("1".to_owned());
    text.trim().parse::<u32>().is_ok_and(|flags| flags & 1 == 1)
}

fn server() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 8080)
}

fn sent(stack: &mut Stack) -> Packet {
    Packet::parse(&stack.sent().unwrap().bytes).unwrap().0
}

/// A stack that has a cookie of the server, by a connection that has written nothing.
fn known() -> (Stack, FastOpenCookie) {
    let mut stack = Stack::new(Setup::default());
    let fd = stack.socket(Family::Inet).unwrap();
    assert_eq!(stack.connect_with(fd, Ok(server()), &[0; 100], false), Err(Errno::INPROGRESS));
    let syn = sent(&mut stack);
    assert_eq!((syn.payload.len, syn.unparsed.fast_open()), (0, Some(FastOpenCookie::REQUEST)));
    let cookie = FastOpenCookie::new(&[7; 8]).unwrap();
    let answer = crate::common::answer(&syn, Flags::SYN | Flags::ACK, &[]);
    let mut answer = Packet::parse(&answer).unwrap().0;
    assert!(answer.unparsed.add_fast_open(&cookie));
    let mut bytes = Vec::new();
    answer.emit(&[], &mut bytes).unwrap();
    stack.receive(&bytes);
    assert_eq!(stack.connected(fd), Ok(()));
    sent(&mut stack);
    (stack, cookie)
}

fn assert_carries(stack: &mut Stack, len: u32, cookie: FastOpenCookie) {
    let syn = sent(stack);
    let Body::Tcp(segment) = syn.body else { panic!("not TCP") };
    assert_eq!((syn.payload.len, syn.unparsed.fast_open()), (len, Some(cookie)));
    assert_eq!(segment.flags, Flags::SYN, "Linux leaves PSH out");
}

fn socket(stack: &mut Stack) -> RawFd {
    stack.socket(Family::Inet).unwrap()
}

#[test]
fn the_first_data_goes_with_the_syn() {
    if !is_permitted() {
        return;
    }
    let (mut stack, cookie) = known();
    // A server that has announced no MSS has 536 bytes, and the options take 40.
    let fd = socket(&mut stack);
    assert_eq!(stack.connect_with(fd, Ok(server()), &[0; 2000], false), Ok(496));
    assert_carries(&mut stack, 496, cookie);
    assert_eq!(stack.write(fd, &[0; 10], Writing::default()), Err(Errno::AGAIN));
    assert_eq!(stack.connect_with(fd, Ok(server()), &[0], false), Err(Errno::ALREADY));
    // A call that waits takes all.
    let fd = socket(&mut stack);
    assert_eq!(stack.connect_with(fd, Ok(server()), &[0; 2000], true), Ok(2000));
    assert_carries(&mut stack, 496, cookie);
    assert_eq!(stack.connected(fd), Err(Errno::AGAIN));
}

#[test]
fn a_deferred_connect_ends_at_once_and_the_first_data_opens() {
    if !is_permitted() {
        return;
    }
    let (mut stack, cookie) = known();
    let fd = socket(&mut stack);
    let option = (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT);
    stack.set_option(fd, option, &1_i32.to_ne_bytes()).unwrap();
    stack.connect(fd, server()).unwrap();
    assert_eq!((stack.connected(fd), stack.has_sent()), (Ok(()), false));
    assert_eq!(stack.connect(fd, server()), Err(Errno::ISCONN));
    assert_eq!(stack.opens_by_data(fd, false), Ok(true));
    assert_eq!(stack.connect_with(fd, Err(Errno::FAULT), &[0; 100], false), Ok(100));
    assert_carries(&mut stack, 100, cookie);
    // Without a cookie it is an ordinary `connect`, whose SYN asks for one.
    let mut stack = Stack::new(Setup::default());
    let fd = socket(&mut stack);
    stack.set_option(fd, option, &1_i32.to_ne_bytes()).unwrap();
    stack.connect(fd, server()).unwrap();
    assert_carries(&mut stack, 0, FastOpenCookie::REQUEST);
}
