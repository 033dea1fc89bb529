"""How numbers are worded, and how exactly a publication's words are taken."""

from __future__ import annotations

import math
from collections.abc import Callable

from lasthop import units
from lasthop.stats import Estimate

#: "Relatively small", "close to", "alike": less than this apart.
SMALL = 0.10
#: "No help": less than this.
NOTHING = 0.02
#: "Worse": more than this.
NEGLIGIBLE = 0.01
#: "Markedly": at least this.
MARKED = 0.25

#: With fewer, intervals are too wide for most statements: much stays undecided.
FEW_SEEDS = 10


def number(value: float) -> str:
    """A ratio with three significant digits; near 1 with one more."""
    return f"{value:.3f}" if 0.9 < value < 1.1 else units.significant(value)


def interval(estimate: Estimate) -> str:
    """A ratio with its confidence interval, or why that has no width."""
    lo, hi = number(estimate.lo), number(estimate.hi)
    if lo == hi:
        return f"{number(estimate.value)} ({ends(estimate)})"
    return f"{number(estimate.value)} [{lo}, {hi}]"


def ends(estimate: Estimate, words: Callable[[float], str] = number) -> str:
    """The ends of an interval; of one that has no width, or none that shows, why."""
    if estimate.lo == estimate.hi:
        return "one run" if estimate.n == 1 else f"all {estimate.n} runs alike"
    lo, hi = (words(end) if math.isfinite(end) else "…" for end in (estimate.lo, estimate.hi))
    return f"{lo} to {hi}" if lo != hi else f"± {units.significant(estimate.half, 1)}"


def phrase(estimate: Estimate | None) -> str:
    """A number with its interval, for sentences."""
    return "not reached" if estimate is None else interval(estimate)


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.3g} %"
