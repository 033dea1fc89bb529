//! How runs begin and end on the testbed.

use crate::common::{TRANSFER, run, run_once, scenario, skip, with};
use base::Time;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testbed::Error;

/// Tests of runs without a label look at what is left of them, and want no other such run at the time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Namespaces of runs of [`TRANSFER`] without a label that are there.
fn namespaces() -> Vec<String> {
    let names = ["a", "b"].map(|node| format!("lasthop-{}-{node}", std::process::id()));
    names.into_iter().filter(|name| Path::new("/run/netns").join(name).exists()).collect()
}

#[test]
fn a_run_that_is_cancelled_ends_at_once_and_leaves_nothing() {
    let _alone = alone();
    let scenario = scenario(&with(&[("\"2 s\"", "\"1000 s\""), ("1 MB", "1000 GB")]));
    let cancelled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| testbed::run(&scenario, 1, &cancelled));
        while !run.is_finished() && namespaces().len() < 2 {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_secs(1));
        cancelled.store(true, Ordering::Relaxed);
        match run.join().unwrap() {
            Err(Error::Cancelled) => {}
            Err(error @ Error::Forbidden(_)) => skip(&error),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(namespaces(), [""; 0]);
}

#[test]
fn a_run_whose_device_is_removed_ends_at_once_with_an_error() {
    let _alone = alone();
    let scenario = scenario(&with(&[("\"2 s\"", "\"1000 s\""), ("1 MB", "1000 GB")]));
    for device in ["link0", "host"] {
        std::thread::scope(|scope| {
            let run = scope.spawn(|| testbed::run(&scenario, 1, &AtomicBool::new(false)));
            while !run.is_finished() && namespaces().len() < 2 {
                std::thread::sleep(Duration::from_millis(10));
            }
            std::thread::sleep(Duration::from_secs(1));
            if let Some(node) = namespaces().pop() {
                let arguments = ["-n", &node, "link", "delete", device];
                assert!(Command::new("ip").args(arguments).status().unwrap().success());
            }
            match run.join().unwrap() {
                Err(Error::System(error)) => {
                    assert_eq!(error, format!("network device {device:?} was removed"));
                }
                Err(error @ Error::Forbidden(_)) => skip(&error),
                other => panic!("{other:?}"),
            }
        });
    }
    assert_eq!(namespaces(), [""; 0]);
}

#[test]
fn a_run_ends_when_its_flows_have_completed_and_its_rows_are_those_of_the_whole_duration() {
    let many = "{ size = \"10 kB\", arrivals = { flows = 3 }, count = 20 }";
    for (traffic, stack) in [
        ("{ size = \"1 MB\" }", "lasthop"),
        ("{ size = \"1 MB\" }", "linux"),
        (many, "lasthop"),
        (many, "linux"),
    ] {
        let text = with(&[
            ("\"2 s\"", "\"1000 s\""),
            ("{ size = \"1 MB\" }", traffic),
            ("\"lasthop\"", &format!("{stack:?}")),
        ]);
        let clock = live::Clock::start();
        let Some(outcome) = run_once(&text) else { return };
        assert!(clock.now() < Time::from_nanos(60_000_000_000));
        let row = &outcome.run.rows[0];
        let watch = lab::Watch::default();
        let lab = lab::run(&scenario(&text), 1, &watch, &AtomicBool::new(false)).unwrap();
        let lab = &lab.rows[0];
        assert!(row.completed_s.is_some_and(|time| time == row.duration_s), "{row:?}");
        assert_eq!(
            (row.payload_bytes, row.started, row.finished, row.failed),
            (lab.payload_bytes, lab.started, lab.finished, lab.failed)
        );
    }
}

#[test]
fn an_unknown_congestion_control_is_an_error_and_nothing_is_left() {
    let _alone = alone();
    let linux = "stack = { from = \"linux\", congestion = \"nonsense\" }";
    let scenario = scenario(&with(&[("stack   = \"lasthop\"", linux)]));
    match testbed::run(&scenario, 1, &AtomicBool::new(false)) {
        Err(Error::Setting { flow, what, .. }) => {
            assert_eq!((&*flow, &*what), ("flow 0", "the congestion control `nonsense`"));
        }
        Err(error @ Error::Forbidden(_)) => skip(&error),
        other => panic!("{other:?}"),
    }
    assert_eq!(namespaces(), [""; 0]);
}

#[test]
fn a_node_has_one_kernel_with_one_setting() {
    let _alone = alone();
    let flow = "[[flows]]\nfrom = \"a\"\nto = \"b\"\nstack = \"linux\"\n";
    let more = format!("{flow}tcp = {{ ecn = false }}\n{flow}tcp = {{ ecn = true }}\n[testbed]");
    let scenario = scenario(&with(&[("[testbed]", &more)]));
    match testbed::run(&scenario, 1, &AtomicBool::new(false)) {
        Err(error @ Error::Conflict { .. }) => assert_eq!(
            error.to_string(),
            "the kernel has one setting `ecn` for the whole of node `a`: expected the same in flows \
             `flow 1` and `flow 2`"
        ),
        Err(error @ Error::Forbidden(_)) => skip(&error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_machine_that_does_not_keep_up_makes_a_run_void() {
    // No machine is never late.
    let strict = "late = \"1 ns\"\nvoid_above = 0";
    let Some(outcome) = run_once(&with(&[("late = \"10 ms\"", strict)])) else { return };
    let health = outcome.health;
    assert!(health.late > 0 && health.late_share() > 0.0, "{health:?}");
    let why = health.void.expect("it was late");
    assert!(why.contains("->") && why.contains("late or lost beyond the model"), "{why}");
}

#[test]
fn counts_of_links_are_reported_as_in_the_lab() {
    let Some(outcome) = run(TRANSFER) else { return };
    let names: Vec<_> = outcome.run.links.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a->b", "b->a"]);
    let forward = outcome.run.links[0].1;
    assert!(forward.packets >= 687 && forward.bytes > 1_027_000, "{forward:?}");
    assert_eq!(outcome.run.events, outcome.health.packets);
    assert_eq!(outcome.health.lost, 0, "{:?}", outcome.health);
    assert_eq!(outcome.run.digest, None);
}
