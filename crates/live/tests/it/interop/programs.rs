//! What both ends of a connection do: send a stream that its hash identifies, and hash the other's.

use base::{Duration, Time};
use live::{Bytes, Program, Socket};
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::Sender;
use tcp::congestion::CeMarks;
use tcp::{Events, State};

const BLOCK: usize = 64 << 10;

/// `size` bytes that depend on `seed`.
pub(crate) struct Data {
    block: Vec<u8>,
    place: u64,
    size: u64,
    hash: Sha256,
}

impl Data {
    pub(crate) fn new(seed: u64, size: u64) -> Data {
        let mut state = seed | 1;
        let words = BLOCK.min(size as usize).div_ceil(8);
        let block = (0..words).flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_ne_bytes()
        });
        Data { block: block.collect(), place: 0, size, hash: Sha256::new() }
    }

    /// The next bytes; none at the end.
    fn next(&mut self) -> &[u8] {
        let into = self.place as usize % BLOCK;
        if into == 0 && self.size > BLOCK as u64 {
            // No two blocks are alike.
            self.block[..8].copy_from_slice(&self.place.to_ne_bytes());
        }
        let len = (self.size - self.place).min((BLOCK - into) as u64) as usize;
        &self.block[into..into + len]
    }

    /// So many of them are gone.
    fn advance(&mut self, len: usize) {
        let into = self.place as usize % BLOCK;
        self.hash.update(&self.block[into..into + len]);
        self.place += len as u64;
    }

    fn is_over(&self) -> bool {
        self.place == self.size
    }
}

/// What became of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) sent: (u64, Vec<u8>),
    pub(crate) received: (u64, Vec<u8>),
    /// Of the kernel, the kind of error that it ended by.
    pub(crate) error: Option<io::ErrorKind>,
    /// Of our end, with accurate ECN: the marks that the kernel has reported and those received.
    pub(crate) marks: Option<(CeMarks, CeMarks)>,
    /// Our data was ECN-capable.
    pub(crate) sends_ect: bool,
}

/// What one end does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) send: u64,
    /// It sends only when the other has closed.
    pub(crate) second: bool,
    /// It closes at its own time, not when the other has: so long after it has sent everything.
    pub(crate) lingers: Option<Duration>,
    /// It reads nothing before that.
    pub(crate) reads_after: Option<Duration>,
    /// It resets the connection when it has received so much.
    pub(crate) aborts_at: Option<u64>,
}

/// Our end.
pub(crate) struct Exchange {
    plan: Plan,
    data: Data,
    received: u64,
    hash: Sha256,
    /// All events so far.
    pub(crate) events: Events,
    /// The states in which it got events.
    pub(crate) states: Vec<State>,
    started: Option<Time>,
    next: Time,
    close_at: Time,
    closed: bool,
    marks: Option<(CeMarks, CeMarks)>,
    sends_ect: bool,
    done: Option<Sender<(Outcome, Events, Vec<State>)>>,
}

impl Exchange {
    pub(crate) fn new(plan: Plan, done: Sender<(Outcome, Events, Vec<State>)>) -> Exchange {
        Exchange {
            plan,
            data: Data::new(plan.seed, plan.send),
            received: 0,
            hash: Sha256::new(),
            events: Events::empty(),
            states: Vec::new(),
            started: None,
            next: Time::NEVER,
            close_at: Time::NEVER,
            closed: false,
            marks: None,
            sends_ect: false,
            done: Some(done),
        }
    }

    fn go_on(&mut self, now: Time, socket: &mut Socket<'_>) {
        let reads_at = self.started.map(|at| at + self.plan.reads_after.unwrap_or_default());
        self.next = Time::NEVER;
        if reads_at.is_some_and(|at| at <= now) {
            loop {
                // Taken with their buffer, or looked at in place.
                let taken = match self.received % 3 {
                    0 => socket.read_bytes(50_000),
                    _ => Bytes::new(),
                };
                let in_place = if taken.is_empty() { socket.chunk() } else { &[] };
                let len = taken.len() + in_place.len();
                if len == 0 {
                    break;
                }
                self.hash.update(&taken);
                self.hash.update(in_place);
                let looked_at = in_place.len();
                socket.consume(looked_at);
                self.received += len as u64;
            }
        } else if let Some(at) = reads_at {
            self.next = at;
        }
        if let Some(at) = self.plan.aborts_at {
            if self.received >= at && !self.closed {
                self.closed = true;
                socket.abort();
            }
            return;
        }
        let peer_closed = self.events.contains(Events::PEER_CLOSED);
        if !self.plan.second || peer_closed {
            self.write(socket);
        }
        if self.data.is_over() && !self.closed && self.started.is_some() {
            if let Some(span) = self.plan.lingers {
                if self.close_at == Time::NEVER {
                    self.close_at = now + span;
                }
                self.next = self.next.min(self.close_at);
            }
            if self.close_at <= now || self.plan.lingers.is_none() {
                self.closed = true;
                self.close_at = Time::NEVER;
                self.next = Time::NEVER;
                socket.close();
            }
        }
    }

