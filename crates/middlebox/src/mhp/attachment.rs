//! The attachment of a mobile host to a base station.

use base::{Duration, Time};
use core::net::IpAddr;
use wire::{Mobility, MobilityMessage, Outcome};

/// The part of a mobile host in MHP: it tells each base station that it is attached to it, until that
/// one says that data transfer is to resume.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    /// Its address of the other version of IP.
    other: Option<IpAddr>,
    /// The present attachment.
    number: u64,
    state: State,
    /// The base station that last confirmed an attachment; or, as long as none has, that was last told
    /// of one. None, if there are no connections that a base station could have.
    previous: Option<IpAddr>,
    /// Its incarnation when it confirmed it, if it has.
    incarnation: Option<u32>,
    /// A base station has answered once.
    has_answer: bool,
    /// When the base station is told next.
    next: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is attached nowhere.
    Detached,
    /// It has told the base station so often, which has not answered.
    Waiting { station: IpAddr, told: u32 },
    /// The base station has its connections.
    Confirmed { station: IpAddr },
    /// The base station does not answer: it knows nothing of MHP.
    Alone,
}

impl Attachment {
    /// The time between the first messages to a base station that does not answer; it doubles.
    const FIRST_WAIT: Duration = Duration::from_millis(250);
    /// The longest time between them.
    const LONGEST_WAIT: Duration = Duration::from_secs(2);
    /// Messages without an answer after which the first base station counts as one without MHP.
    const MOST_TOLD: u32 = 8;
    /// How often a base station is told again after it has answered: it may have lost its state.
    pub(crate) const REFRESH: Duration = Duration::from_secs(5);

    /// Of a host that is attached nowhere. Its attachments are numbered from `first` on: higher than all
    /// numbers that it has used before.
    pub(crate) fn new(other: Option<IpAddr>, first: u64) -> Attachment {
        Attachment {
            other,
            number: first,
            state: State::Detached,
            previous: None,
            incarnation: None,
            has_answer: false,
            next: Time::NEVER,
        }
    }

    /// Whether packets of connections are to wait: the base station has not answered yet.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// The base station to which it is attached.
    pub(crate) fn station(&self) -> Option<IpAddr> {
        match self.state {
            State::Waiting { station, .. } | State::Confirmed { station } => Some(station),
            State::Detached | State::Alone => None,
        }
    }

    /// The number of the attachment.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The host is attached to a base station anew (the upcall *handoff completed*).
    pub(crate) fn on_attached(&mut self, now: Time, station: IpAddr) {
        if let State::Waiting { station, told: 1.. } = self.state
            && self.incarnation.is_none()
        {
            self.previous = Some(station);
        }
        self.number += 1;
        self.state = State::Waiting { station, told: 0 };
        self.next = now;
    }

    /// The host is no longer attached (the upcall *handoff in progress*).
    pub(crate) fn on_detached(&mut self, station: IpAddr) {
        if self.station().is_none_or(|present| present == station) {
            if let State::Waiting { station, told: 1.. } = self.state
                && self.incarnation.is_none()
            {
                self.previous = Some(station);
            }
            self.state = State::Detached;
            self.next = Time::NEVER;
        }
    }

    /// A message has arrived that is authentic. Returns the outcome of the attachment, if it is now
    /// known.
    pub(crate) fn on_message(&mut self, now: Time, message: &Mobility) -> Option<Outcome> {
        let MobilityMessage::Resume { outcome, incarnation } = message.message else { return None };
        if message.attachment != self.number {
            return None;
        }
        self.has_answer = true;
        match (self.state, outcome) {
            (State::Waiting { station, .. }, Outcome::Complete) => {
                self.state = State::Confirmed { station };
                (self.previous, self.incarnation) = (Some(station), Some(incarnation));
                self.next = now + Attachment::REFRESH;
                Some(outcome)
            }
            // Perhaps in answer to a refresh: it has lost its state since. A new attachment, without
            // connections, shows that the host knows.
            (State::Waiting { station, .. } | State::Confirmed { station }, Outcome::Lost) => {
                self.state = State::Detached;
                (self.previous, self.incarnation) = (None, None);
                self.on_attached(now, station);
                Some(outcome)
            }
            _ => None,
        }
    }

    /// When [`Attachment::poll`] is to be called.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.next
    }

    /// The message that is due, and the base station that it goes to.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(IpAddr, Mobility)> {
        if self.next > now {
            return None;
        }
        let station = match &mut self.state {
            State::Waiting { told, .. } if *told == Attachment::MOST_TOLD && !self.has_answer => {
                self.state = State::Alone;
                self.next = Time::NEVER;
                return None;
            }
            State::Waiting { station, told } => {
                let wait = Attachment::FIRST_WAIT * (1 << (*told).min(8));
                self.next = now + wait.min(Attachment::LONGEST_WAIT);
                *told += 1;
                *station
            }
            State::Confirmed { station } => {
                self.next = now + Attachment::REFRESH;
                *station
            }
            State::Detached | State::Alone => {
                self.next = Time::NEVER;
                return None;
            }
        };
        let Attachment { other, previous, incarnation, .. } = *self;
        let message = MobilityMessage::Attach { other, station, previous, incarnation };
        Some((station, Mobility::new(self.number, message)))
    }
}
