"""A study: its cells, its measures, and how its runs are judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lasthop.publications.rows import Finding, Row
from lasthop.publications.study import factors
from lasthop.publications.study.factors import Factors, Moved
from lasthop.publications.study.kept import Kept
from lasthop.publications.study.published import Answer, Number, Section, Test, judged_value
from lasthop.publications.study.runs import (
    Case,
    Cell,
    Collect,
    Job,
    Observe,
    Runs,
    Values,
    jobs,
    measure,
    observe,
)
from lasthop.publications.study.verdict import Judgement, Verdict
from lasthop.publications.study.words import number, phrase
from lasthop.results import Progress
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Measure:
    """A quantity measured for each case: a row of results.json, and a column of the report."""

    metric: str
    unit: str
    #: As in "goodput, kb/s".
    words: str
    of: Callable[[Runs, Case], Estimate | None]
    #: What to divide it by in the report.
    scale: float = 1.0
    #: The range of single runs, if it is known.
    single: Callable[[Runs, Case], tuple[float, float] | None] = lambda runs, case: None

    def judge(self, of: Number, runs: Runs, case: Case, *, exact: bool = False) -> Verdict:
        """Whether the runs of a case meet a published number."""
        return of.of.judge(self.of(runs, case), self.single(runs, case), exact=exact)


@dataclass(frozen=True)
class Drawn:
    """A figure of the report."""

    caption: str
    #: None if there are no runs to show: not all are run with --quick.
    draw: Callable[[Runs], Figure | None]
    #: Whether it has error bars.
    bars: bool = True
    #: Whether the report shows it only on request.
    folded: bool = False


@dataclass(frozen=True)
class Listed:
    """An additional table of the report."""

    title: str
    about: str
    head: Sequence[str]
    rows: Callable[[Runs], Sequence[Sequence[str]]]


@dataclass(frozen=True, kw_only=True)
class Study:
    """An experiment of a publication, or a question that the publication leaves open."""

    publication: str
    #: Within the publication: "fig4.2", "beyond/fade".
    experiment: str
    title: str
    #: Other figures that its runs are for, as in "fig4.3": names of it, too.
    also: Sequence[str] = ()
    #: In our words, and where the publication has it or asks for it.
    asks: str
    where: str
    #: A description of the runs, one sentence or more per item.
    method: Sequence[str]
    cells: Callable[[], Sequence[Cell]]
    #: Collects values from a cell's rows, or from each of its runs: one of the two.
    collect: Collect | None = None
    observe: Observe | None = None
    measures: Sequence[Measure]
    figures: Sequence[Drawn]
    lists: Sequence[Listed] = ()
    #: Words for the keys of a case: heads of the report's table.
    keys: Mapping[str, str]
    #: Formats the values of a key.
    words: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    #: Answers to open questions.
    answers: Callable[[Runs], Sequence[Answer]] = lambda _: ()
    #: Tests of the published statements by id; a statement of one number needs none.
    tests: Mapping[str, Test] = field(default_factory=dict)
    #: Keys and values of the cases that statements are about.
    about: Mapping[str, Any] = field(default_factory=dict)
    #: Factors that are changed, to explain statements that differ.
    factors: Factors | None = None
    #: Whether nothing is random, so that one run of a cell suffices.
    exact: bool = False
    #: Where a published number is undecided, its cells are run once more with as many seeds as
    #: would decide, if those are no more than this.
    most_seeds: int = 0
    #: The outcome in one sentence, for the publication's page; None: the page omits the study.
    outcome: Callable[[Runs], str] | None = None

    @property
    def name(self) -> str:
        """The argument of `lasthop reproduce`."""
        return f"{self.publication}/{self.experiment}"

    @property
    def id(self) -> str:
        """The last part of the name."""
        return self.experiment.rpartition("/")[2]

    @property
    def published(self) -> Section:
        """The published numbers and statements of this experiment."""
        return Section.of(self.publication, self.experiment)

    # --- Runs --------------------------------------------------------------------------------

    def measure(
        self,
        *,
        seeds: int | None = None,
        quick: bool = False,
        threads: int = 0,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> Runs:
        """Runs everything; with `quick` fewer cells and runs, and no factor is changed.

        Finished runs are added to `kept`, and those that it has are not run again.
        """
        parts = {"": jobs(self.cells(), seeds, quick)}
        if self.factors is not None and not quick:
            for factor in (*self.factors.tried, *self.factors.pairs):
                cells = self.factors.cells(factor)
                parts[factor.id] = [
                    (cell, min(runs, factors.SEEDS)) for cell, runs in jobs(cells, seeds, quick)
                ]
        wanted = [job for part in parts.values() for job in part]
        values = iter(self._values(wanted, threads, progress, kept))
        found = {
            id: Runs({cell.case: next(values) for cell, _ in part}) for id, part in parts.items()
        }
        return Runs(found.pop("").found, found)

    def _values(
        self, wanted: Sequence[Job], threads: int, progress: Progress | None, kept: Kept | None
    ) -> list[Values]:
        if self.collect is not None:
            return measure(wanted, self.collect, threads=threads, progress=progress, kept=kept)
        if self.observe is None:
            raise ValueError(f"{self.name}: neither collect nor observe")
        return observe(wanted, self.observe, threads=threads, progress=progress, kept=kept)

    def decide(self, runs: Runs, *, threads: int = 0, kept: Kept | None = None) -> Runs:
        """Adds runs of the cells whose published numbers are undecided.

        Once, with a number of runs that follows from the spread: to look after every run and stop
        at the wanted verdict would bias it.
        """
        more: dict[Case, int] = {}
        for case, what, of in self.numbers(runs):
            needs = of.of.needs(what.of(runs, case))
            undecided = what.judge(of, runs, case, exact=self.exact) is Verdict.UNDECIDED
            if undecided and not of.misprint and needs is not None and needs <= self.most_seeds:
                more[case] = max(needs, more.get(case, 0))
        for case, seeds in more.items():
            cells = [cell for cell in self.cells() if cell.case == case]
            again = replace(self, cells=lambda cells=cells: cells, factors=None)  # type: ignore[misc]
            runs = runs.joined(again.measure(seeds=seeds, threads=threads, kept=kept))
        return runs

    # --- Verdicts ----------------------------------------------------------------------------

    def numbers(self, runs: Runs) -> Iterator[tuple[Case, Measure, Number]]:
        """Every published number, with the case and the measure that it stands beside."""
        published = self.published
        for case in runs.cases(**self.about):
            for what in self.measures:
                number = published.number(case, what.metric)
                if number is not None:
                    yield case, what, number

    def judge(self, runs: Runs) -> list[Answer]:
        """Published statements with their verdicts, then answers to open questions."""
        stated = {
            of["id"]: self._number_test(Number.read(of)) if "metric" in of else self._test(of)
            for of in self.published.statements
        }
        found = self.published.answers(stated, self.judged(runs))
        return [*found, *self.answers(runs)]

    def judged(self, runs: Runs) -> Runs:
        """The runs that statements are held against."""
        return runs.of(runs.cases(**self.about))

    def _test(self, stated: Mapping[str, Any]) -> Test:
        """The test of a statement; if the statement differs, the factors are tried."""
        test = self.tests[stated["id"]]

        def explained(runs: Runs) -> Judgement:
            judged = test(runs)
            exact = judged.claim is not None and judged.claim.exact
            if judged.verdict is Verdict.DIFFERS and not exact and self.factors and runs.varied:
                more = factors.tried(test, runs, self.factors, stated.get("value"))
                judged = replace(judged, why=f"{judged.why} {more}")
            return judged

        return explained

    def _number_test(self, of: Number) -> Test:
        """The test of a statement that is one number."""
        what = self.measured(of.metric)

        def test(runs: Runs) -> Judgement:
            case = runs.case(**of.case)
            value, single = what.of(runs, case), what.single(runs, case)
            why = f"Measured {phrase(value)}, published {of.of.words}"
            if single is not None:
                why += f"; single runs fall between {number(single[0])} and {number(single[1])}"
            judged = judged_value(
                of.of, f"{why}.", value, case, what.unit, single=single, exact=self.exact
            )
            # Also of a bound that holds: how far above it the outcome lies.
            if runs.varied and not factors.within(of.value, single):
                more = factors.explain(of.value, self.moved(of, runs))
                judged = replace(judged, why=f"{judged.why} {more}")
            return judged

        return test

    def measured(self, metric: str) -> Measure:
        """The measure of that name."""
        return next(what for what in self.measures if what.metric == metric)

    def moved(self, of: Number, runs: Runs) -> list[Moved]:
        """The measured value with each factor changed, the largest effect first."""
        assert self.factors is not None
        what, case = self.measured(of.metric), self.judged(runs).case(**of.case)
        found = []
        for factor in self.factors.tried:
            varied = runs.varied[factor.id]
            value, baseline = what.of(varied, case), what.of(runs, case)
            if value is not None and baseline is not None:
                found.append(Moved(factor, value, what.single(varied, case), baseline))
        return sorted(found, key=lambda move: max(move.ratio, 1 / move.ratio), reverse=True)

    # --- Rows --------------------------------------------------------------------------------

    def rows(self, runs: Runs, answers: Sequence[Answer]) -> list[Row | Finding]:
        """As results.json has them."""
        found = [self._finding(answer, runs.seeds) for answer in answers]
        return [*found, *self._measurements(runs)]

    def _finding(self, answer: Answer, runs: int) -> Finding:
        return Finding(
            publication=self.publication,
            experiment=self.experiment,
            id=answer.id,
            claim=answer.claim,
            where=answer.where,
            case=answer.case or self.about,
            verdict=answer.verdict,
            why=answer.why,
            runs=runs,
            published=answer.published,
            measured=answer.measured,
            contradicts=answer.contradicts,
            unit=answer.unit,
        )

    def _measurements(self, runs: Runs) -> list[Row]:
        beside = {(case, what.metric): of for case, what, of in self.numbers(runs)}
        found = []
        for case in runs:
            for what in self.measures:
                value = what.of(runs, case)
                # A quantile that is not reached is no number.
                if value is None or not math.isfinite(value.value + value.lo + value.hi):
                    continue
                row = Row(
                    self.publication, self.experiment, dict(case), what.metric, what.unit, value
                )
                of = beside.get((case, what.metric))
                if of is not None:
                    verdict = None if of.misprint else what.judge(of, runs, case, exact=self.exact)
                    row = replace(row, published=of.value, verdict=verdict)
                found.append(row)
        return found

    def explanations(self, runs: Runs) -> list[dict[str, Any]]:
        """Every published number and statement with each factor changed: explanations.json."""
        if self.factors is None:
            return []
        found: list[dict[str, Any]] = []
        for stated in self.published.statements:
            if "metric" in stated:
                of = Number.read(stated)
                case = self.judged(runs).case(**of.case)
                found += [
                    {
                        "ratio": stated["id"],
                        "case": dict(case),
                        "published": of.value,
                        "variation": move.factor.id,
                        "with": move.factor.name,
                        "reproduced": move.baseline.value,
                        "measured": move.value.value,
                        "ci95": [move.value.lo, move.value.hi],
                        "runs": move.value.n,
                        "moves": move.clear,
                    }
                    for move in (self.moved(of, runs) if runs.varied else ())
                ]
                continue
            for factor in (*self.factors.tried, *self.factors.pairs):
                if factor.id in runs.varied:
                    judged = self.tests[stated["id"]](runs.varied[factor.id])
                    measured = judged.measured
                    found.append(
                        {
                            "statement": stated["id"],
                            "variation": factor.id,
                            "with": factor.name,
                            "agrees": judged.verdict.agrees,
                            "verdict": judged.verdict,
                            "measured": None if measured is None else measured.value,
                            "ci95": None if measured is None else [measured.lo, measured.hi],
                            "why": judged.why,
                        }
                    )
        return found


# --- Measures --------------------------------------------------------------------------------


def mean(
    metric: str, unit: str, words: str, scale: float = 1.0, name: str | None = None
) -> Measure:
    """The mean over the runs."""
    return Measure(
        name or metric,
        unit,
        words,
        lambda runs, case: runs.mean(case, metric),
        scale,
        lambda runs, case: runs.single(case, metric),
    )


def quantile(metric: str, share: float, name: str, words: str) -> Measure:
    """A quantile over the runs, in seconds."""
    return Measure(name, "s", words, lambda runs, case: runs.quantile(case, metric, share))
