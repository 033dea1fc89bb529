//! Requests of a page, and their answers.

use crate::run::{self, Ran};
use middlebox::Hop;
use scenario::{
    Experiment, ScenarioError, Setting, Source, Style, Value, box_remedies, queue_remedies,
    remedies,
};
use serde::{Deserialize, Serialize};

/// A scenario file, and settings that override its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// What reports call it.
    name: String,
    text: String,
    /// Dotted keys with their values, put in one after the other.
    settings: Vec<(String, Value)>,
}

/// What a page wants.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "want", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    /// A run, with its time series at so many equal steps.
    Run { file: File, seed: u64, frames: usize },
    /// The scenario with its settings in their places, as the text of a file.
    Document { file: File },
    /// The remedies for a flow over a bad hop, which is also the slowest link and most of the path.
    Remedies { hop: BadHop },
}

/// A hop that remedies are for; quantities are as in a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BadHop {
    /// The node behind it.
    neighbour: String,
    rate: String,
    delay: String,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Run(Box<Ran>),
    Document(String),
    Remedies(Vec<Remedy>),
    /// A report for people.
    Error(String),
}

#[derive(Serialize)]
struct Remedy {
    name: Option<&'static str>,
    /// In the order in which they are made: the place, the key there, and its value.
    settings: Vec<(&'static str, String, Value)>,
    needs: Vec<String>,
    buildable: bool,
    lead_s: f64,
}

/// Answers the JSON of a request with JSON. Mistakes are answered with `{"error": REPORT}`.
#[must_use]
pub fn answer(request: &str) -> String {
    let answer = serde_json::from_str(request)
        .map_err(|error| format!("not a request: {error}"))
        .and_then(fulfil)
        .unwrap_or_else(Answer::Error);
    // All keys of the maps in it are texts, and no number in it is without a form in JSON.
    serde_json::to_string(&answer).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}

fn fulfil(request: Request) -> Result<Answer, String> {
    match request {
        Request::Run { file, seed, frames } => {
            let source = source(file)?;
            let experiment = Experiment::read(&source).map_err(report)?;
            let scenario = experiment.scenario().map_err(report)?;
            run::run(&scenario, seed, frames).map(Box::new).map(Answer::Run)
        }
        Request::Document { file } => {
            let source = source(file)?;
            let experiment = Experiment::read(&source).map_err(report)?;
            let document = experiment.document().map_err(report)?;
            toml::to_string_pretty(&document).map(Answer::Document).map_err(|e| e.to_string())
        }
        Request::Remedies { hop } => {
            let BadHop { neighbour, rate, delay } = &hop;
            let (rate, delay) = (rate.parse().ok(), delay.parse().ok());
            let hop = Hop { neighbour, rate, delay, mtu: None, flow: None };
            let queues = rate.zip(delay).map(|(rate, delay)| queue_remedies(rate, delay * 2));
            let all = remedies().into_iter().chain(box_remedies(&hop));
            let all = all.chain(queues.into_iter().flatten());
            Ok(Answer::Remedies(all.map(remedy).collect()))
        }
    }
}

fn remedy(remedy: scenario::Remedy) -> Remedy {
    let setting = |Setting { place, key, value }| (place.name(), key, value);
    let needs = remedy.needs.iter_names();
    Remedy {
        name: remedy.name,
        settings: remedy.settings.into_iter().map(setting).collect(),
        needs: needs.map(|(name, _)| name.to_lowercase().replace('_', " ")).collect(),
        buildable: remedy.buildable,
        lead_s: remedy.lead.as_secs_f64(),
    }
}

fn source(file: File) -> Result<Source, String> {
    let mut source = Source::new(file.text, file.name);
    for (key, value) in &file.settings {
        source.put(key, value).map_err(report)?;
    }
    Ok(source)
}

fn report(error: ScenarioError) -> String {
    error.render(Style::Plain)
}
