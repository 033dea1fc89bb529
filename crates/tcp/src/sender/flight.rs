//! The flight, for congestion controllers that model the path (draft-ietf-ccwg-bbr §4.1.2).

use super::Sender;
use crate::congestion::{FlightSample, Lost};
use crate::connection::NewlyDelivered;
use crate::scoreboard::{Flight, Record, Sent};
use base::Time;

impl Sender {
    /// The flight that a copy of `octets` joins.
    #[inline(always)]
    pub(super) fn flight(&self, octets: u64) -> Flight {
        if !self.controller.models_path() {
            return Flight::default();
        }
        Flight::new(self.board.in_network() + octets, self.app_limited > 0)
    }

    /// CheckIfApplicationLimited: before more is written, an acknowledgment is processed, or a timer.
    #[inline]
    pub(super) fn check_app_limited(&mut self) {
        if self.controller.models_path() {
            let in_flight = self.board.in_network();
            let idle = self.board.nxt() == self.stream.end()
                && self.board.next_pending().is_none()
                && in_flight < self.controller.window();
            if idle || self.controller.is_probing_rtt() {
                self.app_limited = (self.delivered.bytes + in_flight).max(1);
            }
        }
    }

    /// What a controller that models the path learns of the latest copy delivered, sent as in
    /// `sent`.
    #[inline(always)]
    pub(super) fn flight_sample(&mut self, now: Time, sent: &Sent, timed: bool) -> FlightSample {
        if !self.controller.models_path() {
            return FlightSample::default();
        }
        if self.delivered.bytes > self.app_limited {
            self.app_limited = 0;
        }
        FlightSample {
            delivered: self.delivered.bytes,
            in_flight: self.board.in_network(),
            sent_in_flight: sent.flight.octets(),
            app_limited: sent.flight.is_app_limited(),
            rtt: timed.then(|| now.since(sent.at)),
        }
    }

    /// Tells the controller of a loss by congestion.
    pub(super) fn report_loss(&mut self, now: Time, record: &Record) {
        self.controller.on_lost(&Lost {
            now,
            start: record.start,
            end: record.end(),
            delivered: record.sent.delivered,
            in_flight: record.sent.flight.octets(),
            app_limited: record.sent.flight.is_app_limited(),
        });
    }

    /// What an acknowledgment would newly deliver. A range is counted once for each block that has it.
    pub(crate) fn newly_delivered(&self, ack: u64, blocks: &[(u64, u64)]) -> NewlyDelivered {
        let una = self.board.una();
        let mut sum = NewlyDelivered::default();
        let beyond = blocks.iter().map(|&(start, end)| (start.max(ack), end));
        for (start, end) in core::iter::once((una, ack)).chain(beyond) {
            for (from, to) in self.board.undelivered(start, end) {
                sum.bytes += to - from;
                sum.segments += (to - from).div_ceil(u64::from(self.mss.max(1)));
            }
        }
        sum
    }
}
