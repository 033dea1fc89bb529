//! Two hosts with an application each, and the network between them.

use crate::exchange::cases::{Act, Case, Luck, Queue};
use crate::exchange::host::{Host, ISS, millis};
use crate::exchange::limit::Limit;
use crate::exchange::peer::{Accepted, Peer};
use base::{Duration, Random, Seed, Time};
use std::collections::BTreeMap;
use tcp::mechanism::Mechanism;
use tcp::{
    Connection, Connectivity, Event, Events, Indication, LossCause, PeerLosses, Side, State,
};
use wire::{Body, Code, CopyId, Ecn, Flags, Packet, PathFields, Probability, Segment};

/// A packet in flight, or the report of its corruption to its sender or receiver.
struct Flying {
    to: usize,
    packet: Packet,
    corrupted: bool,
}

/// The world of one case.
pub(crate) struct World {
    pub(crate) hosts: [Host; 2],
    peers: [Peer; 2],
    luck: Luck,
    /// The links to either host, if they are FIFO queues.
    lines: Option<[Line; 2]>,
    limit: Limit,
    pub(crate) now: Time,
    flying: BTreeMap<(Time, u64), Flying>,
    order: u64,
    chance: Random,
    /// Moments at which connections are stored and restored; that world is watched, too.
    restores: Option<Random>,
    /// Everything that was ever sent.
    pub(crate) trace: Vec<(Time, usize, Packet)>,
}

/// A FIFO queue and the link behind it.
struct Line {
    queue: Queue,
    /// When what was sent so far has left the queue.
    empty_at: Time,
    /// When the last of it arrives.
    last: Time,
    /// When something leaves that may yet be replaced, and arrives.
    waiting: (Time, Time),
}

impl Line {
    fn new(queue: Queue) -> Line {
        Line { queue, empty_at: Time::ZERO, last: Time::ZERO, waiting: (Time::NEVER, Time::ZERO) }
    }

    /// When a packet with so many bytes of payload arrives that joins the queue at `leaves`. If that
    /// is not now, it has none, and the next may replace it.
    fn arrival(&mut self, now: Time, leaves: Time, bytes: u32, delay: Duration) -> Time {
        let (left, arrives) = self.waiting;
        if left <= now {
            self.last = self.last.max(arrives);
        }
        if bytes > 0 {
            let takes = Duration::from_nanos(self.queue.nanos_per_byte * u64::from(bytes));
            self.empty_at = self.empty_at.max(leaves) + takes;
        }
        let at = (self.empty_at.max(leaves) + delay).max(self.last);
        self.waiting = (leaves, at);
        at
    }
}

impl World {
    pub(crate) fn new(case: &Case, restores: bool) -> World {
        World {
            hosts: [0, 1].map(|i| Host::new(case, i, restores)),
            peers: [0, 1].map(|i| Peer::new(case.ends[i].habits, ISS[1 - i])),
            lines: case.queues.map(|queues| queues.map(Line::new)),
            limit: Limit::new(case),
            luck: case.luck,
            now: Time::ZERO,
            flying: BTreeMap::new(),
            order: 0,
            chance: Seed(case.seed).stream("channel"),
            restores: restores.then(|| Seed(case.seed).stream("restores")),
            trace: Vec::new(),
        }
    }

    /// Runs until nothing is in flight and nothing is due.
    pub(crate) fn run(&mut self) {
        self.after(0);
        self.after(1);
        for _ in 0..400_000 {
            let next = self.flying.keys().next().map_or(Time::NEVER, |key| key.0);
            let due = [0, 1].map(|i| (self.hosts[i].deadline(), self.hosts[i].step_at));
            let first = due.iter().fold(next, |first, due| first.min(due.0).min(due.1));
            if first == Time::NEVER {
                return;
            }
            assert!(self.now <= first, "time goes back");
            self.now = first;
            self.check_limit();
            if self.now >= self.calm_at() {
                self.luck = Luck { until: u64::MAX, delay: self.luck.delay, ..Luck::default() };
                self.peers.iter_mut().for_each(Peer::behave);
            }
            if next == first {
                let Some((_, flying)) = self.flying.pop_first() else { return };
                self.arrive(flying);
            } else if let Some(i) = due.iter().position(|due| due.0 == first) {
                let host = &mut self.hosts[i];
                let local = host.local(first);
                if let Some(connection) = &mut host.connection {
                    connection.handle_timeout(local);
                }
                self.after(i);
            } else {
                let i = usize::from(due[0].1 != first);
                self.step(i);
                self.after(i);
            }
        }
        let states = [0, 1].map(|i| self.hosts[i].connection.as_ref().map(Connection::state));
        panic!("it never ends: {states:?} at {}, {} on their way", self.now, self.flying.len());
    }

