//! A sender with a small buffer.

use super::left;
use crate::traffic::Reports;
use crate::{Application, Transport};
use base::{LowWater, Time};
use serde::{Deserialize, Serialize};
use tcp::Events;

/// Writes its stream as a buffer of a given size lets it, then closes: never more is unacknowledged
/// than fits, so that a buffer smaller than the path limits the sender to a buffer per round trip.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BufferedSource {
    stream: u32,
    size: Option<u64>,
    buffer: u64,
    written: u64,
}

impl BufferedSource {
    /// A source of `size` bytes of `stream`, without end for `None`, with a buffer of `buffer`
    /// bytes, at least 1.
    #[must_use]
    pub fn new(stream: u32, size: Option<u64>, buffer: u64) -> BufferedSource {
        BufferedSource { stream, size, buffer: buffer.max(1), written: 0 }
    }

    fn fill(&mut self, connection: &mut impl Transport) {
        let room = self.buffer.saturating_sub(connection.unacknowledged());
        let len = room.min(left(self.size, self.written));
        connection.write(self.stream, self.written, len);
        self.written += len;
        if left(self.size, self.written) > 0 {
            connection.notify_at(LowWater::Unacknowledged(self.buffer - 1));
        } else {
            connection.close();
        }
    }
}

impl Reports for BufferedSource {}

impl<C: Transport> Application<C> for BufferedSource {
    fn handle(&mut self, _: Time, connection: &mut C, events: Events) {
        if events.intersects(Events::CONNECTED | Events::WRITABLE) {
            self.fill(connection);
        }
    }
}
