"""The network and the transfers of all experiments (ishac2001 §3)."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lasthop import toml
from lasthop.publications.study.runs import Case, Cell, Runs, apart
from lasthop.publications.study.study import Measure, mean
from lasthop.scenario import Scenario
from lasthop.stats import Estimate, student_t

if TYPE_CHECKING:
    import polars as pl

PUBLICATION = "ishac2001"
SCENARIO = f"{PUBLICATION}/network"
SEEDS, QUICK_SEEDS = 30, 3
SEGMENT = 1500

#: The sizes of transfers, packets, as published.
SIZES = (*range(1, 101), *range(110, 501, 10), *range(600, 901, 100), 1000, 2000)
#: Some of them for --quick.
QUICK_SIZES = (1, 5, 10, 15, 40, 100, 200, 300, 400, 500, 1000)
#: The competing transfers of figures 5 to 8.
COMPETITORS = 50

#: What the gateway does.
REGULAR, SPOOFED, UNLIMITED = "none", "published", "unlimited-queue"
#: Beyond the publication: with a bounded cache, and with the satellite link's rate besides.
BOUNDED, PACED = "bounded", "bounded-rate"
#: Whose clock.
SENDER, RECEIVER = "sender", "receiver"
VANTAGES = (RECEIVER, SENDER)

_MAIN = "main"
#: By their place in the file.
BOXES, SATELLITE = "nodes.h2.boxes", "links.1.queue"


@functools.cache
def _file() -> Mapping[str, Any]:
    return tomllib.loads(Scenario.load(SCENARIO).source)


def flows(
    packets: int, competitors: int, *, tcp: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The main transfer and its competitors, which start in alternating fashion at h3 and h4."""
    main, *others = (dict(flow) for flow in _file()["flows"])
    main["traffic"] = {"size": packets * SEGMENT}
    first = -(-competitors // 2)
    found = [main]
    for flow, number in zip(others, (first, competitors - first), strict=True):
        if number:
            arrivals = {**flow["traffic"]["arrivals"], "flows": number}
            found.append({**flow, "traffic": {**flow["traffic"], "arrivals": arrivals}})
    return [{**flow, "tcp": {**flow["tcp"], **(tcp or {})}} for flow in found]


def alone(flows: Sequence[Mapping[str, Any]], duration: str) -> Scenario:
    """The network with these flows and no gateway, for so long."""
    file = {key: value for key, value in _file().items() if key not in ("ends_with", "sweep")}
    nodes: dict[str, Any] = {node: {} for node in file["nodes"]}
    return Scenario.from_toml(
        toml.write({**file, "duration": duration, "nodes": nodes, "flows": list(flows)})
    )


def spoofer(
    tcp: Mapping[str, Any] | None = None, more: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The gateway's boxes."""
    (box,) = _file()["nodes"]["h2"]["boxes"]
    return [{**box, "tcp": {**box["tcp"], **(tcp or {})}, **(more or {})}]


def cell(
    packets: int,
    arm: str,
    vantage: str,
    *,
    competitors: int = COMPETITORS,
    quick: bool = True,
    more: Mapping[str, Any] | None = None,
    tcp: Mapping[str, Any] | None = None,
    load: int | None = None,
) -> Cell:
    """A transfer of so many packets, seen from one end.

    `more` are further settings of the box, `tcp` those of every TCP; `load` is the number of
    competitors if it is not that of the case."""
    boxes = [] if arm == REGULAR else spoofer(tcp, more)
    queue = {SATELLITE: "unlimited"} if arm == UNLIMITED else {}
    return Cell(
        Case(competitors=competitors, packets=packets, spoofer=arm, vantage=vantage),
        SCENARIO,
        {
            BOXES: boxes,
            "flows": flows(packets, competitors if load is None else load, tcp=tcp),
            **queue,
        },
        SEEDS,
        QUICK_SEEDS if quick else 0,
    )


def collect(rows: pl.DataFrame) -> Mapping[str, Sequence[float | None]]:
    """The throughput that each end saw, and what was dropped of the transfer."""
    found: dict[str, list[float | None]] = {SENDER: [], RECEIVER: [], "dropped": []}
    for run in apart(rows):
        (row,) = run.filter(run["flow"] == _MAIN).iter_rows(named=True)
        size = 8.0 * row["payload_bytes"]
        for vantage, column in ((SENDER, "acknowledged_s"), (RECEIVER, "completed_s")):
            found[vantage].append(size / row[column] if row[column] else None)
        found["dropped"].append(row["data_dropped"])
    return found


def throughput(runs: Runs, case: Case) -> Estimate | None:
    """Seen from the case's end."""
    if not case["packets"]:
        return None
    return runs.mean(case, case["vantage"])


def percent(ratio: Estimate | None) -> Estimate | None:
    """A ratio as the percentage above 1."""
    if ratio is None:
        return None
    value, lo, hi = (100 * (end - 1) for end in (ratio.value, ratio.lo, ratio.hi))
    return Estimate(value, lo, hi, ratio.n)


def gain(runs: Runs, case: Case) -> Estimate | None:
    """The published percent difference: by how much spoofing is faster."""
    return percent(estimate(times(runs, case)))


MEASURES = (
    Measure("throughput_bps", "bit/s", "throughput, kb/s", throughput, 1e3),
    Measure("gain_percent", "%", "gain, %", gain),
    mean("dropped", "packets", "dropped segments", name="dropped_packets"),
)

KEYS = {
    "competitors": "competitors",
    "packets": "packets",
    "spoofer": "spoofer",
    "vantage": "seen by",
}

METHOD = (
    "A server (h5), the Internet (1.5 Mb/s, 69 ms, a queue of 17 packets), a gateway (h2), a"
    " satellite link (1.544 Mb/s, 250 ms, 64 packets), a user (h1); Ethernets of 10 Mb/s without a"
    " limit. Segments of 1500 bytes, SACK, delayed acknowledgments, unlimited windows, profile"
    " ns2-2001; at the gateway, too.",
    "The competitors send files over the Internet link, half of them in each direction: each waits,"
    " sends, and waits again. Their sizes (log-normal) and waits (exponential) are calibrated on"
    " the published drop rates (bench/ishac_calibration.py), and nothing else is.",
    "The transfer starts after 5 s. Its throughput is its size over the time from its SYN to the"
    " arrival of its last byte (receiver), or to the acknowledgment of the last byte at the sender."
    " The gain is that of the mean throughput.",
)


# --- Ratios over pairs of runs, and over groups of sizes ---------------------------------------


@dataclass(frozen=True)
class Ratio:
    """A ratio of means over pairs of runs. Unlike an `Estimate` it can be divided by another one of
    the same seeds: what a seed's runs have in common does not widen the interval."""

    value: float
    #: By run, its share of the error of the logarithm.
    errors: Mapping[int, float]

    @classmethod
    def of(cls, tops: Sequence[float | None], bottoms: Sequence[float | None]) -> Ratio | None:
        """The mean of one over that of the other; None if one of the two is nothing."""
        pairs = {
            run: (top, bottom)
            for run, (top, bottom) in enumerate(zip(tops, bottoms, strict=False))
            if top is not None and bottom is not None
        }
        sums = [math.fsum(column) for column in zip(*pairs.values(), strict=True)]
        if not pairs or min(sums) <= 0:
            return None
        top, bottom = (total / len(pairs) for total in sums)
        return cls(
            top / bottom, {run: one / top - other / bottom for run, (one, other) in pairs.items()}
        )

    @property
    def estimate(self) -> Estimate:
        """With its interval: the delta method's on the logarithm, as in `stats.ratio_interval`."""
        n = len(self.errors)
        if n < 2:
            return Estimate(self.value, self.value, self.value, n, log=True)
        error = math.sqrt(math.fsum(e * e for e in self.errors.values()) / (n - 1) / n)
        spread = math.exp(student_t(n - 1) * error)
        return Estimate(self.value, self.value / spread, self.value * spread, n, log=True)


def over(one: Ratio | None, other: Ratio | None) -> Estimate | None:
    """One ratio over another of the same seeds."""
    if one is None or other is None:
        return None
    both = one.errors.keys() & other.errors.keys()
    errors = {run: one.errors[run] - other.errors[run] for run in sorted(both)}
    return Ratio(one.value / other.value, errors).estimate if both else None


def estimate(of: Ratio | None) -> Estimate | None:
    """A ratio with its interval."""
    return None if of is None else of.estimate


def pooled(runs: Runs, metric: str, sizes: Sequence[int], **where: Any) -> list[float | None]:
    """By run, the mean of a metric over transfers of several sizes; None if one has no value."""
    cases = [case for case in runs.cases(**where) if case["packets"] in sizes]
    rows = zip(*(runs.found[case][metric] for case in cases), strict=False)
    return [
        None if len(known) < len(row) else math.fsum(known) / len(row)
        for row in rows
        for known in ([value for value in row if value is not None],)
    ]


def times(runs: Runs, case: Case, arm: str = REGULAR) -> Ratio | None:
    """The throughput over that of the same transfer with another gateway."""
    to = case.but(spoofer=arm)
    if case["spoofer"] == arm or to not in runs.found:
        return None
    return Ratio.of(*(runs.found[of][case["vantage"]] for of in (case, to)))


def group_times(
    runs: Runs,
    vantage: str,
    sizes: Sequence[int],
    arm: str = SPOOFED,
    to: str = REGULAR,
    **more: Any,
) -> Ratio | None:
    """The throughput of transfers of several sizes over that with another gateway."""
    return Ratio.of(
        *(pooled(runs, vantage, sizes, spoofer=of, vantage=vantage, **more) for of in (arm, to))
    )
