"""koutsianas2007: its tables in the book."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies import Column, Table

NAMES = {
    "standard": "standard",
    "rlci": "RLCI",
    "mended": "mended",
    "shared": "one probe",
}
TARGETS = ("1 Mb/s", "6 Mb/s", "20 Mb/s")


def _seconds(value: float) -> str:
    return f"{1e3 * value:g} ms" if value < 1 else f"{value:g} s"


def _schemes(metric: str, words: str, *schemes: str, **where: Any) -> list[Column]:
    return [
        Column(f"{words}, {NAMES[scheme]}", metric, {"scheme": scheme, **where})
        for scheme in schemes
    ]


TABLES: Mapping[str, Table] = {
    "fig4.2": Table(
        "scheme",
        "scheme",
        {},
        [
            *(
                Column(words, metric, {"ssthresh_on_backoff": "halve"})
                for metric, words in (
                    ("resume_s", "resumes at, s"),
                    ("duration_s", "ends at, s"),
                    ("net_duration_s", "net duration, s"),
                )
            ),
            Column("ends at with `hold`, s", "duration_s", {"ssthresh_on_backoff": "hold"}),
        ],
        lambda scheme: NAMES[scheme],
    ),
    "fig4.4": Table(
        "disconnection_s",
        "disconnection",
        {},
        _schemes("net_duration_s", "net duration, s", "standard", "rlci", "mended"),
        _seconds,
        # Right before and right after standard TCP sends again.
        only=(
            *(0.001, 0.02, 0.05, 0.1, 0.15, 0.196, 0.206, 0.588, 0.618, 1.372, 1.442, 2.94, 3.09),
            *(6.076, 6.386, 12.348, 12.978, 24.892, 26.162, 50.0),
        ),
    ),
    "fig4.7": Table(
        "connections",
        "n",
        {"scheme": "rlci", "disconnection_s": 10.0},
        [
            Column(f"{words} to {target}, s", metric, {"target": target})
            for target in TARGETS
            for metric, words in (("gain_s", "gain"), ("deviation_s", "deviation"))
        ],
    ),
    "shared-probe": Table(
        "connections",
        "n",
        {"disconnection_s": 10.0},
        [
            Column(f"{NAMES[scheme]}, {target}", "gain_s", {"scheme": scheme, "target": target})
            for target in TARGETS
            for scheme in ("rlci", "mended", "shared")
        ],
    ),
    "after": Table(
        "connections",
        "n",
        {},
        [
            Column(f"{words}, {name}", metric, {"scheme": scheme}, scale)
            for metric, words, scale in (
                ("router_dropped_packets", "drops", 1.0),
                ("background_bps", "neighbour, Mb/s", 1e6),
            )
            for scheme, name in (("fresh", "afresh"), *list(NAMES.items()))
        ],
    ),
    "freeze": Table(
        "disconnection_s",
        "disconnection",
        {"target": "6 Mb/s"},
        [
            *_schemes("net_duration_s", "net, s", "standard", "rlci", "mended"),
            *(
                Column(
                    f"net, s, Freeze-TCP, {_seconds(warning)} before",
                    "net_duration_s",
                    {"scheme": "freeze", "warning_s": warning},
                )
                for warning in (1.0, 0.2, 0.02)
            ),
        ],
        _seconds,
    ),
    "attack": Table(
        "attack",
        "who forges",
        {},
        [
            Column(
                f"{form}, {words}",
                "ratio",
                {"form": form, "rate_limit": limited},
            )
            for form in ("published", "mended")
            for limited, words in ((True, "limited"), (False, "without"))
        ],
    ),
}
