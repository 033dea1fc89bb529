"""bbn8333's simulations: what must hold of each, at its figures and with few seeds."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tables
from typer.testing import CliRunner

from lasthop import lab, library, publications
from lasthop.cli import app
from lasthop.publications.bbn8333 import comparisons, findings
from lasthop.publications.bbn8333.cases import (
    LFN,
    LTN,
    UDP,
    WESTWOOD,
    Besides,
    Case,
    Network,
    Runs,
    Variant,
)
from lasthop.publications.bbn8333.ceten import BEYOND
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.simulation import NETWORKS, Simulation
from lasthop.publications.bbn8333.variations import (
    ALWAYS_ON,
    FIRST_LINK,
    LARGE_DATAGRAMS,
    LAST_LINK,
    VARIATIONS,
    named,
    pairs,
)
from lasthop.publications.index import write as write_index
from lasthop.publications.study.verdict import Judgement, Verdict
from lasthop.scenario import Scenario
from lasthop.stats import Estimate

(CLEAN_RETURN,) = named("clean-return")
CUMULATIVE = ("sim7", "sim8")
NAMES = ("sim1", "sim2", "sim3", "sim4", "sim5", "sim6", *CUMULATIVE)


def _simulation(name: str) -> Simulation:
    module = importlib.import_module(f"lasthop.publications.bbn8333.{name}")
    simulation: Simulation = module.SIMULATION
    return simulation


@pytest.fixture(scope="module")
def evidence() -> Mapping[str, findings.Evidence]:
    """Quick runs of all; what they have in common is run once."""
    return {name: _simulation(name).measure(quick=True) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_every_statement_is_tested_and_becomes_a_row(
    name: str, evidence: Mapping[str, findings.Evidence], tmp_path: Path
) -> None:
    simulation = _simulation(name)
    stated = library.published("bbn8333")[name]
    assert {s["id"] for s in stated["statement"]} == set(simulation.tests)
    found = simulation.write(tmp_path, evidence[name]).findings
    rows = json.loads((tmp_path / "results.json").read_text())
    assert [row["claim"] for row in rows if row["metric"] == "finding"] == [
        s["claim"] for s in [*stated.get("ratio", ()), *stated["statement"]]
    ]
    contradictory = [s["id"] for s in stated["statement"] if "contradicts" in s]
    for finding in found:
        assert finding.why
        assert ("contradicts itself" in finding.why) is (finding.id in contradictory)
    page = re.sub(r"\s+", " ", (tmp_path / "report.html").read_text().replace("&#39;", "'"))
    # A figure each, and today's stack beside the report's where it was run.
    assert page.count("<svg") == len(simulation.networks) + len(simulation.profiles) - 1
    for finding in found:
        assert finding.why in page


@pytest.mark.parametrize("name", NAMES)
def test_every_variant_is_at_every_point_of_the_figure(
    name: str, evidence: Mapping[str, findings.Evidence]
) -> None:
    simulation, runs = _simulation(name), evidence[name].runs
    for query in simulation.panels.values():
        for network in simulation.networks:
            for variant in simulation.shown:
                cases = runs.cases(
                    recovery=variant.recovery, eten=variant.eten, network=network, **query
                )
                if variant.eten == "oracle" and query.get("competitors"):
                    assert not cases
                    continue
                # What the report lacks is not in a quick run where it is dear.
                if name == "sim7" and variant in BEYOND and query["competitors"]:
                    assert not cases
                    continue
                rates = sorted({case.bit_error_rate for case in cases})
                assert rates[0] == 0
                assert rates[-3:] == [1.56e-7, 1.56e-6, 1.56e-5]


@pytest.mark.parametrize("name", NAMES)
def test_error_notification_helps_most_where_errors_are_most(
    name: str, evidence: Mapping[str, findings.Evidence]
) -> None:
    runs = evidence[name].runs
    for case in runs.cases(
        recovery="sack", eten="backward", bit_error_rate=1.56e-5, errors="both", competitors=(0, 4)
    ):
        plain = case.but(eten="none")
        assert runs.goodput(case).value > 1.5 * runs.goodput(plain).value, str(case)


def test_cross_traffic_takes_its_share(evidence: Mapping[str, findings.Evidence]) -> None:
    for name in ("sim3", "sim4", "sim6"):
        runs = evidence[name].runs
        for case in runs.cases(bit_error_rate=0.0, competitors=8):
            alone = case.but(cross_traffic="none", competitors=0)
            assert runs.goodput(case).value < runs.goodput(alone).value, str(case)


def test_without_errors_westwood_does_as_sack_where_nothing_is_lost(
    evidence: Mapping[str, findings.Evidence],
) -> None:
    runs = evidence["sim5"].runs
    for case in runs.cases(bit_error_rate=0.0):
        assert runs.goodput(case).value == pytest.approx(1.499e6, rel=1e-3)
    # And keeps more than SACK where much is.
    (westwood,) = runs.cases(window=WESTWOOD, bit_error_rate=1.56e-5)
    sack = westwood.but(recovery="sack", window="aimd")
    assert runs.goodput(westwood).value > 1.2 * runs.goodput(sack).value


@pytest.mark.parametrize("name", NAMES)
def test_the_full_plan_has_every_network_once_and_few_seeds_where_runs_are_dear(name: str) -> None:
    simulation = _simulation(name)
    plan = [block for block, variation in simulation.plan(None, quick=False) if not variation]
    points = [
        (block.profile, variant, network, block.cross_traffic, block.competitors)
        for block in plan
        for network in block.networks
        for variant in block.variants
    ]
    assert len(points) == len(set(points))
    assert {network for _, _, network, _, _ in points} == set(NETWORKS)
    for block in plan:
        if block.networks == simulation.networks and not block.beyond:
            assert block.seeds == 30
        elif block.competitors:
            assert block.seeds == (3 if block.networks[0].rate_bps == 100e6 else 10)
        else:
            assert block.seeds == 30


@pytest.mark.parametrize("name", NAMES)
def test_a_quick_plan_has_the_figures_alone(name: str) -> None:
    simulation = _simulation(name)
    for block, variation in simulation.plan(None, quick=True):
        assert variation is None
        assert block.networks == simulation.networks
        assert block.seeds == 3
        # What the report lacks only where it is cheap.
        assert not (block.beyond and block.competitors)


def _any_runs(simulation: Simulation) -> Runs:
    """What its plan would give, had every run the same luck."""
    goodputs: dict[Case, list[float]] = {}
    for block, variation in simulation.plan(None, quick=False):
        if variation is None:
            for network, rate, errors in block.points():
                for index, of in enumerate(block.variants):
                    case = Case(
                        of.recovery,
                        of.eten,
                        network.rate_bps,
                        network.one_way_delay_s,
                        rate,
                        errors,
                        block.profile,
                        of.window,
                        block.hops,
                        block.cross_traffic,
                        block.competitors,
                    )
                    goodputs[case] = [100 - index - 1e6 * rate + seed for seed in range(3)]
    besides = Besides(others=[5.0, 6.0, 7.0], timeouts=[1.0] * 3, reductions=[2.0] * 3)
    return Runs(goodputs, dict.fromkeys(goodputs, besides))


@pytest.mark.parametrize("name", CUMULATIVE)
def test_every_statement_can_be_decided_from_the_plan(name: str, tmp_path: Path) -> None:
    simulation = _simulation(name)
    stated = library.published("bbn8333")[name]
    assert [s["id"] for s in stated["statement"]] == list(simulation.tests)
    runs = _any_runs(simulation)
    outcome = simulation.write(tmp_path, findings.Evidence(runs, {}))
    assert len(outcome.findings) == len(stated["statement"])
    assert all("Nothing arrived" not in finding.why for finding in outcome.findings)
    assert (tmp_path / "report.html").read_text().count("<svg") == 1 + len(simulation.panels)


def test_what_simulations_have_in_common_is_run_once() -> None:
    def cells(name: str) -> set[str]:
        plan = _simulation(name).plan(None, quick=True)
        return {block.scenario(variation).sha256 for block, variation in plan}

    sim3 = {b.scenario().sha256 for b in _simulation("sim3").blocks((Network(1.5e6, 0.01),))}
    sim6 = {b.scenario().sha256 for b in _simulation("sim6").blocks((Network(1.5e6, 0.01),))}
    assert len(sim3 & sim6) == 3
    assert cells("sim3").isdisjoint(cells("sim5"))


@pytest.mark.parametrize("name", NAMES)
def test_the_scenario_file_is_the_path_that_is_run(name: str) -> None:
    scenario = Scenario.load(f"bbn8333/{name}")
    assert scenario.outline().points > 0
    file = tomllib.loads(scenario.source)
    assert file["profile"] == "ns2-2001"
    assert len({(link["rate"], link["delay"], link["queue"]) for link in file["links"]}) == 1
    cross = file["flows"][1:]
    assert [(flow["from"], flow["to"]) for flow in cross] == [
        ends for _ in range(len(cross) // 2) for ends in (("left", "right"), ("right", "left"))
    ]
    assert [flow["start"] for flow in cross] == [
        f"{40 + 50 * (index // 2)} ms" for index in range(len(cross))
    ]


def test_udp_sources_have_a_quarter_of_every_rate() -> None:
    block = Block((Variant("sack"),), (LTN, LFN), cross_traffic="udp", competitors=4)
    sweep: Any = dict(block.scenario().overrides)["sweep"]
    columns = sweep["zip"][0]
    for index in range(1, 9):
        assert set(columns[f"flows.{index}.traffic.udp.rate"]) == {"0.375 Mbit/s", "25 Mbit/s"}
    assert "flows.9.traffic.udp.rate" not in columns


def test_a_variation_changes_one_thing() -> None:
    for name in NAMES:
        for variation in _simulation(name).variations:
            changed = [
                *variation.settings,
                *variation.cross,
                *(["hops"] if variation.hops else []),
                *(["recovery"] if variation.recovery else []),
                *(["link"] if variation.link is not None else []),
                *(["clean_return"] if variation.clean_return else []),
            ]
            assert len(changed) == 1, variation.id


def test_a_statement_that_fails_is_tried_with_every_factor() -> None:
    case = Case("sack", "backward", LTN.rate_bps, LTN.one_way_delay_s, 1e-5, "both", "ns2-2001")
    tried = VARIATIONS[1:3]

    def runs(goodput: float) -> Runs:
        return Runs({case: [goodput, goodput * 1.01]})

    def test(of: Runs) -> Judgement:
        found: Estimate = of.goodput(case)
        return Judgement(Verdict.of(found.value > 5), f"It is {found.value:.1f}.", found, case)

    both = pairs(tried)

    def told(first: float, second: float, together: float = 3.0) -> str:
        goodputs = zip((*tried, *both), (first, second, together), strict=True)
        varied = {of.id: runs(goodput) for of, goodput in goodputs}
        evidence = findings.Evidence(runs(1.0), varied, tried, both, (LTN,))
        return findings.tried(test, evidence, 4.0)

    assert f"With {tried[1].name} it does: It is 6.0." in told(1.0, 6.0)
    assert "No single factor" in told(1.0, 2.0)
    assert f"It moves to 2.01 with {tried[1].name}" in told(1.0, 2.0)
    assert f"No clear effect: {tried[0].name}" in told(1.0, 2.0)
    # Two at once only where none alone does.
    assert "pairs" not in told(1.0, 6.0, 6.0)
    assert f"Nearest to it comes {both[0].name} with 3.02" in told(1.0, 2.0)
    assert f"With {tried[0].name} and {tried[1].name} it does: It is 6.0." in told(1.0, 2.0, 6.0)


def test_two_factors_at_once_change_what_both_change() -> None:
    of = CLEAN_RETURN & ALWAYS_ON & LARGE_DATAGRAMS
    assert of.clean_return
    assert list(of.cross) == ["traffic.udp", "traffic.udp.packet"]
    with pytest.raises(ValueError, match="change the same factor"):
        FIRST_LINK & LAST_LINK
    with pytest.raises(ValueError, match="change the same factor"):
        VARIATIONS[0] & VARIATIONS[1]
    block = Block((Variant("sack"),), (LTN,), cross_traffic=UDP, competitors=4, seeds=1)
    runs = block.varied(of).runs(lab.sweep(block.varied(of).scenario(of)))
    (case,) = runs.cases(bit_error_rate=0.0)
    assert runs.load(case).value > 0.9


def test_who_is_told_what_is_told_by_the_settings_that_any_of_a_block_has() -> None:
    block = Block((Variant("reno"), Variant("reno", "cumulative-loss-ratio")), (LTN,))
    sweep: Any = dict(block.scenario().overrides)["sweep"]
    senders = sweep["zip"][1]
    assert senders["flows.0.tcp.eten.report"] == ["none", "cumulative"]
    assert senders["flows.0.tcp.eten.strategy"] == ["loss-ratio", "loss-ratio"]
    twice = Block((Variant("reno"), Variant("reno")), (LTN,))
    with pytest.raises(ValueError, match="nothing tells these apart"):
        twice.scenario()
    # Others are not asked for what they do not know.
    sweep = dict(Block((Variant("sack"), Variant("sack", "oracle")), (LTN,)).scenario().overrides)[
        "sweep"
    ]
    assert list(sweep["zip"][1]) == [
        f"flows.0.tcp.{key}" for key in ("recovery", "congestion", "eten.report")
    ]


def test_with_a_clean_return_what_counts_for_both_directions_is_run_once() -> None:
    block = Block((Variant("sack"),), (LTN,), directions=("forward", "both"), clean_return=True)
    assert [rate for _, rate, _ in block.points()] == [0.0, 1.56e-7, 1.56e-6, 1.56e-5]
    runs = block.runs(lab.sweep(block.scenario(), seeds=1))
    for case in runs.cases(errors="both"):
        assert runs.goodput(case) == runs.goodput(case.but(errors="forward"))
    assert len(runs.cases()) == 8


def _two(told: list[float], plain: list[float], *, timeouts: float = 1.0) -> Runs:
    case = Case("sack", "backward", LTN.rate_bps, LTN.one_way_delay_s, 1e-5, "both", "ns2-2001")
    ours = Besides([0.0] * 4, [timeouts] * 4, [2.0] * 4)
    besides = {case: ours, case.but(eten="none"): Besides([0.0] * 4, [1.0] * 4, [3.0] * 4)}
    return Runs({case: told, case.but(eten="none"): plain}, besides)


def test_a_cell_in_which_being_told_costs_goodput_is_told_with_what_differs() -> None:
    assert comparisons.worse(_two([10.0, 11.0, 10.0, 11.0], [10.0, 10.5, 10.0, 11.0])) == []
    (cell,) = comparisons.worse(_two([5.0, 5.5, 5.1, 5.4], [10.0, 10.5, 10.0, 11.0], timeouts=4))
    assert cell.gain.value == pytest.approx(21 / 41.5)
    assert "4 times a run instead of 1" in cell.why
    assert "The timeouts cost more" in cell.why
    assert "nothing to gain" not in cell.why
    full = [LTN.rate_bps - 1, LTN.rate_bps - 2, LTN.rate_bps - 1, LTN.rate_bps - 2]
    (cell,) = comparisons.worse(_two([rate - 5 for rate in full], full))
    assert "nothing to gain" in cell.why


def test_a_bound_holds_if_none_is_above_and_differs_if_one_clearly_is() -> None:
    bound = comparisons.no_better(("none",), ("backward", "oracle"), "None over told")
    alike = [10.0, 10.01, 10.0, 10.01]
    assert bound(_two(alike, alike[::-1])).verdict is Verdict.HOLDS
    # Too few runs are no agreement.
    unclear = bound(_two([10.0, 11.0, 10.0, 11.0], [10.0, 10.5, 10.5, 11.0]))
    assert unclear.verdict is Verdict.UNDECIDED
    broken = bound(_two([5.0, 5.5, 5.1, 5.4], [10.0, 10.5, 10.0, 11.0]))
    assert broken.verdict is Verdict.DIFFERS
    assert "SACK over SACK + Backward" in broken.why
    nothing = comparisons.no_better(("oracle",), ("none",), "Oracle over none")
    assert nothing(_two([1.0], [1.0])).verdict is Verdict.UNDECIDED


def test_a_publication_has_a_page_that_leads_to_all_of_it(
    evidence: Mapping[str, findings.Evidence], tmp_path: Path
) -> None:
    outcomes = []
    for name in ("sim4", "sim5"):
        (tmp_path / name).mkdir()
        outcomes.append(_simulation(name).write(tmp_path / name, evidence[name]))
    write_index(tmp_path, "bbn8333", outcomes)
    page = (tmp_path / "report.html").read_text()
    for outcome in outcomes:
        assert f"{outcome.agree} of {len(outcome.findings)}" in page
        assert outcome.line in page
    for target, anchor in re.findall(r'href="([^"#]+)(?:#([^"]+))?"', page):
        assert f'id="{anchor}"' in (tmp_path / target).read_text() or not anchor
    rows = json.loads((tmp_path / "results.json").read_text())
    assert rows == [
        row
        for name in ("sim4", "sim5")
        for row in json.loads((tmp_path / name / "results.json").read_text())
    ]
    assert sum("contradicts" in row for row in rows) == 2


def test_all_of_a_publication_is_reproduced_into_one_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    two = [of for of in publications.EXPERIMENTS if of.id in ("bbn8333/sim4", "bbn8333/sim5")]
    monkeypatch.setattr(publications, "EXPERIMENTS", two)
    done = CliRunner().invoke(app, ["reproduce", "bbn8333", "--quick", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    each = ("results.json", "explanations.json", "report.html")
    assert written == {"results.json", "report.html"} | {
        f"{name}/{file}" for name in ("sim4", "sim5") for file in each
    }


def test_a_case_says_only_what_was_varied() -> None:
    case = Case("sack", "none", 1.5e6, 0.01, 0.0, "both", "ns2-2001")
    assert "hops" not in case.as_dict()
    beside = case.but(hops=3, cross_traffic="udp", competitors=4, window=WESTWOOD)
    assert beside.as_dict() == case.as_dict() | {
        "window": "westwood-2001",
        "hops": 3,
        "cross_traffic": "udp",
        "competitors": 4,
    }


def test_a_publication_is_all_of_its_experiments() -> None:
    ids = [of.id for of in publications.find("bbn8333")]
    assert ids == [f"bbn8333/{name}" for name in NAMES]
    assert [of.id for of in publications.find("bbn8333/sim4")] == ["bbn8333/sim4"]
    assert set(tables.FIGURES) == set(NAMES) - {"sim1"}
