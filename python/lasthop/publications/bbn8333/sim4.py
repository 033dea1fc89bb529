"""Simulation 4 (bbn8333 §3.6): three lossy hops, other TCP connections over the middle one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from lasthop.publications.bbn8333.cases import LTN, NONE, TCP, Network, Runs
from lasthop.publications.bbn8333.comparisons import (
    BACKWARD,
    SACK,
    every,
    gains_beside,
    kept,
    mostly,
    versus,
)
from lasthop.publications.bbn8333.findings import HIGH, MIDDLE, Test, at
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.sim3 import COMPETITORS, panels
from lasthop.publications.bbn8333.simulation import Lead, Simulation
from lasthop.publications.bbn8333.variations import SACK_COMPETITORS, SMALL_COMPETITORS, named
from lasthop.publications.study.verdict import Judgement, Verdict
from lasthop.publications.study.words import MARKED, interval, percent

#: "A much higher share": at least so many times.
MUCH = 2.0


def _blocks(networks: tuple[Network, ...]) -> list[Block]:
    return [
        Block((SACK, BACKWARD), networks),
        *(
            Block((SACK, BACKWARD), networks, cross_traffic=TCP, competitors=competitors)
            for competitors in COMPETITORS
        ),
    ]


def _falls(runs: Runs) -> Judgement:
    """Without errors, and with those that SACK alone hardly feels."""
    told, falls = [], []
    for case in runs.cases(network=LTN, eten=NONE, competitors=0, bit_error_rate=0.0):
        beside = [
            case.but(competitors=n, cross_traffic=TCP if n else case.cross_traffic)
            for n in (0, *COMPETITORS)
        ]
        ratios = [runs.ratio(many, few) for few, many in itertools.pairwise(beside)]
        falls += [ratio.hi < 1 for ratio in ratios]
        told.append(", ".join(f"{runs.goodput(of).value / 1e3:.1f}" for of in beside))
    return Judgement(
        Verdict.of(all(falls)),
        f"At {LTN.name} without errors SACK has {'; '.join(told)} kb/s beside 0, 4 and 8 flows.",
        ratios[-1],
        beside[-1],
    )


def _helps(runs: Runs) -> Judgement:
    return mostly(
        versus(runs, BACKWARD, SACK, cross_traffic=TCP, bit_error_rate=HIGH),
        "Backward over none beside Tahoe",
    )


def _four_keep(runs: Runs) -> Judgement:
    """The figure has goodputs, so that is what is judged."""
    verdict = every(
        kept(runs, BACKWARD, network=LTN, competitors=4),
        lambda share: 1 - MARKED < share.value < 1 + MARKED,
        f"Goodput with Backward over that without errors, roughly taken as {percent(MARKED)}",
    )
    told = f"{verdict.why} {_shares(runs, 4)}"
    return Judgement(verdict.verdict, told, verdict.measured, verdict.case)


def _eight_gain(runs: Runs) -> Judgement:
    pairs = kept(runs, BACKWARD, network=LTN, competitors=8)
    told = ", ".join(f"{interval(share)} at {at(case.bit_error_rate)}" for case, share in pairs)
    case, most = max(pairs, key=lambda pair: pair[1].value)
    return Judgement(
        Verdict.of(most.lo > 1 and all(share.hi >= 1 for _, share in pairs)),
        f"Goodput with Backward over that without errors: {told}. {_shares(runs, 8)}",
        most,
        case,
    )


def _shares(runs: Runs, competitors: int) -> str:
    """Of what the middle link delivers, the transfer's share, without errors and with most."""
    (clean,) = runs.cases(
        network=LTN,
        recovery="sack",
        eten=BACKWARD.eten,
        competitors=competitors,
        bit_error_rate=0.0,
    )
    noisy = [runs.share(case) for case in runs.cases(**clean.but(bit_error_rate=HIGH).as_dict())]
    plain = [
        runs.share(case)
        for case in runs.cases(**clean.but(bit_error_rate=HIGH, eten=NONE).as_dict())
    ]
    return (
        f"Of what the middle link delivers, Backward's share goes from"
        f" {percent(runs.share(clean).value)} without errors to {percent(noisy[0].value)} at"
        f" {at(HIGH)}, SACK's alone to {percent(plain[0].value)}: the competitors lose more."
    )


def _grows(runs: Runs) -> Judgement:
    grows = [
        low.but(bit_error_rate=HIGH)
        for low, gain in versus(runs, BACKWARD, SACK, cross_traffic=TCP, bit_error_rate=MIDDLE)
        for high, other in versus(runs, BACKWARD, SACK, cross_traffic=TCP, bit_error_rate=HIGH)
        if low.but(bit_error_rate=HIGH) == high and other.value > gain.value
    ]
    verdict = _helps(runs)
    cells = versus(runs, BACKWARD, SACK, cross_traffic=TCP, bit_error_rate=HIGH)
    rising = [
        eight.value > four.value
        for case, four in cells
        for other, eight in cells
        if case.competitors == 4 and other == case.but(competitors=8)
    ]
    return Judgement(
        Verdict.of((verdict.verdict is Verdict.HOLDS) and len(grows) == len(cells) and all(rising)),
        f"{verdict.why} From {at(MIDDLE)} to {at(HIGH)} the gain grows in {len(grows)} of"
        f" {len(cells)} cells; from 4 to 8 flows, at {at(HIGH)}, in {sum(rising)} of"
        f" {len(rising)}.",
        verdict.measured,
        verdict.case,
    )


def _much(runs: Runs) -> Judgement:
    cells = versus(runs, BACKWARD, SACK, cross_traffic=TCP, bit_error_rate=HIGH)
    much = [pair for pair in cells if pair[1].lo > MUCH]
    case, most = max(cells, key=lambda pair: pair[1].value)
    return Judgement(
        Verdict.of(bool(much)),
        f"At {at(HIGH)} it has at least {MUCH:g} times its share without ETEN in {len(much)} of"
        f" {len(cells)} cells, at most {interval(most)} times ({case.network.name},"
        f" {case.competitors} flows), over three hops against one.",
        most,
        case,
    )


TESTS: Mapping[str, Test] = {
    "share-falls": _falls,
    "helps-at-high-error-rates": _helps,
    "four-keep-the-share": _four_keep,
    "eight-gain-share": _eight_gain,
    "grows-with-errors-and-congestion": _grows,
    "better-with-competing-tcp": _helps,
    "much-higher-share": _much,
}


def _lead(runs: Runs) -> Lead:
    return Lead(
        "On the middle of three lossy links the transfer shares with Tahoe connections that take"
        " every loss for congestion. They slow down for errors, and the transfer that is told what"
        " was corrupted takes what they leave.",
        f"At {LTN.name} a hop and {at(HIGH)} Backward multiplies the goodput of SACK:"
        f" {gains_beside(runs)} of them each way.",
    )


SIMULATION = Simulation(
    id="sim4",
    variants=(SACK, BACKWARD),
    blocks=_blocks,
    figures={8: (LTN,)},
    panels=panels(COMPETITORS, "Tahoe"),
    shown=(SACK, BACKWARD),
    tests=TESTS,
    variations=(
        *named("dupacks-count", "clean-return", "tick-10ms"),
        SMALL_COMPETITORS,
        SACK_COMPETITORS,
    ),
    lead=_lead,
)
reproduce = SIMULATION.reproduce
