//! The TCP connections of a mobile host, as far as it takes to reset them.

use host::FourTuple;
use rustc_hash::FxHashMap;
use wire::{Flags, Ip, Packet, Segment, SeqNumber};

/// The connections whose segments have passed, by their names at this host.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections {
    known: FxHashMap<FourTuple, Known>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// What the host expects next (RCV.NXT): a reset with this number is exact (RFC 9293 §3.10.7.4).
    expected: SeqNumber,
    /// Both ends of the stream, this host's first: it has ended.
    has_ended: [bool; 2],
}

impl Connections {
    /// The most that are known at once.
    const MOST: usize = 65_536;

    /// A segment leaves the host.
    pub(super) fn on_departure(&mut self, connection: &FourTuple, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            self.known.remove(connection);
            return;
        }
        let is_full = self.known.len() == Connections::MOST;
        if !segment.flags.contains(Flags::ACK) || (is_full && !self.known.contains_key(connection))
        {
            return;
        }
        self.known.entry(*connection).or_default().expected = segment.ack;
        self.on_end(connection, 0, segment);
    }

    /// A segment for the host arrives.
    pub(super) fn on_arrival(&mut self, connection: &FourTuple, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            self.known.remove(connection);
        }
        self.on_end(connection, 1, segment);
    }

    /// Forgets a connection when both its streams have ended.
    fn on_end(&mut self, connection: &FourTuple, end: usize, segment: &Segment) {
        if segment.flags.contains(Flags::FIN)
            && let Some(known) = self.known.get_mut(connection)
        {
            known.has_ended[end] = true;
            if known.has_ended == [true; 2] {
                self.known.remove(connection);
            }
        }
    }

    /// Forgets all; returns each connection with a reset for this host's end, ordered.
    pub(super) fn take_all(&mut self) -> Vec<(FourTuple, Packet)> {
        let mut all: Vec<_> = self.known.drain().collect();
        all.sort_unstable_by_key(|(connection, _)| {
            (connection.local_end(), connection.remote_end())
        });
        all.into_iter()
            .map(|(connection, known)| (connection, reset(&connection, known.expected)))
            .collect()
    }
}

/// A reset from the other end of a connection.
fn reset(connection: &FourTuple, seq: SeqNumber) -> Packet {
    let ip = Ip::new(connection.remote, connection.local);
    let mut packet = Packet { ip, ..Packet::BLANK };
    *packet.make_tcp() = Segment {
        source_port: connection.remote_port,
        destination_port: connection.local_port,
        seq,
        flags: Flags::RST,
        ..Segment::default()
    };
    packet
}
