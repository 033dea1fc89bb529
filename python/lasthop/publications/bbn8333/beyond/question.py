"""An open question of the report: what is run for it, what is measured, and what comes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from lasthop import lab, terminal
from lasthop.publications import rows
from lasthop.publications.bbn8333.beyond.runs import Case, Cell, Collect, Runs, measure
from lasthop.publications.bbn8333.findings import interval
from lasthop.publications.rows import Row
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLICATION = "bbn8333"
NONE = "none"


@dataclass(frozen=True)
class Measure:
    """What is measured of a case: a row of results.json, and a column of the report."""

    metric: str
    unit: str
    #: As in "goodput, kb/s".
    words: str
    of: Callable[[Runs, Case], Estimate | None]
    #: What to divide it by in the report.
    scale: float = 1.0


@dataclass(frozen=True)
class Answer:
    """What the runs say to a statement or an open question."""

    claim: str
    #: Where the report says or asks so.
    where: str
    #: None: the report only asks.
    agrees: bool | None
    #: The measured outcome.
    why: str
    case: Case = field(default_factory=Case)
    measured: Estimate | None = None


@dataclass(frozen=True)
class Question:
    """An experiment."""

    id: str
    title: str
    #: In our words, and where the report asks it.
    asks: str
    where: str
    #: What is run, in some sentences.
    method: Sequence[str]
    cells: Callable[[], Sequence[Cell]]
    collect: Collect
    measures: Sequence[Measure]
    figure: Callable[[Runs], Figure]
    caption: str
    answers: Callable[[Runs], Sequence[Answer]]
    #: Words for the values of a case, by key: heads of the report's table.
    keys: Mapping[str, str]

    @property
    def experiment(self) -> str:
        """As rows have it."""
        return f"beyond/{self.id}"

    def measure(
        self,
        *,
        seeds: int | None = None,
        quick: bool = False,
        threads: int = 0,
        progress: lab.Progress | None = None,
    ) -> Runs:
        """All runs."""
        return measure(
            self.cells(),
            self.collect,
            seeds=seeds,
            quick=quick,
            threads=threads,
            progress=progress,
        )

    def write(self, folder: Path, runs: Runs) -> Sequence[Answer]:
        """Writes the results and the report; returns what comes of the runs."""
        from lasthop.publications.bbn8333.beyond import page

        answers = self.answers(runs)
        found = [Found(self.experiment, answer, runs.seeds) for answer in answers]
        rows.write(folder / "results.json", [*found, *self._measurements(runs)])
        page.write(folder / "report.html", self, runs, answers)
        return answers

    def reproduce(self, folder: Path, *, seeds: int | None, quick: bool, threads: int) -> None:
        """Runs everything and writes what came of it."""
        name = f"{PUBLICATION}/{self.experiment}"
        with terminal.progress(name) as progress:
            runs = self.measure(seeds=seeds, quick=quick, threads=threads, progress=progress)
        answers = self.write(folder, runs)
        shown = terminal.table(f"{name}: {self.title}")
        shown.add_column("statement or question", ratio=2)
        shown.add_column("measured", ratio=3)
        shown.add_column("holds")
        for answer in answers:
            shown.add_row(escape(answer.claim), escape(answer.why), _VERDICTS[answer.agrees])
        terminal.out().print(shown)
        terminal.written(folder / "results.json", "all values")
        terminal.written(folder / "report.html", "report")

    def _measurements(self, runs: Runs) -> list[Row]:
        found = []
        for case in runs:
            for what in self.measures:
                value = what.of(runs, case)
                # A quantile that is not reached is no number.
                if value is not None and math.isfinite(value.value + value.lo + value.hi):
                    found.append(
                        Row(
                            PUBLICATION,
                            self.experiment,
                            dict(case),
                            what.metric,
                            what.unit,
                            value,
                        )
                    )
        return found


_VERDICTS = {True: "[green]yes[/]", False: "[red]no[/]", None: "open"}


@dataclass(frozen=True)
class Found:
    """An answer as a row of results.json."""

    experiment: str
    answer: Answer
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """The row."""
        answer, measured = self.answer, self.answer.measured
        return {
            "publication": PUBLICATION,
            "experiment": self.experiment,
            "case": dict(answer.case),
            "metric": "finding",
            "unit": None if measured is None else "1",
            "published": None,
            "measured": None if measured is None else measured.value,
            "ci95": None if measured is None else [measured.lo, measured.hi],
            "runs": self.runs,
            "claim": answer.claim,
            "where": answer.where,
            "agrees": answer.agrees,
            "why": answer.why,
        }


# --- Measures --------------------------------------------------------------------------------


def mean(
    metric: str, unit: str, words: str, scale: float = 1.0, name: str | None = None
) -> Measure:
    """The mean over the runs."""
    return Measure(name or metric, unit, words, lambda runs, case: runs.mean(case, metric), scale)


def gain(metric: str, words: str) -> Measure:
    """The mean with notification over the mean without."""

    def of(runs: Runs, case: Case) -> Estimate | None:
        plain = case.but(eten=NONE)
        return None if plain == case else runs.ratio(case, plain, metric)

    return Measure("ratio", "1", words, of)


def quantile(metric: str, share: float, name: str, words: str) -> Measure:
    """A quantile over the runs, in seconds."""
    return Measure(name, "s", words, lambda runs, case: runs.quantile(case, metric, share))


def told(estimate: Estimate | None) -> str:
    """A number with its interval, for sentences."""
    return "not reached" if estimate is None else interval(estimate)
