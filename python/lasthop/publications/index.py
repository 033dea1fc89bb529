"""The page and the results of a whole publication, with the outcome of each experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lasthop import library, report, terminal
from lasthop.files import write_text
from lasthop.publications import rows
from lasthop.publications.rows import Outcome
from lasthop.publications.study.verdict import Verdict
from lasthop.publications.study.words import number


def write(folder: Path, publication: str, outcomes: Sequence[Outcome]) -> None:
    """Writes report.html, which leads to the experiments' own in folders beside it, and
    results.json with the rows of all."""
    rows.write(folder / "results.json", [row for outcome in outcomes for row in outcome.rows])
    values = {
        "id": publication,
        "published": library.published(publication.partition("/")[0]),
        "outcomes": outcomes,
        "count": {of: sum(outcome.count(of) for outcome in outcomes) for of in Verdict},
        "number": number,
        "statements": sum(len(outcome.findings) for outcome in outcomes),
        "contradictory": sum(outcome.contradictory for outcome in outcomes),
    }
    write_text(folder / "report.html", report.render("publication.html.jinja", values))
    terminal.written(folder / "results.json", "all values of all experiments")
    terminal.written(folder / "report.html", "all reports")
