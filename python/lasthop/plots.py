"""Ready plots.

Each function draws into `ax`, or into a new figure that pyplot shows, and returns the axes for
further calls of matplotlib. `subplots` makes several axes in the same style. `save` writes a
picture.

>>> from lasthop import plots
>>> plots.curves(lasthop.sweep("demo"))
>>> plots.window(lasthop.run("demo", trace=True))
>>> plots.distribution(lasthop.run("examples/rrul"), "delay")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

from lasthop import distributions
from lasthop.axes import measure, over_time, place, short, written
from lasthop.errors import UserError, unknown
from lasthop.pictures import (
    BLACK,
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    STYLE,
    figure,
    save,
    text,
)
from lasthop.results import FLOW, Result, Sweep

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "boxes",
    "completion_times",
    "curves",
    "distribution",
    "latency",
    "queue",
    "save",
    "subplots",
    "time_sequence",
    "trace",
    "window",
]

_MARKERS = "os^Dvp"
#: Inches.
_SIZE = (7.2, 4.0)


def subplots(rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """pyplot's `subplots` in the style of these plots: a figure and its axes."""
    import matplotlib.pyplot as plt

    width, height = _SIZE
    options.setdefault("figsize", (width, height if rows == 1 else 2.4 * rows))
    with _style():
        return plt.subplots(rows, columns, **options)


@contextmanager
def _canvas(ax: Axes | None) -> Iterator[Axes]:
    """The axes, or new ones in the house style."""
    if ax is not None:
        yield ax
    else:
        with _style():
            yield subplots()[1]


@contextmanager
def _style() -> Iterator[None]:
    """The house style for a while."""
    from matplotlib import rcParams

    # Not rc_context: that would also take back what a notebook's backend sets when it is loaded.
    before = {name: rcParams[name] for name in STYLE}
    try:
        rcParams.update(STYLE)
        yield
    finally:
        rcParams.update(before)


