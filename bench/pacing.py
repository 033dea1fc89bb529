"""Paced and unpaced flows of today's TCP in the lab, over several paths.

python bench/pacing.py                  prints the tables of docs/tcp.md
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

import lasthop

SEEDS = 10


def scenario(
    rate: str, delay: str, queue: str, tcp: Sequence[str], *, seconds: int, more: str = ""
) -> lasthop.Scenario:
    """Flows with these settings over one link with 0.1 ms of jitter; they start 137 ms apart."""
    text = f"""
title    = "pacing"
duration = "{seconds} s"
nodes    = {{ a = {{}}, b = {{}} }}

[[links]]
between = ["a", "b"]
rate    = "{rate}"
delay   = "{delay}"
queue   = "{queue}"
forward = {{ jitter = "0.1 ms" }}
"""
    for number, settings in enumerate(tcp):
        text += f"""
[[flows]]
from  = "a"
to    = "b"
start = "{137 * number} ms"
tcp   = {{ {settings} }}
{more}
"""
    return lasthop.Scenario.from_toml(text)


#: Name, rate, one-way delay, queue, flows, duration in seconds, traffic.
PATHS = [
    ("20 Mb/s, 600 ms, queue of a tenth of the path", "20 Mbit/s", "300 ms", "100 packets", 1, 60),
    ("20 Mb/s, 600 ms, queue of the path", "20 Mbit/s", "300 ms", "1000 packets", 1, 60),
    ("20 Mb/s, 600 ms, queue of four paths", "20 Mbit/s", "300 ms", "4000 packets", 1, 60),
    ("10 Mb/s, 40 ms, queue of the path", "10 Mbit/s", "20 ms", "33 packets", 1, 60),
    ("100 Mb/s, 40 ms, queue of a tenth of the path", "100 Mbit/s", "20 ms", "33 packets", 1, 60),
    ("50 Mb/s, 100 ms, 20 flows, queue of the path", "50 Mbit/s", "50 ms", "400 packets", 20, 60),
    ("50 Mb/s, 100 ms, 20 flows, a tenth of the path", "50 Mbit/s", "50 ms", "40 packets", 20, 60),
]

#: The same for transfers: their size.
TRANSFERS = [
    ("20 Mb/s, 600 ms, 100 kB", "20 Mbit/s", "300 ms", "100 packets", "100 kB"),
    ("20 Mb/s, 600 ms, 1 MB", "20 Mbit/s", "300 ms", "100 packets", "1 MB"),
    ("20 Mb/s, 600 ms, 5 MB", "20 Mbit/s", "300 ms", "100 packets", "5 MB"),
    ("10 Mb/s, 40 ms, 100 kB", "10 Mbit/s", "20 ms", "33 packets", "100 kB"),
    ("10 Mb/s, 40 ms, 1 MB", "10 Mbit/s", "20 ms", "33 packets", "1 MB"),
]


def means(of: lasthop.Scenario, column: str) -> list[float]:
    """A column's mean over the seeds, for every flow."""
    frame = lasthop.sweep(of, seeds=SEEDS).rows
    flows = frame.group_by("flow", maintain_order=True).agg(pl.col(column).cast(pl.Float64).mean())
    return [float(mean) for mean in flows[column].to_list()]


def pacing() -> None:
    """Goodput of all flows, or the time of a transfer, and retransmissions."""
    head = "| | not paced | paced | not paced | paced |"
    print(f"| | Mb/s | | retransmitted | |\n| --- | ---: | ---: | ---: | ---: |\n{head}")
    for name, rate, delay, queue, flows, seconds in PATHS:
        every = [
            scenario(rate, delay, queue, [f"pacing = {paced}"] * flows, seconds=seconds)
            for paced in ("false", "true")
        ]
        goodput = [f"{sum(means(of, 'payload_bps')) / 1e6:.1f}" for of in every]
        again = [f"{sum(means(of, 'retransmissions')):.0f}" for of in every]
        print(f"| {name} | {' | '.join(goodput + again)} |")
    print(f"\n| | s | | retransmitted | |\n| --- | ---: | ---: | ---: | ---: |\n{head}")
    for name, rate, delay, queue, size in TRANSFERS:
        more = f'traffic = {{ size = "{size}" }}'
        every = [
            scenario(rate, delay, queue, [f"pacing = {paced}"], seconds=120, more=more)
            for paced in ("false", "true")
        ]
        time = [f"{means(of, 'completed_s')[0]:.2f}" for of in every]
        again = [f"{means(of, 'retransmissions')[0]:.0f}" for of in every]
        print(f"| {name} | {' | '.join(time + again)} |")


if __name__ == "__main__":
    pacing()
