"""obanaik2003's fairness experiments: their tables in the book."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lasthop.publications.obanaik2003.fairness import changed, factors
from lasthop.publications.obanaik2003.fairness.policies import NAMES
from lasthop.publications.obanaik2003.fairness.window import NO_LIMIT
from lasthop.publications.study.book import Column, Keys, SideBySide, Table

LINKS = {"slow": "slow link", "ltn": "LTN"}
ENABLED = {"all": "all", "others": "the others"}


def _policy(case: Mapping[str, Any]) -> str:
    constant = f", c = {case['c']:g}" if case.get("c") else ""
    cap = ", capped" if case.get("cap") else ""
    round_trip = ", propagation" if case.get("rtt") == "propagation" else ""
    return f"{NAMES[case['policy']]}{constant}{cap}{round_trip}"


_POLICY: Keys = {"policy": _policy}
_BOTH: Keys = {"last hop": lambda case: LINKS[case["link"]], **_POLICY}


GOODPUT, PAYLOAD = ("goodput, kb/s", "goodput_bps", 1e3), ("goodput, kb/s", "payload_bps", 1e3)
LOSSES = ("losses", "losses_packets", 1.0)
SHARE = ("lost, %", "loss_share", 0.01)
TIMEOUTS = ("timeouts", "timeouts", 1.0)
FAIRNESS = (
    ("Jain's index", "fairness", 1.0),
    ("long round trips' share, %", "long_share", 0.01),
    ("all five, kb/s", "all_payload_bps", 1e3),
)


def _window(case: Mapping[str, Any]) -> str:
    return f"{case['receive_window_bytes'] / 1024:g} KiB"


def _policies() -> list[Column]:
    return [
        Column(f"{name}, {words}, kb/s", "goodput_bps", {"link": link, "policy": policy}, 1e3)
        for link, words in LINKS.items()
        for policy, name in NAMES.items()
        if policy != "auto"
    ]


def _buffers() -> list[Column]:
    found = _policies()
    for link, words in LINKS.items():
        where = {"link": link, "policy": "standard"}
        found.append(Column(f"round trip, {words}, s", "rtt_s", where))
    return found


TABLES: Mapping[str, SideBySide | Table] = {
    "slow": SideBySide(_POLICY, (GOODPUT, LOSSES, TIMEOUTS)),
    "ltn": SideBySide(_POLICY, (GOODPUT, LOSSES, TIMEOUTS)),
    "disabled": SideBySide(
        {**_BOTH, "policy on": lambda case: ENABLED[case["enabled"]]}, (GOODPUT,)
    ),
    "window": SideBySide(
        {"path": lambda case: str(case["path"]), **_BOTH, "window": _window},
        (GOODPUT, LOSSES),
    ),
    "buffers": Table("buffer_packets", "buffer", {}, _buffers()),
    "testbed": SideBySide(_BOTH, (PAYLOAD, SHARE, LOSSES, TIMEOUTS)),
    "testbed-buffers": SideBySide(
        {**_BOTH, "buffer": lambda case: str(case["buffer_packets"])},
        (PAYLOAD, ("round trip, s", "rtt_s", 1.0)),
    ),
    "testbed-window": SideBySide({**_BOTH, "window": _window}, (PAYLOAD, SHARE, LOSSES)),
    "testbed-disabled": SideBySide(
        {**_BOTH, "policy on": lambda case: ENABLED[case["enabled"]]},
        (PAYLOAD,),
    ),
    "factors": Table(
        "factor",
        "factor",
        {
            "path": changed.SIMULATION,
            "enabled": "all",
            "receive_window_bytes": NO_LIMIT,
            "runs": changed.FOUND,
        },
        _policies(),
        only=factors.singles(changed.SIMULATION),
    ),
    "fast": SideBySide({"path": lambda case: str(case["path"]), **_POLICY}, FAIRNESS),
    "auto": SideBySide(
        {
            "path": lambda case: str(case["path"]),
            **_POLICY,
            "policy on": lambda case: str(case["enabled"]),
        },
        (GOODPUT, LOSSES, *FAIRNESS),
    ),
}
