"""Measures what a cluster costs beside threads, and keeps the outcome in bench/results.

python bench/cluster.py                  a sweep on two workers, and on two threads
"""

from __future__ import annotations

import json
import time

import record
import tabular

import lasthop

CLUSTER = record.RESULTS / "cluster.json"

#: Simulated seconds of a run of the demo, and runs a point.
CASES = ((120, 1), (120, 2000), (3000, 100))
ROUNDS = 5
WORKERS = 2


def measure() -> record.Row:
    """Runs both in turn, so that other load of the machine affects both; the best round counts."""
    from distributed import LocalCluster  # The tables do without it.

    rows: list[record.Row] = []
    with LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as there:
        for duration_s, seeds in CASES:
            sweep = lasthop.Scenario.load("demo").set({"duration": f"{duration_s} s"})
            here: list[float] = []
            cluster: list[float] = []
            for number in range(1, ROUNDS + 1):
                record.say(f"{duration_s} s a run: round {number} of {ROUNDS}")
                begun = time.monotonic()
                first = lasthop.sweep(sweep, seeds=seeds, threads=WORKERS)
                between = time.monotonic()
                second = lasthop.sweep(sweep, seeds=seeds, cluster=there.scheduler_address)
                here.append(between - begun)
                cluster.append(time.monotonic() - between)
                assert first.rows.equals(second.rows)
            rows.append(
                {
                    "simulated_s": duration_s,
                    "runs": first.rows.height,
                    "threads_s": round(min(here), 3),
                    "cluster_s": round(min(cluster), 3),
                }
            )
    return {
        "experiment": "cluster",
        **record.circumstances(),
        "workers": WORKERS,
        "rounds": ROUNDS,
        "rows": rows,
    }


# --- the book's table ---


def table(result: record.Row) -> str:
    """The time of a cluster on one machine, and of as many threads."""
    workers = result["workers"]
    lines = [
        f"| a run simulates | runs | {workers} threads | {workers} workers | runs a second "
        "| by workers |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["rows"]:
        seconds = [row["threads_s"], row["cluster_s"]]
        spent = " | ".join(f"{value:.2g} s" for value in seconds)
        speed = " | ".join(f"{row['runs'] / value:.0f}" for value in seconds)
        lines.append(f"| {row['simulated_s']} s | {row['runs']} | {spent} | {speed} |")
    return tabular.captioned(lines, result, f"*The best of {result['rounds']} rounds.*")


if __name__ == "__main__":
    record.keep(CLUSTER, measure())
    print(table(json.loads(CLUSTER.read_text())))
