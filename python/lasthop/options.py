"""Options and arguments that several commands have, and the scenario that they choose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lasthop import completion
from lasthop.scenario import Scenario, setting

ScenarioFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A scenario file, or a name from `lasthop list`.",
        autocompletion=completion.scenarios,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the file, such as links.0.rate='10 Mbit/s'. Repeatable.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Latency = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw the distributions of round-trip times and delays: .png, .svg or .pdf.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that lasthop did not write.")]
Threads = Annotated[int, typer.Option(min=0, max=1024, help="Parallel threads; 0 uses every core.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="The seed of all random numbers.")]


def settings_of(texts: list[str] | None) -> dict[str, object]:
    """The keys and values of `--set`."""
    return dict(setting(text) for text in texts or ())


def scenario_of(file: str, texts: list[str] | None) -> Scenario:
    """The scenario of a file or a name, with the settings of `--set`."""
    return Scenario.load(file).set(settings_of(texts))
