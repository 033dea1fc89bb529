"""Simulation 7 (bbn8333 §4.4): cumulative ETEN over three lossy hops, beside UDP."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.publications.bbn8333 import ceten
from lasthop.publications.bbn8333.cases import (
    ALONE,
    HIGH,
    LOW,
    LOWEST,
    MIDDLE,
    RENO,
    UDP,
    at,
    gain_of,
    is_alive,
    network_name,
    network_of,
)
from lasthop.publications.bbn8333.ceten import CETEN, FAST, SENDERS
from lasthop.publications.bbn8333.comparisons import (
    LESS,
    MORE,
    checks,
    everywhere,
    mostly,
    quoted,
    versus,
)
from lasthop.publications.bbn8333.factors import ALWAYS_ON, LARGE_DATAGRAMS, named
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.sim3 import COMPETITORS, panels
from lasthop.publications.bbn8333.simulation import simulation
from lasthop.publications.study.published import Test
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.verdict import Check, Judgement, above, between, every, most, some
from lasthop.publications.study.words import NEGLIGIBLE, SMALL, interval, percent
from lasthop.stats import quotient

_FILE = "bbn8333/sim7"


def _blocks(networks: tuple[Case, ...]) -> list[Block]:
    """Beside UDP, what the report lacks is run at its figure's network and where that is cheap."""
    dear = any(network["rate_bps"] >= FAST["rate_bps"] for network in networks) and networks != (
        FAST,
    )
    blocks = ceten.apart(Block(SENDERS, networks, file=_FILE))
    for competitors in COMPETITORS:
        block = Block(
            ceten.PUBLISHED, networks, cross_traffic=UDP, competitors=competitors, file=_FILE
        )
        blocks.append(block)
        if not dear:
            blocks += ceten.apart(block.but_beyond(ceten.BEYOND))
    return blocks


_ABOUT = between(1 - SMALL, 1 + SMALL)


def _better(runs: Runs) -> Judgement:
    gains = versus(runs, CETEN, RENO, **FAST, bit_error_rate=MIDDLE)
    return quoted(some(checks(gains, MORE)), gains, f"CETEN over Reno at {at(MIDDLE)}")


def _no_gain(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, CETEN, RENO, **FAST, bit_error_rate=HIGH),
        _ABOUT,
        f"CETEN over Reno, about taken as {percent(SMALL)}",
    )


def _alike(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, CETEN, RENO, **FAST, **ALONE, bit_error_rate=(0.0, LOWEST, LOW)),
        _ABOUT,
        f"CETEN over Reno, about taken as {percent(SMALL)}",
    )


def _slightly_worse(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, CETEN, RENO, **FAST, competitors=4, bit_error_rate=(0.0, LOW)),
        between(1 - SMALL, 1 - NEGLIGIBLE),
        f"CETEN over Reno beside four flows, slightly taken as less than {percent(SMALL)}",
        largest=True,
    )


def _both_ends(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, CETEN, RENO, bit_error_rate=(LOW, HIGH)),
        _ABOUT,
        f"CETEN over Reno, about taken as {percent(SMALL)}",
    )


def _in_between(runs: Runs) -> Judgement:
    return mostly(
        versus(runs, CETEN, RENO, bit_error_rate=MIDDLE), f"CETEN over Reno at {at(MIDDLE)}"
    )


def _less_congestion(runs: Runs) -> Judgement:
    """Of all networks at modest error rates."""
    alone = versus(runs, CETEN, RENO, **ALONE, bit_error_rate=MIDDLE)
    falling, summary = [], []
    for case, gain in alone:
        beside = [case.but(cross_traffic=UDP, competitors=n) for n in COMPETITORS]
        gains = [gain, *(gain_of(runs, of) for of in beside if _compares(runs, of))]
        falling.append(every([Check(quotient(gain, other), above(1.0)) for other in gains[1:]]))
        if network_of(case) == FAST:
            summary = [interval(of) for of in gains]
    return most(falling).judged(
        f"At {network_name(FAST)} and {at(MIDDLE)}, CETEN over Reno is {', '.join(summary)} beside"
        f" 0, 4 and 8"
        " flows; it is to be largest without any in most networks.",
    )


def _compares(runs: Runs, case: Case) -> bool:
    return is_alive(runs, case) and is_alive(runs, case.but(eten="none"))


def _sometimes_worse(runs: Runs) -> Judgement:
    gains = versus(runs, CETEN, RENO)
    return quoted(some(checks(gains, LESS)), gains, "CETEN over Reno")


TESTS: Mapping[str, Test] = {
    "better-at-moderate-error-rates": _better,
    "no-gain-at-the-highest": _no_gain,
    "alike-at-low-error-rates": _alike,
    "slightly-worse-in-heavy-congestion": _slightly_worse,
    "alike-at-both-ends": _both_ends,
    "gains-in-between": _in_between,
    "more-with-less-congestion": _less_congestion,
    "sometimes-worse": _sometimes_worse,
    "below-per-packet": ceten.below_per_packet,
}


def _outcome(runs: Runs) -> str:
    return ceten.outcome(runs)


STUDY = simulation(
    id="sim7",
    asks="No notice says which packet was corrupted: every packet carries the probabilities that"
    " packets of its path survive corruption and congestion, and at a loss the sender decides"
    " by them whether to slow down.",
    senders=SENDERS,
    blocks=_blocks,
    drawn={11: (FAST,)},
    panels=panels(COMPETITORS, "UDP"),
    shown=ceten.SHOWN,
    tests=TESTS,
    tried=(
        ceten.LONG_MEMORY,
        ALWAYS_ON,
        LARGE_DATAGRAMS,
        *named("clean-return", "window-40", "tick-10ms"),
    ),
    outcome=_outcome,
)
