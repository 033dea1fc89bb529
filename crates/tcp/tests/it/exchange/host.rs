//! A host with an application.

use crate::exchange::cases::{Case, End, Step};
use base::{Duration, Time};
use tcp::mechanism::Mechanism;
use tcp::{Connection, Connectivity, Events, FastOpen, Identity, Indication, Side, State};
use wire::{FastOpenCookie, Flags, Payload, SackBlock, Segment, SeqNumber};

/// Both sequence spaces wrap early.
pub(crate) const ISS: [SeqNumber; 2] = [SeqNumber(u32::MAX - 2500), SeqNumber(u32::MAX - 700)];

/// A host with one application, and at most one connection.
pub(crate) struct Host {
    pub(crate) end: End,
    pub(crate) connection: Option<Connection>,
    pub(crate) listens: bool,
    /// Its connection records events.
    pub(crate) watched: bool,
    /// What its clock is ahead of the world's.
    pub(crate) ahead: Duration,
    /// Bytes that cross the connection in one go.
    pub(crate) room: u64,
    /// When the next step of the script is due.
    pub(crate) step_at: Time,
    /// Runs of bytes that it has written.
    pub(crate) written: Vec<Payload>,
    /// Bytes written.
    pub(crate) total: u64,
    /// What it has read, and how far into the peer's runs that is.
    pub(crate) read: u64,
    pub(crate) place: (usize, u32),
    /// All events of its connection so far.
    pub(crate) events: Events,
    /// The octet after the last that the peer's windows have ever allowed, and the last of them.
    pub(crate) allowed: u32,
    pub(crate) right_edge: u32,
    /// The peer's window shift.
    pub(crate) shift: u8,
    /// The octet after the last that it has sent.
    pub(crate) nxt: u32,
    /// The octet after the last that its own windows have ever allowed.
    pub(crate) edge: u32,
    /// The one that its SYN announced, whose window field may have been too small for more.
    syn_edge: u32,
    /// Ranges of the peer's data that have arrived since it last reported one by DSACK.
    pub(crate) arrived: Vec<(u32, u32)>,
    /// The octet that it last sent beyond the window.
    pub(crate) probe: Option<u32>,
    /// The timeout without back-off, and whether it may have been backed off since.
    pub(crate) rto: Duration,
    pub(crate) probed: bool,
}

impl Host {
    pub(crate) fn new(case: &Case, index: usize, watched: bool) -> Host {
        let opens = index == 0 || case.both_open;
        let sizes = [0, 1].map(|i| &case.ends[i].config);
        let sizes =
            sizes.map(|config| u64::from(config.mss).min(u64::from(config.receive_window.initial)));
        let mut host = Host {
            end: case.ends[index].clone(),
            room: sizes[0].min(sizes[1]),
            connection: None,
            listens: !opens,
            watched,
            ahead: Duration::ZERO,
            step_at: Time::NEVER,
            written: Vec::new(),
            total: 0,
            read: 0,
            place: (0, 0),
            events: Events::empty(),
            allowed: 1,
            right_edge: 1,
            shift: 0,
            nxt: 0,
            edge: 0,
            syn_edge: 0,
            arrived: Vec::new(),
            probe: None,
            rto: case.ends[index].config.rto.initial,
            probed: false,
        };
        if opens {
            host.open(index, Side::Active, Time::ZERO);
            host.open_fast(index, case);
        }
        host
    }

    pub(crate) fn open(&mut self, index: usize, side: Side, now: Time) {
        let identity = Identity {
            local_port: 1 + index as u16,
            remote_port: 2 - index as u16,
            iss: ISS[index],
            timestamp_offset: u32::MAX - 10_000,
            is_ipv6: false,
            secret: 3 + index as u64,
        };
        let mut connection = Connection::new(&self.end.config, side, identity);
        connection.watch(self.watched);
        self.connection = Some(connection);
        self.step_at = now + self.end.script.first().map_or(Duration::ZERO, millis);
    }

    /// The client has a cookie, and writes first data before its SYN goes.
    fn open_fast(&mut self, index: usize, case: &Case) {
        if self.end.config.fast_open {
            let mss = case.ends[1 - index].config.mss;
            let offer = FastOpen::Offer { cookie: cookie(), mss };
            self.using(|connection| connection.fast_open(offer));
            self.write(index, case.seed % 50, false, case.seed & 1 > 0);
        }
    }

    /// A SYN with a cookie has come.
    pub(crate) fn accept_fast(&mut self, offered: Option<FastOpenCookie>) {
        if self.end.config.fast_open && offered == Some(cookie()) {
            self.using(|connection| connection.fast_open(FastOpen::Accept(None)));
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.state() == State::Closed)
    }

    /// Everything of its connection has arrived, both ways.
    pub(crate) fn is_done(&self) -> bool {
        let done = [State::TimeWait, State::Closed];
        self.connection.as_ref().is_none_or(|connection| done.contains(&connection.state()))
    }

