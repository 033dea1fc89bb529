//! How base stations ask each other for the state of a mobile host's connections.

use super::{Answer, Request};
use base::{Random, Time};
use core::net::IpAddr;
use host::Context;
use wire::{Packet, Payload};

/// The way of requests and answers between base stations. In the lab it is a TCP of the box's own; a gateway has
/// the kernel's, and encrypts what goes over it.
pub trait Exchange: Send {
    /// A requester, to be answered.
    type Requester: Copy + Send;

    /// That of the node after a restart: it knows nothing yet. `random` is for secrets.
    #[must_use]
    fn anew(&self, random: Random) -> Self;

    /// Requests the state of a mobile host from a base station. Returns false if that cannot be tried.
    fn ask(&mut self, now: Time, request: &Request, from: IpAddr) -> bool;

    /// Answers a request. `data` are the payloads that the connections hold.
    fn answer(&mut self, now: Time, to: Self::Requester, answer: Answer, data: Vec<Payload>);

    /// What has arrived. To be called until there is nothing more, after every other call.
    fn poll(&mut self, now: Time) -> Option<Transferred<Self::Requester>>;

    /// A mobile host is known here no more: it has gone, or has said nothing for long and has no connections.
    fn forget(&mut self, _mobile: IpAddr) {}

    /// The payloads of answers, as long as they are to be sent.
    fn held_payloads(&self, held: &mut dyn FnMut(Payload));

    /// Bytes of messages that have arrived.
    fn received(&self) -> Received;

    /// Requests and answers that are on their way.
    fn open(&self) -> usize;

    /// Processes a packet that passes the node if it is of an exchange; returns whether it is.
    fn handle_packet(&mut self, _: Time, _: &Packet) -> bool {
        false
    }

    /// When [`Exchange::handle_timeout`] is to be called.
    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    /// Handles the timers that are due.
    fn handle_timeout(&mut self, _: Time) {}

    /// Sends all that may be sent now by the node.
    fn transmit(&mut self, _: Time, _: &mut Context<'_>) {}
}

/// Bytes of messages that have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Headers and text: the state of connections.
    pub state: u64,
    /// The data that connections hold.
    pub data: u64,
}

/// What has arrived.
#[derive(Debug)]
pub enum Transferred<R> {
    /// A request of this base station, which is authentic.
    Request(Request, IpAddr, R),
    /// The answer to a request about this mobile host, which is authentic; `None` if there was none.
    Answer(IpAddr, Option<Answer>),
}
