"""The hops of a flow's way, as the document of a scenario has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lasthop import units

#: The tables of a link for its directions: from its first node to its second, and back.
DIRECTIONS = ("forward", "backward")
#: A link's keys in one direction, by the nodes from which and to which it leads.
Links = dict[tuple[str, str], dict[str, Any]]


def links(said: dict[str, Any]) -> Links:
    """The links in both directions."""
    found = {}
    for link in said.get("links", []):
        a, b = link["between"]
        found[a, b] = {**link, **link.get("forward", {})}
        found[b, a] = {**link, **link.get("backward", {})}
    return found


def way(said: dict[str, Any], flow: int) -> list[str] | None:
    """The nodes of a flow's way from its sender on, if there is but one way."""
    hops = links(said)
    to = said["flows"][flow]["to"]
    found: list[list[str]] = []
    ways = [[said["flows"][flow]["from"]]]
    while ways and len(found) < 2:
        way = ways.pop()
        if way[-1] == to:
            found.append(way)
        else:
            ways += [[*way, b] for a, b in hops if a == way[-1] and b not in way]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class Bottleneck:
    """The slowest link of a flow's way, the first of several."""

    #: Its place in the list of links.
    index: int
    #: "forward" or "backward": the direction of the flow's data.
    direction: str
    between: tuple[str, str]
    rate_bps: float


def bottleneck(said: dict[str, Any], flow: int) -> Bottleneck | None:
    """The slowest link of a flow, if there is but one way and every rate is a number."""
    nodes, known = way(said, flow), links(said)
    found = []
    for hop in pairwise(nodes or []):
        rate = number(known[hop].get("rate"))
        if rate is None:
            return None
        # The last of several links between two nodes, as in `links`.
        (*_, place) = (
            (index, direction)
            for index, link in enumerate(said["links"])
            for direction, ends in zip(DIRECTIONS, _directions(link), strict=True)
            if ends == hop
        )
        found.append(Bottleneck(*place, hop, rate))
    return min(found, key=lambda of: of.rate_bps, default=None)


def round_trip_s(said: dict[str, Any], flow: int) -> float | None:
    """The propagation delays of a flow's way and back, if there is but one way and every delay is a
    number."""
    nodes, known = way(said, flow), links(said)
    ways = [hop for (a, b) in pairwise(nodes or []) for hop in ((a, b), (b, a))]
    delays = [number(known[hop].get("delay")) for hop in ways]
    numbers = [delay for delay in delays if delay is not None]
    return sum(numbers) if numbers and len(numbers) == len(delays) else None


def attachments(said: dict[str, Any], node: str) -> list[str]:
    """The nodes to which a node is attached, at one time or another; none if it has several links,
    but does not say when it uses which."""
    moves = said["nodes"][node].get("attached")
    if moves:
        return list(dict.fromkeys(place["to"] for place in moves["at"]))
    others = [b for link in said["links"] for a, b in _directions(link) if a == node]
    return others if len(others) == 1 else []


def is_bad(said: dict[str, Any], flow: int, hop: tuple[str, str]) -> bool:
    """Whether a hop of a flow's loses packets, or has outages, or is slower than all others of its
    way."""
    known = links(said)
    there, back = known[hop], known[hop[::-1]]
    if any(is_lossy(link.get("errors")) or link.get("outages") for link in (there, back)):
        return True
    nodes = way(said, flow)
    if nodes is None:
        return False
    own = hop if hop in list(pairwise(nodes)) else hop[::-1]
    rates = {at: number(known[at].get("rate")) for at in pairwise(nodes)}
    rate = rates.pop(own)
    # A rate that varies is that of a radio.
    return rate is None or all(other is None or rate < other for other in rates.values())


def quantities(said: dict[str, Any], hops: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The rate and the delay of a hop, or of the worst of several, and the MTUs: as they are
    written, and "" for a rate or delay that is no number."""
    known = [links(said)[hop] for hop in hops]
    mtus = [link.get("mtu") for link in known]
    return {
        "rate": _largest([link.get("rate") for link in known]),
        "delay": _largest([link.get("delay") for link in known]),
        "mtus": [str(mtu["size"] if isinstance(mtu, dict) else mtu) for mtu in mtus if mtu],
    }


def _directions(link: dict[str, Any]) -> list[tuple[str, str]]:
    a, b = link["between"]
    return [(a, b), (b, a)]


def is_lossy(errors: Any) -> bool:
    """Whether a model of errors has more than probabilities of zero."""
    if isinstance(errors, dict):
        return any(is_lossy(of) for of in errors.values())
    return bool(errors)


def _largest(written: list[Any]) -> str:
    numbers = [number(of) for of in written]
    if None in numbers:
        return ""
    return str(max(written, key=lambda of: number(of) or 0.0))


def number(written: Any) -> float | None:
    """A rate or a time, in bits per second or seconds; None if it is no number."""
    try:
        return units.parse(str(written))
    except ValueError:
        return None
