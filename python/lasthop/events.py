"""Events of connections: one a line in files, one a row in frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop.errors import UserError
from lasthop.results import frame

if TYPE_CHECKING:
    import polars as pl


def read_events(file: str | Path) -> pl.DataFrame:
    """The events of a file that `run(..., events=file)` or `lasthop run --events` wrote.

    One row an event, in order. The columns are `t_s`, `node`, `flow`, `event` (its kind: "sent",
    "acknowledged", "sacked", "loss", "reduced", "timed-out", ...), and the fields of all kinds,
    null for other kinds. Bytes are counted from the SYN, which is 0. Durations are in nanoseconds.
    """
    try:
        lines = Path(file).read_text(encoding="utf-8").removesuffix("\n").split("\n")
        # One call for all lines: a call for each takes three times as long.
        events = json.loads(f"[{','.join(lines)}]")
    except OSError as error:
        raise UserError(f"cannot read {str(file)!r}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{str(file)!r} does not hold events, a line of JSON each") from None
    columns: dict[str, list[Any]] = {}
    for index, event in enumerate(events):
        for key, value in _flat(event).items():
            # Null for the events before that have none.
            column = columns.setdefault(key, [])
            column.extend([None] * (index - len(column)))
            column.append(value)
    for column in columns.values():
        column.extend([None] * (len(events) - len(column)))
    return frame(columns)


def _flat(event: dict[str, Any]) -> dict[str, Any]:
    """A verdict with settings, {"congestion": {...}}, becomes its name, and columns for them."""
    flat: dict[str, Any] = {}
    for key, value in event.items():
        if isinstance(value, dict):
            ((name, inner),) = value.items()
            flat[key] = name
            flat |= inner if isinstance(inner, dict) else {name: inner}
        else:
            flat[key] = value
    return flat
