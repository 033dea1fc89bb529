//! PDUs that arrive.

use super::{Association, Phase};
use crate::receiver::Arrival;
use crate::sender::{Content, Record};
use crate::stream::{Control, Flags, StreamState};
use base::{Events, Time};
use wire::srp::{Chunk, Continue, Ends, Limits, Pdu, Reason, Sack, Segment};
use wire::{Payload, Srp};

impl Association {
    /// Streams that the peer may have beyond [`Config::streams`](crate::Config::streams): its own end may
    /// forget one earlier than we do.
    const SPARE_STREAMS: u32 = 64;

    /// Takes a PDU that has arrived, with its data. One of another association, or that contradicts what was
    /// told or sent, is ignored.
    pub fn handle(&mut self, now: Time, srp: &Srp, payload: Payload) {
        if self.phase == Phase::Closed {
            return;
        }
        if let Pdu::Renew { first, limits } = srp.pdu {
            let now = self.clock.local(now);
            return self.on_renewal(now, srp.token, (first, limits));
        }
        if srp.token != self.token {
            return;
        }
        if self.phase == Phase::Opening && !self.is_opener {
            // It is not renewed.
            self.resume(now);
        }
        let now = self.clock.local(now);
        let is_expected = match (self.phase, &srp.pdu) {
            (Phase::Opening, Pdu::Opened(_) | Pdu::Reset { .. }) => true,
            (Phase::Opening, _) => false,
            // The opener never gets an OPEN.
            (_, Pdu::Open(_)) => !self.is_opener,
            (_, Pdu::Opened(_)) => self.is_opener,
            _ => true,
        };
        if !is_expected {
            self.statistics.ignored += 1;
            return;
        }
        match &srp.pdu {
            Pdu::Open(_) => self.opened_due = true,
            Pdu::Opened(limits) if self.phase == Phase::Opening => {
                if self.opens_sent == 1 {
                    self.sender.rtt.sample(now, now.since(self.opened_at));
                }
                self.open_due = Time::NEVER;
                self.on_limits(*limits);
            }
            Pdu::Opened(_) | Pdu::Renew { .. } => {}
            Pdu::Data(segment) => self.on_segment(now, segment, payload),
            Pdu::Sack(sack) => self.on_sack(now, sack),
            Pdu::Probe { number } => self.receiver.on_probe(now, *number),
            Pdu::Reset { reason } => return self.fail(events_of(*reason)),
        }
        self.on_heard(now);
        self.sweep();
    }

    /// The peer has told what it accepts: the association is open.
    pub(super) fn on_limits(&mut self, limits: Limits) {
        let window = limits.window.min(crate::Config::MOST_WINDOW as u32);
        (self.limits, self.phase) = (Limits { window, ..limits }, Phase::Open);
        self.sender.set_limit(limits.segments);
        let ours: Vec<u32> = self.slots.iter().map(|(slot, _)| slot).collect();
        for slot in ours {
            // One that an earlier association carried has a limit of its own.
            if let Some(stream) = self.slots.get_mut(slot)
                && !stream.flags.contains(Flags::OPENED)
            {
                stream.send.raise_limit(window);
            }
            self.slots.activate(slot);
        }
    }

    fn on_sack(&mut self, now: Time, sack: &Sack) {
        if self.sender.shows_loss_of_memory(sack) {
            self.fail(Events::RESET);
            self.reset_due = Some(Reason::Unknown);
            return;
        }
        let Some(told) = self.sender.on_sack(now, sack) else {
            self.statistics.ignored += 1;
            return;
        };
        self.statistics.sacks_received += 1;
        if told.is_news {
            self.sender.rtt.end_back_off();
            self.sender.pacing.on_answer();
            self.restart_timer(now);
        }
        if let Some(slot) = self.slots.find(sack.stream)
            && let Some(stream) = self.slots.get_mut(slot)
        {
            stream.send.raise_limit(sack.limit);
            self.slots.activate(slot);
        }
        let newly = self.sender.take_newly();
        for record in &newly {
            self.on_acknowledged(record);
        }
        self.sender.keep_newly(newly);
    }