    /// When nothing goes wrong any more.
    fn calm_at(&self) -> Time {
        match self.luck.until {
            u64::MAX => Time::NEVER,
            until => Time::ZERO + Duration::from_millis(until),
        }
    }

    /// The next step of an application's script.
    fn step(&mut self, i: usize) {
        self.disturb(self.now);
        let [one, two] = &mut self.hosts;
        let (host, peer) = if i == 0 { (one, two) } else { (two, one) };
        host.step_at = Time::NEVER;
        if host.end.script.is_empty() {
            // It is over. What is closed before it is open never opens.
            host.end.eager = true;
            host.indicate(self.now, Connectivity::Changed { window: None });
            match &mut host.connection {
                Some(connection) if host.end.aborts => connection.abort(),
                Some(connection) if connection.state() != State::SynSent => connection.close(),
                _ => {}
            }
            return;
        }
        match host.end.script.remove(0).act {
            Act::Write { share, another_stream, more } => {
                host.write(i, share, another_stream, more);
            }
            Act::Cork(corked) => host.using(|connection| connection.cork(corked)),
            Act::Flush => host.using(Connection::flush),
            Act::Nagle(nagle) => host.using(|connection| connection.set_nagle(nagle)),
            Act::Connectivity(connectivity) => host.indicate(self.now, connectivity),
            Act::Read => {
                host.read(&peer.written);
            }
            Act::Close => host.end.script.clear(),
        }
        host.step_at = self.now + host.end.script.first().map_or(Duration::ZERO, millis);
    }

    fn arrive(&mut self, Flying { to, mut packet, corrupted }: Flying) {
        let Body::Tcp(segment) = packet.body else { panic!("not TCP") };
        if corrupted {
            return self.report(to, &segment, packet.payload.len);
        }
        let sack = self.hosts[to].connection.as_ref().is_some_and(|c| c.info().sack);
        match self.peers[to].accept(&mut packet, sack, &mut self.chance) {
            Accepted::Whole => {}
            Accepted::Changed => self.disturb(self.now),
            Accepted::Refused(answer) => {
                self.disturb(self.now);
                return self.launch(1 - to, *answer);
            }
            Accepted::Discarded => return self.disturb(self.now),
        }
        let Body::Tcp(segment) = packet.body else { panic!("not TCP") };
        let host = &mut self.hosts[to];
        let opens = segment.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN;
        if host.connection.is_none() && host.listens && opens {
            host.open(to, Side::Passive, self.now);
            host.accept_fast(packet.unparsed.fast_open());
        }
        if host.is_over() {
            return self.refuse(to, &segment, packet.payload.len);
        }
        self.note_window(to, &segment);
        let host = &mut self.hosts[to];
        let local = host.local(self.now);
        let start = segment.seq - ISS[1 - to] + u32::from(segment.flags.contains(Flags::SYN));
        host.arrived.push((start, start + packet.payload.len));
        if let Some(connection) = &mut host.connection {
            if let Some(fields) = PathFields::of(&packet) {
                connection.indicate(local, &Indication::Path(fields));
            }
            let learns = |mechanism: &Mechanism| matches!(mechanism, Mechanism::Eln(_));
            if host.end.config.mechanisms.iter().any(learns) {
                // Any causes, true or not: what is retransmitted may only be missing data.
                let mut losses = PeerLosses::default();
                losses.push(LossCause::Corruption, self.chance.between(0.0, 4.0) as u32);
                losses.push(LossCause::Congestion, self.chance.between(0.0, 2.0) as u32);
                connection.indicate(local, &Indication::PeerLosses(losses));
            }
            connection.handle_segment(local, &segment, packet.payload, packet.ecn_fields());
        }
        self.after(to);
    }

