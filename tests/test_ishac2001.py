"""ishac2001: what must hold of each experiment, with few seeds."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import ishac_calibration as calibration
import pytest
import studies
import tables
from fixtures import Command, Off, Written

from lasthop import lab, library, publications
from lasthop.publications.ishac2001 import backpressure, fig5, fig9, network
from lasthop.publications.ishac2001.book import TABLES
from lasthop.publications.ishac2001.network import (
    BOUNDED,
    PACED,
    RECEIVER,
    REGULAR,
    SENDER,
    SPOOFED,
    UNLIMITED,
    VANTAGES,
)
from lasthop.publications.study import book
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Study
from lasthop.publications.study.verdict import Verdict
from lasthop.scenario import Scenario

ROOT = Path(__file__).resolve().parent.parent
CALIBRATION = ROOT / "bench" / "results" / "ishac2001-calibration.json"
NAMES = ("fig5", "fig9", "backpressure")
#: Of the quick runs here.
SIZES = (5, 10, 20, 100, 320, 380, 400, 480, 500, 700)
SEEDS = 3


def _study(name: str) -> Study:
    return studies.load(f"ishac2001/{name}")


def _small(study: Study, levels: Sequence[int]) -> Study:
    """Some cells of a study, without factors."""
    cells = [
        cell
        for cell in study.cells()
        if cell.case["packets"] in SIZES and cell.case["competitors"] in levels
    ]
    return replace(study, cells=lambda: cells, factors=None)


@pytest.fixture(scope="module")
def runs() -> Mapping[str, Runs]:
    """Few runs of all."""
    return {
        name: _small(_study(name), levels).measure(seeds=SEEDS)
        for name, levels in (("fig5", (50,)), ("fig9", (1, 200)), ("backpressure", (0,)))
    }


# --- The network ---


def test_every_figure_is_found_by_its_name() -> None:
    for figure in (5, 6, 8, 9, 10):
        (found,) = publications.find(f"ishac2001/fig{figure}")
        assert f"fig{figure}" in (found.name, *found.load().also)


def test_a_figures_name_is_enough_of_a_command(lasthop: Command, tmp_path: Path) -> None:
    done = lasthop("reproduce", "ishac2001/fig6", "--quick")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "reports" / "ishac2001" / "fig5"
    assert {"results.json", "report.html"} <= {file.name for file in folder.iterdir()}


def test_queues_hold_the_integer_part_of_a_round_trip_and_ethernets_have_no_limit() -> None:
    links = tomllib.loads(Scenario.load(network.SCENARIO).source)["links"]
    internet, satellite, *ethernets = links
    for link, bits, delay in ((internet, 1.5e6, 0.069), (satellite, 1.544e6, 0.250)):
        packets = math.floor(bits * 2 * delay / (8 * network.SEGMENT))
        assert link["queue"] == f"{packets} packets"
        assert float(link["delay"].removesuffix(" ms")) == pytest.approx(1e3 * delay)
    assert all("queue" not in link for link in ethernets)


def test_the_sizes_are_those_that_were_published() -> None:
    assert network.SIZES[:100] == tuple(range(1, 101))
    assert network.SIZES[100:] == (*range(110, 501, 10), 600, 700, 800, 900, 1000, 2000)
    cells = [*fig5.cells(), *(of for of in fig9.cells() if of.case["packets"] != fig9.ALONE)]
    for experiment in (cells[: len(fig5.cells())], cells[len(fig5.cells()) :]):
        assert {cell.case["packets"] for cell in experiment} == set(network.SIZES)
    assert {cell.seeds for cell in cells} == {30}


@pytest.mark.parametrize(
    ("competitors", "there", "back"), [(0, 0, 0), (1, 1, 0), (3, 2, 1), (200, 100, 100)]
)
def test_competitors_start_in_alternating_fashion(competitors: int, there: int, back: int) -> None:
    _, *others = network.flows(10, competitors)
    found = {flow["from"]: flow["traffic"]["arrivals"]["flows"] for flow in others}
    assert (found.get("h3", 0), found.get("h4", 0)) == (there, back)


def test_a_transfer_ends_at_each_end_when_it_should() -> None:
    """Times from the events of a run: the row has the same."""
    for arm in (REGULAR, SPOOFED):
        scenario, seed = network.cell(20, arm, RECEIVER, competitors=0).single(0)
        result = lab.run(scenario, seed=seed, events=True)
        assert result.events is not None
        row = result.rows.row(0, named=True)
        events = result.events.filter(result.events["node"] == "h5")
        last = max(events.filter(events["event"] == "acknowledged")["t_s"].to_list())
        assert row["acknowledged_s"] == pytest.approx(last - 5.0)
        # The receiver has all data 250 ms before the sender can know, or the gateway spoofs.
        assert (row["completed_s"] < row["acknowledged_s"]) is (arm == REGULAR)
        assert row["payload_bytes"] == 20 * network.SEGMENT


# --- Calibration ---


def test_the_scenario_has_the_calibrated_point() -> None:
    chosen = json.loads(CALIBRATION.read_text())["chosen"]
    _, *others = tomllib.loads(Scenario.load(network.SCENARIO).source)["flows"]
    for flow in others:
        sizes = flow["traffic"]["sizes"]["log_normal"]
        assert sizes == {"mean": f"{chosen['mean_kb']} kB", "sigma": chosen["sigma"]}
        assert flow["traffic"]["arrivals"]["think"] == f"{chosen['think_s']:g} s"


def test_the_calibrated_point_is_the_best_of_the_whole_grid() -> None:
    kept = json.loads(CALIBRATION.read_text())
    axes = (calibration.SIGMAS, calibration.MEANS_KB, calibration.THINKS_S)
    assert len(kept["grid"]) == math.prod(map(len, axes))
    assert kept["chosen"]["error"] == min(of["error"] for of in kept["best"])
    screened = sorted(of["error"] for of in kept["grid"])[: len(kept["best"])]
    names = ("sigma", "mean_kb", "think_s")
    best = [[of[name] for name in names] for of in kept["best"]]
    assert all(
        [of[name] for name in names] in best
        for of in kept["grid"]
        if round(of["error"], 2) < round(screened[-1], 2)
    )


def test_the_error_of_a_calibration_is_of_both_drop_rates() -> None:
    point = calibration.Point(1.0, 15, 5.0)
    exact = calibration.Measured(point, {1: 0.002, 200: 0.09}, {})
    assert exact.error == pytest.approx(0.0)
    off = calibration.Measured(point, {1: 0.002, 200: 0.09 * math.e}, {})
    assert off.error == pytest.approx(math.sqrt(0.5))


# --- The studies ---


@pytest.mark.parametrize("name", NAMES)
def test_a_study_becomes_rows_pictures_and_a_page(
    name: str, runs: Mapping[str, Runs], written: Written
) -> None:
    folder, answers = written(_study(name), runs[name])
    rows, _ = studies.reported(f"ishac2001/{name}", folder, answers)
    metrics = {row["metric"] for row in rows}
    assert metrics >= {"throughput_bps", "gain_percent", "dropped_packets"}
    shown = TABLES[name]
    lines = shown.markdown(book.kept(shown, folder)).splitlines()
    assert all(line.count("|") == len(shown.columns) + 2 for line in lines)
    assert f"ishac2001-{name}-numbers" in dict(tables.of_publications())


@pytest.mark.parametrize("name", ["fig5", "fig9"])
def test_every_statement_is_tested(name: str) -> None:
    stated = library.published("ishac2001")[name]["statement"]
    assert {of["id"] for of in stated} == set(_study(name).tests)


def test_senders_are_done_early_and_satellite_queues_overflow(runs: Mapping[str, Runs]) -> None:
    found = runs["fig5"]

    def value(packets: int, arm: str, vantage: str, metric: str) -> float:
        case = found.case(packets=packets, spoofer=arm, vantage=vantage)
        estimate = found.mean(case, metric)
        assert estimate is not None
        return estimate.value

    for size in (5, 10, 20):
        assert value(size, SPOOFED, SENDER, SENDER) > 1.5 * value(size, REGULAR, SENDER, SENDER)
        receivers = [value(size, arm, RECEIVER, RECEIVER) for arm in (REGULAR, SPOOFED)]
        assert receivers[1] == pytest.approx(receivers[0], rel=0.4)
    losses = [value(480, arm, RECEIVER, "dropped") for arm in (REGULAR, UNLIMITED, SPOOFED)]
    assert losses[2] > losses[1] + 5
    assert losses[2] > losses[0] + 5


def test_what_spoofing_does_needs_the_spoofer(off: Off, runs: Mapping[str, Runs]) -> None:
    """Regular TCP's runs in the place of all others."""
    for name, levels in (("fig5", (50,)), ("fig9", (1, 200))):
        study = _study(name)
        cases = [cell.case for cell in _small(study, levels).cells()]
        without = off(runs[name], cases, _regular, 24)
        effects = {
            of["id"]
            for of in library.published("ishac2001")[name]["statement"]
            if of["effect_of"] == "spoofer"
        }
        assert effects
        verdicts = {of.id: of.verdict for of in study.judge(without)}
        assert {id for id in effects if verdicts[id] is Verdict.HOLDS} == set(), name


