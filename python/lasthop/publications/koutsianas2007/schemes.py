"""The schemes: indications of a change of the path, and the reactions to them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.study.draw import Line
from lasthop.publications.study.runs import Case, Runs
from lasthop.scenario import Scenario
from lasthop.stats import CONFIDENCE, Estimate

if TYPE_CHECKING:
    import polars as pl

PUBLICATION = "koutsianas2007"

#: No indication; RLCI to the letter of the report; RLCI without its gaps; the same with one probe
#: for all connections of a host.
STANDARD, RLCI, CORRECTED, SHARED = "standard", "rlci", "corrected", "shared"
#: As the book and the pages call them.
NAMES: Mapping[str, str] = {
    STANDARD: "standard TCP",
    RLCI: "RLCI as published",
    CORRECTED: "RLCI corrected",
    SHARED: "RLCI, one probe",
}
LINES: Mapping[str, Line] = {
    scheme: Line(NAMES[scheme], {"scheme": scheme}, colour, marker, style)
    for scheme, colour, marker, style in (
        (STANDARD, pictures.BLACK, "s", "-"),
        (RLCI, pictures.BLUE, "o", "-"),
        # Where the two are alike, one shows through the other.
        (CORRECTED, pictures.GREEN, "D", "--"),
        (SHARED, pictures.ORANGE, "^", "-"),
    )
}

#: Room that a segment of RLCI leaves for its option, so that it carries as much as the others.
_OPTION_BYTES = 8
#: Of an interval by resampling.
_RESAMPLES = 1000
#: Where the host that moves is, and when.
ATTACHED = "nodes.phone.attached.at"


def table(scenario: str) -> dict[str, Any]:
    """What a file says."""
    return tomllib.loads(Scenario.load(scenario).source)


def flows(scenario: str) -> list[dict[str, Any]]:
    """Those of a file."""
    found: list[dict[str, Any]] = table(scenario)["flows"]
    return found


def tcp(base: Mapping[str, Any], scheme: str) -> dict[str, Any]:
    """The settings of a flow with a scheme, given those of standard TCP."""
    if scheme == STANDARD:
        return dict(base)
    rlci = {"mechanism": "rlci", "strict": scheme == RLCI}
    return {**base, "mss": base["mss"] + _OPTION_BYTES, "mechanisms": [rlci]}


def host(scheme: str) -> dict[str, Any]:
    """Settings of the host that moves."""
    return {"nodes.phone.shared_probe": True} if scheme == SHARED else {}


def seconds(value: float) -> str:
    """As scenarios have it, to the microsecond."""
    return f"{round(1e6 * value)} us"


def attached(left: float, back: float) -> dict[str, Any]:
    """When it moves: it leaves the first access point, and is back at the second."""
    return {
        ATTACHED: [
            {"to": "ap1", "start": "0 s", "end": seconds(left)},
            {"to": "ap2", "start": seconds(back)},
        ]
    }


def moves(run: pl.DataFrame) -> tuple[float, float]:
    """When it left and was back, of a run's rows in which that was drawn."""
    at = tomllib.loads(f"at = {run[ATTACHED][0]}")["at"]
    return _read(at[0]["end"]), _read(at[1]["start"])


def starts(run: pl.DataFrame) -> list[float]:
    """When each flow started, where that was drawn."""
    return [_read(run[f"flows.{flow}.start"][0]) for flow in range(len(run))]


def _read(text: str) -> float:
    return float(text.removesuffix(" us")) / 1e6


def against_standard(metric: str) -> Callable[[Runs, Case], Estimate | None]:
    """The mean of standard TCP less that of a case, over pairs of runs."""

    def of(runs: Runs, case: Case) -> Estimate | None:
        standard = case.but(scheme=STANDARD)
        return None if standard == case else runs.difference(standard, case, metric)

    return of


def deviation(runs: Sequence[Sequence[float]]) -> Estimate | None:
    """The standard deviation of all values of all runs; its interval is that of resampled runs,
    since the values of a run depend on each other."""
    import numpy as np

    if sum(map(len, runs)) < 2:
        return None
    value = float(np.concatenate(list(map(np.array, runs))).std(ddof=1))
    # The same values give the same interval.
    drawn = np.random.default_rng(len(runs)).integers(0, len(runs), (_RESAMPLES, len(runs)))
    sums = np.array([[len(run), sum(run), sum(v * v for v in run)] for run in runs], dtype=float)
    n, total, squares = sums[drawn].sum(axis=1).T
    spread = np.sqrt(np.maximum(squares - total * total / n, 0.0) / (n - 1))
    lo, hi = np.quantile(spread, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(value, min(value, float(lo)), max(value, float(hi)), len(runs))
