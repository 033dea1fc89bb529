"""Transfers by our sender and by the kernel's, over the same emulated links with the same losses.

python bench/beside.py                   seven paths, three runs each; needs root
python bench/beside.py 3-loss ...        some of them; the others stay as they were kept

Both senders have the scenario's congestion control: CUBIC, or BBR. Each run of ours is followed by
one of the kernel's with the same seed, which decides by number which packets of the link are lost.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import peers
import record
import runs
import tabular

SCENARIOS = Path(__file__).resolve().parent / "beside"
BESIDE = record.RESULTS / "beside.json"

RUNS = 3
STACKS = ("lasthop", "linux")
COLUMNS = ["completed_s", "retransmissions", "timeouts"]


def options(name: str, stack: str) -> list[str]:
    """The options of a run by a stack."""
    if stack == "lasthop":
        return ["--testbed"]
    scenario = tomllib.loads((SCENARIOS / f"{name}.toml").read_text())
    return runs.linux(scenario["flows"][0]["tcp"]["congestion"])


def measure(name: str) -> Iterator[record.Row]:
    """A row for each stack, and the ratio of the kernel's time to ours."""
    rows: dict[str, list[record.Row]] = {stack: [] for stack in STACKS}
    for seed in range(1, RUNS + 1):
        for stack in STACKS:
            row = runs.run(SCENARIOS / f"{name}.toml", options(name, stack), seed, COLUMNS)
            if row["completed_s"] is None:
                raise SystemExit(f"{name}: {stack} has not finished within the scenario's duration")
            record.say(f"{stack}: {row}")
            rows[stack].append(row)
    for stack, own in rows.items():
        yield {
            "scenario": name,
            "stack": stack,
            "runs": RUNS,
            "completed_s": [round(row["completed_s"], 3) for row in own],
            "retransmissions": statistics.fmean(row["retransmissions"] for row in own),
            "timeouts": statistics.fmean(row["timeouts"] or 0 for row in own),
            "void": sum(row["void"] for row in own),
        } | (relative(rows) if stack == "lasthop" else {})


def relative(rows: dict[str, list[record.Row]]) -> record.Row:
    """The kernel's time by ours, which is the ratio of the speeds: geometric mean of the pairs, and
    its 95 % interval."""
    pairs = zip(rows["lasthop"], rows["linux"], strict=True)
    logs = [math.log(kernel["completed_s"] / ours["completed_s"]) for ours, kernel in pairs]
    low, high = peers.interval95(logs) or (logs[0], logs[0])
    return {
        "speed_ratio": round(math.exp(statistics.fmean(logs)), 3),
        "ci95": [round(math.exp(low), 3), round(math.exp(high), 3)],
    }


def measured(names: Sequence[str]) -> Iterator[record.Row]:
    """The rows of some paths."""
    for name in names:
        yield from measure(name)


# --- the book's table ---


def table(result: record.Row) -> str:
    """Transfers by our sender and by the kernel's."""
    lines = [
        "| transfer | lasthop, s | Linux, s | speed, lasthop / Linux | timeouts, lasthop | Linux |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = result["rows"]
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        of = {row["stack"]: row for row in rows if row["scenario"] == scenario}
        ours, kernel = of["lasthop"], of["linux"]
        low, high = ours["ci95"]
        seconds = [stack["completed_s"] for stack in (ours, kernel)]
        times = [tabular.spread([min(own), statistics.median(own), max(own)]) for own in seconds]
        lines.append(
            f"| {scenario} | {times[0]} | {times[1]} | {ours['speed_ratio']:.2f} ({low:.2f} to "
            f"{high:.2f}) | {ours['timeouts']:.1f} | {kernel['timeouts']:.1f} |"
        )
    void = sum(row["void"] for row in rows)
    about = (
        f"*{rows[0]['runs']} runs each in turn; median and range of the times, geometric mean and "
        f"95 % interval of the paired ratios; void runs among them: {void}.*"
    )
    return tabular.captioned(lines, result, about)


def main() -> None:
    """Measures what the command line names, or everything."""
    every = sorted(file.stem for file in SCENARIOS.glob("*.toml"))
    parser = argparse.ArgumentParser(description="Compares our sender with the kernel's.")
    parser.add_argument("scenario", nargs="*", choices=[[], *every], default=[])
    names = parser.parse_args().scenario or every
    kept = json.loads(BESIDE.read_text())["rows"] if BESIDE.exists() else []
    rows = [row for row in kept if row["scenario"] not in names] + list(measured(names))
    result = {"experiment": "beside", **record.circumstances(), "unit": "s"}
    result["rows"] = sorted(rows, key=lambda row: str(row["scenario"]))
    record.keep(BESIDE, result)


if __name__ == "__main__":
    main()
