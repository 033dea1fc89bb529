//! The application of one half.

use crate::Side;
use base::Time;
use host::Application;
use serde::{Deserialize, Serialize};
use tcp::Events;

/// The application of one half of a split connection: it collects events for the relay, which alone
/// can reach the other half.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Half {
    pub(crate) relay: u32,
    pub(crate) side: Side,
    pub(crate) events: Events,
}

impl Half {
    /// The number of no relay.
    pub(crate) const NO_RELAY: u32 = u32::MAX;

    pub(crate) fn new(relay: u32, side: Side) -> Half {
        Half { relay, side, events: Events::empty() }
    }

    pub(crate) fn take_events(&mut self) -> Events {
        core::mem::take(&mut self.events)
    }
}

impl<C> Application<C> for Half {
    fn handle(&mut self, _: Time, _: &mut C, events: Events) {
        self.events |= events;
    }

    fn requests(&self) -> bool {
        !self.events.is_empty()
    }
}
