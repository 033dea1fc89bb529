"""The competing transfers of ishac2001, from the two drop rates that it gives.

python bench/ishac_calibration.py     a grid of them, kept in bench/results; about a CPU minute

Section 3 says that competing FTP transfers have sizes of a model of Paxson's, and random starts; it
gives no parameter of either. Section 4 gives the drop rates: about 0.2 % with 1 and roughly 9 %
with 200 of them. What comes out of this stands in scenarios/ishac2001/network.toml. The rule:

1. The competitors run alone, for 300 s. The drop rate is the share of the segments that their
   senders send which the Internet link's queues drop, both directions and all seeds together.
2. The transfers of one competitor do not meet, so that their drop rate does not depend on the wait
   between them: it is measured once for each distribution of sizes, with the shortest wait.
3. The error of a point is the root mean square of the logarithms of measured over published, of
   both rates.
4. The whole grid is run with few seeds. The best points are run again, with more seeds that the
   screening has not seen.
5. The smallest of those errors decides, to two decimals. Of equal ones the simplest is taken: the
   smaller spread of sizes, then the smaller mean, then the shorter wait.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from record import keep

from lasthop import lab
from lasthop.publications.ishac2001 import network
from lasthop.publications.study.published import Section

RESULT = Path(__file__).resolve().parent / "results" / "ishac2001-calibration.json"

#: Log-normal sizes: the standard deviation of the logarithm, and the mean in kB. Seconds that each
#: waits on average.
SIGMAS = (0.5, 0.75, 1.0, 1.5, 2.0)
MEANS_KB = (15, 30, 40, 50, 60, 120)
THINKS_S = (2.0, 5.0, 7.0, 10.0, 20.0, 40.0)
#: With so many competitors there is a published rate.
COMPETITORS = (1, 200)
DURATION_S, RATE_BPS = 300, 1.5e6

#: The runs of a point by competitors. Those that confirm are further ones.
SCREENED = {1: 40, 200: 3}
CONFIRMED = {1: 200, 200: 10}
#: So many of the best points are run again.
KEPT = 6


@dataclass(frozen=True, order=True)
class Point:
    """One choice of the parameters; the simplest first."""

    sigma: float
    mean_kb: int
    think_s: float

    def flows(self, competitors: int) -> list[dict[str, Any]]:
        """The competitors alone."""
        _, *others = network.flows(1, competitors)
        for flow in others:
            traffic = flow["traffic"]
            traffic["arrivals"] = {**traffic["arrivals"], "think": f"{self.think_s} s"}
            traffic["sizes"] = {"log_normal": {"mean": f"{self.mean_kb} kB", "sigma": self.sigma}}
        return others


@dataclass(frozen=True)
class Measured:
    """What one choice gives."""

    point: Point
    #: By competitors.
    rates: Mapping[int, float]
    #: What the receivers got as a share of the Internet link's rate, the mean of both directions.
    used: Mapping[int, float]

    @property
    def error(self) -> float:
        """The root mean square of the logarithms of measured over published."""
        logs = [math.log(max(self.rates[n], 1e-6) / published(n)) for n in COMPETITORS]
        return math.sqrt(math.fsum(log * log for log in logs) / len(logs))

    @property
    def order(self) -> tuple[float, Point]:
        """The best first."""
        return round(self.error, 2), self.point

    def kept(self) -> Mapping[str, Any]:
        """As the results have it."""
        of = self.point
        return {
            "sigma": of.sigma,
            "mean_kb": of.mean_kb,
            "think_s": of.think_s,
            **{f"drop_rate_{n}": float(f"{self.rates[n]:.3g}") for n in COMPETITORS},
            "used_200": float(f"{self.used[200]:.3g}"),
            "error": round(self.error, 3),
        }


def published(competitors: int) -> float:
    """The drop rate with so many competitors."""
    number = Section.of(network.PUBLICATION, "fig9").value(f"drop-rate-{competitors}")
    return number.value


def measured(
    points: Sequence[Point], first: Mapping[int, int], count: Mapping[int, int]
) -> list[Measured]:
    """Points, each over all seeds together: so many by competitors, after the first ones."""
    wanted = {
        (replace(point, think_s=THINKS_S[0]) if competitors == 1 else point, competitors)
        for point in points
        for competitors in COMPETITORS
    }
    order = sorted(wanted)
    scenarios = [
        network.alone(point.flows(competitors), f"{DURATION_S} s").set(
            sweep={"seeds": first[competitors] + count[competitors]}
        )
        for point, competitors in order
    ]
    rates, used = {}, {}
    for (point, competitors), done in zip(order, lab.sweeps(scenarios), strict=True):
        rows = done.rows.filter(done.rows["seed"] > first[competitors])
        rates[point, competitors] = float(rows["data_dropped"].sum()) / float(
            rows["segments"].sum()
        )
        bits = 8 * float(rows["payload_bytes"].sum()) / count[competitors]
        used[point, competitors] = bits / (2 * RATE_BPS * DURATION_S)
    found = []
    for point in points:
        of = {1: (replace(point, think_s=THINKS_S[0]), 1), 200: (point, 200)}
        found.append(
            Measured(
                point,
                {n: rates[of[n]] for n in COMPETITORS},
                {n: used[of[n]] for n in COMPETITORS},
            )
        )
    return found


def main() -> None:
    """The whole grid, then the choice."""
    grid = [Point(*choice) for choice in itertools.product(SIGMAS, MEANS_KB, THINKS_S)]
    screened = measured(grid, dict.fromkeys(COMPETITORS, 0), SCREENED)
    best = sorted(screened, key=lambda of: of.order)[:KEPT]
    confirmed = measured([of.point for of in best], SCREENED, CONFIRMED)
    confirmed.sort(key=lambda of: of.order)
    for of in confirmed:
        print(of.kept())
    keep(
        RESULT,
        {
            "screened_seeds": [SCREENED[n] for n in COMPETITORS],
            "seeds": [CONFIRMED[n] for n in COMPETITORS],
            "chosen": confirmed[0].kept(),
            "best": [of.kept() for of in confirmed],
            "grid": [of.kept() for of in screened],
        },
    )


# --- Its tables in the book ---

Kept = Mapping[str, Any]


def _rates(of: Kept) -> str:
    return f"{100 * of['drop_rate_1']:.2g} / {100 * of['drop_rate_200']:.2g}"


def best(kept: Kept) -> str:
    """The points that were run again."""
    lines = [
        "| mean, kB | sigma | wait, s | drop rate, %: 1 competitor | 200 | link used by 200, % |"
        " error |",
        f"|{' ---: |' * 7}",
    ]
    lines += [
        f"| {of['mean_kb']} | {of['sigma']:g} | {of['think_s']:g} | {100 * of['drop_rate_1']:.2g} |"
        f" {100 * of['drop_rate_200']:.2g} | {100 * of['used_200']:.2g} | {of['error']:.2f} |"
        for of in kept["best"]
    ]
    return "\n".join(lines)


def whole(kept: Kept) -> str:
    """Both drop rates at every point of the grid."""
    points: Sequence[Kept] = kept["grid"]
    thinks = sorted({of["think_s"] for of in points})
    lines = [
        f"| sigma | mean, kB | {' | '.join(f'wait {think:g} s' for think in thinks)} |",
        f"| ---: | ---: |{' ---: |' * len(thinks)}",
    ]
    found = {(of["sigma"], of["mean_kb"], of["think_s"]): of for of in points}
    for sigma, mean in dict.fromkeys((of["sigma"], of["mean_kb"]) for of in points):
        cells = [_rates(found[sigma, mean, think]) for think in thinks]
        lines.append(f"| {sigma:g} | {mean} | {' | '.join(cells)} |")
    return "\n".join(lines)


TABLES: Mapping[str, Callable[[Kept], str]] = {"calibration": best, "calibration-grid": whole}


if __name__ == "__main__":
    main()
