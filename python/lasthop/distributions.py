"""Plots of distributions of round-trip times and delays, as `lasthop.plots` offers them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from lasthop.axes import is_wide, short, written
from lasthop.errors import UserError, unknown
from lasthop.pictures import BLACK, COLOURS, figure, text
from lasthop.results import FLOW, SEED, TIMES, Result, Sweep

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: More lines than these cannot be told apart.
MOST_LINES = 8
#: More boxes than these have no room.
_MOST_BOXES = 60
#: Of lines, in this order; with the colours' other period, no two of the first twelve are alike.
_DASHES = ("-", "--", "-.", ":")
#: The axis ends with 1; 0.95 is that of the columns.
_SHARES = (0, 0.25, 0.5, 0.75, 0.95)
#: Times below this share of the longest are at the edge of a logarithmic axis.
_SHORTEST = 1e-3
#: Quantities with one axis.
_ALIKE = {"rtt": "srtt", "srtt": "rtt"}
#: Characters below an axis.
_ROOM = 40
#: A direction of a link counts as a queue if packets waited for this share of the longest wait.
_A_QUEUE = 0.01
BOXES = "Boxes: quartiles; whiskers: 5 % and 95 %; dots: 99 %"


@dataclass(frozen=True)
class Times:
    """Distributions of one quantity."""

    #: What they are of, a key of `TIMES`.
    what: str
    #: The keys that differ among them, each with the name that plots give it.
    keys: Mapping[str, str]
    #: By the values of those.
    by: Mapping[tuple[Any, ...], pl.DataFrame]

    @classmethod
    def of(cls, found: Result | Sweep, what: str, name: str | None) -> Times:
        """Those of a run or a sweep, all or one flow's, or one direction's; there may be none."""
        if isinstance(found, Result):
            if name is not None:
                return cls(what, {}, {(name,): found.distribution(what, name)})
            if what not in TIMES:
                raise unknown("distribution", what, TIMES)
            by = dict(found.distributions.get(what, {}))
            if what == "queue_delay":
                longest = max((_longest(rows) for rows in by.values()), default=0.0)
                by = {of: rows for of, rows in by.items() if _longest(rows) > _A_QUEUE * longest}
            return cls(what, {}, {(of.replace("->", " → "),): rows for of, rows in by.items()})
        rows = found.rows
        if name is not None:
            if what == "queue_delay":
                raise UserError(
                    "of queueing delays, a sweep has those of one direction: leave the name out"
                )
            if name not in (flows := rows[FLOW].unique(maintain_order=True).to_list()):
                raise unknown("flow", name, flows)
            rows = rows.filter(rows[FLOW] == name)
        counts = f"{what}_counts"
        if counts in rows.columns:
            # Flows that cannot have any are nothing to tell apart.
            rows = rows.filter(rows[counts] != "[]")
        swept = Sweep(rows)
        keys = _distinct(swept, what)
        return cls(what, keys, swept.distributions(what, list(keys)))

    def __bool__(self) -> bool:
        """Whether there is something to draw: where nothing waits, all times are 0."""
        return any(_longest(rows) > 0 for rows in self.by.values())

    def check(self) -> None:
        """Raises if there is nothing to draw."""
        if not self:
            raise UserError(f"no {TIMES[self.what]} above 0 was measured: there is nothing to draw")

    @property
    def heading(self) -> str:
        """The names of the keys."""
        return ", ".join(self.keys.values())


@dataclass(frozen=True)
class Scale:
    """An axis of times, seconds."""

    left: float
    right: float
    logarithmic: bool
    #: The unit, and how many seconds it is.
    unit: str
    size: float

    @classmethod
    def of(cls, all_times: Iterable[Times]) -> Scale:
        """The axis on which all of these have a place."""
        found = [rows for times in all_times for rows in times.by.values()]
        longest = max(map(_longest, found))
        left = max(0.9 * min(quantile(rows, 0.01) for rows in found), _SHORTEST * longest)
        logarithmic = is_wide((left, longest))
        units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
        size, unit = next((of for of in units if longest >= of[0]), units[-1])
        # Beyond the longest, where all lines are at 1.
        return cls(left if logarithmic else 0.0, 1.03 * longest, logarithmic, unit, size)

    def apply(self, ax: Axes, which: Literal["x", "y"], what: str) -> None:
        """Names an axis, with plain numbers at 1, 2 and 5 of each power of ten if logarithmic."""
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        axis = ax.xaxis if which == "x" else ax.yaxis
        if self.logarithmic:
            ax.set(**{f"{which}scale": "log"})
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
        axis.set_label_text(f"{TIMES[what].replace('round-trip time', 'RTT')}, {self.unit}")


def _distinct(sweep: Sweep, what: str) -> dict[str, str]:
    """The keys that vary, those that always have equal values as one."""
    kept: dict[str, str] = {}
    for key in sweep.varied():
        if key == FLOW and what == "queue_delay":
            continue
        same = next((other for other in kept if sweep.rows[key].equals(sweep.rows[other])), key)
        kept[same] = f"{kept[same]} = {short(key)}" if same in kept else short(key)
    return kept


def _longest(rows: pl.DataFrame) -> float:
    return float(rows["time_s"][-1])


def quantile(rows: pl.DataFrame, share: float) -> float:
    """The time within which this share of the samples was."""
    # The last share is 1 but for rounding.
    return float(rows["time_s"][min(rows["share"].search_sorted(share), rows.height - 1)])


def label(point: Sequence[Any]) -> str:
    """The values of a point."""
    return ", ".join(map(written, point))


def draw_lines(ax: Axes, times: Times, scale: Scale | None = None) -> None:
    """The share of samples that took no longer, over the time."""
    times.check()
    if len(times.by) > MOST_LINES:
        raise UserError(
            f"{len(times.by)} distributions: no more than {MOST_LINES} lines can be told apart;"
            " pick a flow, keep fewer rows, or draw boxes"
        )
    scale = scale or Scale.of([times])
    styles = zip(cycle(COLOURS), cycle(_DASHES), strict=False)
    for (point, rows), (colour, dashes) in zip(times.by.items(), styles, strict=False):
        at = rows["time_s"].clip(scale.left).to_list()
        ax.step(
            [t / scale.size for t in (at[0], *at, scale.right)],
            [0.0, *rows["share"], 1.0],
            where="post",
            color=colour,
            linestyle=dashes,
            label=label(point),
        )
    scale.apply(ax, "x", times.what)
    ax.set_xlim(scale.left / scale.size, scale.right / scale.size)
    ax.set_ylim(0, 1.02)
    ax.set_yticks(_SHARES)
    ax.set_ylabel("share of samples")


def draw_boxes(
    ax: Axes, times: Times, over: str | None = None, scale: Scale | None = None
) -> list[str]:
    """A box for each distribution: over a key, in the colours of the others, whose names are
    returned."""
    times.check()
    if not times.keys:
        raise UserError("nothing varies: there is one distribution, and no boxes")
    keys = list(times.keys)
    over = keys[0] if over is None else over
    if over not in keys:
        raise unknown("varied key", over, keys)
    if len(times.by) > _MOST_BOXES:
        raise UserError(f"{len(times.by)} boxes: there is room for no more than {_MOST_BOXES}")
    scale = scale or Scale.of([times])
    at = keys.index(over)
    groups: dict[tuple[Any, ...], dict[Any, pl.DataFrame]] = {}
    for point, rows in times.by.items():
        groups.setdefault((*point[:at], *point[at + 1 :]), {})[point[at]] = rows
    places = list(dict.fromkeys(point[at] for point in times.by))
    width = 0.8 / len(groups)
    for i, ((group, boxes), colour) in enumerate(zip(groups.items(), cycle(COLOURS), strict=False)):
        offset = (i - (len(groups) - 1) / 2) * width
        drawn = ax.bxp(
            [_box(rows, scale.size) for rows in boxes.values()],
            positions=[places.index(place) + offset for place in boxes],
            widths=0.8 * width,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": colour, "edgecolor": colour, "alpha": 0.55},
            medianprops={"color": BLACK, "linewidth": 1.6},
            whiskerprops={"color": colour},
            capprops={"color": colour},
            flierprops={
                "marker": "o",
                "markersize": 3,
                "markerfacecolor": colour,
                "markeredgecolor": colour,
            },
        )
        drawn["boxes"][0].set_label(label(group))
    scale.apply(ax, "y", times.what)
    ax.set_ylim(bottom=scale.left / scale.size)
    room = max(_ROOM // len(places), 6)
    ax.set_xticks(range(len(places)), [fill(written(place), room) for place in places])
    ax.set_xlim(-0.6, len(places) - 0.4)
    ax.set_xlabel(times.keys[over])
    return [name for key, name in times.keys.items() if key != over]


def _box(rows: pl.DataFrame, size: float) -> dict[str, Any]:
    """What `Axes.bxp` takes."""
    low, first, median, third, high, dot = (
        quantile(rows, share) / size for share in (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    )
    return {"whislo": low, "q1": first, "med": median, "q3": third, "whishi": high, "fliers": [dot]}


def draw_legend(ax: Axes, heading: str) -> None:
    """A legend above the axes, where no line is, if there is more than one thing to tell apart."""
    handles, labels = ax.get_legend_handles_labels()
    if len(handles) > 1:
        ax.legend(
            handles,
            labels,
            title=heading or None,
            alignment="left",
            loc="lower left",
            bbox_to_anchor=(0, 1.01),
            borderaxespad=0,
            frameon=False,
            ncols=2,
        )


def draw_all(found: Result | Sweep, title: str) -> Figure:
    """All distributions of a run, or of a sweep's points, each in a panel."""
    panels = _panels(found)
    if not panels:
        raise UserError("no round trip and no delay was measured: there is nothing to draw")
    lines = all(len(times.by) <= MOST_LINES for _, times in panels)
    rows = (len(panels) + 1) // 2
    with figure(9, 2.4 * rows + 1.0) as drawn:
        axes = drawn.subplots(rows, min(len(panels), 2), squeeze=False).ravel()
        for ax, (name, times) in zip(axes, panels, strict=False):
            # Panels of one quantity can be compared.
            alike = (
                other for _, other in panels if other.what in (times.what, _ALIKE.get(times.what))
            )
            scale = Scale.of(alike)
            if lines:
                draw_lines(ax, times, scale)
                heading = times.heading
            else:
                heading = ", ".join(draw_boxes(ax, times, scale=scale))
            ax.set_title(text(name))
            if isinstance(found, Result):
                ax.legend(frameon=True, facecolor="white", edgecolor="none", framealpha=0.7)
        for ax in axes[len(panels) :]:
            ax.remove()
        if isinstance(found, Sweep):
            if heading:
                handles, labels = axes[0].get_legend_handles_labels()
                drawn.legend(
                    handles,
                    labels,
                    title=heading,
                    loc="outside lower left",
                    ncols=2,
                    alignment="left",
                )
            runs = found.rows.select(*found.keys, SEED).n_unique()
            title = f"{title}\nAll samples of {runs} runs" + ("" if lines else f". {BOXES}")
        drawn.suptitle(text(title), x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    return drawn


def _panels(found: Result | Sweep) -> list[tuple[str, Times]]:
    """What there is to draw, with the titles."""
    # The panels of a run have lines for its flows.
    flows: Sequence[str] = (
        [] if isinstance(found, Result) else found.rows[FLOW].unique(maintain_order=True).to_list()
    )
    panels = []
    for what, name in TIMES.items():
        for flow in [None] if what == "queue_delay" or len(flows) < 2 else flows:
            whose = "" if flow is None else f", {flow}"
            panels.append((name.capitalize() + whose, Times.of(found, what, flow)))
    return [(name, times) for name, times in panels if times]
