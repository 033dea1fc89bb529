//! Reading and writing.

use crate::socket::Kind;
use crate::stack::Stack;
use core::net::SocketAddr;
use rustix::io::Errno;
use std::os::fd::RawFd;
use tcp::{Connection, LowWater, State};
use wire::Payload;

/// How a system call reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The bytes stay unread (`MSG_PEEK`).
    pub peek: bool,
}

/// How a system call writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writing {
    /// More will follow (`MSG_MORE`).
    pub more: bool,
    /// A record ends here: nothing is to follow in the same segment (`MSG_EOR`).
    pub end_of_record: bool,
}

/// At most `most` readable bytes, run by run; with `peek` they stay unread.
fn runs(connection: &mut Connection, most: u32, peek: bool) -> Vec<Payload> {
    let (mut left, mut runs) = (most, Vec::new());
    let mut waiting = connection.peek().collect::<Vec<_>>().into_iter();
    while left > 0
        && let Some(run) = if peek { waiting.next() } else { connection.read_up_to(left) }
    {
        runs.push(run.take(left));
        left -= run.len.min(left);
    }
    runs
}

impl Stack {
    /// `recv(2)`: 0 bytes at the end of the stream.
    ///
    /// # Errors
    /// As the system call; `AGAIN` if there is nothing to read yet.
    pub fn read(&mut self, fd: RawFd, into: &mut [u8], how: Reading) -> Result<usize, Errno> {
        if matches!(self.find(fd)?.kind, Kind::Deferred(_)) {
            return Err(Errno::AGAIN);
        }
        let place = self.place(fd)?;
        let read_shut = self.find(fd)?.read_shut;
        let most = u32::try_from(into.len()).unwrap_or(u32::MAX);
        let found = self.using(place, |connection, endpoint| {
            let runs = runs(connection, most, how.peek);
            let ended = endpoint.peer_closed || read_shut || connection.state() == State::Closed;
            match endpoint.error {
                _ if !runs.is_empty() || most == 0 => Ok(runs),
                Some(error) => {
                    endpoint.error = None;
                    Err(error)
                }
                None if ended => Ok(runs),
                None => Err(Errno::AGAIN),
            }
        });
        let runs = found.unwrap_or(Err(Errno::NOTCONN))?;
        let mut length = 0;
        for run in runs {
            let bytes = self.bytes(run);
            into[length..length + bytes.len()].copy_from_slice(bytes);
            length += bytes.len();
        }
        Ok(length)
    }

    /// `send(2)`: the number of bytes accepted, perhaps not all.
    ///
    /// # Errors
    /// As the system call; `AGAIN` if there is no room yet.
    pub fn write(&mut self, fd: RawFd, bytes: &[u8], how: Writing) -> Result<usize, Errno> {
        let socket = self.find(fd)?;
        let Kind::Connected(place) = socket.kind else { return Err(Errno::PIPE) };
        let (buffer, write_shut) = (socket.options.send_buffer, socket.write_shut);
        let fresh = self.written.len() as u32;
        let taken = self.using(place, |connection, endpoint| {
            if let Some(error) = endpoint.error.take() {
                return Err(error);
            }
            if write_shut || connection.state() == State::Closed {
                return Err(Errno::PIPE);
            }
            let room = buffer.saturating_sub(connection.unacknowledged());
            if room < bytes.len() as u64 {
                connection.notify_at(LowWater::Unacknowledged(buffer / 2));
            }
            if !endpoint.established || room == 0 && !bytes.is_empty() {
                return Err(Errno::AGAIN);
            }
            Ok((room.min(bytes.len() as u64) as usize, *endpoint.stream.get_or_insert(fresh)))
        });
        let (length, stream) = taken.unwrap_or(Err(Errno::PIPE))?;
        if stream == fresh {
            self.new_stream();
        }
        let kept = &mut self.written[stream as usize];
        let offset = kept.len() as u64;
        kept.extend_from_slice(&bytes[..length]);
        self.using(place, |connection, endpoint| {
            if how.more {
                connection.write_more(stream, offset, length as u64);
            } else {
                connection.write(stream, offset, length as u64);
            }
            if how.end_of_record && length == bytes.len() {
                endpoint.stream = None;
            }
        });
        Ok(length)
    }

