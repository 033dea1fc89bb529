"""The command `lasthop`.

What takes long to import (polars, matplotlib, scipy) is imported where it is used: `--help` must
be quick.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lasthop import _lasthop as engine
from lasthop import (
    checks,
    completion,
    endings,
    files,
    journal,
    lab,
    library,
    pictures,
    publications,
    results,
    shell_commands,
    show,
    terminal,
    transfer_commands,
    units,
)
from lasthop.errors import INTERRUPTED, RUN_FAILED, USER_ERROR, UserError, printable, unknown
from lasthop.remedy import Goal
from lasthop.scenario import Scenario, setting

app = typer.Typer(
    name="lasthop",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="TCP over lossy last hops (satellite, radio, mobile) in a deterministic simulator.\n\n"
    "Exit status: 0 done, 1 a run or a connection failed, 2 a mistake of the user, 130"
    " interrupted.",
    epilog="A newcomer starts with: lasthop demo",
)

_File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A scenario file, or a name from `lasthop list`.",
        autocompletion=completion.scenarios,
    ),
]
_Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the file, such as links.0.rate='10 Mbit/s'. Repeatable.",
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
_Latency = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw the distributions of round-trip times and delays: .png, .svg or .pdf.",
    ),
]
_Force = Annotated[bool, typer.Option("--force", help="Replace files that lasthop did not write.")]
_Threads = Annotated[
    int, typer.Option(min=0, max=1024, help="Parallel threads; 0 uses every core.")
]


class Table(StrEnum):
    """A file format for tables."""

    CSV = "csv"
    PARQUET = "parquet"


def main() -> None:
    """Runs the command. No mistake of the user's ends in a traceback."""
    sys.exit(endings.status(lambda: app(prog_name="lasthop")))


def _version(wanted: bool) -> None:
    if wanted:
        print(f"lasthop {engine.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="PNG", help="The picture's file.")
    ] = Path("reports/demo.png"),
    seeds: Annotated[int | None, typer.Option(min=2, help="Runs a point.")] = None,
    force: _Force = False,
) -> None:
    """Show what a noisy satellite hop does to TCP, and how error notification helps."""
    from lasthop.demo import show

    lab.check_seeds(1, seeds or 1)
    with endings.writing():
        files.claim(pictures.known(output), force=force)
        show(output, seeds, force=force)


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Scenario files, or names from `lasthop list`.",
            autocompletion=completion.scenarios,
        ),
    ],
    settings: _Set = None,
    as_json: _Json = False,
) -> None:
    """Report all mistakes in scenario files, without running them."""
    put = dict(setting(text) for text in settings or ())
    checked = [checks.check(file, settings=put) for file in files]
    for one in checked:
        if one.outline is None:
            terminal.say_error(one.report)
        else:
            terminal.say(f"{terminal.escape(one.file)}[dim]: {checks.words(one.outline)}[/]")
    if as_json:
        looked_at = [one.as_dict() for one in checked]
        print(json.dumps({"lasthop": engine.__version__, "files": looked_at}, indent=2))
    if any(one.outline is None for one in checked):
        raise typer.Exit(USER_ERROR)


