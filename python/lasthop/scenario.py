"""Scenarios, from files or built in Python, on their way into the engine."""

from __future__ import annotations

import functools
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast

from lasthop import _lasthop as engine
from lasthop import library, toml
from lasthop.build import follows, is_unicode, plain
from lasthop.errors import UserError, nearest, unknown
from lasthop.files import write_text
from lasthop.keys import ScenarioKeys

#: A scenario file is no larger, bytes.
LARGEST = 16 << 20
#: And no file that it names, bytes.
LARGEST_TRACE = 64 << 20


@dataclass(frozen=True)
class Outline:
    """A summary of a scenario, made without running it."""

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

    def index(self, flow: str | None) -> int:
        """The place of a flow among the flows, by its name; None is the only one."""
        if flow is None:
            if len(self.flows) != 1:
                names = ", ".join(self.flows)
                raise UserError(f"which flow? Give one by --flow: {names}")
            return 0
        if flow not in self.flows:
            raise unknown("flow", flow, self.flows)
        return self.flows.index(flow)


@dataclass(frozen=True, init=False, repr=False)
class Scenario:
    """Nodes, links and flows to simulate, and the keys that a sweep varies.

    A scenario is immutable: `set` and `over` return changed copies.

    >>> from lasthop import Scenario, flow, link
    >>> scenario = Scenario(
    ...     "A radio hop",
    ...     duration="60 s",
    ...     nodes=["server", "phone"],
    ...     links=[link("server", "phone", rate="4 Mbit/s", delay="35 ms")],
    ...     flows=[flow("server", "phone", tcp={"congestion": "cubic"})],
    ... )
    """

    #: TOML.
    source: str
    #: Where the text is from; error messages name it.
    name: str
    #: Keys such as "links.0.errors.bit" with the values that replace the text's.
    overrides: tuple[tuple[str, object], ...]

    @follows()
    def __init__(
        self,
        title: str = "Untitled",
        *,
        duration: str,
        nodes: Iterable[str] | Mapping[str, object],
        links: Iterable[Mapping[str, object]] = (),
        flows: Iterable[Mapping[str, object]],
        **keys: Unpack[ScenarioKeys],
    ) -> None:
        """Builds and checks a scenario.

        It accepts every key of a scenario file, with the same meaning. Quantities are strings with
        a unit, tables are dicts. Raises ScenarioError with all mistakes.

        Args:
            title: What it shows, in one line.
            duration: How long a run lasts in simulated time.
            nodes: Their names.
            links: Made by `link`, or dicts.
            flows: Made by `flow`, or dicts.
        """
        named = nodes if isinstance(nodes, Mapping) else {node: {} for node in nodes}
        given: dict[str, object] = {"title": title, "duration": duration, **keys}
        # A sweep is read best at the end.
        sweep = {"sweep": given.pop("sweep")} if "sweep" in given else {}
        given |= {"nodes": named, "links": links, "flows": flows, **sweep}
        self._fill(toml.write(plain(given, "")), "<scenario>", ())
        self.outline()

    @classmethod
    def _of(cls, source: str, name: str, overrides: tuple[tuple[str, object], ...]) -> Scenario:
        """One that has not been checked yet."""
        scenario = cls.__new__(cls)
        scenario._fill(source, name, overrides)
        return scenario

    def _fill(self, source: str, name: str, overrides: tuple[tuple[str, object], ...]) -> None:
        # Only while it is made.
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "overrides", overrides)

    def __repr__(self) -> str:
        changed = f", {len(self.overrides)} overrides" if self.overrides else ""
        return f"<Scenario {self.name!r}{changed}>"

    def _repr_markdown_(self) -> str:
        """As a notebook shows it."""
        return f"```toml\n{self.to_toml()}\n```"

    @classmethod
    def from_toml(cls, text: str, name: str = "<scenario>") -> Scenario:
        """Makes a scenario of the text of a file, which is checked when it is first used."""
        return cls._of(text, name, ())

    @classmethod
    def load(cls, file: str | Path) -> Scenario:
        """Reads a file, or a scenario that comes with lasthop by its name, such as "demo"."""
        path = Path(file)
        if "\0" in str(file) or not is_unicode(str(file)):
            raise UserError(f"{str(file)!r} is no file name in UTF-8: rename the file")
        shipped = library.path(str(file))
        try:
            if not path.is_file() and shipped.is_file():
                path = shipped
            with path.open("rb") as opened:
                # A device has no end.
                source = opened.read(LARGEST + 1)
            if len(source) > LARGEST:
                raise UserError(f"{str(file)!r} is larger than a scenario, {LARGEST >> 20} MiB")
            if b"\0" in source:
                raise UserError(f"{str(file)!r} is not a text file: expected TOML")
            return cls.from_toml(source.decode("utf-8"), str(path))
        except FileNotFoundError:
            meant = nearest(str(file), [*library.names(), *_toml_files(path.parent)])
            hint = f"did you mean {meant!r}?" if meant else "`lasthop list` names those there are"
            raise UserError(f"no scenario file {str(file)!r}; {hint}") from None
        except IsADirectoryError:
            raise UserError(f"cannot read {str(file)!r}: a folder; name a file in it") from None
        except UnicodeDecodeError as error:
            line = source.count(b"\n", 0, error.start) + 1
            raise UserError(
                f"{str(file)!r} is not UTF-8: line {line} has the byte 0x{source[error.start]:02x};"
                " save it as UTF-8"
            ) from None
        except OSError as error:
            raise UserError(f"cannot read {str(file)!r}: {error.strerror}") from None

    def set(self, settings: Mapping[str, object] | None = None, /, **keys: object) -> Scenario:
        """A copy of the scenario with other values for some keys, which may be dotted paths.

        A value for a swept key replaces all of the sweep's values.

        >>> scenario.set({"links.0.rate": "10 Mbit/s", "flows.*.tcp.eten": "backward"})
        >>> scenario.set(duration="5 min")
        """
        given = {**(settings or {}), **keys}
        put = tuple((key, plain(value, key)) for key, value in given.items())
        return self._of(self.source, self.name, (*self.overrides, *put))

    def over(self, keys: Mapping[str, object], *, seeds: int | None = None) -> Scenario:
        """A copy of the scenario with another sweep: all combinations of these keys' values.

        `seeds` defaults to the present number.

        >>> scenario.over({"links.0.errors.bit": [0, 1e-6, 1e-5]}, seeds=30)
        """
        before = self.document()
        seeds = before.get("sweep", {}).get("seeds") if seeds is None else seeds
        return self.set(sweep={"seeds": seeds, **keys})

    def document(self) -> dict[str, Any]:
        """What the scenario says, with all changed keys, as plain values."""
        return engine.document(self.source, self.name, overrides=self.overrides)

    def to_toml(self) -> str:
        """The scenario as the text of a file, with all changed keys.

        A scenario that was loaded and not changed is returned unchanged, with its comments.
        """
        if not self.overrides:
            return self.source
        return toml.write(self.document())

    def save(self, file: str | Path, *, force: bool = False) -> Path:
        """Writes the scenario to a file for `Scenario.load` and the command `lasthop`.

        Paths in it, such as those of traces, are relative to the folder of that file. A file that
        is there is replaced only with `force`.
        """
        path = Path(file)
        text = self.to_toml()
        if not force and path.is_file() and path.read_bytes() not in (b"", text.encode()):
            raise UserError(f"{str(file)!r} exists and says something else: force=True replaces it")
        write_text(path, text)
        return path

    @property
    def sha256(self) -> str:
        """A fingerprint of what the scenario says, and of what the files that it names say;
        comments and spaces in the scenario do not count."""
        document, _ = _read(self.source, self.name)
        more = [self.overrides, [fingerprint(file) for file in self.files]]
        text = f"[{document},{_json(more)[1:]}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def files(self) -> list[Path]:
        """The files that the scenario names: traces. Names are relative to its own file."""
        _, own = _read(self.source, self.name)
        names = set(own)
        for key, value in self.overrides:
            names.update(_named(key, value))
        return [Path(self.name).parent / name for name in sorted(names)]

    @property
    def inputs(self) -> list[Path]:
        """The files that a run reads: the scenario's own, and those that it names."""
        return [Path(self.name), *self.files]

    def outline(self) -> Outline:
        """Checks the scenario and returns a summary, with the number of its runs."""
        checked = engine.check(self.source, self.name, overrides=self.overrides)
        return Outline(**cast("dict[str, Any]", checked))