@pytest.mark.parametrize(
    ("effect", "arms", "without"),
    [("cache", tuple(backpressure.SETTINGS), SPOOFED), ("rate", (PACED,), BOUNDED)],
)
def test_what_a_bounded_cache_and_a_rate_do_needs_them(
    effect: str, arms: Sequence[str], without: str, off: Off, runs: Mapping[str, Runs]
) -> None:
    """Runs of the spoofer without it in the place of those with it."""
    study = _study("backpressure")
    cases = [cell.case for cell in _small(study, (0,)).cells()]

    def plain(case: Case) -> Case:
        return case.but(spoofer=without) if case["spoofer"] in arms else case

    claims = [
        of
        for of in study.judge(off(runs["backpressure"], cases, plain, 24, 0.001))
        if of.effect_of == effect
    ]
    assert claims
    assert [of.claim for of in claims if of.verdict is Verdict.HOLDS] == []


def test_the_gateway_knows_the_rate_of_the_satellite_link_and_its_near_end() -> None:
    _, satellite, *_ = tomllib.loads(Scenario.load(network.SCENARIO).source)["links"]
    given = backpressure.SETTINGS[PACED]
    assert (given["hop"], given["rate"]) == (satellite["between"][0], satellite["rate"])


def _regular(case: Case) -> Case:
    return case.but(spoofer=REGULAR)


@pytest.mark.soak
def test_every_cell_can_be_run() -> None:
    for name in NAMES:
        study = _study(name)
        cells: list[Cell] = [cell for cell in study.cells() if cell.case["vantage"] in VANTAGES]
        measured = replace(study, cells=lambda cells=cells: cells, factors=None).measure(seeds=1)  # type: ignore[misc]
        for case in measured:
            assert measured.values(case, case["vantage"]), case
