"""Runs of several scenarios that make pairs: the same seed, and the same small change of the path.

What happens on one path of exactly this rate and delay may be a coincidence: a queue that just
overflows, a timer that expires just before an acknowledgment. So every run has a path of its own, a
little slower or faster, and shorter or longer, than the one that is asked about.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from lasthop import _lasthop as engine
from lasthop import documents, toml
from lasthop.results import Progress

#: How far rates and delays of a run may be from those that are asked about.
SPREAD = 0.03
#: Steps that fill a square evenly, however many there are (the R2 sequence of M. Roberts).
_STEPS = (0.7548776662466927, 0.5698402909980532)


@dataclass(frozen=True)
class Runs:
    """What came of the runs of a scenario, in the order of their seeds."""

    goodput_bps: list[float]
    #: None of a transfer that never ends, or did not end in time.
    completed_s: list[float | None]
    #: To the completion or, without, to the end of the run.
    duration_s: list[float]
    #: The smallest round trip of a run; None if nothing was acknowledged.
    rtt_min_s: list[float | None]
    #: How long half of the packets waited at most, in the queue with the longest waits.
    wait_s: list[float | None]


def run(
    documents: Sequence[dict[str, Any]],
    name: str,
    flow: str,
    *,
    runs: int,
    first_seed: int = 1,
    threads: int = 0,
    progress: Progress | None = None,
) -> list[Runs]:
    """Runs scenarios, each of which is one point, as often as one another.

    `name` is what errors call them. Those that say the same are run once.
    """
    texts = [toml.write(document) for document in documents]
    distinct = dict(zip(texts, documents, strict=True))
    total = len(distinct) * runs
    found: dict[tuple[str, int], tuple[Any, ...]] = {}
    pool = ThreadPoolExecutor(threads or os.cpu_count() or 1)
    try:
        work = {
            pool.submit(_one, document, name, flow, seed): (text, seed)
            for seed in range(first_seed, first_seed + runs)
            for text, document in distinct.items()
        }
        for done in as_completed(work):
            found[work[done]] = done.result()
            if progress is not None:
                progress(len(found), total)
    finally:
        pool.shutdown(cancel_futures=True)
    seeds = range(first_seed, first_seed + runs)
    return [
        Runs(*map(list, zip(*(found[text, seed] for seed in seeds), strict=True))) for text in texts
    ]


def changes(seed: int) -> tuple[float, float]:
    """What the rates and the delays of the run with this seed are multiplied by."""
    rate, delay = (1 + SPREAD * (2 * ((0.5 + step * seed) % 1) - 1) for step in _STEPS)
    return rate, delay


def _one(document: dict[str, Any], name: str, flow: str, seed: int) -> tuple[Any, ...]:
    """What came of a flow in the run with this seed, in the order of `Runs`."""
    rate, delay = changes(seed)
    text = toml.write({**documents.scaled(document, rate=rate, delay=delay), "latency": True})
    rows = engine.sweep(text, name, seeds=1, first_seed=seed, threads=1)
    row = rows["flow"].index(flow)
    columns = ("goodput_bps", "completed_s", "duration_s", "rtt_min_s", "queue_delay_median_s")
    return tuple(rows[column][row] for column in columns)
