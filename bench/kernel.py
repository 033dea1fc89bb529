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
