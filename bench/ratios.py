"""Whether what two simulators measure is the same, within a bound that was fixed beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lasthop.stats import CONFIDENCE, holm

AGREES, DIFFERS, UNDECIDED = "agrees", "differs", "undecided"


@dataclass(frozen=True)
class Sample:
    """Runs of one case: how many, their mean and their standard deviation."""

    runs: int
    mean: float
    deviation: float

    @property
    def variance(self) -> float:
        """Of the mean."""
        return self.deviation**2 / self.runs


@dataclass(frozen=True)
class Gap:
    """How far our mean is from a peer's, and how far is no difference."""

    value: float
    error: float
    degrees: float
    bound: float

    @property
    def interval(self) -> tuple[float, float]:
        """Where it lies with 95 % confidence."""
        from scipy.stats import t

        half = float(t.ppf((1 + CONFIDENCE) / 2, self.degrees)) * self.error if self.error else 0.0
        return self.value - half, self.value + half

    @property
    def p_above(self) -> float:
        """The one-sided p-value of "ours is at most the bound above"."""
        return self._tail(self.value - self.bound)

    @property
    def p_below(self) -> float:
        """The one-sided p-value of "ours is at most the bound below"."""
        return self._tail(-self.value - self.bound)

    def _tail(self, beyond: float) -> float:
        from scipy.stats import t

        if not self.error:
            return 0.0 if beyond > 0 else 1.0
        return float(t.sf(beyond / self.error, self.degrees))


def ratio(ours: Sample, peers: Sample, bound: float) -> Gap:
    """The logarithm of the ratio of two means, by the delta method; the bound is a share."""
    return _gap(
        math.log(ours.mean / peers.mean),
        (ours.variance / ours.mean**2, ours.runs),
        (peers.variance / peers.mean**2, peers.runs),
        math.log(1 + bound),
    )


def difference(ours: Sample, peers: Sample, bound: float) -> Gap:
    """The difference of two means."""
    value = ours.mean - peers.mean
    return _gap(value, (ours.variance, ours.runs), (peers.variance, peers.runs), bound)


def _gap(value: float, ours: tuple[float, int], peers: tuple[float, int], bound: float) -> Gap:
    """The samples are independent, and their variances are not the same (Welch 1947)."""
    variance = ours[0] + peers[0]
    shares = sum(one**2 / (runs - 1) for one, runs in (ours, peers) if one)
    degrees = variance**2 / shares if shares else math.inf
    return Gap(value, math.sqrt(variance), degrees, bound)


def verdicts(cells: Sequence[Sequence[Gap]]) -> list[str]:
    """What is to be said of each cell, which has a gap to each of the peers of its kind.

    A cell *agrees* if its intervals show ours to be within the bound of the span of the peers: no
    further above one of them, and no further below one of them. It *differs* if ours is shown to be
    further above all of them, or further below all, at a level that is corrected for the number of
    cells. Everything else is *undecided*.
    """
    outside = holm([_p_outside(gaps) for gaps in cells])
    return [
        DIFFERS if p < 1 - CONFIDENCE else AGREES if _is_within(gaps) else UNDECIDED
        for gaps, p in zip(cells, outside, strict=True)
    ]


def _p_outside(gaps: Sequence[Gap]) -> float:
    """Two-sided: beyond all on one side is the least sure of them."""
    above, below = max(gap.p_above for gap in gaps), max(gap.p_below for gap in gaps)
    return min(1.0, 2 * min(above, below))


def _is_within(gaps: Sequence[Gap]) -> bool:
    return any(gap.interval[1] <= gap.bound for gap in gaps) and any(
        gap.interval[0] >= -gap.bound for gap in gaps
    )


def nearest(gaps: Sequence[Gap]) -> Gap:
    """The gap to the peer on whose side ours is outside of their span, or else none."""
    values = [gap.value for gap in gaps]
    if min(values) <= 0 <= max(values):
        at_least = max(gaps, key=lambda gap: gap.error)
        return Gap(0.0, at_least.error, at_least.degrees, at_least.bound)
    return min(gaps, key=lambda gap: abs(gap.value))


def mean(gaps: Sequence[Gap], bound: float) -> Gap:
    """The mean of independent gaps, with the chance that is in each."""
    error = math.sqrt(math.fsum(gap.error**2 for gap in gaps)) / len(gaps)
    return Gap(math.fsum(gap.value for gap in gaps) / len(gaps), error, math.inf, bound)


def together(gaps: Sequence[Gap]) -> dict[str, float | bool]:
    """Of gaps to several peers, whether they are shown to be within the bound, and the p-value of
    their being within."""
    return {"small": _is_within(gaps), "p_outside": _p_outside(gaps)}


def in_step(gaps: Sequence[Gap]) -> Gap:
    """The mean of gaps that share their chance: it does not average out."""
    value = math.fsum(gap.value for gap in gaps) / len(gaps)
    error = math.fsum(gap.error for gap in gaps) / len(gaps)
    return Gap(value, error, min(gap.degrees for gap in gaps), gaps[0].bound)


def sign_test(above: int, below: int) -> float:
    """The two-sided p-value of "above is as likely as below"."""
    from scipy.stats import binomtest

    return float(binomtest(above, above + below).pvalue) if above + below else 1.0
