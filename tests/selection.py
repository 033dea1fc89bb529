"""The cases of a study's runs that a test is about."""

from __future__ import annotations

from typing import Any

from lasthop.publications.study.runs import Case, Runs


def some(runs: Runs, **where: Any) -> list[Case]:
    """The cases with these values, of which there is at least one: a test of none tests nothing."""
    cases = runs.cases(**where)
    assert cases, where
    return cases
