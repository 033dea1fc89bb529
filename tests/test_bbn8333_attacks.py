"""The statements of bbn8333 about attackers, misbehaving receivers and erasure codes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest

from lasthop.publications.bbn8333.beyond import (
    attacks,
    coding,
    false_echoes,
    false_fields,
    flood,
    forged,
)
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Runs
from lasthop.scenario import Scenario
from lasthop.units import rate

Values = Mapping[str, float]


def _runs(module: ModuleType, value: Callable[[Case], Values], spread: float = 0.001) -> Runs:
    """Ten runs of every cell around values, each with luck of its own."""
    luck = random.Random(1)
    return Runs(
        {
            cell.case: {
                metric: [mean * luck.gauss(1, spread) for _ in range(10)]
                for metric, mean in value(cell.case).items()
            }
            for cell in module.cells()
        }
    )


def _verdict(module: ModuleType, runs: Runs, *words: str) -> bool | None:
    """Of the only statement with these words."""
    found: Sequence[Answer] = module.answers(runs)
    (answer,) = [a for a in found if all(word in a.claim for word in words)]
    return answer.agrees


# --- Bounds ---


@pytest.mark.parametrize(
    ("ratio", "spread", "verdict"),
    [(1.0, 0.001, True), (1.05, 0.001, False), (1.0, 0.05, None), (1.011, 0.01, None)],
)
def test_a_bound_holds_or_not_or_is_left_open_by_intervals_across_it(
    ratio: float, spread: float, verdict: bool | None
) -> None:
    luck = random.Random(1)
    case, to = Case(of="own"), Case(of="plain")
    draw = {case: ratio, to: 1.0}
    runs = Runs({c: {"x": [luck.gauss(m, spread) for _ in range(10)]} for c, m in draw.items()})
    assert attacks.held(runs, [(case, to)], "x", most=1.01).verdict.agrees is verdict
    # The other way round it is a least one.
    assert attacks.held(runs, [(to, case)], "x", least=1 / 1.01).verdict.agrees is verdict


def test_one_cell_beyond_a_bound_is_enough_and_is_named() -> None:
    cases = [Case(n=n) for n in range(20)]
    found = {case: {"x": [0.9 if case["n"] == 7 else 1.0] * 5} for case in cases}
    runs = Runs({**found, Case(n=-1): {"x": [1.0] * 5}})
    held = attacks.held(runs, [(case, Case(n=-1)) for case in cases], "x", least=0.99)
    assert (held.verdict.agrees, held.case, held.ratio.value) == (False, cases[7], 0.9)


def test_one_run_of_a_cell_decides_nothing() -> None:
    runs = Runs({Case(n=1): {"x": [5.0]}, Case(n=2): {"x": [1.0]}})
    for pair in ([Case(n=1), Case(n=2)], [Case(n=2), Case(n=2)]):
        assert attacks.held(runs, [(pair[0], pair[1])], "x", most=1.01).verdict.agrees is None


# --- Floods and forgers ---


def _same(case: Case) -> Values:
    return {"goodput_bps": 1e6, "segments": 1e4, "believed": 3.0, "timeouts": 1.0}


@pytest.mark.parametrize("module", [flood, forged])
def test_an_attack_without_effect_costs_nothing_and_makes_no_sender_send_more(
    module: ModuleType,
) -> None:
    runs = _runs(module, _same)
    costs = [a for a in module.answers(runs) if "costs at most 1 % more" in a.claim]
    assert len(costs) >= 2
    assert all(answer.agrees for answer in costs)
    assert _verdict(module, runs, "With all three", "never") is True


@pytest.mark.parametrize("module", [flood, forged])
def test_a_single_cell_in_which_it_costs_more_is_found(module: ModuleType) -> None:
    key, value = ("rate_per_s", 100_000) if module is flood else ("every", 1)

    def hurts(case: Case) -> Values:
        hit = case["sent"] == "notices" and case["defences"] == attacks.ALL and case[key] == value
        hit = hit and attacks.CONGESTION.items() <= case.items()
        scale = 1.05 if hit else 1.0
        return {
            "goodput_bps": 1e6 / scale,
            "segments": 1e4 * scale,
            "believed": 3.0,
            "timeouts": 1.0,
        }

    runs = _runs(module, hurts)
    alone = ("nonces",) if module is flood else ("1.7 %",)
    assert _verdict(module, runs, "costs at most", *alone) is True
    beside = "With all three" if module is flood else "nothing is corrupted"
    assert _verdict(module, runs, "costs at most", beside) is False
    assert _verdict(module, runs, "With all three", "never") is False


def test_the_floods_own_link_has_room_for_it() -> None:
    fastest = max(flood.cells(), key=lambda cell: cell.case["rate_per_s"])
    scenario = Scenario.load(fastest.scenario).set(fastest.settings)
    size = 56 * 8
    assert fastest.settings["flows.0.tcp.eten"]["report"] == "none"
    assert all(
        cell.settings["flows.0.tcp.eten"].get("notice_size", "56 B") == "56 B"
        for cell in flood.cells()
    )
    assert max(flood.RATES) == 100_000
    # The scenario's third link: 1 Gb/s.
    assert '"mallory", "source"' in scenario.source
    assert rate(max(flood.RATES) * size) == "44.8 Mb/s"


def test_each_defence_is_switched_by_itself_and_a_limit_too() -> None:
    for module in (flood, false_echoes):
        tables = {
            cell.case["defences"]: cell.settings.get(
                "flows.0.tcp.eten.defences",
                cell.settings.get("flows.0.tcp.eten", {}).get("defences"),
            )
            for cell in module.cells()
            if cell.case["eten"] != "none"
        }
        assert tables == dict(attacks.DEFENCES)
    assert set(attacks.DEFENCES["all"]) == {"nonce", "trust", "limit"}


# --- Misbehaving receivers ---


def test_a_liars_gain_is_seen_against_the_defence_that_lets_it() -> None:
    def gains(case: Case) -> Values:
        lets = case["receiver"] == attacks.MISBEHAVING and case["defences"] in ("none", "trust")
        scale = 1.3 if lets else 1.0
        return {"goodput_bps": 1e6 * scale, "others_goodput_bps": 1e6 / scale, "believed": 1.0}

    runs = _runs(false_echoes, gains)
    assert _verdict(false_echoes, runs, "Without defences") is True
    assert _verdict(false_echoes, runs, "With trust") is False
    for name in ("nonces", "a limit", "all three"):
        assert _verdict(false_echoes, runs, f"With {name}") is True
    noisy = _runs(false_echoes, gains, spread=0.3)
    assert _verdict(false_echoes, noisy, "With nonces") is None


def test_a_bounds_worth_is_that_of_aimd_with_such_a_decrease() -> None:
    worth = {b: round(false_fields.worth(b), 2) for b in (0.5, 0.6, 0.75, 0.9)}
    assert worth == {0.5: 1.0, 0.6: 1.15, 0.75: 1.53, 0.9: 2.52}

    def window(kept: float) -> float:
        """In the middle, if a loss comes whenever it has grown by one."""
        highest = 1 / (1 - kept)
        return (highest + kept * highest) / 2

    for bound in (0.6, 0.75, 0.9):
        ratio = window(bound) / window(0.5)
        assert false_fields.worth_at_times(bound) == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("share", "verdicts"), [(0.95, (True, True)), (1.1, (True, False)), (2.0, (False, False))]
)
def test_a_bound_is_held_against_its_worth(share: float, verdicts: tuple[bool, bool]) -> None:
    def gains(case: Case) -> Values:
        bounded = case["strategy"] == "adaptive" and 0.5 < case["bound"] < 1
        scale = false_fields.worth(case["bound"]) * share if bounded else 1.0
        return {"goodput_bps": 1e6 * scale, "others_goodput_bps": 1e6, "believed": 0.0}

    runs = _runs(false_fields, gains)
    for words, verdict in zip(("at given times", "a packet"), verdicts, strict=True):
        assert _verdict(false_fields, runs, words) is verdict
    # Every run has had luck of its own.
    assert _verdict(false_fields, runs, "bound of 0.5") is False


# --- Erasure coding ---


def _coded(gain: Mapping[str, float], other: Mapping[str, float]) -> Callable[[Case], Values]:
    def of(case: Case) -> dict[str, Any]:
        return {
            "payload_bps": 1e6 * gain.get(case["code"], 1.0),
            "others_payload_bps": 1e6 * other.get(case["code"], 1.0),
            "repairs": 1.0,
            "rebuilt": 1.0,
        }

    return of


def test_a_code_is_held_against_the_same_flow_without() -> None:
    gains = {coding.UNCODED_CETEN: 2.0, coding.FOLLOWING: 3.0, coding.FIXED_SIGNALLED: 0.9}
    runs = _runs(coding, _coded(gains, {coding.HIDDEN: 0.7}))
    pays = next(a for a in coding.answers(runs) if "follows corruption, beside" in a.claim)
    assert pays.measured is not None
    assert pays.measured.value == pytest.approx(1.5, rel=0.01)
    assert _verdict(coding, runs, "cannot pay") is True
    assert _verdict(coding, runs, "hides losses") is True
    assert _verdict(coding, runs, "takes nothing") is True


def test_a_code_that_pays_or_takes_is_found() -> None:
    runs = _runs(coding, _coded({coding.FIXED_SIGNALLED: 1.3}, {coding.FOLLOWING: 0.8}))
    assert _verdict(coding, runs, "cannot pay") is False
    assert _verdict(coding, runs, "hides losses") is False
    assert _verdict(coding, runs, "takes nothing") is False


def test_a_hop_corrupts_such_a_share_of_packets() -> None:
    cell = next(c for c in coding.cells() if c.case["loss"] == 1e-2 and c.case["hops"] == 1)
    bit = [cell.settings[f"links.{link}.forward.errors.bit"] for link in range(3)]
    assert bit[:2] == [0.0, 0.0]
    assert 1 - (1 - bit[2]) ** (1040 * 8) == pytest.approx(1e-2)
