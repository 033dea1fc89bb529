"""The policy off on connection 3 of the test-bed (§3.3.5): tables 3.12, 3.13."""

from __future__ import annotations

from lasthop.publications.obanaik2003.fairness import bed, simulation, words
from lasthop.publications.obanaik2003.fairness.bed import VARIANTS
from lasthop.publications.obanaik2003.fairness.simulation import ALL, LTN, OTHERS, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Check, Judgement, above, every
from lasthop.publications.study.words import NEGLIGIBLE

_METRIC = "payload_bps"


def cells() -> list[Cell]:
    """Every policy on all connections, and on all but the third."""
    return [
        bed.cell(link, variant, enabled=enabled)
        for link in (SLOW, LTN)
        for variant in VARIANTS[1:]
        for enabled in (ALL, OTHERS)
    ]


def _pairs(runs: Runs) -> list[tuple[Case, Case]]:
    return [(case, case.but(enabled=ALL)) for case in runs.cases(enabled=OTHERS)]


def _better(runs: Runs) -> Judgement:
    pairs = _pairs(runs)
    summary = words.ratios(runs, pairs, _METRIC, bed.where)
    better = [Check(runs.ratio(*pair, _METRIC), above(1 + NEGLIGIBLE)) for pair in pairs]
    return every(better).judged(f"Goodput without the policy over that with it: {summary}.")


def _outcome(runs: Runs) -> str:
    ratios = bed.known(runs, _pairs(runs), _METRIC)
    return f"It multiplies goodput by {min(ratios):.2f} to {max(ratios):.2f}."


STUDY = Study(
    publication=simulation.PUBLICATION,
    experiment="fairness/testbed-disabled",
    title="The test-bed's path: the policy off where the last hop is slow",
    asks="What if connection 3 has the standard policy, and the others one of the policies?",
    where="§3.3.5, tables 3.12, 3.13",
    method=bed.METHOD,
    cells=cells,
    observe=bed.observe(),
    measures=bed.MEASURES,
    figures=[
        Drawn(
            "Goodput of connection 3, by who has the policy.",
            lambda runs: draw.panels(
                runs,
                [[bed.panel(link, _METRIC, "goodput, kb/s", 1e3) for link in (SLOW, LTN)]],
                "enabled",
                "who has the policy",
                {ALL: "all", OTHERS: "all but connection 3"},
            ),
        )
    ],
    keys=bed.KEYS,
    tests={"better-without": _better},
    most_seeds=simulation.MOST_SEEDS,
    outcome=_outcome,
)
