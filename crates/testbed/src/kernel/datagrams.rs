//! Datagrams between sockets.

use super::FlowEnd;
use crate::Error;
use crate::state::{Ended, Entry};
use base::Time;
use host::{DatagramFlow, DatagramSource};
use lab::Delivery;
use rustix::event::PollFlags;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read as _};
use std::net::SocketAddr;

/// The largest datagram, bytes.
const LARGEST: usize = 65_535;

/// The receive buffer, bytes: large enough that no datagram is lost there.
const BUFFER: usize = 64 << 20;

impl FlowEnd<'_> {
    /// Sends at the lab's times.
    pub(super) fn send_datagrams(&self, mut source: DatagramSource) {
        let DatagramFlow { remote, remote_port, local_port, .. } = *source.flow();
        let own = self.state.place(self.index, self.node, local_port);
        let remote = SocketAddr::new(remote, remote_port);
        if let Err(error) = self.send_from(own, remote, &mut source) {
            self.fail(&error);
        }
        let delivery = Delivery { sent: source.sent, received: 0 };
        self.state.enter(Entry::Datagrams(self.index, delivery, 0));
    }

    fn send_from(
        &self,
        own: SocketAddr,
        remote: SocketAddr,
        source: &mut DatagramSource,
    ) -> io::Result<()> {
        let socket = open(own)?;
        let (remote, mut bytes) = (SockAddr::from(remote), Vec::new());
        while source.next() != Time::NEVER && self.state.sleep_until(source.next()).is_ok() {
            let payload = source.take();
            bytes.resize(payload.len as usize, 0);
            payload.render(&mut bytes);
            // A datagram that cannot be sent is lost; an error may belong to an earlier one.
            let _ = socket.send_to(&bytes, &remote);
        }
        Ok(())
    }

    /// Counts the datagrams that arrive.
    pub(super) fn receive_datagrams(&self, socket: &Socket) {
        let (mut delivery, mut bytes) = (Delivery::default(), 0);
        let mut buffer = vec![0; LARGEST];
        loop {
            let mut reading = socket;
            match self.state.when(socket, PollFlags::IN, || reading.read(&mut buffer)) {
                Ok(len) => {
                    delivery.received += 1;
                    bytes += len as u64;
                }
                Err(Ended::Over) => break,
                Err(Ended::Failed(error)) => {
                    self.fail(&error);
                    break;
                }
            }
        }
        self.state.enter(Entry::Datagrams(self.index, delivery, bytes));
    }
}

/// A socket that receives datagrams.
pub(super) fn receiver(own: SocketAddr) -> Result<Socket, Error> {
    let make = || {
        let socket = open(own)?;
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER)?;
        Ok(socket)
    };
    make()
        .map_err(|error: io::Error| Error::System(format!("receiving datagrams at {own}: {error}")))
}

fn open(own: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(own), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(own))?;
    Ok(socket)
}
