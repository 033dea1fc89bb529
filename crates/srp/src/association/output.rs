//! PDUs to be sent.

use super::{Association, Phase};
use crate::config::Config;
use crate::sender::{Content, Record};
use crate::stream::{Control, Flags, StreamId, StreamState};
use base::{Duration, Time};
use wire::srp::{Chunk, Limits, Pdu, Segment};
use wire::{Payload, Srp};

impl Association {
    /// All streams together have their turns in this time, if a segment of each takes no longer.
    const ROUND: Duration = Duration::from_millis(2);

    /// The next PDU to be sent, with its data; ports are 0, the owner addresses it. `None`: nothing until the
    /// next call of another function.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Srp, Payload)> {
        let now = self.clock.local(now);
        let (pdu, payload) = self.next_pdu(now)?;
        Some((Srp { source_port: 0, destination_port: 0, token: self.token, pdu }, payload))
    }

    /// The payloads that a gathered one ([`crate::Config::gather`]) consists of, in order. It must be that of the PDU
    /// that was returned last.
    pub fn gathered(&self, srp: &Srp, payload: Payload) -> impl Iterator<Item = Payload> {
        let stream = match srp.pdu {
            Pdu::Data(segment) => self.slots.find(segment.stream),
            _ => None,
        };
        let stream = stream.and_then(|slot| self.slots.get(slot));
        stream.into_iter().flat_map(move |stream| stream.send.gathered(payload))
    }

    fn next_pdu(&mut self, now: Time) -> Option<(Pdu, Payload)> {
        let alone = |pdu| Some((pdu, Payload::default()));
        if self.is_suspended {
            return None;
        }
        if let Some(reason) = self.reset_due.take() {
            return alone(Pdu::Reset { reason });
        }
        match self.phase {
            Phase::Closed => return None,
            Phase::Opening if self.open_due > now => return None,
            Phase::Opening => {
                self.on_open_sent(now);
                let limits = self.own_limits();
                return alone(match self.first {
                    Some(first) => Pdu::Renew { first, limits },
                    None => Pdu::Open(limits),
                });
            }
            Phase::Open => {}
        }
        if core::mem::take(&mut self.opened_due) {
            return alone(Pdu::Opened(self.own_limits()));
        }
        if core::mem::take(&mut self.probe_due) {
            return alone(self.probe(now, false));
        }
        if self.receiver.due() <= now {
            self.statistics.sacks += 1;
            let credit = match self.slots.get(self.latest_stream) {
                Some(stream) => (stream.number, stream.receive.limit() as u32),
                // A stream that does not exist.
                None => (0, 0),
            };
            return alone(Pdu::Sack(self.receiver.sack(now, credit)));
        }
        self.next_segment(now)
    }

    fn own_limits(&self) -> Limits {
        Limits {
            segments: self.config.segments,
            // At most 2^30.
            window: self.config.window as u32,
            streams: self.config.streams,
        }
    }

    /// Whether a segment may be added to what is in flight.
    pub(super) fn flight_allows(&self) -> bool {
        let size = self.sender.size(self.config.segment_size);
        self.sender.pacing.allows(self.sender.in_flight_bytes(), size, &self.sender.rtt)
    }

    fn next_segment(&mut self, now: Time) -> Option<(Pdu, Payload)> {
        let is_allowed = self.flight_allows();
        // They are in flight already.
        if self.sender.is_interrupted()
            && self.sender.pacing.next() <= now
            && let Some((number, record)) = self.sender.next_interrupted(now)
        {
            return Some(self.repeat(now, number, &record));
        }
        if self.sender.pacing.next() > now || !is_allowed {
            let waits = is_allowed && self.has_segment();
            self.sender.pacing.set_waits(waits);
            return None;
        }
        if let Some((number, record)) = self.sender.first_lost() {
            self.statistics.retransmissions += 1;
            let (name, chunk, payload) = self.chunk_again(&record);
            self.sender.send_lost(now, number, payload.len, extra(chunk));
            self.on_question_sent(now);
            return Some(self.segment(number, name, chunk, payload));
        }
        if self.sender.accepts_new()
            && let Some(slot) =
                self.slots.next_active(|| self.sender.pacing.segments_in(Association::ROUND))
        {
            return self.new_segment(now, slot);
        }
        self.sender.pacing.on_idle();
        self.next_of_tail(now)
    }

    /// There is nothing else to be sent.
    fn next_of_tail(&mut self, now: Time) -> Option<(Pdu, Payload)> {
        if self.tail_due() > now {
            return None;
        }
        let Some((number, record)) = self.sender.next_repeat(now) else {
            return Some((self.probe(now, true), Payload::default()));
        };
        Some(self.repeat(now, number, &record))
    }

    fn repeat(&mut self, now: Time, number: u64, record: &Record) -> (Pdu, Payload) {
        self.statistics.repetitions += 1;
        let (name, chunk, payload) = self.chunk_again(record);
        self.sender.send_repeat(now, number, payload.len, extra(chunk));
        self.segment(number, name, chunk, payload)
    }

    fn probe(&mut self, now: Time, is_of_tail: bool) -> Pdu {
        self.statistics.probes += 1;
        let number = self.sender.send_probe(now, is_of_tail);
        self.on_question_sent(now);
        Pdu::Probe { number }
    }

    /// What a segment that was sent brings now.
    fn chunk_again(&mut self, record: &Record) -> (Option<u16>, Chunk, Payload) {
        let id = StreamId { slot: record.slot, generation: record.generation };
        chunk_of(self.slots.named_mut(id), record)
    }

    fn new_segment(&mut self, now: Time, slot: u32) -> Option<(Pdu, Payload)> {
        let generation = self.slots.id(slot).generation;
        let number = self.sender.next_number();
        let Config { segment_size: most, gather, .. } = self.config;
        let stream = self.slots.get_mut(slot)?;
        let mut record = Record::new(slot, generation);
        if let Some((flag, content)) = next_control(stream.control) {
            stream.control -= flag;
            stream.outstanding_control += 1;
            record.content = content;
            if content == Content::Open {
                stream.flags |= Flags::OPENED;
            }
        } else {
            let piece = stream.send.take(number, most, gather)?;
            (record.offset, record.len, record.end) = (piece.offset, piece.len, piece.end);
        }
        let (name, chunk, payload) = chunk_of(Some(stream), &record);
        self.statistics.segments += 1;
        self.sender.send_new(now, record, extra(chunk));
        self.on_question_sent(now);
        Some(self.segment(number, name, chunk, payload))
    }

    fn segment(
        &self,
        number: u64,
        stream: Option<u16>,
        chunk: Chunk,
        payload: Payload,
    ) -> (Pdu, Payload) {
        let copy = self.sender.copies(number);
        // A filler belongs to no stream any more; the peer looks at nothing but its number.
        let stream = stream.unwrap_or(u16::from(self.is_opener));
        (Pdu::Data(Segment { number: number as u32, copy, stream, chunk }), payload)
    }
}

