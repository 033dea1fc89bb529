"""How measured numbers are worded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lasthop import units
from lasthop.publications.obanaik2003.fairness.policies import NAMES, NO_RTT, PROPAGATION
from lasthop.publications.study.runs import Case, Runs
from lasthop.stats import Estimate


def value(runs: Runs, case: Case, metric: str) -> float:
    """The mean."""
    estimate = runs.mean(case, metric)
    assert estimate is not None, (case, metric)
    return estimate.value


def number(estimate: Estimate | None, scale: float = 1.0) -> str:
    """A mean and its interval."""
    if estimate is None:
        return "nothing"
    lo, middle, hi = (
        units.significant(end / scale) for end in (estimate.lo, estimate.value, estimate.hi)
    )
    return f"{middle} [{lo}, {hi}]"


def policy(case: Mapping[str, Any]) -> str:
    """Its name, with the round trip that it goes by and its constant where there are several."""
    found = NAMES[case["policy"]]
    if case.get("c"):
        found += f" (c = {case['c']:g})"
    if case.get("cap"):
        found += f" (cap {case['cap']:g})"
    return found + (" by propagation" if case.get("rtt", NO_RTT) == PROPAGATION else "")


def each(
    runs: Runs,
    cases: Iterable[Case],
    metric: str,
    scale: float = 1.0,
    of: Callable[[Case], str] = policy,
) -> str:
    """The means of several cases."""
    return ", ".join(f"{of(case)} {number(runs.mean(case, metric), scale)}" for case in cases)


def ratios(
    runs: Runs,
    pairs: Iterable[tuple[Case, Case]],
    metric: str,
    of: Callable[[Case], str] = policy,
) -> str:
    """Each case over the one beside it."""
    return ", ".join(f"{of(a)} {number(runs.ratio(a, b, metric))}" for a, b in pairs)
