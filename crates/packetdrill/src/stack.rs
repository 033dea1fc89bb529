//! Two hosts, their clock, and the packets they have sent.

use crate::endpoint::Endpoint;
use crate::epoll::Epoll;
use crate::profile::Setup;
use crate::socket::Socket;
use base::{Duration, Seed, Time};
use host::{Host, Outlet, Settings};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::RawFd;
use wire::{Flags, Packet, Payload};

/// A packet that the stack has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Time,
    /// From the IP header on.
    pub bytes: Vec<u8>,
}

/// A TCP/IP stack with BSD sockets, in virtual time.
pub struct Stack {
    pub(crate) now: Time,
    pub(crate) setup: Setup,
    /// For IPv4 and for IPv6.
    hosts: [Host<Endpoint>; 2],
    sent: VecDeque<Sent>,
    /// The written bytes, by stream. A script writes little: they are never freed.
    pub(crate) written: Vec<Vec<u8>>,
    /// The bytes that have arrived: the identity of a payload is its place here.
    pub(crate) arrived: Vec<u8>,
    pub(crate) sockets: BTreeMap<RawFd, Socket>,
    pub(crate) epolls: BTreeMap<RawFd, Epoll>,
}

impl Stack {
    /// A stack without sockets, at time zero. Its secrets are always the same.
    #[must_use]
    pub fn new(setup: Setup) -> Stack {
        let host = |is_ipv6: bool| {
            let address = setup.local(is_ipv6);
            let mut host = Host::new(address, Seed(1).stream(&address.to_string()));
            // Sockets can be asked how a connection has ended.
            host.set(Settings { keep_closed: true, ..Settings::default() });
            host
        };
        Stack {
            now: Time::ZERO,
            setup,
            hosts: [host(false), host(true)],
            sent: VecDeque::new(),
            written: Vec::new(),
            arrived: Vec::new(),
            sockets: BTreeMap::new(),
            epolls: BTreeMap::new(),
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Advances the time without handling timers.
    pub fn tick(&mut self, time: Duration) {
        self.now += time;
    }

    /// Receives the bytes of a packet. Bytes that are not a packet are ignored, as by a kernel.
    pub fn receive(&mut self, bytes: &[u8]) {
        let (mut packet, payload) = match Packet::parse(bytes) {
            Ok(parsed) => parsed,
            Err(error) => return self.hosts[0].refuse(&error),
        };
        packet.payload.offset = self.arrived.len() as u64;
        self.arrived.extend_from_slice(&bytes[payload]);
        let now = self.now;
        self.host(packet.ip.destination.is_ipv6()).handle_packet(now, &packet);
        self.transmit();
    }

    /// The next packet that was sent.
    pub fn sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// Whether there is one.
    #[must_use]
    pub fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// The next deadline.
    #[must_use]
    pub fn due(&self) -> Time {
        let [four, six] = &self.hosts;
        four.poll_timeout().min(six.poll_timeout())
    }

    /// Advances the time to `at`, unless it is later already, and handles timers.
    pub fn advance(&mut self, at: Time) {
        self.now = self.now.max(at);
        for host in &mut self.hosts {
            host.handle_timeout(self.now);
        }
        self.transmit();
    }

    pub(crate) fn host(&mut self, is_ipv6: bool) -> &mut Host<Endpoint> {
        &mut self.hosts[usize::from(is_ipv6)]
    }

    pub(crate) fn host_ref(&self, is_ipv6: bool) -> &Host<Endpoint> {
        &self.hosts[usize::from(is_ipv6)]
    }

    /// Lets the hosts send what may be sent.
    pub(crate) fn transmit(&mut self) {
        let mut interface = Interface {
            now: self.now,
            unit: self.setup.unit(),
            packet: Packet::BLANK,
            written: &self.written,
            sent: &mut self.sent,
        };
        for host in &mut self.hosts {
            // The next deadline is read anyway.
            let _ = host.transmit(self.now, &mut interface);
        }
    }

    /// The bytes of a payload that has arrived.
    pub(crate) fn bytes(&self, payload: Payload) -> &[u8] {
        &self.arrived[payload.offset as usize..payload.end() as usize]
    }

    /// A stream of its own for what is written next.
    pub(crate) fn new_stream(&mut self) -> u32 {
        self.written.push(Vec::new());
        self.written.len() as u32 - 1
    }
}

/// The only interface. It takes units of several segments and splits them.
struct Interface<'a> {
    now: Time,
    unit: u16,
    packet: Packet,
    written: &'a [Vec<u8>],
    sent: &'a mut VecDeque<Sent>,
}

impl Interface<'_> {
    fn emit(&mut self, packet: &Packet) {
        let payload = packet.payload;
        let written = match payload.len {
            0 => &[],
            _ => {
                &self.written[payload.stream as usize]
                    [payload.offset as usize..payload.end() as usize]
            }
        };
        let mut bytes = Vec::new();
        match packet.emit(written, &mut bytes) {
            Ok(()) => self.sent.push_back(Sent { at: self.now, bytes }),
            Err(error) => eprintln!("lasthop: a packet cannot be written: {error}"),
        }
    }
}

impl<A> Outlet<A> for Interface<'_> {
    fn packet(&mut self) -> &mut Packet {
        &mut self.packet
    }

    fn send(&mut self, segment_size: u32, _: &mut Option<u32>, _: Option<&A>) {
        let unit = self.packet;
        let mut begin = 0;
        loop {
            let mut packet = unit;
            packet.payload = unit.payload.skip(begin).take(segment_size);
            let end = begin + packet.payload.len;
            if let Some(segment) = packet.tcp_mut() {
                segment.seq = segment.seq + begin;
                if begin > 0 {
                    segment.flags -= Flags::CWR;
                }
                // Linux leaves PSH out of a SYN with data (Fast Open).
                if end < unit.payload.len || segment.flags.contains(Flags::SYN) {
                    segment.flags -= Flags::PSH | Flags::FIN;
                }
            }
            self.emit(&packet);
            if end >= unit.payload.len {
                return;
            }
            begin = end;
        }
    }

    fn segments(&self) -> u16 {
        self.unit
    }
}
