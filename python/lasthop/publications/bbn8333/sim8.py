"""Simulation 8 (bbn8333 §4.5): cumulative ETEN over three lossy hops, beside other connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lasthop.publications.bbn8333 import ceten
from lasthop.publications.bbn8333.cases import (
    HIGH,
    LOW,
    MIDDLE,
    RENO,
    TCP,
    at,
    load_of,
    network_name,
    ratio_of,
)
from lasthop.publications.bbn8333.ceten import CETEN, FAST, SENDERS
from lasthop.publications.bbn8333.comparisons import LESS, MORE, checks, everywhere, quoted, versus
from lasthop.publications.bbn8333.factors import (
    COMPETITORS_WINDOW_100,
    COMPETITORS_WINDOW_1000,
    SACK_COMPETITORS,
    named,
)
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.sim3 import COMPETITORS, panels
from lasthop.publications.bbn8333.simulation import simulation
from lasthop.publications.study.published import Test
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.verdict import Check, Judgement, above, below, every, most, some
from lasthop.publications.study.words import MARKED, SMALL, interval, percent
from lasthop.stats import quotient

_FILE = "bbn8333/sim8"


def _blocks(networks: tuple[Case, ...]) -> list[Block]:
    alone = Block(SENDERS, networks, file=_FILE)
    beside = (replace(alone, cross_traffic=TCP, competitors=of) for of in COMPETITORS)
    return [part for block in (alone, *beside) for part in ceten.apart(block)]


def _moderate(runs: Runs) -> Judgement:
    """At error rates above 0 and below the highest."""
    lower = versus(runs, CETEN, RENO, **FAST, bit_error_rate=(LOW, MIDDLE))
    high = versus(runs, CETEN, RENO, **FAST, bit_error_rate=HIGH)
    summary = everywhere(high, below(1 + SMALL), f"At {at(HIGH)}", largest=True).why
    return quoted(
        every([*checks(lower, MORE), *checks(high, below(1 + SMALL))]),
        lower,
        f"{summary} CETEN over Reno below the highest error rate",
    )


def _eight_beat_four(runs: Runs) -> Judgement:
    where = {**FAST, "recovery": "reno", "eten": CETEN["eten"], "bit_error_rate": MIDDLE}
    (four,) = runs.cases(**where, competitors=4)
    eight = four.but(competitors=8)
    ratio = ratio_of(runs, eight, four)
    loads = ", ".join(percent(load_of(runs, case).value) for case in (four, eight))
    return every([Check(ratio, MORE)]).judged(
        f"Beside eight flows it has {interval(ratio)} times the goodput that it has beside four."
        f" These take {loads} of the middle link.",
        ratio,
        eight,
    )


def _slow_down(runs: Runs) -> Judgement:
    summary, falls = [], []
    for competitors in COMPETITORS:
        where = {**FAST, "eten": "none", "competitors": competitors}
        (clean,) = runs.cases(**where, bit_error_rate=0.0)
        loads = [load_of(runs, clean.but(bit_error_rate=rate)) for rate in (0.0, MIDDLE, HIGH)]
        falls.append(Check(quotient(loads[-1], loads[0]), LESS))
        summary.append(f"{competitors} flows {', '.join(percent(load.value) for load in loads)}")
    return every(falls).judged(
        f"Without errors, at {at(MIDDLE)} and at {at(HIGH)}, of the middle link at"
        f" {network_name(FAST)}"
        f" take {'; '.join(summary)}. What they leave helps where the transfer lacked it.",
    )


def _noticeable(runs: Runs) -> Judgement:
    gains = [pair for pair in versus(runs, CETEN, RENO) if pair[0]["bit_error_rate"]]
    return quoted(
        some(checks(gains, above(1 + MARKED))),
        gains,
        f"CETEN over Reno, noticeably taken as {percent(MARKED)}",
        largest=True,
    )


def _mostly_nothing(runs: Runs) -> Judgement:
    gains = versus(runs, CETEN, RENO, bit_error_rate=HIGH)
    return quoted(
        most(checks(gains, below(1 + SMALL))),
        gains,
        f"CETEN over Reno at {at(HIGH)}, insignificant taken as less than {percent(SMALL)}",
        largest=True,
    )


TESTS: Mapping[str, Test] = {
    "moderate-gains": _moderate,
    "eight-beat-four": _eight_beat_four,
    "competitors-slow-down": _slow_down,
    "noticeable-somewhere": _noticeable,
    "mostly-nothing-at-high-error-rates": _mostly_nothing,
    "below-per-packet": ceten.below_per_packet,
}


def _outcome(runs: Runs) -> str:
    return ceten.outcome(runs)


STUDY = simulation(
    id="sim8",
    asks="Cumulative ETEN, as in simulation 7, on a path whose middle link Tahoe connections share"
    " that take every loss for congestion.",
    senders=SENDERS,
    blocks=_blocks,
    drawn={12: (FAST,)},
    panels=panels(COMPETITORS, "Tahoe"),
    shown=ceten.SHOWN,
    tests=TESTS,
    tried=(
        ceten.LONG_MEMORY,
        SACK_COMPETITORS,
        COMPETITORS_WINDOW_100,
        COMPETITORS_WINDOW_1000,
        *named("clean-return", "window-40", "tick-10ms"),
    ),
    outcome=_outcome,
)
