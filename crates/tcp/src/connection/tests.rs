//! Packet diagrams: one connection against a scripted peer.
//!
//! ```text
//! let mut t = sending(Config { recovery: Recovery::Reno, ..config() });
//! t.time(200);                     // milliseconds
//! t.send(ack(2));                  // what the peer sends
//! t.recv([data(11), data(12)]);    // what the connection answers: now, and all of it
//! ```
//!
//! Segments have 1000 bytes and are counted from 1: `data(3)` is the third, `ack(3)` acknowledges
//! everything before it, and `.sack(4..=6)` says that those three have arrived. The clock does not
//! move past anything that the connection has sent and the diagram does not show.

mod accurate_ecn;
mod attacks;
mod ceten;
mod close;
mod dsack;
mod dupacks;
mod ecn;
mod eln;
mod eten;
mod events;
mod exchange;
mod fast_open;
mod forward;
mod freeze;
mod frto;
mod guard;
mod handshake;
mod hybla;
mod hystart;
mod liveness;
mod mtu_probing;
mod nagle;
mod pacing;
mod path_mtu;
mod rack;
mod receiving;
mod reductions;
mod resets;
mod rlci;
mod sack;
mod seg;
mod sending;
mod simultaneous;
mod snapshots;
mod timer;
mod timestamps;
mod tuning;
mod units;
mod urgent;
mod windows;

use super::*;
use crate::congestion::{Congestion, Increase};
use crate::indication::{Connectivity, Indication, LossCause, PeerLosses};
use crate::sender::Statistics;
use crate::state::Info;
use crate::{InitialWindow, ReceiveWindow, Recovery, RecoveryState, Reduction, Rto, Validation};
use seg::*;
use std::collections::VecDeque;
use wire::{CopyId, CorruptionEcho, Ecn, Flags, Packet, Payload, SackBlock, Segment};

const MSS: u32 = 1000;
/// Both sequence spaces wrap within the first segments.
const ISS: SeqNumber = SeqNumber(u32::MAX - 2500);
const PEER_ISS: SeqNumber = SeqNumber(u32::MAX - 700);
const IDENTITY: Identity = Identity {
    local_port: 1,
    remote_port: 2,
    iss: ISS,
    timestamp_offset: 5000,
    is_ipv6: false,
    secret: 3,
};
/// The shift of the peer's windows, if shifts are agreed on.
const PEER_SHIFT: u8 = 4;
/// Ours, which [`config`]'s receive window leads to.
const SHIFT: u8 = 5;

/// What most diagrams start from: ten segments at once, an acknowledgment for each, SACK.
fn config() -> Config {
    Config {
        mss: MSS as u16,
        receive_window: ReceiveWindow::fixed(1 << 20),
        recovery: Recovery::Sack,
        congestion: Congestion::Aimd,
        increase: Increase::default(),
        initial_window: InitialWindow::Segments(10),
        initial_ssthresh: None,
        hystart: false,
        reduction: Reduction::Immediate,
        limited_transmit: false,
        delayed_ack: None,
        rto: Rto::default(),
        nagle: false,
        dsack: false,
        timestamps: false,
        byte_counting: None,
        frto: false,
        ..Config::default()
    }
}

/// A connection, its peer, and the time.
struct Diagram {
    connection: Connection,
    now: Time,
    /// Sent by the connection and not yet shown.
    unseen: VecDeque<(Time, Seg)>,
    /// Everything the connection has sent.
    sent: Vec<Packet>,
    /// What the peer puts into its SYN.
    offer: wire::Options,
    /// What the peer offers to receive, bytes.
    window: u32,
    /// The shift of the peer's windows outside of a SYN.
    peer_shift: u8,
    /// The peer's timestamps, if it sends any. It echoes the last of ours, or always the same.
    stamp: Option<u32>,
    echoes: Option<u32>,
    /// What the network has made of the IP headers of what the peer sends.
    mark: Ecn,
    /// Segments in a unit that the connection may send.
    unit: u16,
    /// What the clock that the connection is shown is ahead of the diagram's.
    ahead: Duration,
}

impl Diagram {
    fn new(config: &Config, side: Side) -> Diagram {
        let mut diagram = Diagram {
            connection: Connection::new(config, side, IDENTITY),
            now: Time::ZERO,
            unseen: VecDeque::new(),
            sent: Vec::new(),
            offer: wire::Options {
                mss: Some(MSS as u16),
                window_scale: Some(PEER_SHIFT),
                sack_permitted: true,
                ..wire::Options::default()
            },
            window: 0xfff0, // What a SYN can say, so that the window never changes by itself.
            peer_shift: PEER_SHIFT,
            stamp: None,
            echoes: None,
            mark: Ecn::NotCapable,
            unit: 1,
            ahead: Duration::ZERO,
        };
        if side == Side::Active {
            diagram.transmit();
        }
        diagram
    }

