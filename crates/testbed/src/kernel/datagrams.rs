//! Datagrams between sockets.

use super::Stage;
use crate::Error;
use crate::play::{Ended, Entry};
use base::{Seed, Time};
use host::{DatagramFlow, DatagramSource};
use lab::{Datagrams, Delivery, port};
use rustix::event::PollFlags;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read as _};
use std::net::SocketAddr;

/// The largest datagram that there is.
const LARGEST: usize = 65_535;

/// Bytes that may wait to be read: none is to be lost for want of room.
const BUFFER: usize = 64 << 20;

impl Stage<'_> {
    /// Sends at the lab's times.
    pub(super) fn send_datagrams(&self, datagrams: &Datagrams) {
        let own = self.play.place(self.index, self.node, port(self.index));
        let remote = self.play.place(self.index, self.flow.to, port(self.index));
        let flow = DatagramFlow {
            stream: self.index as u32,
            remote: remote.ip(),
            remote_port: remote.port(),
            local_port: own.port(),
            payload: datagrams.payload(self.flow.ip),
            rate: datagrams.rate,
            start: self.flow.start,
            stop: datagrams.lasts.map_or(Time::NEVER, |lasts| self.flow.start + lasts),
            bursts: datagrams.bursts,
        };
        let random = Seed(self.play.seed).stream(&format!("flow.{}.datagrams", self.flow.name));
        let mut source = DatagramSource::new(flow, random);
        if let Err(error) = self.send_from(own, remote, &mut source) {
            self.trouble(&error);
        }
        let delivery = Delivery { sent: source.sent, received: 0 };
        self.play.enter(Entry::Datagrams(self.index, delivery, 0));
    }

    fn send_from(
        &self,
        own: SocketAddr,
        remote: SocketAddr,
        source: &mut DatagramSource,
    ) -> io::Result<()> {
        let socket = open(own)?;
        let (remote, mut bytes) = (SockAddr::from(remote), Vec::new());
        while source.next() != Time::NEVER && self.play.sleep_until(source.next()).is_ok() {
            let payload = source.take();
            bytes.resize(payload.len as usize, 0);
            payload.render(&mut bytes);
            // What cannot be sent is lost; an error may be that of one sent before.
            let _ = socket.send_to(&bytes, &remote);
        }
        Ok(())
    }

    /// Counts what comes.
    pub(super) fn receive_datagrams(&self, socket: &Socket) {
        let (mut delivery, mut bytes) = (Delivery::default(), 0);
        let mut buffer = vec![0; LARGEST];
        loop {
            let mut reading = socket;
            match self.play.when(socket, PollFlags::IN, || reading.read(&mut buffer)) {
                Ok(len) => {
                    delivery.received += 1;
                    bytes += len as u64;
                }
                Err(Ended::Over) => break,
                Err(Ended::Failed(error)) => {
                    self.trouble(&error);
                    break;
                }
            }
        }
        self.play.enter(Entry::Datagrams(self.index, delivery, bytes));
    }
}

/// A socket that takes datagrams.
pub(super) fn receiver(own: SocketAddr) -> Result<Socket, Error> {
    let make = || {
        let socket = open(own)?;
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER)?;
        Ok(socket)
    };
    make().map_err(|error: io::Error| Error::System(format!("taking datagrams at {own}: {error}")))
}

fn open(own: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(own), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(own))?;
    Ok(socket)
}
