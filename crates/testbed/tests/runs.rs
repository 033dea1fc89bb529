//! How runs begin and end on the testbed.
#![cfg(target_os = "linux")]

mod common;

use common::{TRANSFER, run, run_once, scenario, skip, with};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testbed::Error;

/// Tests that look at what is left want no other runs at the time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Namespaces of this process that are there.
fn namespaces() -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let ours = format!("lasthop-{}-", std::process::id());
    names.filter(|name| name.starts_with(&ours)).collect()
}

#[test]
fn a_run_that_is_cancelled_ends_at_once_and_leaves_nothing() {
    let _alone = alone();
    let scenario = scenario(&with(&[("\"2 s\"", "\"1000 s\"")]));
    let cancelled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| testbed::run(&scenario, 1, &cancelled));
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
    let _alone = alone();
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
    let _alone = alone();
    let Some(outcome) = run(TRANSFER) else { return };
    let names: Vec<_> = outcome.run.links.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a->b", "b->a"]);
    let forward = outcome.run.links[0].1;
    assert!(forward.packets >= 687 && forward.bytes > 1_027_000, "{forward:?}");
    assert_eq!(outcome.run.events, outcome.health.packets);
    assert_eq!(outcome.health.lost, 0, "{:?}", outcome.health);
    assert_eq!(outcome.run.digest, None);
}
