//! A scenario file with its sweep: one scenario for every point.

use crate::grid::{Grid, Key, SweptValues, text};
use crate::latency::Latency;
use crate::reading::document::{Document, Node, plain, value};
use crate::reading::error::{Finding, Problem, ScenarioError};
use crate::reading::path::Path;
use crate::reading::shape::OrReport as _;
use crate::reading::source::{Override, Source};
use crate::scenario::Scenario;
use toml::Value;

/// A scenario file that was read, with its sweep.
///
/// An override replaces the file's value. A swept key that is overridden keeps its column, with the one
/// value in every row. An override of the whole `sweep` replaces the file's, and overrides before it do
/// not change it.
#[derive(Clone, Debug)]
pub struct Experiment<'s> {
    /// Without `[sweep]`.
    base: Document<'s>,
    grid: Grid<'s>,
    points: u64,
}

impl<'s> Experiment<'s> {
    /// The largest number of runs; more is taken for a typing error.
    pub const MOST_RUNS: u64 = 10_000_000;

    /// Reads a file. Neither the scenario nor any point of the sweep is checked yet.
    ///
    /// # Errors
    /// If it is not TOML, if an override has no place in it, or if the sweep is invalid.
    pub fn read(source: &'s Source) -> Result<Experiment<'s>, ScenarioError> {
        let mut document = Document::parse(source)?;
        let mut problems = Vec::new();
        let mut values = Vec::with_capacity(source.overrides().len());
        for addition in source.overrides() {
            let put = value(source, addition).and_then(|value| {
                document.put(&addition.path, &addition.key, &value).map(|()| value)
            });
            values.extend(put.or_report(&mut problems).map(|value| (addition, value)));
        }
        let (grid, points) = grid(&document, &values, &mut problems);
        let mut base = document.clone();
        base.remove("sweep");
        if problems.is_empty() {
            return Ok(Experiment { base, grid, points });
        }
        // Other problems are reported at once; swept keys have their first value.
        let mut findings = document.findings(problems);
        let mut problems = Vec::new();
        for (key, value) in grid.values(0) {
            base.put(&key.path, &key.span, value).or_report(&mut problems);
        }
        problems.extend(Scenario::read(&base).err().unwrap_or_default());
        findings.extend(base.findings(problems));
        Err(ScenarioError::new(findings))
    }

    /// The scenario of the file without its sweep.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        Scenario::read(&self.base)
            .map_err(|problems| ScenarioError::new(self.base.findings(problems)))
    }

    /// The same, to be run on the testbed.
    ///
    /// # Errors
    /// If it cannot be run, or in the lab only.
    pub fn testbed_scenario(&self) -> Result<Scenario, ScenarioError> {
        let scenario = self.scenario()?;
        let problems = scenario.refusals(&self.base);
        if problems.is_empty() {
            return Ok(scenario.on_real_packets());
        }
        Err(ScenarioError::new(self.base.findings(problems)))
    }

    /// The file and its overrides as one table.
    ///
    /// # Errors
    /// If a value cannot be held, such as an integer of more than 64 bits.
    pub fn document(&self) -> Result<Value, ScenarioError> {
        let fill = || {
            let mut document = plain(self.base.root())?;
            let sweep = self.grid.document()?;
            if let Value::Table(table) = &mut document
                && !sweep.is_empty()
            {
                table.insert("sweep".to_owned(), Value::Table(sweep));
            }
            Ok(document)
        };
        fill().map_err(|error: toml::de::Error| {
            let (span, message) = (error.span(), error.message().to_owned());
            let problem = Problem { span, message, ..Problem::default() };
            ScenarioError::new(self.base.findings(vec![problem]))
        })
    }

