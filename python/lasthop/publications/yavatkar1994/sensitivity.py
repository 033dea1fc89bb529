"""What tables 1 to 3 owe to what the publication leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line, Panel
from lasthop.publications.study.published import Answer, Section
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.words import phrase
from lasthop.publications.yavatkar1994 import path, schemes, tables
from lasthop.publications.yavatkar1994.path import BURST, LOSSES, Path
from lasthop.publications.yavatkar1994.schemes import TCP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAUSES_S = (0.0, 2.8)
#: The best point of the calibration with the other MTU.
OTHER = Path(0.015, 35, 20, 100, 128)

PLAIN = "as in the tables"
#: By the mean length of a burst.
_LENGTHS = {
    length: PLAIN if length == BURST else f"bursts of {length:g}"
    for length in (1.0, 1.5, BURST, 3.0, 4.0)
}

#: Bursts in time: two packets at the rate of the hop, and more.
_TIMES_S = (0.041, 0.1, 0.2)


@dataclass(frozen=True)
class Arm:
    """One thing that differs from the tables."""

    name: str
    #: Further settings.
    settings: Mapping[str, Any] = field(default_factory=dict)
    burst: float = BURST
    #: Only packets of the mobile host are lost.
    one_way: bool = False
    #: Bursts are not a number of packets but times, of so many seconds on average.
    burst_s: float = 0.0
    #: The losses, as a share of the published ones.
    losses: float = 1.0
    #: Another path.
    path: Path | None = None


ARMS: Sequence[Arm] = (
    Arm(PLAIN),
    *(Arm(name, burst=length) for length, name in _LENGTHS.items() if length != BURST),
    *(Arm(f"bursts of {1e3 * length:g} ms", burst_s=length) for length in _TIMES_S),
    Arm("half the losses", losses=0.5),
    Arm("half the losses, bursts of 1", burst=1.0, losses=0.5),
    Arm("losses of data only", one_way=True),
    Arm("the best path with an MTU of 128", path=OTHER),
    Arm("no losses in the Internet", {"links.5.errors": {}}),
    Arm("Reno", {"flows.0.tcp.recovery": "reno"}),
    Arm(
        "windows of 16 KiB",
        {"flows.0.tcp.receive_window": "16 KiB", "flows.0.traffic.send_buffer": "16 KiB"},
    ),
    Arm("every segment acknowledged", {"flows.0.tcp.delayed_ack": "off"}),
    Arm("a file of 102400 bytes", {"flows.0.traffic.size": "102400 B"}),
)


def _cell(arm: Arm, scheme: str, loss: float, pause: float) -> Cell:
    of_path = path.settings(scheme, arm.path) if arm.path else {}
    settings = {**of_path, **path.lossy(arm.losses * loss, arm.burst), **arm.settings}
    if arm.one_way or arm.burst_s:
        settings |= {f"links.{link}.errors": {} for link in path.WIRELESS}
    if arm.one_way:
        settings |= {f"links.{link}.forward.errors": path.bursts(loss) for link in path.WIRELESS}
    cell = path.cell(scheme, loss, pause, more=settings, arm=arm.name)
    if not arm.burst_s:
        return cell
    return replace(cell, drawn=partial(_timed, loss, arm.burst_s, pause))


def _timed(loss: float, mean_s: float, pause: float, run: int) -> Mapping[str, Any]:
    return {**path.one_handoff(pause, run), **path.timed_bursts(loss, mean_s, run)}


def cells() -> list[Cell]:
    """Every arm and loss, without a pause and with one."""
    return [
        _cell(arm, scheme, loss, pause)
        for scheme in schemes.ENABLED
        for arm in ARMS
        for pause in PAUSES_S
        for loss in LOSSES
    ]


def published(scheme: str, loss: float, pause: float) -> float | None:
    """The value of the table."""
    section = Section.of(path.PUBLICATION, f"table{tables.NUMBERS[scheme]}")
    found = section.number(Case(scheme=scheme, loss=loss, pause_s=pause), "transfer_s")
    return None if found is None else found.value


def figure(runs: Runs) -> Figure:
    """Transfer times over the mean length of a burst."""
    words = {name: f"{length:g}" for length, name in _LENGTHS.items()}
    lines = [
        Line(f"losses of {100 * loss:g} %", {"loss": loss}, colour)
        for loss, colour in zip(
            LOSSES, (pictures.GREY, pictures.BLUE, pictures.ORANGE), strict=True
        )
    ]
    rows = [
        [
            Panel(
                f"{schemes.name(scheme)}, a pause of {pause:g} s",
                {"scheme": scheme, "pause_s": pause},
                path.transfer,
                "transfer time, s",
                lines=lines,
                log=True,
            )
            for pause in PAUSES_S
        ]
        for scheme in schemes.ENABLED
    ]
    return draw.panels(runs, rows, "arm", "packets of a burst, on average", words)


def _burst(runs: Runs, loss: float) -> Answer:
    parts = []
    for length, name in _LENGTHS.items():
        case = runs.case(scheme=TCP, arm=name, loss=loss, pause_s=0.0)
        parts.append(f"{phrase(path.transfer(runs, case))} with {length:g}")
    case = runs.case(scheme=TCP, arm=PLAIN, loss=loss, pause_s=0.0)
    return Answer(
        f"How does the length of bursts change the transfer time, with losses of {100 * loss:g} %?",
        "§3.1",
        None,
        f"TCP takes, in seconds, without a pause: {', '.join(parts)} packets on average; published:"
        f" {published(TCP, loss, 0.0):g}.",
        case,
        path.transfer(runs, case),
        "s",
    )


def _others(runs: Runs) -> Answer:
    where = {"scheme": TCP, "pause_s": 0.0}
    parts = []
    for arm in ARMS:
        if arm.name == PLAIN or arm.name not in _LENGTHS.values():
            values = [
                phrase(path.transfer(runs, runs.case(arm=arm.name, loss=loss, **where)))
                for loss in LOSSES
            ]
            parts.append(f"{arm.name}: {', '.join(values)}")
    case = runs.case(arm=PLAIN, loss=0.0, **where)
    return Answer(
        "How does it change with what else is not published?",
        "§3.1",
        None,
        f"TCP's seconds with losses of 0, 5, 10 %, without a pause. {'; '.join(parts)}.",
        case,
        path.transfer(runs, case),
        "s",
    )


def answers(runs: Runs) -> Sequence[Answer]:
    """What each makes of table 1."""
    return [_burst(runs, loss) for loss in LOSSES if loss] + [_others(runs)]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    single, plain = (
        phrase(path.transfer(runs, runs.case(scheme=TCP, arm=arm, loss=0.05, pause_s=0.0)))
        for arm in ("bursts of 1", PLAIN)
    )
    return (
        f"With losses of 5 %, TCP takes {single} s if every loss is one packet, {plain} s if bursts"
        " are of two packets on average."
    )


STUDY = Study(
    publication=path.PUBLICATION,
    experiment="sensitivity",
    title="What the tables owe to what is not published",
    asks="The publication gives neither the length of bursts nor most of the path. What do other"
    " choices make of its tables?",
    where="§3.1",
    method=(
        *path.METHOD,
        "One choice is changed at a time. Without losses and pause, only the path with an MTU of"
        " 128 is calibrated, too: it is the best one of the grid with that MTU.",
    ),
    cells=cells,
    observe=path.observe,
    measures=path.MEASURES,
    figures=(Drawn("Transfer times by the length of bursts, on a logarithmic scale.", figure),),
    answers=answers,
    outcome=outcome,
    keys={"scheme": "scheme", "arm": "choice", "loss": "loss", "pause_s": "pause, s"},
    words=path.WORDS,
)
