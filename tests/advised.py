"""Paths that `lasthop advise` is asked about, and what it says of remedies in their nodes."""

from __future__ import annotations

import tomllib

from lasthop.advice import Advice
from lasthop.remedy import Remedy

SEEDS = 6


SATELLITE = """
title    = "a download through a gateway"
duration = "60 s"
[nodes]
server  = {}
gateway = {}
user    = {}
[[links]]
between = ["server", "gateway"]
rate    = "50 Mbit/s"
delay   = "40 ms"
queue   = "250 packets"
[[links]]
between = ["gateway", "user"]
rate    = "10 Mbit/s"
delay   = "250 ms"
queue   = "420 packets"
[[flows]]
from    = "server"
to      = "user"
traffic = { size = "3 MB" }
"""


RADIO = """
title    = "a download over a radio hop"
duration = "30 s"
[nodes]
server  = {}
gateway = {}
phone   = {}
[[links]]
between = ["server", "gateway"]
rate    = "50 Mbit/s"
delay   = "40 ms"
queue   = "250 packets"
[[links]]
between = ["gateway", "phone"]
rate    = "5 Mbit/s"
delay   = "15 ms"
queue   = "60 packets"
errors  = { packet = 0.02 }
[[flows]]
name    = "download"
from    = "server"
to      = "phone"
"""


def boxes(said: Advice) -> dict[tuple[str, str], Remedy]:
    """What is said of single boxes, by their names and nodes; of those with a rate, with that
    word."""
    found = {}
    before = [r for r in said.remedies if {c.place for c in r.changes} == {"before hop"}]
    for remedy in before:
        (change,) = remedy.changes
        (node,), (box,) = change.nodes, tomllib.loads(change.setting)["boxes"]
        found[box["box"] + " with a rate" * ("rate" in box), node] = remedy
    assert len(found) == len(before)
    return found


def named(said: Advice, name: str) -> list[Remedy]:
    """What is said of remedies with this name."""
    return [remedy for remedy in said.remedies if remedy.name == name]


def places(remedy: Remedy) -> dict[str, tuple[str, ...]]:
    """The nodes of a remedy's settings, by their place."""
    return {change.place: change.nodes for change in remedy.changes}