@app.command()
def man() -> None:
    """Print the manual page of all commands; to read it: lasthop man | man -l -"""
    from lasthop import manual

    print(manual.page(typer.main.get_group(app)), end="")


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors and other programs."""
    print(json.dumps(json.loads(engine.schema()), indent=2, ensure_ascii=False))


@app.command()
def run(
    file: _File,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="The seed of all random numbers.")
    ] = 1,
    settings: _Set = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write time series and a picture of them to this folder."),
    ] = None,
    table: Annotated[
        Table | None,
        typer.Option("--format", help="The file format of --trace's time series; default: csv."),
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write packets to this pcapng file, for Wireshark."),
    ] = None,
    pcap_at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLACE",
            help="Only packets at this node, or sent in this direction of a link, such as 'a->b'."
            " Repeatable.",
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the events of all connections to this file, as JSON lines."
        ),
    ] = None,
    latency: _Latency = None,
    byte_mode: Annotated[
        bool,
        typer.Option(
            "--bytes", help="Write every packet as bytes and parse it again, before every link."
        ),
    ] = False,
    testbed: Annotated[
        bool,
        typer.Option("--testbed", help="Run on real packets, in real time; needs Linux and root."),
    ] = False,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Run a scenario once."""
    if latency is not None:
        pictures.known(latency)
    if testbed:
        if trace or table or pcap or pcap_at or events or byte_mode:
            raise UserError(
                "--testbed shows no time series, packets or events, which only the lab does: leave"
                " out --trace, --format, --pcap, --pcap-at, --events and --bytes"
            )
        _on_testbed(_scenario(file, settings), seed, as_json, latency, force)
        return
    if pcap_at and pcap is None:
        raise UserError("--pcap-at says where packets are seen, --pcap where they go: give both")
    if table is not None and trace is None:
        raise UserError("--format is that of the time series: give --trace DIR, too")
    if force and trace is None and pcap is None and events is None and latency is None:
        raise UserError("--force is about files: give --trace, --pcap, --events or --latency, too")
    scenario = _scenario(file, settings)
    outline = scenario.outline()
    with endings.writing():
        kind = table or Table.CSV
        outputs = [] if latency is None else [latency]
        if trace is not None:
            files.claim_folder(trace)
            groups = {
                "flow": outline.flows,
                "delivered": outline.flows,
                "queue": outline.links,
            }
            series = show.series_files(trace, kind, groups)
            outputs += [*series, trace / show.PICTURE]
        files.claim(*outputs, inputs=scenario.inputs, force=force)
        result = lab.run(
            scenario,
            seed=seed,
            trace=trace is not None,
            byte_mode=byte_mode,
            pcap=pcap,
            pcap_at=pcap_at or (),
            events=events,
            force=force,
        )
    if as_json:
        found = {
            "seed": seed,
            "digest": result.digest,
            "flows": result.rows.to_dicts(),
            "box_drops": result.box_drops.to_dicts(),
            "box_counts": result.box_counts.to_dicts(),
        }
        print(json.dumps({**result.about, **found}, indent=2))
    else:
        show.run(result, outline.title, seed)
    if pcap is not None:
        terminal.written(pcap, "packets")
    if events is not None:
        terminal.written(events, "events")
    if trace is not None:
        with endings.writing():
            show.trace(result, outline.title, trace, kind, inputs=scenario.inputs, force=force)
    if latency is not None:
        with endings.writing():
            show.latency(result, outline.title, latency, force=force)
    if outline.points > 1 and not as_json:
        terminal.say(
            f"[dim]its sweep has {outline.points} points: [/]lasthop sweep"
            f" {terminal.escape(file)}[dim] runs them all[/]"
        )


def _on_testbed(
    scenario: Scenario, seed: int, as_json: bool, latency: Path | None, force: bool
) -> None:
    outline = scenario.outline()
    if latency is not None:
        with endings.writing():
            files.claim(latency, inputs=scenario.inputs, force=force)
    if not as_json:
        terminal.say(f"[dim]real packets for at most {units.duration(outline.duration_s)}[/]")
    # SIGTERM cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    result = lab.run(scenario, seed=seed, testbed=True)
    assert result.health is not None
    if as_json:
        found = {
            "seed": seed,
            "flows": result.rows.to_dicts(),
            "box_drops": result.box_drops.to_dicts(),
            "box_counts": result.box_counts.to_dicts(),
            "testbed": asdict(result.health),
        }
        print(json.dumps({**result.about, **found}, indent=2))
    else:
        show.run(result, outline.title, seed)
        show.health(result.health)
    if latency is not None:
        with endings.writing():
            show.latency(result, outline.title, latency, force=force)
    if result.health.void is not None:
        raise typer.Exit(RUN_FAILED)


transfer_commands.register(app)
shell_commands.register(app)

_testbed = typer.Typer(no_args_is_help=True, help="Clean up after runs on real packets.")
app.add_typer(_testbed, name="testbed")


@_testbed.command("clean")
def clean() -> None:
    """Remove and list what killed runs, transfers and shells have left."""
    removed = lab.clean()
    for name in removed:
        print(printable(name))
    terminal.say(f"[dim]{len(removed)} removed[/]")


@app.command()
def sweep(
    file: _File,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs a point; else the file's.")] = None,
    threads: _Threads = 0,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on the workers of this dask scheduler, such as tcp://host:8786.",
        ),
    ] = None,
    settings: _Set = None,
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
    latency: _Latency = None,
    force: _Force = False,
    as_json: _Json = False,
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
    scenario = _scenario(file, settings)
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


@app.command()
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="An experiment such as bbn8333/sim1, a publication, or the beginning of names.",
            autocompletion=completion.experiments,
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Only the figures, with 3 seeds.")] = False,
    seeds: Annotated[int | None, typer.Option(min=2, help="Runs a point.")] = None,
    threads: _Threads = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Default: reports/ID."),
    ] = None,
    force: _Force = False,
) -> None:
    """Run published experiments; report published and measured values side by side.

    Finished runs are kept until all is done: the same command goes on with them after whatever
    ended it.
    """
    from lasthop.publications.reproduction import reproduce as run_experiments

    if quick and seeds is not None:
        raise UserError("--quick and --seeds both say how many runs a point gets: choose one")
    with endings.writing():
        run_experiments(experiment, output, seeds=seeds, quick=quick, threads=threads, force=force)


