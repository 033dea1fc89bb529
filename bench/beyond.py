"""bbn8333's open questions: what is kept of them, and their tables in the book."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


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

    def shows(self, row: Row) -> bool:
        """Whether a row is in it."""
        return any(self._is_of(row, column) for column in self.columns)

    def _is_of(self, row: Row, column: Column) -> bool:
        wanted = {**self.where, **column.where}
        return bool(row["metric"] == column.metric and wanted.items() <= row["case"].items())

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


def answers(rows: Sequence[Row]) -> str:
    """Every question and statement, and what the runs say."""
    lines = ["| question or statement | holds | measured |", "| --- | --- | --- |"]
    words = {True: "yes", False: "**no**", None: "open"}
    found = (row for row in rows if row["metric"] == "finding")
    lines += [f"| {row['claim']} | {words[row['agrees']]} | {row['why']} |" for row in found]
    return "\n".join(lines)


def _goodputs(key: str, words: str, value: Callable[[Any], str]) -> Table:
    names = {"none": "alone", "backward": "Backward", "oracle": "Oracle"}
    columns = [
        Column(
            f"{'Reno' if recovery == 'reno' else 'SACK'}, {names[eten]}",
            "goodput_bps",
            {"recovery": recovery, "eten": eten},
            1e3,
        )
        for recovery in ("reno", "sack")
        for eten in names
    ]
    where = {"one_way_delay_s": 0.32, "bit_error_rate": 1.56e-5}
    return Table(key, words, where, columns, value)


def _etens(metrics: Mapping[str, str]) -> list[Column]:
    names = {"none": "alone", "backward": "Backward", "oracle": "Oracle"}
    return [
        Column(f"{words}, {name}", metric, {"eten": eten})
        for metric, words in metrics.items()
        for eten, name in names.items()
    ]


PERIOD = {"profile": "ns2-2001"}
STRATEGIES = ("published", "loss-ratio", "adaptive")

TABLES: Mapping[str, Table] = {
    "burst": _goodputs("burst_packets", "packets in a burst", lambda n: str(n or "bit errors")),
    "fade": _goodputs("fade_s", "fades of", lambda s: f"{s:g} s" if s else "none"),
    "short": Table(
        "size_bytes",
        "size",
        {**PERIOD, "bit_error_rate": 1.56e-5},
        _etens({"transfer_median_s": "median, s", "transfer_p95_s": "95th percentile, s"}),
        lambda size: f"{size / 1e3:g} kB",
    ),
    "web": Table(
        "bit_error_rate",
        "bit errors",
        PERIOD,
        _etens({"page_median_s": "page, median, s", "object_p95_s": "object, 95th percentile, s"}),
        lambda rate: f"{rate:g}",
    ),
    "setup": Table(
        "bit_error_rate",
        "bit errors",
        {**PERIOD, "errors": "both"},
        [
            Column(f"{words}, {name}", metric, where, scale)
            for metric, words, scale in (
                ("first_byte_median_s", "first byte, s", 1.0),
                ("failed", "fail, %", 0.01),
            )
            for name, where in (
                ("alone", {"eten": "none"}),
                ("Backward 180", {"eten": "backward", "notice_bytes": 180}),
                ("Backward 56", {"eten": "backward", "notice_bytes": 56}),
                ("Oracle", {"eten": "oracle"}),
            )
        ],
        lambda rate: f"{rate:g}",
    ),
    "mistake": Table(
        "mistakes",
        "mistaken",
        {},
        [
            *(
                Column(words, metric, {"mistaken": "one", "competitors": 4}, scale)
                for words, metric, scale in (
                    ("own goodput, kb/s", "goodput_bps", 1e3),
                    ("each other's, kb/s", "others_goodput_bps", 1e3),
                    ("Jain's index", "fairness", 1.0),
                    ("dropped, %", "dropped_share", 0.01),
                )
            ),
            Column("all err: bystander, kb/s", "bystander_goodput_bps", {"mistaken": "all"}, 1e3),
            Column("all err: everything, kb/s", "all_goodput_bps", {"mistaken": "all"}, 1e3),
        ],
        lambda share: f"{100 * share:g} %",
    ),
    "alpha": Table(
        "alpha",
        "a",
        {},
        [
            Column(
                f"{strategy}, {'beside 4' if others else 'alone'}",
                "ratio",
                {"strategy": strategy, "competitors": others, "bit_error_rate": 1.56e-6},
            )
            for others in (0, 4)
            for strategy in STRATEGIES
        ],
        lambda weight: f"{weight:g}",
    ),
    "fairness": Table(
        "bit_error_rate",
        "bit errors",
        {"own": 1},
        [
            Column(f"{words}, {strategy}", metric, {"strategy": strategy})
            for metric, words in (("share_of_fair", "of a fair share"), ("ratio", "others"))
            for strategy in STRATEGIES
        ],
        lambda rate: f"{rate:g}",
    ),
    "ecn": Table(
        "bit_error_rate",
        "bit errors",
        {},
        [
            Column(
                f"{name}, {strategy}, {'with' if ecn else 'without'} ECN",
                "ratio",
                {"queue": queue, "strategy": strategy, "ecn_on": ecn},
            )
            for queue, name in (("red", "RED"), ("codel", "CoDel"))
            for strategy in ("published", "loss-ratio")
            for ecn in (True, False)
        ],
        lambda rate: f"{rate:g}",
    ),
}


def kept(name: str, folder: Path) -> list[Row]:
    """Of what a reproduction has written, what the book shows."""
    rows: list[Row] = json.loads((folder / "results.json").read_text())
    return [row for row in rows if row["metric"] == "finding" or TABLES[name].shows(row)]
