//! The attachment of a mobile host to a base station.

use base::{Duration, Time};
use core::net::IpAddr;
use wire::{Mobility, MobilityMessage, Outcome};

/// The part of a mobile host in MHP: it tells each base station that it is attached to it, until that
/// one says that data transfer is to resume.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    /// The address by which base stations know it, and that of the other version of IP.
    mobile: IpAddr,
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
    /// It has told the base station so often, which has not answered. If it knows an address of the link alone of it, it has
    /// asked it for another one.
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

    /// Of a host that is attached nowhere, with this address and that of the other version of IP. Its attachments are
    /// numbered from `first` on: higher than all numbers that it has used before.
    pub(crate) fn new(mobile: IpAddr, other: Option<IpAddr>, first: u64) -> Attachment {
        Attachment {
            mobile,
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
        self.note_told();
        self.number += 1;
        self.state = State::Waiting { station, told: 0 };
        self.next = now;
    }

    /// The host is no longer attached (the upcall *handoff in progress*).
    pub(crate) fn on_detached(&mut self, station: IpAddr) {
        if self.station().is_none_or(|present| present == station) {
            self.note_told();
            self.state = State::Detached;
            self.next = Time::NEVER;
        }
    }

    /// The base station that was told of an attachment may have connections, although it has not answered.
    fn note_told(&mut self) {
        if let State::Waiting { station, told: 1.. } = self.state
            && self.incarnation.is_none()
            && !is_of_link(station)
        {
            self.previous = Some(station);
        }
    }

    /// A message has arrived that is authentic. Returns the outcome of the attachment, if it is now
    /// known.
    pub(crate) fn on_message(&mut self, now: Time, message: &Mobility) -> Option<Outcome> {
        if message.attachment != self.number {
            return None;
        }
        if let (MobilityMessage::Advertise { station }, State::Waiting { station: router, .. }) =
            (message.message, self.state)
            && is_of_link(router)
            && station.is_ipv6() == self.mobile.is_ipv6()
            && !is_of_link(station)
        {
            self.state = State::Waiting { station, told: 0 };
            self.next = now;
        }
        let MobilityMessage::Resume { outcome, incarnation } = message.message else { return None };
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
        let Attachment { mobile, other, previous, incarnation, .. } = *self;
        let message = match is_of_link(station) {
            true => MobilityMessage::Solicit { mobile },
            false => MobilityMessage::Attach { other, station, previous, incarnation },
        };
        Some((station, Mobility::new(self.number, message)))
    }
}

/// Whether an address is one of the link alone. Other base stations cannot reach a router by it, and it may be that of
/// another router of another link.
fn is_of_link(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOBILE: IpAddr = address(0x2001_0db8, 9);
    const ROUTER: IpAddr = address(0xfe80_0000, 1);

    const fn address(network: u32, last: u32) -> IpAddr {
        let bits = (network as u128) << 96 | last as u128;
        IpAddr::V6(core::net::Ipv6Addr::from_bits(bits))
    }

    fn polled(attachment: &mut Attachment, now: Time) -> (IpAddr, MobilityMessage) {
        let (to, message) = attachment.poll(now).expect("a message is due");
        (to, message.message)
    }

    #[test]
    fn a_router_with_an_address_of_the_link_is_asked_for_another_one_before_it_is_told() {
        let mut attachment = Attachment::new(MOBILE, None, 4);
        attachment.on_attached(Time::ZERO, ROUTER);
        let solicit = MobilityMessage::Solicit { mobile: MOBILE };
        assert_eq!(polled(&mut attachment, Time::ZERO), (ROUTER, solicit));
        assert!(attachment.is_waiting());
        // The answer to an earlier attachment, and one that is of no use.
        let station = address(0x2001_0db8, 7);
        for (number, station) in [(4, station), (5, address(0xfe80_0000, 2))] {
            let late = Mobility::new(number, MobilityMessage::Advertise { station });
            assert_eq!(attachment.on_message(Time::ZERO, &late), None);
            assert_eq!(attachment.poll(Time::ZERO), None);
        }
        let advertised = Mobility::new(5, MobilityMessage::Advertise { station });
        assert_eq!(attachment.on_message(Time::ZERO, &advertised), None);
        let attach =
            MobilityMessage::Attach { other: None, station, previous: None, incarnation: None };
        assert_eq!(polled(&mut attachment, Time::ZERO), (station, attach));
        // A later advertisement of another one changes nothing.
        let other = address(0x2001_0db8, 8);
        let another = Mobility::new(5, MobilityMessage::Advertise { station: other });
        assert_eq!(attachment.on_message(Time::ZERO, &another), None);
        assert_eq!((attachment.station(), attachment.poll(Time::ZERO)), (Some(station), None));
    }

    #[test]
    fn one_that_was_only_asked_for_its_address_has_no_connections() {
        let mut attachment = Attachment::new(MOBILE, None, 0);
        attachment.on_attached(Time::ZERO, ROUTER);
        attachment.poll(Time::ZERO);
        let station = address(0x2001_0db8, 7);
        attachment.on_attached(Time::ZERO, station);
        let attach =
            MobilityMessage::Attach { other: None, station, previous: None, incarnation: None };
        assert_eq!(polled(&mut attachment, Time::ZERO), (station, attach));
    }
}
