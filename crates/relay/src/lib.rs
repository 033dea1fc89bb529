//! Split connections: two transports, and the bytes that one has received and the other is to send.
//!
//! A [`Relay`] is the decision about one split connection: what is read from one half and written to
//! the other, and how the end of one half becomes the end of the other. [`Relays`] keeps many of them, with
//! both halves of each in one [`Host`](host::Host), which speaks for the ends.

mod half;
mod relay;
mod relays;

pub use half::Half;
pub use relay::{Policy, Relay, Side, Teardown};
pub use relays::{Relays, Split, Statistics};