    /// The beginning of `send(2)` with `MSG_FASTOPEN`, which [`Stack::connected`] ends: opens a
    /// connection whose SYN carries the first of `bytes`, if the server has given a cookie. With
    /// `all` it takes all bytes, as for a call that waits; otherwise those of the SYN. A socket whose
    /// `connect` was deferred is connected `to` the address of that call.
    ///
    /// Returns the number of bytes taken.
    ///
    /// # Errors
    /// As the system call; `INPROGRESS` if none was taken, unless `all` are.
    pub fn connect_with(
        &mut self,
        fd: RawFd,
        to: Result<SocketAddr, Errno>,
        bytes: &[u8],
        all: bool,
    ) -> Result<usize, Errno> {
        let address = match self.find(fd)?.kind {
            Kind::Deferred(address) => address,
            Kind::Idle if !self.setup.offers_fast_open() => return Err(Errno::OPNOTSUPP),
            // Linux refuses an address of another family thus.
            Kind::Idle if to == Err(Errno::AFNOSUPPORT) => return Err(Errno::OPNOTSUPP),
            Kind::Idle => to?,
            Kind::Listening { .. } => return Err(Errno::PIPE),
            Kind::Connected(_) => return Err(Errno::ALREADY),
        };
        let place = self.open(fd, address, true)?;
        let length = if all {
            bytes.len()
        } else {
            bytes.len().min(self.connection(place)?.syn_room() as usize)
        };
        let stream = self.new_stream();
        self.written[stream as usize].extend_from_slice(&bytes[..length]);
        self.using(place, |connection, endpoint| {
            endpoint.stream = Some(stream);
            connection.write(stream, 0, length as u64);
        });
        if length > 0 || all { Ok(length) } else { Err(Errno::INPROGRESS) }
    }

    /// Whether data that is sent now opens the connection: `connect` was deferred, or the call has
    /// `MSG_FASTOPEN` (`fast_open`) and comes before the end of a handshake.
    ///
    /// # Errors
    /// `BADF`
    pub fn opens_by_data(&self, fd: RawFd, fast_open: bool) -> Result<bool, Errno> {
        Ok(match self.find(fd)?.kind {
            Kind::Deferred(_) => true,
            Kind::Idle | Kind::Listening { .. } => fast_open,
            Kind::Connected(place) => {
                fast_open && self.connection(place)?.state() == State::SynSent
            }
        })
    }

    /// The number of unread bytes, if `TCP_INQ` is set. If only the end of the stream is left, 1,
    /// as Linux hints that another read returns something.
    ///
    /// # Errors
    /// `BADF`, `NOTCONN`
    pub fn reported_inq(&self, fd: RawFd) -> Result<Option<u32>, Errno> {
        let place = self.place(fd)?;
        let readable = self.readable(fd)?;
        let ended = self.host_ref(place.is_ipv6).application(place.id);
        let hint = readable == 0 && ended.is_some_and(|endpoint| endpoint.peer_closed);
        let left = if hint { 1 } else { readable };
        Ok(self.find(fd)?.options.reports_inq.then_some(left))
    }

    /// Bytes that can be read (`SIOCINQ`).
    ///
    /// # Errors
    /// As `ioctl(2)`.
    pub fn readable(&self, fd: RawFd) -> Result<u32, Errno> {
        let connection = self.connection(self.place(fd)?)?;
        Ok(u32::try_from(connection.readable()).unwrap_or(u32::MAX))
    }

    /// Bytes written and not yet acknowledged (`SIOCOUTQ`).
    ///
    /// # Errors
    /// As `ioctl(2)`.
    pub fn unacknowledged(&self, fd: RawFd) -> Result<u32, Errno> {
        let connection = self.connection(self.place(fd)?)?;
        Ok(u32::try_from(connection.unacknowledged()).unwrap_or(u32::MAX))
    }
}
