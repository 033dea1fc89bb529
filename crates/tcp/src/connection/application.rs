//! The application's calls: write, read, close, and the events that answer them.

use super::{Connection, Events, OutOfBand, Reset};
use crate::config::InitialWindow;
use crate::state::State;
use base::{Duration, LowWater, Time};
use wire::Payload;

impl Connection {
    /// Appends `len` bytes of `stream`, from `offset` on, to the send buffer. Ignored after
    /// [`Connection::close`].
    ///
    /// A segment never carries bytes of two streams: a new stream starts a new segment.
    pub fn write(&mut self, stream: u32, offset: u64, len: u64) {
        self.sender.write(stream, offset, len, true);
    }

    /// Like [`Connection::write`], but more will follow (`MSG_MORE` of Linux): data that does not
    /// fill a segment waits for it, at most one retransmission timeout. PSH is not set (RFC 9293
    /// §3.9.1.2).
    pub fn write_more(&mut self, stream: u32, offset: u64, len: u64) {
        self.sender.write(stream, offset, len, false);
    }

    /// Turns corking on or off (`TCP_CORK` of Linux, `TCP_NOPUSH` of BSD): data that does not fill
    /// a segment waits for more, at most one retransmission timeout.
    pub fn cork(&mut self, corked: bool) {
        self.sender.stream.cork(corked);
    }

    /// Sends all data written so far, although more will follow.
    pub fn flush(&mut self) {
        self.sender.stream.flush();
    }

    /// Changes [`Config::nagle`](crate::Config::nagle).
    pub fn set_nagle(&mut self, nagle: bool) {
        self.sender.set_nagle(nagle);
    }

    /// Changes [`Config::syn_retries`](crate::Config::syn_retries) (`TCP_SYNCNT` of Linux).
    pub fn set_syn_retries(&mut self, retries: u32) {
        self.sender.set_syn_retries(retries);
    }

