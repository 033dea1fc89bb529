"""The hops of a flow's way, as the document of a scenario has them; and the document with a gateway
more, or later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import Any

from lasthop import units

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


def slowest(said: dict[str, Any], flow: int) -> float | None:
    """The lowest rate on a flow's way, if there is but one way and every rate is a number."""
    nodes, known = way(said, flow), links(said)
    rates = [_number(known[hop].get("rate")) for hop in pairwise(nodes or [])]
    numbers = [rate for rate in rates if rate is not None]
    return min(numbers) if numbers and len(numbers) == len(rates) else None


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
    if any(_is_lossy(link.get("errors")) or link.get("outages") for link in (there, back)):
        return True
    nodes = way(said, flow)
    if nodes is None:
        return False
    own = hop if hop in list(pairwise(nodes)) else hop[::-1]
    rates = {at: _number(known[at].get("rate")) for at in pairwise(nodes)}
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


def behind_gateway(said: dict[str, Any], flow: int) -> dict[str, Any]:
    """The document with the flow's sender moved away from the link, to which its node is a gateway.

    The link keeps its name, and so its errors. What leads to the gateway is fast and has no delay.
    """
    gateway = said["flows"][flow]["from"]
    sender = next(name for name in _names(f"{gateway}-host") if name not in said["nodes"])
    wire = {"between": [sender, gateway], "rate": "10 Gbit/s", "delay": "0 s"}
    flows = [*said["flows"]]
    flows[flow] = {**flows[flow], "from": sender}
    nodes = {**said["nodes"], sender: {}}
    return {**said, "nodes": nodes, "links": [*said["links"], wire], "flows": flows}


def later(said: dict[str, Any], flow: int, lead_s: float) -> dict[str, Any]:
    """The document with so much time before the flow, by which everything is later.

    What is so from the beginning stays so, and what repeats itself is not moved.
    """
    flows = said["flows"]
    by_s = lead_s - units.parse(str(flows[flow].get("start", "0 s")))
    if by_s <= 0:
        return said
    flows = [{**of, "start": _plus(of.get("start", "0 s"), by_s)} for of in flows]
    moved = {key: _later(value, by_s) for key, value in said.items()}
    return {**moved, "duration": _plus(said["duration"], by_s), "flows": flows}


def _later(value: Any, by_s: float) -> Any:
    """A part of a document with its schedules later: tables with a list `at`."""
    if isinstance(value, list):
        return [_later(entry, by_s) for entry in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _later(entry, by_s) for key, entry in value.items()}
    if isinstance(value.get("at"), list) and "every" not in value:
        moved["at"] = [_entry_later(entry, by_s) for entry in value["at"]]
    return moved


def _entry_later(entry: dict[str, Any], by_s: float) -> dict[str, Any]:
    times = {key: entry[key] for key in ("start", "end") if key in entry}
    return {**entry, **{key: _plus(of, by_s) for key, of in times.items() if units.parse(of)}}


def _plus(time: str, by_s: float) -> str:
    return f"{round(1e6 * (units.parse(time) + by_s))} us"


def _directions(link: dict[str, Any]) -> list[tuple[str, str]]:
    a, b = link["between"]
    return [(a, b), (b, a)]


def _is_lossy(errors: Any) -> bool:
    """Whether a model of errors has more than probabilities of zero."""
    if isinstance(errors, dict):
        return any(_is_lossy(of) for of in errors.values())
    return bool(errors)


def _largest(written: list[Any]) -> str:
    numbers = [_number(of) for of in written]
    if None in numbers:
        return ""
    return str(max(written, key=lambda of: _number(of) or 0.0))


def _number(written: Any) -> float | None:
    try:
        return units.parse(str(written))
    except ValueError:
        return None


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))
