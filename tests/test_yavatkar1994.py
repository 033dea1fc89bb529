"""yavatkar1994: what must hold of each experiment, with few seeds."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import studies
import tables as book_tables
from fixtures import Off, Written

from lasthop import library, publications
from lasthop.publications.study import book
from lasthop.publications.study.published import Section
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.study import Study
from lasthop.publications.study.verdict import Kind, Published, Verdict
from lasthop.publications.yavatkar1994 import (
    beside,
    cost,
    fixed,
    hop,
    path,
    restored,
    schemes,
    tables,
    today,
)
from lasthop.publications.yavatkar1994.book import TABLES
from lasthop.publications.yavatkar1994.schemes import MTCP, SRP, TCP
from lasthop.stats import Estimate

NAMES = publications.publications()["yavatkar1994"]
SEEDS = 2
#: Their runs are long or are followed packet by packet; one says what is tested of them.
DEAR = ("restored", "hop", "beside")


def _study(name: str) -> Study:
    return studies.load(f"yavatkar1994/{name}")


def _few(study: Study) -> Study:
    """The cells that the pictures and the answers need, without the slowest."""
    most = 0.0 if study.experiment in ("handoffs", "restored") else 0.1
    cells = [cell for cell in study.cells() if cell.case.get("loss", 0.0) <= most]
    if study.experiment == "restored":
        cells = [cell for cell in cells if cell.case["spacing_s"] != 3.0]
    if study.experiment == "hop":
        cells = [cell for cell in cells if cell.case["rtt_s"] != 0.6]
    if study.experiment == "beside":
        cells = [cell for cell in cells if cell.case["rtt_s"] == 0.1]
    return replace(study, cells=lambda: cells, most_seeds=0)


@pytest.fixture(scope="module")
def runs() -> Mapping[str, Runs]:
    """Few runs of all."""
    return {name: _few(_study(name)).measure(seeds=1 if name in DEAR else SEEDS) for name in NAMES}


# --- What was published ---


def test_all_published_cells_are_kept_with_their_intervals() -> None:
    for scheme, count in ((TCP, 12), (MTCP, 12), (SRP, 9)):
        numbers = Section.of("yavatkar1994", f"table{tables.NUMBERS[scheme]}").numbers
        assert len(numbers) == count
        for number in numbers:
            assert number.case["scheme"] == scheme
            assert number.of.ci95 is not None
            assert number.of.ci95[0] < number.value < number.of.ci95[1]
            assert number.of.runs == path.SEEDS
    # The last row of table 3 is lost.
    assert 5.0 not in {of.case["pause_s"] for of in Section.of("yavatkar1994", "table3").numbers}


def test_the_cells_that_contradict_the_order_are_named() -> None:
    """Of a table's columns, two fall with the pause; SRP is slower than MTCP in one cell."""

    def value(table: int, loss: float, pause: float) -> float:
        case = Case(scheme=(TCP, MTCP, SRP)[table - 1], loss=loss, pause_s=pause)
        found = Section.of("yavatkar1994", f"table{table}").number(case, "transfer_s")
        assert found is not None
        return found.value

    falls = {
        (table, loss)
        for table in (1, 2)
        for loss in path.LOSSES
        for before, after in itertools.pairwise(path.PAUSES_S)
        if value(table, loss, after) < value(table, loss, before)
    }
    assert falls == {(1, 0.1), (2, 0.05)}
    assert value(3, 0.05, 2.8) > value(2, 0.05, 2.8)
    stated = [
        of for n in (1, 2, 3) for of in library.published("yavatkar1994")[f"table{n}"]["statement"]
    ]
    assert sum("contradicts" in of for of in stated) == 3


def test_a_published_interval_is_met_where_it_is_wider_than_the_tolerance() -> None:
    wide = Published(21.7, Kind.PRINTED, 0.1, 40, (19.3, 24.1))
    assert (wide.band.lo, wide.band.hi) == (19.3, 24.1)
    assert wide.judge(Estimate(23.5, 23.1, 23.9, 40)) is Verdict.HOLDS
    narrow = replace(wide, ci95=None)
    assert narrow.judge(Estimate(23.5, 23.1, 23.9, 40)) is Verdict.DIFFERS
    tight = Published(16.3, Kind.PRINTED, 0.1, 40, (16.0, 16.6))
    assert (tight.band.lo, tight.band.hi) == pytest.approx((15.485, 17.115))


