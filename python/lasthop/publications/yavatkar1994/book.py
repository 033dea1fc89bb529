"""yavatkar1994: its tables in the book."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lasthop.publications.study.book import Column, Shown, SideBySide, Table
from lasthop.publications.yavatkar1994 import EXPERIMENTS, handoffs, hop, path, schemes, sensitivity
from lasthop.publications.yavatkar1994 import today as now


def _percent(loss: float) -> str:
    return f"{100 * loss:g} %"


def _case(case: Mapping[str, Any]) -> str:
    return f"{schemes.name(case['scheme'])}, {_percent(case['loss'])}"


def _seconds(value: float) -> str:
    return f"{value:g} s"


_TABLE = SideBySide(
    {"scheme and losses": _case, "pause, s": lambda case: f"{case['pause_s']:g}"},
    (
        ("transfer, s", "transfer_s", 1.0),
        ("timeouts", "timeouts", 1.0),
        ("given up", "given_up", 1.0),
    ),
)


def _cells(scheme: str, **where: Any) -> list[Column]:
    found = []
    for pause in sensitivity.PAUSES_S:
        for loss in path.LOSSES:
            value = sensitivity.published(scheme, loss, pause)
            words = f"{_percent(loss)}, {_seconds(pause)}"
            words += f" (published: {value:g})" if value is not None else ""
            cell = {"scheme": scheme, "loss": loss, "pause_s": pause, **where}
            found.append(Column(words, "transfer_s", cell))
    return found


_SENSITIVITY = {scheme: Table("arm", "choice", {}, _cells(scheme)) for scheme in schemes.ENABLED}


def _handoffs(loss: float, more: Mapping[str, Table] | None = None) -> Table:
    columns = [
        Column(
            f"{schemes.name(scheme)}, {_seconds(spacing)} apart",
            "transfer_s",
            {"scheme": scheme, "loss": loss, "spacing_s": spacing},
        )
        for scheme in handoffs.SCHEMES
        for spacing in (10.0, 5.0)
    ]
    return Table("pause_s", "pause", {}, columns, _seconds, more=more or {})


def _hop(errors: str, more: Mapping[str, Table] | None = None) -> Table:
    columns = [
        Column(
            f"{schemes.name(scheme)}, {1e3 * rtt:g} ms",
            "share",
            {"scheme": scheme, "rtt_s": rtt, "errors": errors},
        )
        for scheme in hop.SCHEMES
        for rtt in hop.RTTS_S
    ]
    return Table("loss", "loss", {}, columns, _percent, more=more or {})


_ALL: Mapping[str, Shown] = {
    "table1": _TABLE,
    "table2": _TABLE,
    "table3": _TABLE,
    "handoffs": _handoffs(0.0, {"lossy": _handoffs(0.05)}),
    "sensitivity": Table(
        "arm",
        "choice",
        {},
        _cells(schemes.TCP),
        more={of: table for of, table in _SENSITIVITY.items() if of != schemes.TCP},
    ),
    "today": Table(
        "pause_s",
        "pause",
        {},
        [
            Column(
                f"{schemes.name(scheme)}, {_percent(loss)}",
                "transfer_s",
                {"scheme": scheme, "loss": loss},
            )
            for loss in path.LOSSES
            for scheme in now.SCHEMES
        ],
        _seconds,
    ),
    "hop": _hop(hop.UNIFORM, {"bursty": _hop(hop.BURSTY)}),
}
TABLES: Mapping[str, Shown] = {name: _ALL[name] for name in EXPERIMENTS}