    /// A segment of a stream has arrived at the peer.
    fn on_acknowledged(&mut self, record: &Record) {
        let Record { slot, generation, content, .. } = *record;
        if self.slots.id(slot).generation != generation {
            return;
        }
        let Some(stream) = self.slots.get_mut(slot) else { return };
        if content != Content::Data {
            stream.outstanding_control -= 1;
            if content == Content::Finished {
                stream.flags |= Flags::CONFIRMED;
            }
            return;
        }
        stream.send.on_acknowledged(|segment| self.sender.has_arrived(segment));
        self.notify(slot);
    }

    fn on_segment(&mut self, now: Time, segment: &Segment, payload: Payload) {
        let number = match self.receiver.classify(segment.number) {
            Arrival::New(number) => number,
            Arrival::Duplicate => {
                self.statistics.duplicates += 1;
                return self.receiver.on_duplicate(now);
            }
            Arrival::Beyond => {
                self.statistics.ignored += 1;
                return;
            }
        };
        let Some(slot) = self.admit(number, segment, payload.len) else {
            self.statistics.ignored += 1;
            return;
        };
        let (every, delay) = (self.config.sack_every, self.config.sack_delay);
        self.receiver.on_new(now, number, segment.copy, every, delay);
        self.statistics.received += 1;
        let Some(slot) = slot else { return };
        if let Some(stream) = self.slots.get_mut(slot) {
            stream.segments_end = stream.segments_end.max(number + 1);
        }
        self.latest_stream = slot;
        self.on_chunk(slot, segment.chunk, payload);
    }

    /// Finds the stream of a segment. `None` if the segment is not to be received: its data is beyond the
    /// limit, or there are too many streams. `Some(None)` if it brings nothing.
    fn admit(&mut self, number: u64, segment: &Segment, len: u32) -> Option<Option<u32>> {
        let is_ours = segment.stream & 1 == u16::from(!self.is_opener);
        // Filler, or about a stream that is over.
        let brings_nothing = match segment.chunk {
            Chunk::Data { end, .. } => len == 0 && !end,
            Chunk::Finished | Chunk::Continue(Continue { ends: None, .. }) => true,
            _ => false,
        };
        let opens = matches!(
            segment.chunk,
            Chunk::Open(_) | Chunk::Continue(Continue { ends: Some(_), .. })
        );
        let mut found = self.slots.find(segment.stream);
        if let Some(slot) = found
            && opens
            && self.slots.get(slot).is_some_and(|stream| may_be_forgotten(stream, number))
        {
            self.slots.detach(slot);
            found = None;
        }
        let slot = match found {
            Some(slot) => slot,
            None if is_ours || brings_nothing => return Some(None),
            None => {
                let most = u32::from(self.config.streams) + Association::SPARE_STREAMS;
                if self.slots.theirs() >= most {
                    return None;
                }
                let sizes = (u64::from(self.limits.window), self.config.window);
                self.slots.open_theirs(segment.stream, sizes)
            }
        };
        if let Chunk::Data { offset, .. } = segment.chunk
            && let Some(stream) = self.slots.get(slot)
            && !stream.flags.contains(Flags::RESET)
            && !brings_nothing
        {
            stream.receive.place(offset, len)?;
        }
        Some(Some(slot))
    }

