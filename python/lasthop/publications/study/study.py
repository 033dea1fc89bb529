"""A study: what is run, what is measured, and what comes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from lasthop import lab, terminal
from lasthop.publications import rows
from lasthop.publications.rows import Finding, Outcome, Row
from lasthop.publications.study import words
from lasthop.publications.study.published import Answer, Section, Test
from lasthop.publications.study.runs import Case, Cell, Collect, Observe, Runs, measure, observe
from lasthop.publications.study.verdict import Verdict
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: How verdicts look in a terminal; None: the publication only asks.
COLOURED: Mapping[Verdict | None, str] = {
    Verdict.HOLDS: "[green]holds[/]",
    Verdict.DIFFERS: "[red]differs[/]",
    Verdict.UNDECIDED: "[yellow]undecided[/]",
    None: "open",
}


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
class Drawn:
    """A picture of the runs."""

    caption: str
    draw: Callable[[Runs], Figure]
    #: Whether it has error bars.
    bars: bool = True


@dataclass(frozen=True, kw_only=True)
class Study:
    """An experiment of a publication, or of what goes beyond it."""

    publication: str
    #: Within the publication: "fig4.2", "beyond/fade".
    experiment: str
    title: str
    #: In our words, and where the publication has it or asks for it.
    asks: str
    where: str
    #: What is run, in some sentences.
    method: Sequence[str]
    cells: Callable[[], Sequence[Cell]]
    #: What is kept of a cell's rows, or of each of its runs: one of the two.
    collect: Collect | None = None
    observe: Observe | None = None
    measures: Sequence[Measure]
    figures: Sequence[Drawn]
    #: Words for the values of a case, by key: heads of the report's table.
    keys: Mapping[str, str]
    #: What the runs say to open questions.
    answers: Callable[[Runs], Sequence[Answer]] = lambda _: ()
    #: Of the published statements, by id.
    tests: Mapping[str, Test] | None = None
    #: Nothing in it is drawn at random: one run of a cell says everything.
    exact: bool = False
    #: Where a published number is undecided, its cells are run once more with as many seeds as
    #: would decide, if those are no more than this.
    most_seeds: int = 0
    #: What came of it in a sentence, for the publication's page; None: it has none.
    outcome: Callable[[Runs], str] | None = None

    @property
    def name(self) -> str:
        """As `lasthop reproduce` takes it."""
        return f"{self.publication}/{self.experiment}"

    @property
    def id(self) -> str:
        """Its own part of the name."""
        return self.experiment.rpartition("/")[2]

    @property
    def published(self) -> Section:
        """What there is to hold against the runs."""
        return Section.of(self.publication, self.experiment)

    def measure(
        self,
        *,
        seeds: int | None = None,
        quick: bool = False,
        threads: int = 0,
        progress: lab.Progress | None = None,
    ) -> Runs:
        """All runs."""
        cells = self.cells()
        if self.collect is not None:
            return measure(
                cells,
                self.collect,
                seeds=seeds,
                quick=quick,
                threads=threads,
                progress=progress,
            )
        if self.observe is None:
            raise ValueError(f"{self.name}: neither collect nor observe")
        return observe(
            cells,
            self.observe,
            seeds=seeds,
            quick=quick,
            threads=threads,
            progress=progress,
        )

    def decide(self, runs: Runs, *, threads: int = 0) -> Runs:
        """The runs, with more of those cells whose published numbers they leave undecided.

        Once, as many as the spread calls for: who looks after every run finds what was looked for.
        """
        more: dict[Case, int] = {}
        for case in runs:
            for what in self.measures:
                number = self.published.number(case, what.metric)
                if number is None or number.misprint:
                    continue
                value = what.of(runs, case)
                needs = number.of.needs(value)
                undecided = number.judge(runs, case, value, exact=self.exact) is Verdict.UNDECIDED
                if undecided and needs is not None and needs <= self.most_seeds:
                    more[case] = max(needs, more.get(case, 0))
        for case, seeds in more.items():
            cells = [cell for cell in self.cells() if cell.case == case]
            again = replace(self, cells=lambda cells=cells: cells)  # type: ignore[misc]
            runs = runs.joined(again.measure(seeds=seeds, threads=threads))
        return runs

    def judge(self, runs: Runs) -> list[Answer]:
        """What comes of the runs: published statements, then open questions."""
        stated = self.published.answers(self.tests or {}, runs)
        return [*stated, *self.answers(runs)]

    def rows(self, runs: Runs, answers: Sequence[Answer]) -> list[Row | Finding]:
        """As results.json has them."""
        found = [self._finding(answer, runs.seeds) for answer in answers]
        return [*found, *self._measurements(runs)]

    def write(self, folder: Path, runs: Runs) -> Sequence[Answer]:
        """Writes the results and the report; returns what comes of the runs."""
        from lasthop.publications.study import page

        answers = self.judge(runs)
        rows.write(folder / "results.json", self.rows(runs, answers))
        page.write(folder / "report.html", self, runs, answers)
        return answers

    def reproduce(
        self, folder: Path, *, seeds: int | None, quick: bool, threads: int
    ) -> Outcome | None:
        """Runs everything and writes what came of it."""
        with terminal.progress(self.name) as progress:
            runs = self.measure(seeds=seeds, quick=quick, threads=threads, progress=progress)
            if seeds is None and not quick:
                runs = self.decide(runs, threads=threads)
        answers = self.write(folder, runs)
        shown = terminal.table(f"{self.name}: {self.title}")
        shown.add_column("statement or question", ratio=2)
        shown.add_column("measured", ratio=3)
        shown.add_column("published", justify="right")
        shown.add_column("factor", justify="right")
        shown.add_column("verdict")
        for answer in answers:
            shown.add_row(
                escape(answer.claim),
                escape(answer.why),
                "" if answer.published is None else f"{answer.published:g}",
                "" if answer.factor is None else words.number(answer.factor.value),
                COLOURED[answer.verdict],
            )
        terminal.out().print(shown)
        terminal.written(folder / "results.json", "all values")
        terminal.written(folder / "report.html", "report")
        if self.outcome is None:
            return None
        line = self.outcome(runs)
        return Outcome(self.id, self.title, self.where, line, self.rows(runs, answers))

    def _finding(self, answer: Answer, runs: int) -> Finding:
        return Finding(
            publication=self.publication,
            experiment=self.experiment,
            id=answer.id,
            claim=answer.claim,
            where=answer.where,
            case=answer.case,
            verdict=answer.verdict,
            why=answer.why,
            runs=runs,
            published=answer.published,
            measured=answer.measured,
            contradicts=answer.contradicts,
            unit=answer.unit,
        )

    def _measurements(self, runs: Runs) -> list[Row]:
        found = []
        published = self.published
        for case in runs:
            for what in self.measures:
                value = what.of(runs, case)
                # A quantile that is not reached is no number.
                if value is not None and math.isfinite(value.value + value.lo + value.hi):
                    number = published.number(case, what.metric)
                    found.append(
                        Row(
                            self.publication,
                            self.experiment,
                            dict(case),
                            what.metric,
                            what.unit,
                            value,
                            None if number is None else number.value,
                            None
                            if number is None or number.misprint
                            else number.judge(runs, case, value, exact=self.exact),
                        )
                    )
        return found


# --- Measures --------------------------------------------------------------------------------


def mean(
    metric: str, unit: str, words: str, scale: float = 1.0, name: str | None = None
) -> Measure:
    """The mean over the runs."""
    return Measure(name or metric, unit, words, lambda runs, case: runs.mean(case, metric), scale)


def quantile(metric: str, share: float, name: str, words: str) -> Measure:
    """A quantile over the runs, in seconds."""
    return Measure(name, "s", words, lambda runs, case: runs.quantile(case, metric, share))
