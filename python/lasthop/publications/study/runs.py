"""The cells of an experiment, and the runs of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lasthop import lab
from lasthop.publications.study import quantiles
from lasthop.results import SEED
from lasthop.scenario import Scenario
from lasthop.stats import Estimate, mean_interval, ratio_interval

if TYPE_CHECKING:
    import polars as pl


class Case(Mapping[str, Any]):
    """What is varied, by the keys of a row's `case`. It may be a key itself."""

    def __init__(self, **values: Any) -> None:
        self._values = values
        self._key = frozenset(values.items())

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and self._key == other._key

    def __repr__(self) -> str:
        return f"Case({', '.join(f'{key}={value!r}' for key, value in self.items())})"

    def but(self, **changes: Any) -> Case:
        """The same with something else in it."""
        return Case(**{**self._values, **changes})


@dataclass(frozen=True)
class Cell:
    """A case, the scenario that it is, and how often that is run."""

    case: Case
    #: Of a file that comes with the package.
    scenario: str
    settings: Mapping[str, Any]
    seeds: int
    #: With --quick.
    quick: int
    #: What differs between its runs besides the seed: columns that go together.
    along: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    #: What is drawn for a run, by its number from 0: settings of that run alone.
    drawn: Callable[[int], Mapping[str, Any]] | None = None

    def build(self, runs: int) -> Scenario:
        """What is run: this cell alone, so often."""
        if self.drawn is not None:
            each = [self.drawn(run) for run in range(runs)]
            columns = {key: [settings[key] for settings in each] for key in each[0]}
            return self._scenario({"seeds": 1, "zip": [columns]})
        values = max((len(column) for column in self.along.values()), default=1)
        step = -(-values // min(runs, values))
        columns = {key: list(column[::step]) for key, column in self.along.items()}
        return self._scenario(
            {
                "seeds": max(1, runs * step // values),
                **({"zip": [columns]} if columns else {}),
            }
        )

    def single(self, run: int) -> tuple[Scenario, int]:
        """What is run the n-th time, from 0, and with what seed."""
        settings = {} if self.drawn is None else self.drawn(run)
        return (
            Scenario.load(self.scenario).set({**self.settings, **settings}),
            1 if self.drawn else 1 + run,
        )

    def _scenario(self, sweep: Mapping[str, Any]) -> Scenario:
        return Scenario.load(self.scenario).set({**self.settings, "sweep": sweep})


#: What is kept of the rows of a cell, whose seeds are in order: by metric, a value a seed, or None
#: where there is none.
Collect = Callable[["pl.DataFrame"], Mapping[str, Sequence["float | None"]]]


#: Runs a scenario with a seed, to look at more than rows: its links, its events. By metric.
Observe = Callable[[Scenario, int], Mapping[str, "float | None"]]


def apart(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The runs of a cell, whose flows are the same in each."""
    return rows.iter_slices(rows["flow"].n_unique())


def column(name: str, flow: str) -> Callable[[pl.DataFrame], list[float | None]]:
    """A column of one flow's rows."""

    def of(rows: pl.DataFrame) -> list[float | None]:
        values: list[float | None] = rows.filter(rows["flow"] == flow)[name].to_list()
        return values

    return of


@dataclass(frozen=True)
class Runs:
    """By case and metric, the value of every run in the order of the seeds."""

    found: Mapping[Case, Mapping[str, Sequence[float | None]]] = field(repr=False)

    def __len__(self) -> int:
        """How many there are."""
        return sum(self.count(case) for case in self.found)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.found)

    def joined(self, other: Runs) -> Runs:
        """These, and those of another, which replace what is in both."""
        return Runs({**self.found, **other.found})

    def count(self, case: Case) -> int:
        """Runs of a case."""
        return max(len(values) for values in self.found[case].values())

    @property
    def seeds(self) -> int:
        """Runs of the case that has most."""
        return max(self.count(case) for case in self.found)

    def cases(self, **where: Any) -> list[Case]:
        """The cases with these values; a tuple names several."""
        wanted = {
            key: value if isinstance(value, tuple) else (value,) for key, value in where.items()
        }
        return [
            case
            for case in self.found
            if all(key in case and case[key] in among for key, among in wanted.items())
        ]

    def case(self, **where: Any) -> Case:
        """The only case with these values."""
        (case,) = self.cases(**where)
        return case

    def values(self, case: Case, metric: str) -> list[float]:
        """Those that there are."""
        return [value for value in self.found[case][metric] if value is not None]

    def mean(self, case: Case, metric: str) -> Estimate | None:
        """The mean; None if there is no value."""
        values = self.values(case, metric)
        return mean_interval(values) if values else None

    def ratio(self, case: Case, to: Case, metric: str) -> Estimate | None:
        """The mean over that of another case, paired by seed; None if one of them is nothing."""
        pairs = self._pairs(case, to, metric)
        if not pairs or not all(map(sum, zip(*pairs, strict=True))):
            return None
        return ratio_interval([a for a, _ in pairs], [b for _, b in pairs])

    def difference(self, case: Case, to: Case, metric: str, times: float = 1.0) -> Estimate | None:
        """The mean less so many times that of another case, paired by seed. Unlike a ratio it is
        there where one of them is nothing."""
        pairs = self._pairs(case, to, metric)
        return mean_interval([a - times * b for a, b in pairs]) if pairs else None

    def _pairs(self, case: Case, to: Case, metric: str) -> list[tuple[float, float]]:
        both = zip(self.found[case][metric], self.found[to][metric], strict=False)
        return [(a, b) for a, b in both if a is not None and b is not None]

    def quantile(self, case: Case, metric: str, share: float) -> Estimate:
        """The value that this share of the runs stays below; None is longer than all."""
        return quantiles.interval(self.found[case][metric], share)

    def quantile_ratio(self, case: Case, to: Case, metric: str, share: float) -> Estimate | None:
        """That over the one of another case, paired by seed; None if one is not reached."""
        return quantiles.ratio(self.found[case][metric], self.found[to][metric], share)

    def share(self, case: Case, metric: str) -> Estimate:
        """The share of the runs that have no value."""
        values = self.found[case][metric]
        return quantiles.proportion(sum(value is None for value in values), len(values))


def measure(
    cells: Sequence[Cell],
    collect: Collect,
    *,
    seeds: int | None,
    quick: bool,
    threads: int,
    progress: lab.Progress | None = None,
) -> Runs:
    """The runs of all cells."""
    scenarios = [cell.build(seeds or (cell.quick if quick else cell.seeds)) for cell in cells]
    done = lab.sweeps(scenarios, threads=threads, progress=progress)
    return Runs(
        {
            cell.case: collect(sweep.rows.sort(SEED, maintain_order=True))
            for cell, sweep in zip(cells, done, strict=True)
        }
    )


def observe(
    cells: Sequence[Cell],
    of: Observe,
    *,
    seeds: int | None,
    quick: bool,
    threads: int,
    progress: lab.Progress | None = None,
) -> Runs:
    """The runs of all cells, one by one."""
    wanted = [seeds or (cell.quick if quick else cell.seeds) for cell in cells]
    found: dict[Case, dict[str, list[float | None]]] = {}
    done = 0
    with _workers(threads) as workers:
        # Runs leave the interpreter to the others.
        started = [
            [workers.submit(lambda cell, run: of(*cell.single(run)), cell, n) for n in range(runs)]
            for cell, runs in zip(cells, wanted, strict=True)
        ]
        for cell, runs in zip(cells, started, strict=True):
            kept = found.setdefault(cell.case, {})
            for run in runs:
                for metric, value in run.result().items():
                    kept.setdefault(metric, []).append(value)
                done += 1
                if progress is not None:
                    progress(done, sum(wanted))
    return Runs(found)


@contextmanager
def _workers(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Who ends early, as by Ctrl-C, does not wait for what has not begun."""
    workers = ThreadPoolExecutor(threads or os.cpu_count())
    try:
        yield workers
    finally:
        workers.shutdown(cancel_futures=True)
