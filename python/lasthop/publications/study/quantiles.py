"""Quantiles and shares with their 95 % confidence intervals.

A value that is None is longer than any other: a transfer that did not end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lasthop.stats import CONFIDENCE, Estimate

#: Of a resampled interval.
_RESAMPLES = 1000


def _place(n: int, share: float) -> int:
    """Which of n sorted values it is, from 0."""
    return min(n - 1, max(0, math.ceil(share * n) - 1))


def _binomial(q: float, n: int, share: float) -> int:
    """The quantile of the number of n that are of a share."""
    import numpy as np
    from scipy.special import bdtr

    return int(np.searchsorted(bdtr(np.arange(n), n, share), q))


def interval(values: Sequence[float | None], share: float) -> Estimate:
    """The value that this share of all stays below, at most infinity, and its interval by order
    statistics: no distribution is assumed."""
    n = len(values)
    found = sorted(math.inf if value is None else value for value in values)
    tail = (1 - CONFIDENCE) / 2
    lo = _binomial(tail, n, share) - 1
    hi = _binomial(1 - tail, n, share)
    return Estimate(found[_place(n, share)], found[max(lo, 0)], found[min(hi, n - 1)], n)


def ratio(
    numerators: Sequence[float | None], denominators: Sequence[float | None], share: float
) -> Estimate | None:
    """The quantile of some values over that of others, paired; its interval is between the
    quantiles of resampled pairs. None if one of the two is infinite."""
    import numpy as np

    n = min(len(numerators), len(denominators))
    tops, bottoms = (
        np.array([math.inf if value is None else value for value in values[:n]])
        for values in (numerators, denominators)
    )
    place = _place(n, share)

    def of(values: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.partition(values, place, axis=-1)[..., place]
        return found

    top, bottom = float(of(tops)), float(of(bottoms))
    if not (math.isfinite(top) and math.isfinite(bottom)):
        return None
    # The same numbers give the same interval.
    drawn = np.random.default_rng(n).integers(0, n, (_RESAMPLES, n))
    with np.errstate(invalid="ignore"):
        resampled = of(tops[drawn]) / of(bottoms[drawn])
    resampled = np.sort(np.where(np.isnan(resampled), 1.0, resampled))
    tail = (1 - CONFIDENCE) / 2
    lo, hi = (float(resampled[_place(_RESAMPLES, q)]) for q in (tail, 1 - tail))
    return Estimate(top / bottom, lo, hi, n)


def proportion(count: int, n: int) -> Estimate:
    """The share `count` of `n`, with Wilson's score interval."""
    from scipy.special import ndtri

    z = float(ndtri((1 + CONFIDENCE) / 2))
    share = count / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Both are the same for none and for all, but for the last digit of floats.
    lo = 0.0 if count == 0 else max(0.0, middle - half)
    hi = 1.0 if count == n else min(1.0, middle + half)
    return Estimate(share, lo, hi, n)
