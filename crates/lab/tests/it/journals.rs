//! A sweep that keeps a journal may end at any time, and goes on where it was.

use crate::common::with;
use lab::{Journal, JournalError, RunError, Seeds, SweepError};
use scenario::{Experiment, Source};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const ABOUT: &str = "a sweep";
const SEEDS: Seeds = Seeds { first: 1, count: 5 };

/// Two flows, one with a name that CSV must quote.
fn text() -> String {
    let second = "[[flows]]\nname = \"a \\\"b\\\",\\nc\"\nfrom = \"b\"\nto = \"a\"\n";
    with(&[("60 s", "2 s"), ("[[flows]]", &format!("{second}[[flows]]"))])
        + "[sweep]\n\"links.0.errors.bit\" = [0, 1e-5]\n\"flows.0.tcp.mss\" = [500, 600]\n"
}

/// A place for a file of this test alone.
fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

/// Goes on with the journal until `look` breaks.
fn record(
    path: &Path,
    about: &str,
    look: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), SweepError> {
    let source = Source::new(text(), "case.toml");
    let experiment = Experiment::read(&source).unwrap();
    let mut journal = Journal::open(path, about, &lab::columns(&experiment)).unwrap();
    lab::record(&experiment, SEEDS, 2, &mut journal, look)
}

fn whole(name: &str) -> Vec<u8> {
    let path = file(name);
    record(&path, ABOUT, |_, _| ControlFlow::Continue(())).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn a_journal_has_the_rows_of_the_sweep_in_their_order() {
    let journal = String::from_utf8(whole("rows")).unwrap();
    let mut lines = journal.lines();
    assert_eq!(lines.next(), Some(ABOUT));
    let head = "run,\"links.0.errors.bit\",\"flows.0.tcp.mss\",\"seed\",\"flow\",\"from\",\"to\"";
    assert!(lines.next().is_some_and(|line| line.starts_with(head)));
    let rows: Vec<&str> = lines.collect();
    // Four points, five seeds, two flows, and a line break in the name of one.
    assert_eq!(rows.len(), 4 * 5 * (2 + 1));
    let first = ["0,0.0,500,1,\"a \"\"b\"\",", "c\",\"b\",\"a\",2.0,", "0,0.0,500,1,\"flow 1\","];
    for (row, start) in rows.iter().zip(first) {
        assert!(row.starts_with(start), "{row}");
    }
    let table = crate::common::sweep(&text().replace("[sweep]", "[sweep]\nseeds = 5"), 1);
    let goodput: Vec<String> =
        crate::common::floats(&table, "goodput_bps").iter().map(|bps| format!("{bps:?}")).collect();
    assert!(goodput.iter().all(|bps| journal.contains(&format!(",{bps},"))));
}

#[test]
fn wherever_it_was_cut_it_ends_up_the_same() {
    let whole = whole("whole");
    let path = file("cut");
    for len in (0..=whole.len()).step_by(whole.len() / 40) {
        fs::write(&path, &whole[..len]).unwrap();
        record(&path, ABOUT, |_, _| ControlFlow::Continue(())).unwrap();
        assert!(fs::read(&path).unwrap() == whole, "cut at {len}");
    }
}

#[test]
fn parts_put_together_are_the_journal() {
    let source = Source::new(text(), "case.toml");
    let experiment = Experiment::read(&source).unwrap();
    let part =
        |runs| lab::part(&experiment, SEEDS, 1, runs, |_, _| ControlFlow::Continue(())).unwrap();
    let parts = [part(0..1), part(1..7), part(7..7), part(7..19), part(19..1000)].concat();
    assert!(!part(7..19).is_empty());
    let whole = whole("parts");
    let mut lines = whole.splitn(3, |&byte| byte == b'\n');
    assert!(lines.nth(2) == Some(&parts[..]));
}

#[test]
fn a_sweep_that_is_cancelled_keeps_what_is_finished_and_goes_on() {
    let whole = whole("reference");
    let path = file("cancelled");
    let mut sittings = 0;
    loop {
        let mut from = None;
        let look = |done: u64, all: u64| {
            assert_eq!(all, 20);
            match done > *from.get_or_insert(done) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let result = record(&path, ABOUT, look);
        assert!(whole.starts_with(&fs::read(&path).unwrap()));
        sittings += 1;
        match result {
            Err(SweepError::Run(RunError::Cancelled)) => {}
            other => break other.unwrap(),
        }
        assert!(sittings < 100);
    }
    assert!(fs::read(&path).unwrap() == whole);
}

#[test]
fn what_is_about_something_else_is_left_alone() {
    let source = Source::new(text(), "case.toml");
    let experiment = Experiment::read(&source).unwrap();
    let path = file("other");
    for content in ["another sweep\n", "a sweep\nrun,\"seed\"\n0,1\n", "\u{0}"] {
        fs::write(&path, content).unwrap();
        let opened = Journal::open(&path, ABOUT, &lab::columns(&experiment));
        assert!(matches!(opened, Err(JournalError::Other { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let nowhere = Journal::open(Path::new("/no/such/folder/x"), ABOUT, &lab::columns(&experiment));
    assert!(matches!(nowhere, Err(JournalError::File { .. })));
}
