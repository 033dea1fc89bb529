"""Studies: what is kept of their results, and their tables in the book."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

Row = Mapping[str, Any]


class Shown(Protocol):
    """What the book shows of an experiment."""

    @property
    def all(self) -> Mapping[str, Shown]:
        """This one, its numbers, and further tables of it, by what they are about."""

    def shows(self, row: Row) -> bool:
        """Whether a row is in it."""

    def markdown(self, rows: Sequence[Row]) -> str:
        """As the book has it."""


@dataclass(frozen=True)
class Column:
    """A metric of some cases."""

    words: str
    metric: str
    where: Mapping[str, Any]
    #: What to divide it by.
    scale: float = 1.0


@dataclass(frozen=True)
class Table:
    """What the book shows of an experiment: a line for every value of a key."""

    key: str
    words: str
    where: Mapping[str, Any]
    columns: Sequence[Column]
    #: What a value of the key is called.
    value: Callable[[Any], str] = str
    #: Of so many values these; if empty, all.
    only: Collection[Any] = ()
    #: Further tables of the same experiment, by what they are about.
    more: Mapping[str, Table] = field(default_factory=dict)

    @property
    def all(self) -> Mapping[str, Shown]:
        """This one, its numbers, and the further ones."""
        return {"numbers": self, **self.more}

    def shows(self, row: Row) -> bool:
        """Whether a row is in it."""
        return any(self._is_of(row, column) for column in self.columns)

    def _is_of(self, row: Row, column: Column) -> bool:
        wanted = {**self.where, **column.where}
        case = row["case"]
        if row["metric"] != column.metric or (self.only and case.get(self.key) not in self.only):
            return False
        return bool(wanted.items() <= case.items())

    def markdown(self, rows: Sequence[Row]) -> str:
        """As the book has it; what a quantile does not reach is left empty."""
        values = list(dict.fromkeys(row["case"][self.key] for row in rows if self.shows(row)))
        lines = [
            f"| {' | '.join([self.words, *(column.words for column in self.columns)])} |",
            f"|{' ---: |' * (1 + len(self.columns))}",
        ]
        for value in sorted(values):
            cells = [self.value(value)]
            for column in self.columns:
                own = (
                    row
                    for row in rows
                    if self._is_of(row, column) and row["case"][self.key] == value
                )
                cells.append(next((number(row, column.scale) for row in own), ""))
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)


def number(row: Row, scale: float) -> str:
    """A value and half its interval, three significant digits."""
    value, half = row["measured"] / scale, (row["ci95"][1] - row["ci95"][0]) / 2 / scale
    digits = 2 - math.floor(math.log10(abs(value))) if value else 2
    decimals = max(0, min(digits, 4))
    text = f"{value:.{decimals}f}"
    return f"{text} ± {half:.{decimals}f}" if half >= 0.5 * 10.0**-decimals else text


def verdict(row: Row) -> str:
    """Holds, differs or undecided; open where the publication only asks."""
    # Results that were kept before there were three verdicts know two of them.
    of = row.get("verdict", {True: "holds", False: "differs", None: None}[row.get("agrees")])
    words = {"holds": "holds", "differs": "**differs**", "undecided": "*undecided*"}
    return words.get(of, "open" if row["metric"] == "finding" else "")


def factor(row: Row) -> str:
    """The error factor: measured over published."""
    if not row["published"] or row["measured"] is None:
        return ""
    return f"{row['measured'] / row['published']:.2f}"


def statements(rows: Sequence[Row]) -> str:
    """Every question and statement, and what the runs say."""
    lines = [
        "| question or statement | verdict | error factor | measured |",
        "| --- | --- | ---: | --- |",
    ]
    lines += [
        f"| {row['claim']} | {verdict(row)} | {factor(row)} | {row['why']} |"
        for row in rows
        if row["metric"] == "finding"
    ]
    return "\n".join(lines)


def published(rows: Sequence[Row]) -> str:
    """Every published number beside the measured one."""
    lines = [
        "| case | | published | measured | error factor | verdict |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        if row["published"] is not None and row["metric"] != "finding":
            case = ", ".join(f"{key} {value}" for key, value in row["case"].items())
            lines.append(
                f"| {case} | {row['metric']} | {row['published']:g} | {number(row, 1.0)} "
                f"| {factor(row)} | {verdict(row)} |"
            )
    return "\n".join(lines)


def kept(table: Shown, folder: Path) -> list[Row]:
    """Of what a reproduction has written, what the book shows."""
    rows: list[Row] = json.loads((folder / "results.json").read_text())
    return [
        row
        for row in rows
        if row["metric"] == "finding"
        or row["published"] is not None
        or any(shown.shows(row) for shown in table.all.values())
    ]
