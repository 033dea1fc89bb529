"""A scenario with each remedy that suits it.

A remedy of the engine has settings in one place or in several: in the flow's TCP, in nodes at a bad
hop, and in the queue of the slowest link. Here places get the names of nodes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from lasthop import _lasthop as engine
from lasthop import documents, hops, toml
from lasthop.scenario import Scenario

TCP, FLOW, LINK = "tcp", "flow", "link"
BEFORE, HOST, ATTACHMENTS, PEER = "before hop", "host", "attachments", "peer"
#: What a remedy needs that reads TCP headers.
CLEAR_HEADERS = "clear headers"


@dataclass(frozen=True)
class Change:
    """The settings of a remedy in one place."""

    #: Lines for the flow's `tcp` table, for its own, for the table of each node, or for a link's.
    setting: str
    #: "tcp"; "flow"; "link", the slowest one, from the first of the nodes to the second; "before
    #: hop"; "host", the end of the flow that is behind the hop; "attachments", all nodes to which
    #: that host is attached; or "peer", the flow's other end.
    place: str
    #: The nodes; "" stands for one that is assumed at the beginning of the flow's only link.
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant:
    """A scenario with a remedy."""

    remedy: dict[str, Any]
    changes: tuple[Change, ...]
    scenario: Scenario
    #: What it is compared with: the scenario without it.
    today: Scenario


def variants(scenario: Scenario, flow: int) -> list[Variant]:
    """The scenario with every remedy that suits it and does not contradict what it says.

    Those that read TCP headers do not suit a flow that IPsec hides.
    """
    path = Target(scenario, flow)
    tried: list[tuple[_Site, dict[str, Any]]] = []
    in_tcp = [*engine.remedies(), *_in_queue(path)]
    names = scenario.outline().flows
    only = names[flow] if len(names) > 1 else None
    for site in [_Site(), *_inner_hops(path), *_last_hops(path)]:
        hop = {**site.quantities, "flow": only}
        boxes = engine.box_remedies(site.neighbour, **hop) if site.places else []
        tried += [(site, remedy) for remedy in (*in_tcp, *boxes) if site.suits(remedy)]
    if is_hidden(scenario, flow):
        tried = [(site, of) for site, of in tried if CLEAR_HEADERS not in of["needs"]]
    found = (_variant(path, site, remedy) for site, remedy in tried)
    return [variant for variant in found if variant is not None]


def is_hidden(scenario: Scenario, flow: int) -> bool:
    """Whether IPsec hides the TCP headers of a flow: a box `esp` at either end protects it."""
    said = scenario.document()
    name, ends = scenario.outline().flows[flow], said["flows"][flow]

    def protects(box: dict[str, Any]) -> bool:
        return box["box"] == "esp" and name in (box.get("flows") or [name])

    nodes = (said["nodes"][ends[end]] for end in ("from", "to"))
    return all(any(map(protects, node.get("boxes", []))) for node in nodes)


def point(scenario: Scenario) -> dict[str, Any]:
    """What a scenario of one point says, with the only value of each key that it sweeps."""
    said = scenario.document()
    swept = {key: of for key, of in said.get("sweep", {}).items() if key != "seeds"}
    if not swept:
        return said
    sweep = {key: of for key, of in said["sweep"].items() if key == "seeds"}
    only = {key: values[0] for key, values in swept.items()}
    return scenario.set(sweep=sweep).set(only).document()


class Target:
    """A scenario of one point, and the flow that is to be improved."""

    def __init__(self, scenario: Scenario, flow: int) -> None:
        self.scenario = scenario
        self.flow = flow
        self.said = point(scenario)

    def with_(self, said: dict[str, Any]) -> Target:
        """The same with another document."""
        return Target(Scenario.from_toml(toml.write(said), self.scenario.name), self.flow)

    def behind_gateway(self) -> Target:
        """With a gateway at the beginning of the flow's only link."""
        return self.with_(documents.behind_gateway(self.said, self.flow))

    def after(self, lead_s: float) -> Target:
        """With so much time before the flow."""
        said = documents.later(self.said, self.flow, lead_s)
        return self if said is self.said else self.with_(said)


@dataclass(frozen=True)
class _Site:
    """Where remedies go besides the flow's TCP: nodes at a bad hop."""

    #: The names of nodes; without any, for remedies in the flow's TCP alone.
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The node behind the hop, and the hop's rate, delay and MTUs.
    neighbour: str = ""
    quantities: Mapping[str, Any] = field(default_factory=dict)
    #: The hop is the flow's only one, and its beginning a gateway that is assumed.
    assumes_gateway: bool = False

    def suits(self, remedy: dict[str, Any]) -> bool:
        """Whether it has the places that a remedy needs."""
        needed = {setting["place"] for setting in remedy["settings"]} - {TCP, FLOW, LINK}
        return needed <= self.places.keys() and bool(needed) == bool(self.places)


