//! Readiness: `poll(2)` and `epoll(7)`.

use crate::epoll::{Change, Epoll, Interest};
use crate::socket::{Kind, descriptor};
use crate::stack::Stack;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, RawFd};
use tcp::State;

/// The readiness of a socket, in the bits of `poll(2)`, which are `epoll(7)`'s, too.
pub(crate) const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;
const ERR: u32 = libc::EPOLLERR as u32;
const HUP: u32 = libc::EPOLLHUP as u32;
const RDHUP: u32 = libc::EPOLLRDHUP as u32;
/// Reported whether asked for or not.
const ALWAYS: u32 = ERR | HUP;

impl Stack {
    /// The readiness of a socket.
    pub(crate) fn readiness(&self, fd: RawFd) -> Result<u32, Errno> {
        let socket = self.find(fd)?;
        let place = match socket.kind {
            Kind::Idle => return Ok(OUT | HUP),
            Kind::Listening { .. } => return Ok(if self.is_acceptable(fd) { IN } else { 0 }),
            Kind::Deferred(_) => return Ok(OUT),
            Kind::Connected(place) => place,
        };
        let connection = self.connection(place)?;
        let endpoint = self.host_ref(place.is_ipv6).application(place.id).ok_or(Errno::BADF)?;
        let closed = connection.state() == State::Closed;
        let ended = endpoint.peer_closed || socket.read_shut || closed;
        let room = connection.unacknowledged() < socket.options.send_buffer;
        let mut ready = 0;
        let mut add = |condition: bool, bits: u32| ready |= if condition { bits } else { 0 };
        add(connection.readable() > 0 || ended, IN);
        add(ended, RDHUP);
        add(endpoint.established && room || closed, OUT);
        add(endpoint.error.is_some(), ERR);
        add(closed || ended && socket.write_shut, HUP);
        Ok(ready)
    }

    /// The number of events of a socket so far.
    fn changes(&self, fd: RawFd) -> u64 {
        let endpoint = self.place(fd).ok().and_then(|place| {
            self.host_ref(place.is_ipv6).application(place.id).map(|endpoint| endpoint.changes)
        });
        endpoint.unwrap_or(u64::from(self.is_acceptable(fd)))
    }

    /// `poll(2)` at this moment: the requested readiness of each descriptor.
    pub(crate) fn poll(&self, asked: &[(RawFd, u32)]) -> Vec<u32> {
        let ready = |&(fd, events): &(RawFd, u32)| match self.readiness(fd) {
            _ if fd < 0 => 0,
            Ok(ready) => ready & (events | ALWAYS),
            Err(_) => libc::POLLNVAL as u32,
        };
        asked.iter().map(ready).collect()
    }

    pub(crate) fn epoll_create(&mut self) -> Result<RawFd, Errno> {
        let own = descriptor()?;
        let fd = own.as_raw_fd();
        self.epolls.insert(fd, Epoll { _fd: own, interests: BTreeMap::new() });
        Ok(fd)
    }

    pub(crate) fn epoll_change(
        &mut self,
        epoll: RawFd,
        fd: RawFd,
        change: Change,
    ) -> Result<(), Errno> {
        self.find(fd)?;
        let interests = &mut self.epolls.get_mut(&epoll).ok_or(Errno::BADF)?.interests;
        match (change, interests.contains_key(&fd)) {
            (Change::Add { .. }, true) => return Err(Errno::EXIST),
            (Change::Modify { .. } | Change::Delete, false) => return Err(Errno::NOENT),
            (Change::Add { events, data } | Change::Modify { events, data }, _) => {
                interests.insert(fd, Interest { events, data, seen: None });
            }
            (Change::Delete, true) => {
                interests.remove(&fd);
            }
        }
        Ok(())
    }

    /// `epoll_wait(2)` at this moment: at most `most` events, each with its data.
    pub(crate) fn epoll_ready(&mut self, fd: RawFd, most: usize) -> Result<Vec<(u32, u64)>, Errno> {
        let mut epoll = self.epolls.remove(&fd).ok_or(Errno::BADF)?;
        let mut ready = Vec::new();
        for (&fd, interest) in &mut epoll.interests {
            let events = self.readiness(fd).unwrap_or(ERR) & (interest.events | ALWAYS);
            let changes = self.changes(fd);
            let edge = interest.events & libc::EPOLLET as u32 != 0;
            if events == 0 || edge && interest.seen == Some(changes) {
                continue;
            }
            if ready.len() == most {
                break;
            }
            interest.seen = Some(changes);
            ready.push((events, interest.data));
            if interest.events & libc::EPOLLONESHOT as u32 != 0 {
                interest.events = 0;
            }
        }
        self.epolls.insert(fd, epoll);
        Ok(ready)
    }
}
