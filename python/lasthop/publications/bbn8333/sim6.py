"""Simulation 6 (bbn8333 §3.7.2): ETEN and TCP Westwood over three hops, beside UDP."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.publications.bbn8333.cases import NOBODY, UDP, Network, Runs
from lasthop.publications.bbn8333.comparisons import (
    BACKWARD,
    MORE,
    ORACLE,
    SACK,
    everywhere,
    versus,
)
from lasthop.publications.bbn8333.findings import (
    HIGH,
    LOW,
    LOWEST,
    MIDDLE,
    Test,
    at,
)
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.sim3 import COMPETITORS, blocks, panels
from lasthop.publications.bbn8333.sim5 import FIRST, LOWER, PLUS, SLOW_AND_SHORT
from lasthop.publications.bbn8333.simulation import Lead, Simulation
from lasthop.publications.bbn8333.variations import (
    ALWAYS_ON,
    EXACT_CLOCK,
    LARGE_DATAGRAMS,
    SACK_WESTWOOD,
    named,
    pairs,
)
from lasthop.publications.study.published import Section, judged_value
from lasthop.publications.study.verdict import Check, Judgement, above, below, every
from lasthop.publications.study.words import NEGLIGIBLE, SMALL, interval, number

VARIANTS = (SACK, BACKWARD, ORACLE, FIRST, PLUS)
_FAST = 100e6


def _blocks(networks: tuple[Network, ...]) -> list[Block]:
    """The cells of simulation 3, and Westwood in the same. At 100 Mb/s, where cross traffic costs
    most, without Westwood+, of which the report knows nothing."""
    fast = any(network.rate_bps >= _FAST for network in networks)
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
        versus(runs, BACKWARD, FIRST, network=SLOW_AND_SHORT, bit_error_rate=HIGH),
        MORE,
        "Backward over Westwood",
    )


def _sack_without(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, SACK, FIRST, network=SLOW_AND_SHORT, cross_traffic=NOBODY),
        above(1 - SMALL),
        "SACK over Westwood without UDP",
    )


def _westwood_beside_four(runs: Runs) -> Judgement:
    where = {"network": SLOW_AND_SHORT, "competitors": 4}
    judged = everywhere(
        versus(runs, FIRST, SACK, **where, bit_error_rate=LOWER),
        MORE,
        "Westwood over SACK",
    )
    ((_, high),) = versus(runs, FIRST, SACK, **where, bit_error_rate=HIGH)
    told = f"{judged.why} At {at(HIGH)} it is {interval(high)}, where it is to be no more."
    claims = [*([judged.claim] if judged.claim else []), Check(high, below(1 + NEGLIGIBLE))]
    return every(claims).judged(told, judged.measured, judged.case)


def _six(runs: Runs) -> Judgement:
    where = {"network": SLOW_AND_SHORT, "bit_error_rate": 0.0}
    ((case, ratio),) = versus(runs, FIRST, SACK, **where, competitors=4)
    (sack,) = runs.cases(recovery="sack", eten="none", window="aimd", competitors=4, **where)
    single = runs.single_ratio(case, sack)
    ((_, eight),) = versus(runs, FIRST, SACK, **where, competitors=8)
    of = Section.of("bbn8333", "sim6").value("six-times")
    why = (
        f"Westwood has {interval(ratio)} times the goodput of SACK beside four flows (single"
        f" pairs of runs: {number(single[0])} to {number(single[1])}), and {interval(eight)} times"
        " beside eight."
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


def _lead(runs: Runs) -> Lead:
    where = {"network": SLOW_AND_SHORT, "competitors": 4}
    ((_, high),) = versus(runs, BACKWARD, FIRST, **where, bit_error_rate=HIGH)
    ((_, middle),) = versus(runs, FIRST, SACK, **where, bit_error_rate=MIDDLE)
    ((_, clean),) = versus(runs, FIRST, SACK, **where, bit_error_rate=0.0)
    return Lead(
        "Three lossy links with UDP cross traffic on the middle one: losses are congestion and"
        " corruption at once.",
        f"Beside four UDP flows, at {SLOW_AND_SHORT.name} a hop, Westwood has"
        f" {number(clean.value)} times the goodput of SACK without errors and"
        f" {number(middle.value)} times at {at(MIDDLE)}; at {at(HIGH)} SACK with Backward ETEN has"
        f" {number(high.value)} times that of Westwood.",
    )


_VARIATIONS = (
    EXACT_CLOCK,
    SACK_WESTWOOD,
    ALWAYS_ON,
    LARGE_DATAGRAMS,
    *named("dupacks-count", "clean-return", "window-40", "tick-10ms"),
)

SIMULATION = Simulation(
    id="sim6",
    variants=VARIANTS,
    blocks=_blocks,
    figures={10: (SLOW_AND_SHORT,)},
    panels=panels(COMPETITORS, "UDP"),
    shown=(SACK, BACKWARD, FIRST, PLUS),
    tests=TESTS,
    variations=_VARIATIONS,
    pairs=pairs(_VARIATIONS),
    lead=_lead,
)
reproduce = SIMULATION.reproduce
