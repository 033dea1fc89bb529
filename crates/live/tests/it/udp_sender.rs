//! Datagrams that leave by few calls arrive as if each had been sent alone.

use crate::common::permitted;
use live::{Namespace, Netlink, UdpSender};
use nix::sys::socket::{setsockopt, sockopt::UdpGroSegment};
use proptest::prelude::*;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

fn socket(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

fn on(ip: impl Into<core::net::IpAddr>) -> SocketAddr {
    SocketAddr::new(ip.into(), 0)
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 16];
    let len = socket.recv(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

/// Datagrams with these lengths, each with bytes of its own.
fn datagrams(lens: impl IntoIterator<Item = usize>) -> impl Iterator<Item = Vec<u8>> {
    (0_u32..).zip(lens).map(|(n, len)| (0..len).map(|at| (n * 31 + at as u32) as u8).collect())
}

/// Sends three of 1000 bytes and one of 500 to a socket that takes what the kernel has together. Returns the lengths of what arrives.
fn arrive_together(flush_each: bool) -> io::Result<Vec<usize>> {
    let to = socket(on(Ipv4Addr::LOCALHOST));
    setsockopt(&to, UdpGroSegment, &true)?;
    let mut sender = UdpSender::new(socket(on(Ipv4Addr::LOCALHOST)));
    for datagram in datagrams([1000, 1000, 1000, 500]) {
        sender.send(&datagram, to.local_addr()?)?;
        if flush_each {
            sender.flush()?;
        }
    }
    sender.flush()?;
    let mut lens = Vec::new();
    while lens.iter().sum::<usize>() < 3500 {
        lens.push(receive(&to).len());
    }
    Ok(lens)
}

#[test]
fn those_of_one_length_leave_together() {
    assert_eq!(arrive_together(false).unwrap(), [3500]);
    assert_eq!(arrive_together(true).unwrap(), [1000, 1000, 1000, 500]);
}

#[test]
fn more_than_the_kernel_takes_at_once_arrive() {
    let [from, to] = [(); 2].map(|()| socket(on(Ipv6Addr::LOCALHOST)));
    let mut sender = UdpSender::new(from);
    for len in [1, 64, 1432, 65_000] {
        for datagram in datagrams([len; 100]) {
            sender.send(&datagram, to.local_addr().unwrap()).unwrap();
            if len > 1000 {
                sender.flush().unwrap();
                assert!(receive(&to) == datagram);
            }
        }
        sender.flush().unwrap();
        if len <= 1000 {
            datagrams([len; 100]).for_each(|datagram| assert!(receive(&to) == datagram));
        }
    }
}

#[test]
fn those_that_have_to_be_fragmented_arrive() {
    if !permitted("udp-fragments") {
        return;
    }
    let namespace = Namespace::create("udp-fragments").unwrap();
    let exchange = || {
        let netlink = Netlink::open().unwrap();
        netlink.set_mtu("lo", 1280).unwrap();
        netlink.set_up("lo").unwrap();
        for ip in [on(Ipv4Addr::LOCALHOST), on(Ipv6Addr::LOCALHOST)] {
            let [from, to] = [(); 2].map(|()| socket(ip));
            live::sockopt::allow_fragments(&from, ip.is_ipv6(), true).unwrap();
            let mut sender = UdpSender::new(from);
            for lens in [[1400; 5], [1000; 5]] {
                for datagram in datagrams(lens) {
                    sender.send(&datagram, to.local_addr().unwrap()).unwrap();
                }
                sender.flush().unwrap();
                datagrams(lens).for_each(|datagram| assert!(receive(&to) == datagram));
            }
        }
    };
    namespace.run(exchange).unwrap();
}

#[test]
fn a_failure_is_told_once_in_a_row_and_others_are_sent() {
    let to = socket(on(Ipv4Addr::LOCALHOST));
    let mut sender = UdpSender::new(socket(on(Ipv4Addr::LOCALHOST)));
    for _ in 0..2 {
        // There is no port 0.
        for is_told in [true, false, false] {
            sender.send(&[1; 10], on(Ipv4Addr::LOCALHOST)).unwrap();
            assert_eq!(sender.flush().is_err(), is_told);
        }
        sender.send(&[1; 10], on(Ipv4Addr::LOCALHOST)).unwrap();
        sender.send(&[2; 10], to.local_addr().unwrap()).unwrap();
        sender.flush().unwrap();
        assert_eq!(receive(&to), [2; 10]);
    }
    sender.send(&[1; 10], on(Ipv4Addr::LOCALHOST)).unwrap();
    assert!(sender.send(&[2; 10], to.local_addr().unwrap()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_receiver_gets_its_datagrams_whole_and_in_order(
        sent in proptest::collection::vec(
            (0..2_usize, prop_oneof![Just(500), Just(1200), 0..1500_usize], proptest::bool::weighted(0.1)),
            0..80,
        )
    ) {
        let receivers = [(); 2].map(|()| socket(on(Ipv4Addr::LOCALHOST)));
        let mut sender = UdpSender::new(socket(on(Ipv4Addr::LOCALHOST)));
        let all: Vec<Vec<u8>> = datagrams(sent.iter().map(|(_, len, _)| *len)).collect();
        for ((to, _, flush), datagram) in sent.iter().zip(&all) {
            sender.send(datagram, receivers[*to].local_addr().unwrap()).unwrap();
            if *flush {
                sender.flush().unwrap();
            }
        }
        sender.flush().unwrap();
        for (index, receiver) in receivers.iter().enumerate() {
            for (_, datagram) in sent.iter().zip(&all).filter(|((to, ..), _)| *to == index) {
                prop_assert!(receive(receiver) == *datagram);
            }
            receiver.set_nonblocking(true).unwrap();
            prop_assert!(receiver.recv(&mut [0]).is_err());
        }
    }
}
