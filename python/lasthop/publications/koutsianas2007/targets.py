"""Connections of a host that moves to a slower, an equal or a faster access point."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lasthop.publications.koutsianas2007 import schemes
from lasthop.publications.study.runs import Case, Cell, Runs, apart
from lasthop.stats import Estimate, mean_interval

if TYPE_CHECKING:
    import polars as pl

SCENARIO = "koutsianas2007/fig4.7"
#: Of the first access point, bits per second.
_FIRST_BPS = 6e6
#: For which the report's formula has data after the disconnection.
_AFTER_S = 20.0


@dataclass(frozen=True)
class Target:
    """The second access point."""

    rate_bps: float
    delay_s: float
    queue_packets: int
    #: Of the report.
    figure: str

    @property
    def name(self) -> str:
        """As pages have it."""
        return f"{self.rate_bps / 1e6:g} Mb/s"

    @property
    def settings(self) -> dict[str, Any]:
        """Of its link."""
        return {
            "links.1.rate": f"{self.rate_bps / 1e6:g} Mbit/s",
            "links.1.delay": f"{1e3 * self.delay_s:g} ms",
            "links.1.queue": f"{self.queue_packets} packets",
        }


SLOWER = Target(1e6, 0.1, 17, "4.7")
EQUAL = Target(6e6, 0.001, 50, "4.8")
FASTER = Target(20e6, 0.001, 167, "4.9")
TARGETS = (SLOWER, EQUAL, FASTER)


def drawn(target: Target, connections: int, disconnection: float, run: int) -> Mapping[str, Any]:
    """What is drawn for a run: the same for all schemes, and for all lengths."""
    dice = random.Random(f"targets, {connections} connections, run {run}")
    starts = [dice.uniform(0.0, 1.0) for _ in range(connections)]
    delays = [dice.uniform(0.0, 0.05) for _ in range(connections)]
    left = dice.uniform(4.0, 6.0)
    # §4.3: what both access points carry meanwhile, divided among all.
    bits = _FIRST_BPS * (left - 0.5) + target.rate_bps * _AFTER_S
    size = round(bits / 8 / connections)
    return {
        **schemes.attached(left, left + disconnection),
        **{f"flows.{i}.start": schemes.seconds(start) for i, start in enumerate(starts)},
        **{f"flows.{i}.traffic": {"size": f"{size} B"} for i in range(connections)},
        # After the four links of the access points.
        **{f"links.{4 + i}.delay": schemes.seconds(delay) for i, delay in enumerate(delays)},
    }


def cell(
    scheme: str,
    target: Target,
    connections: int,
    disconnection: float,
    seeds: int,
    quick: int,
) -> Cell:
    """So many connections with a scheme, each to a server of its own."""
    source = schemes.table(SCENARIO)
    (flow, _), links = source["flows"], source["links"]
    last = links[4]
    tcp = schemes.tcp(flow["tcp"], scheme)
    servers = [f"server{i}" for i in range(connections)]
    nodes = {name: node for name, node in source["nodes"].items() if "server" not in name}
    settings = {
        "nodes": {**nodes, **{server: {} for server in servers}},
        "links": [
            *links[:4],
            *({**last, "between": ["router", server]} for server in servers),
        ],
        "flows": [
            {**flow, "name": f"upload {i}", "to": server, "tcp": tcp}
            for i, server in enumerate(servers)
        ],
        **target.settings,
        **schemes.host(scheme),
    }
    case = Case(
        scheme=scheme,
        target=target.name,
        rate_bps=target.rate_bps,
        connections=connections,
        disconnection_s=disconnection,
    )
    draws = partial(drawn, target, connections, disconnection)
    return Cell(case, SCENARIO, settings, seeds, quick, drawn=draws)


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """Net durations of the connections of each run, and what they cost."""
    found: dict[str, list[float | None]] = {}

    def keep(metric: str, value: float | None) -> None:
        found.setdefault(metric, []).append(value)

    for run in apart(rows):
        left, back = schemes.moves(run)
        nets = sorted(
            # Who was done before was not disconnected.
            took - (back - left if start + took > back else 0.0)
            for start, took in zip(schemes.starts(run), run["completed_s"], strict=True)
            if took is not None
        )
        for rank in range(len(run)):
            keep(f"net_{rank}_s", nets[rank] if len(nets) == len(run) else None)
        keep("net_duration_s", sum(nets) / len(nets) if len(nets) == len(run) else None)
        keep("worst_s", nets[-1] if len(nets) == len(run) else None)
        keep("dropped_packets", float(run["dropped"][0]))
        keep("timeouts", float(sum(run["timeouts"])))
    return found


def gains(runs: Runs, case: Case) -> list[list[float]]:
    """By run, what each connection gains on standard TCP: sorted connections side by side."""
    plain = case.but(scheme=schemes.STANDARD)
    found = []
    for rank in range(case["connections"]):
        own, others = (runs.found[of][f"net_{rank}_s"] for of in (case, plain))
        found.append(
            [None if a is None or b is None else b - a for a, b in zip(own, others, strict=False)]
        )
    return [[gain for gain in run if gain is not None] for run in zip(*found, strict=True)]


def deviation(runs: Runs, case: Case) -> Estimate | None:
    """The standard deviation of what connections gain."""
    if case["scheme"] == schemes.STANDARD:
        return None
    return schemes.deviation(gains(runs, case))


def by_run(
    runs: Runs, scheme: str, metric: str, to: str = schemes.STANDARD, **where: Any
) -> list[float]:
    """How much longer standard TCP takes, or another, run by run: the mean of some cells.

    What a run draws is the same for all lengths, so that its cells are not independent of each
    other; the runs are.
    """
    apart: dict[int, list[float]] = {}
    for case in runs.cases(scheme=scheme, **where):
        plain = case.but(scheme=to)
        pairs = zip(runs.found[plain][metric], runs.found[case][metric], strict=False)
        for run, (a, b) in enumerate(pairs):
            if a is not None and b is not None:
                apart.setdefault(run, []).append(a - b)
    return [statistics.fmean(values) for _, values in sorted(apart.items())]


def pooled(
    runs: Runs, scheme: str, metric: str, to: str = schemes.STANDARD, **where: Any
) -> Estimate:
    """The mean of that, with the interval that follows from the runs."""
    return mean_interval(by_run(runs, scheme, metric, to, **where))


def less(one: Sequence[float], other: Sequence[float]) -> Estimate:
    """How much more one has than the other, run by run."""
    return mean_interval([a - b for a, b in zip(one, other, strict=False)])


def more(runs: Runs, scheme: str, metric: str, **where: Any) -> Estimate:
    """How much more a scheme has of something than standard TCP, likewise."""
    less = pooled(runs, scheme, metric, **where)
    return Estimate(-less.value, -less.hi, -less.lo, less.n)
