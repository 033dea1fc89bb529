"""Means and ratios with their 95 % confidence intervals.

Runs of two variants with the same seed meet the same luck where the simulator can give it to
them, so a ratio is taken over pairs: what the pairs share does not widen its interval.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
#: The logarithm of the widest spread that is told apart from a wider one.
_WIDEST = 300.0


@dataclass(frozen=True)
class Estimate:
    """A value and the interval that it lies in with the given confidence."""

    value: float
    lo: float
    hi: float
    #: How many runs it is made from.
    n: int

    @property
    def half(self) -> float:
        """Half the interval's width; the interval of a ratio is not quite symmetric."""
        return (self.hi - self.lo) / 2

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.lo:.4g}, {self.hi:.4g}]"


@functools.lru_cache
def student_t(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The half width of a two-sided interval, in standard errors."""
    from scipy.stats import t

    return float(t.ppf((1 + confidence) / 2, degrees))


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """The mean and its interval by Student's t.

    One value alone has no known spread: its interval is the value itself, and `n` says why.
    """
    n = len(values)
    if n == 0:
        raise ValueError("no values to take the mean of")
    mean = statistics.fmean(values)
    return interval(mean, statistics.stdev(values, mean) if n > 1 else 0.0, n, confidence)


def interval(mean: float, deviation: float, n: int, confidence: float = CONFIDENCE) -> Estimate:
    """The same for values of which only these are known: `n`, mean, and standard deviation."""
    error = deviation / math.sqrt(n)
    half = student_t(n - 1, confidence) * error if error else 0.0
    return Estimate(mean, mean - half, mean + half, n)


def ratio_interval(
    numerators: Sequence[float], denominators: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate:
    """mean(numerators) / mean(denominators) over pairs of runs, and its interval.

    The interval is the delta method's on the logarithm of the ratio, with Student's t: it never
    reaches below zero, and the ratio's inverse has the inverse interval.
    """
    n = len(numerators)
    if n != len(denominators):
        raise ValueError(f"{n} numerators do not pair with {len(denominators)} denominators")
    if n == 0:
        raise ValueError("no pairs to take the ratio of")
    top, bottom = statistics.fmean(numerators), statistics.fmean(denominators)
    if top <= 0 or bottom <= 0:
        raise ValueError("the ratio of two means needs both above zero")
    ratio = top / bottom
    if n == 1:
        return Estimate(ratio, ratio, ratio, 1)
    # Each pair's share of the error of log(top / bottom).
    errors = [a / top - b / bottom for a, b in zip(numerators, denominators, strict=True)]
    error = math.sqrt(math.fsum(e * e for e in errors) / (n - 1) / n)
    # Two pairs, at a confidence close to 1, can leave an interval that is wider than floats go.
    spread = math.exp(min(student_t(n - 1, confidence) * error, _WIDEST)) if error else 1.0
    return Estimate(ratio, ratio / spread, ratio * spread, n)


def single_ratio_range(
    numerators: Sequence[float], denominators: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Where the ratio of one more pair of runs would fall (the prediction interval).

    A publication that made one run a point is to be compared with this range, not with the much
    narrower interval of the mean. Ratios are taken to be log-normal.
    """
    if min(*numerators, *denominators) <= 0:
        raise ValueError("the ratio of single runs needs all of them above zero")
    logs = [math.log(a / b) for a, b in zip(numerators, denominators, strict=True)]
    n = len(logs)
    if n < 2:
        raise ValueError("one pair of runs says nothing about the spread")
    middle = statistics.fmean(logs)
    reach = statistics.stdev(logs, middle) * math.sqrt(1 + 1 / n)
    reach *= student_t(n - 1, confidence)
    return math.exp(middle - reach), math.exp(middle + reach)


def jain(rates: Sequence[float]) -> float:
    """Jain's fairness index: 1 if all have as much, 1 / n if one has everything."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 1.0
