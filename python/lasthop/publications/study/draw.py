"""Figures of experiments: lines over one key, in panels."""

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
    """The cases of a line, its label, colour, marker and style."""

    label: str
    where: Mapping[str, Any]
    colour: str
    marker: str = "o"
    style: str = "-"
    #: Markers are drawn without filling.
    hollow: bool = False


@dataclass(frozen=True)
class Star:
    """A published value, drawn beside the measured one."""

    x: Any
    value: float
    colour: str
    hollow: bool = False


@dataclass(frozen=True)
class Panel:
    """One of several panels of a figure."""

    title: str
    where: Mapping[str, Any]
    value: Callable[[Runs, Case], Estimate | None]
    ylabel: str
    lines: Sequence[Line] = field(kw_only=True)
    #: What to divide values by.
    scale: float = 1.0
    log: bool = False
    top: float | None = None
    #: Whether values are on both sides of zero, which then has a line.
    signed: bool = False
    stars: Sequence[Star] = ()


def panels(
    runs: Runs,
    rows: Sequence[Sequence[Panel]],
    x: str,
    xlabel: str,
    words: Mapping[Any, str],
    inches: float = 4.1,
) -> Figure:
    """A figure of panels: values over one key, at equal distances with the labels `words`; a panel
    is `inches` wide."""
    width = max(len(row) for row in rows)
    places = {value: float(place) for place, value in enumerate(words)}
    with pictures.figure(1.2 + inches * width, 0.6 + 3.1 * len(rows)) as drawn:
        axes = drawn.subplots(len(rows), width, squeeze=False)
        for down, row in enumerate(rows):
            for across, panel in enumerate(row):
                ax = axes[down][across]
                for line in panel.lines:
                    _line(ax, runs, panel, line, x, places)
                for star in panel.stars:
                    _star(ax, panel, star, places)
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
        # About as many as fit side by side, in inches.
        entry = 0.6 + 0.07 * max(map(len, handles), default=0)
        columns = max(1, min(5, int((1.2 + inches * width) / entry)))
        drawn.legend(handles.values(), handles, loc="outside upper right", ncols=columns)
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
        markerfacecolor="white" if line.hollow else line.colour,
        linestyle=line.style,
        capsize=2.5,
        elinewidth=0.9,
        label=line.label,
    )


def _star(ax: Axes, panel: Panel, star: Star, places: Mapping[Any, float]) -> None:
    ax.plot(
        [places[star.x] + 0.13],
        [star.value / panel.scale],
        marker="*",
        markersize=11,
        linestyle="none",
        color=star.colour,
        markerfacecolor="white" if star.hollow else star.colour,
        markeredgewidth=0.9,
        label="published",
    )