    /// Changes [`Config::user_timeout`](crate::Config::user_timeout) (`TCP_USER_TIMEOUT` of Linux). A timer
    /// that runs keeps its time.
    pub fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.sender.set_user_timeout(timeout);
    }

    /// Raises [`Config::initial_window`](crate::Config::initial_window) of a connection that is established and
    /// has sent no data, where more is known of the path than when it was opened. One whose handshake
    /// experienced a loss or congestion stays as it is (RFC 5681 §3.1).
    pub fn raise_initial_window(&mut self, window: InitialWindow) {
        self.sender.raise_initial_window(window);
    }

    /// Bytes written and not yet acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.sender.stream.written().saturating_sub(self.sender.una().saturating_sub(1))
    }

    /// Bytes written and not yet sent: the windows have no room for them, or pacing holds them back.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.sender.stream.written().saturating_sub(self.sender.nxt().saturating_sub(1))
    }

    /// Requests [`Events::WRITABLE`], once, for this state.
    pub fn notify_at(&mut self, low_water: LowWater) {
        self.low_water = Some(low_water);
        self.notify();
    }

    /// Raises [`Events::WRITABLE`] if it was requested and is due.
    pub(super) fn notify(&mut self) {
        let is_reached =
            |low_water: LowWater| low_water.is_reached(self.unacknowledged(), self.unsent());
        let is_due = self.low_water.is_some_and(is_reached);
        if is_due {
            self.low_water = None;
            self.events |= Events::WRITABLE;
        }
    }

    /// The next run of bytes that has arrived in order.
    #[inline]
    pub fn read(&mut self) -> Option<Payload> {
        self.receiver.read(u32::MAX)
    }

    /// Like [`Connection::read`], but at most `bytes`; the rest stays for the next call.
    #[inline]
    pub fn read_up_to(&mut self, bytes: u32) -> Option<Payload> {
        self.receiver.read(bytes)
    }

    /// Bytes that can be read.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// The runs that [`Connection::read`] would return; they stay in the buffer.
    pub fn peek(&self) -> impl Iterator<Item = Payload> {
        self.receiver.peek()
    }

    /// The payload in the receive and send buffers: what may still be read or sent. Some may be listed
    /// twice.
    pub fn held_payloads(&self) -> impl Iterator<Item = Payload> {
        let unacknowledged = self.sender.stream.payloads(self.sender.una());
        self.receiver.payloads().chain(unacknowledged)
    }

    /// From now on, a segment carries bytes of several writes although their payloads do not continue each
    /// other: its payload is [`Payload::GATHERED`], and [`Connection::gathered`] says which it has. For worlds
    /// where a payload's identity is that of bytes in memory.
    pub fn gather(&mut self) {
        self.sender.stream.gather();
    }

    /// The payloads that a gathered one consists of, in order. It must be that of the segment that was written
    /// last.
    pub fn gathered(&self, payload: Payload) -> impl Iterator<Item = Payload> {
        let mut left = payload.len;
        self.sender.stream.payloads(payload.offset).map_while(move |run| {
            let part = run.take(left);
            left -= part.len;
            (part.len > 0).then_some(part)
        })
    }

    /// Closes the sending half: a FIN follows the data. The receiving half stays open (half-close,
    /// RFC 9293 §3.6).
    pub fn close(&mut self) {
        self.sender.stream.close();
        match self.state {
            State::Established | State::SynReceived => self.enter(State::FinWait1),
            State::CloseWait => self.enter(State::LastAck),
            State::SynSent if self.is_connected_early() => {} // It waits for the handshake.
            State::SynSent => self.enter_closed(Events::CLOSED),
            _ => {}
        }
    }

    /// From now on, the peer's FIN is not acknowledged before [`Connection::release_fin`]: a relay
    /// holds it until the other end has received all data and the FIN. [`Events::PEER_CLOSING`]
    /// says that it has arrived. The peer may retransmit it meanwhile.
    pub fn hold_fin(&mut self) {
        self.receiver.hold_fin();
    }

    /// Closes both halves (RFC 9293 §3.6.1, MAY-1): `close` of a BSD socket, where
    /// [`Connection::close`] is `shutdown`. If data is unread or arrives later, it is discarded and
    /// the connection is reset (SHLD-3). The peer's FIN has to arrive within
    /// [`Config::fin_wait_2`](crate::Config::fin_wait_2).
    pub fn close_both(&mut self, now: Time) {
        self.is_read_closed = true;
        if self.receiver.readable() > 0 {
            return self.abort();
        }
        self.close();
        if self.state == State::FinWait2 {
            self.limit_fin_wait_2(self.clock.local(now));
        }
    }

    /// Aborts the connection, whatever is outstanding or unread, with a reset (RFC 9293 §3.10.5).
    ///
    /// In CLOSING and LAST-ACK the RFC sends none; but the peer, which has closed, would wait for ever for what it has
    /// not got. Neither is one sent after [`Events::TIMED_OUT`], as the peer may be gone; this sends it.
    pub fn abort(&mut self) {
        let resets = match self.state {
            State::SynSent | State::TimeWait => false,
            // It was open before.
            State::Closed => self.sender.has_timed_out() && self.sender.una() > 0,
            _ => true,
        };
        if self.state != State::Closed {
            self.enter_closed(Events::CLOSED);
        }
        if resets {
            let seq = self.iss + self.sender.nxt() as u32;
            self.out_of_band = Some(OutOfBand::Reset(Reset { seq, acks: true }));
        }
    }

    /// Ends the connection at once and sends nothing: there is no way to the peer any more
    /// ([`Events::UNREACHABLE`]).
    pub fn fail(&mut self) {
        match self.state {
            State::Closed => {}
            State::TimeWait => self.enter_closed(Events::CLOSED),
            _ => self.enter_closed(Events::UNREACHABLE | Events::CLOSED),
        }
    }

    /// The events since the last call.
    #[inline]
    pub fn take_events(&mut self) -> Events {
        core::mem::take(&mut self.events)
    }
}
