"""RLCI beside Freeze-TCP, the mobile host receiving (beyond koutsianas2007)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lasthop import pictures, units
from lasthop.publications.koutsianas2007 import schemes
from lasthop.publications.koutsianas2007.fig4_4 import collect, spread
from lasthop.publications.koutsianas2007.schemes import CORRECTED, LINES, NAMES, RLCI, STANDARD
from lasthop.publications.koutsianas2007.targets import EQUAL, FASTER, SLOWER, TARGETS, Target
from lasthop.publications.study import draw
from lasthop.publications.study.draw import Line
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Measure, Study, mean
from lasthop.publications.study.words import phrase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCENARIO = "koutsianas2007/freeze"
DISCONNECTIONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
SEEDS, QUICK_SEEDS = 20, 3
#: How long before its detachment the receiver is warned, seconds. A round trip is 82 ms and what
#: the queue adds.
WARNINGS = (1.0, 0.2, 0.02)
FREEZE = "freeze"
_COLOURS = (pictures.ORANGE, pictures.PURPLE, pictures.SKY)
_LINES = (
    *(LINES[scheme] for scheme in (STANDARD, RLCI, CORRECTED)),
    *(
        Line(
            f"Freeze-TCP, {units.duration(warning)} before",
            {"scheme": FREEZE, "warning_s": warning},
            colour,
            "v",
        )
        for warning, colour in zip(WARNINGS, _COLOURS, strict=True)
    ),
)


def drawn(disconnection: float, run: int) -> Mapping[str, Any]:
    """When it leaves, the same for all lengths and schemes, and is back."""
    left = random.Random(f"freeze, run {run}").uniform(2.0, 4.0)
    return schemes.attached(left, left + disconnection)


def _cell(scheme: str, target: Target, disconnection: float, warning: float = 0.0) -> Cell:
    (flow,) = schemes.flows(SCENARIO)
    settings = dict(target.settings)
    if scheme == FREEZE:
        tcp = {**flow["tcp"], "mechanisms": [{"mechanism": "freeze"}]}
        settings["nodes.phone.warning"] = schemes.seconds(warning)
    else:
        tcp = schemes.tcp(flow["tcp"], scheme)
    case = Case(
        scheme=scheme,
        warning_s=warning,
        target=target.name,
        disconnection_s=disconnection,
    )
    settings["flows"] = [{**flow, "tcp": tcp}]
    draws = partial(drawn, disconnection)
    return Cell(case, SCENARIO, settings, SEEDS, QUICK_SEEDS, drawn=draws)


def cells() -> list[Cell]:
    """Every scheme for every target and length."""
    return [
        _cell(scheme, target, length, warning)
        for target in TARGETS
        for length in DISCONNECTIONS
        for scheme, warning in (
            (STANDARD, 0.0),
            (RLCI, 0.0),
            (CORRECTED, 0.0),
            *((FREEZE, warning) for warning in WARNINGS),
        )
    ]


def figure(runs: Runs) -> Figure:
    """Net durations over the length of the disconnection, by target."""
    row = [
        draw.Panel(
            f"To {target.name}",
            {"target": target.name},
            lambda runs, case: runs.mean(case, "net_duration_s"),
            "net duration, s",
            lines=_LINES,
        )
        for target in TARGETS
    ]
    words = {length: f"{length:g}" for length in DISCONNECTIONS}
    return draw.panels(runs, [row], "disconnection_s", "disconnection, s", words)


def _at(runs: Runs, target: Target) -> Answer:
    parts = []
    for length in (1.0, 10.0, 30.0):
        where = {"target": target.name, "disconnection_s": length}
        values = [
            f"{NAMES[scheme]} {phrase(runs.mean(runs.case(scheme=scheme, **where), _NET))}"
            for scheme in (STANDARD, RLCI, CORRECTED)
        ]
        values += [
            f"Freeze-TCP warned {units.duration(warning)} before"
            f" {phrase(runs.mean(runs.case(scheme=FREEZE, warning_s=warning, **where), _NET))}"
            for warning in WARNINGS
        ]
        parts.append(f"after {length:g} s {', '.join(values)}")
    case = runs.case(scheme=FREEZE, warning_s=0.2, target=target.name, disconnection_s=10.0)
    return Answer(
        f"What does a warning save a phone that moves to {target.name}?",
        "beyond",
        None,
        f"Net seconds: {'; '.join(parts)}.",
        case,
        runs.mean(case, _NET),
        "s",
    )


_NET = "net_duration_s"


def answers(runs: Runs) -> Sequence[Answer]:
    """How the two compare."""
    return [_at(runs, target) for target in (SLOWER, EQUAL, FASTER)]


def outcome(runs: Runs) -> str:
    """In a sentence."""
    where = {"target": EQUAL.name, "disconnection_s": 10.0}
    standard, corrected = (
        phrase(runs.mean(runs.case(scheme=scheme, **where), _NET))
        for scheme in (STANDARD, CORRECTED)
    )
    freeze = phrase(runs.mean(runs.case(scheme=FREEZE, warning_s=0.2, **where), _NET))
    return (
        f"Over 10 s to an equal path standard TCP takes {standard} s net, RLCI corrected"
        f" {corrected} s, Freeze-TCP with a warning of 200 ms {freeze} s."
    )


STUDY = Study(
    publication=schemes.PUBLICATION,
    experiment="freeze",
    title="RLCI beside Freeze-TCP",
    asks="Freeze-TCP needs nothing of the sender: a receiver that is warned closes its window"
    " before it loses its connectivity. How does that compare with an indication of the new path"
    " afterwards?",
    where="beyond",
    method=(
        "The network of figure 4.2, the other way round: a server sends 5 MB to the phone, with a"
        " window of 200 segments; the second access point has 1, 6 or 20 Mb/s. The phone leaves"
        " after 2 to 4 s, uniform, and is away for 0.1 to 30 s.",
        "With RLCI the phone, which is the receiver, is notified that it is attached anew, and"
        " signals that to the server by its option. Freeze-TCP is warned 1 s, 200 ms or 20 ms"
        " before the phone leaves; after the return it announces its window three times (Goff and"
        " others, 2000).",
    ),
    cells=cells,
    collect=collect,
    measures=(
        mean(_NET, "s", "net duration, s"),
        Measure("deviation_s", "s", "its deviation, s", spread),
        mean("timeouts", "1", "timeouts"),
    ),
    figures=(Drawn("Net duration of a download, by the length of the disconnection.", figure),),
    answers=answers,
    outcome=outcome,
    keys={
        "scheme": "scheme",
        "warning_s": "warning, s",
        "target": "to",
        "disconnection_s": "disconnection, s",
    },
)
