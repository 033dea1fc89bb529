"""The path parameters that obanaik2003 does not give, from its two rows of the standard policy.

python bench/obanaik_calibration.py     a grid of them, kept in bench/results; some four CPU minutes

Chapter 3 gives the rate and the delay of the shared and of the last link, and the last buffer. It
gives neither the delays of the side links, nor the buffer before the shared link, nor the kind of
recovery, nor whether goodput counts headers. What comes out of this stands in
scenarios/obanaik2003/simulation.toml. The rule was fixed before any run:

1. Every point of the grid is run with the STANDARD policy alone, over both last hops. No other
   policy is looked at before the choice is made.
2. A point is usable if the shared link carries 90 % of its rate over both ("close to 1", §3.1).
3. The error is the root mean square of the logarithms of measured over published, over the four
   numbers in the standard rows of tables 3.1 and 3.2: two goodputs, and two counts of losses.
4. The whole grid is run with few seeds, and with one alone where that is far from usable. The best
   points of each recovery and of each reading of goodput are run again, with more seeds that the
   screening has not seen.
5. The smallest of those errors decides, to two decimals. Of equal ones the simplest is taken: the
   recovery that is older (Reno, NewReno, SACK), then the smaller buffer, then the shorter delays.

Then, without any influence on the choice: how far the policies' rows are off with the best point of
each recovery, and the standard rows with other values of what was set without a search.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lasthop.publications.obanaik2003.fairness import policies, simulation
from lasthop.publications.obanaik2003.fairness.policies import ALTERNATIVES, STANDARD
from lasthop.publications.study.published import Section
from lasthop.publications.study.runs import Case
from lasthop.scenario import Scenario

RESULT = Path(__file__).resolve().parent / "results" / "obanaik2003-calibration.json"

#: From the oldest to the newest.
RECOVERIES = ("reno", "newreno", "sack")
#: Milliseconds, one way, of the sources' links; packets before the shared link.
SHORT_MS = (1, 5, 10)
LONG_MS = (100, 150, 200, 250, 300, 350, 400, 450, 500)
BUFFERS = (20, 30, 40, 50, 70, 100)
#: What goodput may mean: with headers, and without.
READINGS = ("goodput_bps", "payload_bps")
LOSSES = "losses_packets"
#: "Close to 1": of the shared link, headers included.
UTILISATION = 0.9
SHARED_BPS = 1.5e6

SCREENED, CONFIRMED = 3, 20
#: So many of the best points of each recovery and reading are run again.
KEPT = 4

#: What was set without a search, and what else was tried: words, as set, other values.
SET: Sequence[tuple[str, str, Mapping[str, Mapping[str, Any]]]] = (
    (
        "jitter of the sources' links",
        "2 ms",
        {
            f"{value} ms": {f"links.{i}.jitter": f"{value} ms" for i in range(5)}
            for value in (0.5, 5)
        },
    ),
    (
        "start times",
        "100 ms apart",
        {
            "all at 0": {f"flows.{i}.start": "0 ms" for i in range(5)},
            "1 s apart": {f"flows.{i}.start": f"{i} s" for i in range(5)},
        },
    ),
    (
        "delay of the links to sinks 1, 2, 4, 5",
        "5 ms",
        {
            f"{value} ms": {f"links.{i}.delay": f"{value} ms" for i in (7, 8, 10, 11)}
            for value in (1, 20)
        },
    ),
    (
        "delay from R1 to R2",
        "5 ms",
        {f"{value} ms": {"links.5.delay": f"{value} ms"} for value in (1, 20)},
    ),
    (
        "buffer before R1 to R2",
        "50 packets",
        {f"{value} packets": {"links.5.queue": f"{value} packets"} for value in (20, 100)},
    ),
    (
        "receive window of all",
        "64 KiB",
        {"20 segments": {"flows.*.tcp.receive_window": "20 segments"}},
    ),
    ("shortest timeout", "200 ms", {"1 s": {"flows.*.tcp.rto.minimum": "1 s"}}),
    ("acknowledgments", "of every packet", {"delayed": {"flows.*.tcp.delayed_ack": "100 ms"}}),
)


@dataclass(frozen=True, order=True)
class Point:
    """One choice of the parameters; the simplest first."""

    recovery: int
    buffer_packets: int
    long_ms: int
    short_ms: int

    @property
    def settings(self) -> Mapping[str, Any]:
        """Of the scenario."""
        return {
            "flows.*.tcp.recovery": RECOVERIES[self.recovery],
            "links.6.queue": f"{self.buffer_packets} packets",
            **{f"links.{i}.delay": f"{self.short_ms} ms" for i in (0, 1)},
            **{f"links.{i}.delay": f"{self.long_ms} ms" for i in (2, 3, 4)},
        }


@dataclass(frozen=True)
class Measured:
    """What one choice gives."""

    point: Point
    #: Means, by last hop and metric.
    means: Mapping[str, Mapping[str, float]]
    #: The lesser of both last hops, as a share of the shared link's rate.
    utilisation: float
    #: By reading of goodput.
    error: Mapping[str, float] = field(default_factory=dict)

    def kept(self) -> Mapping[str, Any]:
        """As the results have it."""
        found = {**asdict(self.point), "recovery": RECOVERIES[self.point.recovery]}
        means = {
            link: {metric: round(mean, 2) for metric, mean in of.items()}
            for link, of in self.means.items()
        }
        return {
            **found,
            "means": means,
            "utilisation": round(self.utilisation, 3),
            "error": {reading: round(error, 3) for reading, error in self.error.items()},
        }


def published(link: str, policy: str, metric: str) -> float:
    """Tables 3.1 and 3.2."""
    number = Section.of("obanaik2003", f"fairness/{link}").number(Case(policy=policy), metric)
    assert number is not None, (link, policy, metric)
    return number.value


def root_mean_square(logs: Sequence[float]) -> float:
    """Of logarithms of measured over published."""
    return math.sqrt(math.fsum(log * log for log in logs) / len(logs))


def error(means: Mapping[str, Mapping[str, float]], policy: str, reading: str) -> list[float]:
    """Logarithms of measured over published: both goodputs and both counts of losses."""
    return [
        math.log(max(of[measured], 0.1) / published(link, policy, metric))
        for link, of in means.items()
        for measured, metric in ((reading, "goodput_bps"), (LOSSES, LOSSES))
    ]


def measured(
    settings: Mapping[str, Any], policy: str, seeds: range
) -> tuple[Mapping[str, Mapping[str, float]], float]:
    """Means over both last hops, and how much the shared link carries."""
    means, used = {}, []
    look = simulation.observe()
    for link in simulation.LINKS:
        cell = simulation.cell(link, policy, policies.default_rtt(policy), settings=settings)
        scenario = Scenario.load(cell.scenario).set(dict(cell.settings))
        runs = [look(scenario, seed) for seed in seeds]
        means[link] = {
            metric: math.fsum(run[metric] or 0.0 for run in runs) / len(runs)
            for metric in (*READINGS, LOSSES, "timeouts", "shared_bps")
        }
        used.append(means[link].pop("shared_bps") / SHARED_BPS)
    return means, min(used)


def standard(point: Point, seeds: range, settings: Mapping[str, Any] | None = None) -> Measured:
    """A point with the standard policy."""
    means, used = measured({**point.settings, **(settings or {})}, STANDARD, seeds)
    errors = {reading: root_mean_square(error(means, STANDARD, reading)) for reading in READINGS}
    return Measured(point, means, used, errors)


def screening(point: Point, seeds: range) -> Measured | None:
    """A point; None if the first run is far from using the shared link."""
    first = standard(point, seeds[:1])
    return standard(point, seeds) if first.utilisation >= UTILISATION - 0.05 else None


def best_of(points: Sequence[Measured], reading: str) -> list[Measured]:
    """By the rule, the best first."""
    return sorted(points, key=lambda of: (round(of.error[reading], 2), of.point))


def policies_error(point: Point, seeds: range, reading: str) -> Mapping[str, float]:
    """How far the rows of the policies are off: all numbers, and goodputs alone."""
    logs = [
        log
        for policy in ALTERNATIVES
        for log in error(measured(point.settings, policy, seeds)[0], policy, reading)
    ]
    return {
        "all": round(root_mean_square(logs), 3),
        "goodput": round(root_mean_square(logs[::2]), 3),
    }


def main() -> None:
    """The whole grid, then the choice, then what it is worth."""
    grid = [
        Point(*choice)
        for choice in itertools.product(range(len(RECOVERIES)), BUFFERS, LONG_MS, SHORT_MS)
    ]
    screen = range(1, 1 + SCREENED)
    confirm = range(1 + SCREENED, 1 + SCREENED + CONFIRMED)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        screened = list(threads.map(lambda point: screening(point, screen), grid))
        usable = [of for of in screened if of is not None and of.utilisation >= UTILISATION]
        again = {
            of.point
            for reading in READINGS
            for recovery in range(len(RECOVERIES))
            for of in best_of([of for of in usable if of.point.recovery == recovery], reading)[
                :KEPT
            ]
        }
        confirmed = list(threads.map(lambda point: standard(point, confirm), sorted(again)))
        sure = [of for of in confirmed if of.utilisation >= UTILISATION]
        reading = min(READINGS, key=lambda of: round(best_of(sure, of)[0].error[of], 2))
        chosen = best_of(sure, reading)[0]
        for of in best_of(sure, reading):
            print(of.kept(), flush=True)
        print(reading, chosen, flush=True)
        by_recovery = [
            best_of([of for of in sure if of.point.recovery == recovery], reading)[0]
            for recovery in range(len(RECOVERIES))
            if any(of.point.recovery == recovery for of in sure)
        ]
        worth = threads.map(
            lambda of: {**of.kept(), "policies_error": policies_error(of.point, confirm, reading)},
            by_recovery,
        )
        tried = [
            (words, as_set, name, settings)
            for words, as_set, values in SET
            for name, settings in values.items()
        ]
        others = threads.map(lambda of: standard(chosen.point, confirm, of[3]), tried)
        result = {
            "screened_seeds": SCREENED,
            "seeds": CONFIRMED,
            "grid": {
                "recovery": RECOVERIES,
                "buffer_packets": BUFFERS,
                "long_ms": LONG_MS,
                "short_ms": SHORT_MS,
                "reading": READINGS,
            },
            "points": len(grid),
            "utilised": len(usable),
            "run_again": len(again),
            "reading": reading,
            "chosen": chosen.kept(),
            "best": [of.kept() for of in best_of(sure, reading)],
            "by_recovery": list(worth),
            "set": [
                {
                    "parameter": words,
                    "set": as_set,
                    "tried": name,
                    "error": round(of.error[reading], 3),
                    "means": of.kept()["means"],
                }
                for (words, as_set, name, _), of in zip(tried, others, strict=True)
            ],
        }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


# --- Its tables in the book ---

Kept = Mapping[str, Any]
_GOODPUT_IS = {"goodput_bps": "counts headers", "payload_bps": "without headers"}


def calibrated(kept: Kept) -> str:
    """What was calibrated: chosen, and the range."""
    chosen, grid = kept["chosen"], kept["grid"]
    lines = ["| calibrated | chosen | grid |", "| --- | --- | --- |"]
    for key, words, unit in (
        ("recovery", "recovery of all", ""),
        ("buffer_packets", "buffer before the shared link", " packets"),
        ("short_ms", "delay of sources 1 and 2", " ms"),
        ("long_ms", "delay of sources 3, 4 and 5", " ms"),
    ):
        range_ = ", ".join(str(value) for value in grid[key])
        lines.append(f"| {words} | {chosen[key]}{unit} | {range_}{unit} |")
    readings = ", ".join(_GOODPUT_IS[reading] for reading in grid["reading"])
    lines.append(f"| goodput | {_GOODPUT_IS[kept['reading']]} | {readings} |")
    return "\n".join(lines)


def recoveries(kept: Kept) -> str:
    """The best point of each recovery, and what it makes of the policies."""
    reading = kept["reading"]
    lines = [
        "| best with | buffer | delays, ms | slow link, kb/s / losses | LTN | standard rows off by"
        " | policies' rows: all | goodputs |",
        f"|{' --- |' * 5}{' ---: |' * 3}",
    ]
    for point in kept["by_recovery"]:
        means = [
            f"{of[reading] / 1e3:.2f} / {of['losses_packets']:.1f}"
            for of in (point["means"]["slow"], point["means"]["ltn"])
        ]
        worth = point["policies_error"]
        lines.append(
            f"| {point['recovery']} | {point['buffer_packets']} | {point['short_ms']},"
            f" {point['long_ms']} | {' | '.join(means)} | {point['error'][reading]:.2f} |"
            f" {worth['all']:.2f} | {worth['goodput']:.2f} |"
        )
    return "\n".join(lines)


def unsearched(kept: Kept) -> str:
    """What was set without a search, and what the standard rows are with other values."""
    reading = kept["reading"]
    lines = [
        "| set without a search | as set | tried | slow link, kb/s / losses | LTN | standard rows"
        " off by |",
        f"|{' --- |' * 5} ---: |",
    ]
    chosen = {**kept["chosen"], "parameter": "nothing", "set": "", "tried": ""}
    for of in (chosen, *kept["set"]):
        means = [
            f"{link[reading] / 1e3:.2f} / {link['losses_packets']:.1f}"
            for link in (of["means"]["slow"], of["means"]["ltn"])
        ]
        error = of["error"][reading] if of is chosen else of["error"]
        lines.append(
            f"| {of['parameter']} | {of['set']} | {of['tried']} | {' | '.join(means)}"
            f" | {error:.2f} |"
        )
    return "\n".join(lines)


TABLES: Mapping[str, Callable[[Kept], str]] = {
    "calibration": calibrated,
    "calibration-recoveries": recoveries,
    "calibration-set": unsearched,
}


if __name__ == "__main__":
    main()
