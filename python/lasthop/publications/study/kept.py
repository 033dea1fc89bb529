"""Finished runs of an experiment, kept in a file until all is done.

The first line says what all depends on. Every other line is the values of one scenario's runs, or
of one run, under a fingerprint of the scenario: what is run again with other seeds or settings has
other fingerprints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lasthop._lasthop import __version__
from lasthop.errors import UserError
from lasthop.results import FORMAT

#: Beside results.json.
NAME = "runs.part"


class Kept:
    """The values that a file has, by fingerprints; new ones are added to the file."""

    def __init__(self, folder: Path | None, experiment: str) -> None:
        """Reads the file of a folder, if there is one; without a folder nothing is kept."""
        self.path = None if folder is None else folder / NAME
        self._found: dict[str, Any] = {}
        self._about = json.dumps(
            {"experiment": experiment, "format": FORMAT, "lasthop": __version__}
        )
        if self.path is not None and self.path.is_file():
            self._read(self.path)

    def _read(self, path: Path) -> None:
        first, *lines = path.read_bytes().split(b"\n")
        if first.decode(errors="replace") != self._about:
            raise UserError(
                f"{str(path)!r} is not of this experiment, or of another version of lasthop: remove"
                " it, or choose another folder"
            )
        # What a crash has left of a line at the end is no line: it has no end.
        whole = b"\n".join([first, *lines[:-1]]) + b"\n"
        for line in lines[:-1]:
            key, values = json.loads(line)
            self._found[key] = values
        if lines and lines[-1]:
            path.write_bytes(whole)

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: str) -> Any:
        """The values under a fingerprint; None if there are none."""
        return self._found.get(key)

    def put(self, key: str, values: Mapping[str, float | Sequence[float | None] | None]) -> None:
        """Keeps values."""
        if self.path is None:
            return
        self._found[key] = values
        begins = not self.path.exists()
        with self.path.open("a", encoding="utf-8") as file:
            if begins:
                file.write(f"{self._about}\n")
            file.write(f"{json.dumps([key, values], default=float)}\n")

    def done(self) -> None:
        """Nothing needs to be kept any more."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