/// The control chunk to be sent first.
fn next_control(control: Control) -> Option<(Control, Content)> {
    let order = [
        (Control::OPEN, Content::Open),
        (Control::RESET, Content::Reset),
        (Control::ACCEPT, Content::Accept),
        (Control::CONTINUE, Content::Continue),
        (Control::FINISHED, Content::Finished),
        (Control::CREDIT, Content::Credit),
    ];
    order.into_iter().find(|(flag, _)| control.contains(*flag))
}

/// What a segment brings now: the stream's number, the chunk, and the data. Of a stream that was reset
/// nothing but that is told.
fn chunk_of(stream: Option<&mut StreamState>, record: &Record) -> (Option<u16>, Chunk, Payload) {
    let empty = Chunk::Data { offset: 0, end: false };
    let Some(stream) = stream else { return (None, empty, Payload::default()) };
    let is_reset = stream.flags.contains(Flags::RESET);
    let mut payload = Payload::default();
    let chunk = match (record.content, stream.ends) {
        (Content::Reset, _) => Chunk::Reset { reason: stream.reason },
        _ if is_reset => empty,
        (Content::Open, Some(ends)) => Chunk::Open(ends),
        (Content::Open, None) => empty,
        (Content::Accept, _) => Chunk::Accept,
        (Content::Finished, _) => Chunk::Finished,
        (Content::Continue, _) => Chunk::Continue(stream.continuation()),
        (Content::Credit, _) => Chunk::Credit { limit: stream.receive.tell_limit() },
        (Content::Data, _) => {
            payload = stream.send.payload(record.offset, record.len);
            Chunk::Data { offset: record.offset as u32, end: record.end }
        }
    };
    (Some(stream.number), chunk, payload)
}

/// Bytes of a segment that are neither header nor data.
fn extra(chunk: Chunk) -> u64 {
    let segment = Segment { number: 0, copy: 1, stream: 0, chunk };
    (Pdu::Data(segment).len() - Srp::DATA) as u64
}
