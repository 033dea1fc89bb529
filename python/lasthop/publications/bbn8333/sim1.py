"""Simulation 1 (bbn8333 §3.3): one transfer over one lossy hop, without cross traffic."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop import library, units
from lasthop.publications.bbn8333.cases import (
    BACKWARD,
    DIRECTIONS,
    ERRORS,
    HIGH,
    LFN,
    LTN,
    MODERN,
    NONE,
    NOTIFIED,
    ORACLE,
    PERIOD,
    SACK,
    SFN,
    SIMULATED,
    at,
    network_name,
    senders,
)
from lasthop.publications.bbn8333.comparisons import versus
from lasthop.publications.bbn8333.factors import FACTORS
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.bbn8333.simulation import simulation
from lasthop.publications.bbn8333.statements import TESTS
from lasthop.publications.study.published import Section, Test
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.verdict import Check, Judgement, Kind, Published, Verdict, every
from lasthop.publications.study.words import number
from lasthop.stats import Estimate

PUBLISHED = senders((NONE, *SIMULATED))
#: Notified of every corrupted packet in ways that the report only describes.
BEYOND = senders(eten for eten in NOTIFIED if eten not in SIMULATED)
SENDERS = (*PUBLISHED, *BEYOND)
PANELS = {ERRORS[errors].capitalize(): {"errors": errors} for errors in reversed(DIRECTIONS)}


def blocks(networks: tuple[Case, ...], hops: int = 1) -> list[Block]:
    """The senders that the report simulated, and others."""
    block = Block(PUBLISHED, networks, hops=hops, directions=DIRECTIONS)
    return [block, *([block.but_beyond(BEYOND)] if BEYOND else [])]


def _table_2(_: Runs) -> Judgement:
    """Repeats the report's own arithmetic, in which nothing is random."""
    printed = library.published("bbn8333")["sim1"]["table-2"]
    checks, summary = [], []
    for row in printed["rows"]:
        shares = []
        for bit_error_rate, text in zip(printed["bit_error_rates"], row["errors"], strict=True):
            expected = row["rate_bps"] * printed["duration_s"] * bit_error_rate
            shares.append(float(text) / expected)
            decimals = len(text.partition(".")[2])
            of = Published(float(text), Kind.PRINTED, 10.0**-decimals)
            checks.append(Check(Estimate(expected, expected, expected, 1), of.band, exact=True))
        least, most_of = min(shares), max(shares)
        if not all(check.verdict is Verdict.HOLDS for check in checks[-len(shares) :]):
            summary.append(
                f"The row of {units.line_rate(row['rate_bps'])} has {number(least)} to"
                f" {number(most_of)} of what its own formula gives, about one in"
                f" {1 / most_of:.0f}: the errors of {printed['duration_s'] * most_of:.0f} s."
            )
    return every(checks).judged(
        " ".join([f"Rate times time times bit error rate, {len(checks)} values.", *summary])
    )


#: Those of one hop, and the report's arithmetic.
_TESTS: Mapping[str, Test] = {**TESTS, "table-2": _table_2}


def _outcome(runs: Runs) -> str:
    where = {**LFN, "bit_error_rate": HIGH, "errors": "both"}
    ((_, backward),) = versus(runs, BACKWARD, SACK, **where)
    ((_, oracle),) = versus(runs, ORACLE, SACK, **where)
    stated = Section.of("bbn8333", "sim1")
    return (
        f"At {network_name(LFN)} and a bit error rate of {at(HIGH)}, SACK with notices as packets"
        f" (Backward)"
        f" has {number(backward.value)} times the goodput of plain SACK (published:"
        f" {stated.value('lfn-sack-backward').words}), and with an oracle"
        f" {number(oracle.value)} times"
        f" (published: {stated.value('lfn-sack-oracle').words})."
    )


STUDY = simulation(
    id="sim1",
    asks="A bulk transfer crosses one link that corrupts packets. Plain TCP takes every loss for"
    " congestion and slows down. With explicit transport error notification (ETEN) the sender"
    " learns which packet was corrupted, sends it again and keeps its window.",
    senders=SENDERS,
    blocks=blocks,
    drawn={4: (LFN,), 5: (SFN,), 6: (LTN,)},
    panels=PANELS,
    shown=SENDERS,
    tests=_TESTS,
    tried=FACTORS,
    outcome=_outcome,
    profiles=(PERIOD, MODERN),
)
