"""What a publication states and measured, held against the runs.

published.toml has a section for each experiment:

    [["fig4.2".number]]      # a published value: stands beside the measured one
    metric     = "resume_s"
    value      = 14.6
    kind       = "printed"   # or "about", "almost", "above", "at-most", "figure": see verdict.py
    last_digit = 0.1         # of a printed number: what its last digit is worth
    runs       = 1           # optional: of which it is the mean
    ci95       = [14.2, 15]  # optional: its published interval of 95 %
    case       = { scheme = "standard" }
    misprint   = "..."       # optional: why the value cannot be what was meant

    [["fig4.2".statement]]   # tested by its id
    id         = "..."
    claim      = "..."
    where      = "section 4.2"
    effect_of  = "rlci"      # the mechanism without which it must fail; "none": of none
    value      = 14.6        # optional, with kind, last_digit and runs as above
    contradicts = "..."      # optional: where the publication says otherwise itself
    metric     = "ratio"     # optional, with case as above: it is one number, which needs no test
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lasthop import library
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.verdict import (
    Judged,
    Judgement,
    Kind,
    Published,
    Verdict,
    would_decide,
)
from lasthop.stats import Estimate


@dataclass(frozen=True)
class Answer(Judged):
    """A statement or an open question with its verdict."""

    claim: str
    #: Where the publication says or asks so.
    where: str
    #: None: the publication only asks.
    verdict: Verdict | None
    #: The measured outcome.
    why: str
    case: Case = field(default_factory=Case)
    measured: Estimate | None = None
    #: Of the measured number.
    unit: str = "1"
    #: Of a published statement: its name within the experiment.
    id: str = ""
    published: float | None = None
    contradicts: str | None = None
    #: The mechanism without which the claim must fail; "none": it claims no effect of any. Empty
    #: where nothing is claimed.
    effect_of: str = ""
    #: What decides the verdict, in words; empty where nothing is claimed.
    criterion: str = ""


#: Tests one statement against runs.
Test = Callable[[Runs], Judgement]


@dataclass(frozen=True)
class Number:
    """A published value, and the cases that it is for."""

    metric: str
    of: Published
    #: The keys of the case that it is of; others do not matter.
    case: Mapping[str, Any]
    misprint: str | None = None

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Number:
        """Reads an entry of published.toml."""
        return cls(entry["metric"], published(entry), entry["case"], entry.get("misprint"))

    @property
    def value(self) -> float:
        """The value itself."""
        return self.of.value

    def is_of(self, case: Case, metric: str) -> bool:
        """Whether it is the published value of this case and metric."""
        return self.metric == metric and self.case.items() <= dict(case).items()


def published(entry: Mapping[str, Any]) -> Published:
    """The value of a number or a statement in published.toml, with its kind."""
    ends = entry.get("ci95")
    return Published(
        float(entry["value"]),
        Kind(entry["kind"]),
        entry.get("last_digit"),
        entry.get("runs"),
        None if ends is None else (float(ends[0]), float(ends[1])),
    )


@dataclass(frozen=True)
class Section:
    """The published numbers and statements of one experiment."""

    numbers: Sequence[Number] = ()
    statements: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, publication: str, experiment: str) -> Section:
        """Reads published.toml; empty if it has no such experiment."""
        found = library.published(publication).get(experiment, {})
        statements = found.get("statement", ())
        numbers = [*found.get("number", ()), *(of for of in statements if "metric" in of)]
        return cls([Number.read(number) for number in numbers], statements)

    def number(self, case: Case, metric: str) -> Number | None:
        """The published value beside a measured one."""
        return next((number for number in self.numbers if number.is_of(case, metric)), None)

    def value(self, id: str) -> Published:
        """The value that a statement gives."""
        (entry,) = (stated for stated in self.statements if stated["id"] == id)
        return published(entry)

    def answers(self, tests: Mapping[str, Test], runs: Runs) -> list[Answer]:
        """Every statement with its verdict."""
        found = []
        for stated in self.statements:
            judged = tests[stated["id"]](runs)
            contradicts = stated.get("contradicts")
            why = judged.why
            if contradicts:
                why += f" The publication contradicts itself: {contradicts}"
            found.append(
                Answer(
                    stated["claim"],
                    stated["where"],
                    judged.verdict,
                    why,
                    judged.case or Case(),
                    judged.measured,
                    judged.unit,
                    stated["id"],
                    stated.get("value"),
                    contradicts,
                    stated["effect_of"],
                    judged.criterion,
                )
            )
        return found


def judged_value(
    of: Published,
    why: str,
    measured: Estimate | None,
    case: Any,
    unit: str,
    *,
    single: tuple[float, float] | None = None,
    exact: bool = False,
) -> Judgement:
    """The verdict on a value that a statement gives."""
    verdict = of.judge(measured, single, exact=exact)
    if verdict is Verdict.UNDECIDED:
        why += f" {would_decide(of.needs(measured))}"
    return Judgement(verdict, why, measured, case, unit, criterion=of.criterion)
