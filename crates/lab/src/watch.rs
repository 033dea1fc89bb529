//! What may be watched in a run.

use crate::capture::Capture;
use std::path::PathBuf;

/// What is recorded and checked besides the rows. None of it changes anything in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Time series of every flow and every queue.
    pub series: bool,
    /// A fingerprint of every packet.
    pub digest: bool,
    /// Byte mode: before every link, packets are written as bytes, with payload and checksums,
    /// and read again.
    pub bytes: bool,
    /// Packets in a file.
    pub capture: Option<Capture>,
    /// No segment takes the fast path: slower, and to see that nothing else is different.
    pub general_path: bool,
    /// A file for what every connection tells, an event a line, in JSON.
    pub log: Option<PathBuf>,
}
