"""Puts our stack and the kernel's at the two ends of a path, and keeps what comes of it.

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

import compare


def measure(what: str) -> tuple[compare.Row, bool]:
    """What the program of that name finds, and whether it is content."""
    words = ["cargo", "run", "--quiet", "--release", "-p", "lasthop-live", "--example", what, "--"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        content = subprocess.run([*words, str(file)], cwd=compare.ROOT).returncode == 0
        if not file.exists():
            raise SystemExit(f"kernel: {what} has found nothing (it needs root)")
        found: compare.Row = json.loads(file.read_text())
    return {"experiment": what, **compare.circumstances(), **found}, content


def main() -> int:
    """Runs what the command line asks for; 1 if something of it has failed."""
    parser = argparse.ArgumentParser(description="Puts our stack beside the kernel's.")
    parser.add_argument("what", choices=["interop", "throughput"])
    what = parser.parse_args().what
    result, content = measure(what)
    compare.keep(compare.RESULTS / f"{what}.json", result)
    return 0 if content else 1


if __name__ == "__main__":
    sys.exit(main())
