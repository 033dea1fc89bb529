"""What the commands show and write of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop import terminal, units
from lasthop._lasthop import __version__
from lasthop.files import claim, whole
from lasthop.pictures import text
from lasthop.terminal import escape

if TYPE_CHECKING:
    from rich.console import Console

    from lasthop.journal import Summary
    from lasthop.results import Health, Result, Sweep


#: What the columns of rates count.
GOODPUT = (
    "goodput counts the payload with 40 bytes of headers a segment (60 with IPv6), as papers do"
)


#: The counts of a sender; in two lines each where a line is shorter than this.
_COUNTS = ("segments", "resent", "timeouts", "reductions", "notices")
_HYPHENATED = ("seg-\nments", "re-\nsent", "time-\nouts", "reduc-\ntions", "no-\ntices")
_WIDE = 100


def run(result: Result, title: str, seed: int) -> None:
    """A line for every flow."""
    rows = result.rows.to_dicts()
    # Those of the run, the same in every row.
    on_links = ", ".join(f"{rows[0][count]} {count}" for count in ("dropped", "corrupted", "lost"))
    digest = f", digest {result.digest}" if result.digest else ""
    by_boxes = "".join(
        f"; boxes of {drop['node']} dropped {drop['packets']} ({drop['reason']})"
        for drop in result.box_drops.to_dicts()
    )
    by_boxes += "".join(
        f"; {count['node']}: {count['count']} {count['what']}"
        for count in result.box_counts.to_dicts()
    )
    note = f"{GOODPUT}\npackets on all links: {on_links}{by_boxes}; seed {seed}{digest}"
    shown = terminal.table(escape(title), escape(note))
    shown.add_column("flow", overflow="fold")
    counts = ("segments", "retransmissions", "timeouts", "reductions", "notices")
    wide = terminal.out().width >= _WIDE
    heads = _COUNTS if wide else _HYPHENATED
    for column in ("goodput", "payload", "time", *heads):
        shown.add_column(column, justify="right", no_wrap=True)
    # Columns that only some kinds of traffic have.
    special = {title: value for title, value in _SPECIAL.items() if any(map(value, rows))}
    for title in special:
        head = title.replace("\n", " ") if wide else title
        shown.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        ended = row["completed_s"]
        shown.add_row(
            escape(f"{row['flow']}: {row['from']} → {row['to']}"),
            units.rate(row["goodput_bps"]),
            units.rate(row["payload_bps"]),
            units.duration(round(row["duration_s"] if ended is None else ended, 3)),
            *("" if row[count] is None else str(row[count]) for count in counts),
            *(value(row) for value in special.values()),
        )
    terminal.out().print(shown)


def health(found: Health, *, console: Console | None = None) -> None:
    """A line about how well the machine kept up; on standard output unless the console is given."""
    worst, limit = (units.duration(round(span, 5)) for span in (found.worst_s, found.limit_s))
    counts = (
        f"{found.packets} packets, {found.late_share:.2%} more than {limit} late (worst {worst}),"
        f" {found.lost} lost beyond the links, steal {found.steal:.1%}"
    )
    verdict = (
        "[green]valid[/]" if found.void is None else f"[bold red]VOID[/]: {escape(found.void)}"
    )
    console = console or terminal.out()
    console.print(f"[dim]testbed: {counts}:[/] {verdict}", soft_wrap=True)


def _time_of(key: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: "" if row[key] is None else units.duration(round(row[key], 3))


def _finished(row: dict[str, Any]) -> str:
    return f"{row['finished']} of {row['started']}" if row["started"] > 1 else ""


def _lost_datagrams(row: dict[str, Any]) -> str:
    return "" if row["datagram_loss"] is None else f"{row['datagram_loss']:.3g}"


#: Of many flows or requests how many ended, and how long one took; round trips; one-way delays of
#: datagrams; of these the share lost.
_SPECIAL = {
    "finished": _finished,
    "median": _time_of("time_median_s"),
    "95 %": _time_of("time_p95_s"),
    "RTT\n95 %": _time_of("rtt_p95_s"),
    "delay\n95 %": _time_of("delay_p95_s"),
    "datagrams\nlost": _lost_datagrams,
}


def trace(
    result: Result, title: str, folder: Path, kind: str, *, inputs: Iterable[Path], force: bool
) -> None:
    """Writes the time series, as "csv" or "parquet", and a picture of them."""
    from lasthop import plots

    folder.mkdir(parents=True, exist_ok=True)
    groups = {
        "flow": result.flows,
        "delivered": result.deliveries,
        "queue": result.queues,
        "boxes": result.boxes,
    }
    paths = series_files(folder, kind, groups)
    rows_of_all = [rows for group in groups.values() for rows in group.values()]
    series = dict(zip(paths, rows_of_all, strict=True))
    picture = folder / PICTURE
    claim(*series, picture, inputs=inputs, force=force)
    for path, rows in series.items():
        with whole(path) as new:
            if kind == "csv":
                rows.write_csv(new)
            else:
                rows.write_parquet(new, metadata={"lasthop": __version__})
        terminal.written(path, "time series")
    drawn = plots.trace(result, title)
    terminal.written(plots.save(drawn, picture, force=force), "picture")


#: Of the time series, beside them.
PICTURE = "trace.png"


def series_files(folder: Path, kind: str, groups: Mapping[str, Iterable[str]]) -> list[Path]:
    """The files of time series, by what each group is of: flows, queues, boxes."""
    names = (f"{of}-{name.replace('->', '-to-')}" for of in groups for name in groups[of])
    safe = ("".join(c if c.isalnum() or c in "-_." else "-" for c in name) for name in names)
    return [folder / f"{name}.{kind}" for name in safe]


def curves(done: Sweep, title: str, metric: str, picture: Path, *, force: bool) -> None:
    """Draws a metric over the first swept key."""
    from lasthop import plots

    figure, axes = plots.subplots()
    plots.curves(done, metric, ax=axes)
    axes.set_title(f"{text(title)}\n{axes.get_title()}")
    terminal.written(plots.save(figure, picture, force=force), "picture")


def latency(found: Result | Sweep, title: str, picture: Path, *, force: bool) -> None:
    """Draws the distributions of round-trip times and delays."""
    from lasthop import plots

    drawn = plots.latency(found, title)
    terminal.written(plots.save(drawn, picture, force=force), "picture")


def sweep(done: Summary, title: str, metric: str) -> None:
    """A line with mean and interval for every point."""
    is_rate = metric.endswith("_bps")
    largest = max((estimate.value for estimate in done.estimates.values()), default=0)
    notes = ["mean and 95 % confidence interval"]
    found = done.estimates.values()
    if any(estimate.n == 1 for estimate in found):
        notes.append("one run has none")
    if any(estimate.n > 1 and not estimate.half for estimate in found):
        notes.append("without it, all runs are alike")
    about = "; ".join(notes) + (f"\n{GOODPUT}" if metric == "goodput_bps" else "")
    shown = terminal.table(escape(title), about)
    for column in done.by:
        shown.add_column(escape(column), justify="right")
    shown.add_column("runs", justify="right")
    shown.add_column(escape(metric.removesuffix("_bps") if is_rate else metric), justify="right")
    shown.add_column()
    for point, estimate in done.estimates.items():
        shown.add_row(
            *(escape(str(value)) for value in point),
            str(estimate.n),
            terminal.rate(estimate) if is_rate else terminal.number(estimate),
            terminal.bar(estimate.value / largest if largest else 0, 20, "cyan"),
        )
    terminal.out().print(shown)