    fn on_chunk(&mut self, slot: u32, chunk: Chunk, payload: Payload) {
        let Some(stream) = self.slots.get_mut(slot) else { return };
        if stream.flags.contains(Flags::RESET) {
            match chunk {
                Chunk::Reset { .. } => stream.flags |= Flags::PEER_RESET,
                // Sent before it has heard of the reset.
                Chunk::Finished => stream.flags |= Flags::FINISHED,
                _ => {}
            }
            return;
        }
        let is_ours = stream.flags.contains(Flags::OURS);
        match chunk {
            Chunk::Open(ends) if !is_ours && !stream.flags.contains(Flags::OPENED) => {
                self.on_opened(slot, ends);
            }
            Chunk::Continue(has) => self.on_continue(slot, has),
            Chunk::Accept if is_ours && !stream.flags.contains(Flags::ACCEPTED) => {
                stream.flags |= Flags::ACCEPTED;
                self.slots.raise(slot, Events::CONNECTED);
                self.check_over(slot);
            }
            Chunk::Credit { limit } => {
                stream.send.raise_limit(limit);
                self.slots.activate(slot);
            }
            Chunk::Finished
                if stream.send.is_whole() && !stream.flags.contains(Flags::FINISHED) =>
            {
                stream.flags |= Flags::FINISHED;
                self.slots.raise(slot, Events::FINISHED);
                self.check_over(slot);
            }
            Chunk::Reset { reason } => {
                // The answer.
                stream.reset(Reason::Aborted);
                stream.flags |= Flags::PEER_RESET;
                self.slots.raise(slot, events_of(reason) | Events::CLOSED);
                self.slots.activate(slot);
            }
            Chunk::Data { offset, end } if payload.len > 0 || end => {
                let Some(place) = stream.receive.place(offset, payload.len) else { return };
                let before = stream.receive.readable();
                if !stream.receive.take(place, payload, end) {
                    return;
                }
                let (is_whole, holds_end) = (stream.receive.is_whole(), stream.receive.holds_end);
                if stream.receive.readable() > before {
                    self.slots.raise(slot, Events::READABLE);
                }
                match (is_whole, holds_end) {
                    (false, _) => {}
                    (true, true) => self.slots.raise(slot, Events::PEER_CLOSING),
                    (true, false) => self.on_peer_finished(slot),
                }
            }
            // Repeated or contradictory.
            Chunk::Open(_) | Chunk::Accept | Chunk::Finished | Chunk::Data { .. } => {}
        }
    }

    /// The peer has opened a stream.
    pub(super) fn on_opened(&mut self, slot: u32, ends: Ends) {
        if let Some(stream) = self.slots.get_mut(slot) {
            stream.ends = Some(ends);
            stream.flags |= Flags::OPENED;
        }
        let id = self.slots.id(slot);
        self.slots.incoming.push_back(id);
    }

    /// All data of the peer has arrived, and its end, which the owner does not hold.
    pub(super) fn on_peer_finished(&mut self, slot: u32) {
        let Some(stream) = self.slots.get_mut(slot) else { return };
        if stream.flags.intersects(Flags::PEER_CLOSED | Flags::RESET) {
            return;
        }
        stream.flags |= Flags::PEER_CLOSED;
        stream.control |= Control::FINISHED;
        stream.control -= Control::CREDIT;
        self.slots.raise(slot, Events::PEER_CLOSED);
        self.slots.activate(slot);
        self.check_over(slot);
    }

    /// The stream is over once both directions are, and it is known to be accepted.
    fn check_over(&mut self, slot: u32) {
        let both = Flags::FINISHED | Flags::PEER_CLOSED | Flags::ACCEPTED;
        if self.slots.get(slot).is_some_and(|stream| stream.flags.contains(both)) {
            self.slots.raise(slot, Events::CLOSED);
        }
    }

    /// Removes streams that are over.
    pub(super) fn sweep(&mut self) {
        if !self.slots.has_closing() {
            return;
        }
        let (cumulative, is_closed) = (self.receiver.cumulative(), self.phase == Phase::Closed);
        self.slots.sweep(|stream| is_closed || stream.is_over_on_wire(cumulative));
    }
}

/// Whether the peer may have forgotten a stream of its own before it sent the segment with this number: none of it
/// is missing, not even the first, and the peer has all of ours.
fn may_be_forgotten(stream: &StreamState, number: u64) -> bool {
    let is_opened = stream.flags & (Flags::OURS | Flags::OPENED) == Flags::OPENED;
    let is_finished = stream.flags.contains(Flags::PEER_CLOSED | Flags::FINISHED);
    is_opened
        && number >= stream.segments_end
        && (is_finished || stream.flags.contains(Flags::PEER_RESET))
}

/// What the end of a stream or association for a reason means.
fn events_of(reason: Reason) -> Events {
    match reason {
        Reason::Unreachable => Events::UNREACHABLE,
        Reason::TimedOut => Events::TIMED_OUT,
        Reason::Aborted | Reason::Refused | Reason::Unknown | Reason::Full => Events::RESET,
    }
}
