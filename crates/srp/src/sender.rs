//! The segments of an association that are outstanding: which have arrived, which are lost.

mod sack;
mod tail;

use crate::bits::Bits;
use crate::config::Config;
use crate::pacing::{Copy, Pacing, Tag};
use crate::rtt::Rtt;
use base::{Ring, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tail::{Allowance, Interruption};
use wire::srp::Segment;

/// What a segment brings; the rest is looked up when it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    #[default]
    Data,
    Open,
    Accept,
    Credit,
    Reset,
    Finished,
    Continue,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    #[default]
    InFlight,
    /// In the queue of those to be retransmitted.
    Lost,
    /// It has arrived.
    Arrived,
}

/// A segment that is outstanding.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Its stream.
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    pub(crate) content: Content,
    pub(crate) end: bool,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    state: State,
    /// Copies sent, up to [`Segment::MOST_COPIES`].
    pub(crate) copies: u8,
    tag: Tag,
    /// The size of the last copy's packet, its place in the order of all transmissions, and its time.
    size: u64,
    order: u64,
    sent_at: Time,
    /// The last copy was sent although the one before was not lost.
    is_repeated: bool,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Probe {
    number: u16,
    order: u64,
    sent_at: Time,
    /// The peer had acknowledged all segments before this one. After a handoff that is not known.
    #[serde(skip)]
    acknowledged: u64,
    /// It follows a tail, and needs no answer once that has arrived.
    is_of_tail: bool,
}

/// The sending half of an association.
///
/// No segment is taken for lost because time has passed. A SACK names the copy that arrived last, or the
/// probe that it answers; what was sent before and has not arrived is lost, for a hop keeps the order.
/// A segment whose last copy was sent later may still arrive: that is the guard against needless
/// retransmissions. When nothing is heard, a probe asks for a SACK.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sender {
    /// By number; the first is the first that the peer has not acknowledged in sequence.
    records: Ring<Record>,
    arrived: Bits,
    /// Lost segments in the order in which that was found; some may have arrived meanwhile.
    lost: VecDeque<u64>,
    in_flight: u64,
    in_flight_bytes: u64,
    /// The number of the next transmission, of a segment or a probe.
    order: u64,
    /// Probes that are not answered, at most [`Sender::PROBES`].
    probes: VecDeque<Probe>,
    last_probe: u16,
    /// Segments that the peer accepts beyond the first that it misses.
    limit: u64,
    overhead: u64,
    pub(crate) pacing: Pacing,
    pub(crate) rtt: Rtt,
    /// Copies of all segments, for the loss that is reported.
    copies_arrived: u64,
    copies_lost: u64,
    /// Tails are repeated.
    repeats: bool,
    allowance: Allowance,
    /// The place of the last probe in the order of transmissions, and when the last segment was sent that is no
    /// repetition.
    probed: u64,
    sent_at: Time,
    /// Until the peer has answered after an interruption of the hop. After a handoff it is not known.
    #[serde(skip)]
    interruption: Option<Interruption>,
    /// Segments that a SACK has just acknowledged.
    #[serde(skip)]
    newly: Vec<Record>,
}

impl Sender {
    /// Bytes of a data PDU's header.
    pub(crate) const HEADER: u32 = wire::Srp::DATA as u32;
    const PROBES: usize = 8;

    pub(crate) fn new(config: &Config) -> Sender {
        Sender {
            records: Ring::new(),
            arrived: Bits::default(),
            lost: VecDeque::new(),
            in_flight: 0,
            in_flight_bytes: 0,
            order: 0,
            probes: VecDeque::new(),
            last_probe: 0,
            limit: 0,
            overhead: config.overhead.into(),
            pacing: Pacing::new(config, Sender::HEADER),
            rtt: Rtt::new(config.initial_timeout, config.minimum_margin),
            copies_arrived: 0,
            copies_lost: 0,
            repeats: config.repeats_tail(),
            allowance: Allowance::default(),
            probed: 0,
            sent_at: Time::ZERO,
            interruption: None,
            newly: Vec::new(),
        }
    }

    /// Another hop has another MTU and rate.
    pub(crate) fn set_hop(&mut self, config: &Config) {
        self.overhead = config.overhead.into();
        self.repeats = config.repeats_tail();
        self.pacing.set_hop(config, Sender::HEADER);
    }

    /// The peer accepts so many segments beyond the first that it misses.
    pub(crate) fn set_limit(&mut self, limit: u16) {
        self.limit = limit.clamp(1, Config::MOST_SEGMENTS).into();
    }

