//! Acknowledgments of acceptable segments, and the peer's window in them.

use super::{Connection, Events, Negotiated};
use crate::congestion::CeMarks;
use crate::mechanism::Incoming;
use crate::sender::{Ack, Window};
use crate::state::State;
use base::Time;
use wire::{Flags, SackBlocks, Segment};

impl Connection {
    /// The peer's window that a segment announces.
    #[inline]
    pub(super) fn announced_window(&self, segment: &Segment, start: u64, ack: u64) -> Window {
        // RFC 7323 §2.2: the window of a SYN is never scaled.
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.send_shift };
        Window { seq: start, ack, window_end: ack + (u64::from(segment.window) << shift) }
    }

    /// Like [`Connection::announced_window`], for a segment that is no SYN.
    #[inline(always)]
    pub(super) fn scaled_window(&self, segment: &Segment, start: u64, ack: u64) -> Window {
        let window_end = ack + (u64::from(segment.window) << self.send_shift);
        Window { seq: start, ack, window_end }
    }

    /// Whether an acknowledgment number is acceptable: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT
    /// (RFC 5961 §5); before our SYN is acknowledged, it must acknowledge that.
    #[inline]
    pub(super) fn is_valid_ack(&self, ack: u64) -> bool {
        let una = self.sender.una();
        ack <= self.sender.nxt()
            && (ack >= una || una > 0 && ack + self.sender.max_window() >= una)
            && ack > 0
    }

    #[inline]
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        start: u64,
        ack: u64,
        asked: &Incoming,
    ) {
        let una = self.sender.una();
        if ack < una {
            return;
        }
        let marks = match self.accurate_ecn {
            Some(_) => self.accurate_feedback(segment, start, ack),
            None => CeMarks::default(),
        };
        let echo = self.negotiated.contains(Negotiated::ECN) && segment.flags.contains(Flags::ECE);
        let congested =
            echo && una > 0 || marks.packets > 0 && (una > 0 || self.is_connected_early());
        let echoed = match segment.options.timestamps {
            Some(stamp) if self.negotiated.contains(Negotiated::TIMESTAMPS) => {
                let since = self.sender.progress_at();
                self.timestamps.on_ack(now, una, self.sender.nxt(), since);
                self.timestamps.since(now, stamp.echo)
            }
            _ => None,
        };
        let window = self.announced_window(segment, start, ack);
        let Incoming { may_be_dupack, on_current_path, force_limited_transmit, .. } = *asked;
        let ack_of = |blocks| Ack {
            ack,
            window,
            blocks,
            may_be_dupack,
            echoed,
            congested,
            marks,
            on_current_path,
            force_limited_transmit,
        };
        let blocks = &segment.options.sack;
        if blocks.is_empty() || !self.negotiated.contains(Negotiated::SACK) {
            self.sender.on_ack(now, &ack_of(&[]), &mut self.mechanisms);
        } else {
            let (blocks, count) = self.sacked(blocks);
            self.sender.on_ack(now, &ack_of(&blocks[..count]), &mut self.mechanisms);
            self.notify();
        }
        if ack > una {
            self.on_una_advanced(now, una == 0);
        }
    }

    /// The peer's SACK blocks in absolute numbers, and their count.
    pub(super) fn sacked(&self, blocks: &SackBlocks) -> ([(u64, u64); SackBlocks::MAX], usize) {
        let mut result = [(0, 0); SackBlocks::MAX];
        let mut count = 0;
        for block in blocks.as_slice() {
            if let (Some(start), Some(end)) =
                (self.sent_offset(block.start), self.sent_offset(block.end))
            {
                result[count] = (start, end);
                count += 1;
            }
        }
        (result, count)
    }

    /// Follows an advance of SND.UNA: our SYN is acknowledged (the connection `opens`), or perhaps
    /// our FIN.
    pub(super) fn on_una_advanced(&mut self, now: Time, opens: bool) {
        if opens {
            self.on_opened();
        }
        self.notify();
        if self.sender.outstanding() == 0 {
            self.timestamps.on_all_acknowledged();
        }
        if self.sender.una() == self.sender.stream.end() {
            match self.state {
                State::FinWait1 => {
                    self.enter(State::FinWait2);
                    self.limit_fin_wait_2(now);
                }
                State::Closing => self.enter_time_wait(now),
                State::LastAck => self.enter_closed(Events::CLOSED),
                _ => return,
            }
            self.events |= Events::FINISHED;
        }
    }
}
