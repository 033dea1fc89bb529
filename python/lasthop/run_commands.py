"""The command `lasthop run`."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lasthop import endings, files, lab, pictures, show, terminal, units
from lasthop.errors import RUN_FAILED, UserError
from lasthop.options import AsJson, Force, Latency, ScenarioFile, Seed, Settings, scenario_of
from lasthop.scenario import Scenario


class Table(StrEnum):
    """A file format for tables."""

    CSV = "csv"
    PARQUET = "parquet"


def run(
    file: ScenarioFile,
    seed: Seed = 1,
    settings: Settings = None,
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
    latency: Latency = None,
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
    force: Force = False,
    as_json: AsJson = False,
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
        _on_testbed(scenario_of(file, settings), seed, as_json, latency, force)
        return
    if pcap_at and pcap is None:
        raise UserError("--pcap-at says where packets are seen, --pcap where they go: give both")
    if table is not None and trace is None:
        raise UserError("--format is that of the time series: give --trace DIR, too")
    if force and trace is None and pcap is None and events is None and latency is None:
        raise UserError("--force is about files: give --trace, --pcap, --events or --latency, too")
    scenario = scenario_of(file, settings)
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


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(run)
