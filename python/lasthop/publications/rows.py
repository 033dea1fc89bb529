"""The rows of results.json, one format for every publication."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lasthop.files import write_text
from lasthop.publications.study.verdict import Judged, Verdict, error_factor, typical_factor
from lasthop.stats import Estimate


@dataclass(frozen=True)
class Row:
    """A measured value, next to the published one where there is one."""

    publication: str
    experiment: str
    #: The parameters that were varied.
    case: Mapping[str, Any]
    metric: str
    unit: str
    measured: Estimate
    published: float | None = None
    #: Whether the published value is met.
    verdict: Verdict | None = None

    def as_dict(self) -> dict[str, Any]:
        """The row as results.json has it; with a published value, the verdict on it and the error
        factor, which is measured over published."""
        factor = error_factor(self.measured, self.published)
        return {
            "publication": self.publication,
            "experiment": self.experiment,
            "case": dict(self.case),
            "metric": self.metric,
            "unit": self.unit,
            "published": self.published,
            "measured": self.measured.value,
            "ci95": [self.measured.lo, self.measured.hi],
            "runs": self.measured.n,
            **({"verdict": self.verdict} if self.verdict else {}),
            **({"error_factor": factor.value} if factor else {}),
        }


@dataclass(frozen=True)
class Finding(Judged):
    """A published statement or open question, and whether the runs bear it out."""

    publication: str
    experiment: str
    #: The statement's name within the experiment; empty: the publication does not state it.
    id: str
    #: The statement, in our words.
    claim: str
    #: Where the publication makes it.
    where: str
    #: Where the numbers are from; empty if the statement is about all cases.
    case: Mapping[str, Any]
    #: None: the publication only asks.
    verdict: Verdict | None
    #: The measured numbers that decide, and what moves them.
    why: str
    runs: int
    published: float | None = None
    measured: Estimate | None = None
    #: Where the publication says otherwise itself.
    contradicts: str | None = None
    #: Of the measured number.
    unit: str = "1"

    def as_dict(self) -> dict[str, Any]:
        """The row in results.json."""
        measured, factor = self.measured, self.factor
        return {
            "publication": self.publication,
            "experiment": self.experiment,
            "case": dict(self.case),
            "metric": "finding",
            "unit": None if measured is None else self.unit,
            "published": self.published,
            "measured": None if measured is None else measured.value,
            "ci95": None if measured is None else [measured.lo, measured.hi],
            "runs": self.runs,
            "claim": self.claim,
            "where": self.where,
            "agrees": self.agrees,
            # None, too, where the publication only asks.
            "verdict": self.verdict,
            "why": self.why,
            **({"contradicts": self.contradicts} if self.contradicts else {}),
            **({"error_factor": factor.value} if factor else {}),
        }


@dataclass(frozen=True)
class Outcome:
    """The outcome of an experiment."""

    #: The experiment's name within the publication.
    id: str
    title: str
    #: Where the publication has it: "Figure 7, appendix C".
    where: str
    #: The outcome in one sentence.
    line: str
    rows: Sequence[Row | Finding]

    @property
    def findings(self) -> list[Finding]:
        """The published statements."""
        return [row for row in self.rows if isinstance(row, Finding) and row.id]

    @property
    def agree(self) -> int:
        """How many of them hold."""
        return self.count(Verdict.HOLDS)

    def count(self, verdict: Verdict) -> int:
        """How many statements have this verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)

    @property
    def factor(self) -> float | None:
        """By what factor measured values are off the published ones on average, misprints apart:
        1 is none, 2 is twice or half."""
        found = {
            # A number that is a statement, too, counts once.
            (row.published, row.measured.value): factor.value
            for row in self.rows
            if row.measured is not None and row.verdict is not None
            for factor in (error_factor(row.measured, row.published),)
            if factor is not None
        }
        return typical_factor(list(found.values()))

    @property
    def contradictory(self) -> int:
        """How many the publication contradicts itself."""
        return sum(finding.contradicts is not None for finding in self.findings)


class Written(Protocol):
    """An object that can be a row of results.json."""

    def as_dict(self) -> dict[str, Any]:
        """The row."""


def write(path: Path, rows: Sequence[Written]) -> None:
    """Writes results.json, one row per line."""
    lines = (json.dumps(row.as_dict(), ensure_ascii=False) for row in rows)
    write_text(path, "[\n" + ",\n".join(lines) + "\n]\n")
