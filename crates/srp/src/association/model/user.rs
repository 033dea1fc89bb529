//! The users of streams.

use super::world::events;
use crate::StreamId;
use base::Events;

/// One end of a stream, as its user sees it.
#[derive(Clone, Debug, Hash)]
pub(super) struct User {
    /// The place of the stream in the bound.
    pub(super) stream: usize,
    pub(super) id: (u32, u32),
    pub(super) to_write: u64,
    pub(super) read: u64,
    /// Which stream of payload it reads, once that is known.
    pub(super) reads: Option<u32>,
    pub(super) events: u16,
    pub(super) aborted: bool,
    pub(super) holds: bool,
}

impl User {
    pub(super) fn id(&self) -> StreamId {
        StreamId { slot: self.id.0, generation: self.id.1 }
    }

    pub(super) fn has_failed(&self) -> bool {
        let failures = Events::RESET | Events::TIMED_OUT | Events::UNREACHABLE;
        self.aborted || events(self.events).intersects(failures)
    }

    /// Checks what a user knows at the end against what its peer does.
    pub(super) fn check(&self, peer: Option<&User>) -> Result<(), String> {
        let all = Events::CONNECTED | Events::PEER_CLOSED | Events::FINISHED;
        let mine = events(self.events);
        if self.has_failed() {
            return Ok(());
        }
        if !mine.contains(all) {
            return Err("an end without all that comes before it".into());
        }
        // A crash forgets the peer.
        let Some(peer) = peer else { return Ok(()) };
        if self.read != peer.to_write {
            return Err("the end came before all data".into());
        }
        // What we have sent has all arrived, whatever came afterwards.
        if !events(peer.events).contains(Events::PEER_CLOSED) {
            return Err("a confirmation of what did not arrive".into());
        }
        Ok(())
    }
}
