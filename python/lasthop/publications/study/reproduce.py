"""Runs a study and writes its results and its report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.markup import escape

from lasthop import terminal
from lasthop.files import write_text
from lasthop.publications import rows
from lasthop.publications.rows import Outcome
from lasthop.publications.study import page, words
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Runs
from lasthop.publications.study.study import Study
from lasthop.publications.study.verdict import Verdict

#: How verdicts look in a terminal; None: the publication only asks.
COLOURED: Mapping[Verdict | None, str] = {
    Verdict.HOLDS: "[green]holds[/]",
    Verdict.DIFFERS: "[red]differs[/]",
    Verdict.UNDECIDED: "[yellow]undecided[/]",
    None: "open",
}


def reproduce(
    study: Study, folder: Path, *, seeds: int | None, quick: bool, threads: int
) -> Outcome | None:
    """Runs a study and fills a folder with results.json and report.html.

    Returns what the page of all experiments says of it, if there is to be one.
    """
    with terminal.progress(study.name) as progress:
        runs = study.measure(seeds=seeds, quick=quick, threads=threads, progress=progress)
        if seeds is None and not quick:
            runs = study.decide(runs, threads=threads)
    answers = write(study, folder, runs)
    show(study, answers)
    terminal.written(folder / "results.json", "all values")
    if study.factors is not None:
        terminal.written(folder / "explanations.json", "what one factor changes")
    terminal.written(folder / "report.html", "report")
    return outcome(study, runs, answers)


def write(study: Study, folder: Path, runs: Runs) -> Sequence[Answer]:
    """Writes the results and the report; returns the answers of the runs."""
    answers = study.judge(runs)
    rows.write(folder / "results.json", study.rows(runs, answers))
    if study.factors is not None:
        summary = json.dumps(study.explanations(runs), indent=1)
        write_text(folder / "explanations.json", summary + "\n")
    page.write(folder / "report.html", study, runs, answers)
    return answers


def outcome(study: Study, runs: Runs, answers: Sequence[Answer]) -> Outcome | None:
    """What the publication's page says of the study."""
    if study.outcome is None:
        return None
    line = study.outcome(study.judged(runs))
    return Outcome(study.id, study.title, study.where, line, study.rows(runs, answers))


def show(study: Study, answers: Sequence[Answer]) -> None:
    """Prints every answer."""
    shown = terminal.table(f"{study.name}: {study.title}")
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
