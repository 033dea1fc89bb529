"""A simulation of the report as a study.

A simulation's own file lists its senders, blocks, statements and factors; the rest is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lasthop import library, units
from lasthop.publications.bbn8333 import figures
from lasthop.publications.bbn8333.cases import (
    ERRORS,
    GOODPUT,
    MODERN,
    NAMES,
    PERIOD,
    collect,
    gain_measure,
    kind,
    network,
    network_name,
    networks,
)
from lasthop.publications.bbn8333.comparisons import worse
from lasthop.publications.bbn8333.factors import Factor
from lasthop.publications.bbn8333.grid import Block
from lasthop.publications.study.factors import Factors
from lasthop.publications.study.published import Section, Test
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Listed, Study, mean
from lasthop.publications.study.words import MARKED, NOTHING, SMALL, percent

PUBLICATION = "bbn8333"

#: All networks of the report's table 1.
NETWORKS = tuple(
    network(rate, delay) for rate in (1.5e6, 10e6, 100e6) for delay in (0.01, 0.1, 0.32)
)
#: What is run over some networks.
Blocks = Callable[[tuple[Case, ...]], Sequence[Block]]

_METHOD = (
    f"A transfer without end for 120 s, MSS 536 bytes, receive window 20 segments, drop-tail queues"
    f" of 50 packets, profile {PERIOD}. Goodput counts each byte that the receiver delivers once,"
    " with 40 bytes of headers for every 536, as the report counts.",
    "The report made one run a point: each of its numbers is held against the range of 95 % of"
    " single pairs of our runs, which are taken to be log-normal.",
    f"Small, close, about, alike and slightly mean less than {percent(SMALL)}, no help less than"
    f" {percent(NOTHING)}, markedly at least {percent(MARKED)}.",
    "No setting was chosen to meet a number.",
)
_TODAY = (
    "The report's stack (solid) and today's (dotted), errors in both directions. Today's has the"
    f" defaults of today's RFCs (profile {MODERN}): an initial window of 10 segments, limited"
    " transmit, delayed ACKs, the retransmission timer of RFC 6298 with a fine clock, notices of"
    " the size of an ICMP message. Segment size and receive window stay as in the report."
)


def cells(blocks: Blocks, shown: tuple[Case, ...], profiles: Sequence[str]) -> list[Cell]:
    """The networks of the figures, then those of the appendix."""
    found = [
        cell
        for profile in profiles
        for block in blocks(shown)
        if profile == PERIOD or not block.beyond
        for cell in block.with_profile(profile).drawn()
    ]
    for rate in sorted({of["rate_bps"] for of in NETWORKS}):
        others = tuple(of for of in NETWORKS if of["rate_bps"] == rate and of not in shown)
        found += [cell for block in blocks(others) for cell in block.cells(block.seeds)]
    return found


def simulation(
    *,
    id: str,
    asks: str,
    senders: tuple[Case, ...],
    blocks: Blocks,
    drawn: Mapping[int | None, tuple[Case, ...]],
    panels: Mapping[str, Mapping[str, Any]],
    shown: tuple[Case, ...],
    tests: Mapping[str, Test],
    tried: Sequence[Factor],
    outcome: Callable[[Runs], str],
    pairs: Sequence[Factor] = (),
    profiles: Sequence[str] = (PERIOD,),
) -> Study:
    """One of the report's simulations.

    Args:
        id: Its section in published.toml, from sim1 on.
        asks: What it is about.
        senders: All of them, in the appendix's panels.
        blocks: What is run over some networks.
        drawn: Networks of the report's figures, by number; None: only its appendix has them.
        panels: The panels of a figure: a title, and what is shown under it.
        shown: The senders of the figures.
        tests: Of the statements, by id.
        tried: Factors, one at a time.
        outcome: What came of it, in a sentence.
        pairs: Two factors at once.
        profiles: The first is the report's; others are run over the networks of the figures.
    """
    stated = library.published(PUBLICATION)[id]
    letter = chr(ord("A") + int(id.removeprefix("sim")) - 1)
    over = tuple(of for networks_of in drawn.values() for of in networks_of)
    hop = " a hop" if blocks(over)[0].hops > 1 else ""
    beside: Mapping[str, Any] = {"profile": PERIOD}
    look = ""
    if len({of["recovery"] for of in shown}) > 1:
        look += " Solid, filled: SACK; dashed, hollow: Reno."
    if Section.of(PUBLICATION, id).numbers:
        look += " A star: where a published ratio puts the goodput, given ours without ETEN."

    def figure(number: int | None, of: Case) -> Drawn:
        name = f"Figure {number}" if number else f"Appendix {letter}"
        of_kind = f", a {kind(of)}" if kind(of) != "network" else ""
        return Drawn(
            f"{name}: {network_name(of)}{hop}{of_kind}.{look}",
            lambda runs: figures.panels(study, runs, of, shown, panels),
        )

    def appendix(title: str, query: Mapping[str, Any]) -> Drawn:
        def draw(runs: Runs) -> Any:
            more = len(networks(runs)) > len(over)
            return figures.all_networks(runs, senders, {**beside, **query}) if more else None

        return Drawn(f"Appendix {letter}: {title}. Rates down, delays across.", draw, folded=True)

    every = [figure(number, of) for number, several in drawn.items() for of in several]
    every.append(
        Drawn(
            "Each published ratio and what one factor makes of it. Orange line: published. Blue: as"
            " reproduced, with the range of single pairs of runs shaded. Black points differ"
            " clearly from it (the intervals are apart), grey ones do not.",
            lambda runs: figures.factors(study, runs),
        )
    )
    if MODERN in profiles:
        every.append(Drawn(_TODAY, lambda runs: figures.then_and_now(runs, over)))
    every += [appendix(title, query) for title, query in panels.items()]
    study = Study(
        publication=PUBLICATION,
        experiment=id,
        title=stated["title"],
        asks=asks,
        where=_where(stated["where"], [number for number in drawn if number], letter),
        method=[*stated["method"], stated["figure"], *_METHOD],
        cells=lambda: cells(blocks, over, profiles),
        collect=collect,
        measures=(
            mean(GOODPUT, "bit/s", "goodput, kb/s", 1e3),
            gain_measure(GOODPUT, "with / without"),
            mean("timeouts", "1", "timeouts"),
            mean("reductions", "1", "reductions"),
        ),
        figures=every,
        lists=[
            Listed(
                "Where ETEN lowers goodput",
                "Cells in which a sender with ETEN has less goodput than the same sender without,"
                " at 95 % confidence for all cells together.",
                ("sender", "cell", "less goodput by", "what differs"),
                lambda runs: worse(study.judged(runs)),
            )
        ],
        keys={
            "profile": "profile",
            "rate_bps": "rate",
            "one_way_delay_s": "delay",
            "competitors": "flows beside",
            "bit_error_rate": "bit errors",
            "errors": "errors",
            "recovery": "recovery",
            "window": "window",
            "eten": "ETEN",
        },
        words={
            "rate_bps": units.line_rate,
            "one_way_delay_s": units.duration,
            "bit_error_rate": units.scientific,
            "errors": lambda of: ERRORS[of].removeprefix("errors "),
            "recovery": lambda of: NAMES[of],
            "window": lambda of: NAMES[of],
            "eten": lambda of: NAMES[of],
        },
        tests=tests,
        about=beside,
        factors=Factors(
            tried,
            lambda factor: [
                cell
                for block in blocks(over)
                if not block.beyond
                for cell in block.cells(block.seeds, factor=factor)
            ],
            ", ".join(map(network_name, over)),
            pairs,
        ),
        outcome=outcome,
    )
    return study


def _where(section: str, numbers: Sequence[int], letter: str) -> str:
    """As in "§3.3, figures 4 to 6, appendix A"."""
    last = f" to {numbers[-1]}" if len(numbers) > 1 else ""
    figures_of = f"figure{'s' if last else ''} {numbers[0]}{last}, " if numbers else ""
    return f"{section}, {figures_of}appendix {letter}"