# --- Schemes ---


def test_a_scheme_that_the_build_has_not_got_is_not_run() -> None:
    assert [name for name in NAMES if name.startswith("table")] == [
        f"table{tables.NUMBERS[scheme]}" for scheme in schemes.ENABLED
    ]
    # One compares two settings of the same scheme.
    for name in set(NAMES) - {"restored"}:
        used = {cell.case["scheme"] for cell in _study(name).cells()}
        assert used & {TCP, MTCP, SRP} <= set(schemes.ENABLED)


@pytest.mark.parametrize("scheme", [MTCP, SRP])
def test_split_connections_have_an_agent_in_every_station_and_in_the_mobile(scheme: str) -> None:
    found = path.settings(scheme)
    (station,) = found["nodes.station1.boxes"]
    assert found["nodes.station2.boxes"] == [station]
    mobile, clamp = found["nodes.mobile.boxes"]
    mtu = path.Path.of_scenario().mtu
    assert (station["box"], station["mtu"]) == ("station", mtu)
    assert (mobile["box"], mobile["mtu"]) == ("mobile", mtu)
    assert mobile["hop"] == ("srp" if scheme == SRP else "tcp")
    assert clamp == {"box": "mss-clamp", "mss": mtu - schemes.HEADERS}
    # Over the wired part segments are as large as SunOS makes them.
    assert station["tcp"]["mss"] == found["flows.0.tcp.mss"] == 512


# --- The studies ---


@pytest.mark.parametrize("name", NAMES)
def test_a_study_becomes_rows_pictures_and_a_page(
    name: str, runs: Mapping[str, Runs], written: Written
) -> None:
    folder, answers = written(_study(name), runs[name])
    studies.reported(f"yavatkar1994/{name}", folder, answers)
    shown = TABLES[name]
    lines = shown.markdown(book.kept(shown, folder)).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert f"yavatkar1994-{name}-numbers" in dict(book_tables.of_publications())


@pytest.mark.soak
@pytest.mark.parametrize("name", DEAR)
def test_a_study_with_all_its_cells_is_as_complete(name: str, written: Written) -> None:
    runs = {name: _study(name).measure(seeds=1)}
    test_a_study_becomes_rows_pictures_and_a_page(name, runs, written)


def test_every_statement_is_tested() -> None:
    for scheme, number in tables.NUMBERS.items():
        stated = library.published("yavatkar1994")[f"table{number}"]["statement"]
        assert {of["id"] for of in stated} == set(tables.TESTS[scheme])
    stated = library.published("yavatkar1994")["fixed"]["statement"]
    assert {of["id"] for of in stated} == set(fixed.TESTS)


def test_every_cell_of_table_1_stands_beside_its_published_value(runs: Mapping[str, Runs]) -> None:
    numbers = list(tables.study(TCP).numbers(runs["table1"]))
    assert len(numbers) == 12
    assert {measure.metric for _, measure, _ in numbers} == {"transfer_s"}


def _world(effects: Mapping[str, float], seeds: int = 40) -> Runs:
    """Runs about the published values, with these factors for loss, pause, and schemes."""
    found = {}
    for scheme, number in tables.NUMBERS.items():
        for pause in path.PAUSES_S:
            for loss in path.LOSSES:
                case = Case(scheme=scheme, loss=loss, pause_s=pause)
                dice = random.Random(f"{case!r} {number}")
                level = 20.0
                level += effects.get("loss", 0.0) * 400 * loss * (0.3 if scheme != TCP else 1.0)
                level += effects.get("pause", 0.0) * 3 * pause
                level *= effects.get(scheme, 1.0)
                times = [level * math.exp(dice.gauss(0, 0.05)) for _ in range(seeds)]
                found[case] = {"transfer_s": times}
    return Runs(found)


def _holding(scheme: str, runs: Runs) -> set[str]:
    tests = tables.TESTS[scheme]
    return {id for id, test in tests.items() if test(runs).verdict is Verdict.HOLDS}


