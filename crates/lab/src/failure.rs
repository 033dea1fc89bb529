//! Runs without an outcome.

use sim::ByteFault;
use std::path::PathBuf;
use thiserror::Error;

/// Why a run has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// Somebody asked it to end.
    #[error("the run was cancelled")]
    Cancelled,
    /// Bytes did not arrive in order, once: a bug in the TCP that was run.
    #[error(
        "internal error: {misplaced} runs of bytes of `{flow}` arrived out of order or twice \
         (seed {seed}); please report it together with the scenario"
    )]
    Misplaced {
        /// The flow's name.
        flow: String,
        /// The seed.
        seed: u64,
        /// How many runs of bytes.
        misplaced: u64,
    },
    /// Packets had nowhere to go, although every flow has a route.
    #[error(
        "internal error: {packets} packets found no way (seed {seed}); please report it together \
         with the scenario"
    )]
    Unroutable {
        /// How many packets.
        packets: u64,
        /// The seed.
        seed: u64,
    },
    /// A packet did not survive being bytes.
    #[error("internal error: {fault} (seed {seed}); please report it together with the scenario")]
    Bytes {
        /// What happened.
        fault: ByteFault,
        /// The seed.
        seed: u64,
    },
    /// Packets that were rebuilt by erasure coding were not those that were sent.
    #[error(
        "internal error: {blocks} blocks of `{flow}` were not rebuilt to what was sent (seed \
         {seed}); please report it together with the scenario"
    )]
    Coding {
        /// The flow's name.
        flow: String,
        /// The seed.
        seed: u64,
        /// How many blocks.
        blocks: u64,
    },
    /// Packets were to be captured where there is nothing.
    #[error(
        "packets cannot be captured at `{place}`: there is no such node and no such direction of a link (`a->b`)"
    )]
    NoSuchPlace {
        /// Where.
        place: String,
    },
    /// What was watched could not be written.
    #[error("{}: {problem}", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system says.
        problem: String,
    },
}
