"""The path parameters that obanaik2003 does not give, from its two goodputs of the standard.

python bench/obanaik_calibration.py     a grid of them, kept in bench/results; some minutes

Chapter 3 gives the rate and the delay of the shared and of the last link, and the last buffer. It
gives neither the delays of the links of short and of long round trips, nor the buffer before the
shared link. They are what brings the STANDARD policy closest to its published goodputs, 16.54 kb/s
over the slow link and 7.62 kb/s over the long thin network, while the shared link is in use:
nothing else is looked at, no other policy is run, and nothing of TCP is changed. What comes of it
stands in scenarios/obanaik2003/simulation.toml, and is not touched again.

The thesis does not say whether its goodput counts headers. Both are tried; with headers the
published values are met more closely.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lasthop import lab
from lasthop.scenario import Scenario

RESULT = Path(__file__).resolve().parent / "results" / "obanaik2003-calibration.json"
SCENARIO = "obanaik2003/simulation"
SEEDS = 20

#: Published, of connection 3 (tables 3.1 and 3.2), bit/s.
PUBLISHED = {"slow": 16_540.0, "ltn": 7_620.0}
LAST_HOP = {
    "slow": {"links.9.rate": "56 kbit/s", "links.9.delay": "50 ms"},
    "ltn": {"links.9.rate": "9.6 kbit/s", "links.9.delay": "200 ms"},
}

#: Milliseconds, one way, of the sources' links; packets before the shared link.
SHORT = (1, 5, 10)
LONG = (100, 150, 200, 250, 300, 350, 400, 450, 500)
BUFFERS = (20, 30, 40, 50, 70, 100)
#: "Close to 1": of the shared link, headers included.
UTILISATION = 0.9
SHARED = "r2->lasthop"
_SHARED_BPS = 1.5e6


#: What goodput may mean: with headers, and without.
METRICS = ("goodput_bps", "payload_bps")


@dataclass(frozen=True)
class Point:
    """What one choice of the parameters gives."""

    buffer_packets: int
    short_ms: int
    long_ms: int
    #: Mean goodput of connection 3, by metric and last hop.
    goodput: dict[str, dict[str, float]]
    #: The least of both configurations.
    utilisation: float
    #: The root mean square of both relative errors, as logarithms, by metric.
    error: dict[str, float]


def measured(buffer: int, short: int, long: int) -> Point:
    """Both configurations with the standard policy."""
    goodput: dict[str, dict[str, float]] = {metric: {} for metric in METRICS}
    used = []
    for name, last in LAST_HOP.items():
        settings: dict[str, Any] = {
            **last,
            "links.6.queue": f"{buffer} packets",
            **{f"links.{i}.delay": f"{short} ms" for i in (0, 1)},
            **{f"links.{i}.delay": f"{long} ms" for i in (2, 3, 4)},
        }
        scenario = Scenario.load(SCENARIO).set(settings)
        runs = [lab.run(scenario, seed=seed) for seed in range(1, SEEDS + 1)]
        for metric in METRICS:
            values = (run.rows.filter(run.rows["flow"] == "3")[metric][0] for run in runs)
            goodput[metric][name] = round(sum(values) / SEEDS, 1)
        carried = (run.links.filter(run.links["link"] == SHARED)["bytes"][0] for run in runs)
        used.append(sum(carried) / SEEDS * 8 / (_SHARED_BPS * scenario.outline().duration_s))
    return Point(buffer, short, long, goodput, min(used), {m: error(goodput[m]) for m in METRICS})


def error(goodput: dict[str, float]) -> float:
    """How far both goodputs are from the published ones."""
    logs = [math.log(goodput[name] / PUBLISHED[name]) for name in PUBLISHED]
    return math.sqrt(sum(log * log for log in logs) / len(logs))


def error_of(metric: str) -> Callable[[Point], float]:
    """For sorting."""
    return lambda point: point.error[metric]


def main() -> None:
    """The whole grid, the best first."""
    grid = list(itertools.product(BUFFERS, SHORT, LONG))
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        points = list(threads.map(lambda choice: measured(*choice), grid))
    usable = [point for point in points if point.utilisation >= UTILISATION]
    kept: dict[str, Any] = {
        "seeds": SEEDS,
        "points": len(points),
        "utilised": len(usable),
        "published_bps": PUBLISHED,
    }
    for metric in METRICS:
        best = sorted(usable, key=error_of(metric))[:5]
        kept[metric] = [asdict(point) for point in best]
        print(metric, *best, sep="\n")
    RESULT.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
