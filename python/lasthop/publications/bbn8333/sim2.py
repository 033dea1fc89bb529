"""Simulation 2 (bbn8333 §3.4): one transfer over three lossy hops, without cross traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lasthop import library
from lasthop.publications.bbn8333 import statements
from lasthop.publications.bbn8333.cases import (
    BACKWARD,
    ERRORS,
    FORWARD,
    HIGH,
    LFN,
    LTN,
    MIDDLE,
    NONE,
    ORACLE,
    SACK,
    SFN,
    SIMULATED,
    at,
    extreme,
    gain_of,
    is_alive,
    network_name,
    network_of,
    sender_name,
    where,
)
from lasthop.publications.bbn8333.comparisons import MORE, everywhere, kept, no_better, versus
from lasthop.publications.bbn8333.factors import FIRST_LINK, LAST_LINK, ONE_HOP, named
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.sim1 import PANELS, SENDERS, blocks
from lasthop.publications.bbn8333.simulation import simulation
from lasthop.publications.study.published import Test
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.verdict import Check, Judgement, Verdict, above, every
from lasthop.publications.study.words import MARKED, NEGLIGIBLE, interval, number, percent
from lasthop.stats import quotient


def _blocks(networks: tuple[Case, ...]) -> list[Block]:
    return blocks(networks, hops=3)


def _same(runs: Runs) -> Judgement:
    """Tests the statements of simulation 1 here."""
    stated = {s["id"]: s["claim"] for s in library.published("bbn8333")["sim1"]["statement"]}
    judged = {id: test(runs) for id, test in statements.TESTS.items()}
    summary = [
        f"{of.verdict.capitalize()}: \u201c{stated[id]}\u201d {of.why}"
        for id, of in judged.items()
        if of.verdict is not Verdict.HOLDS
    ]
    holding = len(judged) - len(summary)
    return every([of.claim for of in judged.values() if of.claim]).judged(
        " ".join([f"{holding} of {len(judged)} hold here.", *summary])
    )


def _always(runs: Runs) -> Judgement:
    gains = [
        (case, gain_of(runs, case))
        for case in runs.cases(eten=SIMULATED)
        if case["bit_error_rate"] and is_alive(runs, case) and is_alive(runs, case.but(eten=NONE))
    ]
    return everywhere(
        gains,
        MORE,
        "Goodput with ETEN over goodput without, an improvement taken as at least"
        f" {percent(NEGLIGIBLE)}",
        lambda case: f"{sender_name(case)}, {where(case)}, {ERRORS[case['errors']]}",
    )


def _oracle_keeps(runs: Runs) -> Judgement:
    stock = {
        network_of(case): share
        for case, share in kept(runs, SACK, errors="both", bit_error_rate=MIDDLE)
    }
    hurt = [n for n, share in stock.items() if share.value < 1 - MARKED]
    left = kept(runs, ORACLE, errors="both", bit_error_rate=MIDDLE)
    left = [(case, share) for case, share in left if network_of(case) in hurt]
    judged = everywhere(
        left,
        above(1 - MARKED),
        f"Where SACK loses more than {percent(MARKED)} at {at(MIDDLE)}, with Oracle of the goodput"
        " without errors is left",
    )
    high = kept(runs, ORACLE, errors="both", bit_error_rate=HIGH)
    worst = min((share for _, share in high), key=lambda share: share.value)
    summary = f"{judged.why} At {at(HIGH)} it is down to {number(worst.value)}."
    return replace(judged, why=summary)


def _approaches(runs: Runs) -> Judgement:
    shares = versus(runs, BACKWARD, ORACLE, errors="forward", bit_error_rate=MIDDLE)
    rates = sorted({case["rate_bps"] for case, _ in shares})
    closer = []
    for rate in rates:
        by_delay = sorted(
            (c["one_way_delay_s"], share) for c, share in shares if c["rate_bps"] == rate
        )
        (_, soon), (_, late) = by_delay[0], by_delay[-1]
        closer.append(Check(quotient(soon, late), above(1.0)))
    least, most_of = extreme(shares, largest=False), extreme(shares, largest=True)
    return every(closer).judged(
        f"At {at(MIDDLE)} on data only, where no notice is lost, SACK with Backward has"
        f" {interval(least[1])} ({network_name(least[0])}) to {interval(most_of[1])}"
        f" ({network_name(most_of[0])}) of Oracle's goodput; at every rate it is to have more of it"
        " at the shortest delay than at the longest. A notice takes its part of the round"
        " trip, however long that is; how large that part is, which link has the errors decides.",
        least[1],
        least[0],
    )


TESTS: Mapping[str, Test] = {
    "same-conclusions": _same,
    "always-improve": _always,
    "oracle-keeps-goodput": _oracle_keeps,
    "backward-approaches-oracle": _approaches,
    "forward-below-backward": no_better(
        FORWARD, ("backward",), "Goodput with Forward over goodput with Backward"
    ),
}


def _outcome(runs: Runs) -> str:
    where = {**LFN, "errors": "both", "bit_error_rate": MIDDLE}
    ((_, backward),) = versus(runs, BACKWARD, SACK, **where)
    ((_, oracle),) = versus(runs, ORACLE, SACK, **where)
    return (
        f"At {network_name(LFN)} a hop and a bit error rate of {at(MIDDLE)}, SACK with Backward has"
        f" {number(backward.value)} times the goodput of SACK alone, with Oracle"
        f" {number(oracle.value)} times."
    )


STUDY = simulation(
    id="sim2",
    asks="The same transfer as in simulation 1, but over three links, each of which corrupts"
    " packets: notices come from the sink or from routers on the way, and cross one, two or"
    " three links that may damage them.",
    senders=SENDERS,
    blocks=_blocks,
    drawn={None: (LFN, SFN, LTN)},
    panels=PANELS,
    shown=SENDERS,
    tests=TESTS,
    tried=(
        FIRST_LINK,
        LAST_LINK,
        ONE_HOP,
        *named(
            "dupacks-count",
            "first-excused",
            "small-notices",
            "clean-return",
            "window-40",
            "rto-1s",
            "tick-10ms",
        ),
    ),
    outcome=_outcome,
)
