//! What the tests share: a scenario with a short link, and runs of it on real packets.

use lab::Row;
use scenario::{Experiment, Scenario, Source};
use std::io::Write as _;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use testbed::{Emulation, Error, Outcome};

/// One transfer over one link. Its text can be replaced by a test.
pub(crate) const TRANSFER: &str = r#"title    = "a transfer"
duration = "2 s"
[nodes]
a = {}
b = {}
[[links]]
between = ["a", "b"]
rate    = "20 Mbit/s"
delay   = "10 ms"
queue   = "100 packets"
[[flows]]
from    = "a"
to      = "b"
stack   = "lasthop"
traffic = { size = "1 MB" }
[testbed]
late = "10 ms"
"#;

/// A hop that corrupts packets behind one that does not; a test adds its flow. There is time for one that takes every
/// corruption for congestion, on a machine that is late.
pub(crate) const NOISY_HOP: &str = r#"
title    = "a noisy hop behind a clean one"
duration = "20 s"
[nodes]
server = {}
station = {}
mobile = {}
[[links]]
between = ["server", "station"]
rate = "100 Mbit/s"
delay = "5 ms"
[[links]]
between = ["station", "mobile"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = "100 packets"
forward = { errors = { bit = 2e-6 } }
[testbed]
late = "10 ms"
"#;

/// A receive window of 83 packets for [`NOISY_HOP`]: more than the path carries in a round trip, and less than its queue
/// holds, so that none is lost but by corruption however late the machine is.
pub(crate) const WINDOW: &str = "receive_window = \"120 kB\"";

/// [`TRANSFER`] with some of its text replaced. Every text must be there.
pub(crate) fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(TRANSFER.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "no {old:?} in the scenario");
        text.replacen(old, new, 1)
    })
}

pub(crate) fn scenario(text: &str) -> Scenario {
    let source = Source::new(text, "case.toml");
    let scenario = Experiment::read(&source).and_then(|experiment| experiment.testbed_scenario());
    scenario.unwrap_or_else(|error| panic!("{}", error.render(scenario::Style::Plain)))
}

/// Says loudly that a test cannot be run here: what is printed is not shown of tests that pass, but
/// what is written is.
pub(crate) fn skip(why: &dyn std::fmt::Display) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}

/// How often a run is made that the machine is too busy for.
const ATTEMPTS: u32 = 5;

/// A run with seed 1, made again while it is void since the machine was busy; `None`, and a word
/// about it, where real packets are not permitted.
pub(crate) fn run(text: &str) -> Option<Outcome> {
    for _ in 1..ATTEMPTS {
        let outcome = run_once(text)?;
        let Some(why) = &outcome.health.void else { return Some(outcome) };
        let _ = writeln!(std::io::stderr(), "again: {why}");
    }
    run_once(text)
}

/// A run with seed 1, void or not; `None` as above.
pub(crate) fn run_once(text: &str) -> Option<Outcome> {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let (scenario, label) = (scenario(text), RUNS.fetch_add(1, Ordering::Relaxed).to_string());
    let _place = Place::take();
    match testbed::run_beside(&scenario, 1, &label, &AtomicBool::new(false)) {
        Ok(outcome) => {
            eprintln!("{:?}", outcome.health);
            Some(outcome)
        }
        Err(error @ (Error::Forbidden(_) | Error::Absent)) => {
            skip(&error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The network of a scenario without its flows; `None` as above.
pub(crate) fn emulate(text: &str, label: &str) -> Option<Emulation> {
    match Emulation::start(&scenario(text), 1, label) {
        Ok(emulation) => Some(emulation),
        Err(error @ (Error::Forbidden(_) | Error::Absent)) => {
            skip(&error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Calls `f` with every case at the same time, on threads that are called as the test is.
pub(crate) fn at_once<T: Send, R: Send, const N: usize>(
    cases: [T; N],
    f: impl Fn(T) -> R + Sync,
) -> [R; N] {
    let (f, test) = (&f, thread::current());
    thread::scope(|scope| {
        let threads = cases.map(|case| {
            let thread = thread::Builder::new().name(test.name().unwrap_or("a test").to_owned());
            thread.spawn_scoped(scope, move || f(case)).unwrap()
        });
        threads.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// The number of runs at the same time. They hardly use the processors, which keep up with as many.
const PLACES: usize = 8;

/// The places that are taken.
static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// Leave for one run.
struct Place;

impl Place {
    /// Waits for a place.
    fn take() -> Place {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |taken: &mut usize| *taken == PLACES;
        *FREED.wait_while(taken, full).unwrap_or_else(PoisonError::into_inner) += 1;
        Place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}

/// That a transfer has arrived whole.
pub(crate) fn complete(row: &Row, bytes: u64) {
    assert_eq!((row.payload_bytes, row.misplaced, row.failed), (bytes, 0, 0), "{row:?}");
    assert!(row.completed_s.is_some(), "{row:?}");
}
