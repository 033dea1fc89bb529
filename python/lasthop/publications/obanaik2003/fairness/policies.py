"""The policies of chapter 2, as settings of a flow, and their looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lasthop import pictures
from lasthop.publications.study.draw import Line

STANDARD, IBK, CR, CANIT = "standard", "increase-by-k", "constant-rate", "canit"
AUTO = "auto"
#: What the thesis compares with the standard, as its tables list them.
ALTERNATIVES = (IBK, CR, CANIT)
POLICIES = (STANDARD, *ALTERNATIVES)
NAMES = {
    STANDARD: "standard",
    IBK: "increase-by-K",
    CR: "constant rate",
    CANIT: "CANIT",
    AUTO: "auto",
}

#: Which round trip a policy goes by: what the sender measures, or twice the links' delays.
SMOOTHED, PROPAGATION = "smoothed", "propagation"
#: Of policies that go by none.
NO_RTT = ""
ROUND_TRIPS = {CR: (SMOOTHED, PROPAGATION), CANIT: (SMOOTHED, PROPAGATION)}


def round_trips(policy: str) -> tuple[str, ...]:
    """Those to be tried with a policy."""
    return ROUND_TRIPS.get(policy, (NO_RTT,))


def default_rtt(policy: str) -> str:
    """What the sender measures, where it matters."""
    return round_trips(policy)[0]


def increase(
    policy: str,
    rtt: str = NO_RTT,
    *,
    k: float | None = None,
    c: float | None = None,
    cap: float | None = None,
) -> Any:
    """The value of `tcp.increase`."""
    given = {"rtt": rtt or None, "k": k, "c": c, "cap": cap}
    kept = {key: value for key, value in given.items() if value is not None}
    return {"policy": policy, **kept} if kept else policy


_LOOKS: Mapping[str, tuple[str, str]] = {
    STANDARD: (pictures.BLACK, "s"),
    IBK: (pictures.GREEN, "D"),
    CR: (pictures.BLUE, "o"),
    CANIT: (pictures.ORANGE, "^"),
    AUTO: (pictures.PURPLE, "v"),
}


def line(policy: str, rtt: str | None = None, label: str | None = None, **where: Any) -> Line:
    """A policy's line: going by what the sender measures, if nothing is said."""
    colour, marker = _LOOKS[policy]
    rtt = default_rtt(policy) if rtt is None else rtt
    style = "--" if rtt == PROPAGATION else "-"
    what = {"policy": policy, "rtt": rtt, **where}
    return Line(label or NAMES[policy], what, colour, marker, style)


def colour(policy: str) -> str:
    """Of a policy, in every picture."""
    return _LOOKS[policy][0]
