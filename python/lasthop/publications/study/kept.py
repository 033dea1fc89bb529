"""Finished runs of an experiment, kept in a file until all is done.

The first line says what all depends on. Every other line is the values of one scenario's runs, or
of one run, under a fingerprint of the scenario: what is run again with other seeds or settings has
other fingerprints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lasthop._lasthop import __version__
from lasthop.errors import UserError
from lasthop.files import held
from lasthop.results import FORMAT

#: Beside results.json.
NAME = "runs.part"


class Kept:
    """The values that a file has, by fingerprints; new ones are added to the file, which no other
    process may have until the end of the `with` block."""

    def __init__(self, folder: Path | None, experiment: str) -> None:
        """Reads the file of a folder, if there is one; without a folder nothing is kept."""
        self._lock = ExitStack()
        self._is_held = False
        self.path = None if folder is None else folder / NAME
        self._found: dict[str, Any] = {}
        self._about = json.dumps(
            {"experiment": experiment, "format": FORMAT, "lasthop": __version__}
        )
        if self.path is not None and self.path.is_file():
            self.hold()

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()
        self._is_held = False

    def hold(self) -> None:
        """Keeps the file for this process alone, in a folder that is there, and reads it."""
        if self.path is None or self._is_held:
            return
        refusal = f"another command runs this experiment, and is writing {str(self.path)!r}"
        with ExitStack() as lock:
            lock.enter_context(held(self.path, refusal))
            if self.path.stat().st_size > 0:
                self._read(self.path)
            self._lock = lock.pop_all()
        self._is_held = True

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
        self.hold()
        self._found[key] = values
        begins = self.path.stat().st_size == 0
        with self.path.open("a", encoding="utf-8") as file:
            if begins:
                file.write(f"{self._about}\n")
            file.write(f"{json.dumps([key, values], default=float)}\n")

    def done(self) -> None:
        """Nothing needs to be kept any more."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
