"""Means and ratios with their intervals, against scipy and against simulation."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from lasthop.stats import Estimate, mean_interval, ratio_interval, single_ratio_range

positive = st.floats(min_value=0.1, max_value=1e9)


@given(st.lists(positive, min_size=2, max_size=40))
def test_the_interval_of_a_mean_is_scipys(values: list[float]) -> None:
    estimate = mean_interval(values)
    error = statistics.stdev(values) / math.sqrt(len(values))
    assert estimate.n == len(values)
    assert estimate.value == pytest.approx(statistics.fmean(values))
    if error > 0:
        lo, hi = scipy_stats.t.interval(0.95, len(values) - 1, estimate.value, error)
        assert (estimate.lo, estimate.hi) == pytest.approx((lo, hi), abs=1e-6 * estimate.value)


def test_one_value_and_equal_values_have_no_spread() -> None:
    assert mean_interval([3.0]) == Estimate(3.0, 3.0, 3.0, 1)
    assert mean_interval([3.0, 3.0]) == Estimate(3.0, 3.0, 3.0, 2)
    assert ratio_interval([3.0, 3.0], [2.0, 2.0]) == Estimate(1.5, 1.5, 1.5, 2)


def test_no_values_have_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        mean_interval([])
    with pytest.raises(ValueError, match="no pairs"):
        ratio_interval([], [])
    with pytest.raises(ValueError, match="do not pair"):
        ratio_interval([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="above zero"):
        ratio_interval([1.0, 2.0], [0.0, 0.0])
    with pytest.raises(ValueError, match="one pair"):
        single_ratio_range([1.0], [1.0])


def test_two_pairs_at_any_confidence_have_an_interval_of_numbers() -> None:
    estimate = ratio_interval([1.0, 1e9], [1e9, 1.0], confidence=1 - 1e-9)
    assert 0 < estimate.lo < 1e-9
    assert 1e9 < estimate.hi < math.inf


def test_a_ratio_of_pairs_that_move_together_is_sharp() -> None:
    plain = [1.0, 2.0, 3.0, 4.0]
    assert ratio_interval([2 * value for value in plain], plain).half == pytest.approx(0, abs=1e-9)
    assert ratio_interval([8.0, 6.0, 4.0, 2.0], plain).half > 1


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=40))
def test_the_inverse_ratio_has_the_inverse_interval(pairs: list[tuple[float, float]]) -> None:
    top, bottom = [a for a, _ in pairs], [b for _, b in pairs]
    ratio, inverse = ratio_interval(top, bottom), ratio_interval(bottom, top)
    assert ratio.lo > 0
    assert (inverse.lo, inverse.value, inverse.hi) == pytest.approx(
        (1 / ratio.hi, 1 / ratio.value, 1 / ratio.lo)
    )


def test_the_interval_of_a_ratio_is_near_the_bootstraps() -> None:
    draw = random.Random(1)
    luck = [draw.gauss(0, 8) for _ in range(60)]
    top = [100 + shared + draw.gauss(0, 5) for shared in luck]
    bottom = [40 + 0.3 * shared + draw.gauss(0, 3) for shared in luck]
    ours = ratio_interval(top, bottom)
    theirs = scipy_stats.bootstrap(
        (top, bottom),
        lambda a, b, axis: a.mean(axis=axis) / b.mean(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=4000,
        rng=1,
    ).confidence_interval
    assert (ours.lo, ours.hi) == pytest.approx((theirs.low, theirs.high), abs=0.25 * ours.half)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    draw = random.Random(2)
    covered = single = 0
    rounds = 1500
    for _ in range(rounds):
        top = [math.exp(draw.gauss(1, 0.2)) for _ in range(11)]
        bottom = [math.exp(draw.gauss(0, 0.2)) for _ in range(11)]
        ratio = ratio_interval(top[1:], bottom[1:])
        covered += ratio.lo <= math.e <= ratio.hi
        lo, hi = single_ratio_range(top[1:], bottom[1:])
        single += lo <= top[0] / bottom[0] <= hi
    assert covered / rounds == pytest.approx(0.95, abs=0.02)
    assert single / rounds == pytest.approx(0.95, abs=0.02)
