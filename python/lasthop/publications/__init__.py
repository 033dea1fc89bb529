"""The published experiments that can be reproduced.

A publication's module knows its grid, its statements and its figures; the engine knows none of
them. To add one: its scenario and published.toml, a module with `reproduce`, a line below.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from lasthop.errors import unknown


class Reproduce(Protocol):
    """Runs an experiment and fills a folder with results.json and report.html."""

    def __call__(self, folder: Path, *, seeds: int | None, quick: bool, threads: int) -> None: ...


@dataclass(frozen=True)
class Experiment:
    """One published experiment."""

    #: Publication and experiment, as in "bbn8333/sim1".
    id: str
    title: str
    module: str

    def load(self) -> Reproduce:
        """What reproduces it; imported here, since it needs heavy libraries."""
        return cast(Reproduce, importlib.import_module(self.module).reproduce)


EXPERIMENTS = (
    Experiment(
        "bbn8333/sim1",
        "error notification (ETEN) over one lossy hop",
        "lasthop.publications.bbn8333.sim1",
    ),
)


def find(id: str) -> Experiment:
    """The experiment of that name."""
    for experiment in EXPERIMENTS:
        if experiment.id == id:
            return experiment
    raise unknown("experiment", id, [experiment.id for experiment in EXPERIMENTS])
