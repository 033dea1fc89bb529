"""Scenario files, on their way into the engine."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from lasthop import _lasthop as engine
from lasthop import library
from lasthop.errors import UserError, nearest

#: A scenario file is no larger, bytes.
LARGEST = 16 << 20


@dataclass(frozen=True)
class Outline:
    """What a scenario amounts to, found without running it."""

    title: str
    #: Simulated time of one run, seconds.
    duration_s: float
    #: Combinations of the swept values.
    points: int
    seeds: int
    #: Points times seeds.
    runs: int
    flows: list[str]
    links: list[str]
    #: The columns of a sweep's rows, and what is in each: text, integer, float or boolean.
    columns: dict[str, str]
    #: Files that the scenario names, such as traces.
    files: list[str]


@dataclass(frozen=True)
class Scenario:
    """A scenario's text, and settings that override some of it.

    >>> scenario = Scenario.load("demo").set({"links.0.rate": "10 Mbit/s"})
    """

    #: TOML.
    source: str
    #: Where the text is from; error messages name it.
    name: str
    #: Keys such as "links.0.errors.bit" with the values that replace the file's.
    overrides: tuple[tuple[str, object], ...] = ()

    @classmethod
    def load(cls, file: str | Path) -> Scenario:
        """Reads a file, or a scenario that comes with the package by its name, such as "demo"."""
        path = Path(file)
        shipped = library.path(str(file))
        if not path.is_file() and shipped.is_file():
            path = shipped
        try:
            with path.open("rb") as opened:
                # A device has no end.
                source = opened.read(LARGEST + 1)
            if len(source) > LARGEST:
                raise UserError(f"{str(file)!r} is larger than a scenario, {LARGEST >> 20} MiB")
            if b"\0" in source:
                raise UserError(f"{str(file)!r} is not a text file")
            return cls(source.decode("utf-8"), str(path))
        except FileNotFoundError:
            meant = nearest(str(file), [*library.names(), *_toml_files(path.parent)])
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise UserError(f"no scenario file {str(file)!r}{hint}") from None
        except UnicodeDecodeError:
            raise UserError(f"{str(file)!r} is not a text file") from None
        except OSError as error:
            raise UserError(f"cannot read {str(file)!r}: {error.strerror}") from None

    def set(self, settings: Mapping[str, object]) -> Scenario:
        """The same scenario with some keys set to other values; a dotted key reaches inside."""
        return replace(self, overrides=(*self.overrides, *settings.items()))

    @property
    def sha256(self) -> str:
        """A fingerprint of what the scenario says; comments and spaces do not count."""
        said = [tomllib.loads(self.source), self.overrides]
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":"), default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def outline(self) -> Outline:
        """Validates the scenario and says how many runs it asks for."""
        checked = engine.check(self.source, self.name, overrides=self.overrides)
        return Outline(**cast("dict[str, Any]", checked))


def setting(text: str) -> tuple[str, object]:
    """The key and value of a KEY=VALUE; the value is TOML, or else a plain string."""
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not key or not equals or not value:
        raise UserError(f"a setting is written KEY=VALUE, not {text!r}")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


def _toml_files(folder: Path) -> list[str]:
    try:
        return [str(file) for file in folder.glob("*.toml")]
    except OSError:
        return []
