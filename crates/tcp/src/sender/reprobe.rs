//! Beginning anew on another path (`koutsianas2007` §3.3, §3.4).

use super::{Doubt, NEW_DATA, Sender, Used};
use crate::event::Event;
use crate::recovery::Phase;
use base::{Duration, Time};

impl Sender {
    /// What was sent again after a timeout has not been acknowledged yet.
    pub(super) fn is_stalled(&self) -> bool {
        self.phase == Phase::Loss && self.series > 0 && self.timed_out_at == self.board.una()
    }

    /// Forgets what was known of the path and starts with this many segments, or the initial
    /// window. Says whether something outstanding will be sent again.
    pub(crate) fn reprobe(&mut self, now: Time, window: Option<u32>, resend: bool) -> bool {
        let initial = self.config.initial_window.bytes(self.mss);
        let window = window.map_or(initial, |segments| u64::from(segments) * u64::from(self.mss));
        self.controller.reset(window.max(u64::from(self.mss)), self.config.initial_ssthresh);
        self.rtt.forget();
        self.board.forget_times();
        self.gradual = None;
        self.doubt = Doubt::default();
        self.reduced_until = 0;
        self.tell_reduction = false;
        self.limited = 0;
        self.series = 0;
        self.soonest_notice = Duration::MAX;
        if let Some(used) = &mut self.used {
            **used = Used::default();
        }
        self.statistics.reprobes += 1;
        // Where the peer has no room, its window is what is probed.
        let open = self.right_edge > self.board.una();
        let resends = resend && open && self.board.outstanding() > 0;
        if resends {
            self.start_over();
        } else if self.phase == Phase::Recovery {
            self.end_episode();
        }
        if self.deadline != Time::NEVER {
            self.restart_timer(now);
        }
        let window = self.controller.window();
        self.log.push(|| Event::Reprobed { window, resends });
        resends
    }

    /// A segment of new data goes whatever the congestion window says; false if there is none, or
    /// no room for it with the peer.
    pub(crate) fn let_out(&mut self) -> bool {
        let some = self.board.nxt() > 0 && self.next_len().is_some();
        if some {
            self.forced.push_back(NEW_DATA);
        }
        some
    }

    /// The window is what the path can take.
    pub(crate) fn end_slow_start(&mut self) {
        let window = self.controller.window();
        if window < self.controller.ssthresh() {
            self.controller.reset(window, Some(window));
        }
    }
}
