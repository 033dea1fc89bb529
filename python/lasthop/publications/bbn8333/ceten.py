"""Senders and tests that simulations 7 and 8 share: cumulative ETEN with Reno."""

from __future__ import annotations

from dataclasses import replace

from lasthop.publications.bbn8333.cases import (
    ALONE,
    HIGH,
    MIDDLE,
    RENO,
    at,
    network,
    network_name,
    sender,
)
from lasthop.publications.bbn8333.comparisons import LESS, everywhere, versus
from lasthop.publications.bbn8333.factors import Factor
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.study.runs import Runs
from lasthop.publications.study.verdict import Judgement
from lasthop.publications.study.words import number

#: Of figures 11 and 12.
FAST = network(100e6, 0.1)

CETEN = sender("reno", "cumulative")
LOSS_RATIO = sender("reno", "cumulative-loss-ratio")
ADAPTIVE = sender("reno", "cumulative-adaptive")
#: The fields at the bytes that they take.
REAL = sender("reno", "cumulative-real")
BACKWARD = sender("reno", "backward")

PUBLISHED = (RENO, CETEN)
BEYOND = (LOSS_RATIO, ADAPTIVE)
SHOWN = (*PUBLISHED, *BEYOND)
SENDERS = (*SHOWN, REAL, BACKWARD)

#: CETEN-A compares averages over many packets: a may be no larger.
_LARGEST = 1 / 64


def apart(block: Block) -> list[Block]:
    """The block in two: CETEN-A gets a path whose nodes average over as long as it needs."""
    others = tuple(of for of in block.senders if of != ADAPTIVE)
    return [replace(block, senders=others), replace(block, senders=(ADAPTIVE,), weight=_LARGEST)]


LONG_MEMORY = Factor(
    "long-memory",
    "estimates over some hundred packets",
    "With a = 0.5 a router's estimate is about the last two packets; with 0.01 it is about the last"
    " hundred, and says what the link does rather than what befell one packet.",
    {"ceten.a": 0.01},
)


def below_per_packet(runs: Runs) -> Judgement:
    """Tests that CETEN has less goodput than Backward wherever both were run."""
    return everywhere(
        versus(runs, CETEN, BACKWARD, bit_error_rate=(MIDDLE, HIGH)),
        LESS,
        "CETEN over Backward, both with Reno",
        largest=True,
    )


def outcome(runs: Runs) -> str:
    """The gain of each strategy at the figures' network, without cross traffic."""
    summary = []
    for rate in (MIDDLE, HIGH):
        where = {**FAST, **ALONE, "bit_error_rate": rate}
        gains = [versus(runs, variant, RENO, **where) for variant in (CETEN, LOSS_RATIO, ADAPTIVE)]
        numbers = [number(gain.value) for pairs in gains for _, gain in pairs]
        summary.append(f"{', '.join(numbers)} times at {at(rate)}")
    return (
        f"At {network_name(FAST)} a hop and without cross traffic, CETEN as published, by"
        f" loss ratio"
        f" and CETEN-A have the goodput of Reno {'; '.join(summary)}."
    )
