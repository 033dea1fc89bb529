"""Short transfers over a pair of gateways in the lab, with tails that are sent twice and without.

python bench/short_messages.py      a minute

A client behind one gateway sends to a server behind the other, one connection after the other with
two seconds between on average, over a hop that loses packets in both directions.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import record
import tabular

import lasthop

FILE = "short-messages.json"
SIZES = ("1 kB", "20 kB", "100 kB")
#: Round trips of the hop, ms, and shares of packets lost.
HOPS = tuple(itertools.product((40, 600), (0.0, 0.01, 0.05, 0.1)))
LAN = 'rate = "1 Gbit/s"\ndelay = "5 ms"\nqueue = "10000 packets"\n'


def scenario(rtt: int, loss: float, size: str, repeat: bool) -> str:
    """Transfers over the hop."""
    box = f'box = "pair", rate = "10 Mbit/s", repeat = {str(repeat).lower()}'
    return f"""
title = "short transfers"
duration = "3000 s"
[nodes]
client = {{}}
near = {{ boxes = [{{ {box}, hop = "far" }}] }}
far = {{ boxes = [{{ {box}, hop = "near" }}] }}
server = {{}}
[[links]]
between = ["client", "near"]
{LAN}
[[links]]
between = ["near", "far"]
rate = "10 Mbit/s"
delay = "{rtt / 2:g} ms"
queue = "500 packets"
errors = {{ packet = {loss} }}
[[links]]
between = ["far", "server"]
{LAN}
[[flows]]
from = "client"
to = "server"
traffic = {{ arrivals = {{ flows = 1, think = "2 s" }}, size = "{size}" }}
"""


def measured(rtt: int, loss: float, size: str, repeat: bool) -> record.Row:
    """The times of the transfers, and what they took of the hop."""
    parsed = lasthop.Scenario.from_toml(scenario(rtt, loss, size, repeat))
    result = lasthop.run(parsed, seed=1)
    flow = result.rows.to_dicts()[0]
    links = {row["link"]: row["bytes"] for row in result.links.to_dicts()}
    sent = links["near->far"] + links["far->near"]
    return {
        "rtt_ms": rtt,
        "loss": loss,
        "size": size,
        "repeat": repeat,
        "transfers": flow["finished"],
        "mean_s": round(flow["time_mean_s"], 4),
        "p95_s": round(flow["time_p95_s"], 4),
        "bytes_of_each": round(sent / flow["finished"]),
    }


def table(result: Mapping[str, Any]) -> str:
    """Mean and 95th percentile, without repetitions and with them."""
    rows = {(row["rtt_ms"], row["loss"], row["size"], row["repeat"]): row for row in result["rows"]}
    lines = []
    for rtt, loss in HOPS:
        cells = []
        for size in SIZES:
            once, twice = (rows[rtt, loss, size, repeat] for repeat in (False, True))
            times = (f"{row['mean_s']:.2f} ({row['p95_s']:.2f})" for row in (once, twice))
            more = twice["bytes_of_each"] / once["bytes_of_each"]
            cells.append(f"{', '.join(times)}; {more:.2f}")
        lines.append([f"{rtt} ms, {100 * loss:g} %", *cells])
    return tabular.table(["hop", *SIZES], lines)


def main() -> None:
    """Measures, keeps the results and prints them."""
    parser = argparse.ArgumentParser(description="Short transfers over a pair of gateways.")
    parser.add_argument("--output", type=Path, default=record.RESULTS)
    output = parser.parse_args().output
    cases = itertools.product(HOPS, SIZES, (False, True))
    rows = [measured(*hop, size, repeat) for hop, size, repeat in cases]
    record.keep(output / FILE, {**record.circumstances(), "rows": rows})
    print(table(json.loads((output / FILE).read_text())))


if __name__ == "__main__":
    main()
