"""The report of a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop import pictures, report, units
from lasthop.files import write_text
from lasthop.publications.bbn8333 import figures
from lasthop.publications.bbn8333.cases import PERIOD, Runs, Variant
from lasthop.publications.bbn8333.findings import (
    FEW_SEEDS,
    MARKED,
    NOTHING,
    SMALL,
    Evidence,
    number,
    percent,
)
from lasthop.publications.rows import Finding

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
    contradictory = {s["id"] for s in stated["statement"] if "contradicts" in s}
    values = {
        "published": published,
        "stated": stated,
        "number_of": simulation.id.removeprefix("sim"),
        "id": simulation.id,
        "lead": simulation.lead(runs),
        "findings": found,
        "contradictory": contradictory,
        "agree": sum(finding.agrees for finding in found),
        "figures": _figures(simulation, runs),
        "every": _every(simulation, runs),
        "variations": evidence.variations,
        "tried_over": ", ".join(network.name for network in evidence.tried_over),
        "tables": [_table(simulation, runs, t, query) for t, query in simulation.panels.items()],
        "runs": len(runs) + sum(len(varied) for varied in evidence.varied.values()),
        "seeds": runs.seeds,
        "few": FEW_SEEDS,
        "period": PERIOD,
        "small": SMALL,
        "nothing": NOTHING,
        "marked": MARKED,
        "number": number,
        "percent": percent,
        "power": units.power_of_ten,
    }
    write_text(path, report.render("bbn8333.html.jinja", values))


def _figures(simulation: Simulation, runs: Runs) -> list[dict[str, Any]]:
    return [
        {
            "number": number,
            "network": of.name,
            "svg": _svg(
                figures.panels(runs, of, simulation.shown, simulation.panels),
                f"figure-{number}-{index}",
            ),
        }
        for number, networks in simulation.figures.items()
        for index, of in enumerate(networks)
    ]


def _every(simulation: Simulation, runs: Runs) -> Iterable[dict[str, Any]]:
    if len(runs.networks()) <= len(simulation.networks):
        return []
    return [
        {
            "title": title,
            "svg": _svg(figures.all_networks(runs, simulation.variants, query), f"every-{index}"),
        }
        for index, (title, query) in enumerate(simulation.panels.items())
    ]


def _svg(figure: Figure, name: str) -> Any:
    from markupsafe import Markup

    return Markup(pictures.svg(figure, name))


def _table(
    simulation: Simulation, runs: Runs, title: str, query: Mapping[str, Any]
) -> dict[str, Any]:
    """Goodput of every variant at every point of a panel."""

    def goodput(variant: Variant, **where: Any) -> Any:
        who = {"recovery": variant.recovery, "eten": variant.eten, "window": variant.window}
        cases = runs.cases(**who, **query, **where)
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
