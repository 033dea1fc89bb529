"""Running scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from lasthop import _lasthop as engine
from lasthop.errors import UserError
from lasthop.events import read_events
from lasthop.files import claim, whole
from lasthop.results import (
    Buffer,
    Health,
    Progress,
    Result,
    Sweep,
    about,
    frame,
    frame_of_buffers,
    with_shares,
)
from lasthop.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

#: Seeds are below this: a column holds them.
NO_SEED = 2**63
MOST_THREADS = 1024


def run(
    scenario: str | Path | Scenario,
    *,
    settings: Mapping[str, object] | None = None,
    seed: int = 1,
    trace: bool = False,
    byte_mode: bool = False,
    pcap: str | Path | None = None,
    pcap_at: Sequence[str] = (),
    events: str | Path | bool | None = None,
    testbed: bool = False,
    force: bool = False,
) -> Result:
    """Runs a scenario once.

    `settings` override keys of the file, such as {"links.0.rate": "10 Mbit/s"}. `trace` fills the
    result's time series. The same scenario and seed give the same result on every machine.

    `pcap` is a pcapng file to write. `pcap_at` selects directions of links ("a->b"), captured as
    packets are sent, and nodes ("a"), with all packets that they send or receive; the default is
    all links. In `byte_mode` every packet is written as bytes and parsed again before every link,
    which changes only the speed.

    `events` is a file for the event log of every connection, one JSON object a line; with True,
    the result has the events as a frame.

    Files that lasthop did not write are replaced only with `force`, files of the scenario never.

    `testbed` runs the scenario with real packets, for the scenario's duration or until all flows
    have completed: see the result's `health`. It needs Linux and root, and has no time series,
    packets or events.
    """
    scenario = _scenario(scenario, settings)
    check_seeds(seed)
    if testbed:
        if trace or byte_mode or pcap is not None or events:
            raise UserError("the testbed has no traces, captures or logs of events: only the lab")
        return _on_testbed(scenario, seed)
    if events is True:
        with TemporaryDirectory(prefix="lasthop-") as folder:
            log = Path(folder) / "events.jsonl"
            result = run(
                scenario,
                seed=seed,
                trace=trace,
                byte_mode=byte_mode,
                pcap=pcap,
                pcap_at=pcap_at,
                events=log,
            )
            return replace(result, events=read_events(log))
    outputs = [Path(file) for file in (pcap, events or None) if file is not None]
    if outputs:
        claim(*outputs, inputs=scenario.inputs, force=force)
    with ExitStack() as files:
        done = engine.run(
            scenario.source,
            scenario.name,
            overrides=scenario.overrides,
            seed=seed,
            trace=trace,
            byte_mode=byte_mode,
            pcap=files.enter_context(whole(Path(pcap))) if pcap is not None else None,
            pcap_at=pcap_at,
            events=files.enter_context(whole(Path(events))) if events else None,
        )
    series = cast("dict[str, dict[str, dict[str, Buffer]]]", done["series"] or {})
    named = {
        what: {name: frame_of_buffers(columns) for name, columns in of.items()}
        for what, of in series.items()
    }
    return replace(
        _result(scenario, done),
        digest=str(done["digest"]),
        flows=named.get("flows", {}),
        deliveries=named.get("deliveries", {}),
        queues=named.get("queues", {}),
        boxes=named.get("boxes", {}),
        fast_path_share=cast("float | None", done["fast_path_share"]),
    )


def _result(scenario: Scenario, done: Mapping[str, object]) -> Result:
    """What a run has in the lab and on the testbed alike."""
    return Result(
        rows=frame(cast("dict[str, list[Any]]", done["rows"])),
        links=frame(cast("dict[str, list[Any]]", done["links"])),
        box_drops=frame(cast("dict[str, list[Any]]", done["box_drops"])),
        box_counts=frame(cast("dict[str, list[Any]]", done["box_counts"])),
        digest="",
        distributions=_distributions(done),
        about=about(scenario),
    )


def _distributions(done: Mapping[str, object]) -> dict[str, dict[str, pl.DataFrame]]:
    found: dict[str, dict[str, pl.DataFrame]] = {}
    for what, of, columns in cast(
        "list[tuple[str, str, dict[str, Buffer]]]", done["distributions"]
    ):
        found.setdefault(what, {})[of] = with_shares(frame_of_buffers(columns))
    return found


def check_seeds(first: int, count: int = 1, threads: int = 0) -> None:
    """Refuses seeds that no column can hold, and numbers of runs and threads that there are not."""
    if not 0 <= first < NO_SEED:
        raise UserError(f"no seed {first}: expected 0 to 2**63 - 1")
    # Of none, the engine has more to say.
    if not 0 <= count < NO_SEED - first:
        raise UserError(f"no {count} seeds from {first} on: expected at least 1, all below 2**63")
    if not 0 <= threads <= MOST_THREADS:
        raise UserError(f"no {threads} threads: expected 1 to {MOST_THREADS}, or 0 for every core")


def _on_testbed(scenario: Scenario, seed: int) -> Result:
    done = engine.run_testbed(
        scenario.source, scenario.name, overrides=scenario.overrides, seed=seed
    )
    health = Health(**cast("dict[str, Any]", done["health"]))
    return replace(_result(scenario, done), health=health)


def clean() -> list[str]:
    """Removes what is left of runs and transfers whose process was killed, and says what."""
    return engine.clean_testbed()


def sweep(
    scenario: str | Path | Scenario,
    *,
    settings: Mapping[str, object] | None = None,
    over: Mapping[str, object] | None = None,
    seeds: int | None = None,
    first_seed: int = 1,
    threads: int = 0,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Runs every point of a scenario's sweep with every seed, in parallel.

    `over` replaces the scenario's sweep: keys with their values, such as
    {"links.0.errors.bit": [0, 1e-6, 1e-5]}. `seeds` defaults to the scenario's number. `threads` 0
    uses every core. `progress` is called with the number of finished runs and of all runs. The rows
    do not depend on the number of threads.

    `cluster` is the address of a dask scheduler, such as "tcp://host:8786". Its workers then
    simulate the runs, with the same rows.
    """
    scenario = _scenario(scenario, settings)
    check_seeds(first_seed, 1 if seeds is None else seeds, threads)
    if over is not None:
        scenario = scenario.over(over)
    if cluster is not None:
        from lasthop import journal

        outline = scenario.outline()
        with journal.place(None) as part:
            journal.record(
                scenario,
                part,
                seeds=outline.seeds if seeds is None else seeds,
                first_seed=first_seed,
                threads=threads,
                cluster=cluster,
                progress=progress,
            )
            return Sweep(journal.scan(part, outline.columns).collect(), about(scenario))
    columns = engine.sweep(
        scenario.source,
        scenario.name,
        overrides=scenario.overrides,
        seeds=seeds,
        first_seed=first_seed,
        threads=threads,
        progress=progress,
    )
    return Sweep(frame(columns), about(scenario))


def sweeps(
    scenarios: Sequence[Scenario],
    *,
    seeds: int | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> list[Sweep]:
    """Several sweeps, one after the other, with one count of the runs."""
    return list(one_by_one(scenarios, seeds=seeds, threads=threads, progress=progress))


def one_by_one(
    scenarios: Sequence[Scenario],
    *,
    seeds: int | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Iterator[Sweep]:
    """The same, each as soon as it is done."""
    outlines = [scenario.outline() for scenario in scenarios]
    all_runs = [outline.points * (seeds or outline.seeds) for outline in outlines]
    done, total = 0, sum(all_runs)
    for scenario, runs in zip(scenarios, all_runs, strict=True):
        before = done

        def report(now: int, _: int, before: int = before) -> None:
            if progress is not None:
                progress(before + now, total)

        yield sweep(scenario, seeds=seeds, threads=threads, progress=report)
        done += runs


def _scenario(given: str | Path | Scenario, settings: Mapping[str, object] | None) -> Scenario:
    scenario = given if isinstance(given, Scenario) else Scenario.load(given)
    return scenario.set(settings) if settings else scenario
