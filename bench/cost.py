"""What RACK and pacing cost the simulator: instructions for each delivered segment.

python bench/cost.py                     all cases; needs valgrind

Callgrind counts the instructions of bench/engine/src/bin/run.rs, so other load of the machine does
not matter. Each case runs for two durations: the difference is free of what happens once a run.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import record
import speed
import tabular

COST = record.RESULTS / "cost.json"
PROGRAM = record.ROOT / "target" / "release" / "run"
#: Simulated seconds.
DURATIONS = (2, 12)

FIFTY = speed.CASES["fifty"]
CASES: Mapping[str, speed.Case] = {
    "one flow": speed.CASES["one"],
    "fifty flows": FIFTY,
    "fifty flows, a queue for all windows": dataclasses.replace(FIFTY, queue=4000),
    # Stop and wait: segments of all flows alternate, paced or not.
    "400 flows, windows of one segment": dataclasses.replace(FIFTY, flows=400, window=1),
}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "SACK": {},
    "RACK": {"recovery": "rack"},
    "SACK, paced": {"pacing": True},
    "RACK, paced": {"recovery": "rack", "pacing": True},
}


def counted(case: speed.Case, tcp: Mapping[str, Any]) -> tuple[int, record.Row]:
    """The instructions of a run, and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "case.toml"
        file.write_text(case.scenario({**speed.STAMPED, **tcp}).to_toml())
        callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        done = subprocess.run(
            [*callgrind, PROGRAM, file], capture_output=True, text=True, check=True
        )
    instructions = re.search(r"Collected : (\d+)", done.stderr)
    if instructions is None:
        raise SystemExit(done.stderr)
    return int(instructions[1]), json.loads(done.stdout)


def measured() -> Iterator[record.Row]:
    """A row for each case and variant."""
    for name, case in CASES.items():
        for variant, tcp in VARIANTS.items():
            record.say(f"{name}, {variant}")
            short, long = (
                counted(dataclasses.replace(case, duration=duration), tcp) for duration in DURATIONS
            )
            payload = long[1]["payload_bytes"] - short[1]["payload_bytes"]
            segments = payload / speed.PAYLOAD
            again = long[1]["retransmissions"] - short[1]["retransmissions"]
            yield {
                "case": name,
                "variant": variant,
                "instructions_per_segment": round((long[0] - short[0]) / segments),
                "retransmitted": round(again / segments, 4),
                "fast_path_share": round(long[1]["fast_path_share"], 4),
            }


def table(result: record.Row) -> str:
    """Instructions per delivered segment, and the ratios to SACK without pacing."""
    by_case: dict[str, dict[str, int]] = {}
    for row in result["rows"]:
        by_case.setdefault(row["case"], {})[row["variant"]] = row["instructions_per_segment"]
    lines = [
        [name, *(f"{of[variant]} ({of[variant] / of['SACK']:.2f})" for variant in VARIANTS)]
        for name, of in by_case.items()
    ]
    return tabular.captioned([tabular.table(["", *VARIANTS], lines)], result)


if __name__ == "__main__":
    build = ["cargo", "build", "--quiet", "--release", "--package", "lasthop-engine"]
    subprocess.run(build, cwd=record.ROOT, check=True)
    rows = list(measured())
    record.keep(COST, {"experiment": "cost", **record.circumstances(), "rows": rows})
    print(table(json.loads(COST.read_text())))
