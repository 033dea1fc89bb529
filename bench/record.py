"""What every comparison records: the machine, versions, the date, and a file of results."""

from __future__ import annotations

import datetime
import json
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import peers

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"

Row = dict[str, Any]


def circumstances() -> Row:
    """The versions, the machine and the date of a measurement."""
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    return {
        "lasthop": lasthop_version(),
        "rustc": rustc.stdout.split()[1],
        "machine": peers.machine(),
        "date": datetime.date.today().isoformat(),
    }


def together(file: Path, rows: Sequence[Row], key: Callable[[Row], Any]) -> list[Row]:
    """These rows, and those of a file with other keys, in the order of keys."""
    kept = json.loads(file.read_text())["rows"] if file.exists() else []
    return [row for _, row in sorted({key(row): row for row in [*kept, *rows]}.items())]


def lasthop_version() -> str:
    """The workspace's version."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    return str(manifest["workspace"]["package"]["version"])


def spread(values: Sequence[float], digits: int = 4) -> list[float] | None:
    """The least, the median and the largest; none of none."""
    if not values:
        return None
    middle = statistics.median(values)
    return [round(value, digits) for value in (min(values), middle, max(values))]


def say(words: str) -> None:
    """Prints progress to standard error; results go to files."""
    print(words, file=sys.stderr, flush=True)


def keep(path: Path, result: Row) -> None:
    """Writes a result with one row per line, so that a diff shows the rows that changed."""
    fields = []
    for key, value in result.items():
        of_rows = isinstance(value, list) and value and isinstance(value[0], dict)
        lines = ",\n".join(f"  {json.dumps(row)}" for row in value) if of_rows else ""
        text = f"[\n{lines}\n ]" if of_rows else json.dumps(value)
        fields.append(f" {json.dumps(key)}: {text}")
    path.write_text("{\n" + ",\n".join(fields) + "\n}\n")


def keep_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a list of rows, one per line."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f"[\n{lines}\n]\n")
