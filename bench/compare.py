"""Measures lasthop beside its peers, and keeps the outcome in bench/results.

python bench/compare.py                  all of it
python bench/compare.py speed            segments per CPU second, beside ns-2 and ns-3
python bench/compare.py agreement        TCP beside ns-2's own families, and its Linux code
python bench/compare.py bbn8333          bbn8333's simulations in full, and how long they take
python bench/compare.py beyond           bbn8333's open questions, likewise
python bench/compare.py koutsianas2007   koutsianas2007, likewise
python bench/compare.py obanaik2003      obanaik2003's fairness experiments, likewise
python bench/compare.py tables           prints the tables from what was kept

A peer that is not installed is left out, with a word about it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import agreement
import beyond
import koutsianas2007
import obanaik2003
import peers
import speed
import studies
import tables

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
SPEED = RESULTS / "speed.json"
AGREEMENT = RESULTS / "agreement.json"

Row = dict[str, Any]


# --- speed ---


def measure_speed(rounds: int) -> Row:
    """How fast lasthop and its peers are."""
    return {
        "experiment": "speed",
        **circumstances(),
        "unit": "delivered segments per CPU second",
        "rounds": rounds,
        "rows": speed.measured(rounds, say),
    }


# --- agreement ---


def measure_agreement() -> Row:
    """Our side of every comparison with ns-2, and what is to be said of each cell."""
    bulk = agreement.judged(agreement.bulk())
    return {
        "experiment": "agreement",
        **circumstances(),
        "peer": f"ns-2 {agreement.kept('bulk')['version']}",
        "unit": "bit/s, headers counted; mean and standard deviation of the runs",
        "shifts": agreement.shifts(bulk, ("recovery", "hops", "errors")),
        "westwood": agreement.judged(agreement.westwood()),
        "transfers": agreement.judged_transfers(agreement.transfers()),
        "outages": agreement.judged_outages(agreement.outages()),
        "causes": agreement.judged(agreement.causes()),
        "rescues": agreement.rescues(),
        "moved": agreement.judged(agreement.moved()),
        "rows": bulk,
    }


# --- bbn8333 ---


def keep_bbn8333(threads: int) -> None:
    """Reproduces every simulation and keeps what it writes, with the time it took."""
    from lasthop import publications

    for experiment in publications.find("bbn8333"):
        with tempfile.TemporaryDirectory() as folder:
            start, cpu = time.monotonic(), time.process_time()
            experiment.load()(Path(folder), seeds=None, quick=False, threads=threads)
            took = {"wall_s": time.monotonic() - start, "cpu_s": time.process_time() - cpu}
            keep_simulation(experiment.id.rpartition("/")[2], Path(folder), took)


def keep_simulation(name: str, folder: Path, took: Mapping[str, float]) -> None:
    """Keeps what a reproduction has written; of all but the first what its figures show."""
    rows = json.loads((folder / "results.json").read_text())
    about = {
        "experiment": f"bbn8333/{name}",
        **circumstances(),
        "seeds": max(row["runs"] for row in rows),
        **{what: round(seconds, 1) for what, seconds in took.items()},
    }
    if name != "sim1":
        shown = tables.FIGURES[name]
        rows = [row for row in rows if row["metric"] == "finding" or tables.is_of(row, shown)]
    for kept, what in (("", rows), ("-explanations", read(folder / "explanations.json"))):
        lines = ",\n".join(json.dumps(row) for row in what)
        (RESULTS / f"bbn8333-{name}{kept}.json").write_text(f"[\n{lines}\n]\n")
    path = RESULTS / f"bbn8333-{name}-about.json"
    path.write_text(json.dumps(about, indent=1) + "\n")


def keep_studies(publication: str, shown: Mapping[str, studies.Shown], threads: int) -> None:
    """Reproduces a publication's studies, and keeps what the book shows of them."""
    from lasthop import publications

    file = publication.replace("/", "-")
    took = {}
    for experiment in publications.find(publication):
        name = experiment.id.rpartition("/")[2]
        with tempfile.TemporaryDirectory() as folder:
            cpu = time.process_time()
            experiment.load()(Path(folder), seeds=None, quick=False, threads=threads)
            took[name] = round(time.process_time() - cpu, 1)
            lines = ",\n".join(json.dumps(row) for row in studies.kept(shown[name], Path(folder)))
        (RESULTS / f"{file}-{name}.json").write_text(f"[\n{lines}\n]\n")
    about = {"experiment": publication, **circumstances(), "cpu_s": took}
    path = RESULTS / f"{file}-about.json"
    path.write_text(json.dumps(about, indent=1) + "\n")


def read(path: Path) -> list[Row]:
    """The rows of a file."""
    return list(json.loads(path.read_text()))


# --- the rest ---


def circumstances() -> Row:
    """On what, with what and when."""
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    return {
        "lasthop": lasthop_version(),
        "rustc": rustc.stdout.split()[1],
        "machine": peers.machine(),
        "date": datetime.date.today().isoformat(),
    }


def lasthop_version() -> str:
    """The workspace's version."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    return str(manifest["workspace"]["package"]["version"])


def say(words: str) -> None:
    """A word for people; what is measured goes to files."""
    print(words, file=sys.stderr, flush=True)


def keep(path: Path, result: Row) -> None:
    """Writes one row a line, so that a change shows as the lines it touches."""
    fields = []
    for key, value in result.items():
        of_rows = isinstance(value, list) and value and isinstance(value[0], dict)
        lines = ",\n".join(f"  {json.dumps(row)}" for row in value) if of_rows else ""
        text = f"[\n{lines}\n ]" if of_rows else json.dumps(value)
        fields.append(f" {json.dumps(key)}: {text}")
    path.write_text("{\n" + ",\n".join(fields) + "\n}\n")


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description="Measures lasthop beside its peers.")
    parser.add_argument(
        "what",
        nargs="?",
        choices=[
            "speed",
            "agreement",
            "bbn8333",
            "beyond",
            "koutsianas2007",
            "obanaik2003",
            "tables",
            "all",
        ],
        default="all",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the speed comparison")
    parser.add_argument("--threads", type=int, default=0, help="of bbn8333; all cores by default")
    options = parser.parse_args()
    if options.what in ("speed", "all"):
        keep(SPEED, measure_speed(options.rounds))
    if options.what in ("agreement", "all"):
        keep(AGREEMENT, measure_agreement())
    if options.what in ("bbn8333", "all"):
        keep_bbn8333(options.threads)
    if options.what in ("beyond", "all"):
        keep_studies("bbn8333/beyond", beyond.TABLES, options.threads)
    if options.what in ("koutsianas2007", "all"):
        keep_studies("koutsianas2007", koutsianas2007.TABLES, options.threads)
    if options.what in ("obanaik2003", "all"):
        keep_studies("obanaik2003/fairness", obanaik2003.TABLES, options.threads)
    for name, text in tables.all_tables():
        own = "sim" if options.what == "bbn8333" else options.what
        if options.what in ("tables", "all") or name.startswith(own):
            print(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
