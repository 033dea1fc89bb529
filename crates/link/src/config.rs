//! What can be chosen of a link.

use crate::{ErrorModel, Impairments};
use base::{Duration, Rate};

/// The settings of one direction. The default is infinitely fast, without delay or limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Transmission rate; `None` is infinitely fast.
    pub rate: Option<Rate>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// What may wait or be in transmission.
    pub queue: Queue,
    /// What damages packets on their way.
    pub errors: ErrorModel,
    /// What else happens to them there.
    pub impairments: Impairments,
}

impl Config {
    /// Whether a packet's departure and arrival are known when it is accepted, and arrivals are in
    /// the order of departures.
    pub(crate) fn is_settled_at_the_tail(&self) -> bool {
        self.impairments == Impairments::default()
    }
}

/// The drop-tail limit. The packet being transmitted counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// Everything fits.
    #[default]
    Unlimited,
    /// So many packets.
    Packets(u32),
    /// So many bytes.
    Bytes(u64),
}

impl Queue {
    /// Whether a packet of `len` bytes fits behind so many.
    pub(crate) fn has_room(self, packets: usize, bytes: u64, len: u32) -> bool {
        match self {
            Queue::Unlimited => true,
            Queue::Packets(limit) => packets < limit as usize,
            Queue::Bytes(limit) => bytes + u64::from(len) <= limit,
        }
    }
}
