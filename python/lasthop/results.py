"""What runs and sweeps give back: tables."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lasthop._lasthop import __version__
from lasthop.errors import UserError, unknown
from lasthop.scenario import Scenario
from lasthop.stats import Estimate, mean_interval

if TYPE_CHECKING:
    import polars as pl

#: Which columns and keys there are, and what they mean; counted up when that changes.
FORMAT = 1


def about(scenario: Scenario) -> dict[str, int | str]:
    """What results depend on, to be kept with them.

    `format` of the results, `lasthop`'s version, and the `scenario`'s fingerprint.
    """
    return {"format": FORMAT, "lasthop": __version__, "scenario": scenario.sha256}


#: Called with the number of finished runs and of all runs.
Progress = Callable[[int, int], None]

#: The column before which all columns are swept keys.
SEED = "seed"
FLOW = "flow"

#: What distributions are of.
TIMES = {
    "rtt": "round-trip time",
    "srtt": "smoothed round-trip time",
    "delay": "one-way delay",
    "queue_delay": "queueing delay",
}


def frame(columns: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """A data frame of columns, each of one type."""
    import polars as pl

    # A column of nothing (no transfer ended) is one of numbers all the same.
    empty = {name: pl.Float64 for name, values in columns.items() if all(v is None for v in values)}
    return pl.DataFrame(dict(columns), schema_overrides=empty)


#: A column of numbers: the type ("i8", "f8"), the values as bytes, and a byte for each that is 0
#: where there is none; None if there are all.
Buffer = tuple[str, bytes, "bytes | None"]


def frame_of_buffers(columns: Mapping[str, Buffer]) -> pl.DataFrame:
    """A data frame of columns of numbers."""
    import numpy as np
    import polars as pl

    found = []
    for name, (kind, values, there) in columns.items():
        series = pl.Series(name, np.frombuffer(values, kind))
        if there is not None:
            known = pl.Series(np.frombuffer(there, np.bool_))
            series = series.zip_with(known, pl.Series(name, [None], series.dtype))
            if not known.any():
                series = series.cast(pl.Float64)
        found.append(series)
    return pl.DataFrame(found)


@dataclass(frozen=True)
class Health:
    """How well the machine kept up with a run on real packets."""

    #: Packets that came to links; those that left one too late, and those that were lost without a
    #: link's doing.
    packets: int
    late: int
    lost: int
    #: How much later than they should packets left their links, in seconds: half of them, 99 % of
    #: them, and all of them no more than this.
    median_s: float
    p99_s: float
    worst_s: float
    #: From when on a packet is late.
    limit_s: float
    #: Which share of the machine's time a hypervisor took from it, 0 to 1.
    steal: float
    #: Why the run says nothing about the scenario; None for a run that is valid.
    void: str | None

    @property
    def late_share(self) -> float:
        """The share of packets that were late."""
        return self.late / self.packets if self.packets else 0.0


@dataclass(frozen=True)
class Result:
    """One run."""

    #: One row a flow, with rates in bits per second, times in seconds, counts of packets.
    rows: pl.DataFrame
    #: One row a direction of a link: `link` ("a->b"), the `packets` and `bytes` that it accepted,
    #: and the numbers of packets `dropped`, `marked`, `corrupted`, `corrected`, `lost`,
    #: `duplicated` and `reordered`; its queueing delays `queue_delay_mean_s`,
    #: `queue_delay_median_s`, `queue_delay_p95_s` and `queue_delay_p99_s`, from acceptance to
    #: transmission, None without a packet.
    links: pl.DataFrame
    #: Packets that boxes dropped: one row a `node` and `reason` ("hop-limit", "sequence-exhausted",
    #: "replay", "congestion" or "loss"), with their number `packets`; none if they dropped none.
    box_drops: pl.DataFrame
    #: What boxes counted, one row a count that is not 0: the `node`, `what` was counted ("split
    #: connections"), and the `count`.
    box_counts: pl.DataFrame
    #: A hash of all packets and their times, equal for equal runs; empty for runs on the testbed.
    digest: str
    #: Time series: of senders by flow; what receivers have by flow (columns `t_s` and
    #: `payload_bytes`, a row for each hundredth of the duration or each second); queue lengths by
    #: link and direction; and what boxes hold by node (columns `t_s`, and `held_bytes` and
    #: `split_connections` of spoofers and stations, `cached_segments` of Snoop). Empty without
    #: tracing.
    flows: Mapping[str, pl.DataFrame] = field(default_factory=dict, repr=False)
    deliveries: Mapping[str, pl.DataFrame] = field(default_factory=dict, repr=False)
    queues: Mapping[str, pl.DataFrame] = field(default_factory=dict, repr=False)
    boxes: Mapping[str, pl.DataFrame] = field(default_factory=dict, repr=False)
    #: Distributions, by what they are of (`TIMES`), and then by flow, or by link and direction;
    #: `distribution` describes the columns. Of what did not occur there is none.
    distributions: Mapping[str, Mapping[str, pl.DataFrame]] = field(
        default_factory=dict, repr=False
    )
    #: The events of all connections, with `events=True`; `read_events` describes the columns.
    events: pl.DataFrame | None = field(default=None, repr=False)
    #: `format`, `lasthop` (the version) and `scenario` (its SHA-256).
    about: Mapping[str, int | str] = field(default_factory=dict, repr=False)
    #: How well the machine kept up, for a run on the testbed.
    health: Health | None = None
    #: The share of segments that the simulator took in on its fast path, 0 to 1: what a run costs,
    #: not what came of it. None on real packets, or if no segment arrived.
    fast_path_share: float | None = None

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        parts = [("Flows", self.rows), ("Links", self.links)]
        parts += [
            ("Packets dropped by boxes", self.box_drops),
            ("Counts of boxes", self.box_counts),
        ]
        if self.health is not None and self.health.void is not None:
            void = f"<p><b>Void</b>: {html.escape(self.health.void)}</p>"
        else:
            void = ""
        tables = (_table(title, rows) for title, rows in parts if not rows.is_empty())
        return void + "".join(tables)

    def series(self, flow: str | None = None) -> pl.DataFrame:
        """The time series of a flow, by default of the only one.

        Columns: `t_s`, `cwnd_bytes`, `cwnd_plus_dupacked_bytes`, `ssthresh_bytes`, `srtt_s`,
        `rto_s`, `flight_bytes`.
        """
        return _pick("flow", flow, self.flows)

    def queue(self, link: str | None = None) -> pl.DataFrame:
        """The queue length of a link's direction, such as "a->b"; columns `t_s`, `packets`."""
        return _pick("queue", link, self.queues)

    def distribution(self, what: str = "rtt", of: str | None = None) -> pl.DataFrame:
        """The distribution of a flow's round-trip times ("rtt"), smoothed round-trip times ("srtt")
        or one-way delays ("delay"), or of a link's queueing delays ("queue_delay"), by default of
        the only one.

        Columns: `time_s`, ascending, each to a thousandth; `count`, how many samples took so long;
        `share`, the share of samples that took no longer. There is a sample of the round trip for
        each acknowledgment that RFC 6298 takes one from, and of delays for each packet.
        """
        found = self.distributions.get(_known(what), {})
        if not found:
            raise UserError(f"there is no {TIMES[what]} in this run")
        return _pick("direction" if what == "queue_delay" else FLOW, of, found)