# Cells of a study are one text with different overrides.
@functools.lru_cache(maxsize=16)
def _read(source: str, name: str) -> tuple[str, frozenset[str]]:
    """What a text says, as JSON, and the files that it names."""
    document = engine.document(source, name)
    return _json(document), frozenset(_named("", document))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def setting(text: str) -> tuple[str, object]:
    """The key and value of a KEY=VALUE; the value is TOML, or else a plain string."""
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not key or not equals or not value:
        raise UserError(f"a setting is written KEY=VALUE, not {text!r}")
    try:
        read = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return key, value
    except RecursionError:
        raise UserError(f"the value of {key!r} has too many brackets: expected TOML") from None
    # What goes on in a second line is no value.
    return key, read["value"] if len(read) == 1 else value


def _named(key: str, value: object) -> Iterator[str]:
    """The names of files in what stands at a dotted key."""
    if isinstance(value, dict):
        for inner, of in value.items():
            yield from _named(f"{key}.{inner}", of)
    elif isinstance(value, list | tuple):
        for of in value:
            yield from _named(key, of)
    elif isinstance(value, str) and f".{key}".endswith((".trace", ".trace.file")):
        yield value


def fingerprint(file: Path) -> str | None:
    """A fingerprint of a file; None if it cannot be read, which is reported elsewhere."""
    try:
        with file.open("rb") as opened:
            # A device has no end; larger files are no traces.
            return hashlib.sha256(opened.read(LARGEST_TRACE + 1)).hexdigest()
    except OSError:
        return None


def _toml_files(folder: Path) -> list[str]:
    try:
        return [str(file) for file in folder.glob("*.toml")]
    except OSError:
        return []