@app.command()
def advise(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="A scenario file, or a name from `lasthop list`."),
    ] = None,
    rate: Annotated[str | None, typer.Option(help="The path's rate, such as '2 Mbit/s'.")] = None,
    delay: Annotated[
        str | None, typer.Option(help="The path's one-way delay, such as '300 ms'.")
    ] = None,
    loss: Annotated[
        float, typer.Option(min=0, max=1, help="The share of packets that are lost.")
    ] = 0.0,
    burst: Annotated[
        float | None, typer.Option(min=1, help="The mean length of a loss burst, packets.")
    ] = None,
    bit_errors: Annotated[
        float, typer.Option(min=0, max=1, help="The bit error rate of the link.")
    ] = 0.0,
    outage: Annotated[
        str | None, typer.Option(help="The mean length of outages, such as '3 s'.")
    ] = None,
    between_outages: Annotated[str, typer.Option(help="The mean time between outages.")] = "60 s",
    queue: Annotated[
        str | None, typer.Option(help="The queue limit, such as '50 packets'.")
    ] = None,
    size: Annotated[
        str | None, typer.Option(help="The size of the transfer, such as '1 MB'; default: no end.")
    ] = None,
    flow: Annotated[str | None, typer.Option(help="The name of the scenario's flow.")] = None,
    goal: Annotated[
        Goal,
        typer.Option(
            help="What is to be better: goodput (or the time of a transfer), latency (the round"
            " trip under load), or page (the time of a web page)."
        ),
    ] = Goal.GOODPUT,
    seeds: Annotated[int, typer.Option(min=2, help="Runs of each remedy.")] = 20,
    threads: _Threads = 0,
    settings: _Set = None,
    as_json: _Json = False,
) -> None:
    """Say what limits a path, what would help by how much, and who would have to change what."""
    from lasthop import advice, show_advice

    given = advice.Path(
        rate or "",
        delay or "",
        loss=loss,
        burst=burst,
        bit_errors=bit_errors,
        outage=outage,
        between_outages=between_outages,
        queue=queue,
        size=size,
    )
    on_path = given != advice.Path("", "")
    if file is not None and on_path:
        raise UserError("a scenario file has its path in it: give the file, or --rate and --delay")
    if file is None and (rate is None or delay is None):
        raise UserError("advice takes a path: a scenario file, or --rate and --delay")
    if size is not None and goal is Goal.PAGE:
        raise UserError("--goal page says what is transferred: leave --size out")
    scenario = given.scenario() if file is None else Scenario.load(file)
    put = dict(setting(text) for text in settings or ())
    with terminal.progress("simulating remedies") as progress:
        said = advice.advise(
            scenario.set(put),
            flow=flow,
            goal=goal,
            seeds=seeds,
            threads=threads,
            progress=progress,
        )
    if as_json:
        print(json.dumps(said.as_dict(), indent=2))
    else:
        show_advice.show(said)


@app.command("list")
def list_() -> None:
    """List the scenarios, the experiments, and the mechanisms and boxes of scenario files."""
    shown = terminal.table()
    for _ in range(3):
        shown.add_column(overflow="fold")
    titled = (
        ("scenarios", {name: Scenario.load(name).outline().title for name in library.names()}),
        ("experiments", {of.id: of.load().title for of in publications.experiments()}),
    )
    for what, titles in titled:
        for i, (name, title) in enumerate(titles.items()):
            shown.add_row(
                f"[bold]{'' if i else what}[/]", terminal.escape(name), terminal.escape(title)
            )
    for what, names in (
        ("recoveries", engine.recoveries()),
        ("congestion controllers", engine.congestion_controllers()),
        ("increase functions", engine.increase_functions()),
        ("mechanisms", engine.mechanisms()),
        ("applications", engine.applications()),
        ("boxes", engine.boxes()),
        ("profiles", engine.profiles()),
    ):
        shown.add_row(f"[bold]{what}[/]", terminal.escape(", ".join(names)))
    console = terminal.out()
    shown.show_header = False
    console.print(shown)


def _scenario(file: str, settings: list[str] | None) -> Scenario:
    return Scenario.load(file).set(dict(setting(text) for text in settings or ()))