def _variant(path: Target, site: _Site, remedy: dict[str, Any]) -> Variant | None:
    """A path with a remedy; None if it contradicts what the scenario says."""
    today = path.after(remedy["lead_s"])
    of = today.behind_gateway() if site.assumes_gateway else today
    settings: dict[str, Any] = {}
    changes = []
    for setting in remedy["settings"]:
        keys = tomllib.loads(setting["toml"])
        place, nodes = setting["place"], site.places.get(setting["place"], ())
        if place in (TCP, FLOW):
            table = f"flows.{path.flow}" + ".tcp" * (place == TCP)
            settings |= {f"{table}.{key}": value for key, value in keys.items()}
        elif place == LINK and (link := hops.bottleneck(of.said, path.flow)) is not None:
            table = f"links.{link.index}.{link.direction}"
            settings |= {f"{table}.{key}": value for key, value in keys.items()}
            changes.append(Change(setting["toml"], place, link.between))
            continue
        # Behind an assumed gateway the flow's sender has another name.
        of_flow = of.said["flows"][path.flow]
        for node in (of_flow["from"],) if place == PEER and site.assumes_gateway else nodes:
            # IPsec may be in use already.
            added = _added(of.said["nodes"][node], keys, extends="ipsec" in remedy["needs"])
            if added is None:
                return None
            settings |= {f"nodes.{node}.{key}": value for key, value in added.items()}
        is_assumed = site.assumes_gateway and place in (BEFORE, ATTACHMENTS)
        changes.append(Change(setting["toml"], place, ("",) if is_assumed else nodes))
    variant = of.scenario.set(settings)
    if not is_valid(variant):
        return None
    return Variant(remedy, tuple(changes), variant, today.scenario)


def _added(node: dict[str, Any], keys: dict[str, Any], *, extends: bool) -> dict[str, Any] | None:
    """What keys of a node become with those of a remedy: boxes come after those that it has. None
    if it has a key already, or a box of the same kind, unless that one is to be extended."""
    added = {}
    for key, value in keys.items():
        present = node.get(key)
        if isinstance(present, list):
            added[key] = [*present]
            if not all(_add(added[key], box, extends=extends) for box in value):
                return None
        elif present is None:
            added[key] = value
        else:
            return None
    return added


def _add(boxes: list[dict[str, Any]], new: dict[str, Any], *, extends: bool) -> bool:
    """Adds a box, or to the only one of its kind the settings that it lacks, if boxes are to be
    extended. False if there is another in its place."""
    same = [n for n, box in enumerate(boxes) if box["box"] == new["box"]]
    if not same:
        boxes.append(new)
        return True
    known = boxes[same[0]]
    lacks = all(known.get(key, value) == value for key, value in new.items())
    if len(same) == 1 and extends and lacks:
        boxes[same[0]] = known | new
        return True
    return False


def _in_queue(path: Target) -> list[dict[str, Any]]:
    """The remedies in the queue of the flow's slowest link, if that is known."""
    link, round_trip_s = (
        hops.bottleneck(path.said, path.flow),
        hops.round_trip_s(path.said, path.flow),
    )
    if link is None or round_trip_s is None:
        return []
    rate, round_trip = f"{link.rate_bps:.0f} bit/s", f"{round_trip_s * 1e9:.0f} ns"
    return engine.queue_remedies(rate=rate, round_trip=round_trip)


def _inner_hops(path: Target) -> Iterator[_Site]:
    """The hops from every node between the flow's ends, if it has but one way.

    Where there is no such node, one is assumed at the beginning of the flow's only link.
    """
    way = hops.way(path.said, path.flow)
    if way is None:
        return
    for node, following in list(pairwise(way))[1:] or [(way[0], way[1])]:
        quantities = hops.quantities(path.said, [(node, following)])
        places = {BEFORE: (node,)}
        if following == way[-1]:
            places |= {HOST: (following,), PEER: (way[0],)}
        yield _Site(places, following, quantities, assumes_gateway=len(way) == 2)


def _last_hops(path: Target) -> Iterator[_Site]:
    """The hops of the flow's ends that move; if none does, of those that are attached by a bad one.

    Of an only link it is that of the receiver, before which a gateway is assumed.
    """
    said, flow = path.said, path.said["flows"][path.flow]
    ends = [flow["to"], flow["from"]]
    moving = [host for host in ends if "attached" in said["nodes"][host]]
    for host in moving or ends:
        nodes = hops.attachments(said, host)
        peer = ends[host == ends[0]]
        is_only = nodes == [peer] and host == flow["to"]
        if not nodes or (peer in nodes and not is_only):
            continue
        if moving or hops.is_bad(said, path.flow, (nodes[0], host)):
            quantities = hops.quantities(said, [(node, host) for node in nodes])
            places = {ATTACHMENTS: tuple(nodes), HOST: (host,)}
            yield _Site(places, host, quantities, assumes_gateway=is_only)


def is_valid(scenario: Scenario) -> bool:
    """Whether it can be run."""
    try:
        scenario.outline()
    except engine.ScenarioError:
        return False
    return True
