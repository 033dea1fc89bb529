"""How fast lasthop is as users run it, by `lasthop.run` and `lasthop.sweep`, beside ns-2 and ns-3.

The cases are those of ns2/speed.tcl and, as far as it has them, ns3/speed.cc, with timestamps.
Other variants are of lasthop alone. The program in bench/engine measures the engine without
scenario files, rows and Python, and counts allocations.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers
import polars as pl
import tabular

import lasthop
from lasthop import Scenario, flow, link

Row = dict[str, Any]

#: What the peers of this comparison run: SACK and AIMD.
PEERS_TCP = {
    "recovery": "sack",
    "congestion": "aimd",
    "byte_counting": 2,
    "hystart": False,
    "reduction": "immediate",
    "frto": False,
}

ROOT = Path(__file__).resolve().parent.parent

#: Bytes of data in a segment.
PAYLOAD = 1448
#: Bytes of a timestamps option, which MSS has to leave room for.
TIMESTAMPS = 12
#: What peers are compared with.
REFERENCE = "run, timestamps"


@dataclass(frozen=True)
class Case:
    """Bulk transfers over one link that start within half a second."""

    flows: int
    rate_mbps: int
    delay_ms: int
    #: Packets.
    queue: int
    #: Segments.
    window: int
    #: Simulated seconds: enough for about one of CPU time or more.
    duration: int

    @classmethod
    def of_many(cls, flows: int, duration: int) -> Case:
        """So many flows that have as much of the link each as fifty on 100 Mb/s."""
        return cls(flows, 2 * flows, delay_ms=20, queue=10 * flows, window=64, duration=duration)

    def scenario(self, tcp: Mapping[str, Any], bit_error_rate: float = 0.0) -> Scenario:
        """The scenario of this case."""
        window = {**PEERS_TCP, "receive_window": f"{self.window} segments"}
        return Scenario(
            f"{self.flows} bulk transfers",
            duration=f"{self.duration} s",
            nodes=["sender", "receiver"],
            links=[
                link(
                    "sender",
                    "receiver",
                    rate=f"{self.rate_mbps} Mbit/s",
                    delay=f"{self.delay_ms} ms",
                    queue=f"{self.queue} packets",
                    forward={"errors": {"bit": bit_error_rate}},
                )
            ],
            flows=[
                flow(
                    "sender",
                    "receiver",
                    start=f"{500_000 * number // self.flows} us",
                    tcp={**window, **tcp},
                )
                for number in range(self.flows)
            ],
        )


CASES: Mapping[str, Case] = {
    "one": Case(flows=1, rate_mbps=100, delay_ms=10, queue=1000, window=250, duration=3000),
    "fifty": Case.of_many(50, duration=1500),
}
#: Crowds of flows, by their number; each runs in a process of its own, to measure its memory.
CROWDS: Mapping[str, Case] = {
    str(flows): Case.of_many(flows, duration)
    for flows, duration in ((100, 600), (1000, 60), (5000, 12), (50_000, 3), (100_000, 2))
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


def run(scenario: Scenario) -> Row:
    """One run: delivered segments per CPU second, and the share of segments on the fast path."""
    start = time.process_time()
    result = lasthop.run(scenario)
    cpu = time.process_time() - start
    return {**speed(result.rows, cpu), "fast_path_share": result.fast_path_share}


def sweep(scenario: Scenario) -> Row:
    """Runs with some seeds, on one thread: delivered segments per CPU second."""
    start = time.process_time()
    result = lasthop.sweep(scenario, seeds=SEEDS, threads=1)
    return speed(result.rows, time.process_time() - start)


def speed(rows: pl.DataFrame, cpu_s: float) -> Row:
    """Delivered segments per CPU second."""
    return {"segments_per_cpu_s": int(rows["payload_bytes"].sum()) / PAYLOAD / cpu_s}


def crowd(case: Case) -> Row:
    """One run in a process that has done nothing before, and what a flow took of its memory."""
    tcp, bit_error_rate = VARIANTS["timestamps"]
    run(Case.of_many(1, duration=1).scenario(tcp))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    measured = run(case.scenario(tcp, bit_error_rate))
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {**measured, "kib_per_flow": taken / case.flows}


WAYS: Mapping[str, Callable[[Scenario], Row]] = {"run": run, "sweep": sweep}


def ours() -> Iterator[Row]:
    """One timed call of each case, variant and way."""
    head = {"simulator": "lasthop", "version": lasthop.__version__}
    for name, case in CASES.items():
        for variant, (tcp, bit_error_rate) in VARIANTS.items():
            scenario = case.scenario(tcp, bit_error_rate)
            for way, call in WAYS.items():
                yield {**head, "variant": f"{way}, {variant}", "case": name, **call(scenario)}
    for name, case in CROWDS.items():
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            row = alone.apply(crowd, (case,))
        yield {**head, "variant": REFERENCE, "case": name, **row}


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
        if "fast_path_share" in group[0]:
            summary["fast_path_share"] = round(min(row["fast_path_share"] for row in group), 4)
        if "kib_per_flow" in group[0]:
            summary["kib_per_flow"] = round(max(row["kib_per_flow"] for row in group), 1)
        yield summary


# --- the book's table ---


def table(result: Row) -> str:
    """The speed comparison as Markdown."""
    lines = [
        "| case | simulator | segments per CPU second | lasthop is faster by | on the fast path "
        "| memory of a flow |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    names = {
        "one": "one flow, 10 ms",
        "fifty": "fifty flows, 20 ms",
        "udp": "UDP cross traffic, 100 ms",
    }
    for row in result["rows"]:
        low, high = (f"{value / 1e6:.2f}" for value in row["range"])
        ratio = f"{row['lasthop_is_faster_by']:.1f}" if "lasthop_is_faster_by" in row else ""
        share = f"{row['fast_path_share']:.1%}" if "fast_path_share" in row else ""
        memory = f"{row['kib_per_flow']:.0f} KiB" if "kib_per_flow" in row else ""
        case = names.get(row["case"]) or f"{int(row['case']):,} flows, 20 ms"
        lines.append(
            f"| {case} | {row['simulator']} {row['version']} ({row['variant']}) "
            f"| {row['segments_per_cpu_s'] / 1e6:.2f} M ({low} to {high}) | {ratio} | {share} "
            f"| {memory} |"
        )
    return tabular.captioned(lines, result)
