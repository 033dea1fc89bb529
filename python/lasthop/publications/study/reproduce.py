"""Runs a study and writes its results and its report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from lasthop import terminal
from lasthop.files import write_text
from lasthop.publications import rows
from lasthop.publications.rows import Outcome
from lasthop.publications.study import page, words
from lasthop.publications.study.kept import Kept
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Runs
from lasthop.publications.study.study import Study
from lasthop.publications.study.verdict import Verdict
from lasthop.terminal import escape

#: How verdicts look in a terminal; None: the publication only asks.
COLOURED: Mapping[Verdict | None, str] = {
    Verdict.HOLDS: "[green]holds[/]",
    Verdict.DIFFERS: "[red]differs[/]",
    Verdict.UNDECIDED: "[yellow]undecided[/]",
    None: "open",
}


#: What may be written into the folder of a study.
FILES = ("results.json", "explanations.json", "report.html")


def reproduce(
    study: Study,
    folder: Path,
    *,
    seeds: int | None,
    quick: bool,
    threads: int,
    kept: Kept | None = None,
) -> tuple[Sequence[Answer], Outcome | None]:
    """Runs a study and fills a folder with results.json and report.html.

    What `kept` has is not run again. Returns the answers, and what the page of all experiments says
    of the study, if there is to be one.
    """
    before = len(kept) if kept is not None else 0
    with terminal.progress(study.name) as progress:
        runs = study.measure(
            seeds=seeds, quick=quick, threads=threads, progress=progress, kept=kept
        )
        if seeds is None and not quick:
            runs = study.decide(runs, threads=threads, kept=kept)
    if before:
        terminal.say(f"[dim]{before} cells or runs of {study.name} were kept from before[/]")
    answers = write(study, folder, runs)
    show(study, answers)
    terminal.written(folder / "results.json", "all values")
    if study.factors is not None:
        terminal.written(folder / "explanations.json", "what one factor changes")
    terminal.written(folder / "report.html", "report")
    return answers, outcome(study, runs, answers)


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
    """Prints every answer, with the criterion of its verdict."""
    shown = terminal.table(f"{study.name}: {study.title}")
    shown.add_column("statement or question", ratio=2)
    shown.add_column("measured", ratio=3)
    shown.add_column("published", justify="right")
    shown.add_column("factor", justify="right")
    shown.add_column("verdict and criterion")
    for answer in answers:
        shown.add_row(
            escape(answer.claim),
            escape(answer.why),
            "" if answer.published is None else f"{answer.published:g}",
            "" if answer.factor is None else words.number(answer.factor.value),
            _verdict(answer),
        )
    terminal.out().print(shown)


def _verdict(answer: Answer) -> str:
    """A verdict, and below it where the measured value must lie for it to hold."""
    words = COLOURED[answer.verdict]
    return f"{words}\n[dim]{escape(answer.criterion)}[/]" if answer.criterion else words
