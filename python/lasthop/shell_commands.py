"""The command `lasthop shell`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from lasthop import show, terminal, units
from lasthop.errors import INTERRUPTED
from lasthop.options import ScenarioFile, Seed, Settings, scenario_of
from lasthop.results import Health
from lasthop.shell import (
    NOT_EXECUTABLE,
    NOT_FOUND,
    Ended,
    Shell,
    become_permitted,
    caller,
    ended_by_signals,
)


def shell(
    file: ScenarioFile,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[--] COMMAND", help="Default: an interactive shell."),
    ] = None,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this server behind the hop, in a network of its own, by the system's shell;"
            " default: the network of this machine is there.",
        ),
    ] = None,
    remedy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Put this remedy's box before the hop (or boxes at both ends): spoofer, snoop,"
            " pair, MTCP, SRP.",
        ),
    ] = None,
    boxes: Annotated[
        list[str] | None,
        typer.Option(
            "--box",
            metavar="TABLE",
            help="Put a box before the hop, by its table in scenario files, such as"
            ' \'{ box = "spoofer", tcp = { congestion = "bbr" } }\'. Repeatable.',
        ),
    ] = None,
    congestion: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The congestion control of the kernel at both ends; default: the machine's.",
        ),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option(
            help="The scenario's flow at whose receiver COMMAND runs; it may be left out of one."
        ),
    ] = None,
    seed: Seed = 1,
    settings: Settings = None,
    as_root: Annotated[
        bool,
        typer.Option("--root", help="Keep root; default: programs run as the user of sudo."),
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Run any program behind a scenario's emulated links, on real packets; needs Linux and root.

    Its exit status is that of COMMAND. The environment has the other end's address, LASTHOP_SERVER
    and LASTHOP_SERVER_V6. With --serve, it does without root where users may make namespaces.
    """
    become_permitted(machine=serve is None)
    scenario = scenario_of(file, settings)
    index = scenario.outline().index(flow)
    said: list[str] = []
    lead_s = 0.0
    if remedy is not None or boxes:
        # It takes a moment to import.
        from lasthop.shell_boxes import with_box, with_remedy

        for text in boxes or ():
            placed = with_box(scenario, index, text)
            scenario, said = placed.scenario, [*said, *placed.words]
        if remedy is not None:
            placed = with_remedy(scenario, index, remedy)
            scenario, said, lead_s = placed.scenario, [*said, *placed.words], placed.lead_s
    user = None if as_root else caller()
    try:
        with ended_by_signals():
            network = Shell(
                scenario,
                index,
                seed=seed,
                machine=serve is None,
                congestion=congestion,
                user=user,
            )
            try:
                if not quiet:
                    _introduce(network, said, machine=serve is None)
                time.sleep(lead_s)
                status = _run(network, command or [], serve, Path(file).stem)
            finally:
                done = network.stop()
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Ended as ended:
        raise typer.Exit(ended.status) from None
    if not quiet:
        _summarize(done)
    raise typer.Exit(status)


def _introduce(network: Shell, said: list[str], *, machine: bool) -> None:
    at = network.addresses()
    client, server = (
        " and ".join(of for key, of in at.items() if key.startswith(name))
        for name in ("LASTHOP_CLIENT", "LASTHOP_SERVER")
    )
    other = "this machine" if machine else "the server"
    for words in (*said, *network.words(), f"here {client}; behind the hop {other}, {server}"):
        terminal.err().print(f"[dim]{escape(words)}[/]", soft_wrap=True)


def _run(network: Shell, command: list[str], serve: str | None, name: str) -> int:
    """Runs the programs, and returns the status of the command."""
    if serve is not None:
        unready = network.serve(serve)
        if unready is not None:
            terminal.say(f"[dim]{escape(unready)}[/]")
    try:
        status = network.run(command) if command else network.run_interactive(name)
    except OSError as error:
        terminal.say_error(f"cannot run {command[0] if command else 'a shell'!r}: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    served = network.server_status()
    if served:
        terminal.say(f"the server had ended with status {served}")
    return status


def _summarize(done: dict[str, Any]) -> None:
    """A line for every direction of a link, those of boxes, and one about the machine."""
    console = terminal.err()
    shown = terminal.table()
    counts = ("packets", "dropped", "corrupted", "lost")
    shown.add_column("link")
    for column in (*counts, "queue delay", "95 %"):
        shown.add_column(column, justify="right", no_wrap=True)
    links = done["links"]
    for i, link in enumerate(links["link"]):
        spans = (links[key][i] for key in ("queue_delay_median_s", "queue_delay_p95_s"))
        shown.add_row(
            escape(link),
            *(str(links[count][i]) for count in counts),
            *("" if span is None else units.duration(float(f"{span:.3g}")) for span in spans),
        )
    console.print(shown)
    of_boxes = [
        *zip(*(done["box_counts"][key] for key in ("node", "count", "what")), strict=True),
        *zip(*(done["box_drops"][key] for key in ("node", "packets", "reason")), strict=True),
    ]
    for node, count, what in of_boxes:
        console.print(f"[dim]{escape(f'{node}: {count} {what}')}[/]", soft_wrap=True)
    show.health(Health(**done["health"]), console=console)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(shell)
