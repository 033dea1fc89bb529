//! Namespaces, TUN devices and netlink, as the kernel has them.

use crate::common::permitted;
use live::tun::VIRTIO_HEADER_LEN;
use live::{Namespace, Netlink, Offload, Tun, namespace, netlink};
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;

fn is_listed(name: &str) -> bool {
    namespace::list().unwrap().iter().any(|listed| listed.name == name)
}

/// A device that is up, with an address, in the calling thread's namespace.
fn device(offload: Offload, address: &str) -> Tun {
    netlink::prepare_node().unwrap();
    let tun = Tun::open("link0", offload, 1500).unwrap();
    let netlink = Netlink::open().unwrap();
    netlink.set_queue_length("link0", 1000).unwrap();
    netlink.set_up("link0").unwrap();
    let address: IpAddr = address.parse().unwrap();
    netlink.add_address("link0", address, if address.is_ipv4() { 24 } else { 64 }).unwrap();
    tun
}

#[test]
fn a_namespace_lives_as_long_as_its_owner() {
    if !permitted("lives") {
        return;
    }
    let made = Namespace::create("lives").unwrap();
    let (name, path) = (made.name().to_owned(), Path::new("/run/netns").join(made.name()));
    assert!(is_listed(&name) && path.exists());
    let listed = namespace::list().unwrap();
    assert!(listed.iter().any(|listed| listed.name == name && listed.in_use));
    assert!(Namespace::create("lives").is_err(), "the name is taken");
    let thread = made.spawn("inside", || Netlink::open().unwrap().counts("lo")).unwrap();
    assert!(thread.join().unwrap().unwrap().is_ok());
    drop(made);
    assert!(!is_listed(&name) && !path.exists());
}

#[test]
fn settings_are_the_namespaces_own() {
    if !permitted("settings") {
        return;
    }
    let (one, other) = (Namespace::create("one").unwrap(), Namespace::create("other").unwrap());
    one.run(|| netlink::set_sysctl("net.ipv4.ip_forward", "1").unwrap()).unwrap();
    other.run(|| netlink::set_sysctl("net.ipv4.ip_forward", "0").unwrap()).unwrap();
    let forwards = || netlink::sysctl("net.ipv4.ip_forward").unwrap();
    assert_eq!([one.run(forwards).unwrap(), other.run(forwards).unwrap()], ["1", "0"]);
    let missing = one.run(|| netlink::set_sysctl("net.ipv4.no_such_thing", "1"));
    assert!(missing.unwrap().unwrap_err().to_string().contains("net.ipv4.no_such_thing"));
}

#[test]
fn a_tun_gives_what_the_kernel_sends_and_takes_what_it_receives() {
    if !permitted("tun") {
        return;
    }
    for (own, peer) in [("10.1.2.1", "10.1.2.9"), ("fd01::1", "fd01::9")] {
        let namespace = Namespace::create("tun").unwrap();
        let (own, peer): (IpAddr, IpAddr) = (own.parse().unwrap(), peer.parse().unwrap());
        let (tun, socket) = namespace
            .run(|| {
                let tun = device(Offload::None, &own.to_string());
                (tun, UdpSocket::bind((own, 7000)).unwrap())
            })
            .unwrap();
        let mut buffer = [0; 1500];
        // Nothing was sent, not even by the kernel of its own accord.
        assert_eq!(tun.read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        socket.send_to(b"ping", (peer, 7001)).unwrap();
        let len = tun.read(&mut buffer).unwrap();
        let (mut packet, payload) = wire::Packet::parse(&buffer[..len]).unwrap();
        assert_eq!((packet.ip.source, packet.ip.destination), (own, peer));
        assert_eq!(&buffer[payload.clone()], b"ping");
        // The answer.
        (packet.ip.source, packet.ip.destination) = (peer, own);
        let wire::Body::Udp(udp) = &mut packet.body else { panic!("{packet:?}") };
        (udp.source_port, udp.destination_port) = (7001, 7000);
        let mut answer = Vec::new();
        packet.emit(b"pong", &mut answer).unwrap();
        tun.write(&answer).unwrap();
        let mut text = [0; 16];
        let (len, from) = socket.recv_from(&mut text).unwrap();
        assert_eq!((&text[..len], from), (&b"pong"[..], (peer, 7001).into()));
        let counts = namespace.run(|| Netlink::open().unwrap().counts("link0")).unwrap().unwrap();
        assert_eq!((counts.sent, counts.received), (1, 1));
        assert_eq!((counts.send_dropped, counts.receive_dropped), (0, 0));
    }
}

#[test]
fn what_is_not_read_in_time_is_counted_by_the_kernel() {
    if !permitted("overrun") {
        return;
    }
    let namespace = Namespace::create("overrun").unwrap();
    let counts = namespace.run(|| {
        let _tun = device(Offload::None, "10.1.2.1");
        let netlink = Netlink::open().unwrap();
        netlink.set_queue_length("link0", 10).unwrap();
        let socket = UdpSocket::bind("10.1.2.1:7000").unwrap();
        for _ in 0..15 {
            let _ = socket.send_to(b"ping", "10.1.2.9:7001");
        }
        netlink.counts("link0").unwrap()
    });
    assert_eq!(counts.unwrap().send_dropped, 5);
}

#[test]
fn with_offload_a_header_says_what_is_left_to_do() {
    if !permitted("offload") {
        return;
    }
    let namespace = Namespace::create("offload").unwrap();
    let len = namespace.run(|| {
        let tun = device(Offload::Full, "10.1.2.1");
        let socket = UdpSocket::bind("10.1.2.1:7000").unwrap();
        socket.send_to(b"ping", "10.1.2.9:7001").unwrap();
        let mut buffer = [0; 1500];
        let len = tun.read(&mut buffer).unwrap();
        // VIRTIO_NET_HDR_F_NEEDS_CSUM: the UDP checksum, 6 bytes into a header after 20 of IP.
        assert_eq!(buffer[0] & 1, 1);
        assert_eq!([buffer[6], buffer[8]], [20u16, 6].map(|n| n.to_ne_bytes()[0]));
        len
    });
    assert_eq!(len.unwrap(), VIRTIO_HEADER_LEN + 20 + 8 + 4);
}

#[test]
fn errors_say_what_was_to_be_done() {
    if !permitted("errors") {
        return;
    }
    let namespace = Namespace::create("errors").unwrap();
    namespace
        .run(|| {
            let netlink = Netlink::open().unwrap();
            let missing = netlink.set_up("link7").unwrap_err().to_string();
            assert_eq!(missing, "no network device is called \"link7\" here");
            let address = "10.0.0.1".parse().unwrap();
            let unreachable = netlink.add_route(address, 32, "lo", None).unwrap_err().to_string();
            assert!(unreachable.starts_with("routing 10.0.0.1/32 by lo: "), "{unreachable}");
            let long = Tun::open("a-name-of-16-byt", Offload::None, 1500);
            assert!(long.is_err_and(|error| error.to_string().contains("a-name-of-16-byt")));
        })
        .unwrap();
}
