//! One run of a scenario file as `lasthop run` does it, without Python: for callgrind and profilers.
//!
//! Prints a line of JSON: the payload delivered, in bytes, the digest, and the share of segments that
//! took the fast path.

use lab::Watch;
use scenario::{Experiment, Source, Style};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("run FILE");
        return ExitCode::FAILURE;
    };
    match run(&path) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &str) -> Result<serde_json::Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let source = Source::new(&text, path);
    let scenario = Experiment::read(&source).and_then(|experiment| experiment.scenario());
    let scenario = scenario.map_err(|error| error.render(Style::Plain))?;
    let watch = Watch { digest: true, ..Watch::default() };
    let outcome = lab::run(&scenario, 1, &watch, &AtomicBool::new(false));
    let outcome = outcome.map_err(|error| format!("{error:?}"))?;
    Ok(serde_json::json!({
        "payload_bytes": outcome.rows.iter().map(|row| row.payload_bytes).sum::<u64>(),
        "retransmissions": outcome.rows.iter().filter_map(|row| row.sender.retransmissions).sum::<u64>(),
        "digest": outcome.digest.map(|digest| format!("{:016x}", digest.0)),
        "fast_path_share": outcome.paths.and_then(|paths| paths.fast_share()),
    }))
}
