"""What limits a flow: the same path with one cause taken away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lasthop import documents, hops
from lasthop.variants import Target, is_valid

#: More than any path here holds.
_WIDE = "1 GB"
_PACKET = 1500
_LEAST_QUEUE = 20


@dataclass(frozen=True)
class Cause:
    """A cause, and the scenario without it."""

    #: One or two words.
    name: str
    #: What is otherwise where it is taken away.
    removed: str
    document: dict[str, Any]


def causes(target: Target) -> list[Cause]:
    """The causes that a flow's path may have, in no order."""
    found = (Cause(*of) for of in _candidates(target.said, target.flow))
    return [cause for cause in found if is_valid(target.with_(cause.document).scenario)]


def _candidates(said: dict[str, Any], flow: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    links = hops.links(said).values()
    own = said["flows"][flow]
    if any(hops.is_lossy(link.get("errors")) for link in links):
        yield "loss", "no link damages or loses a packet", documents.without(said, "errors")
    if any(link.get("outages") for link in links):
        yield "outages", "no link goes down", documents.without(said, "outages")
    if any("attached" in node for node in said["nodes"].values()):
        yield "handoffs", "hosts are attached anew at once", documents.without_gaps(said)
    if len(said["flows"]) > 1 and not any(said.get(key) for key in ("attacks", "tunnels")):
        yield "other flows", "the flow is alone", documents.alone(said, flow)
    yield (
        "round trip",
        "all propagation delays are a tenth",
        documents.scaled(said, delay=0.1),
    )
    yield (
        "receive window",
        "the receive window is without a limit",
        _with_tcp(said, flow, receive_window=_WIDE),
    )
    traffic = own.get("traffic")
    if isinstance(traffic, dict) and "send_buffer" in traffic:
        unlimited = {key: value for key, value in traffic.items() if key != "send_buffer"}
        yield (
            "send buffer",
            "the send buffer is without a limit",
            _with_flow(said, flow, traffic=unlimited),
        )
    place, round_trip_s = hops.bottleneck(said, flow), hops.round_trip_s(said, flow)
    if place is None or round_trip_s is None:
        return
    packets = max(_LEAST_QUEUE, round(place.rate_bps * round_trip_s / 8 / _PACKET))
    yield (
        "buffer",
        f"the slowest link queues what the path holds in a round trip, {packets} packets",
        documents.with_queue(said, place, f"{packets} packets"),
    )
    yield (
        "slow start",
        f"the initial window is what the path holds in a round trip, {packets} segments",
        _with_tcp(said, flow, initial_window=packets),
    )


def _with_tcp(said: dict[str, Any], flow: int, **settings: object) -> dict[str, Any]:
    return _with_flow(said, flow, tcp={**said["flows"][flow].get("tcp", {}), **settings})


def _with_flow(said: dict[str, Any], flow: int, **keys: object) -> dict[str, Any]:
    flows = [*said["flows"]]
    flows[flow] = {**flows[flow], **keys}
    return {**said, "flows": flows}
