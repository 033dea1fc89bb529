"""Simulation 3 (bbn8333 §3.5): three lossy hops, UDP cross traffic over the middle one."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.publications.bbn8333.cases import (
    ALONE,
    BACKWARD,
    HIGH,
    LTN,
    MIDDLE,
    NONE,
    ORACLE,
    RENO,
    RENO_BACKWARD,
    SACK,
    UDP,
    at,
    load_of,
    network_name,
    network_of,
)
from lasthop.publications.bbn8333.comparisons import (
    MORE,
    everywhere,
    gains_beside,
    kept,
    mostly,
    reno_alike,
    versus,
)
from lasthop.publications.bbn8333.factors import ALWAYS_ON, LARGE_DATAGRAMS, named
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.simulation import simulation
from lasthop.publications.study.published import Test
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.verdict import Check, Judgement, above, below, every, most
from lasthop.publications.study.words import SMALL, percent
from lasthop.stats import quotient

#: Flows each way.
COMPETITORS = (4, 8)


def blocks(networks: tuple[Case, ...]) -> list[Block]:
    """Without cross traffic, beside four flows each way, and beside eight."""
    return [
        Block((SACK, BACKWARD, ORACLE), networks),
        *(
            Block((SACK, BACKWARD), networks, cross_traffic=UDP, competitors=competitors)
            for competitors in COMPETITORS
        ),
    ]


def _blocks(networks: tuple[Case, ...]) -> list[Block]:
    """The same, and with Reno, of which the report shows nothing."""
    own = blocks(networks)
    reno = (RENO, RENO_BACKWARD)
    return [*own, *(block.but_beyond(reno) for block in own if block.competitors)]


def _helps(runs: Runs) -> Judgement:
    return mostly(
        versus(runs, BACKWARD, SACK, cross_traffic=UDP, bit_error_rate=HIGH),
        "Backward over none beside UDP",
    )


def _low_congestion(runs: Runs) -> Judgement:
    gains = [
        pair
        for variant in (BACKWARD, ORACLE)
        for pair in versus(runs, variant, SACK, **ALONE, bit_error_rate=HIGH)
    ]
    return everywhere(gains, MORE, "Backward and Oracle over none, without UDP")


def _closer(runs: Runs) -> Judgement:
    """Both shares are of the goodput without errors, which is the same with and without."""
    where = {"cross_traffic": UDP, "bit_error_rate": (MIDDLE, HIGH)}
    stock = dict(kept(runs, SACK, **where))
    cells = [
        (case, share, stock[case.but(eten=NONE)])
        for case, share in kept(runs, BACKWARD, **where)
        if case.but(eten=NONE) in stock
    ]
    summary = [
        f"beside {case.get('competitors', 0)} flows Backward keeps {percent(share.value)} of the"
        f" goodput without errors and SACK alone {percent(plain.value)}"
        for case, share, plain in cells
        if case["bit_error_rate"] == HIGH and network_of(case) == LTN
    ]
    return most([Check(quotient(share, plain), MORE) for _, share, plain in cells]).judged(
        f"At {network_name(LTN)} and {at(HIGH)}, {'; '.join(summary)}. From {at(MIDDLE)} on"
        f" Backward is to keep"
        " more in most cells."
    )


def _insignificant(runs: Runs) -> Judgement:
    return everywhere(
        versus(runs, BACKWARD, SACK, cross_traffic=UDP, bit_error_rate=(MIDDLE, HIGH)),
        below(1 + SMALL),
        f"Backward over none beside UDP, insignificant taken as less than {percent(SMALL)}",
        largest=True,
    )


def _load(runs: Runs) -> Judgement:
    (case,) = runs.cases(**LTN, **SACK, competitors=4, bit_error_rate=0.0)
    load = load_of(runs, case)
    return every([Check(load, above(1 - SMALL))]).judged(
        f"Four flows take {percent(load.value)} of the middle link at {network_name(LTN)}.",
        load,
        case,
    )


TESTS: Mapping[str, Test] = {
    "helps-at-high-error-rates": _helps,
    "both-help-with-low-congestion": _low_congestion,
    "closer-to-error-free": _closer,
    "insignificant-in-congestion": _insignificant,
    "load": _load,
    "reno-alike": reno_alike,
}


def _outcome(runs: Runs) -> str:
    return (
        f"At {network_name(LTN)} a hop and {at(HIGH)} Backward ETEN still multiplies the goodput"
        f" of SACK:"
        f" {gains_beside(runs)} of them each way."
    )


def panels(competitors: tuple[int, ...], name: str) -> Mapping[str, Mapping[str, int | None]]:
    """A panel for each number of competitors."""
    words = {0: "No cross traffic"}
    return {
        words.get(n, f"{n} {name} flows each way"): {"competitors": n or None}
        for n in (0, *competitors)
    }


STUDY = simulation(
    id="sim3",
    asks="On the middle of three lossy links the transfer meets UDP sources that know no congestion"
    " control. A notice says that a packet was corrupted; what queues drop stays congestion,"
    " and is answered as ever.",
    senders=(SACK, BACKWARD, ORACLE, RENO, RENO_BACKWARD),
    blocks=_blocks,
    drawn={7: (LTN,)},
    panels=panels(COMPETITORS, "UDP"),
    shown=(SACK, BACKWARD, ORACLE),
    tests=TESTS,
    tried=(*named("dupacks-count", "clean-return", "tick-10ms"), ALWAYS_ON, LARGE_DATAGRAMS),
    outcome=_outcome,
)
