//! What the tests of scenarios share, also those that run them: small scenarios, and ways to change
//! and read them.
#![allow(dead_code)] // Every test program uses a part.

use scenario::{Experiment, Scenario, ScenarioError, Source};
use std::collections::BTreeMap;
use std::path::Path;

/// One flow over one long link. Every key that it has can be replaced by a test.
pub(crate) const LONG_LINK: &str = r#"title    = "one long link"
profile  = "ns2-2001"
duration = "60 s"
[nodes]
a = {}
b = {}
[[links]]
between = ["a", "b"]
rate    = "1.5 Mbit/s"
delay   = "100 ms"
queue   = "50 packets"
errors  = { bit = 1e-5 }
[[flows]]
from    = "a"
to      = "b"
tcp     = { recovery = "sack", receive_window = "20 segments", eten = "none" }
"#;

/// [`LONG_LINK`] with some of its text replaced. Every text must be there.
pub(crate) fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(LONG_LINK.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "no {old:?} in the scenario");
        text.replacen(old, new, 1)
    })
}

/// One flow over a chain of this many links.
pub(crate) fn chain(links: usize) -> String {
    let mut text = "title = \"a chain\"\nduration = \"1 s\"\n[nodes]\n".to_owned();
    for node in 0..=links {
        text += &format!("n{node} = {{}}\n");
    }
    for link in 0..links {
        let next = link + 1;
        text += &format!("[[links]]\nbetween = [\"n{link}\", \"n{next}\"]\n");
        text += "rate = \"1 Gbit/s\"\ndelay = \"0 s\"\n";
    }
    text + &format!("[[flows]]\nfrom = \"n0\"\nto = \"n{links}\"\n")
}

/// The error of a scenario or of any point of its sweep.
pub(crate) fn error(text: &str) -> ScenarioError {
    let source = Source::new(text, "case.toml");
    let checked = Experiment::read(&source).and_then(|experiment| {
        experiment.scenario()?;
        (0..experiment.points()).try_for_each(|point| experiment.scenario_at(point).map(|_| ()))
    });
    checked.expect_err("this scenario should not be accepted")
}

/// Checks the error after one change of the scenario, and that it points at `marked`.
pub(crate) fn rejects(change: (&str, &str), marked: &str, message: &str) {
    let text = with(&[change]);
    let error = error(&text);
    let report = error.render(scenario::Style::Plain);
    assert_eq!(error.to_string(), message, "\n{report}");
    let before = &text[..text.find(marked).expect("what is marked is in the scenario")];
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    assert!(
        report.contains(&format!("╭▸ case.toml:{line}:{column}\n")),
        "not {marked:?}:\n{report}"
    );
}

pub(crate) fn scenario(text: &str) -> Scenario {
    let source = Source::new(text, "case.toml");
    let scenario = Experiment::read(&source).and_then(|experiment| experiment.scenario());
    scenario.unwrap_or_else(|error| panic!("{}", error.render(scenario::Style::Plain)))
}

/// The text of every shipped scenario, by its name: the path below `scenarios` without its end.
pub(crate) fn shipped() -> BTreeMap<String, String> {
    fn read(root: &Path, folder: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is = |end: &str| path.to_string_lossy().ends_with(end);
            if path.is_dir() {
                read(root, &path, found);
            } else if is(".toml") && !is("/published.toml") {
                let name = path.strip_prefix(root).unwrap().with_extension("");
                found.insert(name.display().to_string(), std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut found = BTreeMap::new();
    read(&root, &root, &mut found);
    found
}
