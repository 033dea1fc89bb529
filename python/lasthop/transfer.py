"""Transfers of files by lasthop's TCP on this machine's network, to or from any TCP peer."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from ipaddress import ip_address

from lasthop import _lasthop as engine
from lasthop.errors import UserError
from lasthop.scenario import setting

#: Called some twenty times a second with the bytes that have arrived, and with new sentences about
#: what happens.
Watch = Callable[[int, list[str]], None]


@dataclass(frozen=True)
class Peer:
    """The other end: an address and a port, or a port of ours to which it connects."""

    address: str | None
    port: int


@dataclass(frozen=True)
class Way:
    """How our TCP reaches the peer, and its settings."""

    #: The `tcp` table of scenario files, in TOML.
    tcp: str | None = None
    #: Keys of that table with their values, as KEY=VALUE; `profile` is the scenario's key.
    settings: Sequence[str] = ()
    #: The address of our end.
    address: str | None = None
    #: Packets to a peer beyond this machine leave as the machine's own.
    masquerade: bool = False


@dataclass(frozen=True)
class Transferred:
    """The result of a transfer."""

    local: str
    remote: str
    bytes: int
    #: From the SYN to the acknowledgment of the last byte, or to its arrival.
    seconds: float
    goodput_bps: float
    #: Of a sender, as scenarios have them.
    segments: int | None
    retransmissions: int | None
    timeouts: int | None
    #: The round trip, if one was measured.
    srtt_s: float | None
    min_rtt_s: float | None
    #: What the peer did with its side: "closed", "open", or "reset" after it had acknowledged all.
    peer_end: str
    #: Bytes from the peer that a sender has discarded.
    discarded: int

    def as_dict(self) -> dict[str, object]:
        """The same as plain values."""
        return asdict(self)


def peer(text: str, family: int = socket.AF_UNSPEC) -> Peer:
    """The peer of HOST:PORT, its name looked up."""
    read = re.fullmatch(r"(?:\[([^][]+)]|([^][:]+)):(\d{1,5})", text)
    if read is None or not 0 < int(read[3]) < 1 << 16:
        raise UserError(
            f"expected HOST:PORT, such as 192.0.2.1:9000 or [2001:db8::1]:9000, not {text!r}"
        )
    host, port = read[1] or read[2], int(read[3])
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"no address of {host!r}: {why}") from None
    addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
    # IPv6's loopback address cannot be reached by a device. A name may have another one.
    addresses.sort(key=lambda address: address == "::1")
    return Peer(addresses[0], port)


def own_address(text: str | None) -> str | None:
    """The address of our end, if it is one."""
    if text is None:
        return None
    try:
        return str(ip_address(text))
    except ValueError:
        raise UserError(f"expected an IP address, such as 198.18.0.2, not {text!r}") from None


def transfer(file: int, to: Peer, way: Way, watch: Watch, *, sends: bool) -> Transferred:
    """Sends what can be read from a file descriptor, or writes there what is received.

    Raises ScenarioError for settings, TestbedError if this machine cannot do it, TransferError if
    the connection fails, OSError if the file does, KeyboardInterrupt.
    """
    put = [setting(text) for text in way.settings]
    found = engine.transfer(
        file,
        to.port,
        watch,
        sends=sends,
        peer=to.address,
        source="" if way.tcp is None else f"tcp = {way.tcp}\n",
        overrides=[(key if key == "profile" else f"tcp.{key}", value) for key, value in put],
        address=own_address(way.address),
        masquerade=way.masquerade,
    )
    seconds = found["seconds"]
    goodput = found["bytes"] * 8 / seconds if seconds else 0.0
    ours = {name: found[name] if sends else None for name in _OF_SENDERS}
    return Transferred(**{**found, **ours, "goodput_bps": goodput})


_OF_SENDERS = ("segments", "retransmissions", "timeouts")
