"""Table 1 with senders of today (beyond the publication)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lasthop import pictures
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line, Panel
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.words import phrase
from lasthop.publications.yavatkar1994 import path, schemes
from lasthop.publications.yavatkar1994.path import LOSSES, PAUSES_S
from lasthop.publications.yavatkar1994.schemes import TCP, TODAY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES: Sequence[str] = (TCP, *TODAY)
_COLOURS = (pictures.BLACK, pictures.BLUE, pictures.GREEN, pictures.ORANGE, pictures.PURPLE)


def cells() -> list[Cell]:
    """Every scheme, loss and pause."""
    return [
        path.cell(scheme, loss, pause)
        for scheme in SCHEMES
        for pause in PAUSES_S
        for loss in LOSSES
    ]


def figure(runs: Runs) -> Figure:
    """Transfer times over the pause, by loss."""
    lines = [
        Line(schemes.name(scheme), {"scheme": scheme}, colour)
        for scheme, colour in zip(SCHEMES, _COLOURS, strict=True)
    ]
    row = [
        Panel(
            f"Losses of {100 * loss:g} %",
            {"loss": loss},
            path.transfer,
            "transfer time, s",
            lines=lines,
            log=True,
        )
        for loss in LOSSES
    ]
    words = {pause: f"{pause:g}" for pause in PAUSES_S}
    return draw.panels(runs, [row], "pause_s", "handoff pause, s", words)


def _at(runs: Runs, loss: float, pause: float, question: str) -> Answer:
    where = {"loss": loss, "pause_s": pause}
    parts = [
        f"{schemes.name(scheme)} {phrase(path.transfer(runs, runs.case(scheme=scheme, **where)))}"
        for scheme in SCHEMES
    ]
    case = runs.case(scheme=schemes.CUBIC, **where)
    return Answer(
        question,
        "beyond",
        None,
        f"Seconds: {', '.join(parts)}.",
        case,
        path.transfer(runs, case),
        "s",
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """How they compare."""
    return [
        _at(runs, 0.1, 0.0, "How long does a transfer over losses of 10 % take today?"),
        _at(runs, 0.0, 5.0, "And with a pause of 5 s, without losses?"),
    ]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    lossy = [
        phrase(path.transfer(runs, runs.case(scheme=scheme, loss=0.1, pause_s=0.0)))
        for scheme in (TCP, schemes.CUBIC)
    ]
    return f"With losses of 10 % TCP of 1994 takes {lossy[0]} s, CUBIC with RACK-TLP {lossy[1]} s."


STUDY = Study(
    publication=path.PUBLICATION,
    experiment="today",
    title="Table 1 with senders of today",
    asks="What of the degradation is left with the TCP that hosts have today?",
    where="beyond",
    method=(
        *path.METHOD,
        "SACK, CUBIC (with RACK-TLP) and BBR have the profile modern at both ends, with timestamps"
        " in the same small segments; with RLCI, the mobile host is notified when it is attached"
        " anew."
        " Freeze-TCP is left out: it needs a mobile host that receives, and this one sends.",
    ),
    cells=cells,
    observe=path.observe,
    measures=path.MEASURES,
    figures=(Drawn("Transfer times with their intervals of 95 %; logarithmic.", figure),),
    answers=answers,
    outcome=outcome,
    keys=path.KEYS,
    words=path.WORDS,
)
