"""yavatkar1994: its tables in the book."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lasthop import units
from lasthop.publications.study.book import Column, Shown, SideBySide, Table
from lasthop.publications.yavatkar1994 import (
    EXPERIMENTS,
    beside,
    cost,
    handoffs,
    hop,
    path,
    restored,
    schemes,
    sensitivity,
)


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
        for scheme in (*handoffs.SCHEMES, *(() if loss else handoffs.CAPPED.values()))
        for spacing in (10.0, 5.0)
    ]
    return Table("pause_s", "pause", {}, columns, _seconds, more=more or {})


def _today(sends: str, more: Mapping[str, Table] | None = None) -> Table:
    columns = [
        Column(
            f"{_percent(loss)}, {_seconds(pause)}",
            "transfer_s",
            {"sends": sends, "loss": loss, "pause_s": pause},
        )
        for loss in path.LOSSES
        for pause in path.PAUSES_S
    ]
    return Table("scheme", "sender", {}, columns, schemes.name, more=more or {})


def _fixed(sends: str, more: Mapping[str, Table] | None = None) -> Table:
    metrics = {
        "timeouts": "timeouts",
        "retransmissions": "retransmissions",
        "window_probes": "window probes",
        "duplicate_acks": "duplicate ACKs",
        "resets": "resets",
    }
    columns = [
        Column(f"{words}, {_percent(loss)}", metric, {"sends": sends, "loss": loss, "pause_s": 2.8})
        for metric, words in metrics.items()
        for loss in (0.0, 0.05)
    ]
    return Table("scheme", "scheme", {}, columns, schemes.name, more=more or {})


def _cost(sends: str, more: Mapping[str, Table] | None = None) -> Table:
    columns = [
        Column(
            f"{schemes.name(scheme)}, {words}, {cache} KiB",
            metric,
            {"scheme": scheme, "sends": sends, "cache_kib": cache},
            scale,
        )
        for scheme in cost.SCHEMES
        for metric, words, scale in (("shipped_bytes", "kB", 1e3), ("resume_s", "s", 1.0))
        for cache in cost.CACHES_KIB
    ]
    return Table("delay_s", "between stations", {}, columns, units.duration, more=more or {})


def _restored(sends: str, loss: float, more: Mapping[str, Table] | None = None) -> Table:
    columns = [
        Column(
            f"{words}, {units.duration(rtt)}, {handoff}",
            metric,
            {"handoff": handoff, "sends": sends, "rtt_s": rtt, "loss": loss},
        )
        for metric, words in (("share", "share"), ("resume_s", "new data after, s"))
        for rtt in restored.RTTS_S
        for handoff in restored.HANDOFFS
    ]
    return Table("spacing_s", "apart", {}, columns, _seconds, more=more or {})


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


_BESIDE = Table(
    "scheme",
    "sender",
    {},
    [
        Column(
            f"{schemes.name(tcp)}, {1e3 * rtt:g} ms, {queue} BDP",
            "share",
            {"tcp": tcp, "rtt_s": rtt, "queue": queue},
        )
        for tcp in beside.TCPS
        for rtt in beside.RTTS_S
        for queue in beside.QUEUES
    ],
    beside.name,
)


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
    "fixed": _fixed(path.FIXED, {"receives": _fixed(path.MOBILE)}),
    "cost": _cost(path.MOBILE, {"receives": _cost(path.FIXED)}),
    "restored": _restored(
        path.FIXED,
        0.0,
        {
            "lossy": _restored(path.FIXED, 0.05),
            "sends": _restored(path.MOBILE, 0.0),
        },
    ),
    "today": _today(path.MOBILE, {"receives": _today(path.FIXED)}),
    "hop": _hop(hop.UNIFORM, {"bursty": _hop(hop.BURSTY)}),
    "beside": _BESIDE,
}
TABLES: Mapping[str, Shown] = {name: _ALL[name] for name in EXPERIMENTS}
