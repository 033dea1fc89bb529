"""Means and ratios with their 95 % confidence intervals.

Runs of two variants with the same seed draw the same random numbers where possible. A ratio is
therefore taken over pairs of runs: the variation that a pair shares does not widen its interval.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

CONFIDENCE = 0.95
#: The logarithm of the widest spread that is distinguished from a wider one.
_WIDEST = 300.0


@dataclass(frozen=True)
class Estimate:
    """A value and its confidence interval."""

    value: float
    lo: float
    hi: float
    #: How many runs it is made from.
    n: int
    #: Whether the interval is symmetric about the value's logarithm, as a ratio's is.
    log: bool = field(default=False, compare=False, repr=False)

    @property
    def half(self) -> float:
        """Half the interval's width; the interval of a ratio is not quite symmetric."""
        return (self.hi - self.lo) / 2

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.lo:.4g}, {self.hi:.4g}]"


@functools.lru_cache
def student_t(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The half width of a two-sided interval, in standard errors."""
    # As scipy.stats does, which takes most of a second to import.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + confidence) / 2))


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
        return Estimate(ratio, ratio, ratio, 1, log=True)
    # Each pair's share of the error of log(top / bottom).
    errors = [a / top - b / bottom for a, b in zip(numerators, denominators, strict=True)]
    error = math.sqrt(math.fsum(e * e for e in errors) / (n - 1) / n)
    # Two pairs, at a confidence close to 1, can leave an interval that is wider than floats go.
    spread = math.exp(min(student_t(n - 1, confidence) * error, _WIDEST)) if error else 1.0
    return Estimate(ratio, ratio / spread, ratio * spread, n, log=True)


def quotient(numerator: Estimate, denominator: Estimate) -> Estimate:
    """One estimate over another of independent runs, both above zero."""
    n = min(numerator.n, denominator.n)
    ratio = numerator.value / denominator.value
    if n < 2:
        return Estimate(ratio, ratio, ratio, n, log=True)
    error = math.hypot(*(_log_error(of) for of in (numerator, denominator)))
    spread = math.exp(min(student_t(n - 1) * error, _WIDEST))
    return Estimate(ratio, ratio / spread, ratio * spread, n, log=True)


def _log_error(of: Estimate) -> float:
    """The standard error of the logarithm."""
    if of.log:
        return math.log(of.hi / of.lo) / 2 / student_t(of.n - 1)
    return of.half / of.value / student_t(of.n - 1)


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
    if len(logs) < 2:
        raise ValueError("one pair of runs says nothing about the spread")
    lo, hi = single_range(logs, confidence)
    return math.exp(lo), math.exp(hi)


def single_range(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Where one more value would fall (the prediction interval), if values are normal."""
    n = len(values)
    if n < 2:
        raise ValueError("one run says nothing about the spread")
    middle = statistics.fmean(values)
    reach = statistics.stdev(values, middle) * math.sqrt(1 + 1 / n)
    reach *= student_t(n - 1, confidence)
    return middle - reach, middle + reach


# --- Tests of one value ----------------------------------------------------------------------


def p_above(estimate: Estimate, bound: float) -> float:
    """The one-sided p-value of "the true value is at most `bound`": small if it is above.

    It is at most (1 - CONFIDENCE) / 2 exactly where the whole interval is above. One run alone
    shows nothing: its p-value is 1.
    """
    return _tail(estimate, bound, 1.0)


def p_below(estimate: Estimate, bound: float) -> float:
    """The same of "the true value is at least `bound`"."""
    return _tail(estimate, bound, -1.0)


def _tail(estimate: Estimate, bound: float, sign: float) -> float:
    if estimate.n < 2:
        return 1.0
    distance = sign * errors_from(estimate, bound)
    if math.isinf(distance) or distance == 0:
        return 0.0 if distance > 0 else 1.0
    from scipy.special import stdtr

    return float(stdtr(estimate.n - 1, -distance))


def errors_from(estimate: Estimate, bound: float) -> float:
    """How many standard errors the value lies above a bound; below zero: below it. Infinite if
    there is no spread, and zero on the bound itself, whatever the spread."""
    if not math.isfinite(estimate.value) or estimate.value == bound:
        return 0.0
    log = estimate.log and estimate.lo > 0
    if log and bound <= 0:
        return math.inf
    scale = math.log if log else float
    distance = scale(estimate.value) - scale(bound)
    # Of an interval that is not symmetric, the half towards the bound counts.
    end = estimate.lo if distance > 0 else estimate.hi
    if not math.isfinite(end):
        return 0.0
    half = abs(scale(estimate.value) - scale(end))
    if half == 0:
        return math.copysign(math.inf, distance)
    return distance / half * student_t(estimate.n - 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for their number by Holm's method, in the same order.

    S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Stat. 6 (1979).
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def jain(rates: Sequence[float]) -> float:
    """Jain's fairness index: 1 if all have as much, 1 / n if one has everything."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 1.0
