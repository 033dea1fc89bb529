"""obanaik2003's fairness experiments: what must hold of each, with few seeds."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import obanaik_calibration as calibration
import pytest
import studies
import tables
from fixtures import Command, Written

from lasthop import library, publications
from lasthop.publications.obanaik2003.fairness import (
    bed,
    buffers,
    changed,
    factors,
    fast,
    policies,
    simulation,
    windows,
)
from lasthop.publications.obanaik2003.fairness.book import TABLES
from lasthop.publications.obanaik2003.fairness.policies import CANIT, CR, IBK, STANDARD
from lasthop.publications.obanaik2003.fairness.simulation import LTN, SLOW
from lasthop.publications.study.published import Section
from lasthop.publications.study.runs import Cell, Runs
from lasthop.publications.study.study import Study
from lasthop.scenario import Scenario

NAMES = (
    *("slow", "ltn", "disabled", "window", "buffers"),
    *("testbed", "testbed-buffers", "testbed-window", "testbed-disabled"),
    *("factors", "fast", "auto"),
)
CALIBRATION = Path(__file__).parent.parent / "bench/results/obanaik2003-calibration.json"


def _study(name: str) -> Study:
    return studies.load(f"obanaik2003/fairness/{name}")


def _some(name: str) -> Study:
    """All of a study; of the factors only those of a row of the simulations and of the test-bed, of
    the sizes of buffers every other.
    """
    study = _study(name)
    if name == "buffers":
        sizes = (*buffers.BUFFERS[::2], buffers.BUFFERS[-1])
        few = [cell for cell in study.cells() if cell.case["buffer_packets"] in sizes]
        return replace(study, cells=lambda: few)
    if name != "factors":
        return study
    of = [cell for cell in study.cells() if cell.case["factor"] == changed.AS_IS]
    of += [
        cell
        for cell in study.cells()
        if cell.case["policy"] == STANDARD and cell.case["link"] == LTN and cell not in of
    ]
    return replace(study, cells=lambda: of)


@pytest.fixture(scope="module")
def runs() -> Mapping[str, Runs]:
    """One run of every cell."""
    return {name: _some(name).measure(seeds=1) for name in NAMES}


def _value(runs: Runs, metric: str, **where: object) -> float:
    (only,) = runs.values(runs.case(**where), metric)
    return only


def _mean(runs: Runs, metric: str, **where: object) -> float:
    values = runs.values(runs.case(**where), metric)
    return sum(values) / len(values)


# --- What all have in common ---


def test_the_whole_is_one_experiment_with_parts() -> None:
    ids = [of.id for of in publications.find("obanaik2003/fairness")]
    assert ids == [f"obanaik2003/fairness/{name}" for name in NAMES]
    assert len(publications.find("obanaik2003/fairness/slow")) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_part_becomes_rows_pictures_and_a_page(
    name: str, runs: Mapping[str, Runs], written: Written
) -> None:
    study = _some(name)
    folder, answers = written(study, runs[name])
    rows, _ = studies.reported(f"obanaik2003/fairness/{name}", folder, answers)
    assert all(row["why"] for row in rows if row["metric"] == "finding")
    assert study.outcome is not None
    assert study.outcome(runs[name])


@pytest.mark.soak
def test_more_seeds_and_all_sizes_of_buffers_show_the_same(written: Written) -> None:
    seeds = {"slow": 3, "ltn": 3, "buffers": 1}
    runs = {name: _study(name).measure(seeds=count) for name, count in seeds.items()}
    for name in runs:
        test_a_part_becomes_rows_pictures_and_a_page(name, runs, written)
    test_over_slow_last_hops_policies_lose_more_and_canit_has_least(runs)
    test_larger_buffers_make_round_trips_longer(runs)


@pytest.mark.parametrize("name", NAMES)
def test_every_published_number_stands_beside_a_measured_one(
    name: str, runs: Mapping[str, Runs]
) -> None:
    section = _study(name).published
    metrics = {measure.metric for measure in _study(name).measures}
    for number in section.numbers:
        assert number.metric in metrics
        assert any(number.is_of(case, number.metric) for case in runs[name]), number
    # And no two claim the same.
    seen = [(number.metric, tuple(sorted(number.case.items()))) for number in section.numbers]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("name", NAMES)
def test_the_book_has_a_table_of_it(name: str, runs: Mapping[str, Runs], written: Written) -> None:
    folder, _ = written(_some(name), runs[name])
    kept = json.loads((folder / "results.json").read_text())
    table = TABLES[name].markdown(kept).splitlines()
    assert len({line.count("|") for line in table}) == 1
    assert len(table) > 5
    assert f"obanaik2003-fairness-{name}-numbers" in dict(tables.of_publications())


def test_misprints_are_marked() -> None:
    found = [
        (name, number.value)
        for name in NAMES
        for number in Section.of("obanaik2003", f"fairness/{name}").numbers
        if number.misprint
    ]
    assert found == [
        ("window", 13000),
        ("testbed-window", 11500),
        ("testbed-window", 3.6),
        ("testbed-window", 0.036),
        ("testbed-disabled", 7340),
    ]


def test_the_page_takes_no_misprint_for_a_difference(
    runs: Mapping[str, Runs], written: Written
) -> None:
    folder, _ = written(_study("testbed-window"), runs["testbed-window"])
    assert (folder / "report.html").read_text().count("misprint</span>") == 3


def test_the_calibrated_path_is_the_best_of_the_grid_and_frozen() -> None:
    kept = json.loads(CALIBRATION.read_text())
    chosen, reading = kept["chosen"], kept["reading"]
    assert reading == "goodput_bps"
    source = tomllib.loads(Scenario.load(simulation.SCENARIO).source)
    links = source["links"]
    assert {flow["tcp"]["recovery"] for flow in source["flows"]} == {chosen["recovery"]}
    assert chosen["recovery"] == simulation.RECOVERY
    assert links[6]["queue"] == f"{chosen['buffer_packets']} packets"
    assert {link["delay"] for link in links[:2]} == {f"{chosen['short_ms']} ms"}
    assert {link["delay"] for link in links[2:5]} == {f"{chosen['long_ms']} ms"}
    # By the rule: the smallest error to two decimals, and the simplest of equals.
    errors = [round(point["error"][reading], 2) for point in kept["best"]]
    assert round(chosen["error"][reading], 2) == min(errors)
    ages = [
        calibration.RECOVERIES.index(point["recovery"])
        for point, error in zip(kept["best"], errors, strict=True)
        if error == min(errors)
    ]
    assert calibration.RECOVERIES.index(chosen["recovery"]) == min(ages)
    assert {point["recovery"] for point in kept["by_recovery"]} == set(calibration.RECOVERIES)


def test_without_jitter_all_runs_are_equal() -> None:
    """As the page says: nothing else is drawn at random."""
    look = simulation.observe()

    def goodputs(settings: Mapping[str, str]) -> set[float | None]:
        cell = simulation.cell(SLOW, STANDARD, settings=settings)
        scenario = Scenario.load(cell.scenario).set(dict(cell.settings))
        return {look(scenario, seed)["goodput_bps"] for seed in (1, 2, 3)}

    assert len(goodputs({f"links.{link}.jitter": "0 ms" for link in range(5)})) == 1
    assert len(goodputs({})) > 1


def test_the_error_of_a_calibration_is_of_the_standard_rows() -> None:
    """No other policy can move it."""
    exact = {
        "slow": {"goodput_bps": 16_540.0, "losses_packets": 8.0},
        "ltn": {"goodput_bps": 7_620.0, "losses_packets": 10.0},
    }
    assert calibration.error(exact, STANDARD, "goodput_bps") == [0.0] * 4
    exact["ltn"]["losses_packets"] = 10.0 * math.e
    assert calibration.error(exact, STANDARD, "goodput_bps") == pytest.approx([0, 0, 0, 1])
    logs = calibration.error(exact, STANDARD, "goodput_bps")
    assert calibration.root_mean_square(logs) == pytest.approx(0.5)


def test_the_simplest_of_equal_points_is_chosen() -> None:
    def point(recovery: int, error: float) -> calibration.Measured:
        of = calibration.Point(recovery, 50, 400, 1)
        return calibration.Measured(of, {}, 1.0, {"goodput_bps": error})

    sack, reno, best = point(2, 0.101), point(0, 0.104), point(2, 0.08)
    assert calibration.best_of([sack, reno], "goodput_bps")[0] is reno
    assert calibration.best_of([sack, reno, best], "goodput_bps")[0] is best


# --- Factors, alone and in pairs ---


def test_every_table_has_its_numbers_and_every_pair_of_factors() -> None:
    bases = changed.bases()
    tables = {base.table for base in bases}
    assert tables == {f"table 3.{number}" for number in range(1, 14)}
    assert all(list(base.numbers()) for base in bases)
    names = [changed.name(of) for of in changed.combinations(changed.TESTBED, STANDARD)]
    assert len(names) == len(set(names))
    assert "Reno and last buffer - 1" in names
    assert "shared buffer 20 and shared buffer 100" not in names
    assert "K = 4" not in names


def test_a_combination_changes_what_it_says() -> None:
    (base,) = (
        base
        for base in changed.bases()
        if base.path == changed.TESTBED
        and base.table == "table 3.9"
        and base.policy == CR
        and base.buffer == 10
    )
    chosen = {factor.name: factor for factor in changed.FACTORS[changed.TESTBED]}
    cell = base.cell((chosen["c = 100"], chosen["last buffer - 1"]), 2)
    assert cell.settings["links.7.queue"] == "9 packets"
    assert cell.settings["flows.2.tcp.increase"]["c"] == 100.0
    assert cell.case["buffer_packets"] == 10


def _invented(value: Callable[[str], float]) -> tuple[Runs, changed.Base]:
    """Runs of one cell of table 3.1, whose goodput goes by what is changed."""
    base = changed.bases()[0]
    found = {}
    for combination in changed.combinations(base.path, base.policy):
        cell = base.cell(combination, 2)
        mean = value(cell.case["factor"])
        found[cell.case] = {"goodput_bps": [mean, mean * 1.001], "losses_packets": [1.0, 1.0]}
    return Runs(found), base


def test_one_factor_is_named_before_a_pair_that_is_nearer() -> None:
    values = {"short paths": 16_900.0, "short paths and last buffer + 1": 16_540.0}
    runs, base = _invented(lambda changed: values.get(changed, 5_000.0))
    (goodput, _) = base.numbers()
    found = factors.candidate(runs, base, goodput)
    assert found is not None
    assert changed.name(found) == "short paths"


def test_no_cause_is_named_where_fresh_runs_do_not_show_it() -> None:
    runs, base = _invented(lambda of: 16_540.0 if of == "short paths" else 5_000.0)
    (goodput, _) = base.numbers()
    found = factors.candidate(runs, base, goodput)
    assert found is not None
    case = base.cell(found, 1).case.but(runs=changed.FRESH)
    missed = runs.joined(Runs({case: {"goodput_bps": [9_000.0, 9_010.0, 9_020.0]}}))
    assert factors.MET not in factors.explained(missed, base, goodput).why
    met = runs.joined(Runs({case: {"goodput_bps": [16_500.0, 16_540.0, 16_580.0]}}))
    assert "It is met with short paths" in factors.explained(met, base, goodput).why


# --- The column "Loss" of the test-bed ---


def test_the_loss_column_is_given_by_both_readings() -> None:
    for name in ("testbed", "testbed-window"):
        numbers = Section.of("obanaik2003", f"fairness/{name}").numbers
        packets = [number for number in numbers if number.metric == bed.PACKETS]
        shares = [number for number in numbers if number.metric == bed.SHARE]
        assert packets
        assert [number.value for number in packets] == pytest.approx(
            [100 * number.value for number in shares]
        )
        assert [number.case for number in packets] == [number.case for number in shares]


def test_a_part_is_one_command_and_the_whole_has_a_page(lasthop: Command, tmp_path: Path) -> None:
    done = lasthop("reproduce", "obanaik2003/fairness/slow", "--seeds", "2")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "reports" / "obanaik2003" / "fairness" / "slow"
    assert {file.name for file in folder.iterdir()} == {"results.json", "report.html"}


def test_the_page_of_the_whole_leads_to_its_parts(tmp_path: Path) -> None:
    from lasthop.publications import index
    from lasthop.publications.rows import Outcome

    outcomes = [Outcome("slow", "A slow link", "§3.2.1", "Slower.", [])]
    index.write(tmp_path, "obanaik2003/fairness", outcomes)
    page = (tmp_path / "report.html").read_text()
    assert 'href="slow/report.html"' in page
    assert library.published("obanaik2003")["authors"] in page


# --- Who has which policy ---


def _increases(cell: Cell) -> dict[int, object]:
    pattern = re.compile(r"flows\.(\d)\.tcp\.increase")
    found = ((pattern.fullmatch(key), value) for key, value in cell.settings.items())
    return {int(match[1]): value for match, value in found if match}


def test_increase_by_k_is_for_long_round_trips_and_the_others_for_all() -> None:
    assert set(_increases(simulation.cell(SLOW, IBK))) == {2, 3, 4}
    assert set(_increases(simulation.cell(SLOW, CANIT, "smoothed"))) == {0, 1, 2, 3, 4}


def test_where_it_is_off_connection_3_alone_is_without_it() -> None:
    assert set(_increases(simulation.cell(LTN, IBK, enabled="others"))) == {3, 4}
    assert set(_increases(simulation.cell(LTN, CR, "smoothed", enabled="others"))) == {0, 1, 3, 4}
    assert set(_increases(bed.cell(LTN, bed.Variant(CANIT), enabled="others"))) == {0, 1}


def test_the_test_bed_has_k_2_and_both_constants() -> None:
    assert _increases(bed.cell(SLOW, bed.Variant(IBK)))[2] == {"policy": IBK, "k": 2}
    constants = [variant.c for variant in bed.VARIANTS if variant.policy == CR]
    assert constants == [10.0, 100.0]


# --- What must come of them ---


def test_over_slow_last_hops_policies_lose_more_and_canit_has_least(
    runs: Mapping[str, Runs],
) -> None:
    for name, link in (("slow", SLOW), ("ltn", LTN)):
        found = runs[name]
        best = _mean(found, "goodput_bps", policy=STANDARD)
        fewest = _mean(found, "losses_packets", policy=STANDARD)
        for policy in policies.ALTERNATIVES:
            for rtt in policies.round_trips(policy):
                where = {"link": link, "policy": policy, "rtt": rtt}
                assert _mean(found, "losses_packets", **where) > 1.8 * fewest, where
                if policy == CANIT:
                    assert _mean(found, "goodput_bps", **where) < 0.75 * best, where


def test_constant_rate_that_is_off_costs_less(runs: Mapping[str, Runs]) -> None:
    for link in (SLOW, LTN):
        where = {"link": link, "policy": CR, "rtt": policies.default_rtt(CR)}
        on = _value(runs["disabled"], "goodput_bps", enabled="all", **where)
        off = _value(runs["disabled"], "goodput_bps", enabled="others", **where)
        assert off > 1.1 * on, where


def test_larger_buffers_make_round_trips_longer(runs: Mapping[str, Runs]) -> None:
    for link in (SLOW, LTN):
        cases = runs["buffers"].cases(link=link, policy=STANDARD, buffer_packets=(3, 7, 15, 30))
        trips = [runs["buffers"].values(case, "rtt_s")[0] for case in cases]
        assert all(a < b for a, b in pairwise(trips))


def test_a_window_of_four_segments_meets_what_was_published(runs: Mapping[str, Runs]) -> None:
    # Nothing but the path and the window decides it.
    where = {"link": SLOW, "policy": STANDARD, "receive_window_bytes": 1_024}
    assert _value(runs["testbed-window"], "payload_bps", **where) == pytest.approx(10_050, rel=0.1)


def test_where_last_hops_are_fast_increase_by_k_is_fairer(runs: Mapping[str, Runs]) -> None:
    for path in (fast.NEARER, fast.FAST):
        where = {"path": path.name, "cap": fast.UNCAPPED}
        plain = _value(runs["fast"], "fairness", policy=STANDARD, **where)
        assert _value(runs["fast"], "fairness", policy=IBK, **where) > 1.05 * plain


def test_windows_grow_by_a_segment_at_most_but_with_canit() -> None:
    def largest(policy: str) -> float:
        cell = simulation.cell(SLOW, policy, policies.default_rtt(policy))
        return max(b - a for a, b in pairwise(windows.steps(cell, 256)))

    assert largest(STANDARD) <= 1.0
    assert largest(IBK) <= 1.0
    assert largest(CANIT) > 5