def test_every_statement_holds_in_a_world_where_it_is_so() -> None:
    runs = _world({"loss": 1.0, "pause": 1.0, MTCP: 0.7, SRP: 0.5})
    for scheme in tables.NUMBERS:
        assert _holding(scheme, runs) == set(tables.TESTS[scheme])


@pytest.mark.parametrize("off", ["loss", "pause", MTCP, SRP])
def test_no_effect_holds_without_what_it_is_of(off: str) -> None:
    effects = {"loss": 1.0, "pause": 1.0, MTCP: 0.7, SRP: 0.5}
    runs = _world({**effects, off: 0.0 if off in ("loss", "pause") else 1.0})
    if off in (MTCP, SRP):
        # What costs a split connection less is that of TCP, too.
        plain = {case: runs.found[case.but(scheme=TCP)] for case in runs.cases(scheme=off)}
        other = random.Random(off)
        runs = runs.joined(
            Runs(
                {
                    case: {"transfer_s": other.sample([v for v in of["transfer_s"] if v], 40)}
                    for case, of in plain.items()
                }
            )
        )
    for scheme, number in tables.NUMBERS.items():
        stated = library.published("yavatkar1994")[f"table{number}"]["statement"]
        effects_of = {of["id"] for of in stated if of["effect_of"] == off}
        assert effects_of & _holding(scheme, runs) == set()


def test_what_table_1_says_needs_losses_and_pauses(off: Off) -> None:
    """Runs without loss in the place of those with, and without a pause likewise."""
    pool = tables.study(TCP).measure(seeds=8)
    for key, ids in (("loss", {"loss-hurts"}), ("pause_s", {"pause-hurts", "more-than-the-pause"})):

        def plain(case: Case, key: str = key) -> Case:
            return case.but(**{key: 0.0})

        without = off(pool, list(pool), plain, 24)
        assert _holding(TCP, without) & ids == set()


# --- The wireless hop alone ---


def test_nobody_exceeds_the_limit_of_the_hop(runs: Mapping[str, Runs]) -> None:
    found = runs["hop"]
    shares = {case: hop.share(found, case) for case in found}
    # What a run loses differs from the average.
    assert all(share is not None and share.value < 1.1 for share in shares.values())
    tcp = [share for case, share in shares.items() if share and case["scheme"] != SRP]
    assert 0.9 < max(share.value for share in tcp) < 1.0
    assert hop.limit_bps(0.25) == pytest.approx(2e6 * 212 / 256 * 0.75)


def test_srp_reaches_the_limit_of_the_hop_whatever_the_losses(runs: Mapping[str, Runs]) -> None:
    found = runs["hop"]
    for case in found.cases(scheme=SRP):
        share = hop.share(found, case)
        assert share is not None
        assert share.value > (0.98 if case["loss"] <= 0.01 else 0.95 - 0.02), case


# --- What a handoff costs, and whom ---


def test_the_verdicts_on_the_fixed_host_fail_with_plain_tcp(runs: Mapping[str, Runs]) -> None:
    found = runs["fixed"]
    verdicts = {id: test(found).verdict for id, test in fixed.TESTS.items()}
    assert set(verdicts.values()) == {Verdict.HOLDS}
    # With plain TCP in their place both are contradicted.
    for scheme in (MTCP, SRP):
        plain = {case: found.found[case.but(scheme=TCP)] for case in found.cases(scheme=scheme)}
        off = fixed.TESTS[f"fixed-host-{scheme}"](found.joined(Runs(plain)))
        assert off.verdict is Verdict.DIFFERS


def test_resets_and_timeouts_at_the_fixed_host_are_counted() -> None:
    """A station that loses its state resets the fixed host; a long pause has TCP time out there."""
    cells = {
        cell.case["scheme"]: cell
        for cell in fixed.cells()
        if (cell.case["sends"], cell.case["loss"], cell.case["pause_s"]) == ("fixed", 0.0, 2.8)
    }
    scenario, seed = cells[MTCP].single(0)
    boxes: Any = dict(scenario.overrides)["nodes.station2.boxes"]
    restarts = {"nodes.station2.boxes": [{**box, "restarts": ["42 s"]} for box in boxes]}
    lost = fixed.observe(scenario.set({**restarts, "duration": "90 s"}), seed)
    assert (lost["resets"], lost["transfer_s"]) == (1.0, None)
    assert fixed.observe(*cells[MTCP].single(0))["resets"] == 0.0
    assert (fixed.observe(*cells[TCP].single(0))["timeouts"] or 0.0) > 0.0


