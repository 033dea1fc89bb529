"""One probe for all connections of a host that has moved (beyond koutsianas2007)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lasthop.publications.koutsianas2007 import schemes, targets
from lasthop.publications.koutsianas2007.schemes import (
    CORRECTED,
    LINES,
    NAMES,
    RLCI,
    SHARED,
    STANDARD,
)
from lasthop.publications.koutsianas2007.targets import TARGETS, Target, deviation, more, pooled
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.words import phrase
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONNECTIONS = tuple(range(1, 11))
DISCONNECTIONS = (1.0, 3.0, 10.0, 30.0)
SCHEMES = (STANDARD, RLCI, CORRECTED, SHARED)
SEEDS, QUICK_SEEDS = 20, 1

gain = schemes.against_standard("net_duration_s")
worst_gain = schemes.against_standard("worst_s")


def cells() -> list[Cell]:
    """Every scheme for every target, number and length."""
    return [
        targets.cell(scheme, target, connections, length, SEEDS, QUICK_SEEDS)
        for target in TARGETS
        for connections in CONNECTIONS
        for length in DISCONNECTIONS
        for scheme in SCHEMES
    ]


def figure(runs: Runs) -> Figure:
    """What the mean and the slowest connection gain, over their number."""

    def panel(target: Target, metric: str, title: str) -> draw.Panel:
        def of(runs: Runs, case: Case) -> Estimate:
            return pooled(
                runs,
                case["scheme"],
                metric,
                target=target.name,
                connections=case["connections"],
            )

        # One length stands for all: each point is over all of them.
        where = {"target": target.name, "disconnection_s": DISCONNECTIONS[0]}
        lines = [LINES[scheme] for scheme in (RLCI, CORRECTED, SHARED)]
        words = "standard less this, s"
        return draw.Panel(f"To {target.name}: {title}", where, of, words, signed=True, lines=lines)

    rows = [
        [panel(target, "net_duration_s", "mean") for target in TARGETS],
        [panel(target, "worst_s", "the slowest") for target in TARGETS],
    ]
    return draw.panels(runs, rows, "connections", "connections", {n: str(n) for n in CONNECTIONS})


def drops(runs: Runs) -> Figure:
    """Packets dropped, over the number of connections."""

    def panel(target: Target) -> draw.Panel:
        return draw.Panel(
            f"To {target.name}",
            {"target": target.name, "disconnection_s": 10.0},
            lambda runs, case: runs.mean(case, "dropped_packets"),
            "packets dropped",
            lines=[LINES[scheme] for scheme in SCHEMES],
        )

    rows = [[panel(target) for target in TARGETS]]
    return draw.panels(runs, rows, "connections", "connections", {n: str(n) for n in CONNECTIONS})


# --- What comes of it -------------------------------------------------------------------------


def _slower(runs: Runs, scheme: str) -> list[tuple[Case, Estimate]]:
    """The cells in which a scheme is clearly slower than standard TCP on average."""
    found = []
    for case in runs.cases(scheme=scheme):
        value = gain(runs, case)
        # A single run has an interval of no width: it decides nothing.
        if value is not None and value.n > 1 and value.hi < 0:
            found.append((case, value))
    return found


def _cause(runs: Runs, case: Case) -> str:
    """What a cell has more of than standard TCP."""
    plain = case.but(scheme=STANDARD)
    summary = []
    for metric, words in (("dropped_packets", "packets dropped"), ("timeouts", "timeouts")):
        own, other = (runs.mean(of, metric) for of in (case, plain))
        if own is not None and other is not None:
            summary.append(f"{own.value:.0f} {words} against {other.value:.0f}")
    return ", ".join(summary)


def _still_slower(runs: Runs) -> Answer:
    of = len(runs.cases(scheme=SHARED))
    counts = {scheme: len(_slower(runs, scheme)) for scheme in (RLCI, CORRECTED, SHARED)}
    left = sorted(_slower(runs, SHARED), key=lambda pair: pair[1].value)
    shown = "; ".join(
        f"to {case['target']}, n = {case['connections']}, {case['disconnection_s']:g} s:"
        f" {phrase(value)} s ({_cause(runs, case)})"
        for case, value in left
    )
    return Answer(
        "Where is a host with RLCI still slower than with standard TCP?",
        "§6.1",
        None,
        "Clearly slower on average: "
        + ", ".join(f"{NAMES[scheme]} in {count} of {of} cells" for scheme, count in counts.items())
        + (f". With one probe: {shown}." if left else "."),
        left[0][0] if left else Case(scheme=SHARED),
        left[0][1] if left else None,
        "s",
    )


def _many(runs: Runs, target: Target) -> Answer:
    n = CONNECTIONS[-1]
    where: dict[str, Any] = {"target": target.name, "connections": n}
    beside = pooled(runs, SHARED, "net_duration_s", RLCI, **where)
    shown = "; ".join(
        f"{NAMES[scheme]} {phrase(pooled(runs, scheme, 'net_duration_s', **where))} s, the slowest"
        f" {phrase(pooled(runs, scheme, 'worst_s', **where))} s,"
        f" {phrase(more(runs, scheme, 'dropped_packets', **where))} packets more dropped"
        for scheme in (RLCI, CORRECTED, SHARED)
    )
    return Answer(
        f"What do {n} connections gain that move to {target.name}?",
        "§6.1",
        None,
        f"Net durations, standard TCP less the others, over all lengths: {shown}. RLCI as published"
        f" less one probe: {phrase(beside)} s.",
        Case(scheme=SHARED, **where),
        pooled(runs, SHARED, "net_duration_s", **where),
        "s",
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What one probe changes, and where it is not enough."""
    return [*(_many(runs, target) for target in TARGETS), _still_slower(runs)]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    n = CONNECTIONS[-1]
    parts = []
    for target in TARGETS:
        rlci, shared = (
            pooled(runs, scheme, "net_duration_s", target=target.name, connections=n)
            for scheme in (RLCI, SHARED)
        )
        parts.append(f"{shared.value:.1f} s to {target.name} (as published {rlci.value:.1f} s)")
    return f"With one probe each of {n} connections gains {', '.join(parts)} on standard TCP."