    /// The network reports a corrupted packet: to its receiver if that one echoes reports, else to
    /// its sender.
    fn report(&mut self, to: usize, segment: &Segment, len: u32) {
        let (seq, copy) = (segment.seq, segment.copy);
        let passes_on = |mechanism: &Mechanism| matches!(mechanism, Mechanism::ForwardEten(_));
        let (at, indication) = if self.hosts[to].end.config.mechanisms.iter().any(passes_on) {
            (to, Indication::PeerCorrupted { seq, len, copy })
        } else {
            (1 - to, Indication::Corrupted { seq, len, copy, timestamp: None })
        };
        let host = &mut self.hosts[at];
        let local = host.local(self.now);
        if let Some(connection) = &mut host.connection {
            connection.indicate(local, &indication);
        }
        self.after(at);
    }

    /// Something has gone wrong, or an application has done something, at `at`.
    fn disturb(&mut self, at: Time) {
        self.limit.disturb(at, &self.hosts);
    }

    /// Everything that there is to do must have been done in time.
    fn check_limit(&self) {
        let idle = self.hosts.iter().all(|host| host.step_at == Time::NEVER);
        if self.now > self.limit.at && idle && !self.hosts.iter().all(Host::is_done) {
            let states = [0, 1].map(|i| self.hosts[i].connection.as_ref().map(Connection::state));
            let read = [0, 1].map(|i| (self.hosts[i].read, self.hosts[1 - i].total));
            let limit = &self.limit;
            panic!("not done by {limit:?}: {states:?}, read {read:?} at {}", self.now);
        }
    }