    /// Whether the timeout is to run: something is in flight, or a probe is unanswered that is not of a tail.
    pub(crate) fn needs_answer(&self) -> bool {
        self.in_flight > 0 || self.probes.iter().any(|probe| !probe.is_of_tail)
    }

    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    pub(crate) fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Whether the peer accepts another new segment.
    pub(crate) fn accepts_new(&self) -> bool {
        self.records.len() < self.limit
    }

    /// Whether a segment, by number, is acknowledged.
    pub(crate) fn has_arrived(&self, number: u64) -> bool {
        number < self.records.begin() || self.arrived.contains(number)
    }

    /// The share of copies that was lost of late.
    pub(crate) fn loss(&self) -> Option<f64> {
        let all = self.copies_arrived + self.copies_lost;
        (all > 0).then(|| self.copies_lost as f64 / all as f64)
    }

    /// Bytes of a segment's packet.
    pub(crate) fn size(&self, len: u32) -> u64 {
        self.overhead + u64::from(Sender::HEADER) + u64::from(len)
    }

    /// The number of the next new segment.
    pub(crate) fn next_number(&self) -> u64 {
        self.records.end()
    }

    /// A new segment is sent, `extra` bytes longer than its data.
    pub(crate) fn send_new(&mut self, now: Time, record: Record, extra: u64) -> u64 {
        let number = self.records.end();
        self.records.make_room();
        self.records.push(record);
        self.sent(now, number, extra);
        number
    }

    /// The next lost segment; it stays in the queue.
    pub(crate) fn first_lost(&mut self) -> Option<(u64, Record)> {
        while let Some(&number) = self.lost.front() {
            match self.records.get(number) {
                Some(record) if record.state == State::Lost => return Some((number, *record)),
                _ => self.lost.pop_front(),
            };
        }
        None
    }

    /// The first lost segment is sent again, with so much data.
    pub(crate) fn send_lost(&mut self, now: Time, number: u64, len: u32, extra: u64) {
        self.lost.pop_front();
        if let Some(record) = self.records.get_mut(number) {
            record.len = len;
        }
        self.sent(now, number, extra);
    }

    fn sent(&mut self, now: Time, number: u64, extra: u64) {
        let tag = self.pacing.tag(now, self.in_flight_bytes, &self.rtt);
        let order = self.next_order();
        let fixed = self.overhead + u64::from(Sender::HEADER) + extra;
        let Some(record) = self.records.get_mut(number) else { return };
        let size = fixed + u64::from(record.len);
        record.copies = (record.copies + 1).min(Segment::MOST_COPIES);
        (record.state, record.tag, record.size) = (State::InFlight, tag, size);
        (record.order, record.sent_at, record.is_repeated) = (order, now, false);
        self.sent_at = now;
        self.in_flight += 1;
        self.in_flight_bytes += size;
        self.pacing.on_sent(now, size, &self.rtt);
    }

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Sends a probe, behind a tail or for another reason; returns its number.
    pub(crate) fn send_probe(&mut self, now: Time, is_of_tail: bool) -> u16 {
        self.last_probe = self.last_probe.wrapping_add(1).max(1);
        let probe = Probe {
            number: self.last_probe,
            order: self.next_order(),
            sent_at: now,
            acknowledged: self.records.begin(),
            is_of_tail,
        };
        self.probed = probe.order;
        if self.probes.len() == Sender::PROBES {
            self.probes.pop_front();
        }
        self.probes.push_back(probe);
        self.pacing.on_sent(now, self.overhead + wire::Srp::COMMON as u64, &self.rtt);
        probe.number
    }

    /// The copies of a record, as it is sent.
    pub(crate) fn copies(&self, number: u64) -> u8 {
        self.records.get(number).map_or(1, |record| record.copies)
    }

    /// Takes the segments that the last SACK has acknowledged.
    pub(crate) fn take_newly(&mut self) -> Vec<Record> {
        core::mem::take(&mut self.newly)
    }

    /// Gives back the memory of [`Sender::take_newly`].
    pub(crate) fn keep_newly(&mut self, mut newly: Vec<Record>) {
        newly.clear();
        self.newly = newly;
    }

    /// Ends all activity.
    pub(crate) fn stop(&mut self) {
        self.probes.clear();
        self.lost.clear();
        (self.in_flight, self.in_flight_bytes) = (0, 0);
    }
}

impl Record {
    /// A segment of a stream, of which the rest is to be set.
    pub(crate) fn new(slot: u32, generation: u32) -> Record {
        Record { slot, generation, ..Record::default() }
    }

    fn copy(&self) -> Copy {
        Copy { size: self.size, order: self.order, tag: self.tag }
    }
}
