"""Simulation 5 (bbn8333 §3.7.1): ETEN and TCP Westwood over one hop, without cross traffic."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.publications.bbn8333.cases import (
    ALONE,
    BACKWARD,
    HIGH,
    LOW,
    LOWEST,
    MIDDLE,
    ORACLE,
    SACK,
    WESTWOOD,
    WESTWOOD_PLUS,
    at,
    network,
    network_name,
    sender,
    sender_name,
)
from lasthop.publications.bbn8333.comparisons import LESS, MORE, checks, everywhere, quoted, versus
from lasthop.publications.bbn8333.factors import (
    EXACT_CLOCK,
    SACK_WESTWOOD,
    THREE_HOPS,
    named,
)
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.simulation import simulation
from lasthop.publications.study.published import Section, Test
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.verdict import Judgement, below, between, every, some
from lasthop.publications.study.words import NEGLIGIBLE, NOTHING, SMALL, interval, number, percent

#: Of figures 9 and 10.
SLOW_AND_SHORT = network(1.5e6, 0.01)
#: Westwood was built on Reno.
FIRST, PLUS = sender("reno", window=WESTWOOD), sender("reno", window=WESTWOOD_PLUS)
SENDERS = (SACK, BACKWARD, ORACLE, FIRST, PLUS)
#: All but the highest.
LOWER = (0.0, LOWEST, LOW, MIDDLE)


def _blocks(networks: tuple[Case, ...]) -> list[Block]:
    return [Block(SENDERS, networks, hops=1)]


def _oracle_best(runs: Runs) -> Judgement:
    others = {
        variant: versus(runs, variant, ORACLE, **SLOW_AND_SHORT)
        for variant in SENDERS
        if variant != ORACLE
    }
    pairs = [pair for of in others.values() for pair in of]
    # None does better anywhere, and each does worse somewhere.
    best = every(
        [*checks(pairs, below(1 + NOTHING)), *(some(checks(of, LESS)) for of in others.values())]
    )
    return quoted(
        best,
        pairs,
        "The others over Oracle, each to be less at some error rate",
        lambda case: f"{sender_name(case)}, {at(case['bit_error_rate'])}",
        largest=True,
    )


def _like_backward(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, FIRST, BACKWARD, **SLOW_AND_SHORT, bit_error_rate=LOWER),
        between(1 - SMALL, 1 + SMALL),
        "Westwood over Backward",
    )


def _twice(runs: Runs) -> Judgement:
    cells = versus(runs, BACKWARD, FIRST, bit_error_rate=HIGH)
    most_of = max(cells, key=lambda pair: pair[1].value)
    least = min(cells, key=lambda pair: pair[1].value)
    of = Section.of("bbn8333", "sim5").value("backward-twice-westwood")
    return some(checks(cells, of.band)).judged(
        f"At {at(HIGH)} Backward has {interval(least[1])} ({network_name(least[0])}) to"
        f" {interval(most_of[1])} ({network_name(most_of[0])}) times the goodput of Westwood; about"
        f" twice is {of.band.lo:.3g} to {of.band.hi:.3g}.",
        most_of[1],
        most_of[0],
    )


def _no_better(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, FIRST, SACK, **SLOW_AND_SHORT, bit_error_rate=(0.0, LOWEST, LOW)),
        below(1 + NOTHING),
        "Westwood over SACK",
        largest=True,
    )


def _slightly(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, BACKWARD, FIRST, bit_error_rate=HIGH),
        between(1 + NEGLIGIBLE, 1 + SMALL),
        f"Backward over Westwood, slightly taken as less than {percent(SMALL)}",
        largest=True,
    )


def _better_below(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, FIRST, BACKWARD, bit_error_rate=(LOWEST, LOW, MIDDLE)),
        MORE,
        "Westwood over Backward",
    )


TESTS: Mapping[str, Test] = {
    "oracle-best": _oracle_best,
    "westwood-like-backward": _like_backward,
    "backward-twice-westwood": _twice,
    "westwood-no-better-at-low-rates": _no_better,
    "eten-slightly-better": _slightly,
    "westwood-better-at-lower-rates": _better_below,
}


def _outcome(runs: Runs) -> str:
    where = {**SLOW_AND_SHORT, "bit_error_rate": HIGH}
    (over_first,) = versus(runs, BACKWARD, FIRST, **where)
    (over_sack,) = versus(runs, FIRST, SACK, **where)
    (plus,) = versus(runs, PLUS, SACK, **where)
    return (
        f"At {network_name(SLOW_AND_SHORT)} and {at(HIGH)} Westwood as of 2001 has"
        f" {number(over_sack[1].value)} times the goodput of SACK, Westwood+"
        f" {number(plus[1].value)} times; with Backward ETEN SACK has"
        f" {number(over_first[1].value)} times that of Westwood."
    )


STUDY = simulation(
    id="sim5",
    asks="TCP Westwood does not need to know why a packet was lost: it measures the rate that the"
    " path delivers and reduces its window to that.",
    senders=SENDERS,
    blocks=_blocks,
    drawn={9: (SLOW_AND_SHORT,)},
    panels={"One hop": ALONE},
    shown=SENDERS,
    tests=TESTS,
    tried=(
        THREE_HOPS,
        EXACT_CLOCK,
        SACK_WESTWOOD,
        *named("dupacks-count", "clean-return", "window-40", "tick-10ms"),
    ),
    outcome=_outcome,
)
