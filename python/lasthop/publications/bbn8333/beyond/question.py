"""An open question of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lasthop import pictures
from lasthop.publications.study import draw
from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Cell, Collect, Runs
from lasthop.publications.study.study import Drawn, Measure, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The kinds of ETEN, as in the figures of the simulations.
ETENS = (
    draw.Line("no ETEN", {"eten": "none"}, pictures.BLACK, "s"),
    draw.Line("Backward", {"eten": "backward"}, pictures.BLUE, "o"),
    draw.Line("Oracle", {"eten": "oracle"}, pictures.ORANGE, "^"),
)

_COMMON = "MSS 536 bytes, profile ns2-2001 where nothing else is said."


def question(
    *,
    id: str,
    title: str,
    asks: str,
    where: str,
    method: Sequence[str],
    cells: Callable[[], Sequence[Cell]],
    collect: Collect,
    measures: Sequence[Measure],
    figure: Callable[[Runs], Figure],
    caption: str,
    answers: Callable[[Runs], Sequence[Answer]],
    keys: Mapping[str, str],
) -> Study:
    """An experiment that the report asks for, with one picture."""
    return Study(
        publication="bbn8333",
        experiment=f"beyond/{id}",
        title=title,
        asks=asks,
        where=where,
        method=[*method, _COMMON],
        cells=cells,
        collect=collect,
        measures=measures,
        figures=[Drawn(caption, figure)],
        answers=answers,
        keys=keys,
    )
