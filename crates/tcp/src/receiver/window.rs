//! The receive window: silly-window avoidance, window updates, memory pressure.

use super::Receiver;
use crate::state::Pressure;

impl Receiver {
    /// Twice what [`Receiver::schedule_window_update`] waits for.
    const SHORT_WINDOW: u64 = 4;

    /// RCV.WND: the window as last announced, bytes.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.announced_edge - self.nxt
    }

    /// The window that a SYN announces, which is never scaled (RFC 7323 §2.2), bytes.
    pub(crate) fn syn_window(&self) -> u64 {
        (self.full_buffer_size - self.unread.bytes()).min(u64::from(u16::MAX))
    }

    /// Announces that window; in a SYN-ACK it begins after the data of a Fast Open.
    pub(crate) fn advertise_syn_window(&mut self) -> u16 {
        let window = self.syn_window();
        if self.nxt > 0 {
            self.announced_edge = self.announced_edge.max(self.nxt + window);
        }
        window as u16
    }

    /// Advances the announced window and returns it, bytes. Its right edge moves by large steps
    /// only, so that an application reading small pieces does not make the peer send small segments
    /// (RFC 9293 §3.8.6.2.2).
    #[inline]
    pub(crate) fn advertise_window(&mut self) -> u64 {
        let edge = self.buffer_edge();
        if edge >= self.announced_edge + u64::from(self.min_window_step) {
            self.announced_edge = edge;
        }
        self.window()
    }

    /// Whether a window of zero is announced, whatever the free space.
    pub(crate) fn announces_zero_window(&self) -> bool {
        self.zero_window
    }

    /// Announces a window of zero from now on. Segments in flight are still accepted.
    pub(crate) fn close_window(&mut self) {
        self.zero_window = true;
        self.acknowledge_now();
    }

    /// Announces the window again, three times (Freeze-TCP), since one may be lost.
    pub(crate) fn open_window(&mut self) {
        self.zero_window = false;
        for _ in 0..3 {
            self.acknowledge_now();
        }
    }

    /// Sets the memory pressure. The window shrinks only as data arrives: its announced right edge
    /// does not move left. It stays at [`Self::SHORT_WINDOW`] segments or more, so that every
    /// transfer progresses and reads lead to window updates.
    pub(crate) fn set_pressure(&mut self, pressure: Pressure) {
        self.drops_out_of_order = pressure >= Pressure::OutOfOrder;
        let size = match pressure {
            Pressure::Window => self.full_buffer_size.min(Self::SHORT_WINDOW * u64::from(self.mss)),
            Pressure::None | Pressure::OutOfOrder => self.full_buffer_size,
        };
        if size != self.buffer_size {
            self.buffer_size = size;
            self.update_below = (size / 2) as u32;
        }
    }

    /// Sets the least advances of the edge by the sizes of a segment and of the buffer.
    pub(super) fn set_window_steps(&mut self) {
        // A buffer has less than 2^32 bytes.
        let half = (self.full_buffer_size / 2) as u32;
        self.min_window_step = half.min(self.mss).max(1);
        self.min_window_update = half.min(2 * self.min_window_step).max(1);
    }

    /// The right edge that the free buffer space allows.
    #[inline]
    pub(super) fn buffer_edge(&self) -> u64 {
        self.nxt + self.buffer_size.saturating_sub(self.unread.bytes())
    }

    /// The largest window that may be advertised, bytes.
    pub(crate) fn capacity(&self) -> u32 {
        u32::try_from(self.tuning.maximum()).unwrap_or(u32::MAX)
    }

    /// Whether `len` bytes of in-order data fit into the window.
    #[inline]
    pub(crate) fn fits_window(&self, len: u32) -> bool {
        self.nxt + u64::from(len) <= self.announced_edge
    }

    /// After a read: schedules a window update if the window can grow enough to matter to the peer.
    #[inline(always)]
    pub(super) fn schedule_window_update(&mut self) {
        if !self.ack_due()
            && self.window() <= u64::from(self.update_below)
            && self.buffer_edge() >= self.announced_edge + u64::from(self.min_window_update)
            && !self.is_finished()
        {
            self.acknowledge_now();
        }
    }
}
