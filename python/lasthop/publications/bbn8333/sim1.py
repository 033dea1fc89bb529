"""Simulation 1 (bbn8333 §3.3): one transfer over one lossy hop, nobody else on the path."""

from __future__ import annotations

from lasthop import library
from lasthop.publications.bbn8333.cases import (
    DIRECTIONS,
    ERRORS,
    LFN,
    LTN,
    MODERN,
    NONE,
    NOTIFIED,
    PERIOD,
    SFN,
    SIMULATED,
    Network,
    Runs,
    variants,
)
from lasthop.publications.bbn8333.comparisons import BACKWARD, ORACLE, SACK, versus
from lasthop.publications.bbn8333.findings import HIGH, at
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.simulation import Lead, Simulation
from lasthop.publications.bbn8333.statements import TESTS
from lasthop.publications.bbn8333.variations import VARIATIONS
from lasthop.publications.study.published import published
from lasthop.publications.study.words import number

PUBLISHED = variants((NONE, *SIMULATED))
#: Told of every corrupted packet in ways that the report only describes.
BEYOND = variants(eten for eten in NOTIFIED if eten not in SIMULATED)
VARIANTS = (*PUBLISHED, *BEYOND)
PANELS = {ERRORS[errors].capitalize(): {"errors": errors} for errors in reversed(DIRECTIONS)}


def blocks(networks: tuple[Network, ...], hops: int = 1) -> list[Block]:
    """What the report ran, and what it did not."""
    block = Block(PUBLISHED, networks, hops=hops, directions=DIRECTIONS)
    return [block, *([block.but_beyond(BEYOND)] if BEYOND else [])]


def _lead(runs: Runs) -> Lead:
    where = {"network": LFN, "bit_error_rate": HIGH, "errors": "both"}
    ((_, backward),) = versus(runs, BACKWARD, SACK, **where)
    ((_, oracle),) = versus(runs, ORACLE, SACK, **where)
    stated = library.published("bbn8333")["sim1"]["ratio"]
    words = {ratio["id"]: published(ratio).words for ratio in stated}
    return Lead(
        "A bulk transfer crosses one link that corrupts packets. Plain TCP takes every loss for"
        " congestion and slows down. With explicit transport error notification (ETEN) the sender"
        " learns which packet was corrupted, sends it again and keeps its window.",
        f"At {LFN.name} and a bit error rate of {at(HIGH)}, SACK with notices as packets (Backward)"
        f" has {number(backward.value)} times the goodput of plain SACK (published:"
        f" {words['lfn-sack-backward']}), and with an oracle {number(oracle.value)} times"
        f" (published: {words['lfn-sack-oracle']}).",
    )


SIMULATION = Simulation(
    id="sim1",
    variants=VARIANTS,
    blocks=blocks,
    figures={4: (LFN,), 5: (SFN,), 6: (LTN,)},
    panels=PANELS,
    shown=VARIANTS,
    tests=TESTS,
    variations=VARIATIONS,
    lead=_lead,
    profiles=(PERIOD, MODERN),
)
reproduce = SIMULATION.reproduce
