//! Requests to the kernel, and its answers.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_MULTIPART, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A netlink socket: one request at a time, whose answers are all read before the next.
pub(super) struct Requests {
    socket: Mutex<Numbered>,
}

struct Numbered {
    socket: Socket,
    /// The sequence number of the last request.
    last: u32,
}

impl Requests {
    /// To the namespace of the calling thread.
    pub(super) fn open() -> io::Result<Requests> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        // The kernel.
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Requests { socket: Mutex::new(Numbered { socket, last: 0 }) })
    }

    /// Asks for what one message says.
    pub(super) fn get(&self, message: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        let mut found = self.socket().ask(message, 0)?;
        found.pop().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Asks for all of a kind.
    pub(super) fn dump(
        &self,
        message: RouteNetlinkMessage,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.socket().ask(message, NLM_F_DUMP)
    }

    /// Requests a change, with these flags besides, and waits for its acknowledgment.
    pub(super) fn change(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.socket().ask(message, NLM_F_ACK | flags).map(drop)
    }

    fn socket(&self) -> MutexGuard<'_, Numbered> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Numbered {
    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.last = self.last.wrapping_add(1);
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.last;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let acknowledged = flags & NLM_F_ACK != 0;
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = uninterrupted(|| self.socket.recv_from_full())?;
            let mut rest = &datagram[..];
            while !rest.is_empty() {
                let length = NetlinkBuffer::new_checked(rest).map_err(garbled)?.length() as usize;
                let answer = NetlinkMessage::deserialize(rest).map_err(garbled)?;
                // Messages begin at multiples of four bytes.
                rest = &rest[length.next_multiple_of(4).min(rest.len())..];
                if answer.header.sequence_number != self.last {
                    continue;
                }
                let several = answer.header.flags & NLM_F_MULTIPART != 0;
                match answer.payload {
                    NetlinkPayload::InnerMessage(answer) => answers.push(answer),
                    // An error of zero is an acknowledgement.
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(answers),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::Done(done) if done.code == 0 => return Ok(answers),
                    NetlinkPayload::Done(done) => {
                        return Err(io::Error::from_raw_os_error(done.code.abs()));
                    }
                    _ => continue,
                }
                if !several && !acknowledged {
                    return Ok(answers);
                }
            }
        }
    }
}

fn garbled(error: netlink_packet_core::DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// The call's result, once no signal interrupts it.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