    /// A segment for a connection that is not there (RFC 9293 §3.10.7.1).
    fn refuse(&mut self, at: usize, segment: &Segment, len: u32) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let mut packet = Packet::BLANK;
        let reset = packet.make_tcp();
        if segment.flags.contains(Flags::ACK) {
            *reset = Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() };
        } else {
            let ack = segment.seq + (len + segment.control_len());
            *reset = Segment { ack, flags: Flags::RST | Flags::ACK, ..Segment::default() };
        }
        self.fly(1 - at, packet);
    }

    /// What a host may send from now on, as far as windows go.
    fn note_window(&mut self, at: usize, segment: &Segment) {
        let host = &mut self.hosts[at];
        let mut shift = host.shift;
        if segment.flags.contains(Flags::SYN) {
            shift = 0;
            host.shift = segment.options.window_scale.unwrap_or(0);
        }
        if segment.flags.contains(Flags::ACK) && !segment.flags.contains(Flags::RST) {
            let edge = (segment.ack - ISS[at]).wrapping_add(u32::from(segment.window) << shift);
            host.allowed = host.allowed.max(edge);
            host.right_edge = edge;
        } else if segment.flags.contains(Flags::SYN) {
            host.allowed = host.allowed.max(1 + u32::from(segment.window));
        }
    }

    /// Something has happened to a host: its application looks, and what is to be sent is sent.
    fn after(&mut self, i: usize) {
        // A snapshot has no events.
        self.watch(i);
        self.perhaps_restore(i);
        let [one, two] = &mut self.hosts;
        let (host, peer) = if i == 0 { (one, two) } else { (two, one) };
        while host.end.eager && host.read(&peer.written) {}
        if let Some(connection) = &mut host.connection {
            let events = connection.take_events();
            assert!(
                !(events & host.events).intersects(Events::CLOSED | Events::CONNECTED),
                "twice"
            );
            host.events |= events;
            let waits = host.step_at == Time::NEVER && host.end.script.is_empty();
            if waits && connection.state() != State::SynSent {
                connection.close();
            }
        }
        self.transmit(i);
        self.watch(i);
        self.check_timeout(i);
        self.perhaps_restore(i);
    }

    /// Where nothing is lost, the timeout is backed off only while a window is probed.
    fn check_timeout(&self, i: usize) {
        let host = &self.hosts[i];
        if let Some(connection) = &host.connection
            && (self.lines.is_some() && host.watched && !host.probed)
        {
            assert_eq!(connection.vitals().rto, host.rto, "backed off at {}", self.now);
        }
    }

    /// Follows the connection's timer by its events.
    fn watch(&mut self, i: usize) {
        let host = &mut self.hosts[i];
        let Some(connection) = &mut host.connection else { return };
        while let Some(event) = connection.poll_event() {
            match event {
                Event::RoundTrip { rto, .. } => (host.rto, host.probed) = (rto, false),
                Event::Probed => {
                    host.probed = true;
                    let fills = host.nxt >= host.right_edge;
                    assert!(self.lines.is_none() || fills, "that is no closed window");
                }
                _ => {}
            }
        }
    }

    /// Stores the connection and restores it under another clock.
    fn perhaps_restore(&mut self, i: usize) {
        let Some(random) = &mut self.restores else { return };
        if !random.chance(0.1) {
            return;
        }
        let host = &mut self.hosts[i];
        let local = host.local(self.now);
        let Some(connection) = &host.connection else { return };
        let stored = serde_json::to_string(&connection.snapshot(local)).expect("it is plain data");
        host.ahead = Duration::from_nanos(random.bits() >> 3);
        let snapshot = serde_json::from_str(&stored).expect("it was just stored");
        let mut restored = Connection::adopt(snapshot, host.local(self.now)).expect("one version");
        restored.watch(true);
        host.connection = Some(restored);
    }

    fn transmit(&mut self, i: usize) {
        let (mut packet, mut over) = (Packet::BLANK, false);
        for _ in 0..5000 {
            let host = &mut self.hosts[i];
            let (local, unit) = (host.local(self.now), host.end.unit);
            let Some(connection) = &mut host.connection else { return };
            let Some(written) = connection.poll_transmit(local, unit, &mut packet) else { return };
            assert!(!over, "there was another after the last");
            over = !written.more;
            assert!((1..=unit).contains(&written.count));
            packet.ip.ecn = written.ecn;
            for piece in cut(&packet, written.segment_size, written.count) {
                self.check(i, &piece);
                self.fly(1 - i, piece);
            }
        }
        panic!("it sends for ever at {}", self.now);
    }

    /// What every packet must keep to.
    fn check(&mut self, i: usize, packet: &Packet) {
        let Body::Tcp(segment) = packet.body else { panic!("not TCP") };
        let (host, peer) = (&self.hosts[i], &self.hosts[1 - i]);
        let len = packet.payload.len + segment.control_len();
        if !segment.flags.contains(Flags::SYN) {
            let mss = u32::from(host.end.config.mss.min(peer.end.config.mss));
            // RFC 6691 §3; an acknowledgment without data has no such limit.
            // Fields without weight are not on the wire.
            let ip = if packet.unparsed.is_zero_size() { 0 } else { packet.unparsed.ip().len() };
            let options = segment.options.len() as u32 + ip as u32;
            assert!(packet.payload.len == 0 || packet.payload.len + options <= mss, "too large");
            assert!(segment.options.len() <= 40);
        }
        let new = (segment.seq - ISS[i]) + len;
        let host = &mut self.hosts[i];
        host.check_announced(&segment, ISS[1 - i]);
        if new > host.nxt && !segment.flags.contains(Flags::RST) {
            // An octet may probe a closed window (RFC 9293 §3.8.6.1).
            // RFC 7413 §4.2.1: no window is known yet.
            let syn = segment.flags.contains(Flags::SYN);
            assert!(len == 1 || syn || new <= host.allowed, "{new} > {}", host.allowed);
            host.probe = (new > host.right_edge).then_some(segment.seq - ISS[i]);
            host.nxt = new;
        } else {
            if len > 0 && self.lines.is_some() && !segment.flags.contains(Flags::RST) {
                let probes = len == 1 && host.probe == Some(segment.seq - ISS[i]);
                assert!(probes, "sent twice: {} of {len} octets", segment.seq - ISS[i]);
            }
            assert_ne!(packet.ip.ecn, Ecn::Capable, "RFC 3168 §6.1.5: only new data");
        }
    }

    fn fly(&mut self, to: usize, mut packet: Packet) {
        self.trace.push((self.now, to, packet));
        let shift = self.hosts[to].shift;
        if self.peers[1 - to].send(&mut packet, shift, &mut self.chance) {
            self.disturb(self.now);
        }
        self.launch(to, packet);
    }

    /// Sends a packet, which may be lost.
    fn launch(&mut self, to: usize, mut packet: Packet) {
        let (leaves, replaced) = self.peers[1 - to].leaves(self.now, &packet);
        if let Some(key) = replaced {
            self.flying.remove(&key);
        }
        let luck = self.luck;
        if self.chance.chance(luck.lost) {
            return self.disturb(self.now);
        }
        if packet.ip.ecn == Ecn::Capable && self.chance.chance(luck.marked) {
            packet.ip.ecn = Ecn::Congested;
            self.disturb(self.now);
        }
        if let Some(fields) = PathFields::of(&packet) {
            self.wear(fields).renew(&mut packet);
        }
        let copies = if self.chance.chance(luck.doubled) { 2 } else { 1 };
        let corrupted = self.chance.chance(luck.corrupted);
        if corrupted && !self.chance.chance(luck.reported) {
            return self.disturb(self.now);
        }
        for _ in 0..copies {
            let late = self.chance.chance(luck.late);
            let at = self.arrival(to, leaves, packet.payload.len, late);
            if late || copies > 1 || corrupted {
                self.disturb(at);
            }
            self.order += 1;
            self.flying.insert((at, self.order), Flying { to, packet, corrupted });
            self.peers[1 - to].left((at, self.order));
        }
    }

    fn arrival(&mut self, to: usize, leaves: Time, bytes: u32, late: bool) -> Time {
        let delay = Duration::from_millis(self.luck.delay);
        let jitter = |most: u64, chance: &mut Random| {
            Duration::from_nanos(chance.bits() % (most * 1_000_000).max(1))
        };
        let Some(lines) = &mut self.lines else {
            let jitter = if late { self.chance.bits() % self.luck.jitter.max(1) } else { 0 };
            return leaves + delay + Duration::from_millis(jitter);
        };
        let line = &mut lines[to];
        let jitter = jitter(line.queue.jitter, &mut self.chance);
        line.arrival(self.now, leaves, bytes, delay + jitter)
    }

    /// Nodes on the path write arbitrary path fields.
    fn wear(&mut self, mut fields: PathFields) -> PathFields {
        let mut any = || self.chance.bits() as u32;
        match &mut fields {
            PathFields::Exact { forward, .. } => *forward = forward.map(|_| Probability(any())),
            PathFields::Coded { forward, .. } => {
                *forward = forward.map(|_| Code::level((any() & 3) as u8));
            }
        }
        fields
    }

    /// What must be true in the end where nothing is lost and no timer is short.
    pub(crate) fn verify_undisturbed(&self) {
        for connection in self.hosts.iter().filter_map(|host| host.connection.as_ref()) {
            let statistics = connection.statistics();
            assert_eq!((statistics.timeouts, statistics.reductions), (0, 0), "{statistics:?}");
        }
    }

    /// What must be true in the end.
    pub(crate) fn verify(&self) {
        let [one, two] = &self.hosts;
        let aborted = one.end.aborts || two.end.aborts;
        for (host, peer) in [(one, two), (two, one)] {
            assert!(host.is_over(), "{:?}", host.connection.as_ref().map(Connection::state));
            assert!(host.read <= peer.total);
            assert!(host.connection.is_none() || host.events.contains(Events::CLOSED));
            let end = Events::CONNECTED | Events::PEER_CLOSED;
            let trouble = Events::RESET | Events::TIMED_OUT | Events::UNREACHABLE;
            if !aborted {
                assert_eq!(host.read, peer.total, "bytes are missing");
                assert!(host.events.contains(end), "{:?}", host.events);
                assert!(!host.events.intersects(trouble), "{:?}", host.events);
            }
        }
    }
}

/// Cuts a unit up as a network card does.
fn cut(packet: &Packet, size: u32, count: u16) -> Vec<Packet> {
    let Body::Tcp(unit) = packet.body else { panic!("not TCP") };
    let len = packet.payload.len;
    assert!(len <= size * u32::from(count) && len > size * (u32::from(count) - 1) || count == 1);
    let pieces = (0..u32::from(count)).map(|n| {
        let mut segment = unit;
        segment.seq = unit.seq + n * size;
        if unit.copy != CopyId(0) {
            segment.copy = CopyId(unit.copy.0 + n);
        }
        if n > 0 {
            segment.flags -= Flags::CWR;
        }
        if n + 1 < u32::from(count) {
            segment.flags -= Flags::PSH | Flags::FIN;
        }
        Packet {
            body: Body::Tcp(segment),
            payload: packet.payload.skip(n * size).take(size),
            ..*packet
        }
    });
    pieces.collect()
}
