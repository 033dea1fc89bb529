"""Compares the lab with the testbed, and keeps the outcome in bench/results.

python bench/worlds.py                   ten scenarios, five paired runs each; needs root
python bench/worlds.py 01-clean ...      some of them; the others stay as they were kept

A scenario and a seed decide which packets of a link are lost, by their number: the same in both
worlds. What else differs is what is to be seen. Beside it, the kernel's own stack runs the same
scenarios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import peers
import record
import runs
import tabular

SCENARIOS = Path(__file__).resolve().parent / "worlds"
WORLDS = record.RESULTS / "worlds.json"

RUNS = 5
#: Runs at a time. Nearly all of their time is waiting.
PARALLEL = 3
#: What runs a scenario: the options of `lasthop run`.
STACKS: dict[str, list[str]] = {"lab": [], "testbed": ["--testbed"]} | {
    f"linux {name}": runs.linux(name) for name in ("cubic", "bbr")
}
#: By how much longer a link may be taken to be on the testbed.
SHIFTS_MS = [0.02 * step for step in range(1, 21)]


def run(scenario: Path, stack: str, seed: int) -> record.Row:
    """The row of one run."""
    row = runs.run(scenario, STACKS[stack], seed, ["payload_bps", "retransmissions", "timeouts"])
    return row | {"stack": stack, "payload_bps": round(row["payload_bps"])}


def summarised(rows: Sequence[record.Row]) -> Iterator[record.Row]:
    """One row per scenario and stack: mean and interval, and the paired difference to the lab."""
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        of = {
            stack: [r for r in rows if (r["scenario"], r["stack"]) == (scenario, stack)]
            for stack in STACKS
        }
        lab = [row["payload_bps"] for row in of["lab"]]
        for stack, own in of.items():
            rates = [row["payload_bps"] for row in own]
            summary: record.Row = {
                "scenario": scenario,
                "stack": stack,
                "runs": len(own),
                "payload_bps": round(statistics.fmean(rates)),
                "ci95_bps": interval(rates),
                "retransmissions": statistics.fmean(row["retransmissions"] for row in own),
            }
            if stack == "lab":
                summary["shifted_percent"] = shifted(scenario)
            else:
                percent = [100 * (here / there - 1) for here, there in zip(rates, lab, strict=True)]
                summary |= {
                    "beside_lab_percent": round(statistics.fmean(percent), 1),
                    "ci95_percent": interval(percent, digits=1),
                    "void": sum(row["void"] for row in own),
                    "attempts": sum(row["attempts"] for row in own),
                }
            yield summary


def shifted(scenario: str) -> list[float]:
    """What the lab makes of its own scenario if the link is a little longer, as it is where kernels
    forward: between what the mean over the seeds then lies, percent.

    A loss may then meet another segment's acknowledgment, and all that follows is different.
    """
    import polars as pl

    import lasthop
    from lasthop import units

    own = lasthop.Scenario.load(SCENARIOS / f"{scenario}.toml")
    delay_ms = 1e3 * units.parse(tomllib.loads(own.source)["links"][0]["delay"])
    delays = [f"{delay_ms + shift:.3f} ms" for shift in (0.0, *SHIFTS_MS)]
    rows = lasthop.sweep(own, over={"links.0.delay": delays}, seeds=RUNS).rows
    means = rows.group_by("links.0.delay", maintain_order=True).agg(pl.col("payload_bps"))
    first, *others = means["payload_bps"].to_list()
    percent = [
        statistics.fmean(100 * (here / there - 1) for here, there in zip(other, first, strict=True))
        for other in others
    ]
    return [round(min(percent), 1), round(max(percent), 1)]


def interval(values: Sequence[float], digits: int | None = None) -> list[float]:
    """The 95 % interval of the mean."""
    ends = peers.interval95(values) or [values[0], values[0]]
    return [round(end, digits) for end in ends]


def measure(names: Sequence[str]) -> Iterator[record.Row]:
    """Scenarios by every stack with every seed. A pair of worlds runs close together."""
    jobs = [
        (SCENARIOS / f"{name}.toml", stack, seed)
        for name in names
        for seed in range(1, RUNS + 1)
        for stack in STACKS
    ]
    rows = []
    with ThreadPoolExecutor(PARALLEL) as pool:
        for number, row in enumerate(pool.map(lambda job: run(*job), jobs), 1):
            record.say(f"{number} of {len(jobs)}: {row}")
            rows.append(row)
    yield from summarised(rows)


# --- the book's table ---


def table(result: record.Row) -> str:
    """The lab, the testbed, and the kernel's stack."""
    lines = [
        "| scenario | lab, kb/s | testbed, kb/s | testbed / lab - 1, paired | lab, link shifted "
        "| Linux CUBIC, kb/s | Linux BBR, kb/s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = result["rows"]
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        of = {row["stack"]: row for row in rows if row["scenario"] == scenario}
        rates = {
            stack: tabular.interval(row["payload_bps"], row["ci95_bps"])
            for stack, row in of.items()
        }
        low, high = of["testbed"]["ci95_percent"]
        least, most = of["lab"]["shifted_percent"]
        lines.append(
            f"| {scenario} | {rates['lab']} | {rates['testbed']} "
            f"| {of['testbed']['beside_lab_percent']:+.1f} % ({low:+.1f} to {high:+.1f}) "
            f"| {least:+.1f} to {most:+.1f} % | {rates['linux cubic']} | {rates['linux bbr']} |"
        )
    runs = rows[0]["runs"]
    void = sum(row.get("void", 0) for row in rows)
    about = f"*{runs} runs each, mean and 95 % interval; void runs among them: {void}.*"
    return tabular.captioned(lines, result, about)


def main() -> None:
    """Measures what the command line names, or everything."""
    every = sorted(file.stem for file in SCENARIOS.glob("*.toml"))
    parser = argparse.ArgumentParser(description="Compares the lab with the testbed.")
    parser.add_argument("scenario", nargs="*", choices=[[], *every], default=[])
    names = parser.parse_args().scenario or every
    others = json.loads(WORLDS.read_text())["rows"] if names != every else []
    rows = [row for row in others if row["scenario"] not in names] + list(measure(names))
    result = {"experiment": "worlds", **record.circumstances(), "unit": "bit/s, payload"}
    result["rows"] = sorted(rows, key=lambda row: str(row["scenario"]))
    record.keep(WORLDS, result)


if __name__ == "__main__":
    main()
