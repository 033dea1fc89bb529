//! Data in one direction, which the applications at its ends may limit.

mod buffered;
mod paced;
mod slow;

pub use buffered::BufferedSource;
pub use paced::PacedSource;
pub use slow::SlowSink;

use super::{Ends, Place, Sink, Source, Traffic, left};
use base::settings::{Bytes, Span};
use serde::{Deserialize, Serialize};

base::settings! {
    /// Data in one direction.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Transfer {
        /// The amount of data; without end if absent.
        pub size: Option<Bytes>,
        /// The sender writes at regular times, the first when the connection is established; all at
        /// once if absent.
        pub paced: Option<Pace>,
        /// The send buffer, which limits unacknowledged data. Unlimited if absent.
        pub send_buffer: Option<Bytes>,
        /// The receiver reads at regular times while there is data; at once if absent. Unread data
        /// takes room in the receive window.
        pub reader: Option<Pace>,
    }
}

base::settings! {
    /// Chunks at regular times.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Pace {
        /// The size of a chunk.
        pub chunk: Bytes,
        /// From one chunk to the next.
        pub interval: Span,
    }
}

impl Ends for Transfer {
    fn ends(&self, place: &Place) -> [Traffic; 2] {
        let (stream, size) = (place.stream, self.size());
        let source = match (self.paced, self.send_buffer) {
            (Some(Pace { chunk, interval }), _) => {
                PacedSource::new(stream, size, chunk.0, interval.0).into()
            }
            (None, Some(Bytes(buffer))) => BufferedSource::new(stream, size, buffer).into(),
            (None, None) => Source::new(stream, size).into(),
        };
        let sink = match self.reader {
            None => place.sink().into(),
            Some(Pace { chunk, interval }) => {
                let chunk = u32::try_from(chunk.0).unwrap_or(u32::MAX);
                SlowSink::new(place.sink(), chunk, interval.0).into()
            }
        };
        [source, sink]
    }

    fn check(&self) -> Result<(), &'static str> {
        match (self.paced, self.send_buffer) {
            (Some(_), Some(_)) => Err("expected either `paced` or `send_buffer`"),
            _ => Ok(()),
        }
    }

    fn is_transfer(&self) -> bool {
        true
    }

    fn size(&self) -> Option<u64> {
        self.size.map(|size| size.0)
    }
}
