"""Experiments with attackers and misbehaving receivers: their defences, and what a bound costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.bbn8333.cases import NONE
from lasthop.publications.study import draw
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.study import Measure, mean
from lasthop.publications.study.verdict import Check, Joint, Verdict, between, every
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl

#: Believed notices in a round trip: some more than 1.7 % of what is in flight here.
LIMIT = 10
ALL = "all"
DEFENCES: Mapping[str, Mapping[str, Any]] = {
    NONE: {},
    "limit": {"limit": LIMIT},
    "trust": {"trust": True},
    "nonce": {"nonce": True},
    ALL: {"nonce": True, "trust": True, "limit": LIMIT},
}
NAMES = {
    NONE: "no defence",
    "limit": f"a limit of {LIMIT}",
    "trust": "trust",
    "nonce": "nonces",
    ALL: "all three",
}
LINES = tuple(
    draw.Line(NAMES[defences], {"defences": defences, "sent": "notices"}, colour, marker, style)
    # What lies upon another is broken: some defences make no difference to others.
    for defences, colour, marker, style in (
        (NONE, pictures.BLACK, "s", "-"),
        ("limit", pictures.PURPLE, "v", "--"),
        ("trust", pictures.ORANGE, "^", ":"),
        ("nonce", pictures.BLUE, "o", "-"),
        (ALL, pictures.GREEN, "D", "--"),
    )
)

_BOTTLENECK_BPS = 10e6
#: Of the bursts that overflow the bottleneck half of the time; 0 are next to none.
BURSTS_BPS = 12_000_000
#: Corrupts 1.7 % of full-sized packets.
BIT_ERROR_RATE = 2e-6

#: Where a flood meets its victim: who else loses packets there.
PATHS: Mapping[str, Mapping[str, Any]] = {
    "corruption": {"bit_error_rate": BIT_ERROR_RATE, "bursts_bps": 0},
    "congestion": {"bit_error_rate": 0.0, "bursts_bps": BURSTS_BPS},
    "corruption and congestion": {"bit_error_rate": BIT_ERROR_RATE, "bursts_bps": BURSTS_BPS},
}
CONGESTION = PATHS["congestion"]


def bursts(rate_bps: int) -> str:
    """The rate of the scenarios' bursts."""
    return f"{rate_bps or 1000} bit/s"


def victim(path: Mapping[str, Any], defences: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Settings of the victim over a path; without ETEN if `defences` is None."""
    eten: Mapping[str, Any] = {"report": NONE}
    if defences is not None:
        eten = {"report": "backward", "notice_size": "56 B", "defences": defences}
    return {
        "links.1.errors.bit": path["bit_error_rate"],
        "flows.0.tcp.eten": eten,
        "flows.1.traffic.udp.rate": bursts(path["bursts_bps"]),
    }


def case(path: Mapping[str, Any], eten: str, defences: str, sent: str, **more: Any) -> Case:
    """Of a victim."""
    who = {"recovery": "sack", "eten": eten, "rate_bps": _BOTTLENECK_BPS}
    return Case(**who, **path, defences=defences, sent=sent, **more)


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """What becomes of the victim."""
    own = rows.filter(rows["flow"] == "victim")
    names = ("goodput_bps", "segments", "timeouts")
    return {**{name: own[name].to_list() for name in names}, "believed": own["notices"].to_list()}


def forged(runs: Runs, defences: str, **where: Any) -> list[Case]:
    """The cases in which notices are forged, against these defences."""
    return runs.cases(defences=defences, sent="notices", **where)


def inert(case: Case) -> Case:
    """The same with datagrams instead of notices."""
    return case.but(sent="datagrams")


def plain(case: Case) -> Case:
    """The same with a sender without ETEN."""
    return case.but(eten=NONE, defences=NONE, sent="datagrams")


def over_inert(runs: Runs, case: Case) -> Estimate | None:
    """The goodput over that with inert datagrams: what the reaction costs."""
    return runs.ratio(case, inert(case), "goodput_bps") if case["sent"] == "notices" else None


def over_plain(runs: Runs, case: Case) -> Estimate | None:
    """Segments sent over those of a plain sender."""
    return None if case == plain(case) else runs.ratio(case, plain(case), "segments")


# --- Bounds ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """What runs say to a bound on the ratios of some pairs of cases."""

    cells: Joint
    #: The pair that is nearest to the bound or the furthest beyond it.
    case: Case
    ratio: Estimate

    @property
    def verdict(self) -> Verdict:
        """Of all pairs together."""
        return self.cells.verdict

    @property
    def criterion(self) -> str:
        """What decides it, in words."""
        return self.cells.criterion


def held(
    runs: Runs,
    pairs: Sequence[tuple[Case, Case]],
    metric: str,
    *,
    least: float = 0.0,
    most: float = math.inf,
) -> Held:
    """Whether the means of the first are so many times those of the second in every pair."""
    found = [(case, runs.ratio(case, to, metric)) for case, to in pairs]
    ratios = [(case, ratio) for case, ratio in found if ratio is not None]
    cells = every([Check(ratio, between(least, most)) for _, ratio in ratios])
    pick, end = (max, "hi") if math.isfinite(most) else (min, "lo")
    case, ratio = pick(ratios, key=lambda found: float(getattr(found[1], end)))
    return Held(cells, case, ratio)


#: Of questions about notices that are forged in the network.
MEASURES = (
    mean("goodput_bps", "bit/s", "goodput, kb/s", 1e3),
    Measure("goodput_over_inert", "1", "over inert", over_inert),
    Measure("segments_over_plain", "1", "segments over plain", over_plain),
    mean("believed", "1", "believed notices"),
    mean("timeouts", "1", "timeouts"),
)
CAPTION = "Goodput over that beside inert datagrams, and segments over those of a plain sender."
BOUNDS = (
    "A bound holds if all intervals lie within it, and does not if one lies beyond it although"
    " widened so that all hold together with 95 % confidence. Else it is open."
)


def keys(key: str, words: str) -> dict[str, str]:
    """The keys of their cases; `key` is how much is forged."""
    return {
        "bit_error_rate": "bit errors",
        "bursts_bps": "bursts, bit/s",
        key: words,
        "eten": "ETEN",
        "defences": "defences",
        "sent": "sent",
    }


# --- Misbehaving receivers ---------------------------------------------------------------------

MISBEHAVING, HONEST = "misbehaving", "honest"
#: When the neighbour starts: two connections alone keep in step, each time in another one.
STARTS: Mapping[str, Sequence[str]] = {"flows.1.start": [f"{100 * n + 50} ms" for n in range(30)]}


def shares(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """What the misbehaving receiver and its neighbour get."""
    own, other = (rows.filter(rows["flow"] == flow) for flow in (MISBEHAVING, HONEST))
    return {
        "goodput_bps": own["goodput_bps"].to_list(),
        "others_goodput_bps": other["goodput_bps"].to_list(),
        "believed": own["notices"].to_list(),
    }
