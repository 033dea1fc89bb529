"""Packets of attackers, in files for the example `flood` of lasthop-live, which sends them."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

TCP, UDP, ICMP = 6, 17, 1
SYN, RST, ACK = 2, 4, 16
#: The options of a SYN as Linux sends them: the segment size, SACK, timestamps, the window's scale.
SYN_OPTIONS = bytes.fromhex("020405b4 0402 080a00000001 00000000 01 030307")

End = tuple[int, int]
"""An address and a port."""


def checksum(data: bytes) -> bytes:
    """The checksum of RFC 1071: the sum of words modulo 65535 is that of the number."""
    padded = data + b"\x00" * (len(data) % 2)
    return struct.pack("!H", 0xFFFF - (int.from_bytes(padded) % 0xFFFF))


def ipv4(source: int, destination: int, protocol: int, body: bytes) -> bytes:
    """A packet, with the checksums."""
    at = {TCP: 16, UDP: 6}.get(protocol)
    if at is not None:
        pseudo = struct.pack("!IIBBH", source, destination, 0, protocol, len(body))
        body = body[:at] + checksum(pseudo + body) + body[at + 2 :]
    header = struct.pack(
        "!BBHHHBBHII", 0x45, 0, 20 + len(body), 0, 0, 64, protocol, 0, source, destination
    )
    return header[:10] + checksum(header) + header[12:] + body


def tcp(
    source: End, destination: End, flags: int, seq: int, ack: int = 0, data: bytes = b""
) -> bytes:
    """A segment; a SYN has options."""
    options = SYN_OPTIONS if flags & SYN else b""
    offset = (20 + len(options)) // 4 << 4
    ports = (source[1], destination[1])
    header = struct.pack("!HHIIBBHHH", *ports, seq, ack, offset, flags, 64_240, 0, 0)
    return ipv4(source[0], destination[0], TCP, header + options + data)


def udp(source: End, destination: End, data: bytes) -> bytes:
    """A datagram."""
    header = struct.pack("!HHHH", source[1], destination[1], 8 + len(data), 0)
    return ipv4(source[0], destination[0], UDP, header + data)


def echo(source: int, destination: int, number: int) -> bytes:
    """A request of ping."""
    body = struct.pack("!BBHHH", 8, 0, 0, number, 1) + bytes(32)
    return ipv4(source, destination, ICMP, body[:2] + checksum(body) + body[4:])


class Draw:
    """Random addresses and numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self, bits: int) -> int:
        """A number of so many bits."""
        return self.random.getrandbits(bits)

    def bytes(self, count: int) -> bytes:
        """Random bytes."""
        return self.random.randbytes(count)

    def address(self, network: IPv4Network) -> int:
        """An address of a network."""
        return int(network.network_address) + self.number(32 - network.prefixlen)

    def end(self, network: IPv4Network, port: int | None = None) -> End:
        """An address of a network, and a port."""
        return self.address(network), port or 1024 + self.number(15)


def openings(
    draw: Draw, sources: IPv4Network, servers: list[IPv4Network], count: int
) -> Iterator[bytes]:
    """SYNs from random clients: one in 16 to the first server, the others to the second ones."""
    for index in range(count):
        # What a server does with a SYN is no work of the gateway's, but of the same machine.
        server = servers[index % 16 != 0]
        # One port in two has a listener, where there is a server.
        to = draw.end(server, draw.random.choice((80, 81)))
        yield tcp(draw.end(sources), to, SYN, draw.number(32))


def resets(draw: Draw, ends: tuple[End, End], count: int) -> Iterator[bytes]:
    """Blind RSTs to both ends of a connection, in the name of the other one."""
    for _ in range(count):
        source, destination = draw.random.sample(ends, 2)
        yield tcp(source, destination, RST, draw.number(32))


def strays(
    draw: Draw, sources: IPv4Network, destinations: IPv4Network, count: int
) -> Iterator[bytes]:
    """Packets of no connection: segments without and with data, datagrams, and pings."""
    data = bytes(64)
    for index in range(count):
        source, destination = draw.end(sources), draw.end(destinations, 443)
        match index % 4:
            case 0:
                yield tcp(source, destination, ACK, draw.number(32), draw.number(32))
            case 1:
                yield tcp(source, destination, ACK, draw.number(32), draw.number(32), data)
            case 2:
                yield udp(source, destination, data)
            case _:
                yield echo(source[0], destination[0], draw.number(16))


def datagrams(
    draw: Draw, sources: IPv4Network | IPv4Address, to: End, contents: Iterable[bytes], port: int
) -> Iterator[bytes]:
    """Datagrams to a port, from one address or from random ones."""
    for content in contents:
        if isinstance(sources, IPv4Network):
            yield udp(draw.end(sources), to, content)
        else:
            yield udp((int(sources), port), to, content)


def write(path: Path, packets: Iterable[bytes]) -> None:
    """Writes packets into a file, each after its length."""
    with path.open("wb") as file:
        for packet in packets:
            file.write(struct.pack("!H", len(packet)) + packet)
