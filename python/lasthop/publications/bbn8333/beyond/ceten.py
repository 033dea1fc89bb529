"""What the experiments with cumulative ETEN share: a bottleneck that drops and corrupts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study import draw
from lasthop.publications.study.runs import Case, Cell
from lasthop.scenario import Scenario
from lasthop.stats import jain

if TYPE_CHECKING:
    import polars as pl

#: What a sender makes of the two survival probabilities.
STRATEGIES = ("published", "loss-ratio", "adaptive")
#: Weight of a new sample in the report's simulations.
PUBLISHED_A = 0.5
#: The strategy that averages over long windows takes no more.
ADAPTIVE_A = 1 / 64
#: Connections that know no ETEN.
OTHERS = 4
#: Of the bottleneck.
BIT_ERROR_RATES = (0.0, 1.56e-7, 1.56e-6, 5e-6, 1.56e-5)
MEDIUM, HIGH = BIT_ERROR_RATES[2], BIT_ERROR_RATES[-1]
SEEDS, QUICK_SEEDS = 10, 1

#: One sender with one weight or form, as a method says it.
ONE_SENDER = (
    "One Reno connection with cumulative ETEN, alone or beside four Reno connections without,"
    " over a bottleneck of 1.5 Mb/s with a drop-tail queue of 50 packets and bit errors in both"
    " directions; a round trip of 140 ms, windows of 100 segments, 120 s."
)

_BOTTLENECK_BPS = 1.5e6
_OWN = "own"

LINES = (
    draw.Line("no ETEN", {"eten": NONE}, pictures.BLACK, "s"),
    draw.Line("published", {"strategy": "published"}, pictures.PURPLE, "v"),
    draw.Line("loss-ratio", {"strategy": "loss-ratio"}, pictures.BLUE, "o"),
    draw.Line("adaptive", {"strategy": "adaptive"}, pictures.GREEN, "D"),
    draw.Line("Oracle", {"eten": "oracle"}, pictures.ORANGE, "^"),
)


def eten(strategy: str) -> Mapping[str, Any]:
    """The setting of a sender: a strategy of CETEN, "oracle" or "none"."""
    if strategy in STRATEGIES:
        return {"report": "cumulative", "strategy": strategy}
    return {"report": strategy}


def cell(
    scenario: str,
    strategy: str,
    rate: float,
    *,
    own: int = 1,
    others: int = OTHERS,
    a: float | None = None,
    ecn: bool = False,
    settings: Mapping[str, Any] | None = None,
    **case: Any,
) -> Cell:
    """So many connections with a strategy beside so many without."""
    flows = tomllib.loads(Scenario.load(scenario).source)["flows"]
    mine = [flow for flow in flows if flow["from"] == _OWN][:own]
    theirs = [flow for flow in flows if flow["from"] != _OWN][:others]
    for flow in mine:
        flow["tcp"] = {**flow["tcp"], "eten": eten(strategy)}
    for flow in (*mine, *theirs):
        flow["tcp"]["ecn"] = ecn
    cumulative = strategy in STRATEGIES
    what = Case(
        recovery="reno",
        eten="cumulative" if cumulative else strategy,
        strategy=strategy if cumulative else "",
        rate_bps=_BOTTLENECK_BPS,
        bit_error_rate=rate,
        own=own,
        competitors=others,
        **case,
    )
    if a is None:
        a = ADAPTIVE_A if strategy == "adaptive" else PUBLISHED_A
    given = {"links.2.errors.bit": rate, "ceten.a": a, "flows": [*mine, *theirs]}
    return Cell(what, scenario, {**given, **(settings or {})}, SEEDS, QUICK_SEEDS)


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """Who gets what, how fair that is, and what is dropped for it."""
    found: dict[str, list[float | None]] = {}
    for (_,), run in rows.group_by("seed", maintain_order=True):
        rates = list(run["goodput_bps"])
        mine = [rate for rate, start in zip(rates, run["from"], strict=True) if start == _OWN]
        theirs = sum(rates) - sum(mine)
        others = len(rates) - len(mine)
        values = {
            "goodput_bps": sum(mine) / len(mine),
            "others_goodput_bps": theirs / others if others else None,
            "share_of_fair": sum(mine) / len(mine) * len(rates) / sum(rates),
            "fairness": jain(rates),
            "utilisation": sum(rates) / _BOTTLENECK_BPS,
            "dropped_share": run["dropped"][0] / sum(run["segments"]),
            "reductions": sum(
                reductions + timeouts
                for reductions, timeouts, start in zip(
                    run["reductions"], run["timeouts"], run["from"], strict=True
                )
                if start == _OWN
            )
            / len(mine),
        }
        for metric, value in values.items():
            found.setdefault(metric, []).append(value)
    return found
