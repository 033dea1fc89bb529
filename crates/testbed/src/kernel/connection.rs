//! An application over a connected socket of the kernel.

use crate::state::{Ended, RunState};
use base::{LowWater, Time};
use host::{Application, Role, Transport};
use rustix::event::PollFlags;
use scenario::{End, bytes_of};
use socket2::Socket;
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use tcp::Events;
use wire::Payload;

/// The size of a read or write, bytes; and how much an application reads before it learns the
/// time anew.
const CHUNK: usize = 64 * 1024;

/// Runs an application until both ends have closed.
pub(super) fn run(state: &RunState, socket: &Socket, end: &mut End) -> Result<(), Ended> {
    let mut connection = Connection::new(state, socket, end);
    let result = connection.run(end);
    end.wrong += connection.wrong;
    result
}

/// A connected socket, which does not block.
struct Connection<'a> {
    state: &'a RunState,
    socket: &'a Socket,
    flow: usize,
    role: Role,
    buffer: Vec<u8>,
    /// What is written and finds no room in the kernel's buffer: bytes, of which the first
    /// `passed_on` found it, and after them ranges, each by its first byte and its length.
    bytes: Vec<u8>,
    passed_on: usize,
    outgoing: VecDeque<(u64, u64)>,
    /// The application has closed its half, and so has the socket.
    is_closing: bool,
    is_shut: bool,
    /// Bytes read, and how many of them are not those that were sent.
    read: u64,
    wrong: u64,
    /// Bytes that may be read before the application learns the time anew.
    budget: usize,
    /// The kernel has nothing to read.
    is_drained: bool,
    /// The peer has closed its half, and the application knows.
    at_end: bool,
    is_notified: bool,
    low_water: Option<u64>,
    error: Option<io::Error>,
}

impl<'a> Connection<'a> {
    fn new(state: &'a RunState, socket: &'a Socket, end: &End) -> Connection<'a> {
        Connection {
            state,
            socket,
            flow: end.flow,
            role: end.role,
            buffer: Vec::new(),
            bytes: Vec::new(),
            passed_on: 0,
            outgoing: VecDeque::new(),
            is_closing: false,
            is_shut: false,
            read: 0,
            wrong: 0,
            budget: CHUNK,
            is_drained: true,
            at_end: false,
            is_notified: false,
            low_water: None,
            error: None,
        }
    }

    fn run(&mut self, end: &mut End) -> Result<(), Ended> {
        let mut events = Events::CONNECTED;
        loop {
            if self.state.is_over() {
                return Err(Ended::Over);
            }
            if !events.is_empty() {
                self.budget = CHUNK;
                end.handle(self.state.clock.now(), self, events);
            }
            self.flush()?;
            if self.at_end && self.is_notified && self.is_shut {
                return Ok(());
            }
            let wake = Application::<Connection<'_>>::next_wake(end);
            events = self.events(wake)?;
            if self.state.clock.now() >= wake {
                self.budget = CHUNK;
                // As of its own time, so that lateness does not add up.
                end.wake(wake, self);
            }
        }
    }

    /// The next events; none if the time has come before.
    fn events(&mut self, wake: Time) -> Result<Events, Ended> {
        let mut events = Events::empty();
        if let Some(error) = self.error.take() {
            return Err(Ended::Failed(error));
        }
        if self.at_end && !self.is_notified {
            self.is_notified = true;
            events |= Events::PEER_CLOSED;
        }
        let waiting = self.unacknowledged();
        if self.low_water.is_some_and(|bytes| waiting <= bytes) {
            self.low_water = None;
            events |= Events::WRITABLE;
        }
        if self.budget == 0 && !self.is_drained {
            events |= Events::READABLE;
        }
        if !events.is_empty() {
            return Ok(events);
        }
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::OUT, waiting > 0);
        // What the application has not read causes no event again.
        flags.set(PollFlags::IN, self.is_drained && !self.at_end);
        if flags.is_empty() {
            self.state.sleep_until(wake)?;
            return Ok(events);
        }
        let ready = self.state.wait_until(self.socket, flags, wake)?;
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
            && flags.contains(PollFlags::IN)
        {
            match self.socket.peek(&mut [std::mem::MaybeUninit::uninit()]) {
                Ok(0) => self.at_end = true,
                Ok(_) => {
                    self.is_drained = false;
                    events |= Events::READABLE;
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(Ended::Failed(error)),
            }
        }
        Ok(events)
    }

    /// Passes on what has been written, as far as the kernel has room.
    fn flush(&mut self) -> Result<(), Ended> {
        let mut socket = self.socket;
        while self.unacknowledged() > 0 {
            if self.passed_on == self.bytes.len() {
                self.render();
            }
            match socket.write(&self.bytes[self.passed_on..]) {
                Ok(_) if self.state.is_over() => return Err(Ended::Over),
                Ok(written) => self.passed_on += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Ended::Failed(error)),
            }
        }
        if self.is_closing && !self.is_shut {
            socket.shutdown(Shutdown::Write)?;
            self.is_shut = true;
        }
        Ok(())
    }

    /// Renders the next chunk of what is written.
    fn render(&mut self) {
        let Some((offset, len)) = self.outgoing.front_mut() else { return };
        let chunk = (*len).min(CHUNK as u64);
        self.bytes.resize(chunk as usize, 0);
        self.passed_on = 0;
        bytes_of(self.flow, self.role, *offset, chunk as u32).render(&mut self.bytes);
        *offset += chunk;
        *len -= chunk;
        if *len == 0 {
            self.outgoing.pop_front();
        }
    }

    /// Reads at most `most` bytes, and a chunk.
    fn receive(&mut self, most: usize) -> Option<Payload> {
        if self.at_end || self.error.is_some() {
            return None;
        }
        self.buffer.resize(most.min(CHUNK), 0);
        let mut socket = self.socket;
        match socket.read(&mut self.buffer) {
            Ok(0) => {
                (self.at_end, self.is_drained) = (true, true);
                None
            }
            Ok(len) => {
                let sender = self.role.other();
                let payload = bytes_of(self.flow, sender, self.read, len as u32);
                self.wrong += payload.count_wrong(&self.buffer[..len]);
                self.read += len as u64;
                Some(payload)
            }
            Err(error) => {
                self.is_drained = true;
                if !is_passing(&error) {
                    self.error = Some(error);
                }
                None
            }
        }
    }
}

