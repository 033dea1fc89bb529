"""Published numbers on the report of a simulation: what is measured, and what would explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lasthop import pictures
from lasthop.publications.bbn8333 import figures
from lasthop.publications.bbn8333.cases import PERIOD, Case, Runs
from lasthop.publications.bbn8333.findings import Evidence
from lasthop.publications.bbn8333.variations import Moved
from lasthop.publications.rows import Finding
from lasthop.publications.study.published import published

Ratios = Sequence[Mapping[str, Any]]


def case_of(ratio: Mapping[str, Any]) -> Case:
    """The cell that a published ratio is of."""
    return Case(**ratio["case"], profile=PERIOD)


def ratios(stated: Ratios, runs: Runs, found: Sequence[Finding]) -> list[dict[str, Any]]:
    """Every published ratio beside the measured one."""
    by_id = {finding.id: finding for finding in found}
    return [
        {
            "network": case.network.name,
            "kind": case.network.kind,
            "variant": case.variant,
            "published": published(ratio).words,
            "gain": runs.gain(case),
            "single": runs.single_gain(case),
            "finding": by_id[ratio["id"]],
        }
        for ratio in stated
        for case in (case_of(ratio),)
    ]


def why(stated: Ratios, evidence: Evidence) -> dict[str, Any] | None:
    """What every variation makes of the published ratios, if any was tried."""
    if not stated or not evidence.variations:
        return None
    from markupsafe import Markup

    moves = [evidence.moved(case_of(ratio)) for ratio in stated]
    drawn = figures.factors(evidence, [(case_of(ratio), ratio["value"]) for ratio in stated])
    return {
        "cause": cause(stated, moves),
        "svg": Markup(pictures.svg(drawn, "factors")),
        "variations": [
            {
                "name": variation.name,
                "about": variation.about,
                "moved": [_of(variation.id, of_one) for of_one in moves],
            }
            for variation in evidence.variations
        ],
    }


def _of(id: str, moves: Sequence[Moved]) -> Moved:
    return next(move for move in moves if move.variation.id == id)


def cause(stated: Ratios, moves: Sequence[Sequence[Moved]]) -> str:
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
