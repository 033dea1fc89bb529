"""CUBIC and BBR at a gateway before a bad hop in the lab, alone and beside a flow of CUBIC: BBR as
a gateway has it by default, and with the loss threshold that it has where it knows the `rate`.

python bench/gateway_congestion.py              all hops, in some minutes
python bench/gateway_congestion.py --seeds 1    each once

A server 5 ms behind the gateway sends to a client behind the hop. The queue of the hop holds what
the hop does, and packets are lost in both directions. The other flow does not pass the gateway; its
server is beside the hop.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import lasthop

MTU = 1500
#: BBR, as a gateway has it by default.
BBR = """\
congestion = "bbr", renew_min_rtt = true, tolerate_random_loss = true, prompt_start = true"""
#: Congestion controls, by their names in the table.
CONTROLS = {
    "CUBIC": 'congestion = "cubic"',
    "BBR": BBR,
    "BBR, 20 %": f"{BBR}, loss_threshold = 0.2",
}
LAN = 'rate = "1 Gbit/s"\nqueue = "5000 packets"\n'


@dataclass(frozen=True)
class Hop:
    """A hop, alike in both directions."""

    mbps: int
    #: Its round trip, milliseconds.
    rtt: int
    #: The share of packets that are lost.
    loss: float

    def scenario(self, congestion: str, rate: bool, beside: bool) -> str:
        """A download over the gateway; the gateway may know the hop's `rate`, and another flow be
        `beside`."""
        queue = max(50, round(1e3 * self.mbps * self.rtt / 8 / MTU))
        known = f'rate = "{self.mbps} Mbit/s"' if rate else ""
        flows = '[[flows]]\nfrom = "server"\nto = "client"\ntraffic = "bulk"\n'
        if beside:
            flows += flows.replace('"server"', '"other"')
        return f"""
title = "a gateway before a bad hop"
duration = "{60 if self.rtt < 500 else 120} s"
[nodes]
server = {{}}
other = {{}}
router = {{}}
client = {{}}
[[nodes.gateway.boxes]]
box = "spoofer"
tcp = {{ {congestion} }}
cache = "16 MiB"
hop = "router"
{known}
[[links]]
between = ["server", "gateway"]
{LAN}delay = "5 ms"
[[links]]
between = ["gateway", "router"]
{LAN}delay = "0.01 ms"
[[links]]
between = ["other", "router"]
{LAN}delay = "0.1 ms"
[[links]]
between = ["router", "client"]
rate = "{self.mbps} Mbit/s"
delay = "{self.rtt / 2} ms"
queue = "{queue} packets"
errors = {{ packet = {self.loss} }}
{flows}"""


def measured(
    folder: Path, hop: Hop, congestion: str, rate: bool, beside: bool, seeds: int
) -> list[float]:
    """Medians: the goodput of each flow, Mb/s, and the median and 95th percentile of the delay in
    the queue of the hop, ms."""
    file = folder / "hop.toml"
    file.write_text(hop.scenario(congestion, rate, beside))
    found = []
    for seed in range(1, seeds + 1):
        result = lasthop.run(file, seed=seed)
        queue = next(row for row in result.links.to_dicts() if row["link"] == "router->client")
        delays = [queue["queue_delay_median_s"], queue["queue_delay_p95_s"]]
        goodputs = [1e-6 * row["payload_bps"] for row in result.rows.to_dicts()]
        found.append([*goodputs, *(1e3 * (delay or 0.0) for delay in delays)])
    return [median(values) for values in zip(*found, strict=True)]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="CUBIC and BBR at a gateway.")
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    names = [*CONTROLS, *(f"{name} beside CUBIC" for name in CONTROLS)]
    print(f"| hop | rate | {' | '.join(names)} |")
    print("| --- | --- |" + " ---: |" * len(names))
    hops = itertools.product((10, 100), (40, 100, 600), (0.0, 0.001, 0.01, 0.05))
    with tempfile.TemporaryDirectory() as name:
        for hop, rate in itertools.product(itertools.starmap(Hop, hops), (False, True)):
            cells = [
                f"{hop.mbps} Mb/s, {hop.rtt} ms, {100 * hop.loss:g} %",
                "known" if rate else "",
            ]
            for beside, congestion in itertools.product((False, True), CONTROLS.values()):
                values = measured(Path(name), hop, congestion, rate, beside, seeds)
                *goodputs, half, most = values
                shares = " and ".join(f"{goodput:.1f}" for goodput in goodputs)
                cells.append(f"{shares} ({half:.0f}, {most:.0f} ms)")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
