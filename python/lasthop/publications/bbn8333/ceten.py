"""What simulations 7 and 8 have in common: cumulative ETEN with Reno."""

from __future__ import annotations

from dataclasses import replace

from lasthop.publications.bbn8333.cases import NOBODY, Network, Runs, Variant
from lasthop.publications.bbn8333.comparisons import LESS, RENO, everywhere, versus
from lasthop.publications.bbn8333.findings import HIGH, MIDDLE, at
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.variations import Variation
from lasthop.publications.study.verdict import Judgement
from lasthop.publications.study.words import number

#: Of figures 11 and 12.
FAST = Network(100e6, 0.1)

CETEN = Variant("reno", "cumulative")
LOSS_RATIO = Variant("reno", "cumulative-loss-ratio")
ADAPTIVE = Variant("reno", "cumulative-adaptive")
#: The fields at the bytes that they take.
REAL = Variant("reno", "cumulative-real")
BACKWARD = Variant("reno", "backward")

PUBLISHED = (RENO, CETEN)
BEYOND = (LOSS_RATIO, ADAPTIVE)
SHOWN = (*PUBLISHED, *BEYOND)
VARIANTS = (*SHOWN, REAL, BACKWARD)

#: CETEN-A compares averages over many packets: a may be no larger.
_LARGEST = 1 / 64


def apart(block: Block) -> list[Block]:
    """The same with CETEN-A on a path whose nodes have the memory that it needs."""
    others = tuple(of for of in block.variants if of != ADAPTIVE)
    return [replace(block, variants=others), replace(block, variants=(ADAPTIVE,), weight=_LARGEST)]


LONG_MEMORY = Variation(
    "long-memory",
    "estimates over some hundred packets",
    "With a = 0.5 a router's estimate is about the last two packets; with 0.01 it is about the last"
    " hundred, and says what the link does rather than what befell one packet.",
    {"ceten.a": 0.01},
)


def below_per_packet(runs: Runs) -> Judgement:
    """Less wherever both were run."""
    return everywhere(
        versus(runs, CETEN, BACKWARD, bit_error_rate=(MIDDLE, HIGH)),
        LESS,
        "CETEN over Backward, both with Reno",
        largest=True,
    )


def outcome(runs: Runs) -> str:
    """What each strategy gains at the figures' network, without cross traffic."""
    told = []
    for rate in (MIDDLE, HIGH):
        where = {"network": FAST, "cross_traffic": NOBODY, "bit_error_rate": rate}
        gains = [versus(runs, variant, RENO, **where) for variant in (CETEN, LOSS_RATIO, ADAPTIVE)]
        numbers = [number(gain.value) for pairs in gains for _, gain in pairs]
        told.append(f"{', '.join(numbers)} times at {at(rate)}")
    return (
        f"At {FAST.name} a hop and with nobody else on the path, CETEN as published, by loss ratio"
        f" and CETEN-A have the goodput of Reno {'; '.join(told)}."
    )
