//! Errors of runs and sweeps.

use scenario::ScenarioError;
use sim::ByteFault;
use std::path::PathBuf;
use thiserror::Error;

/// Why a run has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// It was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// Bytes arrived out of order or twice: a bug in the TCP that was run.
    #[error(
        "internal error: {misplaced} byte ranges of `{flow}` arrived out of order or twice \
         (seed {seed}); please report it together with the scenario"
    )]
    Misplaced {
        /// The flow's name.
        flow: String,
        /// The seed.
        seed: u64,
        /// The number of byte ranges.
        misplaced: u64,
    },
    /// Packets had no route, although every flow has one.
    #[error(
        "internal error: {packets} packets had no route (seed {seed}); please report it together \
         with the scenario"
    )]
    Unroutable {
        /// The number of packets.
        packets: u64,
        /// The seed.
        seed: u64,
    },
    /// A packet changed when written as bytes and read again.
    #[error("internal error: {fault} (seed {seed}); please report it together with the scenario")]
    Bytes {
        /// What happened.
        fault: ByteFault,
        /// The seed.
        seed: u64,
    },
    /// Packets rebuilt by erasure coding differ from those sent.
    #[error(
        "internal error: {blocks} blocks of `{flow}` were not rebuilt to what was sent (seed \
         {seed}); please report it together with the scenario"
    )]
    Coding {
        /// The flow's name.
        flow: String,
        /// The seed.
        seed: u64,
        /// The number of blocks.
        blocks: u64,
    },
    /// A capture names an unknown place.
    #[error(
        "packets cannot be captured at `{place}`: expected the name of a node or of a direction of a link (`a->b`)"
    )]
    NoSuchPlace {
        /// Where.
        place: String,
    },
    /// An output file could not be written.
    #[error("{}: {problem}", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's error.
        problem: String,
    },
}

/// Why a sweep has no rows.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A run failed, or was cancelled.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The threads could not be started.
    #[error("cannot start threads: {0}")]
    Threads(#[from] std::io::Error),
}