def curves(
    sweep: Sweep,
    metric: str = "goodput_bps",
    *,
    over: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A metric over a swept key: means with their 95 % intervals, one line for each combination of
    the other swept keys.

    `metric` is any numeric column of the rows. `over` defaults to the first key that varies.
    Quantities such as "10 ms" are placed by value, other texts at equal distances.
    """
    varied = sweep.varied()
    if over is None:
        over = next(iter([*varied, *sweep.keys]), None)
    if over is None:
        raise UserError("this sweep varies nothing: give it `over`, keys with their values")
    others = [key for key in varied if key != over]
    estimates = sweep.estimates(metric, [over, *others])
    if not estimates:
        raise UserError(f"no run has a value of {metric!r}: there is nothing to draw")
    lines: dict[tuple[Any, ...], dict[Any, Any]] = {}
    for point, estimate in estimates.items():
        lines.setdefault(point[1:], {})[point[0]] = estimate
    values = list(dict.fromkeys(x for x, *_ in estimates))
    largest = max((abs(estimate.value) for estimate in estimates.values()), default=0)
    scale, label = measure(metric, largest)
    with _canvas(ax) as drawn:
        at = place(drawn, short(over), values)
        styles = zip(cycle(COLOURS), cycle(_MARKERS), strict=False)
        for (rest, line), (colour, marker) in zip(lines.items(), styles, strict=False):
            points = [(at[x], line[x]) for x in values if x in line]
            drawn.errorbar(
                [x for x, _ in points],
                [estimate.value / scale for _, estimate in points],
                yerr=[estimate.half / scale for _, estimate in points],
                color=colour,
                marker=marker,
                markersize=5,
                capsize=3,
                label=", ".join(map(written, rest)),
            )
        drawn.set_ylim(bottom=0)
        drawn.set_ylabel(label)
        if others:
            drawn.legend(title=", ".join(map(short, others)), frameon=False)
        runs = sorted({estimate.n for estimate in estimates.values()})
        if runs[-1:] > [1]:
            count = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
            drawn.set_title(f"Means of {count} runs, 95 % intervals")
    return drawn


def window(result: Result, flow: str | None = None, *, ax: Axes | None = None) -> Axes:
    """The congestion window, the slow-start threshold and the flight size over time.

    For one flow, or for all flows without the flight size. Needs a run with `trace=True`.
    """
    if flow is None and len(result.flows) > 1:
        chosen = dict(result.flows)
    else:
        rows = result.series(flow)
        chosen = {name: of for name, of in result.flows.items() if of is rows}
    with _canvas(ax) as drawn:
        for (name, rows), colour in zip(chosen.items(), cycle(COLOURS), strict=False):
            t = rows["t_s"].to_numpy()
            alone = len(chosen) == 1
            if alone:
                flight = rows["flight_bytes"].to_numpy() / 1e3
                drawn.fill_between(
                    t, flight, step="post", color=GREY, alpha=0.35, linewidth=0, label="in flight"
                )
            for column, dashes, label in (
                ("cwnd_bytes", "-", "cwnd" if alone else text(name)),
                ("ssthresh_bytes", "--", "ssthresh" if alone else None),
            ):
                drawn.step(
                    t,
                    rows[column].to_numpy() / 1e3,
                    where="post",
                    color=ORANGE if alone and dashes == "--" else colour,
                    linestyle=dashes,
                    linewidth=1.4 if dashes == "-" else 1.0,
                    label=label,
                )
        over_time(drawn, "window, kB" if len(chosen) == 1 else "cwnd (ssthresh dashed), kB")
        drawn.legend(frameon=False, ncols=4)
    return drawn


def queue(result: Result, link: str | None = None, *, ax: Axes | None = None) -> Axes:
    """The length of the queue of a link's direction ("a->b") over time; by default of all queues
    that ever held more than the packet in transmission.

    Needs a run with `trace=True`.
    """
    if link is None and len(result.queues) > 1:
        held = {name: rows for name, rows in result.queues.items() if _longest(rows) > 1}
        chosen: Mapping[str, pl.DataFrame] = held or result.queues
    else:
        rows = result.queue(link)
        chosen = {name: of for name, of in result.queues.items() if of is rows}
    with _canvas(ax) as drawn:
        for (name, rows), colour in zip(chosen.items(), cycle(COLOURS), strict=False):
            drawn.step(
                rows["t_s"].to_numpy(),
                rows["packets"].to_numpy(),
                where="post",
                color=colour,
                linewidth=1.0,
                label=text(name.replace("->", " → ")),
            )
        over_time(drawn, "queue, packets")
        drawn.locator_params(axis="y", integer=True)
        drawn.legend(frameon=False, ncols=4)
    return drawn


def completion_times(
    sweep: Sweep, by: Sequence[str] | None = None, *, ax: Axes | None = None
) -> Axes:
    """The distribution of completion times: the share of transfers complete by each time.

    One line for each combination of the swept keys, or of the columns `by`. Transfers that did not
    end count, too: their line stays below 1. Flows without any completed transfer are left out.
    """
    ended = sweep.rows.drop_nulls("completed_s")[FLOW].unique().to_list()
    rows = sweep.rows.filter(sweep.rows[FLOW].is_in(ended))
    if rows.is_empty():
        raise UserError('no transfer ended: give a flow an end, such as traffic={"size": "3 MB"}')
    columns = [key for key in sweep.varied() if rows[key].n_unique() > 1] if by is None else by
    for column in columns:
        if column not in rows.columns:
            raise unknown("column", column, rows.columns)
    groups: dict[tuple[Any, ...], list[float | None]] = {}
    for row in rows.select(*columns, "completed_s").iter_rows():
        groups.setdefault(row[:-1], []).append(row[-1])
    latest = max(time for times in groups.values() for time in times if time is not None)
    with _canvas(ax) as drawn:
        for (point, times), colour in zip(groups.items(), cycle(COLOURS), strict=False):
            done = sorted(time for time in times if time is not None)
            missing = "" if len(done) == len(times) else f" ({len(done)} of {len(times)} ended)"
            drawn.step(
                [0.0, *done, latest * 1.05],
                [0.0, *((i + 1) / len(times) for i in range(len(done))), len(done) / len(times)],
                where="post",
                color=colour,
                label=", ".join(map(written, point)) + missing,
            )
        drawn.set_xlim(0, latest * 1.05)
        drawn.set_ylim(0, 1.02)
        drawn.set_xlabel("completion time, s")
        drawn.set_ylabel("share of transfers")
        if columns:
            drawn.legend(title=", ".join(map(short, columns)), frameon=False)
    return drawn


def distribution(
    found: Result | Sweep, what: str = "rtt", of: str | None = None, *, ax: Axes | None = None
) -> Axes:
    """The cumulative distribution of times: the share of samples that took no longer.

    `what` is "rtt", the round-trip time, "srtt", the smoothed one, "delay", the one-way delay of
    datagrams, or "queue_delay". Of a run there is a line for each flow, or for each direction of a
    link with a queue; of a sweep, which has to keep distributions (`latency = "distributions"`),
    one for each point and flow, of all runs together. `of` picks a flow, or of a run a direction.
    """
    times = distributions.Times.of(found, what, of)
    with _canvas(ax) as drawn:
        distributions.draw_lines(drawn, times)
        distributions.draw_legend(drawn, times.heading)
    return drawn


def boxes(
    sweep: Sweep,
    what: str = "rtt",
    of: str | None = None,
    *,
    over: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The same distributions of a sweep as boxes, over a swept key, in colours for the others.

    A box is from the first to the third quartile, with a line at the median; its whiskers are at
    5 % and 95 %, the dot is at 99 %. `over` defaults to the first key that varies.
    """
    times = distributions.Times.of(sweep, what, of)
    with _canvas(ax) as drawn:
        others = distributions.draw_boxes(drawn, times, over)
        distributions.draw_legend(drawn, ", ".join(others))
    return drawn


def latency(found: Result | Sweep, title: str) -> Figure:
    """All distributions of round-trip times and delays in one figure.

    Of a run those of its flows and queues, of a sweep those of its points, as boxes if there are
    too many for lines.
    """
    return distributions.draw_all(found, title)


def time_sequence(
    events: Result | pl.DataFrame,
    flow: str | None = None,
    *,
    between: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A time-sequence graph of a connection's sender: segments sent, retransmissions in another
    colour, acknowledgments, SACK blocks, notices of corruption, and timeouts.

    Takes a run with `events=True`, or the frame of `read_events`. `between` limits the graph to two
    times, in seconds.
    """
    kept = events.events if isinstance(events, Result) else events
    if kept is None:
        raise UserError("this run kept no events: run it with events=True")
    log = _of_sender(kept, flow)
    start, end = between or (0.0, float(log["t_s"].max()))  # type: ignore[arg-type]
    if not start < end:
        raise UserError(f"expected two times, the earlier first, not {start:g} and {end:g}")
    log = log.filter(log["t_s"].is_between(start, end))

    def of(kind: str, *columns: str) -> list[Any]:
        """Times and values of the events of a kind."""
        rows = log.filter(log["event"] == kind)
        names = ["t_s", *columns]
        return [rows[name].to_numpy() if name in rows.columns else [] for name in names]

    with _canvas(ax) as drawn:
        t, first, length, again = of("sent", "start", "len", "again")
        again = again.astype(bool)
        for picked, colour, marker, label in (
            (~again, BLUE, "_", "sent"),
            (again, ORANGE, "^", "sent again"),
        ):
            low, high = first[picked] / 1e3, (first + length)[picked] / 1e3
            drawn.vlines(t[picked], low, high, color=colour, linewidth=1.2, label=label, zorder=3)
            drawn.plot(t[picked], high, marker, markersize=3, color=colour, zorder=3)
        t, low, high = of("sacked", "start", "end")
        if len(t):
            drawn.vlines(t, low / 1e3, high / 1e3, color=SKY, linewidth=1.2, label="SACK")
        t, una = of("acknowledged", "una")
        drawn.step(t, una / 1e3, where="post", color=GREEN, linewidth=1.2, label="ACK")
        log = log.filter((log["event"] != "loss") | (log["signal"] == "notice"))
        t, low = of("loss", "start")
        if len(t):
            # Hollow: what is sent again at once is seen in it.
            (diamonds,) = drawn.plot(t, low / 1e3, "D", color=PURPLE, label="notice")
            diamonds.set(markersize=7, markerfacecolor="none")
        for i, t in enumerate(of("timed-out")[0]):
            drawn.axvline(t, color=GREY, linestyle=":", linewidth=1.2, label="_" * i + "timeout")
        over_time(drawn, "sequence number, kB", start)
        drawn.set_xlim(start, end)
        drawn.legend(frameon=False, loc="upper left")
    return drawn


def _of_sender(log: pl.DataFrame, flow: str | None) -> pl.DataFrame:
    """The events of the end of a flow that sent the most."""
    flows: list[str] = log[FLOW].unique(maintain_order=True).to_list()
    if flow is None and len(flows) > 1:
        raise UserError(f"which flow? There are {', '.join(flows)}")
    name = flows[0] if flow is None else flow
    if name not in flows:
        raise unknown("flow", name, flows)
    log = log.filter(log[FLOW] == name)
    sent = log.filter(log["event"] == "sent").select("node", "len")
    most = sent.group_by("node").sum().sort("len", "node")["node"]
    return log.filter(log["node"] == most[-1])


def _longest(rows: pl.DataFrame) -> int:
    return max(rows["packets"], default=0)


def trace(result: Result, title: str) -> Figure:
    """The congestion window of every flow, its round-trip times, and the queues, over time."""
    queues = {name: rows for name, rows in result.queues.items() if rows["packets"].max()}
    with figure(9, 6.5 if queues else 4.6) as drawn:
        panels: Sequence[Axes] = drawn.subplots(3 if queues else 2, 1, sharex=True)
        colours = [BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK]
        for i, (name, rows) in enumerate(result.flows.items()):
            colour = colours[i % len(colours)]
            t = rows["t_s"].to_numpy()
            kilobytes = {
                column: rows[column].to_numpy() / 1e3
                for column in ("cwnd_bytes", "cwnd_plus_dupacked_bytes")
            }
            widened = kilobytes["cwnd_plus_dupacked_bytes"]
            panels[0].step(t, widened, where="post", color=colour, alpha=0.35, linewidth=0.9)
            panels[0].step(t, kilobytes["cwnd_bytes"], where="post", color=colour, label=text(name))
            panels[1].step(t, rows["srtt_s"].to_numpy() * 1e3, where="post", color=colour)
            rto = rows["rto_s"].to_numpy() * 1e3
            panels[1].step(t, rto, where="post", color=colour, alpha=0.45, linestyle=":")
        panels[0].set_title(text(title))
        panels[0].set_ylabel("cwnd, kB\n(pale: + dupacked)")
        panels[0].legend(loc="upper right", ncols=4)
        panels[1].set_ylabel("smoothed RTT, ms\n(dotted: RTO)")
        panels[1].set_yscale("log")
        for i, (name, rows) in enumerate(queues.items()):
            colour = colours[i % len(colours)]
            panels[2].step(
                rows["t_s"].to_numpy(),
                rows["packets"].to_numpy(),
                where="post",
                color=colour,
                linewidth=0.9,
                label=text(name),
            )
        if queues:
            panels[2].set_ylabel("queue, packets")
            panels[2].legend(loc="upper right", ncols=4)
        panels[-1].set_xlabel("time, s")
        panels[-1].set_xlim(left=0)
    return drawn
