"""Downloads over bad hops, directly and through `lasthopd`.

python bench/field.py               three hops, ten seconds for each download
python bench/field.py --seconds 30

A user downloads a file by IPv4 from a web server behind a gateway; the last hop, between gateway
and user, is bad. All of it is in network namespaces of this machine: the emulator of the links is
lasthop's, web server, TCP at both ends and curl are not. It needs root and curl.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Mapping
from pathlib import Path

import field_gateways
import field_path
import namespaces
import record
from field_gateways import Candidate
from field_path import Hop

HOPS = (
    ("a geostationary satellite", Hop(10, 600, 0.001)),
    ("the same in rain", Hop(10, 600, 0.01)),
    ("radio", Hop(20, 40, 0.01)),
)
CANDIDATES = (
    Candidate("direct, the server has CUBIC", "direct"),
    Candidate("direct, the server has BBR", "direct", "bbr"),
    Candidate("lasthopd, mode spoof", "lasthopd"),
    Candidate("lasthopd, mode split", "lasthopd", mode="split"),
    Candidate("lasthopd, mode pair", "lasthopd", mode="pair"),
)
NOTE = """
% of hop: goodput over the hop's capacity x (1 - loss). Headers take 3.5 % of it; the handshake, the
request and the start of each connection count, too. Packets are lost in both directions. The way
between server and gateway adds 10 ms to each round trip. lasthopd knows the hop's rate; behind it
the server has CUBIC."""
BUSY = """
*: this machine was too busy for the emulator: more than 1 % of the packets over a link were more
than a millisecond late, or lost where the hop does not lose them."""


def measured(
    programs: Mapping[str, Path], hop: Hop, candidate: Candidate, file: Path, seconds: float
) -> record.Row:
    """One download."""
    with (
        tempfile.TemporaryDirectory() as folder,
        field_path.emulated(programs["network"], hop, seed=1) as nodes,
        field_path.serving(nodes, file.parent, field_gateways.behind(candidate)),
    ):
        place = nodes.place(Path(folder), hop.mbps)
        with candidate.at(place, programs) as (_, guard):
            row = field_path.download(nodes, file, seconds)
            guard()
    return row | nodes.health


def line(name: str, hop: Hop, row: record.Row) -> str:
    """A line of the table."""
    first = f"{row['first_byte_s']:.2f} s" if row["first_byte_s"] else "none"
    share = f"{100 * hop.share(row['mbps']):.1f} %"
    received = f"{row['bytes'] / 1e6:.1f} MB in {row['seconds']:.1f} s"
    verdict = "SHA-256 right" if row["ok"] else "SHA-256 WRONG"
    busy = " *" if row.get("void") else ""
    return f"{name:28}{row['mbps']:6.2f} Mbit/s{share:>10}{first:>12}  {received:18}{verdict}{busy}"


def main() -> int:
    """Prints the tables; 1 if a download was not right."""
    parser = argparse.ArgumentParser(description="Downloads through lasthopd.")
    parser.add_argument("--seconds", type=float, default=10.0, help="the longest download")
    options = parser.parse_args()
    namespaces.need("ip", "curl")
    namespaces.ended_in_order()
    programs = field_path.built()
    right, busy = True, False
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        size = max(hop.mbps for _, hop in HOPS) * 1e6 / 8 * options.seconds
        file.write_bytes(random.Random(1).randbytes(round(size)))
        for name, hop in HOPS:
            print(f"\n{name}: {hop}", flush=True)
            print(f"{'':28}{'goodput':>13}{'% of hop':>10}{'first byte':>12}  received")
            for candidate in CANDIDATES:
                row = measured(programs, hop, candidate, file, options.seconds)
                print(line(candidate.name, hop, row), flush=True)
                busy |= bool(row.get("void"))
                right &= row["ok"]
    print(NOTE)
    if busy:
        print(BUSY)
    return 0 if right else 1


if __name__ == "__main__":
    namespaces.run(main)
