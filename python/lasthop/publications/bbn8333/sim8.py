"""Simulation 8 (bbn8333 §4.5): cumulative ETEN over three lossy hops, beside other connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lasthop.publications.bbn8333 import ceten
from lasthop.publications.bbn8333.cases import TCP, Network, Runs
from lasthop.publications.bbn8333.ceten import CETEN, FAST, RENO, VARIANTS
from lasthop.publications.bbn8333.comparisons import every, more, versus
from lasthop.publications.bbn8333.findings import HIGH, LOW, MIDDLE, Test, at
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.sim3 import COMPETITORS, panels
from lasthop.publications.bbn8333.simulation import Lead, Simulation
from lasthop.publications.bbn8333.variations import SACK_COMPETITORS, named
from lasthop.publications.study.verdict import Judgement, Verdict
from lasthop.publications.study.words import MARKED, SMALL, interval, percent

_FILE = "bbn8333/sim8"


def _blocks(networks: tuple[Network, ...]) -> list[Block]:
    alone = Block(VARIANTS, networks, file=_FILE)
    beside = (replace(alone, cross_traffic=TCP, competitors=of) for of in COMPETITORS)
    return [part for block in (alone, *beside) for part in ceten.apart(block)]


def _moderate(runs: Runs) -> Judgement:
    """Where errors are not the most, but there are any to tell."""
    below = every(
        versus(runs, CETEN, RENO, network=FAST, bit_error_rate=(LOW, MIDDLE)),
        more,
        "CETEN over Reno below the highest error rate",
    )
    high = every(
        versus(runs, CETEN, RENO, network=FAST, bit_error_rate=HIGH),
        lambda ratio: ratio.value < 1 + SMALL,
        f"At {at(HIGH)}",
        largest=True,
    )
    return Judgement(
        Verdict.of(below.verdict is high.verdict is Verdict.HOLDS),
        f"{below.why} {high.why}",
        below.measured,
        below.case,
    )


def _eight_beat_four(runs: Runs) -> Judgement:
    where = {"network": FAST, "recovery": "reno", "eten": CETEN.eten, "bit_error_rate": MIDDLE}
    (four,) = runs.cases(**where, competitors=4)
    eight = four.but(competitors=8)
    ratio = runs.ratio(eight, four)
    loads = ", ".join(percent(runs.load(case).value) for case in (four, eight))
    return Judgement(
        Verdict.of(ratio.lo > 1),
        f"Beside eight flows it has {interval(ratio)} times the goodput that it has beside four. A"
        f" window of 20 segments lets them take {loads} of the middle link.",
        ratio,
        eight,
    )


def _slow_down(runs: Runs) -> Judgement:
    told, falls = [], []
    for competitors in COMPETITORS:
        where = {"network": FAST, "eten": "none", "competitors": competitors}
        (clean,) = runs.cases(**where, bit_error_rate=0.0)
        loads = [runs.load(clean.but(bit_error_rate=rate)) for rate in (0.0, MIDDLE, HIGH)]
        falls.append(loads[-1].hi < loads[0].lo)
        told.append(f"{competitors} flows {', '.join(percent(load.value) for load in loads)}")
    return Judgement(
        Verdict.of(all(falls)),
        f"Without errors, at {at(MIDDLE)} and at {at(HIGH)}, of the middle link at {FAST.name}"
        f" take {'; '.join(told)}. What they leave helps where the transfer lacked it.",
    )


def _noticeable(runs: Runs) -> Judgement:
    gains = [pair for pair in versus(runs, CETEN, RENO) if pair[0].bit_error_rate]
    verdict = every(
        gains,
        lambda gain: more(gain) and gain.value > 1 + MARKED,
        f"CETEN over Reno, noticeably taken as {percent(MARKED)}",
        largest=True,
    )
    held = any(more(gain) and gain.value > 1 + MARKED for _, gain in gains)
    return Judgement(Verdict.of(held), verdict.why, verdict.measured, verdict.case)


def _mostly_nothing(runs: Runs) -> Judgement:
    gains = versus(runs, CETEN, RENO, bit_error_rate=HIGH)
    verdict = every(
        gains,
        lambda gain: not more(gain) or gain.value < 1 + SMALL,
        f"CETEN over Reno at {at(HIGH)}, insignificant taken as less than {percent(SMALL)} or not"
        " clearly more",
        largest=True,
    )
    nothing = sum(not more(gain) or gain.value < 1 + SMALL for _, gain in gains)
    return Judgement(
        Verdict.of(2 * nothing > len(gains)), verdict.why, verdict.measured, verdict.case
    )


TESTS: Mapping[str, Test] = {
    "moderate-gains": _moderate,
    "eight-beat-four": _eight_beat_four,
    "competitors-slow-down": _slow_down,
    "noticeable-somewhere": _noticeable,
    "mostly-nothing-at-high-error-rates": _mostly_nothing,
    "below-per-packet": ceten.below_per_packet,
}


def _lead(runs: Runs) -> Lead:
    return Lead(
        "Cumulative ETEN, as in simulation 7, on a path whose middle link Tahoe connections share"
        " that take every loss for congestion.",
        ceten.outcome(runs),
    )


SIMULATION = Simulation(
    id="sim8",
    variants=VARIANTS,
    blocks=_blocks,
    figures={12: (FAST,)},
    panels=panels(COMPETITORS, "Tahoe"),
    shown=ceten.SHOWN,
    tests=TESTS,
    variations=(
        ceten.LONG_MEMORY,
        SACK_COMPETITORS,
        *named("clean-return", "window-40", "tick-10ms"),
    ),
    lead=_lead,
)
reproduce = SIMULATION.reproduce
