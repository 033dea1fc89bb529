"""Runs lasthop's stack and the kernel's at the two ends of a path, and keeps the results.

python bench/kernel.py interop           every byte of it, over paths that do what paths do
python bench/kernel.py throughput        how fast either is where nothing is lost

Both need root.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import record
import tabular


def measure(what: str) -> tuple[record.Row, bool]:
    """The result of the example program of that name, and whether all its checks passed."""
    words = ["cargo", "run", "--quiet", "--release", "-p", "lasthop-live", "--example", what, "--"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        content = subprocess.run([*words, str(file)], cwd=record.ROOT).returncode == 0
        if not file.exists():
            raise SystemExit(f"kernel: {what} has found nothing (it needs root)")
        found: record.Row = json.loads(file.read_text())
    return {"experiment": what, **record.circumstances(), **found}, content


# --- the book's tables ---


def interop(result: record.Row) -> str:
    """Every case with lasthop's stack at one end and the kernel's at the other."""
    lines = [
        "| case | lasthop sends, IPv4 | IPv6 | lasthop receives, IPv4 | IPv6 |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    rows = [row for row in result["rows"] if "way" in row]
    transfers = [row for row in rows if row["mbps"]]
    for case in dict.fromkeys(row["case"] for row in transfers):
        words = []
        for way in ("sends", "receives"):
            for ip in ("IPv4", "IPv6"):
                key = (case, way, ip)
                row = next(r for r in transfers if (r["case"], r["way"], r["ip"]) == key)
                words.append(f"{row['seconds']:.1f} s" if row["ok"] else f"**{row['fault']}**")
        lines.append(f"| {case} | {' | '.join(words)} |")
    lines += ["", "| test | passed |", "| --- | ---: |"]
    for case in dict.fromkeys(row["case"] for row in rows if not row["mbps"]):
        own = [row for row in rows if row["case"] == case]
        lines.append(f"| {case} | {sum(row['ok'] for row in own)} of {len(own)} |")
    seen = result["tshark"]
    about = (
        f"*Linux {result['kernel']}, which sends with {result['kernel_congestion_control']}. Of "
        f"{seen['packets']} packets from lasthop, tshark found {seen['bad']} with a bad checksum.*"
    )
    return tabular.captioned(lines, result, about)


def throughput(result: record.Row) -> str:
    """The throughput of lasthop's stack and of the kernel's, for one connection and for many."""
    lines = [
        "| connections | near end | stack | Gb/s | CPU seconds per GB, whole machine "
        "| lasthop / kernel |",
        "| ---: | --- | --- | ---: | ---: | ---: |",
    ]
    for case in result["summary"]:
        for stack in case["stacks"]:
            ours, workers = stack["stack"] == "ours", stack["workers"]
            ratio = f"{stack['ratio']:.2f}" if ours else ""
            rate = tabular.spread([stack["lowest"], stack["gbps"], stack["highest"]], 1)
            cpu = f"{stack['machine_cpu_s_per_gb']:.2f}"
            several = f", {workers} workers" if ours and workers > 1 else ""
            name = f"lasthop{several}" if ours else stack["stack"]
            lines.append(f"| {case['flows']} | {case['way']} | {name} | {rate} | {cpu} | {ratio} |")
    about = f"*{result['rounds']} rounds in turn.*"
    for stack in result.get("steering", []):
        if stack["workers"] > 1:
            handed_over, read = stack["handed_over"], stack["read"]
            about += f" *Of {read} packets, {handed_over} came to another worker.*"
    return tabular.captioned(lines, result, about)


def main() -> int:
    """Runs the program that the command line names; 1 if a check failed."""
    parser = argparse.ArgumentParser(description="Puts our stack beside the kernel's.")
    parser.add_argument("what", choices=["interop", "throughput"])
    what = parser.parse_args().what
    result, content = measure(what)
    record.keep(record.RESULTS / f"{what}.json", result)
    return 0 if content else 1


if __name__ == "__main__":
    sys.exit(main())
