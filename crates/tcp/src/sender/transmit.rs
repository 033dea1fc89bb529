//! Transmission: the choice of the next segment.

use super::{Frto, NEW_DATA, Sender};
use crate::event::Event;
use crate::recovery::Phase;
use crate::scoreboard::{Record, State};
use base::{Duration, Time};
use core::ops::ControlFlow;
use wire::{CopyId, Payload};

/// A range to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) start: u64,
    pub(crate) len: u32,
    /// The copy of its first segment; those that follow count up.
    pub(crate) copy: CopyId,
    /// Segments in the range: all but the last are full-sized.
    pub(crate) count: u16,
    /// It is new data and no window probe: ECN-capable (RFC 3168 §6.1.5, §6.1.6).
    pub(crate) fresh: bool,
    /// Another range may follow at once.
    pub(crate) more: bool,
}

/// The choice of a segment while there is a gap.
enum Choice {
    /// A record that is lost.
    Pending(u64),
    /// New data of this length.
    New(u64),
    /// New data of this length, beyond the window (limited transmit).
    BeyondWindow(u64),
    /// A range not known to be lost.
    Speculative,
}

impl Sender {
    /// The most data in a packet: what the length fields of IP leave beside the largest headers.
    const LONGEST_UNIT: u32 = 65_535 - 40 - 60;