    /// The clock moves on to this many milliseconds.
    fn time(&mut self, millis: u64) {
        self.until(Time::ZERO + Duration::from_millis(millis));
    }

    /// Advances the clock; timers that expire meanwhile are served at their time.
    fn until(&mut self, end: Time) {
        assert_eq!(self.unseen, [], "sent, but not in the diagram, before {end}");
        for _ in 0..1000 {
            let due = self.connection.poll_timeout();
            if due > end + self.ahead {
                self.now = end;
                return;
            }
            self.now = due - self.ahead;
            self.connection.handle_timeout(due);
            self.transmit();
        }
        panic!("timers expire for ever at {}", self.now);
    }

    /// The peer sends a segment.
    fn send(&mut self, seg: Seg) {
        self.arrive(seg);
        self.transmit();
    }

    /// A segment of the peer arrives, and the next before the connection may send.
    fn arrive(&mut self, seg: Seg) {
        let mut segment = Segment {
            source_port: 2,
            destination_port: 1,
            seq: PEER_ISS + seg.seq,
            ack: ISS + seg.ack,
            flags: seg.flags,
            ..Segment::default()
        };
        let window = seg.window.unwrap_or(self.window);
        if seg.flags.contains(Flags::SYN) {
            segment.options = self.offer;
            segment.window = window.min(0xffff) as u16;
        } else {
            segment.window = (window >> self.peer_shift).min(0xffff) as u16;
        }
        let echo =
            self.sent.last().map_or(0, |_| self.last().options.timestamps.map_or(0, |t| t.value));
        let echo = self.echoes.unwrap_or(echo);
        segment.options.timestamps = self.stamp.map(|value| wire::Timestamps { value, echo });
        if let Some(change) = seg.change {
            segment.options.connectivity = change.into();
        }
        for &(start, end) in &seg.sack {
            segment.options.sack.push(SackBlock { start: ISS + start, end: ISS + end });
        }
        segment.options.corrupted = seg.echo.map(|(seq, copy, alone)| CorruptionEcho {
            seq: ISS + seq,
            copy: CopyId(copy),
            len: MSS as u16,
            alone,
        });
        let payload = Payload { stream: 7, offset: u64::from(seg.seq).max(1) - 1, len: seg.len };
        let ecn = wire::EcnFields { codepoint: self.mark, counters: seg.counters };
        self.connection.handle_segment(self.now + self.ahead, &segment, payload, ecn);
    }

    /// The connection sends exactly this, now.
    #[track_caller]
    fn recv(&mut self, expected: impl IntoIterator<Item = Seg>) {
        let expected: Vec<_> = expected.into_iter().map(|seg| (self.now, seg)).collect();
        assert_eq!(self.unseen, expected);
        self.unseen.clear();
    }

    /// The connection has sent nothing.
    #[track_caller]
    fn silent(&mut self) {
        self.recv([]);
    }

    /// Lets the connection send what it wants to send.
    fn transmit(&mut self) {
        let (mut packet, mut over) = (Packet::BLANK, false);
        for _ in 0..1000 {
            let now = self.now + self.ahead;
            let Some(written) = self.connection.poll_transmit(now, self.unit, &mut packet) else {
                return;
            };
            assert!(!over, "there was another after the last");
            over = !written.more;
            packet.ip.ecn = written.ecn;
            let wire::Body::Tcp(segment) = packet.body else { panic!("not TCP") };
            let offset = segment.seq - ISS;
            if packet.payload.len > 0 {
                assert_eq!(
                    packet.payload.offset,
                    u64::from(offset.max(1) - 1),
                    "the payload moved"
                );
            }
            let blocks = segment.options.sack.as_slice().iter();
            let acks = segment.flags.contains(Flags::ACK);
            let seg = Seg {
                // Where pushes matter a diagram looks at the last segment itself.
                flags: segment.flags - Flags::PSH,
                seq: offset,
                len: packet.payload.len,
                ack: if acks { segment.ack - PEER_ISS } else { 0 },
                sack: blocks.map(|b| (b.start - PEER_ISS, b.end - PEER_ISS)).collect(),
                echo: segment.options.corrupted.map(|e| (e.seq - PEER_ISS, e.copy.0, e.alone)),
                change: segment.options.connectivity.get(),
                counters: packet.unparsed.ecn_counters(),
                window: None,
            };
            self.unseen.push_back((self.now, seg));
            self.sent.push(packet);
        }
        panic!("the connection sends for ever at {}", self.now);
    }

    /// The application writes this many bytes.
    fn write(&mut self, len: u64) {
        let end = self.connection.sender.stream.end() - 1;
        self.connection.write(3, end, len);
        self.transmit();
    }

    /// The application closes.
    fn close(&mut self) {
        self.connection.close();
        self.transmit();
    }

