"""What many tables in Markdown have: their rows, cells and captions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Result = Mapping[str, Any]


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown. All columns but the first have numbers."""
    rule = "| --- |" + " ---: |" * (len(heads) - 1)
    head = "|".join(f" {words} " if words else " " for words in heads)
    return "\n".join([f"|{head}|", rule, *(f"| {' | '.join(of)} |" for of in lines)])


def captioned(lines: Sequence[str], result: Result, about: str = "") -> str:
    """A table's lines; below them words about it, and the circumstances of its measurement."""
    below = f"{about} {circumstances(result)}" if about else circumstances(result)
    return "\n".join([*lines, "", below])


def circumstances(result: Result) -> str:
    """The version, the machine and the date of a measurement."""
    machine = result["machine"]
    return (
        f"*lasthop {result['lasthop']}, rustc {result['rustc']}, {machine['cpu']}, "
        f"{machine['cores']} cores, {result['date']}.*"
    )


def interval(mean: float, ci95: Sequence[float] | None) -> str:
    """A mean and half its interval, in kb/s."""
    half = (ci95[1] - ci95[0]) / 2 if ci95 else 0.0
    return f"{mean / 1e3:.1f} ± {half / 1e3:.1f}" if half else f"{mean / 1e3:.1f}"


def spread(values: Sequence[float] | None, digits: int = 2, factor: float = 1.0) -> str:
    """The median, and the least and the largest value if they differ, of these three."""
    if not values:
        return "none"
    low, median, high = (f"{factor * value:.{digits}f}" for value in values)
    return median if low == high else f"{median} ({low} to {high})"


def spread_of(row: Result) -> str:
    """The least and the largest value of a row."""
    low, high = row["range"]
    return f"{low:,.0f} to {high:,.0f}"
