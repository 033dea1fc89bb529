"""The last-hop router's buffer on the test-bed (§3.3.3): tables 3.8, 3.9."""

from __future__ import annotations

from itertools import pairwise

from lasthop.publications.obanaik2003.fairness import bed, simulation, single, words
from lasthop.publications.obanaik2003.fairness.bed import BUFFERS, VARIANTS
from lasthop.publications.obanaik2003.fairness.simulation import LTN, SLOW
from lasthop.publications.study import draw
from lasthop.publications.study.runs import Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Check, Judgement, above, every

_KEY = "buffer_packets"


def cells() -> list[Cell]:
    """Every policy with every buffer."""
    return [
        bed.cell(link, variant, buffer=size)
        for link in (SLOW, LTN)
        for variant in VARIANTS
        for size in BUFFERS
    ]


def _grows(runs: Runs, metric: str, scale: float, unit: str) -> Judgement:
    grows, summary = [], []
    for link in (SLOW, LTN):
        for variant in VARIANTS:
            cases = runs.cases(link=link, **variant.case)
            means = [words.value(runs, case, metric) for case in cases]
            grows += [
                Check(runs.difference(after, before, metric), above(0.0))
                for before, after in pairwise(cases)
            ]
            summary.append(
                f"{bed.where(cases[0])} {' '.join(f'{mean / scale:.3g}' for mean in means)}"
            )
    sizes = ", ".join(map(str, BUFFERS))
    return every(grows).judged(f"With {sizes} packets, {unit}: {'; '.join(summary)}.")


def _outcome(runs: Runs) -> str:
    plain = runs.cases(link=SLOW, policy="standard")
    summary = ", ".join(f"{words.value(runs, case, 'rtt_s') * 1e3:.0f}" for case in plain)
    return f"Over the slow link the standard's round trips are {summary} ms."


STUDY = Study(
    publication=simulation.PUBLICATION,
    experiment="fairness/testbed-buffers",
    title="The test-bed's path: the last-hop router's buffer",
    asks="What do larger buffers give on the test-bed's path, and at what price?",
    where="§3.3.3, tables 3.8, 3.9",
    method=bed.METHOD,
    cells=cells,
    observe=bed.observe(single.FOLLOWED),
    measures=(*bed.MEASURES, simulation.RTT),
    figures=[
        Drawn(
            "Goodput and round trip of connection 3, by the last-hop router's buffer.",
            lambda runs: draw.panels(
                runs,
                [
                    [bed.panel(link, "payload_bps", "goodput, kb/s", 1e3) for link in (SLOW, LTN)],
                    [bed.panel(link, "rtt_s", "round trip, s") for link in (SLOW, LTN)],
                ],
                _KEY,
                "buffer, packets",
                {size: str(size) for size in BUFFERS},
            ),
        )
    ],
    keys=bed.KEYS,
    tests={
        "more-goodput": lambda runs: _grows(runs, "payload_bps", 1e3, "kb/s"),
        "longer-rtt": lambda runs: _grows(runs, "rtt_s", 1.0, "s"),
    },
    outcome=_outcome,
)