    /// The application reads all there is: how many bytes, which must be the next ones.
    fn read(&mut self, from: u64) -> u64 {
        let mut next = from;
        while let Some(payload) = self.connection.read() {
            assert_eq!((payload.stream, payload.offset), (7, next), "misplaced bytes");
            next = payload.end();
        }
        self.transmit();
        next - from
    }

    /// The last segment that the connection sent.
    fn last(&self) -> Segment {
        let wire::Body::Tcp(segment) = self.sent.last().unwrap().body else { panic!("not TCP") };
        segment
    }

    /// The latest copy of segment `n`.
    fn copy(&self, n: u32) -> CopyId {
        self.copy_at(at(n))
    }

    fn copy_at(&self, seq: u32) -> CopyId {
        let mut copies = self.sent.iter().filter_map(|packet| match packet.body {
            wire::Body::Tcp(s) if s.seq == ISS + seq && s.copy != CopyId(0) => Some(s.copy),
            _ => None,
        });
        copies.next_back().unwrap()
    }

    /// Word comes that the latest copy of segment `n` was corrupted.
    fn notice(&mut self, n: u32) {
        self.notice_of(at(n), self.copy(n));
    }

    /// Word comes that this copy of what starts at `seq` was corrupted.
    fn notice_of(&mut self, seq: u32, copy: CopyId) {
        let indication = Indication::Corrupted { seq: ISS + seq, len: MSS, copy, timestamp: None };
        self.connection.indicate(self.now + self.ahead, &indication);
        self.transmit();
    }

    /// Word comes that what starts at `seq` was larger than `mss`.
    fn too_big(&mut self, seq: u32, mss: u16) {
        let indication = Indication::TooBig { seq: ISS + seq, mss };
        self.connection.indicate(self.now + self.ahead, &indication);
        self.transmit();
    }

    /// Lower layers indicate a change of connectivity.
    fn connectivity(&mut self, connectivity: Connectivity) {
        let indication = Indication::Connectivity(connectivity);
        self.connection.indicate(self.now + self.ahead, &indication);
        self.transmit();
    }

    /// The connection is stored and restored under a clock that is ahead by so many milliseconds.
    fn restore(&mut self, ahead: u64) {
        let snapshot = self.connection.snapshot(self.now + self.ahead);
        let text = json(snapshot).to_string();
        self.ahead = Duration::from_millis(ahead);
        let restored = snapshot_of(serde_json::from_str(&text).unwrap());
        self.connection = Connection::adopt(restored, self.now + self.ahead).unwrap();
    }

    /// The application aborts.
    fn abort(&mut self) {
        self.connection.abort();
        self.transmit();
    }

    /// The congestion window and the slow-start threshold, bytes.
    fn windows(&self) -> (u64, u64) {
        let vitals = self.connection.vitals();
        (vitals.window, vitals.ssthresh)
    }

    fn statistics(&self) -> Statistics {
        self.connection.statistics()
    }

    fn state(&self) -> State {
        self.connection.state()
    }
}

/// A connection that is established at 100 ms, after a round trip of 100 ms, and has nothing to
/// send yet.
/// Tests store connections by these two alone: each other way would be compiled for all that is in one.
fn json(snapshot: Snapshot) -> serde_json::Value {
    serde_json::to_value(snapshot).unwrap()
}

fn snapshot_of(json: serde_json::Value) -> Snapshot {
    serde_json::from_value(json).unwrap()
}

fn established(config: Config) -> Diagram {
    let mut t = Diagram::new(&config, Side::Active);
    t.recv([syn()]);
    t.time(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    assert_eq!(t.connection.take_events(), Events::CONNECTED);
    t
}

/// The same with an endless stream, whose first window is in flight since 100 ms.
fn sending(config: Config) -> Diagram {
    let InitialWindow::Segments(window) = config.initial_window else { panic!("segments") };
    let mut t = established(config);
    t.write(1 << 40);
    t.recv(each(1..=window));
    t
}

/// The same with a stream of this many segments, all of which are in flight since 100 ms.
fn sending_only(segments: u32, config: Config) -> Diagram {
    let mut t = established(Config { initial_window: InitialWindow::Segments(segments), ..config });
    t.write(u64::from(segments * MSS));
    t.recv(each(1..=segments));
    t
}

/// Where the network says something of congestion: the IP header of the last packet.
fn last_mark(t: &Diagram) -> Ecn {
    t.sent.last().unwrap().ip.ecn
}

/// A peer that has agreed to timestamps, and has sent 100 with its SYN.
fn stamped(config: Config) -> Diagram {
    let mut t = Diagram::new(&Config { timestamps: true, ..config }, Side::Active);
    t.recv([syn()]);
    t.time(100);
    t.stamp = Some(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    assert_eq!(t.connection.take_events(), Events::CONNECTED);
    t
}

/// Bytes in so many segments.
fn segments(n: u64) -> u64 {
    n * u64::from(MSS)
}
