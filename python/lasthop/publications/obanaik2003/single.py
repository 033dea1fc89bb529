"""Studies of single runs: what their links dropped, and what a sender thought meanwhile."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lasthop import lab
from lasthop.publications.study.runs import Cell, Runs
from lasthop.publications.study.study import Study
from lasthop.results import Result
from lasthop.scenario import Scenario
from lasthop.stats import jain

if TYPE_CHECKING:
    import polars as pl

#: The connection under study, and its last hop.
OWN, LAST_HOP = "3", "lasthop->sink3"


@dataclass(frozen=True, kw_only=True)
class SingleRuns(Study):
    """A study whose runs are looked at one by one."""

    #: What is measured of a run.
    observe: Callable[[Result], Mapping[str, float | None]]
    #: In how many runs of a cell the sender's round trip is followed, which takes longer than the
    #: run.
    followed: int = 0

    def measure(
        self,
        *,
        seeds: int | None = None,
        quick: bool = False,
        threads: int = 0,
        progress: lab.Progress | None = None,
    ) -> Runs:
        """All runs."""
        cells = self.cells()
        counts = [seeds or (cell.quick if quick else cell.seeds) for cell in cells]
        total, done = sum(counts), 0
        found = {}
        with _pool(threads) as pool:
            started = [
                [pool.submit(self._run, of, seed) for seed in range(1, count + 1)]
                for of, count in zip(map(scenario, cells), counts, strict=True)
            ]
            for cell, runs in zip(cells, started, strict=True):
                values = []
                for run in runs:
                    values.append(run.result())
                    done += 1
                    if progress is not None:
                        progress(done, total)
                found[cell.case] = {key: [run[key] for run in values] for key in values[0]}
        return Runs(found)

    def _run(self, of: Scenario, seed: int) -> Mapping[str, float | None]:
        return self.observe(lab.run(of, seed=seed, trace=seed <= self.followed))


@contextmanager
def _pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Whoever leaves early, as by Ctrl-C, does not wait for what has not begun."""
    pool = ThreadPoolExecutor(threads or os.cpu_count())
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def no_rows(_: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """Of sweeps, which these studies do not make."""
    return {}


def scenario(cell: Cell) -> Scenario:
    """What a cell is, for a single run."""
    return Scenario.load(cell.scenario).set(dict(cell.settings))


def observed(shared: str) -> Callable[[Result], Mapping[str, float | None]]:
    """Connection 3 and its neighbours behind a shared link."""

    def of(result: Result) -> Mapping[str, float | None]:
        rows = {row["flow"]: row for row in result.rows.iter_rows(named=True)}
        links = {row["link"]: row for row in result.links.iter_rows(named=True)}
        own, last = rows[OWN], links[LAST_HOP]
        rates = [row["payload_bps"] for row in rows.values()]
        followed = result.series(OWN)["srtt_s"].drop_nulls().to_list() if result.flows else []
        return {
            "goodput_bps": own["goodput_bps"],
            "payload_bps": own["payload_bps"],
            "losses_packets": last["dropped"],
            # What did not even come to the last hop; the connection's set-up is no loss.
            "losses_before_packets": max(0, own["segments"] - last["packets"] - last["dropped"]),
            "timeouts": own["timeouts"],
            "rtt_s": statistics.fmean(followed) if followed else None,
            "fairness": jain(rates),
            "all_payload_bps": sum(rates),
            "shared_bps": links[shared]["bytes"]
            * 8
            / max(row["duration_s"] for row in rows.values()),
        }

    return of
