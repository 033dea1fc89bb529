//! The processing of SACKs.

use super::{Sender, State};
use base::Time;
use wire::srp::{Sack, Segment};

/// What a SACK has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// It has acknowledged something, or answered a probe.
    pub(crate) is_news: bool,
}

/// The absolute number of a segment, given one nearby.
fn absolute(number: u32, near: u64) -> Option<u64> {
    near.checked_add_signed(i64::from(number.wrapping_sub(near as u32) as i32))
}

impl Sender {
    /// Whether a SACK shows that the peer has lost its memory: it answers a probe, and misses what had been
    /// acknowledged before the probe was sent, or has what was never sent.
    pub(crate) fn shows_loss_of_memory(&self, sack: &Sack) -> bool {
        let Some(probe) = self.probes.iter().find(|probe| probe.number == sack.probe) else {
            return false;
        };
        let acknowledges = probe.acknowledged..=self.records.end();
        absolute(sack.cumulative, self.records.begin())
            .is_none_or(|cumulative| !acknowledges.contains(&cumulative))
    }

    /// Takes a SACK; `None` if it contradicts what was sent, and is ignored.
    pub(crate) fn on_sack(&mut self, now: Time, sack: &Sack) -> Option<Told> {
        let (begin, end) = (self.records.begin(), self.records.end());
        let cumulative = absolute(sack.cumulative, begin)?;
        let highest_end = cumulative + u64::from(sack.span);
        if highest_end > end {
            return None;
        }
        let mut told = Told::default();
        self.newly.clear();
        let latest = self.on_latest(now, sack, begin..highest_end.max(cumulative))?;
        let answered = self.on_probe_answer(now, sack);
        told.is_news |= answered.is_some();
        self.interruption.take_if(|it| answered.is_some_and(|order| order >= it.probe));
        let reached = latest.max(answered).unwrap_or(0);
        for number in begin..cumulative {
            self.on_arrived(number);
        }
        let flight = self.in_flight;
        let first = cumulative + u64::from(sack.start);
        let shown = highest_end.min(first + 8 * u64::from(sack.length));
        for number in first..shown {
            let bit = (number - first) as usize;
            let is_missing = sack.bitmap[bit / 32] >> (bit % 32) & 1 == 1;
            match is_missing {
                _ if number < begin => {}
                true => self.on_missing(number, reached),
                false => self.on_arrived(number),
            }
        }
        self.on_missing_tail(highest_end.max(begin), reached);
        if answered.is_some() && flight > 1 && self.in_flight == 0 {
            self.pacing.on_outage();
        }
        told.is_news |= !self.newly.is_empty();
        self.advance();
        Some(told)
    }

    /// Takes the latest segment that has arrived; returns its place in the order of transmissions, if it
    /// is known. `None` if it was never sent.
    fn on_latest(
        &mut self,
        now: Time,
        sack: &Sack,
        range: core::ops::Range<u64>,
    ) -> Option<Option<u64>> {
        if sack.copy == 0 {
            return Some(None);
        }
        let number = absolute(sack.latest, range.start)?;
        if number >= range.end {
            return None;
        }
        let Some(record) = self.records.get(number).copied() else { return Some(None) };
        if sack.copy > record.copies {
            return None;
        }
        // An earlier copy, or one of many: it is not known when it was sent.
        let is_last = sack.copy == record.copies && sack.copy < Segment::MOST_COPIES;
        let is_new = !self.arrived.contains(number);
        if is_last && is_new {
            if sack.is_prompt {
                self.rtt.sample(now, now.since(record.sent_at));
            }
            self.pacing.on_latest(now, record.tag, &self.rtt);
        }
        if is_new && record.is_repeated {
            // The first of both copies to arrive: a hop keeps the order.
            self.count(1, is_last.into());
        }
        self.on_arrived(number);
        Some(is_last.then_some(record.order))
    }

    /// Takes the answer to a probe; returns its place in the order of transmissions.
    fn on_probe_answer(&mut self, now: Time, sack: &Sack) -> Option<u64> {
        let place = self.probes.iter().position(|probe| probe.number == sack.probe)?;
        let probe = self.probes[place];
        self.probes.drain(..=place);
        if sack.is_probe_prompt {
            self.rtt.sample(now, now.since(probe.sent_at));
        }
        Some(probe.order)
    }

    /// The peer has got a segment.
    fn on_arrived(&mut self, number: u64) {
        if self.arrived.contains(number) {
            return;
        }
        let Some(record) = self.records.get_mut(number) else { return };
        if record.state == State::InFlight {
            self.in_flight -= 1;
            self.in_flight_bytes -= record.size;
        }
        record.state = State::Arrived;
        let record = *record;
        self.arrived.insert(number);
        self.pacing.on_arrived(record.copy());
        if !record.is_repeated {
            self.count(1, 0);
        }
        self.newly.push(record);
    }

    /// The peer had not got a segment when it had got what was sent as `reached`.
    fn on_missing(&mut self, number: u64, reached: u64) {
        let Some(record) = self.records.get_mut(number) else { return };
        if record.state != State::InFlight || record.order >= reached {
            return;
        }
        record.state = State::Lost;
        let record = *record;
        self.in_flight -= 1;
        self.in_flight_bytes -= record.size;
        self.lost.push_back(number);
        self.pacing.on_lost(record.copy(), self.order + 1);
        self.count(0, 1 + u64::from(record.is_repeated));
    }

    /// The peer has got no segment from `first` on.
    fn on_missing_tail(&mut self, first: u64, reached: u64) {
        for number in first..self.records.end() {
            match self.records.get(number) {
                // Those that follow were sent later.
                Some(record) if record.state == State::InFlight && record.order >= reached => break,
                _ => self.on_missing(number, reached),
            }
        }
    }

    fn count(&mut self, arrived: u64, lost: u64) {
        (self.copies_arrived, self.copies_lost) =
            (self.copies_arrived + arrived, self.copies_lost + lost);
        if self.copies_arrived + self.copies_lost > 8192 {
            (self.copies_arrived, self.copies_lost) =
                (self.copies_arrived / 2, self.copies_lost / 2);
        }
    }

    /// Forgets the segments that are acknowledged in sequence.
    fn advance(&mut self) {
        let begin = self.records.begin();
        let until = self.arrived.first_absent(begin).min(self.records.end());
        self.records.discard(until - begin);
        self.arrived.advance(until);
    }
}
