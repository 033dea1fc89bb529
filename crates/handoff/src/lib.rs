//! What base stations ask and answer each other at a handoff of a mobile host, and its text in
//! MessagePack (MHP, `yavatkar1994`).
//!
//! A crate of its own for the text alone: its code, for all that is in the state of a connection, is
//! several times that of all middleboxes together, and is not optimised (see the workspace's profiles).

use core::net::IpAddr;
use relay::{AssociationSnapshot, RelaySnapshot};
use serde::{Deserialize, Serialize};
use wire::Mobility;

/// The request of a base station to another one (the *handover* message of `yavatkar1994` §2.4): the
/// state of a mobile host's connections, which shows by its message that it is attached to the requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The mobile host.
    pub mobile: IpAddr,
    /// Its message.
    pub attach: Mobility,
    /// The incarnation of the base station that is asked, if it is known to have had the state.
    pub expects: Option<u32>,
    /// The incarnation of the one that asks.
    pub incarnation: u32,
}

/// The answer to a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The state follows.
    State,
    /// The state went to this base station before, in this incarnation.
    Moved(IpAddr, u32),
    /// There is no state.
    Nothing,
    /// The mobile host is attached elsewhere by now.
    Superseded,
}

/// The text of an answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The mobile host.
    pub mobile: IpAddr,
    /// Where its state is.
    pub reply: Reply,
    /// The SRP associations with the host, if the reply is [`Reply::State`].
    pub associations: Vec<AssociationSnapshot>,
    /// The connections of the host, likewise.
    pub relays: Vec<RelaySnapshot>,
}

impl Request {
    /// The text.
    #[must_use]
    pub fn to_text(&self) -> Vec<u8> {
        text(self)
    }

    /// The request of a text; `None` if it is of none.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Option<Request> {
        rmp_serde::from_slice(text).ok()
    }
}

impl Answer {
    /// The text.
    #[must_use]
    pub fn to_text(&self) -> Vec<u8> {
        text(self)
    }

    /// The answer of a text; `None` if it is of none.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Option<Answer> {
        rmp_serde::from_slice(text).ok()
    }
}

/// Writing to memory fails only for types that have no representation.
fn text(of: &impl Serialize) -> Vec<u8> {
    rmp_serde::to_vec_named(of).unwrap_or_default()
}