@dataclass(frozen=True)
class Sweep:
    """Many runs: every point of a scenario's sweep with every seed."""

    #: One row a point, seed and flow; the swept keys are the first columns.
    rows: pl.DataFrame
    #: `format`, `lasthop` (the version) and `scenario` (its SHA-256).
    about: Mapping[str, int | str] = field(default_factory=dict, repr=False)

    def _repr_html_(self) -> str:
        """As a notebook shows it: means with their intervals."""
        runs = self.rows.select(*self.keys, SEED).n_unique()
        return _table(f"Goodput, bit/s, of {runs} runs", self.summary())

    @property
    def keys(self) -> list[str]:
        """The swept keys."""
        return self.rows.columns[: self.rows.columns.index(SEED)]

    def varied(self) -> list[str]:
        """The swept keys with more than one value, and "flow" if there are several flows."""
        return [key for key in (*self.keys, FLOW) if self.rows[key].n_unique() > 1]

    def estimates(
        self, metric: str = "goodput_bps", by: Sequence[str] | None = None
    ) -> dict[tuple[Any, ...], Estimate]:
        """The metric's mean with its 95 % interval, by the values of the `by` columns.

        They are in the order of the rows. Without `by` there is one for each point and flow. Rows
        without a value, such as the completion time of an unfinished transfer, do not count.
        """
        columns = self.varied() if by is None else list(by)
        for column in (metric, *columns):
            if column not in self.rows.columns:
                raise unknown("column", column, self.rows.columns)
        if not self.rows[metric].dtype.is_numeric():
            raise UserError(f"column {metric!r} does not hold numbers")
        groups: dict[tuple[Any, ...], list[float]] = {}
        for *point, value in self.rows.select(*columns, metric).iter_rows():
            if value is not None:
                groups.setdefault(tuple(point), []).append(float(value))
        return {point: mean_interval(values) for point, values in groups.items()}

    def summary(self, metric: str = "goodput_bps", by: Sequence[str] | None = None) -> pl.DataFrame:
        """The same as a table with the columns `mean`, `ci95_lo`, `ci95_hi` and `n`."""
        columns = self.varied() if by is None else list(by)
        estimates = self.estimates(metric, columns)
        table: dict[str, list[Any]] = {
            column: [point[i] for point in estimates] for i, column in enumerate(columns)
        }
        table["mean"] = [estimate.value for estimate in estimates.values()]
        table["ci95_lo"] = [estimate.lo for estimate in estimates.values()]
        table["ci95_hi"] = [estimate.hi for estimate in estimates.values()]
        table["n"] = [estimate.n for estimate in estimates.values()]
        return frame(table)

    def distributions(
        self, what: str = "rtt", by: Sequence[str] | None = None
    ) -> dict[tuple[Any, ...], pl.DataFrame]:
        """The distributions of all samples, by the values of the `by` columns, in the order of the
        rows; `Result.distribution` describes what there are, and their columns.

        Without `by` there is one for each point and flow, of queueing delays one for each point: of
        each run those of the direction with the largest 95th percentile. The scenario is one with
        `latency = "distributions"`.
        """
        counts = f"{_known(what)}_counts"
        if counts not in self.rows.columns:
            raise UserError(
                'this sweep kept no distributions: set its scenario\'s latency to "distributions"'
            )
        of_links = what == "queue_delay"
        columns = self.varied() if by is None else list(by)
        if by is None and of_links and FLOW in columns:
            columns.remove(FLOW)
        for column in columns:
            if column not in self.rows.columns:
                raise unknown("column", column, self.rows.columns)
        rows = self.rows
        if of_links:
            # All rows of a run have them.
            run = [*self.keys, SEED, *columns]
            rows = rows.unique(list(dict.fromkeys(run)), keep="first", maintain_order=True)
        groups: dict[tuple[Any, ...], Counter[int]] = {}
        for *point, pairs in rows.select(*columns, counts).iter_rows():
            group = groups.setdefault(tuple(point), Counter())
            for nanos, count in json.loads(pairs):
                group[nanos] += count
        return {point: distribution_of(group) for point, group in groups.items() if group}


def _table(title: str, rows: pl.DataFrame) -> str:
    """A table under its title, for notebooks."""
    return f"<p><b>{html.escape(title)}</b></p>{rows._repr_html_()}"


def _known(what: str) -> str:
    if what not in TIMES:
        raise unknown("distribution", what, TIMES)
    return what


def distribution_of(counts: Mapping[int, int]) -> pl.DataFrame:
    """A distribution of times that were found so often, by nanoseconds."""
    nanos = sorted(counts)
    return with_shares(
        frame({"time_s": [n / 1e9 for n in nanos], "count": [counts[n] for n in nanos]})
    )


def with_shares(rows: pl.DataFrame) -> pl.DataFrame:
    """Times with their counts, and the share of samples that took no longer."""
    return rows.with_columns(share=rows["count"].cum_sum() / rows["count"].sum())


def _pick(kind: str, name: str | None, of: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    if not of:
        raise UserError("this run was not traced: run it with trace=True")
    if name is None:
        if len(of) > 1:
            raise UserError(f"which {kind}? There are {', '.join(of)}")
        return next(iter(of.values()))
    if name not in of:
        raise unknown(kind, name, of)
    return of[name]
