"""The part of the results of studies that is kept, and the book's tables of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lasthop.publications.study.published import Section
from lasthop.publications.study.runs import Case

Row = Mapping[str, Any]
#: The metric of rows from explanations.json.
EXPLAINED = "explained"


class Shown(Protocol):
    """A table of an experiment in the book."""

    @property
    def all(self) -> Mapping[str, Shown]:
        """All tables of the experiment by name; this one is `numbers`."""

    def shows(self, row: Row) -> bool:
        """Whether the table contains a row."""

    def markdown(self, rows: Sequence[Row]) -> str:
        """The table as Markdown."""


@dataclass(frozen=True)
class Column:
    """A column: a metric of some cases."""

    words: str
    metric: str
    where: Mapping[str, Any]
    #: What to divide it by.
    scale: float = 1.0


@dataclass(frozen=True)
class Table:
    """A table with a line for every value of a key."""

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
        """This table as `numbers`, and the additional ones."""
        return {"numbers": self, **self.more}

    def shows(self, row: Row) -> bool:
        """Whether the table contains a row."""
        return any(self._is_of(row, column) for column in self.columns)

    def _is_of(self, row: Row, column: Column) -> bool:
        # Rows of explanations have no case.
        if row["metric"] != column.metric:
            return False
        wanted = {**self.where, **column.where}
        case = row["case"]
        if self.only and case.get(self.key) not in self.only:
            return False
        return bool(wanted.items() <= case.items())

    def markdown(self, rows: Sequence[Row]) -> str:
        """The table as Markdown; a quantile that is not reached is left empty."""
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


#: The columns that identify a line: heading, and text from the case.
Keys = Mapping[str, Callable[[Mapping[str, Any]], str]]


@dataclass(frozen=True)
class SideBySide:
    """A table with a line for every case: published values beside measured ones."""

    keys: Keys
    #: Words, metric, and what to divide by.
    columns: Sequence[tuple[str, str, float]]

    @property
    def all(self) -> Mapping[str, Shown]:
        """This table alone."""
        return {"numbers": self}

    def shows(self, row: Row) -> bool:
        """Whether the table contains a row."""
        return row["metric"] in [metric for _, metric, _ in self.columns]

    def markdown(self, rows: Sequence[Row]) -> str:
        """The table as Markdown; published values that are misprints are marked."""
        shown = [row for row in rows if row["metric"] != "finding" and self.shows(row)]
        published = {row["metric"] for row in shown if row["published"] is not None}
        heads = list(self.keys)
        for words, metric, _ in self.columns:
            heads += (
                [f"{words}: published", "measured", "error factor"]
                if metric in published
                else [words]
            )
        values = len(heads) - len(self.keys)
        lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(self.keys)}{' ---: |' * values}"]
        cases = list(dict.fromkeys(Case(**row["case"]) for row in shown))
        for case in cases:
            found = {row["metric"]: row for row in shown if row["case"] == dict(case)}
            cells = [of(case) for of in self.keys.values()]
            for _, metric, scale in self.columns:
                row = found.get(metric)
                if metric in published:
                    cells.append("" if row is None else self._published(case, row, scale))
                cells.append("" if row is None else number(row, scale))
                if metric in published:
                    cells.append("" if row is None else factor(row))
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    def _published(self, case: Case, row: Row, scale: float) -> str:
        if row["published"] is None:
            return ""
        of = Section.of(row["publication"], row["experiment"]).number(case, row["metric"])
        value = f"{row['published'] / scale:g}"
        if of is None:
            return value
        if of.of.ci95 is not None:
            value += f" [{of.of.ci95[0] / scale:g}, {of.of.ci95[1] / scale:g}]"
        return f"{value}\\*" if of.misprint else value


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
    """Every question and statement with its verdict, as Markdown."""
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
    """Every published number beside the measured one, as Markdown."""
    lines = [
        "| case | | published | measured | error factor | verdict |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        if row["metric"] not in ("finding", EXPLAINED) and row["published"] is not None:
            case = ", ".join(f"{key} {value}" for key, value in row["case"].items())
            lines.append(
                f"| {case} | {row['metric']} | {row['published']:g} | {number(row, 1.0)} "
                f"| {factor(row)} | {verdict(row)} |"
            )
    return "\n".join(lines)


def kept(table: Shown, folder: Path) -> list[Row]:
    """The rows of a results.json that the book shows."""
    rows: list[Row] = json.loads((folder / "results.json").read_text())
    return [
        row
        for row in rows
        if row["metric"] == "finding"
        or row["published"] is not None
        or any(shown.shows(row) for shown in table.all.values())
    ]