    fn write(&mut self, socket: &mut Socket<'_>) {
        while !self.data.is_over() {
            let block = self.data.place / BLOCK as u64;
            let bytes = self.data.next();
            let most = bytes.len();
            // With a buffer of their own, or copied.
            let len = match block % 2 {
                0 => socket.write_bytes(&mut Bytes::copy_from_slice(bytes)),
                _ => socket.write(bytes),
            };
            self.data.advance(len);
            if len < most {
                return;
            }
        }
    }

    fn report(&mut self) {
        if let Some(done) = self.done.take() {
            let outcome = Outcome {
                sent: (self.data.place, self.data.hash.clone().finalize().to_vec()),
                received: (self.received, self.hash.clone().finalize().to_vec()),
                error: None,
                marks: self.marks,
                sends_ect: self.sends_ect,
            };
            // The test may have ended.
            let _ = done.send((outcome, self.events, std::mem::take(&mut self.states)));
        }
    }
}

impl Program for Exchange {
    fn handle(&mut self, now: Time, socket: &mut Socket<'_>, events: Events) {
        self.events |= events;
        let state = socket.connection().state();
        let info = socket.connection().info();
        self.sends_ect |= info.ecn;
        self.marks = info.accurate_ecn.then_some((info.delivered_marks, info.received_marks));
        if self.states.last() != Some(&state) {
            self.states.push(state);
        }
        if events.contains(Events::CONNECTED) {
            self.started = Some(now);
        }
        self.go_on(now, socket);
        let over = matches!(socket.connection().state(), State::Closed | State::TimeWait);
        if over && socket.connection().readable() == 0 {
            self.report();
        }
    }

    fn next_wake(&self) -> Time {
        self.next
    }

    fn wake(&mut self, now: Time, socket: &mut Socket<'_>) {
        self.go_on(now, socket);
        if socket.connection().state() == State::TimeWait {
            self.report();
        }
    }
}

/// The kernel's end, to its end.
pub(crate) fn exchange(plan: Plan, stream: TcpStream) -> Outcome {
    let mut data = Data::new(plan.seed, plan.send);
    let reader = stream.try_clone();
    let reading = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
        let mut hash = Sha256::new();
        let mut received = 0;
        let result = reader.and_then(|stream| read(plan, stream, &mut hash, &mut received));
        (received, hash.finalize().to_vec(), result.err())
    });
    let reading = reading.expect("there can be another thread");
    let (reading, early) = match plan.second {
        true => (None, Some(reading.join().expect("it does not panic"))),
        false => (Some(reading), None),
    };
    let mut error = write(plan, &stream, &mut data).err();
    if let Some(span) = plan.lingers {
        std::thread::sleep(std::time::Duration::from_nanos(span.as_nanos()));
    }
    if plan.aborts_at.is_none() && error.is_none() {
        // The peer may have reset the connection.
        let _ = stream.shutdown(Shutdown::Write);
    }
    let (received, hash, failed) = match reading {
        Some(reading) => reading.join().expect("it does not panic"),
        None => early.expect("it is there in either case"),
    };
    error = error.or(failed);
    Outcome {
        sent: (data.place, data.hash.finalize().to_vec()),
        received: (received, hash),
        error: error.map(|error| error.kind()),
        marks: None,
        sends_ect: false,
    }
}

fn write(plan: Plan, mut stream: &TcpStream, data: &mut Data) -> io::Result<()> {
    if plan.aborts_at.is_some() {
        return Ok(());
    }
    while !data.is_over() {
        let len = stream.write(data.next())?;
        data.advance(len);
    }
    Ok(())
}

fn read(
    plan: Plan,
    mut stream: TcpStream,
    hash: &mut Sha256,
    received: &mut u64,
) -> io::Result<()> {
    if let Some(span) = plan.reads_after {
        std::thread::sleep(std::time::Duration::from_nanos(span.as_nanos()));
    }
    let mut buffer = vec![0; 128 << 10];
    loop {
        if plan.aborts_at.is_some_and(|at| *received >= at) {
            // The reset is sent when the last descriptor is gone.
            return socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO));
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            len => {
                hash.update(&buffer[..len]);
                *received += len as u64;
            }
        }
    }
}