    /// Its connection's deadline, in the world's time.
    pub(crate) fn deadline(&self) -> Time {
        match self.connection.as_ref().map(Connection::poll_timeout) {
            None | Some(Time::NEVER) => Time::NEVER,
            Some(deadline) => {
                Time::from_nanos(deadline.as_nanos().wrapping_sub(self.ahead.as_nanos()))
            }
        }
    }

    pub(crate) fn local(&self, now: Time) -> Time {
        now + self.ahead
    }

    /// Checks what a segment announces and reports, to a peer with the initial number `irs`.
    pub(crate) fn check_announced(&mut self, segment: &Segment, irs: SeqNumber) {
        let Some(connection) = &self.connection else { return };
        if !segment.flags.contains(Flags::ACK) || segment.flags.contains(Flags::RST) {
            return;
        }
        let freezes = |mechanism: &Mechanism| matches!(mechanism, Mechanism::Freeze(_));
        let freezes = self.end.config.mechanisms.iter().any(freezes);
        let (info, ack) = (connection.info(), segment.ack - irs);
        let opens = segment.flags.contains(Flags::SYN);
        let shift = if opens { 0 } else { info.window_shifts.map_or(0, |(_, own)| own) };
        let edge = ack.wrapping_add(u32::from(segment.window) << shift);
        // RFC 9293 §3.8.6.2.2: by a segment, or half of the buffer, or not at all, but for what the
        // shift makes of it and what a FIN takes.
        let step = (self.end.config.receive_window.initial / 2).min(info.mss).max(1);
        let (moved, rounding) = (edge.saturating_sub(self.edge), (1 << shift) - 1);
        let fin = u32::from(self.events.contains(Events::PEER_CLOSED));
        let least = step.saturating_sub(rounding);
        let first = freezes
            || opens
            || self.edge == self.syn_edge
            || self.edge <= 1 + u32::from(u16::MAX).min(self.end.config.receive_window.initial);
        assert!(first || moved <= rounding + fin || moved >= least, "the window moves by {moved}");
        self.edge = self.edge.max(edge);
        if opens {
            self.syn_edge = self.edge;
        }
        // RFC 2883 §4: a report is of what has arrived, and is not repeated.
        let wire = |block: &SackBlock| (block.start - irs, block.end - irs);
        let mut blocks = segment.options.sack.as_slice().iter().map(wire);
        let Some(report) = blocks.next() else { return };
        let within = |outer: (u32, u32)| outer.0 <= report.0 && report.1 <= outer.1;
        if report.1 <= ack || blocks.next().is_some_and(within) {
            let arrived = core::mem::take(&mut self.arrived);
            assert!(arrived.into_iter().any(within), "{report:?} has not arrived since the last");
        }
    }

    /// Reads one run, or a piece of it; whether there was one.
    pub(crate) fn read(&mut self, peers: &[Payload]) -> bool {
        let most = if self.end.eager { u32::MAX } else { self.end.piece };
        let read = self.connection.as_mut().and_then(|connection| connection.read_up_to(most));
        let Some(mut payload) = read else { return false };
        self.read += u64::from(payload.len);
        while payload.len > 0 {
            let (run, into) = self.place;
            let due = peers[run].skip(into);
            let common = due.take(payload.len);
            assert_eq!(payload.take(common.len), common, "not what was written there");
            payload = payload.skip(common.len);
            self.place =
                if common.len == due.len { (run + 1, 0) } else { (run, into + common.len) };
        }
        true
    }

    pub(crate) fn write(&mut self, index: usize, share: u64, another_stream: bool, more: bool) {
        let len = (100 * self.room * share / 1000 + 1) as u32;
        let (stream, offset) = match self.written.last() {
            Some(last) if !another_stream => (last.stream, last.end()),
            last => (last.map_or(index as u32, |last| last.stream + 2), 0),
        };
        self.written.push(Payload { stream, offset, len });
        self.total += u64::from(len);
        self.using(|connection| match more {
            true => connection.write_more(stream, offset, u64::from(len)),
            false => connection.write(stream, offset, u64::from(len)),
        });
    }

    /// Indicates a change of connectivity to the connection.
    pub(crate) fn indicate(&mut self, now: Time, connectivity: Connectivity) {
        let local = self.local(now);
        let indication = Indication::Connectivity(connectivity);
        self.using(|connection| connection.indicate(local, &indication));
    }

    /// Uses the connection, once it is there.
    pub(crate) fn using(&mut self, call: impl FnOnce(&mut Connection)) {
        if let Some(connection) = &mut self.connection {
            call(connection);
        }
    }
}

fn cookie() -> FastOpenCookie {
    FastOpenCookie::new(&[7; 8]).expect("a cookie may have eight bytes")
}

/// How long a step waits.
pub(crate) fn millis(step: &Step) -> Duration {
    Duration::from_millis(step.after)
}
