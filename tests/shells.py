"""A hop for programs that run behind it by `lasthop shell`, and what is seen of them."""

from __future__ import annotations

import sys
from pathlib import Path

RATE_BPS = 8e6
SCENARIO = """
title    = "A hop for programs"
duration = "1 s"
[nodes]
server  = {}
gateway = {}
phone   = {}
[[links]]
between = ["server", "gateway"]
rate    = "100 Mbit/s"
delay   = "1 ms"
[[links]]
between = ["gateway", "phone"]
rate    = "8 Mbit/s"
delay   = "10 ms"
queue   = "60 packets"
forward = { errors = { packet = 0.01 } }
[[flows]]
from    = "server"
to      = "phone"
[testbed]
late = "1 s"
"""
SIZE = 1_000_000

#: Reads a file from the server, of both versions of IP, and prints what became of it.
CLIENT = """
import json, os, sys, time, urllib.request
found = {}
v4, v6 = os.environ["LASTHOP_SERVER"], os.environ["LASTHOP_SERVER_V6"]
for name, host in ("v4", v4), ("v6", f"[{v6}]"):
    start = time.monotonic()
    got = len(urllib.request.urlopen(f"http://{host}:8000/file", timeout=20).read())
    found[name] = [got, time.monotonic() - start]
print(json.dumps(found))
"""


def hop(folder: Path) -> Path:
    """A file with the scenario."""
    path = folder / "hop.toml"
    path.write_text(SCENARIO)
    return path


def server(folder: Path) -> str:
    """The command of a server with a file."""
    served = folder / "served"
    served.mkdir()
    (served / "file").write_bytes(bytes(SIZE))
    return f"{sys.executable} -m http.server 8000 --bind :: --directory {served}"


def packets(stderr: str, link: str) -> list[int]:
    """The counts of a direction of a link: packets, dropped, corrupted, lost."""
    line = next(line for line in stderr.splitlines() if line.startswith(link))
    return [int(word) for word in line.split()[1:5]]


def left_by(process: int) -> list[str]:
    """What a shell has left: namespaces, devices, nft tables."""
    names = [path.name for path in Path("/run/netns").glob(f"lasthop-{process}-*")]
    return names + [path.name for path in Path("/sys/class/net").glob("lasthop-nat*")]
