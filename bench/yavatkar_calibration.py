"""What yavatkar1994 leaves open of the path, from its cells without pause and loss.

python bench/yavatkar_calibration.py     a grid, kept in bench/results; a CPU minute a scheme

The publication gives neither which MTU the wireless hop had (128 or 256 octets), nor its rate and
delay, nor the delay and the losses of the Internet. Tables 1 to 3 have a cell without pause and
loss each. Of the schemes that the build has, these cells are used, and no other. What comes out of
this stands in scenarios/yavatkar1994/path.toml. The rule:

1. A point is run without a pause and without losses of the wireless hop.
2. Its error is the root mean square of logarithms of measured over published, of two values a
   scheme: the mean transfer time, and half the interval of 95 % that 40 runs would have. That is
   how far Internet conditions spread the times; less than 0.1 s, the last digit, counts as 0.1 s.
3. The whole grid is run with few seeds. The best points, and those of each MTU, are run again, with
   more seeds that the screening has not seen.
4. The smallest of those errors decides, to two decimals. Of equal ones the simplest is taken: the
   smaller loss, then the shorter delay of the Internet, the shorter delay and the lower rate of the
   wireless hop, and the smaller MTU.

With three schemes there are six published values and five parameters. How far the predictions
depend on the choice is shown by the experiment `sensitivity`, with the best point of each MTU.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path as File
from typing import Any

from record import keep

from lasthop import lab
from lasthop.publications.study.published import Number, Section
from lasthop.publications.study.runs import Case
from lasthop.publications.yavatkar1994 import path, schemes, tables
from lasthop.publications.yavatkar1994.path import Path
from lasthop.scenario import Scenario
from lasthop.stats import student_t

RESULT = File(__file__).resolve().parent / "results" / "yavatkar1994-calibration.json"

#: The wireless hop of the time: from packet radio to wireless Ethernet. Below 63 kb/s
#: even packets without headers take longer than the published 12.7 s of SRP.
RATES_KBPS = (60, 70, 80, 90, 100, 150, 500)
DELAYS_MS = (1, 10, 20, 50, 100, 250)
#: From Kentucky to California and back light takes 35 ms.
INTERNET_MS = (20, 35, 50, 75, 100, 150)
LOSSES = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04)
MTUS = (128, 256)

#: Runs of a point; those that confirm are further ones.
SCREENED, CONFIRMED = 12, 200
#: So many of the best points are run again, and so many of each MTU.
KEPT, KEPT_OF_MTU = 20, 5
#: Runs of a published value, and the least half of an interval, seconds.
RUNS, LEAST = 40, 0.1

#: The mean, and half the interval of RUNS runs.
Value = tuple[float, float]


@dataclass(frozen=True)
class Measured:
    """What a point gives, by scheme."""

    point: Path
    values: Mapping[str, Value]

    @property
    def error(self) -> float:
        """The root mean square of the logarithms of measured over published."""
        logs = [
            math.log(max(ours, LEAST) / max(theirs, LEAST))
            for scheme, value in self.values.items()
            for ours, theirs in zip(value, published(scheme), strict=True)
        ]
        return math.sqrt(math.fsum(log * log for log in logs) / len(logs))

    @property
    def order(self) -> tuple[float, Path]:
        """The best first."""
        return round(self.error, 2), self.point

    def kept(self) -> Mapping[str, Any]:
        """As the results have it."""
        found: dict[str, Any] = asdict(self.point)
        for scheme, (mean, half) in self.values.items():
            found |= {f"{scheme}_s": round(mean, 2), f"{scheme}_half_s": round(half, 2)}
        return {**found, "error": round(self.error, 3)}


def number(scheme: str) -> Number:
    """The published cell without pause and loss."""
    case = Case(scheme=scheme, **tables.CALIBRATED)
    section = Section.of(path.PUBLICATION, f"table{tables.NUMBERS[scheme]}")
    found = section.number(case, "transfer_s")
    assert found is not None
    return found


def published(scheme: str) -> Value:
    """Its mean, and half its interval."""
    of = number(scheme).of
    assert of.ci95 is not None
    return of.value, (of.ci95[1] - of.ci95[0]) / 2


def scenario(point: Path, scheme: str, seeds: int) -> Scenario:
    """A transfer without pause and loss."""
    return Scenario.load(path.SCENARIO).set(
        {
            **path.settings(scheme, point),
            **path.attached([]),
            "sweep": {"seeds": seeds},
        }
    )


def measured(points: Sequence[Path], first: int, count: int) -> list[Measured]:
    """Points, with so many runs after the first ones."""
    order = list(itertools.product(points, schemes.ENABLED))
    scenarios = [scenario(point, scheme, first + count) for point, scheme in order]
    found: dict[Path, dict[str, Value]] = {}
    for (point, scheme), done in zip(order, lab.sweeps(scenarios), strict=True):
        times = done.rows.filter(done.rows["seed"] > first)["completed_s"].to_list()
        half = student_t(RUNS - 1) * statistics.stdev(times) / math.sqrt(RUNS)
        found.setdefault(point, {})[scheme] = statistics.fmean(times), half
    return [Measured(point, values) for point, values in found.items()]


def main() -> None:
    """The whole grid, then the choice."""
    axes = (LOSSES, INTERNET_MS, DELAYS_MS, RATES_KBPS, MTUS)
    screened = measured([Path(*of) for of in itertools.product(*axes)], 0, SCREENED)
    screened_best = sorted(screened, key=lambda of: of.order)
    again = [of.point for of in screened_best[:KEPT]]
    for mtu in MTUS:
        of_mtu = [of.point for of in screened_best if of.point.mtu == mtu][:KEPT_OF_MTU]
        again += [point for point in of_mtu if point not in again]
    confirmed = measured(again, SCREENED, CONFIRMED)
    confirmed.sort(key=lambda of: of.order)
    for of in confirmed:
        print(of.kept())
    keep(
        RESULT,
        {
            "schemes": list(schemes.ENABLED),
            "screened_seeds": SCREENED,
            "seeds": CONFIRMED,
            "chosen": confirmed[0].kept(),
            "best": [of.kept() for of in confirmed],
            "grid": [of.kept() for of in screened],
        },
    )


# --- Its tables in the book ---

Kept = Mapping[str, Any]


def best(kept: Kept) -> str:
    """The points that were run again."""
    heads = ["Internet: loss, %", "delay, ms", "wireless: delay, ms", "rate, kb/s", "MTU"]
    for scheme in kept["schemes"]:
        mean, half = published(scheme)
        heads.append(f"{schemes.name(scheme)}, s (published: {mean:g} ± {half:.1f})")
    lines = [f"| {' | '.join([*heads, 'error'])} |", f"|{' ---: |' * (len(heads) + 1)}"]
    for of in kept["best"]:
        cells = [f"{100 * of['internet_loss']:g}"]
        cells += [
            str(of[key])
            for key in ("internet_delay_ms", "wireless_delay_ms", "wireless_kbps", "mtu")
        ]
        cells += [f"{of[f'{s}_s']:.1f} ± {of[f'{s}_half_s']:.1f}" for s in kept["schemes"]]
        lines.append(f"| {' | '.join([*cells, format(of['error'], '.2f')])} |")
    return "\n".join(lines)


def whole(kept: Kept) -> str:
    """The least error over the rates, and the rate that has it, at each other point."""
    points: Sequence[Kept] = kept["grid"]
    losses = sorted({of["internet_loss"] for of in points})
    lines = [
        "| MTU | Internet, ms | wireless, ms |"
        f" {' | '.join(f'loss {100 * loss:g} %' for loss in losses)} |",
        f"|{' ---: |' * (3 + len(losses))}",
    ]
    keys = ("mtu", "internet_delay_ms", "wireless_delay_ms")
    found: dict[tuple[int, ...], dict[float, list[Kept]]] = {}
    for of in points:
        row = found.setdefault(tuple(of[key] for key in keys), {})
        row.setdefault(of["internet_loss"], []).append(of)
    for place, row in sorted(found.items()):
        cells = []
        for loss in losses:
            least = min(row[loss], key=lambda of: of["error"])
            cells.append(f"{least['error']:.2f} ({least['wireless_kbps']} kb/s)")
        lines.append(f"| {' | '.join([*map(str, place), *cells])} |")
    return "\n".join(lines)


TABLES: Mapping[str, Callable[[Kept], str]] = {"calibration": best, "calibration-grid": whole}


if __name__ == "__main__":
    main()
