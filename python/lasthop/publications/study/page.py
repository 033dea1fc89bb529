"""The report of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from lasthop import library, pictures, report, units
from lasthop.files import write_text
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Runs
from lasthop.publications.study.study import Measure, Study
from lasthop.publications.study.words import FEW_SEEDS, ROUNDING, percent
from lasthop.stats import Estimate


def write(path: Path, study: Study, runs: Runs, answers: Sequence[Answer]) -> None:
    """Writes the report, one HTML file with everything in it."""
    fewest = min(runs.count(case) for case in runs)
    stated = [answer for answer in answers if answer.id]
    values = {
        "published": library.published(study.publication),
        "study": study,
        "outcome": study.outcome(runs) if study.outcome else "",
        "answers": answers,
        "stated": stated,
        "agree": sum(answer.agrees is True for answer in stated),
        "figures": [
            (drawn, Markup(pictures.svg(drawn.draw(runs), f"{study.id}-{index}")))
            for index, drawn in enumerate(study.figures)
        ],
        "numbers": _numbers(study, runs),
        "runs": len(runs),
        "cells": len(runs.found),
        "seeds": runs.seeds,
        "fewest": fewest,
        "quick": fewest < min(FEW_SEEDS, *(cell.seeds for cell in study.cells())),
        "rounding": percent(ROUNDING),
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
            number = section.number(case, measure.metric)
            value = measure.of(runs, case)
            if number is not None and value is not None:
                shown = [key for key in study.keys if case.get(key, "") != ""]
                found.append(
                    {
                        "case": ", ".join(f"{study.keys[key]} {word(case[key])}" for key in shown),
                        "words": measure.words,
                        "published": f"{number.value / measure.scale:g}",
                        "measured": _value(measure, value),
                        "agrees": number.agrees(value),
                        "misprint": number.misprint,
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
