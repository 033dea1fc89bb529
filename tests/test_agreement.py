"""The comparison with ns-2: what is kept of it is what this code gives, and what it says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import agreement
import compare
import peers
import pytest

KEPT: dict[str, Any] = json.loads(compare.AGREEMENT.read_text())

#: Recovery, one-way delay and bit error rate of the cells whose goodput differs; the book says why.
DIFFERENT = {("newreno", 0.01, 1.56e-5)}


def first(rows: Sequence[dict[str, Any]]) -> list[list[float]]:
    """What the first runs of each row gave."""
    return [row["first"] for row in rows]


# `python bench/compare.py agreement` measures all of it anew.


def test_the_kept_bulk_flows_are_of_this_code() -> None:
    assert first(agreement.bulk(agreement.FIRST)) == first(KEPT["rows"])


def test_the_kept_westwood_is_of_this_code() -> None:
    assert first(agreement.westwood(agreement.FIRST)) == first(KEPT["westwood"])


def test_the_kept_transfers_are_of_this_code() -> None:
    assert first(agreement.transfers(agreement.FIRST)) == first(KEPT["transfers"])


def test_the_kept_outages_are_of_this_code() -> None:
    some = peers.outages_s()[::10]
    kept = [row for row in KEPT["outages"] if row["outage_s"] in some]
    assert agreement.judged_outages(agreement.outages(some)) == kept


def test_the_verdicts_follow_from_what_is_kept() -> None:
    unjudged = [
        {key: value for key, value in row.items() if key not in ("verdict", "beyond")}
        for row in KEPT["rows"]
    ]
    assert agreement.judged(unjudged) == KEPT["rows"]
    assert agreement.shifts(unjudged, ("recovery", "hops", "errors")) == KEPT["shifts"]


def test_ns2_has_as_many_runs_as_we_have() -> None:
    for row in KEPT["rows"]:
        assert row["runs"] == max(family["runs"] for family in row["families"])
        assert row["runs"] >= (peers.BATCH if row["bit_error_rate"] else 1)


def test_no_goodput_differs_but_where_the_book_says_why() -> None:
    differing = {
        (row["recovery"], row["one_way_delay_s"], row["bit_error_rate"])
        for row in KEPT["rows"]
        if row["verdict"]["goodput"] == "differs"
    }
    assert differing == DIFFERENT


def test_what_is_changed_of_ns2_moves_the_cells_that_differ() -> None:
    for row in KEPT["causes"]:
        usual, changed = (family["ratio"] for family in row["families"])
        assert usual[2] < 1 - agreement.BOUND < changed[0]


def test_no_recovery_is_shifted_over_all_cells() -> None:
    assert [row for row in KEPT["shifts"] if row["verdict"] == "differs"] == []


@pytest.mark.parametrize("recovery", ["reno", "sack"])
def test_after_an_outage_ns2_goes_on_at_the_same_time(recovery: str) -> None:
    own = [row for row in KEPT["outages"] if row["recovery"] == recovery]
    assert len(own) == 100
    assert {row["verdict"] for row in own} == {"agrees"}


def test_transfers_without_errors_take_as_long_as_in_ns2() -> None:
    exact = [row for row in KEPT["transfers"] if not row["bit_error_rate"]]
    assert {row["segments"] for row in exact} == set(peers.SIZES)
    assert {row["verdict"] for row in exact} == {"agrees"}


# --- What the judgement sees ---


def cells_of(
    ratios: Sequence[float], runs: int = 100, spread: float = 0.05
) -> list[dict[str, Any]]:
    """Cells in which our goodput is so many times that of both of a peer's families."""
    zero = {"timeouts": [0.0, 0.0], "retransmitted": [10.0, 1.0]}
    names = ("Sack1", "FullTcp/Sack")
    return [
        {
            "recovery": "sack",
            "errors": "both",
            "one_way_delay_s": float(number),
            "bit_error_rate": 1e-6,
            "runs": runs,
            "goodput_bps": [ratio * 1e6, spread * ratio * 1e6],
            **zero,
            "families": [
                {"family": name, "runs": runs, "goodput_bps": [1e6, spread * 1e6], **zero}
                for name in names
            ],
        }
        for number, ratio in enumerate(ratios)
    ]


def said(rows: Sequence[dict[str, Any]], what: str = "goodput") -> list[str]:
    return [row["verdict"][what] for row in agreement.judged(rows)]


def test_a_ratio_is_held_against_a_bound_and_not_against_its_own_interval() -> None:
    assert said(cells_of([1.0, 1.01, 0.93, 1.08, 1.03])) == [
        "agrees",
        "agrees",
        "differs",
        "differs",
        "undecided",
    ]
    # Too few runs decide nothing, though the intervals of such means meet.
    assert said(cells_of([1.0, 0.93], runs=4)) == ["undecided", "undecided"]


def test_between_the_families_is_within_their_span() -> None:
    rows = cells_of([1.0])
    rows[0]["families"][0]["goodput_bps"][0] *= 1.1
    rows[0]["families"][1]["goodput_bps"][0] *= 0.9
    assert said(rows) == ["agrees"]
    rows[0]["families"][1]["goodput_bps"][0] = 1.2e6
    assert said(rows) == ["differs"]


def test_many_cells_make_it_less_likely_that_one_differs_by_chance() -> None:
    # 4.6 % above: one cell alone is shown to be beyond 3 %, one of two hundred is not.
    assert said(cells_of([1.046])) == ["differs"]
    assert said(cells_of([1.046] + [1.0] * 199))[0] == "undecided"


def test_a_shift_that_no_cell_shows_is_shown_by_all_of_them() -> None:
    names = ("recovery", "errors")
    shifted = cells_of([1.015 + 0.001 * (n % 3) for n in range(40)], runs=200)
    assert set(said(shifted)) == {"agrees"}
    (row,) = agreement.shifts(shifted, names)
    assert (row["verdict"], row["above"], row["below"]) == ("differs", 40, 0)
    scattered = cells_of([1.0 + 0.015 * (-1) ** n for n in range(40)])
    (row,) = agreement.shifts(scattered, names)
    assert (row["verdict"], row["above"], row["below"]) == ("agrees", 20, 20)


def test_cells_that_share_their_chance_are_one() -> None:
    shifted = cells_of([1.015] * 40)
    for row in shifted:
        row["one_way_delay_s"] = 0.1
    (row,) = agreement.shifts(shifted, ("recovery", "errors"))
    assert (row["verdict"], row["cells"], row["above"]) == ("undecided", 1, 1)


def test_fifteen_timeouts_a_run_are_not_one() -> None:
    rows = cells_of([1.0])
    rows[0]["timeouts"] = [14.9, 3.0]
    for family in rows[0]["families"]:
        family["timeouts"] = [1.1, 1.0]
    assert (said(rows), said(rows, "timeouts")) == (["agrees"], ["differs"])
