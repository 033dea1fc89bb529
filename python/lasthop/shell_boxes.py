"""Boxes that are put into a scenario for `lasthop shell`: at the hop before the programs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from lasthop import _lasthop as engine
from lasthop import documents, hops, toml, units
from lasthop.errors import UserError, unknown
from lasthop.scenario import Scenario
from lasthop.variants import FLOW, TCP, variants

#: A box that stands at both ends of a hop, in nodes between those of connections.
PAIR = "pair"
#: How long gateways may take to know each other where the hop's delay is no number.
_UNKNOWN_S = 2.0


@dataclass(frozen=True)
class Placed:
    """A scenario with boxes more."""

    scenario: Scenario
    #: What was put where, in words.
    words: tuple[str, ...]
    #: How long the boxes take to know each other. Connections before pass as they are.
    lead_s: float = 0.0


def with_remedy(scenario: Scenario, flow: int, name: str) -> Placed:
    """The scenario with the boxes of a remedy, by the name of its box or that of the literature."""
    if name == PAIR:
        said = scenario.document()
        before, behind = _hop(said, flow)
        if behind == said["flows"][flow]["to"]:
            scenario = _before_gateway(scenario, flow)
        ends = {before: {"box": PAIR, "hop": behind}, behind: {"box": PAIR, "hop": before}}
        placed = _placed(scenario, flow, list(ends.items()))
        delay = hops.quantities(said, [(before, behind)])["delay"]
        # A round trip for the handshake, and as much for each of two packets that are lost.
        return replace(placed, lead_s=6 * units.parse(delay) + 0.1 if delay else _UNKNOWN_S)
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    worst = _hop(scenario.document(), flow, known=False)
    for variant in variants(scenario, flow):
        if any(change.place in (TCP, FLOW) for change in variant.changes):
            continue
        boxes = [
            (node or _sender(scenario, flow), box)
            for change in variant.changes
            for node in change.nodes
            for box in tomllib.loads(change.setting).get("boxes", [])
        ]
        if not boxes:
            continue
        called = variant.remedy["name"] or boxes[0][1]["box"]
        # Of several hops the worst; and of several settings the first, which are the defaults.
        if called not in found or (boxes[0][0] == worst[0] != found[called][0][0]):
            found[called] = boxes
    if name not in found:
        raise unknown("remedy", name, [*found, PAIR])
    return _placed(scenario, flow, found[name])


def with_box(scenario: Scenario, flow: int, text: str) -> Placed:
    """The scenario with a box before the hop, from its table in TOML; its key `hop` may be left
    out."""
    try:
        box = tomllib.loads(f"box = {text}")["box"]
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"no table of TOML: {text!r}: {error}") from None
    if not isinstance(box, dict) or "box" not in box:
        raise UserError(f'expected a table such as {{ box = "spoofer" }}, not {text!r}')
    before, behind = _hop(scenario.document(), flow)
    try:
        placed = _placed(scenario, flow, [(before, box)])
        placed.scenario.outline()
    except engine.ScenarioError as error:
        if not any(finding["message"] == "missing key `hop`" for finding in error.findings):
            raise
        return _placed(scenario, flow, [(before, {**box, "hop": behind})])
    return placed


def _hop(said: dict[str, Any], flow: int, *, known: bool = True) -> tuple[str, str]:
    """The nodes before and behind the worst hop of a flow: the last bad one, or the last one. The
    sender is before no hop unless that is the only one.

    If there is no such hop and it need not be `known`, its nodes have no names.
    """
    way = hops.way(said, flow)
    if way is None and known:
        raise UserError(
            "there is not one way from the flow's sender to its receiver: say where boxes are, as"
            " in --set 'nodes.NAME.boxes=[{ box = \"spoofer\" }]'"
        )
    inner = list(pairwise(way or ["", ""]))
    inner = inner[1:] or inner
    bad = [hop for hop in inner if way is not None and hops.is_bad(said, flow, hop)]
    return (bad or inner)[-1]


def _before_gateway(scenario: Scenario, flow: int) -> Scenario:
    """The scenario with the flow's receiver moved away from its node, which becomes a gateway."""
    said = scenario.document()
    gateway = said["flows"][flow]["to"]
    receiver = f"{gateway}-host"
    while receiver in said["nodes"]:
        receiver += "-2"
    wire = {"between": [gateway, receiver], "rate": "10 Gbit/s", "delay": "0 s"}
    flows = [*said["flows"]]
    flows[flow] = {**flows[flow], "to": receiver}
    nodes = {**said["nodes"], receiver: {}}
    links = [*said["links"], wire]
    moved = {**said, "nodes": nodes, "links": links, "flows": flows}
    return Scenario.from_toml(toml.write(moved), scenario.name)


def _sender(scenario: Scenario, flow: int) -> str:
    return str(scenario.document()["flows"][flow]["from"])


def _placed(scenario: Scenario, flow: int, boxes: list[tuple[str, dict[str, Any]]]) -> Placed:
    """The scenario with boxes behind those of their nodes. One at the sender, which is the end of
    the programs' connections, is in a gateway before it."""
    said = scenario.document()
    if any(node == said["flows"][flow]["from"] for node, _ in boxes):
        said = documents.behind_gateway(said, flow)
        scenario = Scenario.from_toml(toml.write(said), scenario.name)
    added: dict[str, list[Mapping[str, Any]]] = {}
    for node, box in boxes:
        present = said["nodes"][node].get("boxes", [])
        added.setdefault(node, [*present]).append(box)
    settings = {f"nodes.{node}.boxes": of for node, of in added.items()}
    words = tuple(f"{node}: {toml.inline(box)}" for node, box in boxes)
    return Placed(scenario.set(settings), words)
