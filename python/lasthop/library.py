"""The scenario files that come with the package."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "scenarios"

#: Beside a publication's scenarios: what it published. Not a scenario.
PUBLISHED = "published.toml"


def names() -> list[str]:
    """The names of all scenarios, as `lasthop run` takes them: demo, bbn8333/sim1, ..."""
    files = (file for file in FOLDER.rglob("*.toml") if file.name != PUBLISHED)
    return sorted(file.relative_to(FOLDER).with_suffix("").as_posix() for file in files)


def path(name: str) -> Path:
    """The file of a scenario by its name, whether it exists or not."""
    return FOLDER / f"{name}.toml"


@cache
def published(publication: str) -> Mapping[str, Any]:
    """A publication's numbers and statements, from its published.toml. It is read once: the same
    for all who ask, and not to be changed."""
    return tomllib.loads((FOLDER / publication / PUBLISHED).read_text(encoding="utf-8"))
