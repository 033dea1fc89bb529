"""Measures lasthop beside its peers, and keeps the outcome in bench/results.

python bench/compare.py                  all of it
python bench/compare.py speed            segments per CPU second, beside ns-2 and ns-3
python bench/compare.py agreement        TCP beside ns-2's own families, and its Linux code
python bench/compare.py bbn8333          a publication's experiments in full, and how long they take
python bench/compare.py bbn8333 --only sim1      one of them; the others stay as they were kept
python bench/compare.py tables           prints the tables from what was kept

A peer that is not installed is left out, with a word about it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import agreement
import speed
import tables
from record import RESULTS, Row, circumstances, keep, keep_rows, say

from lasthop import publications
from lasthop.publications.study import book
from lasthop.publications.study.reproduce import reproduce

SPEED = RESULTS / "speed.json"
AGREEMENT = RESULTS / "agreement.json"


# --- speed ---


def measure_speed(rounds: int) -> Row:
    """Measures the speed of lasthop and of its peers."""
    return {
        "experiment": "speed",
        **circumstances(),
        "unit": "delivered segments per CPU second",
        "rounds": rounds,
        "rows": speed.measured(rounds, say),
    }


# --- agreement ---


def measure_agreement() -> Row:
    """Runs lasthop's side of every comparison with ns-2, and judges each cell."""
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


# --- publications ---


def keep_publication(publication: str, threads: int, only: Sequence[str] = ()) -> None:
    """Reproduces every experiment of a publication, or `only` these, and keeps what the book shows
    of it."""
    file = publication.replace("/", "-")
    shown = publications.book(publication)
    about = []
    before = RESULTS / f"{file}-about.json"
    kept = {row["name"]: row for row in json.loads(before.read_text())["rows"]} if only else {}
    for experiment in publications.find(publication):
        name = experiment.name
        if only and name not in only:
            about += [kept[name]] if name in kept else []
            continue
        with tempfile.TemporaryDirectory() as folder:
            cpu = time.process_time()
            reproduce(experiment.load(), Path(folder), seeds=None, quick=False, threads=threads)
            cpu_s = round(time.process_time() - cpu, 1)
            keep_rows(RESULTS / f"{file}-{name}.json", book.kept(shown[name], Path(folder)))
            explained = Path(folder) / "explanations.json"
            if explained.exists():
                rows = json.loads(explained.read_text())
                keep_rows(RESULTS / f"{file}-{name}-explanations.json", rows)
        about.append({"name": name, **circumstances(), "cpu_s": cpu_s})
    keep(before, {"experiment": publication, "rows": about})


def main() -> int:
    """Runs the comparisons that the command line names."""
    every = publications.publications()
    parser = argparse.ArgumentParser(description="Measures lasthop beside its peers.")
    parser.add_argument(
        "what",
        nargs="?",
        choices=["speed", "agreement", *every, "tables", "all"],
        default="all",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the speed comparison")
    parser.add_argument("--threads", type=int, default=0, help="for publications; 0: every core")
    parser.add_argument("--only", nargs="+", default=[], help="experiments of the publication")
    options = parser.parse_args()
    if options.only and options.what not in every:
        parser.error("--only needs a publication")
    if unknown := set(options.only) - set(every.get(options.what, ())):
        parser.error(f"{options.what} has no experiment {', '.join(sorted(unknown))}")
    if options.what in ("speed", "all"):
        keep(SPEED, measure_speed(options.rounds))
    if options.what in ("agreement", "all"):
        keep(AGREEMENT, measure_agreement())
    for publication in every:
        if options.what in (publication, "all"):
            keep_publication(publication, options.threads, options.only)
    for name, text in tables.all_tables():
        if options.what in ("tables", "all") or name.startswith(options.what.replace("/", "-")):
            print(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
