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
from lasthop.publications.study.factors import cause
from lasthop.publications.study.published import Answer, Number
from lasthop.publications.study.runs import Runs
from lasthop.publications.study.study import Measure, Study
from lasthop.publications.study.verdict import (
    Published,
    Verdict,
    error_factor,
    typical_factor,
    would_decide,
)
from lasthop.publications.study.words import FEW_SEEDS, ends, number
from lasthop.stats import Estimate


def write(path: Path, study: Study, runs: Runs, answers: Sequence[Answer]) -> None:
    """Writes the report, one HTML file with everything in it."""
    fewest = min(runs.count(case) for case in runs)
    stated = [answer for answer in answers if answer.id]
    numbers = _numbers(study, runs)
    values = {
        "published": library.published(study.publication),
        "study": study,
        "outcome": study.outcome(study.judged(runs)) if study.outcome else "",
        "answers": answers,
        "stated": stated,
        "count": {of: sum(answer.verdict is of for answer in stated) for of in Verdict},
        "figures": [
            (drawn, Markup(pictures.svg(figure, f"{study.id}-{index}", drawn.caption)))
            for index, drawn in enumerate(study.figures)
            for figure in (drawn.draw(runs),)
            if figure is not None
        ],
        "lists": [(listed, listed.rows(runs)) for listed in study.lists],
        "moved": _moved(study, runs) if study.factors and runs.varied else None,
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
        "ends": ends,
        "runs": sum(map(len, (runs, *runs.varied.values()))),
        "cells": len(runs.found),
        "seeds": runs.seeds,
        "fewest": fewest,
        "quick": any(
            cell.case not in runs.found or runs.count(cell.case) < min(FEW_SEEDS, cell.seeds)
            for cell in study.cells()
        ),
        "table": [
            {
                "keys": [_word(study, key, case[key]) if key in case else "" for key in study.keys],
                "values": [_value(measure, measure.of(runs, case)) for measure in study.measures],
            }
            for case in runs
        ],
    }
    write_text(path, report.render("study.html.jinja", values))


def _word(study: Study, key: str, value: Any) -> str:
    """A value of a case."""
    if key in study.words:
        return study.words[key](value)
    if isinstance(value, float):
        return units.scientific(value) if 0 < value < 1e-3 else f"{value:g}"
    return str(value)


def _numbers(study: Study, runs: Runs) -> list[dict[str, Any]]:
    """Every published value beside the measured one."""
    found = []
    for case, measure, of in study.numbers(runs):
        value = measure.of(runs, case)
        if value is None:
            continue
        shown = [key for key in study.keys if case.get(key, "") != ""]
        verdict = measure.judge(of, runs, case, exact=study.exact)
        single = measure.single(runs, case) if of.of.runs == 1 else None
        undecided = verdict is Verdict.UNDECIDED and not of.misprint
        found.append(
            {
                "case": ", ".join(
                    f"{study.keys[key]} {_word(study, key, case[key])}" for key in shown
                ),
                "words": measure.words,
                "published": _scaled(of.of, measure.scale).words,
                "measured": _value(measure, value),
                "single": [number(end / measure.scale) for end in single or ()],
                "factor": error_factor(value, of.value),
                "verdict": None if of.misprint else verdict,
                "criterion": _scaled(of.of, measure.scale).criterion,
                "takes": would_decide(of.of.needs(value)) if undecided else "",
                "misprint": of.misprint,
            }
        )
    return found


def _scaled(of: Published, scale: float) -> Published:
    """A published value and its interval in the report's unit."""
    ends = None if of.ci95 is None else (of.ci95[0] / scale, of.ci95[1] / scale)
    return replace(of, value=of.value / scale, ci95=ends)


def _moved(study: Study, runs: Runs) -> dict[str, Any]:
    """What every factor makes of the statements that are numbers."""
    assert study.factors is not None
    numbers = [Number.read(of) for of in study.published.statements if "metric" in of]
    moves = [study.moved(of, runs) for of in numbers]
    return {
        "cause": cause([(of.value, found) for of, found in zip(numbers, moves, strict=True)]),
        "published": [of.of.words for of in numbers],
        "baseline": [found[0].baseline for found in moves],
        "head": [
            ", ".join(_word(study, key, of.case[key]) for key in study.keys if key in of.case)
            for of in numbers
        ],
        "factors": [
            (factor, [next(move for move in found if move.factor is factor) for found in moves])
            for factor in study.factors.tried
        ],
    }


def _value(measure: Measure, value: Estimate | None) -> tuple[str, str]:
    """A value and its interval, as text."""
    if value is None:
        return "", ""
    lo, middle, hi = (end / measure.scale for end in (value.lo, value.value, value.hi))
    if not math.isfinite(middle):
        return "not reached", ""
    scaled = replace(value, value=middle, lo=lo, hi=hi)
    return units.significant(middle), ends(scaled, units.significant)
