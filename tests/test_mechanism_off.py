"""Every claim that a mechanism has an effect must fail where the mechanism is off.

Plain TCP's runs stand in for those of the mechanism: other draws of the same, so that nothing
differs but by chance. A statement that holds then would hold for any mechanism, or for none.
published.toml names the mechanism of each statement (`effect_of`). Of figure 4.2 of koutsianas2007,
which is deterministic, the runs with the mechanism are needed, too: see test_koutsianas2007.py.
ishac2001's are in test_ishac2001.py, yavatkar1994's in test_yavatkar1994.py, and those of SPEP in
test_spep.py.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import studies
from fixtures import Off

from lasthop import library
from lasthop.publications.bbn8333 import sim1
from lasthop.publications.bbn8333.cases import GOODPUT, NONE, NOTIFIED, SACK, plain
from lasthop.publications.koutsianas2007 import (
    after,
    attack,
    fig4_4,
    fig4_7,
    schemes,
    steady_state,
    targets,
    windows,
)
from lasthop.publications.koutsianas2007.schemes import RLCI, STANDARD
from lasthop.publications.obanaik2003.fairness import auto, bed, buffers, fast, testbed
from lasthop.publications.obanaik2003.fairness import simulation as paths
from lasthop.publications.obanaik2003.fairness import window as limited
from lasthop.publications.obanaik2003.fairness.policies import NO_RTT
from lasthop.publications.study.runs import Case, Cell, Runs, Values
from lasthop.publications.study.study import Study
from lasthop.publications.study.verdict import Verdict

#: What a statement may claim an effect of, by publication.
MECHANISMS = {
    "bbn8333": {"eten", "ceten", "westwood", "sack"},
    "ishac2001": {"spoofer"},
    "koutsianas2007": {"rlci"},
    "obanaik2003": {"policy", "window", "buffer", "spep"},
    "yavatkar1994": {"loss", "pause", "mtcp", "srp"},
}
SIMULATIONS = tuple(f"sim{n}" for n in range(1, 9))


def _stated(publication: str) -> dict[str, list[Mapping[str, Any]]]:
    """By section, all statements and ratios."""
    found = library.published(publication)
    return {
        name: section.get("statement", ())
        for name, section in found.items()
        if isinstance(section, dict)
    }


@pytest.mark.parametrize("publication", MECHANISMS)
def test_every_statement_names_the_mechanism_that_it_claims_an_effect_of(publication: str) -> None:
    stated = [of for section in _stated(publication).values() for of in section]
    assert stated
    known = MECHANISMS[publication] | {"none"}
    assert [of["id"] for of in stated if of.get("effect_of") not in known] == []
    # And each mechanism is somewhere put to the test.
    assert {of["effect_of"] for of in stated} - {"none"} == MECHANISMS[publication]


def _effects(publication: str, section: str, mechanism: str) -> set[str]:
    """The statements of a section that claim an effect of a mechanism."""
    return {of["id"] for of in _stated(publication)[section] if of["effect_of"] == mechanism}


# --- bbn8333 -------------------------------------------------------------------------------------

#: A packet on the wire, bits.
_PACKET = 576 * 8


def _without(case: Case, off: str) -> Case:
    """The case without a mechanism."""
    cumulative = case["eten"].startswith("cumulative")
    if off == "eten" or (off == "ceten" and cumulative):
        case = plain(case)
    if off == "westwood" and "window" in case:
        case = case.but(window=None).but(**SACK)
    if off == "sack" and case["recovery"] == "sack":
        case = case.but(recovery="reno")
    return case


def _level(case: Case) -> float:
    """About the goodput: the window's, the link's, or what losses leave of it (Mathis et al.,
    1997), with effects of every mechanism as they are claimed."""
    hops, competitors = case.get("hops", 1), case.get("competitors", 0)
    corrupted = 1 - (1 - case["bit_error_rate"]) ** (_PACKET * hops)
    rtt = 2 * hops * case["one_way_delay_s"] + 2 * _PACKET / case["rate_bps"]
    free: float = min(20 * _PACKET / rtt, case["rate_bps"]) / (1 + 0.2 * competitors)
    loss = corrupted + 0.002 * competitors
    level = min(free, 1.2 * _PACKET / rtt / math.sqrt(max(loss, 1e-9)))
    level *= 1 - (0.9 if case["recovery"] == "reno" else 0.5) * corrupted
    if "window" in case:
        level += 0.3 * min(1.0, 100 * loss) * (free - level)
    notified = {"none": 0.0, "oracle": 1.0, "backward": 0.8}.get(case["eten"], 0.6)
    if case["eten"].startswith("cumulative"):
        notified = 0.3
    found: float = level + notified * max(0.0, free * (1 - corrupted) - level)
    return found


def _world(study: Study, off: str, luck: int, seeds: int) -> Runs:
    """Runs of all cells, drawn about these levels; those of a mechanism that is off about those of
    plain TCP."""
    dice = random.Random(f"{study.experiment} {off} {luck}")
    found: dict[Case, Values] = {}
    for cell in study.cells():
        case = cell.case
        rate, competitors = case["bit_error_rate"], case.get("competitors", 0)
        level = _level(_without(case, off))
        spread = 0.01 + 0.01 * competitors if rate or competitors else 0.001
        # Competitors lose to errors, too.
        load = case["rate_bps"] * (0.1 * competitors) * (1 - min(0.5, 3e4 * rate))
        found[case] = {
            GOODPUT: [level * math.exp(dice.gauss(0, spread)) for _ in range(seeds)],
            "others": [load * math.exp(dice.gauss(0, 0.02)) for _ in range(seeds)],
        }
    return Runs(found)


def _verdicts(study: Study, runs: Runs) -> Mapping[str, Verdict]:
    return {of.id: of.verdict for of in study.judge(runs) if of.verdict is not None}


def _simulation(name: str) -> Study:
    return studies.load(f"bbn8333/{name}")


@pytest.mark.parametrize("luck", [1, 2])
@pytest.mark.parametrize("name", SIMULATIONS)
def test_no_effect_of_a_simulation_holds_without_its_mechanism(name: str, luck: int) -> None:
    tested = _simulation(name)
    for off in sorted(MECHANISMS["bbn8333"]):
        effects = _effects("bbn8333", name, off)
        if not effects:
            continue
        verdicts = _verdicts(tested, _world(tested, off, luck, 20))
        assert {id for id in effects if verdicts[id] is Verdict.HOLDS} == set(), off


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("sim1", {"eten-improves", "gains-everywhere", "backward-below-oracle"}),
        ("sim2", {"oracle-keeps-goodput"}),
        ("sim3", {"both-help-with-low-congestion", "helps-at-high-error-rates"}),
        ("sim4", {"better-with-competing-tcp"}),
        ("sim5", {"oracle-best"}),
        ("sim6", {"backward-wins-at-high-error-rates"}),
        ("sim7", {"gains-in-between", "below-per-packet"}),
        ("sim8", {"below-per-packet"}),
    ],
)
def test_and_with_it_some_do(name: str, ids: set[str]) -> None:
    tested = _simulation(name)
    verdicts = _verdicts(tested, _world(tested, "", 1, 20))
    assert {id for id in ids if verdicts[id] is not Verdict.HOLDS} == set()


def test_no_effect_of_simulation_1_holds_with_real_runs_of_plain_tcp() -> None:
    drawn = [cell for cell in sim1.STUDY.cells() if cell.quick]
    cells = [cell for cell in drawn if cell.case["eten"] == NONE]
    pool = _measured(sim1.STUDY, cells, 20)
    dice = random.Random("sim1")
    runs = Runs(
        {
            case.but(eten=eten): {GOODPUT: dice.choices(pool.found[case][GOODPUT], k=20)}
            for case in pool
            for eten in (NONE, *NOTIFIED)
        }
    )
    verdicts = _verdicts(sim1.STUDY, runs)
    effects = _effects("bbn8333", "sim1", "eten")
    assert {id for id in effects if verdicts[id] is Verdict.HOLDS} == set()


# --- Studies -------------------------------------------------------------------------------------


def _measured(study: Study, cells: Sequence[Cell], seeds: int) -> Runs:
    return replace(study, cells=lambda: cells, factors=None).measure(seeds=seeds)


def _holding(study: Study, runs: Runs, mechanism: str) -> set[str]:
    """The effects of a mechanism that hold."""
    effects = _effects(study.publication, study.experiment, mechanism)
    assert effects
    verdicts = {answer.id: answer.verdict for answer in study.judge(runs)}
    return {id for id in effects if verdicts[id] is Verdict.HOLDS}


def _standard(case: Case) -> Case:
    return case.but(scheme=STANDARD)


@pytest.mark.soak
def test_figure_4_4_needs_rlci(off: Off) -> None:
    cells = fig4_4.cells()
    pool = _measured(fig4_4.STUDY, [c for c in cells if c.case["scheme"] == STANDARD], 6)
    without = off(pool, [cell.case for cell in cells], _standard, 12)
    assert _holding(fig4_4.STUDY, without, "rlci") == set()


def test_what_its_parts_do_needs_rlci(off: Off) -> None:
    (flow,) = schemes.flows(steady_state.SCENARIO)

    def plain(case: Case) -> Case:
        return case.but(arm=STANDARD)

    def cell(case: Case) -> Cell:
        window = windows.setting(case["window"])
        tcp = {**schemes.tcp(flow["tcp"], STANDARD), **window}
        drawn = partial(steady_state.drawn, False, case["disconnection_s"])
        settings = {"flows": [{**flow, "tcp": tcp}]}
        return Cell(case, steady_state.SCENARIO, settings, 12, 12, drawn=drawn)

    cases = [cell.case for cell in steady_state.cells()]
    pool = _measured(steady_state.STUDY, [cell(of) for of in dict.fromkeys(map(plain, cases))], 12)
    assert _holding(steady_state.STUDY, off(pool, cases, plain, 24), "rlci") == set()


@pytest.mark.soak
def test_figure_4_7_needs_rlci(off: Off) -> None:
    cells = [
        targets.cell(scheme, target, connections, length, 24, 24)
        for target in targets.TARGETS
        for connections in fig4_7.CONNECTIONS
        for length in (3.0, 30.0)
        for scheme in (STANDARD, RLCI)
    ]
    # Of fewer runs, one that slept long weighs too much.
    pool = _measured(fig4_7.STUDY, [c for c in cells if c.case["scheme"] == STANDARD], 16)
    without = off(pool, [cell.case for cell in cells], _standard, 24)
    assert _holding(fig4_7.STUDY, without, "rlci") == set()


def test_who_never_resumed_does_not_spare_others(off: Off) -> None:
    """Standard TCP in place of RLCI does no neighbour any harm: it sleeps."""
    cells = after.cells()
    kept = (after.ALONE, after.FRESH, STANDARD)
    pool = _measured(after.STUDY, [c for c in cells if c.case["scheme"] in kept], 6)
    without = off(
        pool,
        [cell.case for cell in cells],
        lambda case: case if case["scheme"] in kept else _standard(case),
        12,
    )
    claims = [answer for answer in after.STUDY.judge(without) if answer.verdict is not None]
    assert claims
    assert all(answer.verdict is not Verdict.HOLDS for answer in claims)


def _study(name: str) -> Study:
    return studies.load(f"obanaik2003/fairness/{name}")


#: Runs of a pool, and of every cell drawn from it.
POOL, DRAWN = 8, 16


def _policies_off(off: Off, study: Study, observed: Any = None) -> Runs:
    """Every connection with the standard policy."""

    def plain(case: Case) -> Case:
        keys: dict[str, Any] = {"policy": "standard", "rtt": NO_RTT}
        if "c" in case:
            keys["c"] = bed.NO_CONSTANT
        if "enabled" in case:
            keys["enabled"] = paths.ALL
        return case.but(**keys)

    cases = [cell.case for cell in study.cells()]
    wanted = dict.fromkeys(map(plain, cases))
    cells = [_standard_cell(case) for case in wanted]
    of = replace(study, observe=observed or study.observe)
    return off(_measured(of, cells, POOL), cases, plain, DRAWN)


def _standard_cell(case: Case) -> Cell:
    more = {
        key: value for key, value in case.items() if key not in ("link", "policy", "rtt", "enabled")
    }
    if "c" in more:
        size, receive_window = more["buffer_packets"], more["receive_window_bytes"]
        return bed.cell(case["link"], bed.STANDARD_ALONE, buffer=size, window=receive_window)
    settings = {}
    if "buffer_packets" in more:
        settings["links.9.queue"] = f"{more['buffer_packets']} packets"
    enabled = case.get("enabled")
    return paths.cell(case["link"], "standard", enabled=enabled, settings=settings, **more)


@pytest.mark.parametrize("name", ["slow", "ltn"])
def test_what_policies_do_over_a_last_hop_needs_a_policy(name: str, off: Off) -> None:
    study = _study(name)
    without = _policies_off(off, study, paths.observe(POOL))
    assert _holding(study, without, "policy") == set()


@pytest.mark.parametrize(
    "name", ["disabled", pytest.param("buffers", marks=pytest.mark.soak), "testbed-disabled"]
)
def test_what_policies_cost_needs_a_policy(name: str, off: Off) -> None:
    study = _study(name)
    # Buffers are held against round trips, too, which take a trace.
    followed = 3 if name == "buffers" else 0
    observed = (bed if "testbed" in name else paths).observe(followed)
    assert _holding(study, _policies_off(off, study, observed), "policy") == set()


def test_what_policies_do_on_the_test_bed_needs_a_policy(off: Off) -> None:
    without = _policies_off(off, testbed.STUDY, bed.observe(POOL))
    assert _holding(testbed.STUDY, without, "policy") == set()


@pytest.mark.parametrize(
    ("name", "mechanism", "key", "value", "followed"),
    [
        pytest.param(
            *("window", "window", "receive_window_bytes", limited.NO_LIMIT, 0),
            marks=pytest.mark.soak,
        ),
        ("testbed-window", "window", "receive_window_bytes", bed.WINDOW, 0),
        pytest.param(
            *("buffers", "buffer", "buffer_packets", buffers.BUFFERS[0], 4), marks=pytest.mark.soak
        ),
        ("testbed-buffers", "buffer", "buffer_packets", bed.BUFFERS[0], 4),
    ],
)
def test_what_a_window_or_a_buffer_does_needs_it(
    name: str, mechanism: str, key: str, value: int, followed: int, off: Off
) -> None:
    study = _study(name)
    cells = study.cells()
    plain = [cell for cell in cells if cell.case[key] == value]
    observed = (bed if "testbed" in name else paths).observe(followed)
    pool = _measured(replace(study, observe=observed), plain, POOL)
    without = off(pool, [cell.case for cell in cells], lambda case: case.but(**{key: value}), DRAWN)
    assert _holding(study, without, mechanism) == set()


def _claims(study: Study, runs: Runs, mechanism: str) -> dict[str, Verdict | None]:
    """What is claimed of a mechanism beyond the publication."""
    found = [answer for answer in study.judge(runs) if not answer.id and answer.verdict]
    assert all(answer.effect_of for answer in found)
    claims = {answer.claim: answer.verdict for answer in found if answer.effect_of == mechanism}
    assert claims
    return claims


@pytest.mark.parametrize(
    ("study", "mechanism", "plain"),
    [
        (attack.STUDY, "limit", lambda case: case.but(rate_limit=False)),
        (fast.STUDY, "policy", fast.plain),
        (
            auto.STUDY,
            "policy",
            lambda case: (
                case.but(policy="standard", rtt=NO_RTT, enabled=paths.ALL)
                if case["policy"] == "auto"
                else case
            ),
        ),
    ],
)
def test_what_we_claim_of_a_mechanism_needs_it(
    study: Study, mechanism: str, plain: Callable[[Case], Case], off: Off
) -> None:
    cells = study.cells()
    wanted = {plain(cell.case) for cell in cells}
    pool = _measured(study, [cell for cell in cells if cell.case in wanted], 2)
    without = off(pool, [cell.case for cell in cells], plain, DRAWN, 0.02)
    holding = [c for c, of in _claims(study, without, mechanism).items() if of is Verdict.HOLDS]
    assert holding == []
