"""Simulation 4 (bbn8333 §3.6): three lossy hops, other TCP connections over the middle one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from lasthop.publications.bbn8333.cases import (
    ALONE,
    BACKWARD,
    HIGH,
    LTN,
    MIDDLE,
    RENO,
    RENO_BACKWARD,
    SACK,
    TCP,
    at,
    goodput_of,
    network_name,
    plain,
    ratio_of,
    share_of,
)
from lasthop.publications.bbn8333.comparisons import (
    LESS,
    MORE,
    checks,
    everywhere,
    gains_beside,
    kept,
    mostly,
    reno_alike,
    versus,
)
from lasthop.publications.bbn8333.factors import SACK_COMPETITORS, SMALL_COMPETITORS, named
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.sim3 import COMPETITORS, panels
from lasthop.publications.bbn8333.simulation import simulation
from lasthop.publications.study.published import Test
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.verdict import Check, Judgement, above, between, every, some
from lasthop.publications.study.words import MARKED, SMALL, interval, percent
from lasthop.stats import quotient

#: "A much higher share": at least so many times.
MUCH = 2.0


def _blocks(networks: tuple[Case, ...]) -> list[Block]:
    beside = [
        Block((SACK, BACKWARD), networks, cross_traffic=TCP, competitors=competitors)
        for competitors in COMPETITORS
    ]
    reno = [block.but_beyond((RENO, RENO_BACKWARD)) for block in beside]
    return [Block((SACK, BACKWARD), networks), *beside, *reno]


def _falls(runs: Runs) -> Judgement:
    """Without errors, and with those that SACK alone hardly feels."""
    summary, falls = [], []
    for case in runs.cases(**SACK, **LTN, **ALONE, bit_error_rate=0.0):
        beside = [
            case.but(cross_traffic=TCP, competitors=n) if n else case for n in (0, *COMPETITORS)
        ]
        ratios = [ratio_of(runs, many, few) for few, many in itertools.pairwise(beside)]
        falls += [Check(ratio, LESS) for ratio in ratios]
        summary.append(", ".join(f"{goodput_of(runs, of).value / 1e3:.1f}" for of in beside))
    return every(falls).judged(
        f"At {network_name(LTN)} without errors SACK has {'; '.join(summary)} kb/s beside 0, 4 and"
        f" 8 flows.",
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
    judged = everywhere(
        kept(runs, BACKWARD, **LTN, competitors=4),
        between(1 - MARKED, 1 + MARKED),
        f"Goodput with Backward over that without errors, roughly taken as {percent(MARKED)}",
    )
    return replace(judged, why=f"{judged.why} {_shares(runs, 4)}")


def _eight_gain(runs: Runs) -> Judgement:
    pairs = kept(runs, BACKWARD, **LTN, competitors=8)
    summary = ", ".join(
        f"{interval(share)} at {at(case['bit_error_rate'])}" for case, share in pairs
    )
    case, most_of = max(pairs, key=lambda pair: pair[1].value)
    raised, kept_of = some(checks(pairs, MORE)), every(checks(pairs, above(1 - SMALL)))
    return every([raised, kept_of]).judged(
        f"Goodput with Backward over that without errors: {summary}; it is to be more somewhere,"
        f" and nowhere less by {percent(SMALL)}. {_shares(runs, 8)}",
        most_of,
        case,
    )


def _shares(runs: Runs, competitors: int) -> str:
    """Of what the middle link delivers, the transfer's share, without errors and with most."""
    clean = runs.case(**LTN, **BACKWARD, competitors=competitors, bit_error_rate=0.0)
    noisy = clean.but(bit_error_rate=HIGH)
    shares = [percent(share_of(runs, case).value) for case in (clean, noisy, plain(noisy))]
    return (
        f"Of what the middle link delivers, Backward's share goes from"
        f" {shares[0]} without errors to {shares[1]} at {at(HIGH)}, SACK's alone to {shares[2]}:"
        " the competitors lose more."
    )


def _grows(runs: Runs) -> Judgement:
    middle = dict(versus(runs, BACKWARD, SACK, cross_traffic=TCP, bit_error_rate=MIDDLE))
    high = dict(versus(runs, BACKWARD, SACK, cross_traffic=TCP, bit_error_rate=HIGH))
    errors = [
        Check(quotient(gain, middle[case.but(bit_error_rate=MIDDLE)]), above(1.0))
        for case, gain in high.items()
        if case.but(bit_error_rate=MIDDLE) in middle
    ]
    congestion = [
        Check(quotient(high[case.but(competitors=8)], gain), above(1.0))
        for case, gain in high.items()
        if case.get("competitors", 0) == 4 and case.but(competitors=8) in high
    ]
    helps = _helps(runs)
    parts = [every(errors), every(congestion)]
    summary = (
        f"{helps.why} From {at(MIDDLE)} to {at(HIGH)} the gain grows, shown in {parts[0].shown} of"
        f" {len(errors)} cells; from 4 to 8 flows, at {at(HIGH)}, in {parts[1].shown} of"
        f" {len(congestion)}."
    )
    claims = [*([helps.claim] if helps.claim else []), *parts]
    return every(claims).judged(summary, helps.measured, helps.case)


def _much(runs: Runs) -> Judgement:
    cells = versus(runs, BACKWARD, SACK, cross_traffic=TCP, bit_error_rate=HIGH)
    case, most_of = max(cells, key=lambda pair: pair[1].value)
    return some(checks(cells, above(MUCH))).judged(
        f"At {at(HIGH)} its share is at most {interval(most_of)} times that without ETEN"
        f" ({network_name(case)}, {case.get('competitors', 0)} flows), over three hops against"
        f" one; much"
        f" higher is at least {MUCH:g} times.",
        most_of,
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
    "reno-alike": reno_alike,
}


def _outcome(runs: Runs) -> str:
    return (
        f"At {network_name(LTN)} a hop and {at(HIGH)} Backward multiplies the goodput of SACK:"
        f" {gains_beside(runs)} of them each way."
    )


STUDY = simulation(
    id="sim4",
    asks="On the middle of three lossy links the transfer shares with Tahoe connections that take"
    " every loss for congestion. They slow down for errors, and the transfer that is notified of"
    " corruption uses the capacity that they leave.",
    senders=(SACK, BACKWARD, RENO, RENO_BACKWARD),
    blocks=_blocks,
    drawn={8: (LTN,)},
    panels=panels(COMPETITORS, "Tahoe"),
    shown=(SACK, BACKWARD),
    tests=TESTS,
    tried=(
        *named("dupacks-count", "clean-return", "tick-10ms"),
        SMALL_COMPETITORS,
        SACK_COMPETITORS,
    ),
    outcome=_outcome,
)
