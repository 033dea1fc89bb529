"""Runs a scenario by `lasthop run`, in the lab or on the testbed, with ours or the kernel's TCP."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import record

#: A void run is made again, so often at most.
ATTEMPTS = 3


def linux(congestion: str) -> list[str]:
    """The options for the kernel's TCP at both ends, with a congestion control of its own."""
    return [
        "--testbed",
        "--set",
        f'flows.0.stack={{ from = "linux", to = "linux", congestion = "{congestion}" }}',
        # The kernel knows none of our mechanisms.
        "--set",
        'flows.0.tcp.eten="none"',
    ]


def run(scenario: Path, options: Sequence[str], seed: int, keys: Sequence[str]) -> record.Row:
    """Some columns of the first flow of one run; if all attempts are void, of the last one."""
    command = [sys.executable, "-m", "lasthop", "run", str(scenario), "--seed", str(seed), "--json"]
    health = None
    attempts = 0
    while attempts < ATTEMPTS and (health is None or health["void"]):
        attempts += 1
        done = subprocess.run([*command, *options], cwd=record.ROOT, capture_output=True, text=True)
        if not done.stdout:
            raise SystemExit(f"{scenario.name} {' '.join(options)}: {done.stderr}")
        printed = json.loads(done.stdout)
        health = printed.get("testbed")
        if health is None:
            break
    flow = printed["flows"][0]
    row: record.Row = {"scenario": scenario.stem, "seed": seed} | {key: flow[key] for key in keys}
    if health is not None:
        row |= {"void": health["void"] is not None, "attempts": attempts}
    return row
