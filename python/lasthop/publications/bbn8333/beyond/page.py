"""The report of an experiment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from lasthop import library, pictures, report, units
from lasthop.files import write_text
from lasthop.publications.bbn8333.beyond.question import PUBLICATION, Answer, Measure, Question
from lasthop.publications.bbn8333.beyond.runs import Case, Runs
from lasthop.publications.bbn8333.findings import FEW_SEEDS
from lasthop.stats import Estimate


def write(path: Path, question: Question, runs: Runs, answers: Sequence[Answer]) -> None:
    """Writes the report, one HTML file with everything in it."""
    values = {
        "published": library.published(PUBLICATION),
        "question": question,
        "answers": answers,
        "figure": Markup(pictures.svg(question.figure(runs), question.id)),
        "runs": len(runs),
        "cells": len(runs.found),
        "seeds": runs.seeds,
        "fewest": min(runs.count(case) for case in runs),
        "few": FEW_SEEDS,
        "table": [
            {
                "keys": [word(case[key]) if key in case else "" for key in question.keys],
                "values": [_value(measure, runs, case) for measure in question.measures],
            }
            for case in runs
        ],
    }
    write_text(path, report.render("bbn8333-beyond.html.jinja", values))


def word(value: Any) -> str:
    """A value of a case."""
    if isinstance(value, float):
        return units.scientific(value) if 0 < value < 1e-3 else f"{value:g}"
    return str(value)


def _value(measure: Measure, runs: Runs, case: Case) -> tuple[str, str]:
    """A value and its interval, as text."""
    value: Estimate | None = measure.of(runs, case)
    if value is None:
        return "", ""
    lo, middle, hi = (end / measure.scale for end in (value.lo, value.value, value.hi))
    if not math.isfinite(middle):
        return "not reached", ""
    top = units.significant(hi) if math.isfinite(hi) else "…"
    return units.significant(middle), f"{units.significant(lo)} to {top}"
