"""Keeps datagrams to a port, each after its length: `recorder.py DEVICE PORT MOST FILE`."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path

IPV4, UDP = 0x0800, 17


def main() -> None:
    """Keeps the first ones, whole, from the IP header on."""
    device, port, most, file = sys.argv[1:]
    found: list[bytes] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(IPV4)) as heard:
        heard.bind((device, IPV4))
        print("Recording", flush=True)
        try:
            while len(found) < int(most):
                packet, address = heard.recvfrom(1 << 16)
                arrives = address[2] != socket.PACKET_OUTGOING
                is_udp = packet[9] == UDP
                if arrives and is_udp and int(port) == int.from_bytes(packet[22:24]):
                    found.append(packet)
            signal.pause()
        finally:
            lengths = (len(packet).to_bytes(2) for packet in found)
            Path(file).write_bytes(b"".join(map(bytes.__add__, lengths, found)))


if __name__ == "__main__":
    main()
