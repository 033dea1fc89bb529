//! The path of every packet: recorded for every shipped scenario and for a hundred random ones.
//!
//! `recorded.txt` has a digest a run. A change that is not meant to change any packet leaves it as
//! it is. One that is meant to says so in its commit: `LASTHOP_RECORD=1 cargo test -p lasthop-lab --test it
//! digests` writes the file anew.

mod random;

use crate::common;
use lab::Watch;
use scenario::{Experiment, Source, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Random scenarios.
const RANDOM: u64 = 120;
/// Points of a sweep that are run, at most: the first, the last, and some between.
const POINTS: u64 = 5;

/// What runs, by name: a scenario at a point of its sweep.
fn runs() -> BTreeMap<String, scenario::Scenario> {
    let mut runs = BTreeMap::new();
    for (name, text) in common::shipped() {
        let mut source = Source::new(text, name.clone());
        source.put("duration", &Value::String("20 s".to_owned())).unwrap();
        let experiment = Experiment::read(&source).unwrap();
        for point in common::spread(experiment.points(), POINTS) {
            let scenario = experiment.scenario_at(point).unwrap();
            runs.insert(format!("{name} {point}"), scenario);
        }
    }
    for number in 0..RANDOM {
        let text = random::scenario(number);
        runs.insert(format!("random {number:03}"), common::scenario(&text));
    }
    runs
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/digests/recorded.txt")
}

/// A line for every run: the digest, the bytes delivered, and its name.
fn record(watch: &Watch) -> String {
    let mut lines = String::new();
    for (name, scenario) in runs() {
        let outcome = lab::run(&scenario, 1, watch, &AtomicBool::new(false)).unwrap();
        let bytes: u64 = outcome.rows.iter().map(|row| row.payload_bytes).sum();
        let digest = outcome.digest.unwrap().0;
        writeln!(lines, "{digest:016x} {bytes:>10} {name}").unwrap();
    }
    lines
}

#[test]
fn every_packet_goes_as_recorded() {
    let now = record(&Watch { digest: true, ..Watch::default() });
    if std::env::var_os("LASTHOP_RECORD").is_some() {
        std::fs::write(recorded(), &now).unwrap();
    }
    assert_recorded(&now);
}

#[test]
fn the_fast_path_decides_nothing_of_its_own() {
    assert_recorded(&record(&Watch { digest: true, general_path: true, ..Watch::default() }));
}

fn assert_recorded(now: &str) {
    let recorded = std::fs::read_to_string(recorded()).unwrap();
    let differ: Vec<_> = now.lines().zip(recorded.lines()).filter(|(a, b)| a != b).collect();
    assert!(differ.is_empty(), "(now, recorded): {differ:#?}");
    assert_eq!(now.lines().count(), recorded.lines().count(), "runs");
}
