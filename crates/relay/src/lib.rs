//! Split connections: two transports, and the bytes that one has received and the other is to send.
//!
//! A [`Relay`] is the decision about one split connection: what is read from one half and written to
//! the other, and how the end of one half becomes the end of the other. [`Relays`] keeps many of them, with
//! both halves of each in one [`Host`](host::Host), which speaks for the ends. If a hop of a known rate
//! lies behind it ([`HopRate`]), they send over it at that rate, and its users have equal shares.

mod half;
mod handoff;
mod hop;
mod relay;
mod relays;
mod users;

pub use half::Half;
pub use handoff::Handoff;
pub use hop::HopRate;
pub use relay::{Next, Policy, Relay, Side, Teardown};
pub use relays::{
    AdoptError, AssociationSnapshot, Carried, Change, End, Ended, Ending, Handover, Limits, Onward,
    RelaySnapshot, Relays, Seen, Split, Stage, Statistics, StreamName,
};
pub use users::ByUser;
