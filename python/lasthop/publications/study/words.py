"""How numbers are worded, and how exactly a publication's words are taken."""

from __future__ import annotations

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
    """A ratio with its confidence interval."""
    return f"{number(estimate.value)} [{number(estimate.lo)}, {number(estimate.hi)}]"


def phrase(estimate: Estimate | None) -> str:
    """A number with its interval, for sentences."""
    return "not reached" if estimate is None else interval(estimate)


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.3g} %"
