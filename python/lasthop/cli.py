"""The command `lasthop`.

What takes long to import (polars, matplotlib, scipy) is imported where it is used: `--help` must
be quick.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from lasthop import _lasthop as engine
from lasthop import (
    advise_commands,
    checks,
    completion,
    endings,
    files,
    lab,
    library,
    pictures,
    run_commands,
    shell_commands,
    sweep_commands,
    terminal,
    transfer_commands,
)
from lasthop.errors import USER_ERROR, UserError, printable
from lasthop.options import AsJson, Force, Settings, Threads, settings_of
from lasthop.scenario import Scenario

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
    force: Force = False,
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
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Report all mistakes in scenario files, without running them."""
    put = settings_of(settings)
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


run_commands.register(app)
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


sweep_commands.register(app)


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
    threads: Threads = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Default: reports/ID."),
    ] = None,
    force: Force = False,
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


advise_commands.register(app)


@app.command("list")
def list_() -> None:
    """List the scenarios, the experiments, and the mechanisms and boxes of scenario files."""
    from lasthop import publications

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
    shown.show_header = False
    terminal.out().print(shown)
