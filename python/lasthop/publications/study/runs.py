"""The cells of an experiment, and the runs of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lasthop import lab
from lasthop.publications.study import quantiles
from lasthop.publications.study.kept import Kept
from lasthop.results import SEED, Progress
from lasthop.scenario import Scenario
from lasthop.stats import (
    Estimate,
    mean_interval,
    ratio_interval,
    single_range,
    single_ratio_range,
)

if TYPE_CHECKING:
    import polars as pl


class Case(Mapping[str, Any]):
    """The parameters that an experiment varies, as a hashable mapping: the `case` of a row."""

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
        """The same with other values; None takes a key away."""
        values = {**self._values, **changes}
        return Case(**{key: value for key, value in values.items() if value is not None})


@dataclass(frozen=True)
class Cell:
    """A case, the scenario that runs it, and the number of runs."""

    case: Case
    #: The name of a scenario file in the package.
    scenario: str
    settings: Mapping[str, Any]
    seeds: int
    #: The number of runs with --quick; 0: none.
    quick: int
    #: Settings that differ between runs besides the seed: columns of equal length.
    along: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    #: Settings drawn at random for one run, by its number from 0.
    drawn: Callable[[int], Mapping[str, Any]] | None = None
    #: Whether runs with drawn settings have seeds of their own, too: where links lose packets at
    #: random, for example. Only for runs that are observed one by one.
    reseeded: bool = False

    def build(self, runs: int) -> Scenario:
        """The scenario of this cell alone, with so many runs."""
        if self.reseeded:
            raise ValueError(f"{self.case}: the seeds of a sweep do not go with drawn settings")
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
        """The scenario and the seed of the n-th run, from 0."""
        settings = {} if self.drawn is None else self.drawn(run)
        return (
            Scenario.load(self.scenario).set({**self.settings, **settings}),
            1 if self.drawn and not self.reseeded else 1 + run,
        )

    def _scenario(self, sweep: Mapping[str, Any]) -> Scenario:
        return Scenario.load(self.scenario).set({**self.settings, "sweep": sweep})


#: What is kept of the rows of a cell, whose seeds are in order: by metric, a value a seed, or None
#: where there is none.
Collect = Callable[["pl.DataFrame"], Mapping[str, Sequence["float | None"]]]


#: Runs a scenario with a seed, to look at more than rows: its links, its events. By metric.
Observe = Callable[[Scenario, int], Mapping[str, "float | None"]]


def apart(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The rows of each run of a cell, whose runs all have the same flows."""
    return rows.iter_slices(rows["flow"].n_unique())


def column(name: str, flow: str) -> Callable[[pl.DataFrame], list[float | None]]:
    """Returns a function that reads a column of one flow's rows."""

    def of(rows: pl.DataFrame) -> list[float | None]:
        values: list[float | None] = rows.filter(rows["flow"] == flow)[name].to_list()
        return values

    return of


@dataclass(frozen=True)
class Runs:
    """The value of every run, by case and metric, in the order of the seeds."""

    found: Mapping[Case, Mapping[str, Sequence[float | None]]] = field(repr=False)
    #: Runs of the same cases with one factor changed, by the factor's id.
    varied: Mapping[str, Runs] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """The number of runs."""
        return sum(self.count(case) for case in self.found)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.found)

    def joined(self, other: Runs) -> Runs:
        """Both, where `other` replaces the cases that both have."""
        return Runs({**self.found, **other.found}, {**self.varied, **other.varied})

    def of(self, cases: Iterable[Case]) -> Runs:
        """The runs of some of the cases."""
        found = {case: self.found[case] for case in cases if case in self.found}
        return Runs(found, self.varied)

    def count(self, case: Case) -> int:
        """The number of runs of a case."""
        return max(len(values) for values in self.found[case].values())

    @property
    def seeds(self) -> int:
        """The largest number of runs of a case."""
        return max((self.count(case) for case in self.found), default=0)

    def cases(self, **where: Any) -> list[Case]:
        """The cases with these values: a tuple gives alternatives, None an absent key."""
        wanted = {
            key: value if isinstance(value, tuple) else (value,) for key, value in where.items()
        }
        return [
            case
            for case in self.found
            if all(case.get(key) in among for key, among in wanted.items())
        ]

    def case(self, **where: Any) -> Case:
        """The only case with these values."""
        (case,) = self.cases(**where)
        return case

    def values(self, case: Case, metric: str) -> list[float]:
        """The values of a metric, without runs that have none."""
        return [value for value in self.found[case][metric] if value is not None]

    def mean(self, case: Case, metric: str) -> Estimate | None:
        """The mean; None if there is no value."""
        values = self.values(case, metric)
        return mean_interval(values) if values else None

    def ratio(self, case: Case, to: Case, metric: str) -> Estimate | None:
        """The mean over the mean of another case, paired by seed; None if one of them is zero."""
        pairs = self._pairs(case, to, metric)
        if not pairs or not all(map(sum, zip(*pairs, strict=True))):
            return None
        return ratio_interval([a for a, _ in pairs], [b for _, b in pairs])

    def difference(self, case: Case, to: Case, metric: str, times: float = 1.0) -> Estimate | None:
        """The mean minus `times` the mean of another case, paired by seed. Unlike a ratio it exists
        where one of them is zero."""
        pairs = self._pairs(case, to, metric)
        return mean_interval([a - times * b for a, b in pairs]) if pairs else None

    def single(self, case: Case, metric: str) -> tuple[float, float] | None:
        """The range that 95 % of single runs fall into; None if there are too few runs."""
        values = self.values(case, metric)
        return single_range(values) if len(values) > 1 else None

    def single_ratio(self, case: Case, to: Case, metric: str) -> tuple[float, float] | None:
        """The same for the ratio of a pair of runs."""
        pairs = self._pairs(case, to, metric)
        if len(pairs) < 2 or min(map(min, pairs)) <= 0:
            return None
        return single_ratio_range([a for a, _ in pairs], [b for _, b in pairs])

    def _pairs(self, case: Case, to: Case, metric: str) -> list[tuple[float, float]]:
        both = zip(self.found[case][metric], self.found[to][metric], strict=False)
        return [(a, b) for a, b in both if a is not None and b is not None]

    def quantile(self, case: Case, metric: str, share: float) -> Estimate:
        """The quantile of the runs; None counts as longer than any value."""
        return quantiles.interval(self.found[case][metric], share)

    def quantile_ratio(self, case: Case, to: Case, metric: str, share: float) -> Estimate | None:
        """The quantile over that of another case, paired by seed; None if one is not reached."""
        return quantiles.ratio(self.found[case][metric], self.found[to][metric], share)

    def share(self, case: Case, metric: str) -> Estimate:
        """The share of the runs that have no value."""
        values = self.found[case][metric]
        return quantiles.proportion(sum(value is None for value in values), len(values))