/// Whether nothing is wrong but the time.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Transport for Connection<'_> {
    fn write(&mut self, _: u32, offset: u64, len: u64) {
        if len > 0 && !self.is_closing {
            self.outgoing.push_back((offset, len));
        }
    }

    fn read(&mut self) -> Option<Payload> {
        if self.budget == 0 {
            return None;
        }
        let payload = self.receive(self.budget)?;
        self.budget -= payload.len as usize;
        Some(payload)
    }

    fn read_up_to(&mut self, bytes: u32) -> Option<Payload> {
        if bytes == 0 { None } else { self.receive(bytes as usize) }
    }

    fn close(&mut self) {
        self.is_closing = true;
    }

    /// Those for which the kernel's buffer has no room: it holds the others.
    fn unacknowledged(&self) -> u64 {
        let ranges: u64 = self.outgoing.iter().map(|(_, len)| len).sum();
        ranges + (self.bytes.len() - self.passed_on) as u64
    }

    /// The same: the kernel sends what it has room for.
    fn unsent(&self) -> u64 {
        self.unacknowledged()
    }

    fn readable(&self) -> u64 {
        rustix::io::ioctl_fionread(self.socket).unwrap_or(0)
    }

    fn segment_size(&self) -> u32 {
        self.socket.tcp_mss().unwrap_or(0)
    }

    fn notify_at(&mut self, low_water: LowWater) {
        let (LowWater::Unacknowledged(bytes) | LowWater::Unsent(bytes)) = low_water;
        if self.low_water.is_none() {
            let size = usize::try_from(bytes.saturating_add(1)).unwrap_or(usize::MAX);
            self.error = self.socket.set_send_buffer_size(size).err();
        }
        self.low_water = Some(bytes);
    }

    /// The kernel acknowledges the end of data when it arrives.
    fn hold_end(&mut self) {}

    fn release_end(&mut self, _: Time) {}

    /// The kernel resets a socket that is closed without lingering.
    fn abort(&mut self) {
        let aborted = self.socket.set_linger(Some(std::time::Duration::ZERO));
        self.error = Some(aborted.err().unwrap_or(io::ErrorKind::ConnectionAborted.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::{Connection, End, LowWater, Role, RunState, Socket, Transport as _};
    use live::Clock;
    use std::net::{TcpListener, TcpStream};

    const SCENARIO: &str = r#"
title    = "a transfer out of a small buffer"
duration = "1 s"
nodes    = { a = {}, b = {} }
[[links]]
between  = ["a", "b"]
rate     = "20 Mbit/s"
delay    = "10 ms"
[[flows]]
from     = "a"
to       = "b"
stack    = "linux"
traffic  = { size = "200 kB", send_buffer = "8 KiB" }
"#;

    /// A run hardly shows it: a kernel sends more than its buffer at a time, in one large unit.
    #[test]
    fn an_application_that_waits_for_room_has_the_kernels_buffer_no_larger() {
        let source = scenario::Source::new(SCENARIO, "case.toml");
        let experiment = scenario::Experiment::read(&source).unwrap();
        let state = RunState::new(&experiment.testbed_scenario().unwrap(), Clock::start());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = Socket::from(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let traffic = host::Traffic::Sink(host::Sink::of_any());
        let end = End::new(0, Role::Sender, None, traffic);
        let mut connection = Connection::new(&state, &socket, &end);
        let before = socket.send_buffer_size().unwrap();
        connection.notify_at(LowWater::Unacknowledged(8191));
        // Linux doubles it, for its own use (socket(7)).
        assert_eq!(socket.send_buffer_size().unwrap(), 2 * 8192);
        assert!(before > 2 * 8192 && connection.error.is_none());
        // Once is enough.
        connection.notify_at(LowWater::Unacknowledged(100_000));
        assert_eq!(socket.send_buffer_size().unwrap(), 2 * 8192);
    }
}
