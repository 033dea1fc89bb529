//! What a scenario file says: one scenario, or one for every point of its sweep.

use crate::document::{Document, Node, plain, shifted};
use crate::error::{Finding, Problem, ScenarioError};
use crate::grid::{Grid, Key, text};
use crate::path::Path;
use crate::scenario::Scenario;
use crate::shape::Told as _;
use crate::source::{Override, Source};
use crate::table::Column;
use toml::Value;
use toml::de::DeValue;

/// A scenario file that was read, with its sweep.
///
/// What is put in from outside replaces what the file says. A swept key that is put in keeps its
/// column, with the one value in every row. A whole `sweep` that is put in replaces the file's, and
/// what was put in before it stays out of it.
#[derive(Clone, Debug)]
pub struct Experiment<'s> {
    /// Without `[sweep]`.
    base: Document<'s>,
    grid: Grid<'s>,
    points: u64,
}

impl<'s> Experiment<'s> {
    /// No more runs than this: more is a slip of the pen.
    pub const MOST_RUNS: u64 = 10_000_000;

    /// Reads a file. Neither the scenario nor any point of the sweep is looked at yet.
    ///
    /// # Errors
    /// If it is no TOML, if something cannot be put where it is to go, or if the sweep makes no
    /// sense.
    pub fn read(source: &'s Source) -> Result<Experiment<'s>, ScenarioError> {
        let mut document = Document::parse(source)?;
        let mut problems = Vec::new();
        let mut values = Vec::with_capacity(source.overrides().len());
        for addition in source.overrides() {
            let put = value(source, addition).and_then(|value| {
                document.put(&addition.path, &addition.key, &value).map(|()| value)
            });
            values.extend(put.told(&mut problems).map(|value| (addition, value)));
        }
        let (grid, points) = grid(&document, &values, &mut problems);
        let mut base = document.clone();
        base.remove("sweep");
        if problems.is_empty() {
            return Ok(Experiment { base, grid, points });
        }
        // What else is wrong is told at once; what is swept is there, with its first value.
        let mut findings = document.findings(problems);
        let mut problems = Vec::new();
        for (key, value) in grid.values(0) {
            base.put(&key.path, &key.span, value).told(&mut problems);
        }
        problems.extend(Scenario::read(&base).err().unwrap_or_default());
        findings.extend(base.findings(problems));
        Err(ScenarioError::new(findings))
    }

    /// The scenario as it stands in the file, its sweep apart.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        Scenario::read(&self.base)
            .map_err(|problems| ScenarioError::new(self.base.findings(problems)))
    }

    /// The same to be run on real packets.
    ///
    /// # Errors
    /// If it cannot be run, or only in the lab.
    pub fn testbed_scenario(&self) -> Result<Scenario, ScenarioError> {
        let scenario = self.scenario()?;
        let problems = scenario.unreal(&self.base);
        if problems.is_empty() {
            return Ok(scenario);
        }
        Err(ScenarioError::new(self.base.findings(problems)))
    }

    /// Everything as one table: that of a file that needs nothing put in.
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

    /// How many points the sweep has; 1 without one.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.points
    }

    /// How often every point is run, with seeds from 1 on; 1 unless the file says more.
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
            document.put(&key.path, &key.span, value).told(&mut problems);
        }
        match Scenario::read(&document) {
            Ok(scenario) if problems.is_empty() => return Ok(scenario),
            read => problems.extend(read.err().unwrap_or_default()),
        }
        // Not the sweep's fault if the scenario has it by itself.
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

    /// Makes sure that `seeds` runs of every point are not too many.
    ///
    /// # Errors
    /// If they are, or if there are none.
    pub fn check_runs(&self, seeds: u64) -> Result<u64, ScenarioError> {
        runs(&self.grid, self.points, seeds)
            .map_err(|problem| ScenarioError::new(self.base.findings(vec![problem])))
    }

    /// The swept keys as columns, one value for each of `points`.
    pub(crate) fn columns(&self, points: &[u64]) -> Vec<(String, Column)> {
        let rows: Vec<_> = points.iter().map(|&point| self.grid.values(point)).collect();
        let keys = self.grid.keys().enumerate();
        keys.map(|(index, key)| {
            let values = rows.iter().map(|row| row[index].1);
            (key.name.clone(), key.column(self.base.source(), values))
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

/// A value that is put in from outside, as a tree.
fn value<'s>(source: &'s Source, addition: &Override) -> Result<Node<'s>, Problem> {
    let text = source.text(&addition.value).unwrap_or_default();
    match DeValue::parse(text) {
        Ok(node) => Ok(shifted(node, addition.value.start)),
        Err(error) => {
            let message = format!("not a value of TOML: {}", error.message());
            Err(Problem::at(addition.value.clone(), message))
        }
    }
}

/// The grid, with what was put in from outside pinned, and the number of its points.
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
                    .help("put in the very key that is swept: it then has that one value"),
            );
        }
        grid.pin(&addition.path, value, document.source());
    }
    let points = grid.points().unwrap_or(u64::MAX);
    runs(&grid, points, grid.seeds.unwrap_or(1)).told(problems);
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
