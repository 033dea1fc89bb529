"""The types of fixtures of `conftest.py`: functions that tests call."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from lasthop.publications.study.published import Answer
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.study import Study

#: `lasthop` and `typed`: run the command.
Command = Callable[..., "subprocess.CompletedProcess[str]"]
#: `written`: writes the files of a study's runs, and returns their folder and the answers.
Written = Callable[[Study, Runs], tuple[Path, Sequence[Answer]]]


class Off(Protocol):
    """`off`: runs without a mechanism."""

    def __call__(
        self,
        pool: Runs,
        cases: Iterable[Case],
        plain: Callable[[Case], Case],
        runs: int,
        spread: float = 0.0,
    ) -> Runs:
        """Every case with so many draws of the runs of what it is without the mechanism, whole
        runs each; with a spread, each times a factor of about 1, for pools of too few."""
