"""Studies: what the experiments of every publication have in common."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from lasthop.publications.study import quantiles
from lasthop.publications.study.published import Number, Section
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Study, mean
from lasthop.publications.study.verdict import Judgement, Kind, Published, Verdict
from lasthop.stats import jain


def test_cells_are_run_as_often_whatever_differs_between_their_runs() -> None:
    starts = [f"{n} s" for n in range(4)]
    for runs, values, seeds in ((1, 1, 1), (2, 2, 1), (4, 4, 1), (12, 4, 3)):
        along = {"flows.0.start": starts}
        outline = Cell(Case(a=1), "demo", {}, 30, 3, along).build(runs).outline()
        assert (outline.points, outline.seeds) == (values, seeds)


def test_a_case_is_what_was_varied() -> None:
    case = Case(eten="none", burst_packets=5)
    assert case.but(eten="oracle") == Case(burst_packets=5, eten="oracle")
    assert len({case, Case(eten="none", burst_packets=5), case.but(eten="oracle")}) == 2
    found = Runs({case: {"x": [1.0]}, case.but(eten="oracle"): {"x": [2.0, None]}})
    assert found.cases(eten=("none", "oracle"), burst_packets=5) == list(found)
    assert found.cases(other=1) == []
    ratio = found.ratio(case.but(eten="oracle"), case, "x")
    assert ratio is not None
    assert (ratio.value, ratio.n) == (2.0, 1)


def test_what_never_ends_is_longer_than_all_else() -> None:
    times = [1.0, 2.0, 3.0, None]
    assert quantiles.interval(times, 0.5).value == 2.0
    assert quantiles.interval(times, 0.95).value == math.inf
    assert quantiles.ratio(times, [2.0, 4.0, 6.0, None], 0.5) is not None
    assert quantiles.ratio(times, times, 0.95) is None
    ordered = [float(n) for n in range(1, 101)]
    median = quantiles.interval(ordered, 0.5)
    # The textbook's: the 40th and the 61st of a hundred.
    assert (median.value, median.lo, median.hi) == (50.0, 40.0, 61.0)


def test_a_share_has_an_interval_even_if_it_is_nothing() -> None:
    # Its ends, of 1 to 40 values in order, beside another's quantiles of the binomial.
    for n in range(1, 41):
        found = quantiles.interval([float(place) for place in range(n)], 0.9)
        lo, hi = (float(binom.ppf(tail, n, 0.9)) for tail in (0.025, 0.975))
        assert (found.lo, found.hi) == (max(lo - 1, 0), min(hi, n - 1))
    none = quantiles.proportion(0, 400)
    assert (none.value, none.lo) == (0.0, 0.0)
    # Wilson: z^2 / (n + z^2).
    assert none.hi == pytest.approx(3.8415 / 403.8415, rel=1e-4)
    half = quantiles.proportion(50, 100)
    assert half.hi - 0.5 == pytest.approx(0.5 - half.lo) == pytest.approx(0.0962, abs=1e-3)


def test_jains_index_is_one_for_equals_and_a_share_for_a_monopoly() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1)
    assert jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)


def test_what_is_drawn_for_a_run_is_its_own() -> None:
    cell = Cell(Case(a=1), "demo", {}, 15, 3, drawn=lambda run: {"flows.0.start": f"{run} s"})
    for runs in (1, 3, 15):
        outline = cell.build(runs).outline()
        assert (outline.points, outline.seeds) == (runs, 1)


def test_a_published_number_stands_beside_the_case_that_it_is_of() -> None:
    of = Published(14.6, Kind.PRINTED, 0.1)
    number = Number("resume_s", of, {"scheme": "standard"}, misprint="of 14.8")
    section = Section([number])
    case = Case(scheme="standard", connections=1)
    assert section.number(case, "resume_s") is number
    assert section.number(case, "duration_s") is None
    assert section.number(case.but(scheme="rlci"), "resume_s") is None


def _judged(number: Number, values: list[float]) -> Verdict:
    case = Case(a=1)
    return mean("x", "1", "x").judge(number, Runs({case: {"x": values}}), case)


def test_a_published_number_is_met_within_its_tolerance() -> None:
    number = Number("x", Published(100.0, Kind.PRINTED, 1.0), {})
    assert _judged(number, [97.0, 98.0, 99.0]) is Verdict.HOLDS
    assert _judged(number, [80.0, 98.0, 116.0]) is Verdict.UNDECIDED
    assert _judged(number, [98.0]) is Verdict.UNDECIDED
    assert _judged(number, [89.0, 90.0, 91.0]) is Verdict.DIFFERS
    # One of our runs may well be the published one, whose mean is not.
    single = Number("x", Published(100.0, Kind.ABOUT, runs=1), {})
    assert _judged(single, [float(85 + n % 5 * 20) for n in range(30)]) is Verdict.HOLDS
    assert _judged(single, [float(130 + n % 5) for n in range(30)]) is Verdict.DIFFERS


def test_a_statement_is_compared_with_the_runs_and_its_contradiction_reported() -> None:
    stated = {
        "id": "grows",
        "claim": "It grows.",
        "where": "§1",
        "effect_of": "none",
        "contradicts": "§2 says no.",
    }
    runs = Runs({Case(a=1): {"x": [1.0]}})
    no = Judgement(Verdict.DIFFERS, "No.")
    (answer,) = Section((), [stated]).answers({"grows": lambda _: no}, runs)
    assert (answer.id, answer.agrees, answer.contradicts) == ("grows", False, "§2 says no.")
    assert answer.why == "No. The publication contradicts itself: §2 says no."


def test_an_undecided_number_has_its_cell_run_once_more_as_often_as_would_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number = Number("x", Published(100.0, Kind.PRINTED, 1.0), {"a": 1})
    monkeypatch.setattr(Study, "published", Section([number]))
    asked: list[tuple[Case, int]] = []

    def measured(self: Study, *, seeds: int, threads: int, kept: None) -> Runs:
        (cell,) = self.cells()
        asked.append((cell.case, seeds))
        return Runs({cell.case: {"x": [98.0, 102.0] * (seeds // 2)}})

    monkeypatch.setattr(Study, "measure", measured)
    cases = [Case(a=1), Case(a=2)]
    study = Study(
        publication="p",
        experiment="e",
        title="",
        asks="",
        where="",
        method=(),
        cells=lambda: [Cell(case, "demo", {}, 4, 4) for case in cases],
        measures=[mean("x", "1", "x")],
        figures=(),
        keys={},
        most_seeds=60,
    )
    few = Runs({case: {"x": [90.0, 110.0, 92.0, 108.0]} for case in cases})
    more = study.decide(few)
    ((case, seeds),) = asked
    assert case == cases[0]
    assert 4 < seeds <= 60
    assert more.count(cases[0]) == seeds // 2 * 2
    assert more.count(cases[1]) == 4
    # What decides is not run again, nor what would take too many.
    assert study.decide(more) == more
    asked.clear()
    wide = Runs({case: {"x": [20.0, 190.0, 80.0, 118.0]} for case in cases})
    assert study.decide(wide) == wide
    assert asked == []
