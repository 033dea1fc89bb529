"""The report of a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop import pictures, report, units
from lasthop.files import write_text
from lasthop.publications.bbn8333 import figures, numbers
from lasthop.publications.bbn8333.cases import (
    MODERN,
    NONE,
    PERIOD,
    RECOVERIES,
    SIMULATED,
    Network,
    Runs,
    Variant,
)
from lasthop.publications.bbn8333.comparisons import worse
from lasthop.publications.bbn8333.findings import HIGH, Evidence
from lasthop.publications.rows import Finding
from lasthop.publications.study.verdict import Verdict, typical_factor
from lasthop.publications.study.words import (
    FEW_SEEDS,
    MARKED,
    NOTHING,
    SMALL,
    number,
    percent,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lasthop.publications.bbn8333.simulation import Simulation


def write(
    path: Path,
    published: Mapping[str, Any],
    simulation: Simulation,
    evidence: Evidence,
    found: Sequence[Finding],
) -> None:
    """Writes the report, one HTML file with everything in it."""
    runs = evidence.runs
    stated = published[simulation.id]
    ratios = stated.get("ratio", ())
    numbered = {ratio["id"] for ratio in ratios}
    values = {
        "published": published,
        "stated": stated,
        "number_of": simulation.number,
        "appendix": simulation.appendix,
        "id": simulation.id,
        "lead": simulation.lead(runs),
        "findings": found,
        "statements": [finding for finding in found if finding.id not in numbered],
        "count": _count(found),
        "met": _count([finding for finding in found if finding.id in numbered]),
        "typical": typical_factor([finding.factor.value for finding in found if finding.factor]),
        "ratios": numbers.ratios(ratios, runs, found),
        "why": numbers.why(ratios, evidence),
        "figures": _figures(simulation, runs, ratios),
        "gains": [
            _gains(simulation.variants, runs, of, t, query)
            for of in simulation.networks
            for t, query in simulation.panels.items()
        ],
        "two_recoveries": len({variant.recovery for variant in simulation.shown}) > 1,
        "every": _every(simulation, runs),
        "worse": worse(runs),
        "today": _today(simulation, runs, evidence.modern),
        "variations": evidence.variations,
        "tried_over": "; ".join(of.name for of in evidence.tried_over),
        "tables": [_table(simulation, runs, t, query) for t, query in simulation.panels.items()],
        "runs": sum(map(len, (runs, evidence.modern or (), *evidence.varied.values()))),
        "seeds": runs.seeds,
        "few": FEW_SEEDS,
        "period": PERIOD,
        "modern": MODERN,
        "small": SMALL,
        "nothing": NOTHING,
        "marked": MARKED,
        "high": HIGH,
        "number": number,
        "percent": percent,
        "power": units.power_of_ten,
    }
    write_text(path, report.render("bbn8333.html.jinja", values))


def _count(found: Sequence[Finding]) -> dict[Verdict, int]:
    """How many have each verdict."""
    return {of: sum(finding.verdict is of for finding in found) for of in Verdict}


def _figures(
    simulation: Simulation, runs: Runs, ratios: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    found = []
    for number_of, networks in simulation.figures.items():
        for index, of in enumerate(networks):
            drawn = figures.panels(runs, of, simulation.shown, simulation.panels, ratios)
            of_which = f"Figure {number_of}" if number_of else f"Appendix {simulation.appendix}"
            found.append(
                {
                    "number": number_of,
                    "title": of_which,
                    "kind": of.kind,
                    "network": of.name + (" a hop" if simulation.hops > 1 else ""),
                    "svg": _svg(drawn, f"figure-{number_of}-{index}"),
                }
            )
    return found


def _every(simulation: Simulation, runs: Runs) -> Iterable[dict[str, Any]]:
    """The panels of the appendix."""
    if len(runs.networks()) <= len(simulation.networks):
        return []
    return [
        {
            "title": title,
            "svg": _svg(figures.all_networks(runs, simulation.variants, query), f"every-{index}"),
        }
        for index, (title, query) in enumerate(simulation.panels.items())
    ]


def _today(simulation: Simulation, runs: Runs, modern: Runs | None) -> dict[str, Any] | None:
    """The stack of today beside the report's."""
    if modern is None:
        return None
    both = Runs.joined(runs, modern)
    gains = [
        {
            "network": case.network.name,
            "kind": case.network.kind,
            "variant": case.variant,
            "period": runs.gain(case),
            "modern": modern.gain(case.but(profile=MODERN)),
        }
        for of in simulation.networks
        for case in runs.cases(network=of, eten=SIMULATED, bit_error_rate=HIGH, errors="both")
    ]
    drawn = figures.then_and_now(both, simulation.networks, RECOVERIES, (NONE, *SIMULATED))
    return {"svg": _svg(drawn, "today"), "gains": gains}


def _svg(figure: Figure, name: str) -> Any:
    from markupsafe import Markup

    return Markup(pictures.svg(figure, name))


def _gains(
    variants: Sequence[Variant], runs: Runs, of: Network, title: str, query: Mapping[str, Any]
) -> dict[str, Any]:
    """What being told is worth at every point of a panel, and what differs with it."""

    def cell(variant: Variant, rate: float) -> Any:
        cases = runs.cases(**variant.keys, network=of, bit_error_rate=rate, **query)
        if not cases:
            return None
        (case,) = cases
        plain = case.but(eten=NONE)
        alive = case.eten != NONE and runs.is_alive(case) and runs.is_alive(plain)
        return {
            "gain": runs.gain(case) if alive else None,
            "reductions": runs.reductions(case),
            "timeouts": runs.timeouts(case),
        }

    rows: list[dict[str, Any]] = [
        {"bit_error_rate": rate, "cells": [cell(variant, rate) for variant in variants]}
        for rate in runs.error_rates(of)
    ]
    return {
        "title": title,
        "network": of.name,
        "variants": [variant.name for variant in variants],
        "rows": [row for row in rows if any(row["cells"])],
    }


def _table(
    simulation: Simulation, runs: Runs, title: str, query: Mapping[str, Any]
) -> dict[str, Any]:
    """Goodput of every variant at every point of a panel."""

    def goodput(variant: Variant, **where: Any) -> Any:
        cases = runs.cases(**variant.keys, **query, **where)
        return runs.goodput(cases[0]) if cases else None

    rows: list[dict[str, Any]] = [
        {
            "network": of.name,
            "bit_error_rate": rate,
            "goodputs": [
                goodput(variant, network=of, bit_error_rate=rate) for variant in simulation.variants
            ],
        }
        for of in runs.networks()
        for rate in runs.error_rates(of)
    ]
    rows = [row for row in rows if any(row["goodputs"])]
    return {"title": title, "variants": [v.name for v in simulation.variants], "rows": rows}
