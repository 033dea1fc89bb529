"""bbn8333's simulations: what must hold of each, at its figures and with few seeds."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import studies
from selection import some
from typer.testing import CliRunner

from lasthop import library, publications
from lasthop.cli import app
from lasthop.publications import bbn8333
from lasthop.publications.bbn8333 import ceten, comparisons, sim1, sim5
from lasthop.publications.bbn8333.cases import (
    BACKWARD,
    GOODPUT,
    LFN,
    LTN,
    ORACLE,
    RENO,
    SACK,
    UDP,
    WESTWOOD,
    collect,
    error_rates,
    gain_of,
    goodput_of,
    load_of,
    network,
    network_of,
    plain,
    sender,
)
from lasthop.publications.bbn8333.ceten import BEYOND
from lasthop.publications.bbn8333.factors import (
    ALWAYS_ON,
    FACTORS,
    FIRST_LINK,
    LARGE_DATAGRAMS,
    LAST_LINK,
    Factor,
    named,
    pairs,
)
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.simulation import NETWORKS
from lasthop.publications.index import write as write_index
from lasthop.publications.study.factors import Factors, tried
from lasthop.publications.study.reproduce import outcome, write
from lasthop.publications.study.runs import Case, Cell, Runs, Values, jobs, measure
from lasthop.publications.study.study import Study
from lasthop.publications.study.verdict import Judgement, Verdict
from lasthop.scenario import Scenario

(CLEAN_RETURN,) = named("clean-return")
WESTWOOD_ON_RENO = sender("reno", window=WESTWOOD)
CUMULATIVE = ("sim7", "sim8")
#: Those with networks of 100 Mb/s.
FAST = ("sim1", "sim2", *CUMULATIVE)
NAMES = ("sim1", "sim2", "sim3", "sim4", "sim5", "sim6", *CUMULATIVE)


def _simulation(name: str) -> Study:
    return studies.load(f"bbn8333/{name}")


def _short(study: Study) -> Study:
    """The simulation with runs of 20 s instead of 120 s."""
    return replace(
        study,
        cells=lambda: [
            replace(cell, settings={**cell.settings, "duration": "20 s"}) for cell in study.cells()
        ],
    )


@pytest.fixture(scope="module")
def runs() -> Mapping[str, Runs]:
    """Quick runs of all; what they have in common is run once.

    Those at 100 Mb/s are shorter: whole, they take more than ten times the time of all others
    together, and `make soak` has them.
    """
    studies = {name: _simulation(name) for name in NAMES}
    for name in FAST:
        studies[name] = _short(studies[name])
    return {name: study.measure(quick=True) for name, study in studies.items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_statement_is_tested_and_becomes_a_row(
    name: str, runs: Mapping[str, Runs], tmp_path: Path
) -> None:
    study = _simulation(name)
    stated = library.published("bbn8333")[name]["statement"]
    assert {s["id"] for s in stated if "metric" not in s} == set(study.tests)
    answers = write(study, tmp_path, runs[name])
    rows = json.loads((tmp_path / "results.json").read_text())
    claims = [s["claim"] for s in stated]
    assert [row["claim"] for row in rows if row["metric"] == "finding"] == claims
    contradictory = [s["id"] for s in stated if "contradicts" in s]
    for answer in answers:
        assert answer.why
        assert ("contradicts itself" in answer.why) is (answer.id in contradictory)
    page = re.sub(r"\s+", " ", (tmp_path / "report.html").read_text().replace("&#39;", "'"))
    # A figure each, and today's stack beside the report's where it was run; neither factors nor
    # the appendix's networks are in a quick run.
    profiles = {case["profile"] for case in runs[name]}
    networks = {network_of(case) for case in runs[name]}
    assert page.count("<svg") == len(networks) + len(profiles) - 1
    for answer in answers:
        assert answer.why in page


#: The senders of each simulation's figures, and how many others are beside them.
SHOWN: Mapping[str, tuple[Sequence[Case], Sequence[int]]] = {
    "sim1": (sim1.SENDERS, (0,)),
    "sim2": (sim1.SENDERS, (0,)),
    "sim3": ((SACK, BACKWARD, ORACLE), (0, 4, 8)),
    "sim4": ((SACK, BACKWARD), (0, 4, 8)),
    "sim5": (sim5.SENDERS, (0,)),
    "sim6": ((SACK, BACKWARD, sim5.FIRST, sim5.PLUS), (0, 4, 8)),
    "sim7": (ceten.SHOWN, (0, 4, 8)),
    "sim8": (ceten.SHOWN, (0, 4, 8)),
}


@pytest.mark.parametrize("name", NAMES)
def test_every_sender_is_at_every_point_of_the_figure(name: str, runs: Mapping[str, Runs]) -> None:
    senders, beside = SHOWN[name]
    found = runs[name]
    for of in {network_of(case) for case in found}:
        for who in senders:
            for competitors in beside:
                cases = found.cases(**of, **who, competitors=competitors or None)
                if who["eten"] == "oracle" and competitors:
                    assert not cases
                    continue
                # What the report lacks is not in a quick run where it is dear.
                if name == "sim7" and who in BEYOND and competitors:
                    assert not cases
                    continue
                rates = error_rates(cases)
                assert rates[0] == 0
                assert rates[-3:] == [1.56e-7, 1.56e-6, 1.56e-5]


@pytest.mark.parametrize("name", NAMES)
def test_error_notification_helps_most_where_errors_are_most(
    name: str, runs: Mapping[str, Runs]
) -> None:
    notified = ceten.BACKWARD if name in CUMULATIVE else BACKWARD
    where = {"bit_error_rate": 1.56e-5, "errors": "both", "competitors": (None, 4)}
    for case in some(runs[name], **notified, **where):
        assert gain_of(runs[name], case).value > 1.5, case


@pytest.mark.soak
@pytest.mark.parametrize("name", FAST)
def test_a_simulation_in_whole_runs_is_as_complete(name: str, tmp_path: Path) -> None:
    runs = {name: _simulation(name).measure(quick=True)}
    test_every_statement_is_tested_and_becomes_a_row(name, runs, tmp_path)
    test_every_sender_is_at_every_point_of_the_figure(name, runs)
    test_error_notification_helps_most_where_errors_are_most(name, runs)


def test_no_published_ratio_holds_with_three_seeds(runs: Mapping[str, Runs]) -> None:
    study, of = _simulation("sim1"), runs["sim1"]
    numbers = {stated["id"] for stated in study.published.statements if "metric" in stated}
    found = [answer for answer in study.judge(of) if answer.id in numbers]
    assert len(found) == 5
    assert of.seeds == 3
    assert all(answer.verdict is not Verdict.HOLDS for answer in found)


def test_cross_traffic_takes_its_share(runs: Mapping[str, Runs]) -> None:
    for name in ("sim3", "sim4", "sim6"):
        of = runs[name]
        for case in some(of, bit_error_rate=0.0, competitors=8):
            alone = case.but(cross_traffic=None, competitors=None)
            assert goodput_of(of, case).value < goodput_of(of, alone).value, case


def test_without_errors_westwood_does_as_sack_where_nothing_is_lost(
    runs: Mapping[str, Runs],
) -> None:
    of = runs["sim5"]
    for case in some(of, bit_error_rate=0.0):
        assert goodput_of(of, case).value == pytest.approx(1.499e6, rel=1e-3)
    # And keeps more than SACK where much is.
    westwood = of.case(window=WESTWOOD, bit_error_rate=1.56e-5)
    sack = westwood.but(window=None).but(**SACK)
    assert goodput_of(of, westwood).value > 1.2 * goodput_of(of, sack).value


def _drawn(study: Study) -> set[Case]:
    """The networks of its figures: those of a quick run."""
    return {network_of(cell.case) for cell in study.cells() if cell.quick}


@pytest.mark.parametrize("name", NAMES)
def test_all_cells_have_every_network_once_and_few_seeds_where_runs_are_dear(name: str) -> None:
    study = _simulation(name)
    cells = study.cells()
    assert len({cell.case for cell in cells}) == len(cells)
    assert {network_of(cell.case) for cell in cells} == set(NETWORKS)
    drawn = _drawn(study)
    for cell in cells:
        case = cell.case
        few = 3 if case["rate_bps"] == 100e6 else 10
        if "competitors" not in case:
            assert cell.seeds == 30
        elif network_of(case) in drawn and cell.quick:
            # What the report lacks is not run quickly; of the rest, figures have many seeds.
            assert cell.seeds == 30
        else:
            assert cell.seeds == few


@pytest.mark.parametrize("name", NAMES)
def test_a_quick_run_has_the_figures_alone(name: str) -> None:
    cells = _simulation(name).cells()
    published = {"sim3": "sack", "sim4": "sack"}
    for cell, seeds in jobs(cells, None, quick=True):
        assert seeds == 3
        # What the report lacks only where it is cheap.
        if "competitors" in cell.case and name in published:
            assert cell.case["recovery"] == published[name]


def _any_runs(study: Study) -> Runs:
    """What all of it would give, had every run the same luck."""
    found: dict[Case, Values] = {}
    for index, cell in enumerate(study.cells()):
        level = 100 - index % 10 - 1e6 * cell.case["bit_error_rate"]
        found[cell.case] = {
            GOODPUT: [level + seed for seed in range(3)],
            "others": [5.0, 6.0, 7.0],
            "timeouts": [1.0] * 3,
            "reductions": [2.0] * 3,
        }
    return Runs(found)


@pytest.mark.parametrize("name", CUMULATIVE)
def test_every_statement_can_be_decided_from_all_cells(name: str, tmp_path: Path) -> None:
    study = _simulation(name)
    stated = library.published("bbn8333")[name]["statement"]
    assert [s["id"] for s in stated] == list(study.tests)
    answers = write(study, tmp_path, _any_runs(study))
    assert len(answers) == len(stated)
    assert all("Nothing arrived" not in answer.why for answer in answers)
    # The figure, and a panel for each number of competitors in the appendix.
    assert (tmp_path / "report.html").read_text().count("<svg") == 1 + 3


def _scenarios(cells: Iterable[Cell]) -> set[str]:
    return {cell.build(1).sha256 for cell in cells}


def test_what_simulations_have_in_common_is_run_once() -> None:
    def cells(name: str) -> set[str]:
        return _scenarios(
            cell
            for cell in _simulation(name).cells()
            if network_of(cell.case) == network(1.5e6, 0.01)
        )

    # SACK and Backward beside none, four and eight, and Oracle beside none, at three or four rates.
    assert len(cells("sim3") & cells("sim6")) == 3 * 4 + 2 * 2 * 4
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
    cells = Block((SACK,), (LTN, LFN), cross_traffic="udp", competitors=4).cells(1)
    for index in range(1, 9):
        rates = {cell.settings[f"flows.{index}.traffic.udp.rate"] for cell in cells}
        assert rates == {"0.375 Mbit/s", "25 Mbit/s"}
    assert not any("flows.9.traffic.udp.rate" in cell.settings for cell in cells)


def test_a_factor_changes_one_thing() -> None:
    for name in NAMES:
        factors = _simulation(name).factors
        assert factors is not None
        for factor in factors.tried:
            assert isinstance(factor, Factor)
            changed = [
                *factor.settings,
                *factor.cross,
                *(["hops"] if factor.hops else []),
                *(["recovery"] if factor.recovery else []),
                *(["link"] if factor.link is not None else []),
                *(["clean_return"] if factor.clean_return else []),
            ]
            assert len(changed) == 1, factor.id


def test_a_statement_that_fails_is_tried_with_every_factor() -> None:
    case = Case(**BACKWARD, **LTN, bit_error_rate=1e-5, errors="both", profile="ns2-2001")
    single = FACTORS[1:3]
    both = pairs(single)
    factors = Factors(single, lambda _: (), "some place", both)

    def runs(goodput: float) -> Runs:
        return Runs({case: {GOODPUT: [goodput, goodput * 1.01]}})

    def test(of: Runs) -> Judgement:
        found = goodput_of(of, case)
        return Judgement(Verdict.of(found.value > 5), f"It is {found.value:.1f}.", found, case)

    def text(first: float, second: float, together: float = 3.0) -> str:
        goodputs = zip((*single, *both), (first, second, together), strict=True)
        varied = {of.id: runs(goodput) for of, goodput in goodputs}
        return tried(test, Runs(runs(1.0).found, varied), factors, 4.0)

    assert f"With {single[1].name} it does: It is 6.0." in text(1.0, 6.0)
    assert "No single factor" in text(1.0, 2.0)
    assert f"It moves to 2.01 with {single[1].name}" in text(1.0, 2.0)
    assert f"No clear effect: {single[0].name}" in text(1.0, 2.0)
    # Two at once only where none alone does.
    assert "pairs" not in text(1.0, 6.0, 6.0)
    assert f"Nearest to it comes {both[0].name} with 3.02" in text(1.0, 2.0)
    assert f"With {single[0].name} and {single[1].name} it does: It is 6.0." in text(1.0, 2.0, 6.0)


def _run(cells: Sequence[Cell]) -> Runs:
    wanted = jobs(cells, None, quick=False)
    return Runs(
        dict(zip([cell.case for cell in cells], measure(wanted, collect, threads=0), strict=True))
    )


def test_two_factors_at_once_change_what_both_change() -> None:
    of = CLEAN_RETURN & ALWAYS_ON & LARGE_DATAGRAMS
    assert of.clean_return
    assert list(of.cross) == ["traffic.udp", "traffic.udp.packet"]
    with pytest.raises(ValueError, match="change the same factor"):
        FIRST_LINK & LAST_LINK
    with pytest.raises(ValueError, match="change the same factor"):
        FACTORS[0] & FACTORS[1]
    block = Block((SACK,), (LTN,), cross_traffic=UDP, competitors=4)
    runs = _run(block.cells(1, factor=of))
    assert load_of(runs, runs.case(bit_error_rate=0.0)).value > 0.9


def test_a_sender_is_made_by_its_own_settings_alone() -> None:
    block = Block((RENO, sender("reno", "cumulative-loss-ratio"), WESTWOOD_ON_RENO), (LTN,))
    plain_, notified, westwood = (cell.settings for cell in block.cells(1)[:3])
    assert plain_["flows.0.tcp.eten.report"] == "none"
    assert "flows.0.tcp.eten.strategy" not in plain_
    assert "flows.0.tcp.congestion" not in plain_
    assert notified["flows.0.tcp.eten.strategy"] == "loss-ratio"
    assert westwood["flows.0.tcp.congestion"] == WESTWOOD


def test_with_a_clean_return_what_counts_for_both_directions_is_run_once() -> None:
    block = Block((SACK,), (LTN,), directions=("forward", "both"))
    cells = block.cells(1, factor=CLEAN_RETURN)
    assert error_rates(cell.case for cell in cells) == [0.0, 1.56e-7, 1.56e-6, 1.56e-5]
    assert len(cells) == 8
    assert len(_scenarios(cells)) == 4
    runs = _run(cells)
    for case in some(runs, errors="both"):
        assert goodput_of(runs, case) == goodput_of(runs, case.but(errors="forward"))
    # As errors do that there are none of.
    assert len(_scenarios(block.cells(1))) == 7


def _two(notified: list[float], without: list[float], *, timeouts: float = 1.0) -> Runs:
    case = Case(**BACKWARD, **LTN, bit_error_rate=1e-5, errors="both", profile="ns2-2001")
    return Runs(
        {
            case: {GOODPUT: notified, "timeouts": [timeouts] * 4, "reductions": [2.0] * 4},
            plain(case): {GOODPUT: without, "timeouts": [1.0] * 4, "reductions": [3.0] * 4},
        }
    )


def test_a_cell_in_which_notices_cost_goodput_is_reported_with_its_differences() -> None:
    assert comparisons.worse(_two([10.0, 11.0, 10.0, 11.0], [10.0, 10.5, 10.0, 11.0])) == []
    (row,) = comparisons.worse(_two([5.0, 5.5, 5.1, 5.4], [10.0, 10.5, 10.0, 11.0], timeouts=4))
    sender_name, _, less, why = row
    assert sender_name == "SACK + Backward"
    assert less.startswith(f"{100 * (1 - 21 / 41.5):.3g} %")
    assert "4 times a run instead of 1" in why
    assert "The timeouts cost more" in why
    assert "nothing to gain" not in why
    rate = LTN["rate_bps"]
    full = [rate - 1, rate - 2, rate - 1, rate - 2]
    ((*_, why),) = comparisons.worse(_two([of - 5 for of in full], full))
    assert "nothing to gain" in why


def test_a_bound_holds_if_none_is_above_and_differs_if_one_clearly_is() -> None:
    bound = comparisons.no_better(("none",), ("backward", "oracle"), "None over notified")
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
    runs: Mapping[str, Runs], tmp_path: Path
) -> None:
    outcomes = []
    for name in ("sim4", "sim5"):
        (tmp_path / name).mkdir()
        study = _simulation(name)
        answers = write(study, tmp_path / name, runs[name])
        of = outcome(study, runs[name], answers)
        assert of is not None
        outcomes.append(of)
    write_index(tmp_path, "bbn8333", outcomes)
    page = (tmp_path / "report.html").read_text()
    for of in outcomes:
        assert f"{of.agree} of {len(of.findings)}" in page
        assert of.line in page
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
    monkeypatch.setattr(bbn8333, "EXPERIMENTS", ("sim4", "sim5"))
    done = CliRunner().invoke(app, ["reproduce", "bbn8333", "--quick", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    each = ("results.json", "explanations.json", "report.html")
    assert written == {"results.json", "report.html"} | {
        f"{name}/{file}" for name in ("sim4", "sim5") for file in each
    }


def test_a_case_says_only_what_was_varied() -> None:
    block = Block((SACK,), (LTN,), hops=1)
    alone = block.cells(1)[0].case
    assert alone == Case(**SACK, **LTN, bit_error_rate=0.0, errors="both", profile="ns2-2001")
    beside = Block((WESTWOOD_ON_RENO,), (LTN,), cross_traffic="udp", competitors=4)
    assert beside.cells(1)[0].case == alone.but(
        recovery="reno", window="westwood-2001", hops=3, cross_traffic="udp", competitors=4
    )


def test_a_publication_is_all_of_its_experiments() -> None:
    ids = [of.id for of in publications.find("bbn8333")]
    assert ids == [f"bbn8333/{name}" for name in NAMES]
    assert [of.id for of in publications.find("bbn8333/sim4")] == ["bbn8333/sim4"]
