"""The gain over the number of competitors (ishac2001 §4, figures 9 and 10)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.ishac2001 import fig5, network
from lasthop.publications.ishac2001.network import (
    RECEIVER,
    REGULAR,
    SENDER,
    SIZES,
    SPOOFED,
    VANTAGES,
    Ratio,
    estimate,
    group_times,
    over,
    percent,
)
from lasthop.publications.study.factors import Factor, Factors
from lasthop.publications.study.published import Section
from lasthop.publications.study.runs import Case, Cell, Runs, apart
from lasthop.publications.study.study import Drawn, Measure, Study
from lasthop.publications.study.verdict import (
    Check,
    Judgement,
    above,
    below,
    every,
    most,
    some,
)
from lasthop.publications.study.words import NEGLIGIBLE, SMALL, phrase
from lasthop.publications.study.words import percent as share
from lasthop.stats import Estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

#: "From one to 200"; the numbers in between are ours, but for the 50 of the other figures.
LEVELS = (1, 10, 25, 50, 100, 200)
#: From 15 packets on, as the publication has it.
FROM_15 = tuple(size for size in SIZES if size >= 15)
#: Groups of sizes, over which runs are averaged to see an effect of the load.
GROUPS: Mapping[str, Sequence[int]] = {
    "15 to 100": tuple(size for size in SIZES if 15 <= size <= 100),
    "110 to 500": tuple(size for size in SIZES if 110 <= size <= 500),
    "600 to 2000": tuple(size for size in SIZES if size >= 600),
}
#: "Modest": less than this for the small transfers that are most of all.
MODEST = 1.5


#: The case of competitors alone, and how long they are. One competitor makes few transfers.
ALONE, _ALONE_S = 0, 300
_ALONE_SEEDS = {1: 200}


def _alone(competitors: int) -> Cell:
    """Competitors that are over before the transfer, of one packet, begins."""
    cell = network.cell(1, REGULAR, RECEIVER, competitors=competitors)
    return replace(
        cell,
        case=cell.case.but(packets=ALONE),
        settings={**cell.settings, "flows.0.start": f"{_ALONE_S} s"},
        seeds=_ALONE_SEEDS.get(competitors, network.SEEDS),
    )


def cells() -> list[Cell]:
    """Every size with and without the spoofer, at every load; and the load alone."""
    return [
        *(
            network.cell(
                packets,
                arm,
                vantage,
                competitors=competitors,
                quick=packets in network.QUICK_SIZES and competitors in (1, 50, 200),
            )
            for competitors in LEVELS
            for arm in (REGULAR, SPOOFED)
            for vantage in VANTAGES
            for packets in SIZES
        ),
        *(_alone(competitors) for competitors in LEVELS),
    ]


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """As in figure 5; and the segments that competitors sent, and those that were dropped."""
    found: dict[str, list[float | None]] = {"sent": [], "lost": []}
    for run in apart(rows):
        others = run.filter(run["flow"] != "main")
        found["sent"].append(float(others["segments"].sum()))
        found["lost"].append(float(others["data_dropped"].sum()))
    return {**network.collect(rows), **found}


def drop_rate(runs: Runs, case: Case) -> Estimate | None:
    """Of the competitors alone: all runs together."""
    if case["packets"] != ALONE:
        return None
    return estimate(Ratio.of(runs.found[case]["lost"], runs.found[case]["sent"]))


# --- Factors ---------------------------------------------------------------------------------

SIZED = (1, 5, 10, 15, 20, 50, 100, 200, 400, 700, 1000)
FACTORS = (
    fig5.ACKS,
    Factor(
        "initial-window",
        "an initial window of 2 segments",
        "RFC 2581 allows it; ns-2 starts with 1.",
    ),
    Factor("rto", "a shortest timeout of 1 s", "RFC 2988 asks for it; ns-2 has 0.2 s."),
    Factor(
        "window",
        "a receive window of 20 segments",
        "ns-2's default; but then no transfer overruns the satellite link.",
    ),
)


def varied(factor: Factor) -> list[Cell]:
    """Some of the sizes and loads with one factor changed."""
    tcps: Mapping[str, Mapping[str, Any]] = {
        "acks": {"delayed_ack": "off"},
        "initial-window": {"initial_window": 2},
        "window": {"receive_window": "20 segments"},
        "rto": {"rto": {"minimum": "1 s"}},
    }
    return [
        network.cell(packets, arm, vantage, competitors=competitors, tcp=tcps[factor.id])
        for competitors in (1, 50, 200)
        for arm in (REGULAR, SPOOFED)
        for vantage in VANTAGES
        for packets in SIZED
    ]


# --- Figures ---------------------------------------------------------------------------------


def _figure(runs: Runs, vantage: str) -> Figure:
    colours = (
        *(pictures.GREY, pictures.SKY, pictures.BLUE, pictures.GREEN, pictures.ORANGE),
        pictures.BLACK,
    )
    with pictures.figure(11, 4) as drawn:
        axes = drawn.subplots(1, 2)
        for ax, largest in zip(axes, (max(SIZES), 40), strict=True):
            sizes = tuple(size for size in SIZES if size <= largest)
            for competitors, colour in zip(LEVELS, colours, strict=True):
                fig5.curve(
                    ax,
                    runs,
                    network.gain,
                    (f"{competitors}", colour, "-"),
                    spoofer=SPOOFED,
                    vantage=vantage,
                    competitors=competitors,
                    packets=sizes,
                )
            ax.axhline(0, color=pictures.GREY, linewidth=0.9)
            ax.set_xlabel("packets")
        axes[0].set_xscale("log")
        axes[0].set_ylabel("gain, %")
        axes[0].legend(title="competitors")
        if vantage == SENDER:
            for ax in axes:
                ax.axhline(150, color=pictures.GREY, linewidth=0.9, linestyle=":")
    return drawn


def receivers(runs: Runs) -> Figure:
    """Figure 9."""
    return _figure(runs, RECEIVER)


def senders(runs: Runs) -> Figure:
    """Figure 10."""
    return _figure(runs, SENDER)


# --- What the report says ---------------------------------------------------------------------


def _levels(runs: Runs) -> list[int]:
    return sorted({case["competitors"] for case in runs if case["packets"] != ALONE})


def _drop_rate(runs: Runs, competitors: int) -> Judgement:
    of = Section.of(network.PUBLICATION, "fig9").value(f"drop-rate-{competitors}")
    cases = runs.cases(competitors=competitors, packets=ALONE)
    measured = drop_rate(runs, cases[0]) if cases else None
    return every([Check(measured, of.band)]).judged(
        "The share of the competitors' segments that are dropped, without the transfer, in"
        f" {_ALONE_S} s, %: {_share(measured)}; published about {100 * of.value:g}.",
        measured,
        cases[0] if cases else None,
    )


def _share(of: Estimate | None) -> str:
    if of is None:
        return "nothing"
    return f"{100 * of.value:.2g} [{100 * of.lo:.2g}, {100 * of.hi:.2g}]"


def _by_level(runs: Runs, vantage: str, sizes: Sequence[int]) -> dict[int, Ratio | None]:
    return {level: group_times(runs, vantage, sizes, competitors=level) for level in _levels(runs)}


def _listed(found: Mapping[int, Ratio | None]) -> str:
    return ", ".join(
        f"{level}: {of.value:.0f}"
        for level, gain in found.items()
        for of in (percent(estimate(gain)),)
        if of is not None
    )


def _grows(runs: Runs) -> Judgement:
    parts, said, last = [], [], None
    for name, sizes in GROUPS.items():
        found = _by_level(runs, RECEIVER, sizes)
        levels = list(found)
        last = over(found[levels[-1]], found[levels[0]])
        parts.append(Check(last, above(1 + SMALL)))
        said.append(f"{name} packets: {_listed(found)}")
    return every(parts).judged(
        f"The receiver's gain in % by the number of competitors, {'; '.join(said)}. With the most"
        f" the throughput ratio is to be {share(SMALL)} above that with the fewest, in each group.",
        last,
    )


def _modest(runs: Runs) -> Judgement:
    cases = [
        case
        for case in runs.cases(vantage=RECEIVER, spoofer=SPOOFED)
        if case["packets"] in fig5.FEW
    ]
    ratios = [estimate(network.times(runs, case)) for case in cases]
    found = {
        level: group_times(runs, RECEIVER, fig5.FEW, competitors=level) for level in _levels(runs)
    }
    known = [(of, case) for of, case in zip(ratios, cases, strict=True) if of is not None]
    largest = max(known, key=lambda one: one[0].value, default=(None, None))
    return every([Check(estimate(ratio), below(MODEST)) for ratio in found.values()]).judged(
        "The receiver's gain of transfers of 1 to 10 packets together, %, by competitors:"
        f" {_listed(found)}; a modest one is taken as less than {100 * (MODEST - 1):.0f} %.",
        percent(largest[0]),
        largest[1],
        "%",
    )


def _sender_150(runs: Runs) -> Judgement:
    of = Section.of(network.PUBLICATION, "fig9").value("sender-150")
    cases = [
        case for case in runs.cases(vantage=SENDER, spoofer=SPOOFED) if case["packets"] in FROM_15
    ]
    found = [(gain, case) for case in cases for gain in (network.gain(runs, case),) if gain]
    least = min(found, key=lambda one: one[0].value, default=(None, None))
    below_it = {
        level: sum(g.value < of.value for g, case in found if case["competitors"] == level)
        for level in _levels(runs)
    }
    counts = ", ".join(f"{level}: {count}" for level, count in below_it.items())
    together = _listed(_by_level(runs, SENDER, GROUPS["15 to 100"]))
    return every([Check(gain, of.band) for gain, _ in found]).judged(
        f"Transfers of 15 to 100 packets together gain, %, by competitors: {together}. The least"
        f" gain is {phrase(least[0])} %. Of the sizes, so many have a mean gain below {of.value:g}"
        f" %, by competitors: {counts}.",
        least[0],
        least[1],
        "%",
    )


def _no_pattern(runs: Runs) -> Judgement:
    """Neither does the gain grow with every group of sizes, nor does it shrink."""
    parts, said = [], []
    last = None
    for name, sizes in GROUPS.items():
        found = _by_level(runs, SENDER, sizes)
        levels = list(found)
        steps = [over(found[b], found[a]) for a, b in itertools.pairwise(levels)]
        last = over(found[levels[-1]], found[levels[0]])
        parts.append(
            every(
                [
                    some([Check(step, above(1 + NEGLIGIBLE)) for step in steps]),
                    some([Check(step, below(1 - NEGLIGIBLE)) for step in steps]),
                ]
            )
        )
        said.append(f"{name} packets: {_listed(found)}")
    return most(parts).judged(
        f"The sender's gain in % by the number of competitors, {'; '.join(said)}. Without a pattern"
        " means here that in most groups it both grows and shrinks from one number to the next.",
        last,
    )


def _outcome(runs: Runs) -> str:
    found = _by_level(runs, RECEIVER, GROUPS["110 to 500"])
    small = {
        level: group_times(runs, RECEIVER, fig5.FEW, competitors=level) for level in _levels(runs)
    }
    return (
        "The receiver's gain of 110 to 500 packets in %, by the number of competitors:"
        f" {_listed(found)}; of 1 to 10 packets: {_listed(small)}."
    )


STUDY = Study(
    publication=network.PUBLICATION,
    experiment="fig9",
    title="Spoofing a satellite link, by the load of the Internet",
    also=("fig10",),
    asks="How does the gain of TCP spoofing, as receivers (figure 9) and senders (figure 10) see"
    " it, depend on the congestion before the satellite link?",
    where="§4, figures 9 and 10",
    method=(
        *network.METHOD,
        f"{', '.join(map(str, LEVELS))} competitors. The publication names 1, 50 and 200.",
    ),
    cells=cells,
    collect=collect,
    measures=(
        *network.MEASURES,
        Measure("drop_rate", "1", "competitors' drop rate, %", drop_rate, 0.01),
    ),
    figures=(
        Drawn("Figure 9: the receiver's gain, and its enlarged part.", receivers),
        Drawn("Figure 10: the sender's gain. Dotted: 150 %.", senders),
    ),
    tests={
        "drop-rate-1": lambda runs: _drop_rate(runs, 1),
        "drop-rate-200": lambda runs: _drop_rate(runs, 200),
        "gain-grows": _grows,
        "small-modest": _modest,
        "sender-150": _sender_150,
        "no-pattern": _no_pattern,
    },
    factors=Factors(FACTORS, varied, "some of the sizes and loads"),
    outcome=_outcome,
    keys=network.KEYS,
)
