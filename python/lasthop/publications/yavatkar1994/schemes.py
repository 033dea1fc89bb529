"""The schemes: those of the publication, and what senders do today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: A single connection from end to end; connections split at the base station, with TCP and with the
#: selective-repeat protocol over the wireless hop.
TCP, MTCP, SRP = "tcp", "mtcp", "srp"
#: Of today's senders.
SACK, CUBIC, BBR, RLCI = "sack", "cubic", "bbr", "rlci"

#: The published schemes that this build can run.
ENABLED: Sequence[str] = (TCP, MTCP, SRP)

#: Of TCP and IP.
HEADERS = 40
_MODERN, _SUNOS = {"profile": "modern"}, "sunos-1994"


@dataclass(frozen=True)
class Scheme:
    """What a scheme changes in a scenario."""

    #: As reports and the book call it.
    name: str
    #: The boxes of every base station and of the mobile host.
    station: Sequence[Mapping[str, Any]] = ()
    mobile: Sequence[Mapping[str, Any]] = ()
    #: Other keys of the flow, and settings of its TCP.
    flow: Mapping[str, Any] = field(default_factory=dict)
    tcp: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, mobile: str, stations: Sequence[str], mtu: int) -> dict[str, Any]:
        """Settings of a scenario with these nodes, whose hop takes packets of so many bytes."""
        found: dict[str, Any] = {f"flows.0.{key}": of for key, of in self.flow.items()}
        found |= {f"flows.0.tcp.{key}": of for key, of in self.tcp.items()}
        for node in stations if self.station else ():
            found[f"nodes.{node}.boxes"] = [{**box, "mtu": mtu} for box in self.station]
        if self.mobile:
            # The MTU of the mobile host's interface limits its connection only.
            clamp = {"box": "mss-clamp", "mss": mtu - HEADERS}
            boxes = [{**box, "mtu": mtu} for box in self.mobile]
            found[f"nodes.{mobile}.boxes"] = [*boxes, clamp]
        return found


#: The wired part has segments as SunOS has them for remote hosts.
_WIRED = {"mss": 512}


def _split(name: str, hop: str) -> Scheme:
    tcp = {"profile": _SUNOS, "tcp": _WIRED}
    station = {"box": "station", **tcp}
    return Scheme(name, (station,), ({"box": "mobile", "hop": hop, **tcp},), tcp=_WIRED)


SCHEMES: Mapping[str, Scheme] = {
    TCP: Scheme("TCP"),
    MTCP: _split("MTCP", "tcp"),
    SRP: _split("SRP", "srp"),
    SACK: Scheme(
        "SACK", flow=_MODERN, tcp={"recovery": "sack", "congestion": "aimd", "hystart": False}
    ),
    CUBIC: Scheme("CUBIC", flow=_MODERN),
    BBR: Scheme("BBR", flow=_MODERN, tcp={"congestion": "bbr"}),
    RLCI: Scheme("CUBIC with RLCI", flow=_MODERN, tcp={"mechanisms": [{"mechanism": "rlci"}]}),
}
#: Senders that change nothing in the network.
TODAY: Sequence[str] = (SACK, CUBIC, BBR, RLCI)


def name(scheme: str) -> str:
    """As reports and the book call it."""
    return SCHEMES[scheme].name
