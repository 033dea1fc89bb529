"""Documents of scenarios, changed: with a gateway more, later, shorter, or without a cause.

A function returns another document and leaves the one that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from lasthop import units
from lasthop.hops import DIRECTIONS, Bottleneck, number


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


def scaled(said: dict[str, Any], *, rate: float = 1.0, delay: float = 1.0) -> dict[str, Any]:
    """The document with all rates and delays of links times these factors, and the rates that boxes
    are given; rates that vary stay as they are."""

    def change(table: dict[str, Any]) -> dict[str, Any]:
        changed = dict(table)
        for key, factor, units_of_one, unit in (
            ("rate", rate, 1.0, "bit/s"),
            ("delay", delay, 1e9, "ns"),
        ):
            value = number(table.get(key))
            if value is not None and factor != 1:
                changed[key] = f"{value * factor * units_of_one:.0f} {unit}"
        return changed

    nodes = {
        name: node | {"boxes": [_with_rate(box, rate) for box in node["boxes"]]}
        if "boxes" in node
        else node
        for name, node in said["nodes"].items()
    }
    return _links(said, change) | {"nodes": nodes}


def _with_rate(box: dict[str, Any], factor: float) -> dict[str, Any]:
    given = number(box.get("rate"))
    return box if given is None or factor == 1 else box | {"rate": f"{given * factor:.0f} bit/s"}


def without(said: dict[str, Any], key: str) -> dict[str, Any]:
    """The document without a key of all links, in both directions."""
    return _links(said, lambda table: {name: of for name, of in table.items() if name != key})


def with_queue(said: dict[str, Any], place: Bottleneck, queue: object) -> dict[str, Any]:
    """The document with another queue at a link, in one direction."""
    links = [*said["links"]]
    link = links[place.index]
    links[place.index] = link | {place.direction: link.get(place.direction, {}) | {"queue": queue}}
    return said | {"links": links}


def without_gaps(said: dict[str, Any]) -> dict[str, Any]:
    """The document with hosts that stay where they are attached until they are attached anew."""

    def change(node: dict[str, Any]) -> dict[str, Any]:
        if "attached" not in node:
            return node
        places = [
            {key: of for key, of in place.items() if key != "end"}
            for place in node["attached"]["at"]
        ]
        return node | {"attached": node["attached"] | {"at": places}}

    return said | {"nodes": {name: change(node) for name, node in said["nodes"].items()}}


def alone(said: dict[str, Any], flow: int) -> dict[str, Any]:
    """The document with this flow alone, which keeps its name."""
    own = said["flows"][flow]
    return said | {"flows": [{"name": f"flow {flow}", **own}]}


def _links(
    said: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """The document with a change of the tables of all links, and of those of their directions."""

    def both(link: dict[str, Any]) -> dict[str, Any]:
        link = change(link)
        return link | {way: change(link[way]) for way in DIRECTIONS if way in link}

    return said | {"links": [both(link) for link in said["links"]]}


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))
