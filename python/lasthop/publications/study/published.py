"""What a publication states and measured, held against the runs.

published.toml has a section for each experiment:

    [["fig4.2".number]]      # a published value: stands beside the measured one
    metric  = "resume_s"
    value   = 14.6
    case    = { scheme = "standard" }
    misprint = "..."         # optional: why the value cannot be what was meant

    [["fig4.2".statement]]   # tested by its id
    id    = "..."
    claim = "..."
    where = "section 4.2"
    value = 14.6             # optional
    contradicts = "..."      # optional: where the publication says otherwise itself
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lasthop import library
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.words import ROUNDING
from lasthop.stats import Estimate


@dataclass(frozen=True)
class Answer:
    """What the runs say to a statement or an open question."""

    claim: str
    #: Where the publication says or asks so.
    where: str
    #: None: the publication only asks.
    agrees: bool | None
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


@dataclass(frozen=True)
class Verdict:
    """Whether a published statement holds, and the numbers that decide."""

    agrees: bool
    why: str
    measured: Estimate | None = None
    case: Case = field(default_factory=Case)
    unit: str = "1"


#: Holds one statement against runs.
Test = Callable[[Runs], Verdict]


@dataclass(frozen=True)
class Number:
    """A published value."""

    metric: str
    value: float
    #: The keys of the case that it is of; others do not matter.
    case: Mapping[str, Any]
    misprint: str | None = None

    def is_of(self, case: Case, metric: str) -> bool:
        """Whether it stands beside this measured value."""
        return self.metric == metric and self.case.items() <= dict(case).items()

    def agrees(self, measured: Estimate) -> bool:
        """Whether it lies within the interval, as exactly as it was read off."""
        ends = measured.lo, measured.hi
        margin = ROUNDING * max(map(abs, ends))
        return ends[0] - margin <= self.value <= ends[1] + margin


@dataclass(frozen=True)
class Section:
    """What is published of one experiment."""

    numbers: Sequence[Number] = ()
    statements: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, publication: str, experiment: str) -> Section:
        """From published.toml; empty if the publication has no such experiment."""
        found = library.published(publication).get(experiment, {})
        return cls(
            [Number(**number) for number in found.get("number", ())],
            found.get("statement", ()),
        )

    def number(self, case: Case, metric: str) -> Number | None:
        """The published value beside a measured one."""
        return next((number for number in self.numbers if number.is_of(case, metric)), None)

    def answers(self, tests: Mapping[str, Test], runs: Runs) -> list[Answer]:
        """Every statement with its verdict."""
        found = []
        for stated in self.statements:
            verdict = tests[stated["id"]](runs)
            contradicts = stated.get("contradicts")
            why = verdict.why
            if contradicts:
                why += f" The publication contradicts itself: {contradicts}"
            found.append(
                Answer(
                    stated["claim"],
                    stated["where"],
                    verdict.agrees,
                    why,
                    verdict.case,
                    verdict.measured,
                    verdict.unit,
                    stated["id"],
                    stated.get("value"),
                    contradicts,
                )
            )
        return found
