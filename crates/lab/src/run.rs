//! One run: a scenario and a seed.

use crate::capture::{self, Capture};
use crate::outcome::{self, Outcome};
use crate::scenario::Scenario;
use crate::world;
use base::{Duration, Time};
use sim::{ByteFault, TraceTarget};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

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
    /// A file for what every connection tells, an event a line, in JSON.
    pub log: Option<PathBuf>,
}

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

/// Runs a scenario under a seed to its end, unless `cancelled` becomes true.
///
/// # Errors
/// If it was cancelled, if packets cannot be captured, or if a check inside of it failed.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    watch: &Watch,
    cancelled: &AtomicBool,
) -> Result<Outcome, RunError> {
    let mut built = world::build(scenario, seed);
    if watch.series {
        for flow in &scenario.flows {
            built.world.trace(&[TraceTarget::Flows(built.nodes[flow.from])]);
        }
        for &(forward, backward) in &built.links {
            built.world.trace(&[TraceTarget::Queue(forward), TraceTarget::Queue(backward)]);
        }
    }
    if watch.log.is_some() {
        let nodes: Vec<_> = built.nodes.iter().map(|&node| TraceTarget::Events(node)).collect();
        built.world.trace(&nodes);
    }
    if watch.digest {
        built.world.digest();
    }
    if watch.bytes {
        built.world.byte_mode();
    }
    if let Some(capture) = &watch.capture {
        capture::start(capture, scenario, seed, &mut built)?;
    }
    // In slices, only to look up now and then whether anybody still wants to know.
    let end = Time::ZERO + scenario.duration;
    let slice = (scenario.duration / 100).clamp(Duration::from_nanos(1), Duration::from_secs(1));
    let mut until = Time::ZERO;
    while until < end {
        if cancelled.load(Ordering::Relaxed) {
            return Err(RunError::Cancelled);
        }
        until = (until + slice).min(end);
        built.world.run_until(until);
    }
    if let Some(capture) = &watch.capture {
        capture::finish(capture, &mut built)?;
    }
    outcome::of(scenario, seed, built, watch)
}
