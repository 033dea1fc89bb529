"""Table 1 with senders of today (beyond the publication)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lasthop import pictures
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line, Panel
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.words import phrase
from lasthop.publications.yavatkar1994 import path, schemes
from lasthop.publications.yavatkar1994.path import FIXED, LOSSES, MOBILE, PAUSES_S, SENDERS
from lasthop.publications.yavatkar1994.schemes import FREEZE, MTCP_BBR, TCP, TODAY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SENDING: Sequence[str] = (*schemes.ENABLED, *TODAY, MTCP_BBR)
#: By the sender: Freeze-TCP needs a mobile host that receives.
SCHEMES: Mapping[str, Sequence[str]] = {MOBILE: _SENDING, FIXED: (*_SENDING, FREEZE)}
_LINES = [
    Line(schemes.name(scheme), {"scheme": scheme}, colour, marker, style)
    for scheme, colour, marker, style in (
        (TCP, pictures.BLACK, "o", "-"),
        (schemes.MTCP, pictures.BLUE, "s", "--"),
        (schemes.SRP, pictures.ORANGE, "s", "--"),
        (schemes.SACK, pictures.BLUE, "o", "-"),
        (schemes.CUBIC, pictures.GREEN, "o", "-"),
        (schemes.BBR, pictures.ORANGE, "o", "-"),
        (schemes.RLCI, pictures.PURPLE, "o", "-"),
        (MTCP_BBR, pictures.GREY, "s", "--"),
        (FREEZE, pictures.SKY, "^", "-"),
    )
]


def cells() -> list[Cell]:
    """Every sender, scheme, loss and pause."""
    return [
        path.cell(scheme, loss, pause, sends=sends)
        for sends, among in SCHEMES.items()
        for scheme in among
        for pause in PAUSES_S
        for loss in LOSSES
    ]


def figure(runs: Runs) -> Figure:
    """Transfer times over the pause, by loss."""
    rows = [
        [
            Panel(
                f"{words}, losses of {100 * loss:g} %",
                {"sends": sends, "loss": loss},
                path.transfer,
                "transfer time, s",
                lines=_LINES,
                log=True,
            )
            for loss in LOSSES
        ]
        for sends, words in SENDERS.items()
    ]
    words = {pause: f"{pause:g}" for pause in PAUSES_S}
    return draw.panels(runs, rows, "pause_s", "handoff pause, s", words)


def _at(runs: Runs, sends: str, loss: float, pause: float, question: str) -> Answer:
    where = {"sends": sends, "loss": loss, "pause_s": pause}
    parts = [
        f"{schemes.name(scheme)} {phrase(path.transfer(runs, runs.case(scheme=scheme, **where)))}"
        for scheme in SCHEMES[sends]
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
        _at(runs, sends, loss, pause, f"{question} when {words}?")
        for sends, words in SENDERS.items()
        for loss, pause, question in (
            (0.1, 0.0, "How long does a transfer over losses of 10 % take today"),
            (0.0, 5.0, "How long does it take with a pause of 5 s, without losses,"),
        )
    ]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    lossy = [
        phrase(path.transfer(runs, runs.case(sends=MOBILE, scheme=scheme, loss=0.1, pause_s=0.0)))
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
        " anew. MTCP with BBR on the hop has the profile modern in the agents, too: BBR sends over"
        " the wireless hop, CUBIC over the wire.",
        "The same with the fixed host sending: with Freeze-TCP, the mobile host is warned 200 ms"
        " before the pause. Freeze-TCP needs a mobile host that receives.",
    ),
    cells=cells,
    observe=path.observe,
    measures=path.MEASURES,
    figures=(Drawn("Transfer times with their intervals of 95 %; logarithmic.", figure),),
    answers=answers,
    outcome=outcome,
    keys={"sends": "sender", **path.KEYS},
    words=path.WORDS,
)
