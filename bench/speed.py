"""How fast lasthop is as users run it, by `lasthop.run` and `lasthop.sweep`, beside ns-2 and ns-3.

The two cases are those of ns2/speed.tcl and ns3/speed.cc, with timestamps. Other variants are of
lasthop alone. The program in bench/engine measures the engine without
scenario files, rows and Python, and counts allocations.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers

import lasthop
from lasthop import Scenario, flow, link

Row = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent

#: Bytes of data in a segment.
PAYLOAD = 1448
#: Bytes of a timestamps option, which MSS has to leave room for.
TIMESTAMPS = 12
#: What peers are compared with.
REFERENCE = "run, timestamps"


@dataclass(frozen=True)
class Case:
    """Bulk transfers over one link of 100 Mb/s, 10 ms apart."""

    flows: int
    delay_ms: int
    #: Packets.
    queue: int
    #: Segments.
    window: int
    #: Simulated seconds: enough for about one of CPU time.
    duration: int

    def scenario(self, tcp: Mapping[str, Any], bit_error_rate: float = 0.0) -> Scenario:
        """The scenario of this case."""
        window = {"receive_window": f"{self.window} segments"}
        return Scenario(
            f"{self.flows} bulk transfers",
            duration=f"{self.duration} s",
            nodes=["sender", "receiver"],
            links=[
                link(
                    "sender",
                    "receiver",
                    rate="100 Mbit/s",
                    delay=f"{self.delay_ms} ms",
                    queue=f"{self.queue} packets",
                    forward={"errors": {"bit": bit_error_rate}},
                )
            ],
            flows=[
                flow("sender", "receiver", start=f"{10 * number} ms", tcp={**window, **tcp})
                for number in range(self.flows)
            ],
        )


CASES: Mapping[str, Case] = {
    "one": Case(flows=1, delay_ms=10, queue=1000, window=250, duration=3000),
    "fifty": Case(flows=50, delay_ms=20, queue=500, window=64, duration=1500),
}
#: With timestamps, an acknowledgment for each segment.
STAMPED: Mapping[str, Any] = {"mss": PAYLOAD + TIMESTAMPS, "delayed_ack": "off"}
VARIANTS: Mapping[str, tuple[Mapping[str, Any], float]] = {
    "timestamps": (STAMPED, 0.0),
    "no timestamps": ({**STAMPED, "mss": PAYLOAD, "timestamps": False}, 0.0),
    "delayed ACKs": ({**STAMPED, "delayed_ack": "40 ms"}, 0.0),
    "Backward ETEN, bit errors 1e-6": ({**STAMPED, "eten": "backward"}, 1e-6),
}
SEEDS = 4


def run(scenario: Scenario) -> int:
    """Payload bytes of one run."""
    return int(lasthop.run(scenario).rows["payload_bytes"].sum())


def sweep(scenario: Scenario) -> int:
    """Payload bytes of runs with some seeds, on one thread."""
    return int(lasthop.sweep(scenario, seeds=SEEDS, threads=1).rows["payload_bytes"].sum())


WAYS: Mapping[str, Callable[[Scenario], int]] = {"run": run, "sweep": sweep}


def ours() -> Iterator[Row]:
    """One timed call of each case, variant and way."""
    for name, case in CASES.items():
        for variant, (tcp, bit_error_rate) in VARIANTS.items():
            scenario = case.scenario(tcp, bit_error_rate)
            for way, call in WAYS.items():
                start = time.process_time()
                segments = call(scenario) / PAYLOAD
                cpu = time.process_time() - start
                yield {
                    "simulator": "lasthop",
                    "version": lasthop.__version__,
                    "variant": f"{way}, {variant}",
                    "case": name,
                    "segments_per_cpu_s": segments / cpu,
                }


def engine() -> Iterator[Row]:
    """One timed run of the program in bench/engine, which counts allocations."""
    build = ["cargo", "build", "--quiet", "--release", "--package", "lasthop-engine"]
    subprocess.run(build, cwd=ROOT, check=True)
    program = ROOT / "target" / "release" / "engine"
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        yield {"version": lasthop.__version__, "variant": "engine", **json.loads(line)}


def measured(rounds: int, say: Callable[[str], None]) -> list[Row]:
    """Every simulator `rounds` times in turn, so that a busy spell of the machine hits all."""
    rows: list[Row] = []
    for number in range(1, rounds + 1):
        say(f"round {number} of {rounds}")
        rows.extend(ours())
        rows.extend(engine())
        for simulator in ("ns-2", "ns-3"):
            try:
                rows.extend(peers.measure_speed(1, (simulator,)))
            except peers.PeerError as error:
                say(f"left out: {error}")
    return list(summarised(rows))


def summarised(rows: Sequence[Row]) -> Iterator[Row]:
    """One row per case and simulator: the median, the spread, and lasthop's ratio to it."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["case"], row["simulator"], row["variant"]), []).append(row)
    medians = {
        key: statistics.median(row["segments_per_cpu_s"] for row in group)
        for key, group in groups.items()
    }
    for key, group in sorted(groups.items()):
        case, simulator, variant = key
        speeds = [row["segments_per_cpu_s"] for row in group]
        summary: Row = {
            "case": case,
            "simulator": simulator,
            "variant": variant,
            "version": group[0]["version"],
            "runs": len(group),
            "segments_per_cpu_s": round(medians[key]),
            "range": [round(min(speeds)), round(max(speeds))],
        }
        if simulator != "lasthop":
            ours = medians[case, "lasthop", REFERENCE]
            summary["lasthop_is_faster_by"] = round(ours / medians[key], 2)
        if "allocations_per_segment" in group[0]:
            summary["allocations_per_segment"] = max(r["allocations_per_segment"] for r in group)
        yield summary
