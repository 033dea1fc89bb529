"""What the commands show and write of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from lasthop import terminal, units
from lasthop.files import whole

if TYPE_CHECKING:
    from lasthop.journal import Summary
    from lasthop.results import Result


def run(result: Result, title: str, seed: int) -> None:
    """A line for every flow."""
    rows = result.rows.to_dicts()
    # Those of the run, the same in every row.
    on_links = ", ".join(f"{rows[0][count]} {count}" for count in ("dropped", "corrupted", "lost"))
    shown = terminal.table(
        escape(title), f"packets on all links: {on_links}; seed {seed}, digest {result.digest}"
    )
    shown.add_column("flow", overflow="fold")
    counts = ("segments", "retransmissions", "timeouts", "reductions", "notices")
    for column in ("goodput", "time", "segments", "resent", "timeouts", "reductions", "notices"):
        shown.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        ended = row["completed_s"]
        shown.add_row(
            escape(f"{row['flow']}: {row['from']} → {row['to']}"),
            units.rate(row["goodput_bps"]),
            units.duration(round(row["duration_s"] if ended is None else ended, 3)),
            *(str(row[count]) for count in counts),
        )
    terminal.out().print(shown)


def trace(result: Result, title: str, folder: Path, kind: str) -> None:
    """Writes the time series, as "csv" or "parquet", and a picture of them."""
    from lasthop import plots

    folder.mkdir(parents=True, exist_ok=True)
    named = [(f"flow-{name}", rows) for name, rows in result.flows.items()]
    named += [(f"queue-{name}", rows) for name, rows in result.queues.items()]
    for name, rows in named:
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in name.replace("->", "-to-"))
        path = folder / f"{safe}.{kind}"
        with whole(path) as new:
            if kind == "csv":
                rows.write_csv(new)
            else:
                rows.write_parquet(new)
        terminal.written(path, "time series")
    terminal.written(plots.save(plots.trace(result, title), folder / "trace.png"), "picture")


def sweep(done: Summary, title: str, metric: str) -> None:
    """A line with mean and interval for every point."""
    is_rate = metric.endswith("_bps")
    largest = max((estimate.value for estimate in done.estimates.values()), default=0)
    shown = terminal.table(escape(title), "mean and 95 % confidence interval")
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
