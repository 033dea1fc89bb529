//! The recordings and checks of a run besides its rows.

use crate::capture::Capture;
use scenario::Latency;
use std::path::PathBuf;

/// The recordings and checks of a run besides its rows. None of them changes the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Time series of every flow and every queue.
    pub series: bool,
    /// A digest of all packets.
    pub digest: bool,
    /// Byte mode: before every link, packets are written as bytes, with payload and checksums,
    /// and read again.
    pub bytes: bool,
    /// A capture of packets in a file.
    pub capture: Option<Capture>,
    /// Turns the fast path off, to test that the run is the same.
    pub general_path: bool,
    /// What is measured of round trips and delays, if the scenario does not ask for more.
    pub latency: Latency,
    /// A file for the events of every connection, one JSON object a line.
    pub log: Option<PathBuf>,
}
