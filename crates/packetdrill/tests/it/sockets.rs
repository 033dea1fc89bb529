//! Two stacks, and a network between them that loses nothing.

use base::{Duration, Time};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use lasthop_packetdrill::{Family, Profile, Reading, Setup, Shutdown, Stack, Writing};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::RawFd;

const CLIENT: usize = 0;
const SERVER: usize = 1;
const PORT: u16 = 8080;
const DELAY: Duration = Duration::from_millis(10);

struct Net {
    stacks: [Stack; 2],
    flying: VecDeque<(Time, usize, Vec<u8>)>,
}

impl Net {
    fn new(profile: Profile) -> Net {
        let setup = |last| Setup {
            profile,
            local4: Ipv4Addr::new(192, 168, 0, last),
            local6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into()),
            ..Setup::default()
        };
        Net { stacks: [1, 2].map(|last| Stack::new(setup(last))), flying: VecDeque::new() }
    }

    /// Carries packets until `end`.
    fn until(&mut self, end: Time) {
        loop {
            for (from, stack) in self.stacks.iter_mut().enumerate() {
                while let Some(sent) = stack.sent() {
                    self.flying.push_back((sent.at + DELAY, 1 - from, sent.bytes));
                }
            }
            let arrival = self.flying.front().map_or(Time::NEVER, |flying| flying.0);
            let [a, b] = &self.stacks;
            let next = arrival.min(a.due()).min(b.due());
            let at = next.min(end);
            self.stacks.iter_mut().for_each(|stack| stack.advance(at));
            if next > end {
                return;
            }
            if arrival == next
                && let Some((_, to, bytes)) = self.flying.pop_front()
            {
                self.stacks[to].receive(&bytes);
            }
        }
    }

    fn pass(&mut self, millis: u64) {
        self.until(self.stacks[CLIENT].now() + Duration::from_millis(millis));
    }

    /// A connection: the sockets of client and server.
    fn connect(&mut self, family: Family, to: IpAddr) -> (RawFd, RawFd) {
        let server = &mut self.stacks[SERVER];
        let listener = server.socket(family).unwrap();
        server.bind(listener, SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT)).unwrap();
        server.listen(listener, 1).unwrap();
        assert_eq!(server.accept(listener), Err(Errno::AGAIN));
        let client = self.stacks[CLIENT].socket(family).unwrap();
        self.stacks[CLIENT].connect(client, SocketAddr::new(to, PORT)).unwrap();
        assert_eq!(self.stacks[CLIENT].connected(client), Err(Errno::AGAIN));
        self.pass(100);
        assert_eq!(self.stacks[CLIENT].connected(client), Ok(()));
        let (accepted, peer) = self.stacks[SERVER].accept(listener).unwrap();
        assert_eq!(peer.is_ipv6(), family == Family::Inet6);
        (client, accepted)
    }

    fn read(&mut self, stack: usize, fd: RawFd, most: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; most];
        let length = self.stacks[stack].read(fd, &mut bytes, Reading::default())?;
        bytes.truncate(length);
        Ok(bytes)
    }

    fn write(&mut self, stack: usize, fd: RawFd, bytes: &[u8]) -> Result<usize, Errno> {
        self.stacks[stack].write(fd, bytes, Writing::default())
    }
}

const SERVER4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 2));

fn connected(profile: Profile) -> (Net, RawFd, RawFd) {
    let mut net = Net::new(profile);
    let (client, server) = net.connect(Family::Inet, SERVER4);
    (net, client, server)
}

