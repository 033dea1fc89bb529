"""What a packet costs a base station with SPEP: the kernel that marks it, and the lab's box.

python bench/marker.py               all of it, five times in turn; as root
python bench/marker.py --rounds 1

The kernel measures runs of its program itself (BPF_PROG_TEST_RUN), with what it takes to start
one; that of a packet of IPv4, at which the program returns at once, is kept beside. The lab's box
is measured by its CPU time, on packets that are parsed already.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence

import record
import tabular

#: The programs that measure, by who marks: each prints a line of JSON for each case. How the first
#: one is compiled does not matter: it only asks the kernel.
PROGRAMS = {
    "kernel": ("-p", "lasthop-marker", "--example", "cost"),
    "lab's box": ("--release", "-p", "lasthop-engine", "--bin", "spep"),
}


def lines(by: str) -> Iterator[record.Row]:
    """What the program of a data path prints."""
    words = ["cargo", "run", "--quiet", *PROGRAMS[by]]
    done = subprocess.run(words, cwd=record.ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"marker: {by} was not measured (it needs root)\n{done.stderr}")
    yield from map(json.loads, done.stdout.splitlines())


def measured(rounds: int) -> Iterator[record.Row]:
    """Every case so many times in turn, so that a busy spell of the machine hits all."""
    for number in range(1, rounds + 1):
        record.say(f"round {number} of {rounds}")
        for by in PROGRAMS:
            for line in lines(by):
                packet = line.get("packet", "marked")
                flows = line.get("flows")
                yield {"by": by, "packet": packet, "flows": flows, "ns": line["nanoseconds"]}


def summarised(rows: Sequence[record.Row]) -> Iterator[record.Row]:
    """One row for each case: the median, and the least and largest."""
    groups: dict[tuple[str, str, int | None], list[float]] = {}
    for row in rows:
        groups.setdefault((row["by"], row["packet"], row["flows"]), []).append(row["ns"])
    for (by, packet, flows), found in groups.items():
        yield {
            "by": by,
            "packet": packet,
            **({} if flows is None else {"flows": flows}),
            "ns_per_packet": round(statistics.median(found), 1),
            "range": [round(min(found), 1), round(max(found), 1)],
        }


# --- the book's table ---


def table(result: record.Row) -> str:
    """What a packet costs a base station of SPEP: one line for each case."""
    rows = result["rows"]
    runs = next(row["ns_per_packet"] for row in rows if row["packet"] == "IPv4")
    lines = ["| marked by | packet | flows | ns | net |", "| --- | --- | ---: | ---: | ---: |"]
    for row in rows:
        flows = f"{row['flows']:,}" if "flows" in row else ""
        net = f"{row['ns_per_packet'] - runs:.0f}" if row["by"] == "kernel" else ""
        cells = f"{row['ns_per_packet']:.0f} ({tabular.spread_of(row)}) | {net}"
        lines.append(f"| {row['by']} | {row['packet']} | {flows} | {cells} |")
    about = f"*The median of {result['rounds']} runs, and least to largest.*"
    return tabular.captioned(lines, result, about)


def main() -> int:
    """Measures, and keeps the result."""
    parser = argparse.ArgumentParser(description="The cost of a packet that is marked.")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows = list(summarised(list(measured(options.rounds))))
    head = {"experiment": "marker", **record.circumstances(), "kernel": platform.release()}
    result = {**head, "rounds": options.rounds, "rows": rows}
    record.keep(record.RESULTS / "marker.json", result)
    for row in rows:
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
