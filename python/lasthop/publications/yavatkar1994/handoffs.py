"""Several handoffs in a row, 5 to 10 s apart (§3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Panel
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Measure, Study
from lasthop.publications.study.words import phrase
from lasthop.publications.yavatkar1994 import path, schemes
from lasthop.publications.yavatkar1994.path import LOSSES, PAUSES_S
from lasthop.publications.yavatkar1994.schemes import (
    CUBIC,
    MTCP,
    MTCP_CAPPED,
    RLCI,
    TCP,
    TCP_CAPPED,
)
from lasthop.stats import Estimate, mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: From the end of a pause to the start of the next, seconds.
SPACINGS_S = (5.0, 7.5, 10.0)
SCHEMES: Sequence[str] = (*schemes.ENABLED, CUBIC, RLCI)
#: One factor changed: timers that do not back off. Without losses only.
CAPPED: Mapping[str, str] = {TCP: TCP_CAPPED, MTCP: MTCP_CAPPED}
_PAUSES = tuple(pause for pause in PAUSES_S if pause)
#: So long handoffs go on, seconds; the longest transfers take less.
_END_S = 3000.0
_COLOURS = (
    pictures.BLACK,
    pictures.BLUE,
    pictures.ORANGE,
    pictures.GREEN,
    pictures.PURPLE,
)


def moves(pause: float, spacing: float, run: int) -> list[tuple[float, float]]:
    """When each pause of a run begins and ends; the first begins as with one handoff."""
    found = []
    begins = path.first_pause(run)
    while begins < _END_S:
        found.append((begins, begins + pause))
        begins += pause + spacing
    return found


def drawn(pause: float, spacing: float, run: int) -> Mapping[str, Any]:
    """The attachments of a run."""
    return path.attached(moves(pause, spacing, run))


def cells() -> list[Cell]:
    """Every scheme, spacing, pause and loss."""
    return [
        Cell(
            Case(scheme=scheme, loss=loss, pause_s=pause, spacing_s=spacing),
            path.SCENARIO,
            {
                **path.settings(scheme),
                **path.lossy(loss),
            },
            path.SEEDS,
            path.QUICK_SEEDS,
            drawn=partial(drawn, pause, spacing),
            reseeded=True,
        )
        for scheme in (*SCHEMES, *CAPPED.values())
        for spacing in SPACINGS_S
        for pause in _PAUSES
        for loss in (LOSSES if scheme in SCHEMES else LOSSES[:1])
    ]


def handoffs(runs: Runs, case: Case) -> Estimate | None:
    """The number of pauses that began before the end of the transfer."""
    counts = [
        float(sum(begins < time for begins, _ in moves(case["pause_s"], case["spacing_s"], run)))
        for run, time in enumerate(runs.found[case]["transfer_s"])
        if time is not None
    ]
    return mean_interval(counts) if counts else None


def figure(runs: Runs) -> Figure:
    """Transfer times over the spacing, by pause and loss."""
    lines = schemes.lines(SCHEMES, _COLOURS)
    rows = [
        [
            Panel(
                f"Pauses of {pause:g} s, losses of {100 * loss:g} %",
                {"pause_s": pause, "loss": loss},
                path.transfer,
                "transfer time, s",
                lines=lines,
            )
            for loss in LOSSES
        ]
        for pause in _PAUSES
    ]
    words = {spacing: f"{spacing:g}" for spacing in SPACINGS_S}
    return draw.panels(runs, rows, "spacing_s", "connected between two pauses, s", words)


def _at(runs: Runs, pause: float) -> Answer:
    parts = []
    where = {"loss": 0.0, "pause_s": pause}
    for scheme in SCHEMES:
        values = [
            phrase(path.transfer(runs, runs.case(scheme=scheme, spacing_s=spacing, **where)))
            for spacing in (10.0, 5.0)
        ]
        parts.append(f"{schemes.name(scheme)} {values[0]} and {values[1]}")
    case = runs.case(scheme=TCP, spacing_s=5.0, **where)
    return Answer(
        f"How long does the transfer take if pauses of {pause:g} s follow each other 10 s, or 5 s,"
        " apart?",
        "§3.1",
        None,
        f"Seconds, without losses: {'; '.join(parts)}.",
        case,
        path.transfer(runs, case),
        "s",
    )


def _back_off(runs: Runs) -> Answer:
    where = {"loss": 0.0, "pause_s": 5.0, "spacing_s": 5.0}
    parts = []
    for one, other in (*CAPPED.items(), (CUBIC, RLCI)):
        values = [
            phrase(path.transfer(runs, runs.case(scheme=scheme, **where)))
            for scheme in (one, other)
        ]
        parts.append(f"{schemes.name(one)} {values[0]}, {schemes.name(other)} {values[1]}")
    case = runs.case(scheme=TCP_CAPPED, **where)
    return Answer(
        "How much of the time with pauses of 5 s, 5 s apart, is owed to timers in back-off?",
        "§3.1",
        None,
        f"Seconds, with one factor changed: {'; '.join(parts)}.",
        case,
        path.transfer(runs, case),
        "s",
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What several handoffs cost."""
    return [*(_at(runs, pause) for pause in _PAUSES), _back_off(runs)]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    case = runs.case(scheme=TCP, loss=0.0, pause_s=2.8, spacing_s=5.0)
    return (
        "With pauses of 2.8 s, 5 s apart, TCP needs"
        f" {phrase(path.transfer(runs, case))} s and {phrase(handoffs(runs, case))} handoffs."
    )


STUDY = Study(
    publication=path.PUBLICATION,
    experiment="handoffs",
    title="Several handoffs in a row",
    asks="The publication also simulated successive handoffs, 5 to 10 s apart, and shows no results"
    " of them. How long does a transfer take then?",
    where="§3.1",
    method=(
        *path.METHOD,
        "Here pauses follow each other until the transfer ends. From the end of a pause to the"
        " start of the next the mobile host is connected for 5, 7.5 or 10 s, in turn to either"
        " station."
        " CUBIC, with and without RLCI, has the profile modern at both ends. Without losses, TCP"
        " and MTCP are run again with one factor changed: their RTO is at most 2 s, so that it"
        " hardly backs off.",
    ),
    cells=cells,
    observe=path.observe,
    measures=(*path.MEASURES, Measure("handoffs", "1", "handoffs", handoffs)),
    figures=(Drawn("Transfer times with their intervals of 95 %.", figure),),
    answers=answers,
    outcome=outcome,
    keys={**path.KEYS, "spacing_s": "connected, s"},
    words=path.WORDS,
)
