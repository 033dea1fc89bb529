"""Verdicts: what holds, what differs, and what runs leave undecided."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lasthop.publications.study.verdict import (
    ALPHA,
    SINGLE_RUNS,
    Band,
    Check,
    Joint,
    Kind,
    Published,
    Verdict,
    above,
    below,
    between,
    error_factor,
    every,
    most,
    some,
    typical_factor,
    would_decide,
)
from lasthop.stats import (
    Estimate,
    holm,
    mean_interval,
    p_above,
    p_below,
    ratio_interval,
    single_range,
    single_ratio_range,
)

HOLDS, DIFFERS, UNDECIDED = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNDECIDED


def _estimate(value: float, half: float = 0.01, n: int = 30) -> Estimate:
    return Estimate(value, value - half, value + half, n)


def _check(value: float, half: float, band: Band | None = None) -> Check:
    return Check(_estimate(value, half), band or above(1.0))


# --- Published values ---


@pytest.mark.parametrize(
    ("kind", "digit", "band"),
    [
        (Kind.PRINTED, 0.1, (9.5, 10.5)),
        (Kind.PRINTED, 1.0, (9.0, 11.0)),
        (Kind.ABOUT, None, (8.5, 11.5)),
        (Kind.ALMOST, None, (8.5, 10.0)),
        (Kind.FIGURE, None, (9.0, 11.0)),
        (Kind.ABOVE, None, (10.0, math.inf)),
        (Kind.AT_MOST, None, (-math.inf, 10.0)),
    ],
)
def test_the_kind_alone_fixes_what_meets_a_value(
    kind: Kind, digit: float | None, band: tuple[float, float]
) -> None:
    found = Published(10.0, kind, digit).band
    assert (found.lo, found.hi) == pytest.approx(band)


def test_a_printed_number_has_a_last_digit_and_no_other_has() -> None:
    for kind, digit in ((Kind.PRINTED, None), (Kind.ABOUT, 0.1)):
        with pytest.raises(ValueError, match="last digit"):
            Published(1.0, kind, digit)


def test_a_mean_within_its_tolerance_holds_and_a_wide_interval_is_undecided() -> None:
    of = Published(10.0, Kind.PRINTED, 0.1)
    assert of.judge(_estimate(10.3, 0.1)) is HOLDS
    assert of.judge(_estimate(10.3, 0.3)) is UNDECIDED
    assert of.judge(_estimate(10.8, 0.2)) is DIFFERS
    # However wide the interval is, it never agrees for that.
    assert of.judge(_estimate(10.0, 5.0)) is UNDECIDED
    # One run has no interval, unless nothing is drawn at random.
    assert of.judge(_estimate(10.0, 0.0, n=1)) is UNDECIDED
    assert of.judge(_estimate(10.0, 0.0, n=1), exact=True) is HOLDS
    assert of.judge(_estimate(11.0, 0.0, n=1), exact=True) is DIFFERS
    assert of.judge(None) is UNDECIDED


def test_a_single_published_run_is_held_against_single_runs_of_which_there_must_be_enough() -> None:
    of = Published(3.5, Kind.ABOUT, runs=1)
    wide = (3.0, 8.0)
    assert of.judge(_estimate(5.0, 0.4, SINGLE_RUNS), wide) is HOLDS
    assert of.judge(_estimate(5.0, 0.4, SINGLE_RUNS - 1), wide) is UNDECIDED
    assert of.judge(_estimate(5.0, 0.4, 3), wide) is UNDECIDED
    assert of.judge(_estimate(5.0, 0.4, 30), (4.1, 6.1)) is DIFFERS
    # All our runs are alike, and near enough for "about".
    assert of.judge(_estimate(3.7, 0.01, 30), (3.65, 3.75)) is HOLDS
    assert of.judge(_estimate(4.02, 0.02, 30), (3.95, 4.09)) is UNDECIDED
    assert of.judge(_estimate(5.0, 0.4, 30)) is UNDECIDED


def test_a_bound_from_a_single_run_is_kept_by_the_mean_or_missed_by_every_run() -> None:
    of = Published(3.0, Kind.ABOVE, runs=1)
    assert of.judge(_estimate(4.0, 0.2), (2.5, 6.0)) is HOLDS
    assert of.judge(_estimate(2.9, 0.3), (2.0, 4.0)) is UNDECIDED
    assert of.judge(_estimate(2.0, 0.1), (1.5, 2.6)) is DIFFERS


def test_three_seeds_never_bear_out_a_single_run() -> None:
    draw = random.Random(4)
    of = Published(3.5, Kind.ABOUT, runs=1)
    for _ in range(200):
        top, plain = ([math.exp(draw.gauss(m, 0.1)) for _ in range(3)] for m in (math.log(3.5), 0))
        verdict = of.judge(ratio_interval(top, plain), single_ratio_range(top, plain))
        assert verdict is not HOLDS


def test_a_published_draw_of_the_same_distribution_differs_as_seldom_as_it_should() -> None:
    draw = random.Random(5)
    rounds, differs = 800, 0
    for _ in range(rounds):
        values = [draw.gauss(10, 3) for _ in range(31)]
        of = Published(values[0], Kind.ABOUT, runs=1)
        differs += of.judge(mean_interval(values[1:]), single_range(values[1:])) is DIFFERS
    assert differs / rounds < 0.07


def test_what_an_undecided_value_takes_follows_from_the_spread() -> None:
    of = Published(10.0, Kind.PRINTED, 0.1)
    # The interval must shrink to a third, which takes nine times as many.
    assert of.needs(_estimate(10.3, 0.6, 30)) == pytest.approx(270, abs=2)
    assert of.needs(_estimate(10.5, 0.6, 30)) is None
    assert of.needs(None) is None
    assert Published(3.5, Kind.ABOUT, runs=1).needs(_estimate(5.0, 1.0, 3)) == SINGLE_RUNS
    assert would_decide(270) == "About 270 runs a cell would decide."
    assert "does not follow" in would_decide(None)


def test_the_error_factor_is_measured_over_published() -> None:
    factor = error_factor(Estimate(12.0, 9.0, 16.0, 30), 10.0)
    assert factor is not None
    assert (factor.value, factor.lo, factor.hi) == (1.2, 0.9, 1.6)
    assert error_factor(None, 10.0) is None
    assert error_factor(_estimate(1.0), 0.0) is None
    assert error_factor(_estimate(1.0), None) is None
    # Twice and half are off by as much.
    assert typical_factor([2.0, 0.5]) == pytest.approx(2.0)
    assert typical_factor([]) is None


# --- One cell ---


def test_p_values_are_those_of_the_interval() -> None:
    values = [1.1, 1.3, 0.9, 1.2, 1.4, 1.0]
    for estimate in (mean_interval(values), ratio_interval(values, values[::-1])):
        for end, p in ((estimate.lo, p_above), (estimate.hi, p_below)):
            assert p(estimate, end) == pytest.approx(ALPHA)
    assert p_above(_estimate(1.0, 0.0, n=1), 0.5) == 1.0
    same = mean_interval([2.0, 2.0])
    assert (p_above(same, 1.0), p_below(same, 1.0), p_above(same, 2.0)) == (0.0, 1.0, 1.0)


@given(st.floats(0.5, 1.5), st.floats(0.001, 0.5), st.floats(0.5, 1.0), st.floats(1.0, 1.5))
def test_a_cell_alone_is_judged_by_where_its_interval_lies(
    value: float, half: float, lo: float, hi: float
) -> None:
    ends = [end - value for end in (lo, hi)]
    assume(all(abs(abs(end) - half) > 1e-9 for end in ends))
    verdict = _check(value, half, between(lo, hi)).verdict
    if value - half > lo and value + half < hi:
        assert verdict is HOLDS
    elif value - half > hi or value + half < lo:
        assert verdict is DIFFERS
    else:
        assert verdict is UNDECIDED


def test_nothing_measured_shows_nothing() -> None:
    assert Check(None, above(1.0)).verdict is UNDECIDED
    for joined in (every([]), some([]), most([])):
        assert joined.verdict is UNDECIDED
        assert "Nothing arrived" in joined.tally


# --- Many cells ---


def test_holms_adjusted_p_values_are_those_of_the_textbook() -> None:
    # Holm (1979): 4 · 0.005, 3 · 0.01, 2 · 0.03, and none smaller than the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_all_must_be_shown_and_one_contradiction_is_enough() -> None:
    clear, unclear, against = _check(1.2, 0.1), _check(1.05, 0.1), _check(0.8, 0.05)
    assert every([clear] * 5).verdict is HOLDS
    assert every([clear] * 4 + [unclear]).verdict is UNDECIDED
    assert every([clear] * 4 + [against]).verdict is DIFFERS


def test_one_shown_is_enough_for_some_and_half_for_most() -> None:
    clear, unclear, against = _check(1.2, 0.1), _check(1.05, 0.1), _check(0.8, 0.05)
    assert some([against] * 4 + [clear]).verdict is HOLDS
    assert some([against] * 4 + [unclear]).verdict is UNDECIDED
    assert some([against] * 5).verdict is DIFFERS
    assert most([clear] * 3 + [against] * 2).verdict is HOLDS
    assert most([clear] * 2 + [against] * 3).verdict is DIFFERS
    assert most([clear] * 2 + [against] * 2).verdict is DIFFERS
    assert most([clear] * 2 + [unclear] * 2).verdict is UNDECIDED


def test_what_many_cells_show_by_chance_is_not_shown() -> None:
    """Forty cells without any effect: without the correction two in three rounds would have a
    cell that is clearly above, and as many one that is clearly below."""
    draw = random.Random(6)
    rounds = 150
    found = {HOLDS: 0, DIFFERS: 0, UNDECIDED: 0}
    naive = 0
    for _ in range(rounds):
        cells = [
            Check(mean_interval([draw.gauss(1, 0.1) for _ in range(10)]), above(1.0))
            for _ in range(40)
        ]
        found[some(cells).verdict] += 1
        found[every(cells).verdict] += 1
        naive += any(cell.verdict is HOLDS for cell in cells)
    assert naive / rounds > 0.5
    assert (found[HOLDS] + found[DIFFERS]) / rounds < 0.1


def test_claims_nest_and_say_what_was_shown() -> None:
    clear, against = _check(1.2, 0.1), _check(0.8, 0.05)
    both = every([some([clear, against]), every([clear, clear])])
    assert both.verdict is HOLDS
    judged = both.judged("It grows.", _estimate(1.2), {"a": 1}, "s")
    assert judged.why == "It grows. Shown in 2 of 2, contradicted in 0 (95 %, Holm)."
    assert (judged.verdict, judged.case, judged.unit) == (HOLDS, {"a": 1}, "s")


def test_an_undecided_statement_says_what_it_takes() -> None:
    joined = every([_check(1.2, 0.1), _check(1.05, 0.1)])
    assert joined.needs == pytest.approx(120, abs=1)
    assert joined.tally.endswith("About 120 runs a cell would decide.")
    # For one of them the easiest is enough.
    assert some([_check(1.05, 0.1), _check(1.01, 0.1)]).needs == pytest.approx(120, abs=1)


@given(st.lists(st.tuples(st.floats(0.5, 1.5), st.floats(0.01, 0.5)), min_size=1, max_size=12))
def test_nothing_is_shown_and_contradicted(cells: list[tuple[float, float]]) -> None:
    checks = [_check(value, half) for value, half in cells]
    for least in range(1, len(checks) + 1):
        joined = Joint(tuple(checks), least)
        assert joined.p_for > ALPHA or joined.p_against > ALPHA
        # A claim about more cells implies the one about fewer.
        assert Joint(tuple(checks), max(least - 1, 1)).p_for <= joined.p_for * len(checks)


def test_verdicts_are_words_and_null_in_results() -> None:
    assert [str(of) for of in Verdict] == ["holds", "differs", "undecided"]
    assert [of.agrees for of in Verdict] == [True, False, None]
    assert (Verdict.of(True), Verdict.of(False)) == (HOLDS, DIFFERS)
    assert 2.0 in below(3.0)
    assert 4.0 not in below(3.0)
