"""Several connections of a host that moves (koutsianas2007 §4.3, figures 4.7 to 4.9)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from lasthop import pictures
from lasthop.publications.koutsianas2007 import schemes, targets
from lasthop.publications.koutsianas2007.schemes import RLCI, STANDARD
from lasthop.publications.koutsianas2007.targets import (
    EQUAL,
    FASTER,
    SLOWER,
    TARGETS,
    Target,
    deviation,
    less,
    more,
    pooled,
)
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.verdict import Check, Judgement, above, below, every, most, some
from lasthop.publications.study.words import percent, phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONNECTIONS = (1, 2, 5, 10)
#: The short ones close together: standard TCP wakes at times of its own.
DISCONNECTIONS = (*(float(s) for s in range(1, 14)), 15.0, 18.0, 20.0, 22.0, 25.0, 28.0, 30.0)
#: The report has ten.
SEEDS, QUICK_SEEDS = 20, 1
_COLOURS = (pictures.BLACK, pictures.BLUE, pictures.GREEN, pictures.ORANGE)

gain = schemes.against_standard("net_duration_s")


def cells() -> list[Cell]:
    """Every target, number and length, with and without."""
    return [
        targets.cell(scheme, target, connections, length, SEEDS, QUICK_SEEDS)
        for target in TARGETS
        for connections in CONNECTIONS
        for length in DISCONNECTIONS
        for scheme in (STANDARD, RLCI)
    ]


# --- Pictures --------------------------------------------------------------------------------


def _draw(runs: Runs, target: Target) -> Figure:
    with pictures.figure(11, 4.2) as figure:
        axes = figure.subplots(1, 4, sharey=True)
        for ax, connections, colour in zip(axes, CONNECTIONS, _COLOURS, strict=True):
            cases = runs.cases(scheme=RLCI, target=target.name, connections=connections)
            points = [
                (case["disconnection_s"], middle.value, spread.value if spread else 0.0)
                for case in cases
                for middle, spread in [(gain(runs, case), deviation(runs, case))]
                if middle
            ]
            ax.errorbar(
                [length for length, _, _ in points],
                [middle for _, middle, _ in points],
                yerr=[spread for _, _, spread in points],
                color=colour,
                marker="o",
                markersize=4,
                capsize=2,
                elinewidth=0.8,
            )
            ax.axhline(0, color=pictures.GREY, linewidth=0.9)
            ax.set_title(f"n = {connections}")
            ax.set_xlabel("disconnection, s")
        axes[0].set_ylabel("standard less RLCI, s")
    return figure


def _drawn(target: Target) -> Drawn:
    caption = (
        f"Figure {target.figure}: to {target.name} and {1e3 * target.delay_s:g} ms. What a"
        " connection gains, by the number of connections; bars are standard deviations."
    )
    return Drawn(caption, lambda runs: _draw(runs, target), bars=False)


# --- What the report says ---------------------------------------------------------------------


def _by_number(runs: Runs, target: Target) -> list[Estimate]:
    return [
        pooled(runs, RLCI, "net_duration_s", target=target.name, connections=n) for n in CONNECTIONS
    ]


def _shrinks(runs: Runs) -> Judgement:
    shown, checks = [], []
    for target in TARGETS:
        gains = [
            targets.by_run(runs, RLCI, "net_duration_s", target=target.name, connections=n)
            for n in CONNECTIONS
        ]
        checks += [Check(less(a, b), above(0.0)) for a, b in itertools.pairwise(gains)]
        means = ", ".join(
            f"{phrase(value)} s (n = {n})"
            for n, value in zip(CONNECTIONS, _by_number(runs, target), strict=True)
        )
        shown.append(f"to {target.name} {means}")
    return every(checks).judged(
        f"Mean over all lengths: {'; '.join(shown)}. It is to fall at every step.",
        _by_number(runs, EQUAL)[-1],
        Case(target=EQUAL.name, connections=CONNECTIONS[-1]),
        "s",
    )


def _negative(runs: Runs) -> Judgement:
    known = [
        (case, value)
        for case in runs.cases(scheme=RLCI, connections=CONNECTIONS[-1])
        for value in [gain(runs, case)]
        if value is not None
    ]
    case, least = min(known, key=lambda pair: pair[1].value)
    losers = ", ".join(f"{percent(_losers(runs, n))} of those with n = {n}" for n in CONNECTIONS)
    return some([Check(value, below(0.0)) for _, value in known]).judged(
        f"With n = {CONNECTIONS[-1]} the worst is {phrase(least)} s to {case['target']} after"
        f" {case['disconnection_s']:g} s. Of single connections beside their like, RLCI slows"
        f" {losers}.",
        least,
        case,
        "s",
    )


def _losers(runs: Runs, connections: int) -> float:
    """The share of connections that take longer with RLCI."""
    gains = [
        value
        for case in runs.cases(scheme=RLCI, connections=connections)
        for run in targets.gains(runs, case)
        for value in run
    ]
    return sum(value < 0 for value in gains) / len(gains)


def _faster(runs: Runs) -> Judgement:
    gains = [targets.by_run(runs, RLCI, "net_duration_s", target=of.name) for of in TARGETS]
    means = [pooled(runs, RLCI, "net_duration_s", target=target.name) for target in TARGETS]
    *others, faster = gains
    shown = ", ".join(
        f"{phrase(value)} s to {target.name}" for target, value in zip(TARGETS, means, strict=True)
    )
    return every([Check(less(faster, other), above(0.0)) for other in others]).judged(
        f"Mean over all numbers and lengths: {shown}.",
        means[-1],
        Case(target=FASTER.name),
        "s",
    )


def _spread(runs: Runs) -> Judgement:
    found = [
        (case, value, gain(runs, case))
        for case in runs.cases(scheme=RLCI)
        if case["connections"] > 1
        for value in [deviation(runs, case)]
        if value is not None
    ]
    case, most_of, middle = max(found, key=lambda found: found[1].value)
    return most(
        [Check(value, above(abs(middle.value))) for _, value, middle in found if middle]
    ).judged(
        "With several connections the standard deviation is to exceed the mean; the largest is"
        f" {phrase(most_of)} s ({case['target']}, n = {case['connections']},"
        f" {case['disconnection_s']:g} s), where the mean is {phrase(middle)} s.",
        most_of,
        case,
        "s",
    )


def _overshoot(runs: Runs) -> Judgement:
    n = CONNECTIONS[-1]
    drops = {
        target: more(runs, RLCI, "dropped_packets", target=target.name, connections=n)
        for target in TARGETS
    }
    shown = ", ".join(f"{phrase(value)} to {target.name}" for target, value in drops.items())
    return every([Check(value, above(0.0)) for value in drops.values()]).judged(
        f"Packets dropped with RLCI beyond those with standard TCP, a run, n = {n}: {shown}.",
        drops[EQUAL],
        Case(target=EQUAL.name, connections=n),
    )


def outcome(runs: Runs) -> str:
    """In a sentence."""
    shown = ", ".join(
        f"{_by_number(runs, target)[0].value:.1f} s to {target.name}" for target in TARGETS
    )
    last = ", ".join(f"{_by_number(runs, target)[-1].value:.1f} s" for target in TARGETS)
    return f"One connection gains {shown} on average; each of ten gains {last}."


STUDY = Study(
    publication=schemes.PUBLICATION,
    experiment="fig4.7",
    title="Several connections of a host that moves",
    also=("fig4.8", "fig4.9"),
    asks="A phone with one to ten transfers under way moves to a slower, an equal or a faster"
    " access point. What does each gain from the indication?",
    where="§4.3, figures 4.7 to 4.9",
    method=(
        "n transfers from the phone to as many servers, over 6 Mb/s and 1 ms at first; then over"
        " 1 Mb/s and 100 ms, 6 Mb/s and 1 ms, or 20 Mb/s and 1 ms. 1 Gb/s and 40 ms to the router,"
        " 1 Gb/s and 0 to 50 ms to each server. Queues are of 100 ms, the slow one's of 200 ms.",
        "Starts in the first second, detachment after 4 to 6 s, both uniform; the amount of data by"
        " the report's formula: what the first access point carries until the detachment and the"
        " second one in 20 s, divided by n. All draws are the same for both schemes and for all"
        " lengths of the disconnection.",
        "Unpublished is the receive window: 500 segments, more than the fastest path and its queue"
        " hold.",
        "The net durations of a run's connections are sorted, and standard TCP's stand beside"
        " RLCI's: a gain is the difference. The deviation is that of all connections of all runs.",
    ),
    cells=cells,
    collect=targets.collect,
    measures=(
        mean("net_duration_s", "s", "net duration, s"),
        Measure("gain_s", "s", "standard less RLCI, s", gain),
        Measure("deviation_s", "s", "its deviation, s", deviation),
        mean("worst_s", "s", "slowest connection, s"),
        mean("dropped_packets", "1", "packets dropped"),
        mean("timeouts", "1", "timeouts"),
    ),
    figures=[_drawn(target) for target in (SLOWER, EQUAL, FASTER)],
    tests={
        "gain-shrinks": _shrinks,
        "worse-in-the-extreme": _negative,
        "faster-target": _faster,
        "high-deviation": _spread,
        "overshoot": _overshoot,
    },
    outcome=outcome,
    keys={
        "scheme": "scheme",
        "target": "to",
        "connections": "n",
        "disconnection_s": "disconnection, s",
    },
)
