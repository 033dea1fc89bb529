"""bbn8333's simulations: their tables in the book."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lasthop.publications.bbn8333.cases import (
    ETEN,
    LFN,
    LTN,
    RECOVERIES,
    WESTWOOD,
    WESTWOOD_PLUS,
    network_name,
    sender_name,
)
from lasthop.publications.bbn8333.ceten import FAST
from lasthop.publications.bbn8333.sim5 import SLOW_AND_SHORT
from lasthop.publications.study.book import EXPLAINED, Row, Shown, factor, statements, verdict
from lasthop.publications.study.runs import Case

_WINDOWS = (None, WESTWOOD, WESTWOOD_PLUS)


def _order(sender: Case) -> tuple[int, int, int]:
    return (
        _WINDOWS.index(sender.get("window")),
        RECOVERIES.index(sender["recovery"]),
        list(ETEN).index(sender["eten"]),
    )


def _goodput(row: Row) -> str:
    """A mean and half its interval, in kb/s."""
    half = (row["ci95"][1] - row["ci95"][0]) / 2e3
    return f"{row['measured'] / 1e3:.1f}" + (f" ± {half:.1f}" if half else "")


@dataclass(frozen=True)
class Goodputs:
    """What a figure shows: the goodput of every sender, over the bit error rate."""

    network: Case

    @property
    def all(self) -> Mapping[str, Shown]:
        """There is no other."""
        return {"numbers": self}

    def shows(self, row: Row) -> bool:
        """Whether a row is of the figure's network, with errors in both directions."""
        wanted = {**self.network, "errors": "both"}
        return bool(row["metric"] == "goodput_bps" and wanted.items() <= row["case"].items())

    def markdown(self, rows: Sequence[Row]) -> str:
        """As the book has it."""
        cells: dict[tuple[int, float], dict[Case, str]] = {}
        for row in filter(self.shows, rows):
            case = Case(**row["case"])
            who = Case(recovery=case["recovery"], eten=case["eten"]).but(window=case.get("window"))
            place = (case.get("competitors", 0), case["bit_error_rate"])
            cells.setdefault(place, {})[who] = _goodput(row)
        senders = sorted({who for cell in cells.values() for who in cell}, key=_order)
        beside = len({competitors for competitors, _ in cells}) > 1
        head = [*(["flows beside it"] if beside else []), "bit errors", *map(sender_name, senders)]
        lines = [f"| {' | '.join(head)} |", f"|{' ---: |' * len(head)}"]
        for (competitors, errors), cell in sorted(cells.items()):
            values = [*([str(competitors)] if beside else []), f"{errors:g}"]
            lines.append(f"| {' | '.join(values + [cell.get(who, '') for who in senders])} |")
        return "\n".join(lines)


@dataclass(frozen=True)
class Ratios:
    """The published ratios of simulation 1: beside the measured ones, with today's stack, and with
    fewer corruptions excused."""

    @property
    def all(self) -> Mapping[str, Shown]:
        """The ratios, the statements, and the explanation of each ratio that is not met."""
        return {"numbers": self, "statements": _Statements(), "why": _Why()}

    def shows(self, row: Row) -> bool:
        """Whether a row is kept: all goodputs and ratios, which the README has, too."""
        return row["metric"] in ("goodput_bps", "ratio")

    def markdown(self, rows: Sequence[Row]) -> str:
        """As the book has it."""
        lines = [
            '| path | | published | measured, 95 % | error factor | `"first"` '
            '| `"none"` | `modern` | verdict |',
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        ]
        first, none = (_explained(rows, factor) for factor in ("first-excused", "dupacks-count"))
        measured = {_key(row["case"]): row["measured"] for row in rows if row["metric"] == "ratio"}
        for row in _published(rows):
            case = Case(**row["case"])
            lines.append(
                f"| {network_name(case)} | {case['recovery']} {case['eten']} | {row['published']:g}"
                f" | {row['measured']:.2f} ({row['ci95'][0]:.2f} to {row['ci95'][1]:.2f})"
                f" | {factor(row)} | {first[_key(case)]:.2f} | {none[_key(case)]:.2f}"
                f" | {measured[_key(case.but(profile='modern'))]:.2f} | {verdict(row)} |"
            )
        return "\n".join(lines)


class _Statements(Ratios):
    def markdown(self, rows: Sequence[Row]) -> str:
        """Every statement that is not a ratio of one cell."""
        ratios = [row["claim"] for row in _published(rows)]
        return statements([row for row in rows if row.get("claim") not in ratios])


class _Why(Ratios):
    def markdown(self, rows: Sequence[Row]) -> str:
        """The explanation of every ratio that is not met."""
        differing = [row for row in _published(rows) if row["agrees"] is not True]
        return "\n\n".join(f"*{row['claim']}* {row['why']}" for row in differing)


def _key(case: Mapping[str, object]) -> str:
    return json.dumps(dict(case), sort_keys=True)


def _explained(rows: Sequence[Row], factor: str) -> dict[str, float]:
    """By case, the ratios that were published, with one factor changed."""
    return {
        _key(row["case"]): row["measured"]
        for row in rows
        if row["metric"] == EXPLAINED and "ratio" in row and row["variation"] == factor
    }


def _published(rows: Sequence[Row]) -> list[Row]:
    """The statements that are a ratio of one cell."""
    explained = _explained(rows, "dupacks-count")
    return [
        row
        for row in rows
        if row["metric"] == "finding" and row["published"] and _key(row["case"]) in explained
    ]


TABLES: Mapping[str, Shown] = {
    "sim1": Ratios(),
    "sim2": Goodputs(LFN),
    **{name: Goodputs(LTN) for name in ("sim3", "sim4")},
    **{name: Goodputs(SLOW_AND_SHORT) for name in ("sim5", "sim6")},
    **{name: Goodputs(FAST) for name in ("sim7", "sim8")},
}
