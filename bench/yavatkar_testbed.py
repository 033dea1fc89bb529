"""Tables 1 to 3 of yavatkar1994 on real packets, beside the lab with the same seeds.

python bench/yavatkar_testbed.py [--runs 5] [--at-once 10]

Every cell runs in the testbed: packets of the mobile host, the base stations and the fixed host
pass namespaces and the kernel, in real time. The hop carries 100 kbit/s, so that many runs fit the
machine at once; half an hour. It needs root.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import record

from lasthop import lab
from lasthop.publications.study.runs import Case, Cell
from lasthop.publications.yavatkar1994 import schemes, tables
from lasthop.publications.yavatkar1994.schemes import SRP
from lasthop.stats import student_t

RESULT = record.RESULTS / "yavatkar1994-testbed.json"
#: A packet that leaves a link of 100 ms so much later makes a run void.
LATE = "5 ms"
#: In tables and here, a scheme, a loss and a pause.
Key = tuple[str, float, float]
#: The transfer times on real packets and in the lab, and why the former is void if it is.
Run = tuple[Key, float | None, float | None, str | None]


def key(case: Case) -> Key:
    """The cell."""
    return case["scheme"], case["loss"], case["pause_s"]


def transfer(of: tuple[Cell, int]) -> Run:
    """One transfer, on real packets and in the lab."""
    cell, number = of
    scenario, seed = cell.single(number)
    real = lab.run(scenario.set({"testbed.late": LATE}), seed=seed, testbed=True)
    assert real.health is not None
    times = [run.rows["completed_s"][0] for run in (real, lab.run(scenario, seed=seed))]
    return key(cell.case), times[0], times[1], real.health.void


def mean(values: Sequence[float]) -> list[float] | None:
    """The mean and half its interval of 95 %."""
    if len(values) < 2:
        return None
    middle = sum(values) / len(values)
    variance = sum((value - middle) ** 2 for value in values) / (len(values) - 1)
    half = student_t(len(values) - 1) * (variance / len(values)) ** 0.5
    return [round(middle, 2), round(half, 2)]


def rows(cells: Iterable[Cell], runs: Sequence[Run]) -> list[record.Row]:
    """A row for each cell: pairs of runs that are whole and not void."""
    found = []
    for cell in cells:
        of = [run for run in runs if run[0] == key(cell.case)]
        pairs = [(real, own) for _, real, own, void in of if real and own and not void]
        row: dict[str, Any] = dict(cell.case)
        row["testbed_s"], row["lab_s"] = (mean([pair[end] for pair in pairs]) for end in (0, 1))
        row["difference_s"] = mean([real - own for real, own in pairs])
        row["runs"], row["void"] = len(pairs), sum(void is not None for *_, void in of)
        row["not_whole"] = [sum(run[end] is None for run in of) for end in (1, 2)]
        found.append(row)
    return found


def table(result: record.Row) -> str:
    """The book's table: transfer times on real packets and in the lab."""
    lines = [
        "| scheme | losses | pause, s | real packets, s | lab, same seeds, s | difference, s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]

    def shown(value: list[float] | None, digits: int = 1) -> str:
        return f"{value[0]:.{digits}f} ± {value[1]:.{digits}f}" if value else ""

    for row in result["rows"]:
        of = [schemes.name(row["scheme"]), f"{100 * row['loss']:g} %", f"{row['pause_s']:g}"]
        of += [shown(row["testbed_s"]), shown(row["lab_s"]), shown(row["difference_s"], 2)]
        lines.append(f"| {' | '.join(of)} |")
    void = sum(row["void"] for row in result["rows"])
    whole = [sum(row["not_whole"][end] for row in result["rows"]) for end in (0, 1)]
    about = f"*Means of {result['runs']} runs each with half of their 95 % intervals; void because "
    about += f"of other load: {void}. Transfers that were given up: {whole[0]} on real packets, "
    about += f"{whole[1]} in the lab.*"
    return "\n".join([*lines, "", about])


TABLES = {"testbed": table}


def main() -> int:
    """Measures, keeps the results and prints them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="of each cell")
    parser.add_argument("--at-once", type=int, default=10)
    options = parser.parse_args()
    cells = tables.cells(SRP)
    # The longest first: those with losses.
    work = [(cell, run) for run in range(options.runs) for cell in reversed(cells)]
    runs: list[Run] = []
    with multiprocessing.get_context("spawn").Pool(options.at_once) as pool:
        for run in pool.imap_unordered(transfer, work):
            runs.append(run)
            record.say(f"{len(runs)} of {len(work)}: {run}")
    found = rows(cells, runs)
    head = {**record.circumstances(), "runs": options.runs}
    record.keep(RESULT, {"experiment": "yavatkar1994-testbed", **head, "rows": found})
    for row in found:
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
