"""Tells lasthopd in mode notify what arrives damaged over an interface.

MODEM | python3 link_agent.py INTERFACE [SOCKET]

Each line of standard input is the beginning of the packet of a damaged frame, from its IP header to
the end of its TCP header or further, in hexadecimal digits; an empty line is a frame of which
nothing can be read. The counters are those that the kernel has of the interface.
"""

import contextlib
import socket
import struct
import sys
import threading
import time
from pathlib import Path

INTERFACE, *PLACE = sys.argv[1:]
AGENT = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)


def tell(kind: int, rest: bytes) -> None:
    """Sends a report, which is lost if lasthopd does not run or has enough to read."""
    with contextlib.suppress(OSError):
        AGENT.sendto(struct.pack("!BBH", 1, kind, 0) + rest, *PLACE or ["/run/lasthop/link.sock"])


def count() -> None:
    """Tells the counters once a second."""
    counters = Path("/sys/class/net", INTERFACE, "statistics")
    while True:
        counts = [int((counters / name).read_text()) for name in ("rx_packets", "rx_crc_errors")]
        tell(1, struct.pack("!QQ", *counts))
        time.sleep(1)


threading.Thread(target=count, daemon=True).start()
for line in sys.stdin:
    tell(0, bytes.fromhex(line))