def test_a_handoff_ships_what_the_stations_hold(runs: Mapping[str, Runs]) -> None:
    found = runs["cost"]
    for case in found:
        cache = 1024 * case["cache_kib"]
        for data, shipped in zip(
            found.values(case, "data_bytes"), found.values(case, "shipped_bytes"), strict=True
        ):
            # Data flows in one direction, which holds its buffer and a receive window at most.
            assert data <= cache + 4096
            assert data < shipped
        # Nothing new arrives before the host is back, and something does within seconds.
        assert all(0.0 <= value < 10.0 for value in found.values(case, "resume_s"))
    small, large = (
        found.mean(
            found.case(scheme=SRP, sends="fixed", delay_s=0.0002, cache_kib=kib), "data_bytes"
        )
        for kib in (4, 64)
    )
    assert small is not None
    assert large is not None
    assert large.value > 5 * small.value
    assert {case["sends"] for case in found} == set(path.SENDERS)
    assert all(cell.settings["nodes.station1.boxes"][0]["cache"] for cell in cost.cells())


def test_a_new_association_costs_a_round_trip_where_its_opener_receives(
    runs: Mapping[str, Runs],
) -> None:
    """The restored station asks what has arrived as soon as it has the state."""
    found = runs["restored"]
    for case in found.cases(handoff=restored.NEW):
        new, old = (
            found.mean(case.but(handoff=of), "resume_s") for of in (restored.NEW, restored.RESTORED)
        )
        assert new is not None
        assert old is not None
        # Over a short hop, a delayed ACK takes longer.
        if case["rtt_s"] > 0.05:
            expected = case["rtt_s"] if case["sends"] == path.FIXED else 0.0
            assert new.value - old.value == pytest.approx(expected, abs=0.02), case


def test_an_association_that_is_restored_delivers_more_than_a_new_one(
    runs: Mapping[str, Runs],
) -> None:
    """It knows the rate of the hop: that of the next one is not far from it."""
    found = runs["restored"]
    for case in found.cases(handoff=restored.NEW, rtt_s=0.1):
        new, old = (
            found.mean(case.but(handoff=of), "share") for of in (restored.NEW, restored.RESTORED)
        )
        assert new is not None
        assert old is not None
        assert new.value < old.value <= 1.0, case


def test_both_boxes_of_a_new_association_have_the_setting() -> None:
    for cell in restored.cells():
        boxes = [cell.settings[f"nodes.{node}.boxes"][0] for node in (path.MOBILE, *path.STATIONS)]
        assert {box["handoff"] for box in boxes} == {cell.case["handoff"]}


def test_where_the_fixed_host_sends_the_station_of_the_hop_has_bbr() -> None:
    def congestion(sends: str) -> list[str | None]:
        found = path.settings(schemes.MTCP_BBR, sends=sends)
        (station,) = found["nodes.station1.boxes"]
        return [found.get("flows.0.tcp.congestion"), station["tcp"].get("congestion")]

    assert congestion(path.MOBILE) == ["bbr", None]
    assert congestion(path.FIXED) == [None, "bbr"]
    assert schemes.FREEZE in today.SCHEMES[path.FIXED]
    assert schemes.FREEZE not in today.SCHEMES[path.MOBILE]


# --- SRP beside a TCP flow ---


def test_srp_that_shares_leaves_more_to_tcp_than_srp_that_knows_the_rate(
    runs: Mapping[str, Runs],
) -> None:
    found = runs["beside"]
    for case in found.cases(scheme=beside.KNOWN):
        known, shared = (
            found.mean(case.but(scheme=scheme), "share") for scheme in (beside.KNOWN, beside.SHARED)
        )
        assert known is not None
        assert shared is not None
        # BBR recovers from losses by RACK, and keeps a tenth in a long queue.
        assert known.value > 0.85 > 0.7 > shared.value, case
