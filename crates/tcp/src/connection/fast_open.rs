//! TCP Fast Open (RFC 7413): data in the SYN. Cookies and their cache belong to the host; a connection
//! is told how it opens.

use super::{Connection, Events};
use crate::state::{Side, State};
use base::Time;
use serde::{Deserialize, Serialize};
use wire::{FastOpenCookie, Options, Packet, Payload, Segment};

/// How a connection opens (RFC 7413 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FastOpen {
    /// A client without a cookie: its SYN requests one.
    Request,
    /// A client with a cookie: its SYN carries that and the first data.
    Offer {
        /// The server's cookie.
        cookie: FastOpenCookie,
        /// The MSS that the server announced with it, bytes.
        mss: u16,
    },
    /// A server whose client has no valid cookie: the SYN-ACK carries one, and data of the SYN is
    /// ignored.
    Grant(FastOpenCookie),
    /// A server whose client has a valid cookie: data of the SYN is accepted. The SYN-ACK carries a
    /// new cookie, if there is one.
    Accept(Option<FastOpenCookie>),
}

/// What a client has learned of Fast Open on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FastOpenResult {
    /// The server has accepted the data of the SYN.
    Accepted,
    /// The server has answered, and accepted no data of the SYN, or not all.
    Refused,
    /// The SYN had to be sent again, without option and data.
    Unanswered,
}

/// The state of Fast Open in a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FastOpenState {
    how: FastOpen,
    /// Our first SYN, or SYN-ACK, is sent.
    sent: bool,
    /// The octet after the data in our SYN; 1 without data.
    data_end: u64,
    result: Option<FastOpenResult>,
}

impl Connection {
    /// Opens by TCP Fast Open. To be called once, on a new connection, before anything else.
    ///
    /// A connection that need not wait for the end of its handshake is [`Events::CONNECTED`] at
    /// once: a client with a cookie now, a server when it gets the SYN.
    /// [`Events::CONFIRMED`] follows with the end of the handshake.
    pub fn fast_open(&mut self, how: FastOpen) {
        self.fast_open =
            Some(Box::new(FastOpenState { how, sent: false, data_end: 1, result: None }));
        if matches!(how, FastOpen::Offer { .. }) {
            self.events |= Events::CONNECTED;
        }
    }

    /// What a client has learned of Fast Open on its path; `None` if nothing yet, of a server, and
    /// without Fast Open.
    #[must_use]
    pub fn fast_open_result(&self) -> Option<FastOpenResult> {
        self.fast_open.as_ref().and_then(|state| state.result)
    }

    /// Whether the connection opens by Fast Open ([`Connection::fast_open`]).
    #[must_use]
    pub fn uses_fast_open(&self) -> bool {
        self.fast_open.is_some()
    }

    /// The most bytes of data that our SYN carries: 0 unless we have a cookie of the server.
    #[must_use]
    pub fn syn_room(&self) -> u32 {
        match self.fast_open.as_deref() {
            Some(&FastOpenState { how: FastOpen::Offer { mss, .. }, sent: false, .. }) => {
                // RFC 7413 §4.2.1: up to the server's MSS, beside the options.
                let options = Options::ROOM as u32 + self.mechanisms.overhead();
                u32::from(mss.min(self.mss)).saturating_sub(options)
            }
            _ => 0,
        }
    }

    /// Whether our SYN has been acknowledged.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.sender.una() > 0
    }

    /// Whether the application was told to be connected before the handshake is complete.
    pub(super) fn is_connected_early(&self) -> bool {
        let how = self.fast_open.as_ref().map(|state| state.how);
        matches!(how, Some(FastOpen::Offer { .. } | FastOpen::Accept(_)))
    }

    /// Sends data with the first SYN; returns the number of bytes.
    pub(super) fn send_data_with_syn(&mut self, now: Time) -> u32 {
        let most = self.syn_room();
        if most == 0 {
            return 0;
        }
        let Some(state) = self.fast_open.as_deref_mut() else { return 0 };
        let len = self.sender.send_with_syn(now, most);
        state.data_end = 1 + u64::from(len);
        len
    }

    /// Writes the option into a SYN or SYN-ACK. A client's retransmission has none: a middlebox may
    /// have dropped the first SYN for it (RFC 7413 §4.1.3.1).
    pub(super) fn add_fast_open(&mut self, packet: &mut Packet) {
        let Some(state) = self.fast_open.as_deref_mut() else { return };
        let again = core::mem::replace(&mut state.sent, true);
        let cookie = match state.how {
            FastOpen::Request | FastOpen::Offer { .. } if again => {
                // Also if it was the answer to a reset, or the peer has opened, too.
                state.result = Some(FastOpenResult::Unanswered);
                return;
            }
            FastOpen::Request => FastOpenCookie::REQUEST,
            FastOpen::Offer { cookie, .. } | FastOpen::Grant(cookie) => cookie,
            FastOpen::Accept(Some(cookie)) => cookie,
            FastOpen::Accept(None) => return,
        };
        // With the options of a SYN, the longest cookie fits exactly.
        packet.unparsed.add_fast_open(&cookie);
    }

    /// Processes the SYN of a client with a valid cookie: accepts its data, and lets the application
    /// answer (RFC 7413 §4.2.2). Returns the part of the payload that was accepted.
    pub(super) fn on_fast_open_syn(
        &mut self,
        now: Time,
        syn: &Segment,
        payload: Payload,
    ) -> Payload {
        if !self.is_connected_early() {
            return Payload::default();
        }
        self.sender.start_early(syn.window);
        self.events |= Events::CONNECTED;
        self.take_data_of_syn(now, payload)
    }

    /// Accepts the data of a SYN-ACK, as a client of Fast Open. Returns the part that was accepted.
    pub(super) fn on_syn_ack_payload(&mut self, now: Time, payload: Payload) -> Payload {
        if self.fast_open.is_none() {
            return Payload::default();
        }
        self.take_data_of_syn(now, payload)
    }

    fn take_data_of_syn(&mut self, now: Time, payload: Payload) -> Payload {
        if payload.len == 0 {
            return payload;
        }
        let before = self.receiver.nxt();
        let taken = self.receiver.on_data(now, 1, payload, false, &mut self.mechanisms);
        self.log_arrival(before, 1, payload.len);
        self.events |= Events::READABLE;
        taken
    }

    /// The handshake is complete: our SYN is acknowledged.
    pub(super) fn on_opened(&mut self) {
        let early = self.is_connected_early();
        self.events |= if early { Events::CONFIRMED } else { Events::CONNECTED };
        // A server that was connected early has started with the SYN.
        if !early || self.side == Side::Active {
            let marked =
                self.accurate_ecn.as_ref().is_some_and(|accurate| accurate.is_syn_marked());
            self.sender.start(marked);
            self.on_syn_acknowledged();
        }
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.enter(State::Established);
            if self.sender.stream.is_closed() {
                self.enter(State::FinWait1);
            }
        }
    }

    /// Retransmits data of our SYN that is not acknowledged with it.
    fn on_syn_acknowledged(&mut self) {
        let Some(state) = self.fast_open.as_deref_mut() else { return };
        if state.data_end == 1 {
            return;
        }
        let accepted = self.sender.una() >= state.data_end;
        state.result.get_or_insert(match accepted {
            true => FastOpenResult::Accepted,
            false => FastOpenResult::Refused,
        });
        if !accepted {
            self.sender.retransmit_data_of_syn();
        }
    }
}
