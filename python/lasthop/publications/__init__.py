"""The published experiments that can be reproduced, found from the folders here.

A package whose `EXPERIMENTS` names experiments, in the publication's order, is a publication or a
part of one. Each experiment is a module of the package with a `STUDY`; its scenario is the file of
the same name in scenarios/, beside the publication's published.toml. The package's `book` has the
tables that the book shows of each.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lasthop.errors import unknown
from lasthop.publications.study.book import Shown
from lasthop.publications.study.study import Study


@dataclass(frozen=True)
class Experiment:
    """One published experiment."""

    #: As in "bbn8333"; what goes beyond it is apart: "bbn8333/beyond".
    publication: str
    #: As in "sim1", "burst".
    name: str

    @property
    def id(self) -> str:
        """As in "bbn8333/sim1", "bbn8333/beyond/burst"."""
        return f"{self.publication}/{self.name}"

    def load(self) -> Study:
        """Imports the study, which needs heavy libraries."""
        package = self.publication.replace("/", ".")
        module = self.name.replace("-", "_").replace(".", "_")
        found: Study = importlib.import_module(f"{__name__}.{package}.{module}").STUDY
        return found


def publications() -> dict[str, tuple[str, ...]]:
    """The names of the experiments of every publication or part of one."""
    return dict(_parts(__name__))


def _parts(package: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    module = importlib.import_module(package)
    names = getattr(module, "EXPERIMENTS", ())
    if names:
        yield package.removeprefix(f"{__name__}.").replace(".", "/"), names
    for inner in pkgutil.iter_modules(module.__path__, f"{package}."):
        if inner.ispkg:
            yield from _parts(inner.name)


def book(publication: str) -> Mapping[str, Shown]:
    """The book's tables of each experiment of a publication."""
    package = publication.replace("/", ".")
    found: Mapping[str, Shown] = importlib.import_module(f"{__name__}.{package}.book").TABLES
    return found


def experiments() -> list[Experiment]:
    """All experiments."""
    return [Experiment(of, name) for of, names in publications().items() for name in names]


def find(id: str) -> list[Experiment]:
    """The experiment of that name, or all of the publication of that name, or else all whose names
    begin so: "obanaik2003", "koutsianas2007/fig4"."""
    every = experiments()
    found = [of for of in every if id in (of.id, of.publication)]
    if found:
        return found
    # Perhaps a figure that the runs of another are for, too.
    figures = {f"{of.publication}/{figure}": of for of in every for figure in of.load().also}
    if id in figures:
        return [figures[id]]
    found = [of for of in every if id and of.id.startswith(id)]
    if not found:
        raise unknown("experiment", id, [*(of.id for of in every), *figures, *publications()])
    return found
