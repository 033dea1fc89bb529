"""Simulation 6 (bbn8333 §3.7.2): ETEN and TCP Westwood over three hops, beside UDP."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.publications.bbn8333.cases import (
    ALONE,
    BACKWARD,
    GOODPUT,
    HIGH,
    LOW,
    LOWEST,
    MIDDLE,
    ORACLE,
    SACK,
    UDP,
    at,
    network_name,
)
from lasthop.publications.bbn8333.comparisons import MORE, everywhere, versus
from lasthop.publications.bbn8333.factors import (
    ALWAYS_ON,
    EXACT_CLOCK,
    LARGE_DATAGRAMS,
    SACK_WESTWOOD,
    named,
    pairs,
)
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.sim3 import COMPETITORS, blocks, panels
from lasthop.publications.bbn8333.sim5 import FIRST, LOWER, PLUS, SLOW_AND_SHORT
from lasthop.publications.bbn8333.simulation import simulation
from lasthop.publications.study.published import Section, Test, judged_value
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.verdict import Check, Judgement, above, below, every
from lasthop.publications.study.words import NEGLIGIBLE, SMALL, interval, number

SENDERS = (SACK, BACKWARD, ORACLE, FIRST, PLUS)
_FAST = 100e6


def _blocks(networks: tuple[Case, ...]) -> list[Block]:
    """The cells of simulation 3, and Westwood in the same. At 100 Mb/s, where cross traffic costs
    most, without Westwood+, of which the report knows nothing."""
    fast = any(network["rate_bps"] >= _FAST for network in networks)
    return [
        *blocks(networks),
        Block((FIRST, PLUS), networks),
        *(
            Block(
                (FIRST,) if fast else (FIRST, PLUS),
                networks,
                cross_traffic=UDP,
                competitors=competitors,
            )
            for competitors in COMPETITORS
        ),
    ]


def _backward_wins(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, BACKWARD, FIRST, **SLOW_AND_SHORT, bit_error_rate=HIGH),
        MORE,
        "Backward over Westwood",
    )


def _sack_without(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, SACK, FIRST, **SLOW_AND_SHORT, **ALONE),
        above(1 - SMALL),
        "SACK over Westwood without UDP",
    )


def _westwood_beside_four(runs: Runs) -> Judgement:
    where = {**SLOW_AND_SHORT, "competitors": 4}
    judged = everywhere(
        versus(runs, FIRST, SACK, **where, bit_error_rate=LOWER),
        MORE,
        "Westwood over SACK",
    )
    ((_, high),) = versus(runs, FIRST, SACK, **where, bit_error_rate=HIGH)
    summary = f"{judged.why} At {at(HIGH)} it is {interval(high)}, where it is to be no more."
    claims = [*([judged.claim] if judged.claim else []), Check(high, below(1 + NEGLIGIBLE))]
    return every(claims).judged(summary, judged.measured, judged.case)


def _six(runs: Runs) -> Judgement:
    where = {**SLOW_AND_SHORT, "bit_error_rate": 0.0}
    ((case, ratio),) = versus(runs, FIRST, SACK, **where, competitors=4)
    single = runs.single_ratio(case, runs.case(**SACK, competitors=4, **where), GOODPUT)
    singles = "too few" if single is None else f"{number(single[0])} to {number(single[1])}"
    ((_, eight),) = versus(runs, FIRST, SACK, **where, competitors=8)
    of = Section.of("bbn8333", "sim6").value("six-times")
    why = (
        f"Westwood has {interval(ratio)} times the goodput of SACK beside four flows (single"
        f" pairs of runs: {singles}), and {interval(eight)} times beside eight."
    )
    return judged_value(of, why, ratio, case, "1", single=single)


def _moderate(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, BACKWARD, FIRST, competitors=4, bit_error_rate=HIGH),
        MORE,
        "Backward over Westwood",
    )


def _heavy(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, FIRST, BACKWARD, competitors=4, bit_error_rate=LOWER),
        MORE,
        "Westwood over Backward",
    )


def _better_below(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, FIRST, BACKWARD, cross_traffic=UDP, bit_error_rate=(LOWEST, LOW, MIDDLE)),
        MORE,
        "Westwood over Backward beside UDP",
    )


TESTS: Mapping[str, Test] = {
    "backward-wins-at-high-error-rates": _backward_wins,
    "sack-similar-without-udp": _sack_without,
    "westwood-better-beside-four": _westwood_beside_four,
    "six-times": _six,
    "backward-better-in-moderate-congestion": _moderate,
    "westwood-better-in-heavy-congestion": _heavy,
    "westwood-better-at-lower-rates": _better_below,
}


def _outcome(runs: Runs) -> str:
    where = {**SLOW_AND_SHORT, "competitors": 4}
    ((_, high),) = versus(runs, BACKWARD, FIRST, **where, bit_error_rate=HIGH)
    ((_, middle),) = versus(runs, FIRST, SACK, **where, bit_error_rate=MIDDLE)
    ((_, clean),) = versus(runs, FIRST, SACK, **where, bit_error_rate=0.0)
    return (
        f"Beside four UDP flows, at {network_name(SLOW_AND_SHORT)} a hop, Westwood has"
        f" {number(clean.value)} times the goodput of SACK without errors and"
        f" {number(middle.value)} times at {at(MIDDLE)}; at {at(HIGH)} SACK with Backward ETEN has"
        f" {number(high.value)} times that of Westwood."
    )


_FACTORS = (
    EXACT_CLOCK,
    SACK_WESTWOOD,
    ALWAYS_ON,
    LARGE_DATAGRAMS,
    *named("dupacks-count", "clean-return", "window-40", "tick-10ms"),
)

STUDY = simulation(
    id="sim6",
    asks="Three lossy links with UDP cross traffic on the middle one: losses are congestion and"
    " corruption at once.",
    senders=SENDERS,
    blocks=_blocks,
    drawn={10: (SLOW_AND_SHORT,)},
    panels=panels(COMPETITORS, "UDP"),
    shown=(SACK, BACKWARD, FIRST, PLUS),
    tests=TESTS,
    tried=_FACTORS,
    pairs=pairs(_FACTORS),
    outcome=_outcome,
)
