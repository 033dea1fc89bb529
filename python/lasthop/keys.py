"""The keys of scenario files as types, made from the schema by docs/python_keys.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict


class ScenarioKeys(TypedDict, total=False):
    """A scenario of lasthop."""

    ends_with: str | None
    latency: bool | Literal["distributions"] | None
    profile: Literal["ns2-2001", "ns2-2007", "sunos-1994", "modern"] | None
    tunnels: Sequence[Mapping[str, Any]] | None
    attacks: Sequence[Mapping[str, Any]] | None
    ceten: Mapping[str, Any] | None
    testbed: Mapping[str, Any] | None
    sweep: Mapping[str, Any] | None


class LinkKeys(TypedDict, total=False):
    """A link between two nodes."""

    rate: str | Mapping[str, Any] | None
    delay: str | None
    queue: str | Mapping[str, Any] | None
    errors: Mapping[str, Any] | None
    reordering: Mapping[str, Any] | None
    duplication: float | None
    jitter: str | Mapping[str, Any] | None
    changes: Mapping[str, Any] | None
    forward: Mapping[str, Any] | None
    backward: Mapping[str, Any] | None
    outages: Mapping[str, Any] | None
    when_down: Literal["keep", "drop"] | Mapping[str, Any] | None
    mtu: int | str | Mapping[str, Any] | None


class FlowKeys(TypedDict, total=False):
    """A flow: which node sends to which, and what."""

    name: str | None
    start: str | None
    ip: Literal[4, 6] | None
    traffic: Literal["bulk"] | Mapping[str, Any] | None
    profile: Literal["ns2-2001", "ns2-2007", "sunos-1994", "modern"] | None
    tcp: Mapping[str, Any] | None
    coding: Literal["off"] | Mapping[str, Any] | None
    stack: Literal["lasthop", "linux"] | Mapping[str, Any] | None
