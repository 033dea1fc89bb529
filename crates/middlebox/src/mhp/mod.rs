//! MHP: the split connections of a mobile host, and how they move from one base station to the next
//! (`yavatkar1994`).
//!
//! `Attachment` is the part of the mobile host, `Registry` that of a base station: which of them has
//! the state of the host's connections, and who is asked for it. An [`Exchange`] carries the state between base
//! stations; [`Transfers`] is that of the lab. The boxes [`crate::Mobile`] and [`crate::Station`] put them together
//! with the relays.

mod attachment;
mod exchange;
mod key;
#[cfg(test)]
mod model;
mod registry;
mod transfer;

pub(crate) use attachment::Attachment;
pub use exchange::{Exchange, Received, Transferred};
pub use handoff::{Answer, Reply, Request};
pub use key::Keys;
pub(crate) use registry::{Action, Registry};
pub use transfer::Transfers;