    /// The next unit of at most `segments` segments, if one may be sent now.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time, segments: u16) -> Option<Transmission> {
        if self.is_all_acked() {
            return None;
        }
        self.pacer.set_unit(segments);
        if !self.is_clean() || !self.forced_queue.is_empty() {
            return self.poll_in_disorder(now).or_else(|| self.poll_blocked(now));
        }
        let Some(len) = self.next_in_window() else {
            return self.poll_blocked(now);
        };
        if self.search.is_some()
            && let ControlFlow::Break(probe) = self.poll_mtu_probe(now)
        {
            return probe;
        }
        if self.is_held_by_pacing(now) {
            return None;
        }
        let mut unit = self.send_new(now, len);
        let mut next = self.next_in_window();
        if segments > 1 {
            next = self.extend(now, &mut unit, segments, next);
        }
        unit.more = next.is_some() && !self.is_held_by_pacing(now);
        Some(unit)
    }

    /// Whether all that was written, and a FIN, is acknowledged.
    #[inline]
    pub(crate) fn is_all_acked(&self) -> bool {
        self.board.una() == self.stream.end()
    }

    /// A full-sized segment of new data out of the run being sent, if it may be sent; on the fast
    /// path.
    #[inline(always)]
    pub(crate) fn poll_full(&mut self, now: Time) -> Option<(Payload, Transmission)> {
        if !self.is_full_next() {
            return None;
        }
        let len = u64::from(self.mss);
        if self.board.outstanding() + len > self.controller.window() || self.is_held_by_pacing(now)
        {
            return None;
        }
        let payload = self.stream.front_payload(self.board.nxt(), self.mss);
        let mut transmission = self.send_new(now, len);
        transmission.more = self.next_in_window().is_some() && !self.is_held_by_pacing(now);
        Some((payload, transmission))
    }

    /// Whether the run being sent and the peer's window allow another full-sized segment.
    #[inline]
    fn is_full_next(&self) -> bool {
        let nxt = self.board.nxt();
        let end = nxt + u64::from(self.mss);
        nxt > 0 && end <= self.window_end && end <= self.stream.run_end()
    }

    /// Whether the peer's window ends within the run being sent and has too little room left for a
    /// segment (silly-window avoidance, RFC 9293 §3.8.6.2.1).
    #[inline]
    fn is_cut_short(&self) -> bool {
        let nxt = self.board.nxt();
        let room = self.window_end - nxt;
        nxt > 0
            && room < u64::from(self.mss)
            && self.window_end < self.stream.run_end()
            && 2 * room < self.max_window
    }

    /// Extends a unit by segments that may be sent: full-sized ones, and a last one of any size in
    /// the same stream, perhaps with the FIN. It is no longer than a packet can be.
    fn extend(
        &mut self,
        now: Time,
        unit: &mut Transmission,
        segments: u16,
        mut next: Option<u64>,
    ) -> Option<u64> {
        let same = unit.start + self.stream.available(unit.start);
        let full = unit.len;
        let short_path = self.unit_on_short_path();
        let mut last = unit.len;
        while let Some(len) = next
            && unit.count < segments
            && unit.len + full <= Sender::LONGEST_UNIT
            && last == full
            && self.data_in(len) <= u64::from(full)
            && self.board.nxt() < same
            && (unit.len < short_path || self.pacer.extends_unit(now))
        {
            last = self.send_new(now, len).len;
            unit.len += last;
            unit.count += 1;
            next = self.next_in_window();
        }
        next
    }

    /// Octets that may leave at once although they last longer than a unit does: where the round trip is
    /// short, small units cost the machine more than a burst does the path (Linux: `tcp_tso_autosize`
    /// with `tcp_tso_rtt_log`).
    fn unit_on_short_path(&self) -> u32 {
        const HALVED_EACH: Duration = Duration::from_micros(512);
        let round_trip = self.rtt.shortest().unwrap_or(Duration::MAX);
        let halvings = round_trip.as_nanos() / HALVED_EACH.as_nanos();
        u32::try_from(halvings).ok().and_then(|n| Sender::LONGEST_UNIT.checked_shr(n)).unwrap_or(0)
    }

    /// Octets of data, or the SYN, among the next `len` new ones; the rest is a FIN.
    fn data_in(&self, len: u64) -> u64 {
        len - u64::from(self.stream.has_fin_before(self.board.nxt() + len))
    }

    /// Whether the congestion window has room for the next `len` octets beside `pipe`. A FIN needs
    /// none (Linux: "the final FIN").
    #[inline]
    fn has_room(&self, pipe: u64, len: u64, window: u64) -> bool {
        // Without a FIN there is nothing to look up.
        pipe + len <= window || {
            let data = self.data_in(len);
            data == 0 || pipe + data <= window
        }
    }

    /// The length of the next segment of new data, if both windows have room for it.
    #[inline(always)]
    fn next_in_window(&mut self) -> Option<u64> {
        if self.window_end <= self.board.nxt() {
            self.window_limited = false;
            return None;
        }
        let next = if self.is_full_next() {
            Some(u64::from(self.mss))
        } else if self.is_cut_short() {
            None
        } else {
            self.next_len()
        };
        let (outstanding, window) = (self.board.outstanding(), self.controller.window());
        self.window_limited = next.is_some_and(|len| !self.has_room(outstanding, len, window));
        next.filter(|_| !self.window_limited)
    }

    /// The length of the next new segment, if there is enough data for one, or a FIN, and the
    /// peer's window has room. A FIN goes with the last data (RFC 9293 §3.10.4), whether that fills
    /// a segment or not: it occupies a sequence number and no room in the segment.
    #[inline]
    pub(super) fn next_len(&self) -> Option<u64> {
        let nxt = self.board.nxt();
        let full = u64::from(self.mss);
        let available = self.stream.available(nxt);
        let room = self.window_end.saturating_sub(nxt);
        if nxt == 0 {
            return (room > 0).then_some(available);
        }
        let data = if available >= full && room >= full {
            full
        } else {
            self.next_small_len(available.min(full), room)
        };
        let fin = room > data && self.stream.has_fin_at(nxt + data);
        Some(data + u64::from(fin)).filter(|&len| len > 0)
    }

    /// The length of a segment less than full-sized that may be sent (silly-window avoidance, RFC
    /// 9293 §3.8.6.2.1, and Nagle); 0 if none.
    fn next_small_len(&self, available: u64, room: u64) -> u64 {
        let len = available.min(room);
        if len == 0 {
            return 0;
        }
        // Our SYN-ACK is no data: a server of Fast Open may answer before it is acknowledged (RFC 7413
        // §4.2.2).
        let waits = self.config.nagle && self.board.nxt() > self.board.una().max(1);
        let worth = if len < available {
            // The window cuts it short: only if it is half of what the window ever was.
            2 * len >= self.max_window && !waits
        } else {
            // Where the payload identity changes, or at the end of the stream, waiting would add
            // nothing.
            let complete = self.stream.is_closed() || self.board.nxt() + len < self.stream.end();
            complete || !waits && !self.stream.holds_small_segment()
        };
        if worth { len } else { 0 }
    }

    /// Sends a window probe if one is due, else starts the persist timer.
    fn poll_blocked(&mut self, now: Time) -> Option<Transmission> {
        if !self.probe_due {
            self.arm_persist_timer(now);
            return None;
        }
        self.probe_due = false;
        let nxt = self.board.nxt();
        let room = self.window_end.saturating_sub(nxt).max(1);
        // A FIN alone is one octet long.
        let len = self.stream.available(nxt).clamp(1, room.min(u64::from(self.mss)));
        self.log.push(|| Event::Probed);
        let probe = self.send_new(now, len);
        self.probing = true;
        Some(Transmission { fresh: false, ..probe })
    }

    /// The next segment while there is a gap.
    fn poll_in_disorder(&mut self, now: Time) -> Option<Transmission> {
        let mut transmission =
            self.next_forced(now).or_else(|| match self.choose_paced(now)? {
                Choice::Pending(index) => Some(self.retransmit(now, index)),
                Choice::New(len) => Some(self.send_new(now, len)),
                Choice::BeyondWindow(len) => {
                    self.limited_transmit_octets += len;
                    Some(self.send_new(now, len))
                }
                Choice::Speculative => {
                    let index = self.detector.speculative(&self.board, self.recover)?;
                    Some(self.retransmit_record(now, index))
                }
            })?;
        if let Some(state) = &mut self.prr {
            state.prr.on_sent(u64::from(transmission.len));
        }
        transmission.more =
            !self.forced_queue.is_empty() || self.probe_due || self.choose_paced(now).is_some();
        Some(transmission)
    }

    /// Until our SYN is acknowledged, nothing else is sent again: data that went with it may be why it
    /// was lost (RFC 7413 §4.2.1).
    #[inline]
    fn may_retransmit(&self, index: u64) -> bool {
        self.board.una() > 0 || index == self.board.head()
    }

    /// [`Sender::choose`], if its time has come.
    fn choose_paced(&mut self, now: Time) -> Option<Choice> {
        let choice = self.choose()?;
        (!self.is_held_by_pacing(now)).then_some(choice)
    }

    /// The next entry of the forced queue.
    fn next_forced(&mut self, now: Time) -> Option<Transmission> {
        while let Some(start) = self.forced_queue.pop_front() {
            if start == NEW_DATA {
                let Some(len) = self.next_len() else { continue };
                return Some(self.send_new(now, len));
            }
            let Some(index) = self.board.find(start) else { continue };
            if !self.may_retransmit(index) {
                continue;
            }
            let state = self.board.get(index).state;
            if state & (State::LOST | State::CORRUPTED | State::SACKED) == State::LOST {
                return Some(self.retransmit(now, index));
            }
            // A retransmission on a notice says nothing about the holes below it: HighRxt stays.
            if !state.contains(State::SACKED) {
                return Some(self.retransmit_record(now, index));
            }
        }
        None
    }

    /// The segment that the window allows while there is a gap, if any.
    fn choose(&mut self) -> Option<Choice> {
        let conserving = self.phase != Phase::Open
            || self.board.has_corruption_loss()
            || self.detector.uses_rack();
        let pipe = if conserving { self.pipe() } else { self.board.outstanding() };
        let window = self.window();
        if self.frto == Frto::SentNew {
            self.window_limited = false;
            return self.next_new().map(Choice::New);
        }
        if let Some(index) = self.board.next_pending().filter(|&index| self.may_retransmit(index)) {
            let len = u64::from(self.board.get(index).len);
            self.window_limited = pipe + len > window && pipe > 0;
            return (!self.window_limited).then_some(Choice::Pending(index));
        }

        if let Some(len) = self.next_len() {
            if self.has_room(pipe, len, window) {
                return Some(Choice::New(len));
            }
            self.window_limited = true;
            // RFC 3042: each of the first two duplicates sends a segment beyond the window.
            let duplicates = u64::from(self.detector.dupacks().min(2));
            let beyond = window + duplicates * u64::from(self.mss);
            let limited_transmit = self.config.limited_transmit
                && !conserving
                && duplicates > 0
                && self.has_room(self.board.outstanding(), len, beyond);
            return limited_transmit.then_some(Choice::BeyondWindow(len));
        }
        self.window_limited = false;
        let room = self.phase == Phase::Recovery && pipe + u64::from(self.mss) <= window;
        room.then_some(Choice::Speculative)
    }

    #[inline(always)]
    pub(super) fn send_new(&mut self, now: Time, len: u64) -> Transmission {
        if self.board.outstanding() == 0 {
            self.on_first_outstanding(now);
        }
        let start = self.board.nxt();
        let len = len as u32; // At most one segment.
        let copy = self.next_copy(now);
        let flight = self.flight(u64::from(len));
        self.pace(now, len);
        self.board.push(Record {
            start,
            len,
            copy,
            sent: self.delivered.sent(now, flight),
            state: State::empty(),
        });
        self.log.push(|| Event::Sent { start, len, copy, again: false });
        Transmission { start, len, copy, count: 1, fresh: start > 0, more: true }
    }

    /// Resets timer and idle state when data becomes outstanding.
    fn on_first_outstanding(&mut self, now: Time) {
        // The timer may have run for a probe, or for data that was held back.
        self.deadline = Time::NEVER;
        self.probing = false;
        self.probe_due = false;
        self.held_back = false;
        self.progress_at = now;
        self.record_fast_path_deliveries();
        self.controller.on_first_outstanding(now, self.app_limited > 0);
        self.delivered.at = now;
        self.delivered.first_sent_at = now;
        if self.config.restart_after_idle && now.since(self.sent_at) > self.rtt.rto() {
            let window = self.config.initial_window.bytes(self.mss);
            self.controller.on_idle(window);
        }
    }

    fn retransmit(&mut self, now: Time, index: u64) -> Transmission {
        let transmission = self.retransmit_record(now, index);
        self.detector.on_retransmit(transmission.start + u64::from(transmission.len));
        transmission
    }

    fn retransmit_record(&mut self, now: Time, index: u64) -> Transmission {
        self.statistics.retransmissions += 1;
        let copy = self.next_copy(now);
        let flight = self.flight(u64::from(self.board.get(index).len));
        self.board.resend(index, copy, self.delivered.sent(now, flight));
        self.detector.on_copy_sent(index, copy);
        // RFC 6675 §6
        if index == self.board.head() && self.rtt.restarts_on_retransmission() {
            self.start_retransmission_timer(now);
        }
        let record = *self.board.get(index);
        self.pace(now, record.len);
        self.count_undo_retransmission(record.start, record.end());
        self.log.push(|| Event::Sent { start: record.start, len: record.len, copy, again: true });
        Transmission {
            start: record.start,
            len: record.len,
            copy,
            count: 1,
            fresh: false,
            more: true,
        }
    }

    #[inline]
    fn next_copy(&mut self, now: Time) -> CopyId {
        self.statistics.segments += 1;
        self.sent_at = now;
        // RFC 6298 §5.1.
        if self.deadline == Time::NEVER {
            self.restart_timer(now);
        }
        self.copies = self.copies.wrapping_add(1).max(1);
        CopyId(self.copies)
    }
}
