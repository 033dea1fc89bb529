"""The command `lasthop sweep`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lasthop import endings, files, journal, lab, pictures, results, show, terminal
from lasthop.errors import INTERRUPTED, UserError, unknown
from lasthop.options import AsJson, Force, Latency, ScenarioFile, Settings, Threads, scenario_of


def sweep(
    file: ScenarioFile,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs a point; else the file's.")] = None,
    threads: Threads = 0,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on the workers of this dask scheduler, such as tcp://host:8786.",
        ),
    ] = None,
    settings: Settings = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write all rows: .parquet or .csv."),
    ] = None,
    metric: Annotated[str, typer.Option(help="The column to summarise.")] = "goodput_bps",
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw the metric over the first swept key: .png, .svg or .pdf."
        ),
    ] = None,
    latency: Latency = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run every point of a scenario's sweep with every seed, in parallel.

    Here, or on a cluster: the rows are the same. With -o, finished runs are kept as they come, and
    the same command goes on with them after whatever ended it. With --latency, rows have the
    distributions, too.
    """
    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise UserError(f"rows go to a .parquet or a .csv file, not to {str(output)!r}")
    for drawing in (picture, latency):
        if drawing is not None:
            pictures.known(drawing)
    if force and output is None and picture is None and latency is None:
        raise UserError("--force is about files: give -o, --picture or --latency, too")
    scenario = scenario_of(file, settings)
    if latency is not None:
        scenario = scenario.set({"latency": "distributions"})
    outline = scenario.outline()
    if picture is not None and outline.points < 2:
        raise UserError("nothing is swept: there is nothing to draw a metric over")
    if outline.columns.get(metric, "text") == "text":
        numbers = [name for name, kind in outline.columns.items() if kind != "text"]
        raise unknown("column of numbers", metric, numbers)
    seeds = seeds or outline.seeds
    lab.check_seeds(1, seeds, threads)
    outputs = [path for path in (output, picture, latency) if path is not None]
    with endings.writing():
        files.claim(*outputs, inputs=scenario.inputs, force=force)
    runs = outline.points * seeds
    kept = "; finished runs are kept: make room and run the same command again" if output else ""
    with endings.writing(), journal.place(output) as part, endings.writing(kept):
        interrupted = False
        try:
            with terminal.progress(terminal.escape(outline.title)) as progress:
                before = journal.record(
                    scenario,
                    part,
                    seeds=seeds,
                    threads=threads,
                    cluster=cluster,
                    progress=progress,
                )
                if before:
                    terminal.say(f"{before} of {runs} runs were kept from before")
        except KeyboardInterrupt:
            interrupted = True
        done = journal.summary(part, outline.columns, metric)
        if (picture is not None or latency is not None) and not interrupted:
            swept = results.Sweep(journal.scan(part, outline.columns).collect())
            if picture is not None:
                show.curves(swept, outline.title, metric, picture, force=force)
            if latency is not None:
                show.latency(swept, outline.title, latency, force=force)
        if output is not None and not interrupted:
            journal.finish(part, output, outline.columns, scenario)
            terminal.written(output, f"all rows of {done.runs} runs")
    if as_json:
        print(json.dumps({**results.about(scenario), "metric": metric, **done.as_dict()}, indent=2))
    elif done.runs:
        show.sweep(done, outline.title, metric)
    if interrupted:
        kept = "nothing else is kept without -o"
        if output is not None:
            kept = (
                f"{terminal.escape(str(part))} keeps them, and the same command goes on from there"
            )
        words = f"[bold]interrupted[/] after {done.runs} of {runs} runs: {kept}"
        terminal.err().print(words, soft_wrap=True)
        raise typer.Exit(INTERRUPTED)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(sweep)
