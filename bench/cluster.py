"""Measures what a cluster costs beside threads, and keeps the outcome in bench/results.

python bench/cluster.py                  a sweep on two workers, and on two threads
"""

from __future__ import annotations

import time

import record
import tables
from distributed import LocalCluster

import lasthop

CLUSTER = record.RESULTS / "cluster.json"

#: Simulated seconds of a run of the demo, and runs a point.
CASES = ((120, 1), (120, 2000), (3000, 100))
ROUNDS = 5
WORKERS = 2


def measure() -> record.Row:
    """Runs both in turn, so that other load of the machine affects both; the best round counts."""
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


if __name__ == "__main__":
    record.keep(CLUSTER, measure())
    print(dict(tables.all_tables())["cluster"])
