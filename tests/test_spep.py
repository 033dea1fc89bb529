"""obanaik2003's experiments with SPEP: what must hold of each, with few seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import studies
from fixtures import Off, Written

from lasthop import lab, publications
from lasthop.publications.obanaik2003.spep import (
    attacks,
    bed,
    classification,
    comparisons,
    fig5_2,
    fig5_4,
    fig5_8,
)
from lasthop.publications.obanaik2003.spep.bed import NEWRENO, SPEP
from lasthop.publications.obanaik2003.spep.book import TABLES
from lasthop.publications.study import book
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Study
from lasthop.publications.study.verdict import Verdict

NAMES = ("fig5.2", "fig5.4", "fig5.8", "comparisons", "classification", "attacks")
#: Enough for most statements, and of figure 5.2 no more than two seconds' worth.
SEEDS = {"fig5.2": 8, "fig5.4": 4, "fig5.8": 4}


def _study(name: str) -> Study:
    return studies.load(f"obanaik2003/spep/{name}")


@pytest.fixture(scope="module")
def runs() -> Mapping[str, Runs]:
    """Few runs of each."""
    return {name: _study(name).measure(seeds=SEEDS.get(name), quick=True) for name in NAMES}


def _verdicts(study: Study, runs: Runs) -> dict[str, Verdict | None]:
    return {answer.id or answer.claim: answer.verdict for answer in study.judge(runs)}


# --- What all have in common ---


def test_the_whole_is_one_experiment_with_parts() -> None:
    ids = [of.id for of in publications.find("obanaik2003/spep")]
    assert ids == [f"obanaik2003/spep/{name}" for name in NAMES]
    figures = {f"fig5.{number}" for number in range(2, 9)}
    named = {name for of in publications.find("obanaik2003/spep") for name in of.load().also}
    assert figures - named == {"fig5.2", "fig5.4", "fig5.8"}
    (of,) = publications.find("obanaik2003/spep/fig5.7")
    assert of.name == "fig5.4"


@pytest.mark.parametrize("name", NAMES)
def test_a_part_becomes_rows_pictures_a_page_and_a_table(
    name: str, runs: Mapping[str, Runs], written: Written
) -> None:
    study = _study(name)
    folder, answers = written(study, runs[name])
    rows, _ = studies.reported(f"obanaik2003/spep/{name}", folder, answers)
    assert all(row["why"] for row in rows if row["metric"] == "finding")
    assert study.outcome is not None
    assert study.outcome(runs[name])
    kept = book.kept(TABLES[name], folder)
    for table in TABLES[name].all.values():
        assert table.markdown(kept).count("\n") >= 2


# --- Figures 5.2 to 5.8 ---


def test_spep_sends_more_with_fewer_timeouts_for_it_and_a_steadier_window(
    runs: Mapping[str, Runs],
) -> None:
    found = runs["fig5.2"]
    for delay in bed.DELAYS:
        newreno, spep = (
            found.case(scheme=scheme, one_way_delay_s=delay) for scheme in (NEWRENO, SPEP)
        )
        for metric, factor in (("timeouts_per_mb", 0.7), ("cwnd_variation", 0.95)):
            ratio = found.ratio(spep, newreno, metric)
            assert ratio is not None
            assert ratio.value < factor, metric
    verdicts = _verdicts(fig5_2.STUDY, found)
    assert verdicts["lan-steeper"] is Verdict.HOLDS


def test_the_window_is_weighted_by_its_time() -> None:
    import polars as pl

    series = pl.DataFrame({"t_s": [0.0, 9.0], "cwnd_bytes": [1300.0, 11 * 1300.0]})
    middle, variation = fig5_2.window(series, 10.0)
    assert middle == pytest.approx(2.0)
    assert variation == pytest.approx(1.5)


def test_nearly_all_timeouts_of_spep_are_of_segments_whose_retransmission_was_lost() -> None:
    timeouts = lost_again = 0
    for run in range(3):
        scenario, seed = bed.cell(SPEP, bed.WAN, bed.INTERVALS[0]).single(run)
        events = lab.run(scenario, seed=seed, events=True).events
        assert events is not None
        una, again = None, set()
        for event in events.filter(events["node"] == "fixed").iter_rows(named=True):
            if event["event"] == "acknowledged":
                una = event["una"]
            elif event["event"] == "sent" and event["again"]:
                again.add(event["start"])
            elif event["event"] == "timed-out":
                timeouts += 1
                lost_again += una in again
    assert timeouts > 5
    assert lost_again >= 0.9 * timeouts


def test_throughput_gains_hold_at_every_error_rate_in_the_lan(runs: Mapping[str, Runs]) -> None:
    assert _verdicts(fig5_4.STUDY, runs["fig5.4"])["lan-improves"] is Verdict.HOLDS


def _without(study: Study, off: Off) -> Runs:
    """NewReno in place of SPEP."""
    cells = study.cells()
    wanted = [cell for cell in cells if cell.case["scheme"] not in (SPEP, NEWRENO)]
    wanted += [
        bed.cell(NEWRENO, case["one_way_delay_s"], case["error_interval_bytes"])
        for case in dict.fromkeys(cell.case.but(scheme=NEWRENO) for cell in cells)
    ]
    measured = replace(study, cells=lambda: wanted, factors=None).measure(seeds=6)

    def standard(case: Case) -> Case:
        return case.but(scheme=NEWRENO) if case["scheme"] == SPEP else case

    return off(measured, [cell.case for cell in cells], standard, 12)


@pytest.mark.parametrize("study", [fig5_2.STUDY, fig5_4.STUDY, fig5_8.STUDY])
def test_no_published_effect_of_spep_holds_without_it(study: Study, off: Off) -> None:
    without = _without(study, off)
    stated = {of["id"] for of in study.published.statements if of["effect_of"] == "spep"}
    assert stated
    verdicts = _verdicts(study, without)
    assert {id for id in stated if verdicts[id] is Verdict.HOLDS} == set()


# --- Beyond ---


def test_sack_needs_every_hole(runs: Mapping[str, Runs]) -> None:
    found = runs["comparisons"]
    rates = {
        case["scheme"]: found.values(case, "payload_bps")[0]
        for case in found.cases(hop=comparisons.LOSSES, one_way_delay_s=bed.LAN)
    }
    assert rates["sack-spep"] < rates[SPEP] < rates["sack-every-hole"] < rates["snoop-clear"]
    assert rates["snoop-esp"] == rates[NEWRENO]


def test_each_other_helps_on_its_own_kind_of_hop(runs: Mapping[str, Runs]) -> None:
    found = runs["comparisons"]

    def rate(hop: str, scheme: str) -> float:
        case = found.case(hop=hop, scheme=scheme, one_way_delay_s=bed.WAN)
        return found.values(case, "payload_bps")[0]

    repairs, absences = comparisons.REPAIRS, comparisons.ABSENCES
    assert rate(repairs, "delayed-dupacks") > 1.5 * rate(repairs, SPEP)
    assert rate(absences, "spep-freeze") > 1.5 * max(rate(absences, s) for s in (SPEP, "freeze"))


def _some(study: Study, cells: Sequence[Cell]) -> Runs:
    return replace(study, cells=lambda: cells).measure(seeds=1)


def test_mistakes_have_their_reasons(runs: Mapping[str, Runs]) -> None:
    found = runs["classification"]
    assert set(_verdicts(classification.STUDY, found).values()) == {Verdict.HOLDS}
    reasons: dict[str, int] = {}
    for case in found:
        for reason, count in classification.mistakes(found, case).items():
            reasons[reason] = reasons.get(reason, 0) + count
    assert reasons["more runs than blocks"] > 100
    assert reasons["reordering"] > 10
    (late,) = found.cases(situation="5 % late behind")
    assert classification.total(found, late, "other as corruption") > 100
    (congested,) = found.cases(situation="congestion")
    assert classification.total(found, congested, "other as congestion") > 50


def test_no_classification_holds_with_a_station_that_does_not_mark_or_marks_all() -> None:
    for claims in ("nothing", "everything"):
        station = {"nodes.station.boxes": [{**bed.STATION, "claims": claims}]}
        cells = [
            replace(cell, settings={**cell.settings, **station})
            for cell in classification.cells()
            if cell.case["situation"] == "congestion"
        ]
        corruption, congestion = _verdicts(
            classification.STUDY, _some(classification.STUDY, cells)
        ).values()
        assert (corruption, congestion) == {
            "nothing": (Verdict.DIFFERS, Verdict.HOLDS),
            "everything": (Verdict.HOLDS, Verdict.DIFFERS),
        }[claims]


def _of(runs: Runs, attacker: str, metric: str, errors: int = attacks.NO_ERRORS) -> Any:
    return runs.found[runs.case(attacker=attacker, error_interval_bytes=errors)][metric][0]


def test_a_lying_station_takes_from_a_neighbour_and_others_before_it_do_nothing(
    runs: Mapping[str, Runs],
) -> None:
    found = runs["attacks"]
    for attacker in (attacks.EVERYTHING, attacks.BEHIND):
        left = _of(found, attacker, "neighbour_bps", attacks.ERRORS)
        assert left < 0.8 * _of(found, attacks.TRUE, "neighbour_bps", attacks.ERRORS), attacker
    for metric in ("payload_bps", "neighbour_bps"):
        assert _of(found, attacks.BEFORE, metric) == _of(found, attacks.TRUE, metric)
    silent, plain = (
        _of(found, attacker, "payload_bps", attacks.ERRORS)
        for attacker in (attacks.NOTHING, attacks.PLAIN)
    )
    assert silent < 0.7 * _of(found, attacks.TRUE, "payload_bps", attacks.ERRORS)
    assert 0.7 < silent / plain < 1.4


def test_only_a_right_guess_takes_spep_away(runs: Mapping[str, Runs]) -> None:
    found = runs["attacks"]
    true = _of(found, attacks.TRUE, "payload_bps", attacks.ERRORS)
    assert _of(found, attacks.RIGHT, "payload_bps", attacks.ERRORS) < 0.6 * true
    load = _of(found, attacks.LOAD, "payload_bps", attacks.ERRORS)
    assert 0.8 < _of(found, attacks.BLIND, "payload_bps", attacks.ERRORS) / load < 1.25