STUDY = Study(
    publication=schemes.PUBLICATION,
    experiment="shared-probe",
    title="One probe for all connections of a host",
    asks="Connections of one host that are all notified of a new path start at once and overshoot"
    " its capacity. What if one of them probes it for all?",
    where="§4.3 and §6.1, beyond",
    method=(
        "The network, the draws and the data of figures 4.7 to 4.9, with every number of"
        " connections from 1 to 10.",
        "One probe: until the first round trip is measured after the change, the host sends at most"
        " one initial window in all, from the connection that has been stalled longest; the others"
        " start one after the other within that time. The first loss or the first clear rise of the"
        " delay on any of them ends slow start on all.",
        "Drops are those of all queues and those of the disconnection.",
    ),
    cells=cells,
    collect=targets.collect,
    measures=(
        mean("net_duration_s", "s", "net duration, s"),
        Measure("gain_s", "s", "standard less this, s", gain),
        Measure("deviation_s", "s", "its deviation, s", deviation),
        mean("worst_s", "s", "slowest connection, s"),
        Measure("worst_gain_s", "s", "standard less this, slowest, s", worst_gain),
        mean("dropped_packets", "1", "packets dropped"),
        mean("timeouts", "1", "timeouts"),
    ),
    figures=(
        Drawn("What a connection gains on standard TCP, over all lengths.", figure),
        Drawn("Packets dropped in a run with a disconnection of 10 s.", drops),
    ),
    answers=answers,
    outcome=outcome,
    keys={
        "scheme": "scheme",
        "target": "to",
        "connections": "n",
        "disconnection_s": "disconnection, s",
    },
)