#[test]
fn streams_arrive_whole_over_every_version_of_ip() {
    let server6 = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
    let mapped = IpAddr::V6(Ipv4Addr::new(192, 168, 0, 2).to_ipv6_mapped());
    for profile in [Profile::Linux, Profile::FreeBsd] {
        for (family, to) in
            [(Family::Inet, SERVER4), (Family::Inet6, server6), (Family::Inet6, mapped)]
        {
            let mut net = Net::new(profile);
            let (client, server) = net.connect(family, to);
            let whole: Vec<u8> =
                (0..200_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            let (mut written, mut read) = (0, Vec::new());
            while read.len() < whole.len() {
                match net.write(CLIENT, client, &whole[written..]) {
                    Ok(length) => written += length,
                    Err(error) => assert_eq!(error, Errno::AGAIN),
                }
                net.pass(20);
                match net.read(SERVER, server, 7777) {
                    Ok(bytes) => read.extend(bytes),
                    Err(error) => assert_eq!(error, Errno::AGAIN),
                }
            }
            assert!(read == whole, "{profile:?}, {to}");
        }
    }
}

#[test]
fn a_peek_takes_nothing() {
    let (mut net, client, server) = connected(Profile::Linux);
    net.write(CLIENT, client, b"hello").unwrap();
    net.pass(50);
    let mut bytes = [0; 10];
    let peek = Reading { peek: true };
    assert_eq!(net.stacks[SERVER].read(server, &mut bytes[..3], peek), Ok(3));
    assert_eq!(net.stacks[SERVER].read(server, &mut bytes, peek), Ok(5));
    assert_eq!(&bytes[..5], b"hello");
    assert_eq!(net.stacks[SERVER].readable(server), Ok(5));
    assert_eq!(net.read(SERVER, server, 10), Ok(b"hello".to_vec()));
    assert_eq!(net.read(SERVER, server, 10), Err(Errno::AGAIN));
}

#[test]
fn a_stream_ends_where_its_writer_has_shut_it() {
    let (mut net, client, server) = connected(Profile::FreeBsd);
    net.write(CLIENT, client, b"last words").unwrap();
    net.stacks[CLIENT].shutdown(client, Shutdown::Write).unwrap();
    assert_eq!(net.write(CLIENT, client, b"more"), Err(Errno::PIPE));
    net.pass(100);
    assert_eq!(net.read(SERVER, server, 100), Ok(b"last words".to_vec()));
    assert_eq!(net.read(SERVER, server, 100), Ok(Vec::new()));
    net.write(SERVER, server, b"answer").unwrap();
    net.stacks[SERVER].close(server).unwrap();
    net.pass(100);
    assert_eq!(net.read(CLIENT, client, 100), Ok(b"answer".to_vec()));
    assert_eq!(net.read(CLIENT, client, 100), Ok(Vec::new()));
}

#[test]
fn data_after_the_close_is_answered_by_a_reset() {
    // Unread at the close, and arriving after it.
    for late in [false, true] {
        let (mut net, client, server) = connected(Profile::Linux);
        if !late {
            net.write(CLIENT, client, b"unread").unwrap();
            net.pass(50);
        }
        net.stacks[SERVER].close(server).unwrap();
        net.pass(50);
        if late {
            net.write(CLIENT, client, b"too late").unwrap();
            net.pass(50);
        }
        assert_eq!(net.read(CLIENT, client, 10), Err(Errno::CONNRESET));
        assert_eq!(net.read(CLIENT, client, 10), Ok(Vec::new()));
        assert_eq!(net.write(CLIENT, client, b"x"), Err(Errno::PIPE));
    }
}

#[test]
fn a_closed_port_refuses() {
    let mut net = Net::new(Profile::Linux);
    let client = net.stacks[CLIENT].socket(Family::Inet).unwrap();
    net.stacks[CLIENT].connect(client, SocketAddr::new(SERVER4, 9)).unwrap();
    net.pass(50);
    assert_eq!(net.stacks[CLIENT].connected(client), Err(Errno::CONNREFUSED));
    assert_eq!(net.stacks[CLIENT].connected(client), Err(Errno::CONNABORTED));
}

#[test]
fn a_listener_that_closes_resets_waiting_connections() {
    let mut net = Net::new(Profile::Linux);
    let server = &mut net.stacks[SERVER];
    let listener = server.socket(Family::Inet).unwrap();
    server.bind(listener, SocketAddr::new(SERVER4, PORT)).unwrap();
    server.listen(listener, 5).unwrap();
    let client = net.stacks[CLIENT].socket(Family::Inet).unwrap();
    net.stacks[CLIENT].connect(client, SocketAddr::new(SERVER4, PORT)).unwrap();
    net.pass(100);
    net.stacks[SERVER].close(listener).unwrap();
    net.pass(100);
    assert_eq!(net.read(CLIENT, client, 10), Err(Errno::CONNRESET));
    let late = net.stacks[CLIENT].socket(Family::Inet).unwrap();
    net.stacks[CLIENT].connect(late, SocketAddr::new(SERVER4, PORT)).unwrap();
    net.pass(100);
    assert_eq!(net.stacks[CLIENT].connected(late), Err(Errno::CONNREFUSED));
}

#[test]
fn a_full_buffer_makes_the_writer_wait() {
    let (mut net, client, server) = connected(Profile::Linux);
    let size = 20_000_i32.to_ne_bytes();
    net.stacks[CLIENT].set_option(client, (libc::SOL_SOCKET, libc::SO_SNDBUF), &size).unwrap();
    assert_eq!(net.write(CLIENT, client, &[0; 50_000]), Ok(20_000));
    assert_eq!(net.write(CLIENT, client, &[0; 50_000]), Err(Errno::AGAIN));
    net.pass(100);
    assert_eq!(net.read(SERVER, server, 50_000).unwrap().len(), 20_000);
    assert_eq!(net.write(CLIENT, client, &[0; 50_000]), Ok(20_000));
}

#[test]
fn options_are_what_they_were_set_to() {
    let mut net = Net::new(Profile::Linux);
    let stack = &mut net.stacks[CLIENT];
    let fd = stack.socket(Family::Inet).unwrap();
    let number = |stack: &mut Stack, name| {
        let bytes = stack.option(fd, name).unwrap();
        i32::from_ne_bytes(bytes.try_into().unwrap())
    };
    for (name, value) in [
        ((libc::SOL_SOCKET, libc::SO_REUSEADDR), 1),
        ((libc::SOL_SOCKET, libc::SO_RCVBUF), 100_000),
        ((libc::IPPROTO_TCP, libc::TCP_NODELAY), 1),
        ((libc::IPPROTO_TCP, libc::TCP_CORK), 1),
        ((libc::IPPROTO_TCP, libc::TCP_MAXSEG), 1100),
        ((libc::IPPROTO_TCP, libc::TCP_INQ), 1),
        ((libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT), 3000),
    ] {
        assert_ne!(number(stack, name), value, "{name:?}");
        stack.set_option(fd, name, &value.to_ne_bytes()).unwrap();
        assert_eq!(number(stack, name), value, "{name:?}");
    }
    let congestion = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
    stack.set_option(fd, congestion, b"reno").unwrap();
    assert_eq!(stack.option(fd, congestion).unwrap(), b"reno\0");
    assert_eq!(stack.set_option(fd, congestion, b"vegas\0"), Err(Errno::NOENT));
    let unknown = (libc::SOL_SOCKET, 9999);
    assert_eq!(stack.set_option(fd, unknown, &[0; 4]), Err(Errno::NOPROTOOPT));
    let nodelay = (libc::IPPROTO_TCP, libc::TCP_NODELAY);
    assert_eq!(stack.set_option(fd, nodelay, &[1, 2]), Err(Errno::INVAL));
    assert_eq!(stack.set_option(fd, nodelay, &[1]), Err(Errno::INVAL));
    // Options of IP may have one byte.
    let tos = (libc::IPPROTO_IP, libc::IP_TOS);
    stack.set_option(fd, tos, &[4]).unwrap();
    assert_eq!(number(stack, tos), 4);
}

#[test]
fn the_user_timeout_ends_what_is_not_acknowledged() {
    let name = (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT);
    let value = 3000_i32.to_ne_bytes();
    // Nothing is carried from here on, whether the socket has a connection yet or not.
    let (mut net, fd, _) = connected(Profile::Linux);
    let stack = &mut net.stacks[CLIENT];
    let other = stack.socket(Family::Inet).unwrap();
    stack.set_option(other, name, &value).unwrap();
    stack.connect(other, SocketAddr::new(SERVER4, PORT)).unwrap();
    stack.set_option(fd, name, &value).unwrap();
    stack.write(fd, b"hello", Writing::default()).unwrap();
    let end = stack.now() + Duration::from_secs(3);
    while stack.due() < end {
        let due = stack.due();
        stack.advance(due);
    }
    assert_eq!(stack.read(fd, &mut [0; 10], Reading::default()), Err(Errno::AGAIN));
    assert_eq!(stack.connected(other), Err(Errno::AGAIN));
    stack.advance(end);
    assert_eq!(stack.read(fd, &mut [0; 10], Reading::default()), Err(Errno::TIMEDOUT));
    assert_eq!(stack.connected(other), Err(Errno::TIMEDOUT));
}

#[test]
fn tcp_info_has_state_and_window() {
    let (mut net, client, server) = connected(Profile::Linux);
    let info = |net: &mut Net, stack: usize, fd| {
        net.stacks[stack].option(fd, (libc::IPPROTO_TCP, libc::TCP_INFO)).unwrap()
    };
    let word = |bytes: &[u8], at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let before = info(&mut net, CLIENT, client);
    assert_eq!((before.len(), before[0], before[1]), (280, 1, 0));
    assert_eq!((word(&before, 16), word(&before, 80), word(&before, 84)), (1448, 10, 1460));
    // Milliseconds since data came, or as none did, since the handshake.
    assert_eq!(word(&before, 52), 80);
    net.stacks[CLIENT].close(client).unwrap();
    net.pass(50);
    assert_eq!(info(&mut net, SERVER, server)[0], 8, "CLOSE-WAIT");
}
