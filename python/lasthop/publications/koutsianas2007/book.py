"""koutsianas2007: its tables in the book."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lasthop.publications.koutsianas2007 import targets
from lasthop.publications.study.book import Column, Table

NAMES = {
    "standard": "standard",
    "rlci": "RLCI",
    "corrected": "corrected",
    "shared": "one probe",
}
TARGETS = tuple(target.name for target in targets.TARGETS)
_HALVE = {"ssthresh_on_backoff": "halve"}


def _seconds(value: float) -> str:
    return f"{1e3 * value:g} ms" if value < 1 else f"{value:g} s"


def _schemes(metric: str, words: str, *schemes: str, **where: Any) -> list[Column]:
    return [
        Column(f"{words}, {NAMES[scheme]}", metric, {"scheme": scheme, **where})
        for scheme in schemes
    ]


TABLES: Mapping[str, Table] = {
    "fig4.2": Table(
        "window",
        "window, segments",
        {},
        [
            Column("standard resumes at, s", "resume_s", {"scheme": "standard", **_HALVE}),
            *(
                Column(f"{words} ends at, s", "duration_s", {"scheme": scheme, **rule})
                for words, scheme, rule in (
                    ("standard", "standard", _HALVE),
                    ("with `hold`", "standard", {"ssthresh_on_backoff": "hold"}),
                    ("RLCI", "rlci", _HALVE),
                    ("corrected", "corrected", _HALVE),
                )
            ),
        ],
        str,
        only=(
            *(20, 30, 35, 39, 40, 41, 50, 75, 85, 86, 89, 90, 100, 110, 115, 130, 160, 165, 170),
            *(175, 200, 500),
        ),
    ),
    "fig4.4": Table(
        "disconnection_s",
        "disconnection",
        {},
        [
            column
            for window in (50, 200)
            for column in _schemes(
                "net_duration_s",
                f"window {window}: net, s",
                *("standard", "rlci", "corrected"),
                window=window,
            )
        ],
        _seconds,
        # Right before and right after standard TCP sends again.
        only=(
            *(0.001, 0.02, 0.05, 0.1, 0.15, 0.196, 0.206, 0.588, 0.618, 1.372, 1.442, 2.94, 3.09),
            *(6.076, 6.386, 12.348, 12.978, 24.892, 26.162, 50.0),
        ),
    ),
    "steady-state": Table(
        "window",
        "window, segments",
        {"disconnection_s": 0.15},
        [
            Column("timeouts as published", "timeouts", {"arm": "published"}),
            *(
                Column(f"bump, s: {words}", "bump_s", {"arm": arm})
                for arm, words in (
                    ("published", "as published"),
                    ("no-limited-transmit", "no modified limited transmit"),
                    ("no-kept-threshold", "threshold not kept"),
                    ("neither", "neither"),
                    ("pipe", "ns-2's pipe"),
                    ("resend", "with `resend`"),
                    ("rto", "initial RTO 1 s"),
                    ("window-10", "initial window 10"),
                    ("window-40", "initial window 40"),
                )
            ),
        ],
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
            for scheme in ("rlci", "corrected", "shared")
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
            for scheme, name in (("fresh", "new connections"), *list(NAMES.items()))
        ],
    ),
    "freeze": Table(
        "disconnection_s",
        "disconnection",
        {"target": "6 Mb/s"},
        [
            *_schemes("net_duration_s", "net, s", "standard", "rlci", "corrected"),
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
        "attacker",
        {},
        [
            Column(
                f"{form}, {words}",
                "ratio",
                {"form": form, "rate_limit": limited},
            )
            for form in ("published", "corrected")
            for limited, words in ((True, "limited"), (False, "without"))
        ],
    ),
}
