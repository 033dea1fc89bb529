"""The report of simulation 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop import pictures, report, units
from lasthop.files import write_text
from lasthop.publications.bbn8333 import figures
from lasthop.publications.bbn8333.cases import (
    DIRECTIONS,
    ETENS,
    LFN,
    LTN,
    MODERN,
    NAMES,
    NONE,
    NOTIFIED,
    PERIOD,
    RECOVERIES,
    SFN,
    Case,
    Runs,
)
from lasthop.publications.bbn8333.findings import (
    FEW_SEEDS,
    HIGH,
    MARKED,
    NOTHING,
    ROUNDING,
    SMALL,
    Evidence,
    number,
    percent,
)
from lasthop.publications.bbn8333.variations import VARIATIONS, Moved, moved
from lasthop.publications.rows import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The networks of the report's figures, by number.
_FIGURES = {4: LFN, 5: SFN, 6: LTN}


def write(
    path: Path,
    published: Mapping[str, Any],
    evidence: Evidence,
    modern: Runs,
    found: Sequence[Finding],
) -> None:
    """Writes the report, one HTML file with everything in it."""
    runs = evidence.runs
    stated = published["sim1"]["ratio"]
    by_id = {finding.id: finding for finding in found}
    cases = [Case(**ratio["case"], profile=PERIOD) for ratio in stated]
    moves = [moved(case, case.but(eten=NONE), runs, evidence.varied) for case in cases]
    values = {
        "published": published,
        "findings": found,
        "statements": [f for f in found if f.id not in {ratio["id"] for ratio in stated}],
        "cause": cause(stated, moves),
        "agree": sum(finding.agrees for finding in found),
        "ratios": [
            {
                "network": case.network.name,
                "kind": case.network.kind,
                "variant": case.variant,
                "word": "" if ratio["word"] == "is" else ratio["word"],
                "published": ratio["value"],
                "gain": runs.gain(case),
                "single": runs.single_gain(case),
                "finding": by_id[ratio["id"]],
            }
            for case, ratio in zip(cases, stated, strict=True)
        ],
        "ratios_agree": sum(by_id[ratio["id"]].agrees for ratio in stated),
        "headline": _headline(stated, runs),
        "variations": [
            {"name": v.name, "about": v.about, "moved": [_of(v.id, list_) for list_ in moves]}
            for v in VARIATIONS
        ],
        "figures": _figures(evidence, modern, stated),
        "today": _today(runs, modern),
        "table": _table(runs),
        "rates": _listed(units.line_rate, {of.rate_bps for of in runs.networks()}),
        "delays": _listed(units.duration, {of.one_way_delay_s for of in runs.networks()}),
        "runs": len(runs) + len(modern) + sum(len(varied) for varied in evidence.varied.values()),
        "seeds": runs.seeds,
        "few": FEW_SEEDS,
        "period": PERIOD,
        "modern": MODERN,
        "rounding": ROUNDING,
        "small": SMALL,
        "nothing": NOTHING,
        "marked": MARKED,
        "number": number,
        "percent": percent,
        "power": units.power_of_ten,
    }
    write_text(path, report.render("bbn8333-sim1.html.jinja", values))


def _of(id: str, moves: Sequence[Moved]) -> Moved:
    return next(move for move in moves if move.variation.id == id)


def cause(stated: Sequence[Mapping[str, Any]], moves: Sequence[Sequence[Moved]]) -> str:
    """The one factor that accounts for most published ratios, in a sentence."""
    reached: dict[str, int] = {}
    for ratio, moves_of_one in zip(stated, moves, strict=True):
        for move in moves_of_one:
            ends = sorted((move.baseline.value, move.ratio.value))
            if move.clear and ends[0] <= ratio["value"] <= ends[1]:
                reached[move.variation.name] = reached.get(move.variation.name, 0) + 1
    if not reached:
        return "No single factor tried accounts for any published number."
    name = max(reached, key=lambda name: reached[name])
    return (
        f"One factor stands out: {reached[name]} of the {len(stated)} published numbers lie between"
        f" what is reproduced and the same with {name}."
    )


def _headline(stated: Sequence[Mapping[str, Any]], runs: Runs) -> dict[str, Any]:
    """SACK's gains over the long fat network."""
    told: dict[str, Any] = {}
    for ratio in stated:
        case = Case(**ratio["case"], profile=PERIOD)
        if case.network == LFN and case.recovery == "sack":
            told[case.eten] = runs.gain(case)
            told[f"{case.eten}_published"] = f"{ratio['value']:g}"
    return told


def _figures(
    evidence: Evidence, modern: Runs, stated: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    runs = evidence.runs
    both = Runs.joined(runs, modern)
    return {
        "factors": _svg(figures.factors(runs, evidence.varied, modern, stated), "factors"),
        "networks": [
            {
                "number": number,
                "kind": of.kind,
                "network": of.name,
                "svg": _svg(figures.network(runs, of, stated), f"figure-{number}"),
            }
            for number, of in _FIGURES.items()
        ],
        "every": [
            {
                "title": NAMES[errors].capitalize(),
                "svg": _svg(figures.every_network(runs, errors), f"every-{errors}"),
            }
            for errors in reversed(DIRECTIONS)
        ],
        "today": _svg(figures.then_and_now(both, (LFN, SFN, LTN)), "today"),
    }


def _svg(figure: Figure, name: str) -> Any:
    from markupsafe import Markup

    return Markup(pictures.svg(figure, name))


def _today(runs: Runs, modern: Runs) -> list[dict[str, Any]]:
    return [
        {
            "network": case.network.name,
            "kind": case.network.kind,
            "variant": case.variant,
            "period": runs.gain(case),
            "modern": modern.gain(case.but(profile=MODERN)),
        }
        for of in (LFN, SFN, LTN)
        for case in runs.cases(network=of, eten=NOTIFIED, bit_error_rate=HIGH, errors="both")
    ]


def _table(runs: Runs) -> dict[str, Any]:
    variants = [(recovery, eten) for recovery in RECOVERIES for eten in ETENS]
    rows = []
    for of in runs.networks():
        for rate in runs.error_rates(of):
            cases = [
                Case(recovery, eten, of.rate_bps, of.one_way_delay_s, rate, "both", PERIOD)
                for recovery, eten in variants
            ]
            rows.append(
                {
                    "network": of.name,
                    "bit_error_rate": rate,
                    "goodputs": [runs.goodput(case) for case in cases],
                }
            )
    return {"variants": [case.variant for case in cases], "rows": rows}


def _listed(written: Callable[[float], str], values: Iterable[float]) -> str:
    *most, last = (written(value) for value in sorted(values))
    return f"{', '.join(most)} and {last}"
