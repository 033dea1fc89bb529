//! Starting anew on another path (`koutsianas2007` §3.3, §3.4).

use super::{MaxFlight, NEW_DATA, Sender, UndoState};
use crate::event::Event;
use crate::recovery::Phase;
use base::{Duration, Time};

impl Sender {
    /// Whether the retransmission after a timeout is not acknowledged yet.
    pub(super) fn is_in_rto_recovery(&self) -> bool {
        self.phase == Phase::Loss
            && self.consecutive_timeouts > 0
            && self.timeout_una == self.board.una()
    }

    /// Discards the state of the old path and starts with a window of this many segments, or the
    /// initial window. Returns whether outstanding segments will be retransmitted.
    pub(crate) fn reprobe(&mut self, now: Time, window: Option<u32>, resend: bool) -> bool {
        let initial = self.config.initial_window.bytes(self.mss);
        let window = window.map_or(initial, |segments| u64::from(segments) * u64::from(self.mss));
        self.controller.reset(window.max(u64::from(self.mss)), self.config.initial_ssthresh);
        self.rtt.forget();
        self.board.mark_all_ambiguous();
        self.prr = None;
        self.undo = UndoState::default();
        self.reduced_until = 0;
        self.cwr_pending = false;
        self.limited_transmit_octets = 0;
        self.consecutive_timeouts = 0;
        self.min_notice_delay = Duration::MAX;
        if let Some(max_flight) = &mut self.max_flight {
            **max_flight = MaxFlight::default();
        }
        self.statistics.reprobes += 1;
        // If the peer's window is closed, that is probed instead.
        let open = self.window_end > self.board.una();
        let resends = resend && open && self.board.outstanding() > 0;
        if resends {
            self.enter_loss(Time::NEVER);
        } else if self.phase == Phase::Recovery {
            self.exit_recovery();
        }
        if self.deadline != Time::NEVER {
            self.restart_timer(now);
        }
        let window = self.controller.window();
        self.log.push(|| Event::Reprobed { window, resends });
        resends
    }

    /// Queues a segment of new data beyond the congestion window; false if there is none, or the
    /// peer's window has no room.
    pub(crate) fn force_new_data(&mut self) -> bool {
        let some = self.board.nxt() > 0 && self.next_len().is_some();
        if some {
            self.forced_queue.push_back(NEW_DATA);
        }
        some
    }

    /// Ends slow start: the window is what the path can carry.
    pub(crate) fn end_slow_start(&mut self) {
        let window = self.controller.window();
        if window < self.controller.ssthresh() {
            self.controller.reset(window, Some(window));
        }
    }
}
