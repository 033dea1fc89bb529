"""Sweeps that keep finished runs in a file as they go, and go on with it after whatever ended them.

While a sweep runs, its rows are in FILE.part; at the end they become FILE. Memory does not grow
with the number of runs.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lasthop import _lasthop as engine
from lasthop.errors import UserError
from lasthop.files import held, whole
from lasthop.results import FLOW, SEED, Progress, about
from lasthop.scenario import Scenario
from lasthop.stats import Estimate, interval

if TYPE_CHECKING:
    import polars as pl

#: Rows of one group of a Parquet file; fixed, that equal rows make equal files.
_GROUP = 1 << 16

#: Characters of the longest value: a distribution has at most 63 times 512 pairs of numbers.
_LONGEST = 1 << 21

#: How what a column holds is read.
_READ: Mapping[str, Callable[[str], object]] = {
    "text": str,
    "integer": int,
    "float": float,
    "boolean": "true".__eq__,
}


@contextmanager
def place(output: Path | None) -> Iterator[Path]:
    """The folder for the runs of an unfinished file, locked; a temporary one without a file."""
    if output is None:
        with TemporaryDirectory(prefix="lasthop-") as folder:
            yield Path(folder) / "rows.part"
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_name(f"{output.name}.part")
    with held(part, f"another sweep is writing {str(part)!r}"):
        yield part


def record(
    scenario: Scenario,
    part: Path,
    *,
    seeds: int,
    first_seed: int = 1,
    threads: int = 0,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> int:
    """Runs all of a sweep that is not there; says how many runs were.

    It runs on threads of this machine, or on the cluster whose scheduler has this address.
    """
    if cluster is not None and threads:
        raise UserError("a cluster's workers have their own threads: choose threads or a cluster")
    said = json.dumps({**about(scenario), "seeds": seeds})
    try:
        if cluster is not None:
            return _collect(scenario, part, said, seeds, first_seed, cluster, progress)
        return engine.record(
            scenario.source,
            scenario.name,
            part,
            said,
            overrides=scenario.overrides,
            seeds=seeds,
            first_seed=first_seed,
            threads=threads,
            progress=progress,
        )
    except FileExistsError:
        raise UserError(
            f"{str(part)!r} is of another sweep, or another version of lasthop: remove it, or"
            " choose another file"
        ) from None


def _collect(
    scenario: Scenario,
    part: Path,
    said: str,
    seeds: int,
    first_seed: int,
    address: str,
    progress: Progress | None,
) -> int:
    """Does as engine.record, on a cluster."""
    from lasthop import cluster

    runs = scenario.outline().points * seeds
    with cluster.connected(address) as client:
        before = engine.open_journal(
            scenario.source,
            scenario.name,
            part,
            said,
            overrides=scenario.overrides,
            seeds=seeds,
            first_seed=first_seed,
        )
        with part.open("ab", buffering=0) as kept:
            for done, rows in cluster.parts(client, scenario, seeds, first_seed, before, runs):
                _append(kept, rows)
                if progress is not None:
                    progress(done, runs)
    return before


def _append(kept: FileIO, rows: bytes) -> None:
    """Adds rows to a file, all or none."""
    size = kept.tell()
    left = memoryview(rows)
    try:
        while left:
            left = left[kept.write(left) :]
    except BaseException:
        kept.truncate(size)
        raise


@dataclass(frozen=True)
class Summary:
    """What some runs come to."""

    runs: int
    #: The columns that have more than one value, of the swept keys and "flow".
    by: list[str]
    #: Mean and interval of the metric, by the values of those.
    estimates: dict[tuple[Any, ...], Estimate]

    def as_dict(self) -> dict[str, Any]:
        """As `lasthop sweep --json` prints it."""
        points = [
            {
                **dict(zip(self.by, point, strict=True)),
                "mean": estimate.value,
                "ci95_lo": estimate.lo,
                "ci95_hi": estimate.hi,
                "n": estimate.n,
            }
            for point, estimate in self.estimates.items()
        ]
        return {"runs": self.runs, "points": points}


def summary(part: Path, columns: Mapping[str, str], metric: str) -> Summary:
    """The metric's mean and 95 % interval for every point and flow, as Sweep.estimates has them."""
    names = list(columns)
    keys = [*range(names.index(SEED)), names.index(FLOW)]
    at = names.index(metric)
    groups: dict[tuple[str, ...], _Moments] = {}
    runs = 0
    for run, *row in _rows(part):
        runs = int(run) + 1
        group = groups.setdefault(tuple([row[key] for key in keys]), _Moments())
        if row[at]:
            group.add(float(row[at]))
    varied = [i for i in range(len(keys)) if len({point[i] for point in groups}) > 1]
    read = [_READ[columns[names[key]]] for key in keys]
    estimates = {
        tuple(read[i](point[i]) for i in varied): group.estimate()
        for point, group in groups.items()
        if group.n
    }
    return Summary(runs, [names[keys[i]] for i in varied], estimates)


def finish(part: Path, output: Path, columns: Mapping[str, str], scenario: Scenario) -> None:
    """Makes the file of the rows, and takes the part away."""
    import polars as pl

    rows = scan(part, columns)
    said = about(scenario)
    with whole(output) as new:
        try:
            if output.suffix == ".csv":
                # A CSV file has no other place for it.
                constants = [pl.lit(value).alias(name) for name, value in said.items()]
                rows.with_columns(constants).sink_csv(new, check_extension=False)
            else:
                metadata = {"lasthop": json.dumps(said)}
                rows.sink_parquet(new, row_group_size=_GROUP, metadata=metadata)
        except pl.exceptions.PolarsError as error:
            raise OSError(str(error)) from None
    part.unlink()


def scan(part: Path, columns: Mapping[str, str]) -> pl.LazyFrame:
    """The rows, as they are in the file that they become."""
    import polars as pl

    types = {
        "text": pl.String,
        "integer": pl.Int64,
        "float": pl.Float64,
        "boolean": pl.Boolean,
    }
    schema = {"run": pl.Int64, **{name: types[kind] for name, kind in columns.items()}}
    return pl.scan_csv(part, skip_lines=1, schema=schema).drop("run")


def _rows(part: Path) -> Iterator[list[str]]:
    if not part.exists():
        return
    # A distribution may be longer than the default.
    csv.field_size_limit(_LONGEST)
    with part.open(encoding="utf-8", newline="") as opened:
        opened.readline()
        rows = csv.reader(opened)
        next(rows, None)
        yield from rows


class _Moments:
    """Count, mean and deviation of values that come one by one (Welford's)."""

    __slots__ = ("mean", "n", "squares")

    def __init__(self) -> None:
        self.n, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, value: float) -> None:
        """One more."""
        self.n += 1
        away = value - self.mean
        self.mean += away / self.n
        self.squares += away * (value - self.mean)

    def estimate(self) -> Estimate:
        """The mean and its interval."""
        deviation = math.sqrt(self.squares / (self.n - 1)) if self.n > 1 else 0.0
        return interval(self.mean, deviation, self.n)
