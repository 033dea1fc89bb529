"""Simulation 1 (bbn8333 §3.3): one transfer over one lossy hop, nobody else on the path."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lasthop import lab, library, terminal, units
from lasthop.files import write_text
from lasthop.publications import rows
from lasthop.publications.bbn8333 import page
from lasthop.publications.bbn8333.cases import (
    DIRECTIONS,
    ETENS,
    MODERN,
    NONE,
    PERIOD,
    RECOVERIES,
    Case,
    Runs,
)
from lasthop.publications.bbn8333.findings import Evidence, findings
from lasthop.publications.bbn8333.show import show
from lasthop.publications.bbn8333.statements import TESTS
from lasthop.publications.bbn8333.variations import (
    BIT_ERROR_RATE,
    NETWORKS,
    VARIATIONS,
    Variation,
    moved,
)
from lasthop.publications.rows import Finding, Row
from lasthop.results import SEED, Sweep
from lasthop.scenario import Scenario

PUBLICATION, EXPERIMENT = "bbn8333", "sim1"
QUICK_SEEDS = 5

_RATE, _DELAY = "links.0.rate", "links.0.delay"
_FORWARD, _BACKWARD = "links.0.forward.errors.bit", "links.0.backward.errors.bit"
_RECOVERY, _ETEN = "flows.0.tcp.recovery", "flows.0.tcp.eten.report"
_GOODPUT = "goodput_bps"


def reproduce(folder: Path, *, seeds: int | None, quick: bool, threads: int) -> None:
    """Runs the grid in both profiles, and every variation; writes what came of it."""
    with terminal.progress(f"{PUBLICATION}/{EXPERIMENT}") as progress:
        evidence, modern = measure(seeds or (QUICK_SEEDS if quick else None), threads, progress)
    found = write(folder, evidence, modern)
    show(f"{PUBLICATION}/{EXPERIMENT}", found)
    for name, what in (
        ("results.json", "all values"),
        ("explanations.json", "what one factor changes"),
        ("report.html", "report"),
    ):
        terminal.written(folder / name, what)


def write(folder: Path, evidence: Evidence, modern: Runs) -> list[Finding]:
    """Writes the results and the report; returns the verdicts on the published statements."""
    published = library.published(PUBLICATION)
    stated = published[EXPERIMENT]
    found = findings(EXPERIMENT, stated, evidence, TESTS)
    rows.write(folder / "results.json", [*found, *measurements(stated, evidence.runs, modern)])
    explained = json.dumps(explanations(stated, evidence), indent=1)
    write_text(folder / "explanations.json", explained + "\n")
    page.write(folder / "report.html", published, evidence, modern, found)
    return found


def measure(
    seeds: int | None, threads: int, progress: lab.Progress | None = None
) -> tuple[Evidence, Runs]:
    """All runs: those of the report's profile with every variation, and those of today's."""
    grid = Scenario.load(f"{PUBLICATION}/{EXPERIMENT}")
    seeds = seeds or grid.outline().seeds
    scenarios = [
        grid.set({"profile": PERIOD}),
        grid.set({"profile": MODERN}),
        *(varied(grid, variation) for variation in VARIATIONS),
    ]
    period, modern, *rest = lab.sweeps(scenarios, seeds=seeds, threads=threads, progress=progress)
    runs = {
        variation.id: goodputs(sweep, PERIOD)
        for variation, sweep in zip(VARIATIONS, rest, strict=True)
    }
    return Evidence(goodputs(period, PERIOD), runs), goodputs(modern, MODERN)


def varied(grid: Scenario, variation: Variation) -> Scenario:
    """The scenario of a variation: a few cells of the grid, and one factor that differs."""
    backward = BIT_ERROR_RATE if variation.errors == "both" else 0.0
    sweep = {
        _RECOVERY: list(RECOVERIES),
        _ETEN: list(ETENS),
        _FORWARD: [BIT_ERROR_RATE],
        _BACKWARD: [backward],
        "zip": [
            {
                _RATE: [f"{network.rate_bps / 1e6:g} Mbit/s" for network in NETWORKS],
                _DELAY: [f"{network.one_way_delay_s * 1e3:g} ms" for network in NETWORKS],
            }
        ],
    }
    return grid.set({"profile": PERIOD, "sweep": sweep, **variation.settings})


def goodputs(sweep: Sweep, profile: str) -> Runs:
    """The goodputs of a sweep, by case. Runs without errors count for either direction."""
    columns = (_RECOVERY, _ETEN, _RATE, _DELAY, _FORWARD, _BACKWARD, SEED, _GOODPUT)
    found: dict[Case, list[float]] = {}
    ordered = sweep.rows.sort(SEED, maintain_order=True).select(columns)
    for recovery, eten, rate, delay, forward, backward, _, goodput in ordered.iter_rows():
        for errors in _directions(forward, backward):
            case = Case(
                recovery, eten, units.parse(rate), units.parse(delay), forward, errors, profile
            )
            found.setdefault(case, []).append(goodput)
    return Runs(found)


def _directions(forward: float, backward: float) -> Iterable[str]:
    if not forward:
        return DIRECTIONS
    return ("both",) if backward else ("forward",)


def measurements(published: Mapping[str, Any], *profiles: Runs) -> list[Row]:
    """Goodput of every case, and the ratio to no notification."""
    numbers = {
        Case(**ratio["case"], profile=PERIOD): float(ratio["value"]) for ratio in published["ratio"]
    }
    measured = []
    for runs in profiles:
        for case in runs:
            goodput = runs.goodput(case)
            measured.append(_row(case, "goodput_bps", "bit/s", goodput, None))
            if case.eten != NONE:
                measured.append(_row(case, "ratio", "1", runs.gain(case), numbers.get(case)))
    return measured


def explanations(published: Mapping[str, Any], evidence: Evidence) -> list[dict[str, Any]]:
    """What every variation makes of every published ratio, for explanations.json."""
    told: list[dict[str, Any]] = []
    for ratio in published["ratio"]:
        case = Case(**ratio["case"], profile=PERIOD)
        told.extend(
            {
                "ratio": ratio["id"],
                "case": case.as_dict(),
                "published": ratio["value"],
                "reproduced": move.baseline.value,
                "variation": move.variation.id,
                "with": move.variation.name,
                "settings": {**move.variation.settings, "errors": move.variation.errors},
                "measured": move.ratio.value,
                "ci95": [move.ratio.lo, move.ratio.hi],
                "runs": move.ratio.n,
                "moves": move.clear,
            }
            for move in moved(case, case.but(eten=NONE), evidence.runs, evidence.varied)
        )
    return told


def _row(case: Case, metric: str, unit: str, value: Any, published: float | None) -> Row:
    return Row(PUBLICATION, EXPERIMENT, case.as_dict(), metric, unit, value, published)
