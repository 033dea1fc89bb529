"""Simulation 2 (bbn8333 §3.4): one transfer over three lossy hops, nobody else on the path."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop import library
from lasthop.publications.bbn8333 import statements
from lasthop.publications.bbn8333.cases import (
    ERRORS,
    FORWARD,
    LFN,
    LTN,
    NONE,
    SFN,
    SIMULATED,
    Network,
    Runs,
    extreme,
)
from lasthop.publications.bbn8333.comparisons import (
    BACKWARD,
    ORACLE,
    SACK,
    every,
    kept,
    no_better,
    versus,
    where,
)
from lasthop.publications.bbn8333.findings import HIGH, MIDDLE, Test, at
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.sim1 import PANELS, VARIANTS, blocks
from lasthop.publications.bbn8333.simulation import Lead, Simulation
from lasthop.publications.bbn8333.variations import FIRST_LINK, LAST_LINK, ONE_HOP, named
from lasthop.publications.study.verdict import Judgement, Verdict
from lasthop.publications.study.words import MARKED, NEGLIGIBLE, interval, number, percent


def _blocks(networks: tuple[Network, ...]) -> list[Block]:
    return blocks(networks, hops=3)


def _same(runs: Runs) -> Judgement:
    """Those of one hop, tested here."""
    stated = {s["id"]: s["claim"] for s in library.published("bbn8333")["sim1"]["statement"]}
    verdicts = {id: test(runs) for id, test in statements.TESTS.items()}
    differ = [id for id, verdict in verdicts.items() if verdict.verdict is not Verdict.HOLDS]
    told = f"{len(verdicts) - len(differ)} of {len(verdicts)} hold here."
    for id in differ:
        told += f" Not: \u201c{stated[id]}\u201d {verdicts[id].why}"
    return Judgement(Verdict.of(not differ), told)


def _always(runs: Runs) -> Judgement:
    gains = [
        (case, runs.gain(case))
        for case in runs.cases(eten=SIMULATED)
        if case.bit_error_rate and runs.is_alive(case.but(eten=NONE))
    ]
    return every(
        gains,
        lambda gain: gain.hi >= 1 - NEGLIGIBLE,
        f"Goodput with ETEN over goodput without, held to be no worse within {percent(NEGLIGIBLE)}",
        lambda case: f"{case.variant}, {where(case)}, {ERRORS[case.errors]}",
    )


def _oracle_keeps(runs: Runs) -> Judgement:
    stock = {
        case.network: share
        for case, share in kept(runs, SACK, errors="both", bit_error_rate=MIDDLE)
    }
    hurt = [n for n, share in stock.items() if share.value < 1 - MARKED]
    left = kept(runs, ORACLE, errors="both", bit_error_rate=MIDDLE)
    left = [(case, share) for case, share in left if case.network in hurt]
    verdict = every(
        left,
        lambda share: share.lo > 1 - MARKED,
        f"Where SACK loses more than {percent(MARKED)} at {at(MIDDLE)}, with Oracle of the goodput"
        " without errors is left",
    )
    high = kept(runs, ORACLE, errors="both", bit_error_rate=HIGH)
    worst = min((share for _, share in high), key=lambda share: share.value)
    told = f"{verdict.why} At {at(HIGH)} it is down to {number(worst.value)}."
    return Judgement(verdict.verdict, told, verdict.measured, verdict.case)


def _approaches(runs: Runs) -> Judgement:
    shares = versus(runs, BACKWARD, ORACLE, errors="forward", bit_error_rate=MIDDLE)
    rates = sorted({case.rate_bps for case, _ in shares})
    closer = 0
    for rate in rates:
        by_delay = sorted((c.one_way_delay_s, share) for c, share in shares if c.rate_bps == rate)
        (_, soon), (_, late) = by_delay[0], by_delay[-1]
        closer += soon.lo > late.hi
    least, most = extreme(shares, largest=False), extreme(shares, largest=True)
    return Judgement(
        Verdict.of(closer == len(rates)),
        f"At {at(MIDDLE)} on data only, where no notice is lost, SACK with Backward has"
        f" {interval(least[1])} ({least[0].network.name}) to {interval(most[1])}"
        f" ({most[0].network.name}) of Oracle's goodput; at the shortest delay clearly more than at"
        f" the longest at {closer} of {len(rates)} rates. A notice takes its part of the round"
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


def _lead(runs: Runs) -> Lead:
    where = {"network": LFN, "errors": "both", "bit_error_rate": MIDDLE}
    ((_, backward),) = versus(runs, BACKWARD, SACK, **where)
    ((_, oracle),) = versus(runs, ORACLE, SACK, **where)
    return Lead(
        "The same transfer as in simulation 1, but over three links, each of which corrupts"
        " packets: notices come from the sink or from routers on the way, and cross one, two or"
        " three links that may damage them.",
        f"At {LFN.name} a hop and a bit error rate of {at(MIDDLE)}, SACK with Backward has"
        f" {number(backward.value)} times the goodput of SACK alone, with Oracle"
        f" {number(oracle.value)} times.",
    )


SIMULATION = Simulation(
    id="sim2",
    variants=VARIANTS,
    blocks=_blocks,
    figures={None: (LFN, SFN, LTN)},
    panels=PANELS,
    shown=VARIANTS,
    tests=TESTS,
    variations=(
        FIRST_LINK,
        LAST_LINK,
        ONE_HOP,
        *named("dupacks-count", "small-notices", "window-40", "rto-1s", "tick-10ms"),
    ),
    lead=_lead,
)
reproduce = SIMULATION.reproduce
