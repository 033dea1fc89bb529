"""The schemes: those of the publication, and what senders do today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lasthop.publications.study.draw import Line

#: A single connection from end to end; connections split at the base station, with TCP and with the
#: selective-repeat protocol over the wireless hop.
TCP, MTCP, SRP = "tcp", "mtcp", "srp"
#: Of today's senders.
NEWRENO, SACK, CUBIC, BBR, RLCI = "newreno", "sack", "cubic", "bbr", "rlci"
FREEZE = "freeze"
#: MTCP with today's TCP, and BBR over the wireless hop.
MTCP_BBR = "mtcp-bbr"
#: The published ones whose timers do not back off: one factor.
TCP_CAPPED, MTCP_CAPPED = "tcp-capped", "mtcp-capped"

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
    #: Other keys of the mobile host.
    host: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, mobile: str, stations: Sequence[str], mtu: int) -> dict[str, Any]:
        """Settings of a scenario with these nodes, whose hop takes packets of so many bytes."""
        found: dict[str, Any] = {f"flows.0.{key}": of for key, of in self.flow.items()}
        found |= {f"flows.0.tcp.{key}": of for key, of in self.tcp.items()}
        found |= {f"nodes.{mobile}.{key}": of for key, of in self.host.items()}
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


#: No back-off beyond this, about the RTO of the path. The initial RTO, of which nothing is lost,
#: cannot be longer.
_CAPPED = {"rto.initial": "2 s", "rto.maximum": "2 s"}


def _split(name: str, hop: str, tcp: Mapping[str, Any] | None = None) -> Scheme:
    agent = {"profile": _SUNOS, "tcp": _WIRED}
    station = {"box": "station", **agent}
    boxes = ({"box": "mobile", "hop": hop, **agent},)
    return Scheme(name, (station,), boxes, tcp={**_WIRED, **(tcp or {})})


def _bbr(*, of_station: bool) -> Scheme:
    """MTCP with BBR at the end of the wireless hop that sends, and CUBIC at that of the wire."""
    bbr = {**_WIRED, "congestion": "bbr"}
    agent = {"profile": "modern", "tcp": bbr if of_station else _WIRED}
    return Scheme(
        "MTCP, BBR on the hop",
        ({"box": "station", **agent},),
        ({"box": "mobile", "hop": "tcp", **agent},),
        flow=_MODERN,
        tcp=_WIRED if of_station else bbr,
    )


SCHEMES: Mapping[str, Scheme] = {
    TCP: Scheme("TCP"),
    MTCP: _split("MTCP", "tcp"),
    SRP: _split("SRP", "srp"),
    NEWRENO: Scheme(
        "NewReno",
        flow=_MODERN,
        tcp={"recovery": "newreno", "congestion": "aimd"},
    ),
    SACK: Scheme(
        "SACK", flow=_MODERN, tcp={"recovery": "sack", "congestion": "aimd", "hystart": False}
    ),
    CUBIC: Scheme("CUBIC", flow=_MODERN),
    BBR: Scheme("BBR", flow=_MODERN, tcp={"congestion": "bbr"}),
    RLCI: Scheme("CUBIC with RLCI", flow=_MODERN, tcp={"mechanisms": [{"mechanism": "rlci"}]}),
    # It needs a mobile host that receives; it is warned as long before it leaves as is best in
    # koutsianas2007/freeze.
    FREEZE: Scheme(
        "CUBIC with Freeze-TCP",
        flow=_MODERN,
        tcp={"mechanisms": [{"mechanism": "freeze"}]},
        host={"warning": "200 ms"},
    ),
    MTCP_BBR: _bbr(of_station=False),
    TCP_CAPPED: Scheme("TCP, RTO up to 2 s", tcp=_CAPPED),
    MTCP_CAPPED: _split("MTCP, RTO up to 2 s", "tcp", _CAPPED),
}
#: Those that differ where the fixed host sends.
RECEIVING: Mapping[str, Scheme] = {MTCP_BBR: _bbr(of_station=True)}
#: Senders that change nothing in the network.
TODAY: Sequence[str] = (SACK, CUBIC, BBR, RLCI)


def name(scheme: str) -> str:
    """As reports and the book call it."""
    return SCHEMES[scheme].name


def lines(of: Sequence[str], colours: Sequence[str]) -> list[Line]:
    """A line of a picture for each scheme, in the first of these colours."""
    return [
        Line(name(scheme), {"scheme": scheme}, colour)
        for scheme, colour in zip(of, colours[: len(of)], strict=True)
    ]