    /// The number of points of the sweep; 1 without one.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.points
    }

    /// The number of runs of every point, with seeds 1, 2, 3, ...; 1 unless the file sets more.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.grid.seeds.unwrap_or(1)
    }

    /// The scenario at a point of the sweep, 0 to [`Experiment::points`].
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn scenario_at(&self, point: u64) -> Result<Scenario, ScenarioError> {
        let values = self.grid.values(point);
        let mut document = self.base.clone();
        let mut problems = Vec::new();
        for (key, value) in &values {
            document.put(&key.path, &key.span, value).or_report(&mut problems);
        }
        match Scenario::read(&document) {
            Ok(scenario) if problems.is_empty() => return Ok(scenario),
            read => problems.extend(read.err().unwrap_or_default()),
        }
        // A problem that the scenario has without the sweep is not one of the point.
        let own = self.scenario().map_or_else(ScenarioError::into_findings, |_| Vec::new());
        let place = self.describe(&values);
        let blame = |finding: Finding| match &place {
            Some(place) if !own.iter().any(|own| own.same_as(&finding)) => {
                finding.with_help(&format!("at the point of the sweep where {place}"))
            }
            _ => finding,
        };
        let findings = document.findings(problems).into_iter().map(blame).collect();
        Err(ScenarioError::new(findings))
    }

    /// Whether a point may have [`Latency::Distributions`].
    #[must_use]
    pub fn keeps_distributions(&self) -> bool {
        let asks = |node: &Node<'_>| node.get_ref().as_str() == Some(Latency::DISTRIBUTIONS);
        self.base.entry("latency").is_some_and(|(_, node)| asks(node))
            || self.grid.keys().any(|key| key.name == "latency" && key.values().any(asks))
    }

    /// The number of runs, `seeds` of every point.
    ///
    /// # Errors
    /// If there are none, or more than [`Experiment::MOST_RUNS`].
    pub fn check_runs(&self, seeds: u64) -> Result<u64, ScenarioError> {
        runs(&self.grid, self.points, seeds)
            .map_err(|problem| ScenarioError::new(self.base.findings(vec![problem])))
    }

    /// The swept keys, each with its value at each of `points`.
    #[must_use]
    pub fn swept(&self, points: &[u64]) -> Vec<(String, SweptValues)> {
        let rows: Vec<_> = points.iter().map(|&point| self.grid.values(point)).collect();
        let keys = self.grid.keys().enumerate();
        keys.map(|(index, key)| {
            let values = rows.iter().map(|row| row[index].1);
            (key.name.clone(), key.typed(self.base.source(), values))
        })
        .collect()
    }

    fn describe(&self, values: &[(&Key<'s>, &Node<'s>)]) -> Option<String> {
        let source = self.base.source();
        let parts: Vec<String> = values
            .iter()
            .map(|(key, value)| format!("{} = {}", key.name, text(source, value)))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// The grid, with overridden keys pinned, and the number of its points.
fn grid<'s>(
    document: &Document<'s>,
    values: &[(&Override, Node<'s>)],
    problems: &mut Vec<Problem>,
) -> (Grid<'s>, u64) {
    let mut grid = Grid::read(document, problems);
    let whole = values.iter().rposition(|(addition, _)| addition.path.to_string() == "sweep");
    for (addition, value) in values.iter().skip(whole.map_or(0, |index| index + 1)) {
        let hides = |path: &Path| path.covers(&addition.path) && !addition.path.covers(path);
        if let Some(key) = grid.keys().find(|key| hides(&key.path)) {
            let message =
                format!("`{}` has no effect: the sweep sets `{}`", addition.path, key.name);
            problems.push(
                Problem::at(addition.key.clone(), message)
                    .help("override the swept key itself: it then has that one value"),
            );
        }
        grid.pin(&addition.path, value, document.source());
    }
    let points = grid.points().unwrap_or(u64::MAX);
    runs(&grid, points, grid.seeds.unwrap_or(1)).or_report(problems);
    (grid, points)
}

fn runs(grid: &Grid<'_>, points: u64, seeds: u64) -> Result<u64, Problem> {
    let most = Experiment::MOST_RUNS;
    let problem =
        |message: String| Problem { span: grid.span.clone(), message, ..Problem::default() };
    match points.checked_mul(seeds) {
        Some(0) => Err(problem("expected at least 1 seed".to_owned())),
        Some(runs) if runs <= most => Ok(runs),
        _ => Err(problem(format!(
            "{points} points with {seeds} seeds each: expected at most {most} runs"
        ))),
    }
}
