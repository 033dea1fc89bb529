use super::*;
use base::Time;
use channel::{Channel, Config, OVERHEAD, SecretKey, system_entropy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write as _;

const ANY: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
const NOW: Time = Time::from_nanos(1);

/// Sockets at any port, by the addresses that they listen at, and their port at a loopback address.
fn listening(any: IpAddr) -> (Sockets, SocketAddr) {
    let mut sockets = Sockets::listen((any, 0).into()).unwrap();
    let port = sockets.sender().socket().local_addr().unwrap().port();
    (sockets, (Ipv4Addr::LOCALHOST, port).into())
}

fn program(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(to).unwrap();
    socket
}

/// The next datagram, for which it waits a second at most.
fn next(sockets: &mut Sockets) -> Option<Vec<u8>> {
    let mut ready = [PollFd::from_borrowed_fd(sockets.either(), PollFlags::IN)];
    poll(&mut ready, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap();
    let mut memory = [0; 2000];
    let (len, _) = sockets.receive(&mut memory).ok()?;
    Some(memory[..len].to_vec())
}

/// What waits in the socket of sessions.
fn own(sockets: &Sockets) -> Vec<Vec<u8>> {
    let mut memory = [0; 2000];
    let next = || sockets.own.recv_from(&mut memory).ok().map(|(len, _)| memory[..len].to_vec());
    std::iter::from_fn(next).collect()
}

/// Whether the kernel checks codes here.
fn checks_codes(sockets: &Sockets, test: &str) -> bool {
    let checks = sockets.queue.checks_codes();
    if !checks {
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: the process may load no BPF programs");
    }
    checks
}

/// Two ends of a channel: a gateway's, at its sockets, and that of the other gateway, `peer`.
struct Pair {
    sockets: Sockets,
    end: Channel,
    other: Channel,
    peer: UdpSocket,
}

impl Pair {
    fn connected(any: IpAddr) -> Pair {
        let (sockets, at) = listening(any);
        let secrets = [0, 1].map(|_| SecretKey::generate(&mut system_entropy).unwrap());
        let [theirs, ours] = [&secrets[1], &secrets[0]].map(SecretKey::public);
        let [secret, other] = secrets;
        let peer = program(at);
        let config = Config::new(secret, theirs);
        let other = Config { address: Some(at), ..Config::new(other, ours) };
        let [end, other] =
            [config, other].map(|config| Channel::new(NOW, config, system_entropy).unwrap());
        let mut pair = Pair { sockets, end, other, peer };
        pair.handshake();
        pair
    }

    /// A handshake, which the other gateway begins.
    fn handshake(&mut self) {
        self.other.handle_timeout(NOW);
        let mut bytes = Vec::new();
        for _ in 0..3 {
            while self.other.poll_transmit(NOW, &mut bytes).is_some() {
                self.peer.send(&bytes).unwrap();
                let mut arrived = next(&mut self.sockets).unwrap();
                let from = self.peer.local_addr().unwrap();
                self.end.handle_datagram(NOW, from, &mut arrived);
                if let Some(sessions) = self.end.poll_sessions() {
                    self.sockets.set_sessions(sessions);
                }
            }
            while self.end.poll_transmit(NOW, &mut bytes).is_some() {
                let from = self.sockets.sender().socket().local_addr().unwrap();
                self.other.handle_datagram(NOW, from, &mut bytes);
            }
        }
        assert!(self.end.is_connected(NOW) && self.other.is_connected(NOW));
    }

    /// A payload that the other gateway has sealed.
    fn sealed(&mut self, payload: u8) -> Vec<u8> {
        let mut datagram = vec![payload; OVERHEAD + 100];
        self.other.seal(NOW, &mut datagram).unwrap();
        datagram
    }
}

#[test]
fn a_flood_of_other_datagrams_does_not_keep_out_those_of_sessions() {
    for any in ANY {
        let mut pair = Pair::connected(any);
        let (sealed, other) = (pair.sealed(7), program(pair.peer.peer_addr().unwrap()));
        // More than the queue holds, and some from the other gateway's address.
        for _ in 0..100_000 {
            other.send(&[0]).unwrap();
            pair.peer.send(&[0]).unwrap();
        }
        pair.peer.send(&sealed).unwrap();
        let read =
            (0..=OTHERS).find_map(|_| next(&mut pair.sockets).filter(|bytes| bytes.len() > 1));
        assert_eq!(read, Some(sealed), "{any}");
        assert_eq!(next(&mut pair.sockets), Some(vec![0]), "{any}");
    }
}

#[test]
fn replayed_and_forged_datagrams_are_not_those_of_sessions() {
    for any in ANY {
        let mut pair = Pair::connected(any);
        if !checks_codes(&pair.sockets, "replayed and forged datagrams in a queue of their own") {
            return;
        }
        let sealed: Vec<_> = (0..100).map(|payload| pair.sealed(payload)).collect();
        let forged = |place: usize| {
            let mut forged = sealed[99].clone();
            forged[place] ^= 1;
            forged
        };
        // They arrive in another order, each twice, and among forged ones: a changed index, number or code.
        for datagram in sealed.iter().rev().chain(&sealed) {
            pair.peer.send(datagram).unwrap();
            for place in 2..14 {
                pair.peer.send(&forged(place)).unwrap();
            }
        }
        // Too short ones.
        for len in 0..14 {
            pair.peer.send(&sealed[0][..len]).unwrap();
        }
        let mut arrived = own(&pair.sockets);
        arrived.reverse();
        assert!(arrived == sealed, "{} of 100 at {any}", arrived.len());
    }
}

#[test]
fn numbers_are_forgotten_by_those_that_are_8192_higher() {
    let mut pair = Pair::connected(ANY[0]);
    if !checks_codes(&pair.sockets, "which numbers the kernel remembers") {
        return;
    }
    let sealed: Vec<_> = (0..8193).map(|payload| pair.sealed(payload as u8)).collect();
    let mut arrive = |datagram: &Vec<u8>| {
        pair.peer.send(datagram).unwrap();
        own(&pair.sockets).len()
    };
    // The first is late, and the highest takes its place.
    assert_eq!(sealed[1..8192].iter().map(&mut arrive).sum::<usize>(), 8191);
    assert_eq!([0, 0, 8192, 0, 8192].map(|at| arrive(&sealed[at])), [1, 0, 1, 0, 0]);
}

#[test]
fn each_of_several_sessions_has_its_own_numbers_and_codes() {
    for any in ANY {
        let mut pair = Pair::connected(any);
        let before: Vec<_> = (0..10).map(|payload| pair.sealed(payload)).collect();
        // A session after the first: the peer lost its state.
        let sessions: Vec<_> = (0..3).map(|n| (n, [n as u8; 16])).collect();
        let of = |(index, key): (u32, [u8; 16]), number: u32| {
            let code = channel::CodeKey::new(&key).code(index, number);
            [&[2, 4], &index.to_be_bytes()[..], &number.to_be_bytes(), &code].concat()
        };
        let Pair { sockets, peer, .. } = &mut pair;
        let arrive = |sockets: &Sockets, datagram: &[u8]| {
            peer.send(datagram).unwrap();
            own(sockets).len()
        };
        sockets.queue.set(&sockets.own, sessions.clone()).unwrap();
        for number in [0, 1, 7, u32::MAX - 1] {
            for session in &sessions {
                assert_eq!(arrive(sockets, &of(*session, number)), 1, "{any}");
            }
        }
        // Those of a session that has ended are like others, and the numbers of the rest are kept.
        sockets.queue.set(&sockets.own, sessions[1..].to_vec()).unwrap();
        assert_eq!(arrive(sockets, &of(sessions[0], 8)), 0, "{any}");
        assert_eq!(arrive(sockets, &of(sessions[1], 8)), 1, "{any}");
        assert_eq!(arrive(sockets, &before[0]), 0, "{any}");
    }
}

#[test]
fn without_the_right_to_check_codes_the_kernel_looks_for_indices() {
    for any in ANY {
        let mut pair = Pair::connected(any);
        let sealed = pair.sealed(7);
        pair.sockets.queue = SessionQueue::by_indices();
        let mut other = sealed.clone();
        other[2] ^= 1;
        for (indices, arrive) in [(vec![], 0), (vec![9], 0), (vec![9, 8, 7], 1), (vec![9], 0)] {
            let index = u32::from_be_bytes(sealed[2..6].try_into().unwrap());
            let sessions = indices.iter().map(|n| (if *n == 8 { index } else { *n }, [0; 16]));
            pair.sockets.queue.set(&pair.sockets.own, sessions).unwrap();
            for datagram in [&sealed[..], &other, &[2, 4, 0]] {
                pair.peer.send(datagram).unwrap();
            }
            assert_eq!(own(&pair.sockets).len(), arrive, "{any}");
        }
    }
}

#[test]
fn handshakes_are_read_while_datagrams_of_sessions_wait() {
    let mut pair = Pair::connected(ANY[0]);
    for _ in 0..2 * OWN {
        let sealed = pair.sealed(0);
        pair.peer.send(&sealed).unwrap();
    }
    pair.peer.send(&[1]).unwrap();
    let read = (0..=OWN).filter_map(|_| next(&mut pair.sockets));
    assert_eq!(read.filter(|bytes| bytes.len() == 1).count(), 1);
}

#[test]
fn a_peer_with_another_address_is_heard() {
    for any in ANY {
        let mut pair = Pair::connected(any);
        let sealed = pair.sealed(1);
        program(pair.peer.peer_addr().unwrap()).send(&sealed).unwrap();
        assert_eq!(own(&pair.sockets), [sealed], "{any}");
    }
}

#[test]
fn a_port_that_another_gateway_has_is_refused() {
    for any in ANY {
        let (_sockets, at) = listening(any);
        let error = Sockets::listen((any, at.port()).into()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert_eq!(listen((any, at.port()).into()).unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}

#[test]
fn the_kernels_limit_of_buffers_does_not_count_with_cap_net_admin() {
    let socket = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let has_right = set_socket_recv_buffer_size_force(&socket, BUFFER).is_ok();
    let socket = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    // The kernel doubles what it is asked for.
    let size = SockRef::from(&socket).recv_buffer_size().unwrap();
    assert!(!has_right || size >= 2 * BUFFER, "{size} bytes");
}
