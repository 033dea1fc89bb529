"""The report of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from lasthop import library, pictures, report, units
from lasthop.files import write_text
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Runs
from lasthop.publications.study.study import Measure, Study
from lasthop.publications.study.verdict import (
    Verdict,
    error_factor,
    typical_factor,
    would_decide,
)
from lasthop.publications.study.words import FEW_SEEDS, number
from lasthop.stats import Estimate


def write(path: Path, study: Study, runs: Runs, answers: Sequence[Answer]) -> None:
    """Writes the report, one HTML file with everything in it."""
    fewest = min(runs.count(case) for case in runs)
    stated = [answer for answer in answers if answer.id]
    numbers = _numbers(study, runs)
    values = {
        "published": library.published(study.publication),
        "study": study,
        "outcome": study.outcome(runs) if study.outcome else "",
        "answers": answers,
        "stated": stated,
        "count": {of: sum(answer.verdict is of for answer in stated) for of in Verdict},
        "figures": [
            (drawn, Markup(pictures.svg(drawn.draw(runs), f"{study.id}-{index}")))
            for index, drawn in enumerate(study.figures)
        ],
        "numbers": numbers,
        "met": {of: sum(one["verdict"] is of for one in numbers) for of in Verdict},
        "typical": typical_factor(
            [
                beside["factor"].value
                for beside in numbers
                if beside["factor"] and not beside["misprint"]
            ]
        ),
        "number": number,
        "runs": len(runs),
        "cells": len(runs.found),
        "seeds": runs.seeds,
        "fewest": fewest,
        "quick": fewest < min(FEW_SEEDS, *(cell.seeds for cell in study.cells())),
        "table": [
            {
                "keys": [word(case[key]) if key in case else "" for key in study.keys],
                "values": [_value(measure, measure.of(runs, case)) for measure in study.measures],
            }
            for case in runs
        ],
    }
    write_text(path, report.render("study.html.jinja", values))


def word(value: Any) -> str:
    """A value of a case."""
    if isinstance(value, float):
        return units.scientific(value) if 0 < value < 1e-3 else f"{value:g}"
    return str(value)


def _numbers(study: Study, runs: Runs) -> list[dict[str, Any]]:
    """Every published value beside the measured one."""
    section = study.published
    found = []
    for case in runs:
        for measure in study.measures:
            of = section.number(case, measure.metric)
            value = measure.of(runs, case)
            if of is None or value is None:
                continue
            shown = [key for key in study.keys if case.get(key, "") != ""]
            verdict = of.judge(runs, case, value, exact=study.exact)
            undecided = verdict is Verdict.UNDECIDED and not of.misprint
            found.append(
                {
                    "case": ", ".join(f"{study.keys[key]} {word(case[key])}" for key in shown),
                    "words": measure.words,
                    "published": replace(of.of, value=of.value / measure.scale).words,
                    "measured": _value(measure, value),
                    "factor": error_factor(value, of.value),
                    "verdict": None if of.misprint else verdict,
                    "takes": would_decide(of.of.needs(value)) if undecided else "",
                    "misprint": of.misprint,
                }
            )
    return found


def _value(measure: Measure, value: Estimate | None) -> tuple[str, str]:
    """A value and its interval, as text."""
    if value is None:
        return "", ""
    lo, middle, hi = (end / measure.scale for end in (value.lo, value.value, value.hi))
    if not math.isfinite(middle):
        return "not reached", ""
    top = units.significant(hi) if math.isfinite(hi) else "…"
    return units.significant(middle), f"{units.significant(lo)} to {top}"
