"""How shells complete the command's arguments."""

from __future__ import annotations

import glob
from pathlib import Path

from lasthop import library


def scenarios(begun: str) -> list[str]:
    """Names of scenarios that come with lasthop, files, and folders."""
    paths = glob.glob(f"{glob.escape(begun)}*")  # noqa: PTH207
    found = [f"{path}/" if Path(path).is_dir() else path for path in paths]
    found = [path for path in found if path.endswith(("/", ".toml"))]
    return [*(name for name in library.names() if name.startswith(begun)), *sorted(found)]


def experiments(begun: str) -> list[str]:
    """Publications, and their experiments."""
    # It takes a moment to import.
    from lasthop import publications

    names = [*publications.publications(), *(of.id for of in publications.experiments())]
    return [name for name in names if name.startswith(begun)]
