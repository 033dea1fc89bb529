//! Which ranges are lost: by the octets SACKed above them (RFC 6675), or by the times of sending (RFC
//! 8985).

use super::{Scoreboard, SendOrder, State};
use crate::recovery::DUP_THRESH;
use base::Time;

impl Scoreboard {
    /// The lowest hole that has become lost since the last call: three discontiguous SACKed runs,
    /// or more than `(3 - 1) * mss` SACKed octets, lie above it (RFC 6675 §4, IsLost).
    ///
    /// Whether a hole is lost depends only on what lies above, so all holes below a lost one are
    /// lost too, and an edge that only rises finds each hole once.
    pub(crate) fn next_sack_loss(&mut self, mss: u32) -> Option<u64> {
        // Most SACKs extend the highest run.
        if self.sacked == 0 || self.losses_until >= self.sacked_from {
            return None;
        }
        let edge = self.lost_until(mss);
        for index in self.losses_until.max(self.records.begin())..edge {
            self.losses_until = index + 1;
            if !self.get(index).state.intersects(State::SACKED | State::LOST) {
                return Some(index);
            }
        }
        None
    }

    /// The number of the record below which every hole is lost.
    fn lost_until(&self, mss: u32) -> u64 {
        let (mut runs, mut octets, mut in_run) = (0, 0, false);
        for index in (self.records.begin()..self.sacked_until).rev() {
            let record = self.get(index);
            if record.state.contains(State::SACKED) {
                octets += record.len;
                runs += u32::from(!in_run);
                in_run = true;
                if runs >= DUP_THRESH || octets > (DUP_THRESH - 1) * mss {
                    return index;
                }
            } else {
                in_run = false;
                if index < self.losses_until {
                    break;
                }
            }
        }
        0
    }

    /// The lowest range that was sent once, before `latest` and no later than `cutoff`, and was not
    /// found since the last call (RFC 8985 §6.2, step 5). Ranges sent once lie in the order of their
    /// send times, so each is found once.
    pub(crate) fn next_loss_by_time(&mut self, latest: SendOrder, cutoff: Time) -> Option<u64> {
        let mut index = self.losses_until.max(self.records.begin());
        let mut lost = None;
        while let Some(record) = self.records.get(index) {
            if record.state.intersects(State::SACKED | State::LOST | State::RESENT) {
                index += 1;
                continue;
            }
            if record.order() < latest && record.sent.at <= cutoff {
                lost = Some(index);
                index += 1;
            }
            break;
        }
        self.losses_until = index;
        lost
    }

    /// When the last range was sent that was sent once, before `latest`, and is neither delivered
    /// nor lost.
    pub(crate) fn last_sent_before(&self, latest: SendOrder) -> Option<Time> {
        let mut index = self.losses_until.max(self.records.begin());
        let mut last = None;
        while let Some(record) = self.records.get(index) {
            if record.state.contains(State::SACKED) {
                index = self.after_sacked(index, record.start);
                continue;
            }
            index += 1;
            if record.state.intersects(State::LOST | State::RESENT) {
                continue;
            }
            if record.order() >= latest {
                break;
            }
            last = Some(record.sent.at);
        }
        last
    }
}
