"""The command `lasthop advise`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lasthop import terminal
from lasthop.errors import UserError
from lasthop.options import AsJson, Settings, Threads, settings_of
from lasthop.remedy import Goal
from lasthop.scenario import Scenario


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
    threads: Threads = 0,
    settings: Settings = None,
    as_json: AsJson = False,
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
    put = settings_of(settings)
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


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(advise)
