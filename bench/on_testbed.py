"""Published experiments on real packets, beside the lab with the same seeds.

python bench/on_testbed.py yavatkar1994 [--runs 4] [--at-once 12]    tables 1 to 3; 40 minutes
python bench/on_testbed.py obanaik2003-spep                          figures 5.2 to 5.8

Every cell runs in the testbed: packets of all hosts and boxes pass namespaces and the kernel, in
real time. Several runs share the machine. It needs root.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import record
import tabular

from lasthop import lab
from lasthop.publications.obanaik2003.spep import bed
from lasthop.publications.study.runs import Cell
from lasthop.publications.yavatkar1994 import schemes, tables
from lasthop.stats import student_t


@dataclass(frozen=True)
class Experiment:
    """What is run, and what counts of it."""

    cells: Callable[[], Sequence[Cell]]
    #: Columns of a flow's row, of which the first has no value for a transfer that was given up.
    metrics: tuple[str, ...]
    #: A packet that leaves a link so much later makes a run void.
    late: str
    #: Runs at a time.
    at_once: int


def _figures() -> list[Cell]:
    """Figures 5.2 to 5.8: each scheme by the delay and the errors."""
    of = itertools.product((bed.NEWRENO, bed.SPEP, bed.END_TO_END), bed.DELAYS, bed.INTERVALS)
    return [bed.cell(scheme, delay, interval) for scheme, delay, interval in of]


EXPERIMENTS: Mapping[str, Experiment] = {
    "yavatkar1994": Experiment(
        lambda: tables.cells(schemes.SRP), ("completed_s", "timeouts"), "5 ms", 12
    ),
    "obanaik2003-spep": Experiment(_figures, ("payload_bps", "timeouts"), "5 ms", 6),
}

#: What a run has of each metric.
Values = Sequence[float | None]


@dataclass(frozen=True)
class Run:
    """One run of a cell."""

    cell: int
    #: On real packets, and in the lab.
    values: tuple[Values, Values]
    #: Why the former are void, if they are.
    void: str | None


def pair(of: tuple[str, int, int]) -> Run:
    """One run of a cell, on real packets and in the lab."""
    name, number, run = of
    experiment = EXPERIMENTS[name]
    scenario, seed = experiment.cells()[number].single(run)
    late = {"testbed.late": experiment.late}
    real = lab.run(scenario.set(late), seed=seed, testbed=True)
    assert real.health is not None
    results = (real, lab.run(scenario, seed=seed))
    values = [[result.rows[of][0] for of in experiment.metrics] for result in results]
    return Run(number, (values[0], values[1]), real.health.void)


def mean(values: Sequence[float]) -> list[float] | None:
    """The mean and half its interval of 95 %."""
    if len(values) < 2:
        return None
    middle = sum(values) / len(values)
    variance = sum((value - middle) ** 2 for value in values) / (len(values) - 1)
    half = student_t(len(values) - 1) * (variance / len(values)) ** 0.5
    return [round(middle, 3), round(half, 3)]


def rows(experiment: Experiment, runs: Sequence[Run]) -> list[record.Row]:
    """A row for each cell: of its runs that are whole and not void."""
    found = []
    for number, cell in enumerate(experiment.cells()):
        of = [run for run in runs if run.cell == number]
        valid = [run.values for run in of if not run.void]
        kept = [pair for pair in valid if all(values[0] is not None for values in pair)]
        row: dict[str, Any] = {**cell.case, "runs": len(kept), "void": len(of) - len(valid)}
        row["given_up"] = [sum(pair[end][0] is None for pair in valid) for end in (0, 1)]
        for place, metric in enumerate(experiment.metrics):
            both = [tuple(float(values[place] or 0) for values in pair) for pair in kept]
            row[metric] = [mean([pair[end] for pair in both]) for end in (0, 1)]
            row[metric].append(mean([real - own for real, own in both]))
        found.append(row)
    return found


# --- The book's tables ---


def _shown(value: list[float] | None, digits: int, factor: float = 1.0) -> str:
    if not value:
        return ""
    return f"{factor * value[0]:.{digits}f} ± {factor * value[1]:.{digits}f}"


def _about(result: record.Row) -> str:
    void = sum(row["void"] for row in result["rows"])
    whole = [sum(row["given_up"][end] for row in result["rows"]) for end in (0, 1)]
    about = f"*Means of {result['runs']} runs each with half of their 95 % intervals, without those"
    about += f" that were void because of other load ({void}). "
    if any(whole):
        about += f"Given up: {whole[0]} on real packets, {whole[1]} in the lab. "
    return f"{about}lasthop {result['lasthop']}, {result['date']}.*"


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]], result: record.Row) -> str:
    return f"{tabular.table(heads, lines)}\n\n{_about(result)}"


def transfers(result: record.Row) -> str:
    """Tables 1 to 3 of yavatkar1994."""
    heads = ("scheme", "losses", "pause, s", "real packets, s", "lab, s", "difference, s")
    lines = []
    for row in result["rows"]:
        of = [schemes.name(row["scheme"]), f"{100 * row['loss']:g} %", f"{row['pause_s']:g}"]
        real, own, difference = row["completed_s"]
        lines.append([*of, _shown(real, 1), _shown(own, 1), _shown(difference, 2)])
    return _table(heads, lines, result)


def spep(result: record.Row) -> str:
    """Figures 5.2 to 5.8 of obanaik2003."""
    heads = ["path, one error in", "scheme", "real packets, kb/s", "lab, kb/s", "difference, kb/s"]
    heads += ["timeouts", "lab"]
    lines = []
    for row in sorted(result["rows"], key=lambda row: row["one_way_delay_s"]):
        path = f"{bed.DELAYS[row['one_way_delay_s']]}, "
        of = [path + f"{row['error_interval_bytes'] // 1024} KiB", bed.SCHEMES[row["scheme"]].name]
        of += [_shown(value, 0, 1e-3) for value in row["payload_bps"]]
        lines.append([*of, *(_shown(value, 1) for value in row["timeouts"][:2])])
    return _table(heads, lines, result)


TABLES = {"yavatkar1994": transfers, "obanaik2003-spep": spep}


def main() -> int:
    """Measures, keeps the results and prints them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--runs", type=int, default=4, help="of each cell")
    parser.add_argument("--at-once", type=int, help="runs at a time")
    options = parser.parse_args()
    experiment = EXPERIMENTS[options.experiment]
    numbers = range(len(experiment.cells()))
    # The longest first: those with losses and without help.
    work = [(options.experiment, n, run) for run in range(options.runs) for n in reversed(numbers)]
    runs: list[Run] = []
    at_once = options.at_once or experiment.at_once
    with multiprocessing.get_context("spawn").Pool(at_once) as pool:
        for run in pool.imap_unordered(pair, work):
            runs.append(run)
            record.say(f"{len(runs)} of {len(work)}: {run}")
    found = rows(experiment, runs)
    head = {**record.circumstances(), "runs": options.runs}
    file = record.RESULTS / f"{options.experiment}-testbed.json"
    record.keep(file, {"experiment": options.experiment, **head, "rows": found})
    for row in found:
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