#: By metric, the value of every run of a case in the order of the seeds.
Values = Mapping[str, Sequence["float | None"]]
#: A cell, and how often it is run.
Job = tuple[Cell, int]


def jobs(cells: Sequence[Cell], seeds: int | None, quick: bool) -> list[Job]:
    """The cells that are run, each with the number of its runs."""
    numbers = [(cell, cell.quick if quick else cell.seeds) for cell in cells]
    return [(cell, seeds or number) for cell, number in numbers if number]


#: Values by collecting function and scenario: several experiments may have the same cell.
_COLLECTED: dict[tuple[Collect, str], Values] = {}


def measure(
    wanted: Sequence[Job],
    collect: Collect,
    *,
    threads: int,
    progress: Progress | None = None,
    kept: Kept | None = None,
) -> list[Values]:
    """The values of every job; equal scenarios are run once, and those that are kept not at all."""
    scenarios = [cell.build(runs) for cell, runs in wanted]
    keys = [(collect, scenario.sha256) for scenario in scenarios]
    for key in keys:
        before = kept.get(key[1]) if kept is not None else None
        if before is not None:
            _COLLECTED[key] = before
    new = {
        key: scenario
        for key, scenario in zip(keys, scenarios, strict=True)
        if key not in _COLLECTED
    }
    done = lab.one_by_one([*new.values()], threads=threads, progress=progress)
    for key, sweep in zip(new, done, strict=True):
        values = collect(sweep.rows.sort(SEED, maintain_order=True))
        _COLLECTED[key] = values
        if kept is not None:
            kept.put(key[1], values)
    return [_COLLECTED[key] for key in keys]


def observe(
    wanted: Sequence[Job],
    of: Observe,
    *,
    threads: int,
    progress: Progress | None = None,
    kept: Kept | None = None,
) -> list[Values]:
    """The values of every job, whose runs are observed one by one."""

    def observed(cell: Cell, run: int) -> tuple[str, Mapping[str, float | None]]:
        scenario, seed = cell.single(run)
        key = f"{scenario.sha256}:{seed}" if kept is not None else ""
        before = kept.get(key) if kept is not None else None
        return key, of(scenario, seed) if before is None else before

    total = sum(runs for _, runs in wanted)
    found: list[Values] = []
    done = 0
    with _workers(threads) as workers:
        # Runs leave the interpreter to the others.
        started = [
            [workers.submit(observed, cell, n) for n in range(runs)] for cell, runs in wanted
        ]
        for runs in started:
            collected: dict[str, list[float | None]] = {}
            for run in runs:
                key, values = run.result()
                if kept is not None and kept.get(key) is None:
                    kept.put(key, values)
                for metric, value in values.items():
                    collected.setdefault(metric, []).append(value)
                done += 1
                if progress is not None:
                    progress(done, total)
            found.append(collected)
    return found


@contextmanager
def _workers(threads: int) -> Iterator[ThreadPoolExecutor]:
    """A pool that drops the jobs that have not begun when the block ends early, as with Ctrl-C."""
    workers = ThreadPoolExecutor(threads or os.cpu_count())
    try:
        yield workers
    finally:
        workers.shutdown(cancel_futures=True)
