"""What the pictures of these experiments have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lasthop import pictures
from lasthop.publications.study.runs import Case, Runs
from lasthop.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Line:
    """The cases of a line, and its look."""

    label: str
    where: Mapping[str, Any]
    colour: str
    marker: str = "o"
    style: str = "-"


@dataclass(frozen=True)
class Panel:
    """One of several pictures side by side."""

    title: str
    where: Mapping[str, Any]
    value: Callable[[Runs, Case], Estimate | None]
    ylabel: str
    lines: Sequence[Line] = field(kw_only=True)
    #: What to divide values by.
    scale: float = 1.0
    log: bool = False
    top: float | None = None
    #: Values on both sides of nothing, which has a line.
    signed: bool = False


def panels(
    runs: Runs,
    rows: Sequence[Sequence[Panel]],
    x: str,
    xlabel: str,
    words: Mapping[Any, str],
    inches: float = 4.1,
) -> Figure:
    """Values over one key, whose values stand side by side under their words; a panel is so many
    inches wide."""
    width = max(len(row) for row in rows)
    places = {value: float(place) for place, value in enumerate(words)}
    with pictures.figure(1.2 + inches * width, 0.6 + 3.1 * len(rows)) as drawn:
        axes = drawn.subplots(len(rows), width, squeeze=False)
        for down, row in enumerate(rows):
            for across, panel in enumerate(row):
                ax = axes[down][across]
                for line in panel.lines:
                    _line(ax, runs, panel, line, x, places)
                ax.set_xticks(list(places.values()), list(words.values()))
                ax.set_xlim(-0.25, len(places) - 0.75)
                ax.set_title(panel.title)
                ax.set_ylabel(panel.ylabel)
                if panel.log:
                    ax.set_yscale("log")
                elif panel.signed:
                    ax.axhline(0, color=pictures.GREY, linewidth=0.9)
                else:
                    ax.set_ylim(0, panel.top)
                if down == len(rows) - 1:
                    ax.set_xlabel(xlabel)
        handles: dict[str, Any] = {}
        for ax in axes.flat:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        drawn.legend(handles.values(), handles, loc="outside upper right", ncols=5)
    return drawn


def _line(
    ax: Axes, runs: Runs, panel: Panel, line: Line, x: str, places: Mapping[Any, float]
) -> None:
    points = []
    for case in runs.cases(**{**panel.where, **line.where}):
        value = panel.value(runs, case)
        # A quantile that most runs do not reach has no place.
        if case[x] in places and value is not None and math.isfinite(value.value):
            points.append((places[case[x]], value))
    if not points:
        return
    points.sort(key=lambda point: point[0])
    middle = [value.value / panel.scale for _, value in points]
    ends = [
        [(value.value - value.lo) / panel.scale for _, value in points],
        # One that has no end is not drawn.
        [
            (value.hi - value.value) / panel.scale if math.isfinite(value.hi) else 0.0
            for _, value in points
        ],
    ]
    ax.errorbar(
        [place for place, _ in points],
        middle,
        yerr=ends,
        color=line.colour,
        marker=line.marker,
        markersize=4.5,
        linestyle=line.style,
        capsize=2.5,
        elinewidth=0.9,
        label=line.label,
    )
