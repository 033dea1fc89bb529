"""Measures the link emulator with ping, iperf3 and tshark, and keeps the results.

python bench/fidelity.py                 all of it: delay, rate and loss
python bench/fidelity.py delay           what ping and tshark see beyond the model's delay
python bench/fidelity.py rate            what iperf3 gets through a link that is full
python bench/fidelity.py loss            what iperf3 loses

It needs root, and ping, iperf3 and tshark. Lateness is the machine's: how long a hypervisor kept
it from working (steal) and how busy it was stand beside every row.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import namespaces
import record
import tabular

Row = dict[str, Any]

FIDELITY = record.RESULTS / "fidelity.json"

TOOLS = ("ping", "iperf3", "tshark", "dumpcap")
#: Bits per second, seconds one way, and shares of packets.
RATES = (1e6, 1e7, 1e8)
DELAYS = (0.001, 0.01, 0.1, 0.3)
LOSSES = (0.001, 0.01, 0.05)

#: What the emulator must keep: seconds beyond the model, and the rate's error.
MEDIAN_S, P99_S, RATE_ERROR = 0.3e-3, 1e-3, 0.01
#: The central part of the binomial distribution that counts as within its interval.
CONFIDENCE = 0.99

#: Bytes of UDP payload in iperf3's packets, and of IP and UDP headers.
PAYLOAD, HEADERS = 1400, 28
#: The second node's address.
PEER = "10.9.0.2"

#: Runs a command in a namespace meanwhile. iperf3 prints what it has measured after SIGINT.
interrupted = functools.partial(namespaces.background, ending=signal.SIGINT)


class Hop:
    """Two namespaces and an emulated link between them, until the end of the `with` block."""

    def __init__(self, program: Path, name: str, **settings: float | int) -> None:
        words = [f"{key}={value}" for key, value in settings.items()]
        self.process = subprocess.Popen(
            [program, name, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.report: Row = {}

    def __enter__(self) -> Hop:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("fidelity: the emulator does not start (it needs root)")
        self.near, self.far = json.loads(line)["namespaces"]
        self.steal_s, self.start = steal_s(), time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        # The end of its standard input ends the emulator.
        out = self.process.communicate()[0]
        if out:
            self.report = json.loads(out)
        self.steal_s = steal_s() - self.steal_s
        self.wall_s = time.monotonic() - self.start

    def machine(self) -> Row:
        """The load of the machine, and the emulator's own counters."""
        directions = self.report["directions"]
        return {
            "steal_percent": round(100 * self.steal_s / self.wall_s / (os.cpu_count() or 1), 2),
            "machine_load": round(os.getloadavg()[0], 1),
            "emulator_busy_percent": round(100 * self.report["busy_s"] / self.report["span_s"], 1),
            "beyond_model": sum(d["kernel_dropped"] + d["failed"] for d in directions),
            "late": sum(d["late"] for d in directions),
            "void": self.report["void"],
        }


def steal_s() -> float:
    """Processor seconds that a hypervisor has taken (proc_stat(5))."""
    ticks = Path("/proc/stat").read_text().splitlines()[0].split()[8]
    return int(ticks) / os.sysconf("SC_CLK_TCK")


# --- delay ---


def measure_delay(program: Path, _: int) -> Iterator[Row]:
    """Every rate and delay, with nothing but ping on the link and with UDP of 80 % of the rate."""
    for rate in RATES:
        for delay in DELAYS:
            for load in (0.0, 0.8):
                yield delay_row(program, rate, delay, load)


def delay_row(program: Path, rate: float, delay: float, load: float) -> Row:
    """How much later than the model says packets arrive.

    tshark's times at both ends are of one clock. From those at the near end, the lengths, rate and
    delay follows when each packet should be at the far end, whatever the load.
    """
    settings = {"bps": int(rate), "delay_ns": round(delay * 1e9)}
    with tempfile.TemporaryDirectory() as folder, Hop(program, "delay", **settings) as hop:
        files = [Path(folder) / name for name in ("near", "far")]
        with contextlib.ExitStack() as captures:
            for namespace, file in zip((hop.near, hop.far), files, strict=True):
                words = ["dumpcap", "-i", "link0", "-s", "96", "-B", "32", "-w", str(file)]
                captures.enter_context(interrupted(namespace, *words, ready="File:"))
            if load:
                captures.enter_context(iperf_server(hop.far))
                words = ["-u", "-b", str(int(rate * load)), "-l", str(PAYLOAD), "-t", "6"]
                flow = interrupted(
                    hop.near, "iperf3", "--forceflush", "-c", PEER, *words, ready="ID"
                )
                captures.enter_context(flow)
            printed = namespaces.call(hop.near, "ping", "-q", "-c", "100", "-i", "0.05", PEER)
            # What is under way arrives, and captures are written.
            time.sleep(2 * delay + 0.7)
        near, far = (packets(file) for file in files)
    # The far node's packets are at both ends, too, in the other direction.
    forward = beyond_model(near["to"], far["to"], rate, delay)
    backward = beyond_model(far["from"], near["from"], rate, delay)
    match = re.search(r"= ([\d.]+)/([\d.]+)/", printed)
    assert match is not None, printed
    # 56 bytes of ping's, 8 of ICMP and 20 of IP, both ways.
    round_trip_ms = 2e3 * (delay + 84 * 8 / rate)
    beyond = sorted(forward + backward)
    return {
        "case": "delay",
        "rate_mbps": rate / 1e6,
        "delay_ms": delay * 1e3,
        "load": load,
        "packets": len(beyond),
        "unmatched": abs(len(near["to"]) - len(far["to"])),
        "beyond_ms": {
            "median": round(1e3 * quantile(beyond, 0.5), 3),
            "p99": round(1e3 * quantile(beyond, 0.99), 3),
            "max": round(1e3 * beyond[-1], 3),
        },
        # Of an idle link: with load, what ping waits for in the queue is not the emulator's doing.
        "ping_beyond_ms": None if load else round(float(match[2]) - round_trip_ms, 3),
        "ok": quantile(beyond, 0.5) <= MEDIAN_S and quantile(beyond, 0.99) <= P99_S,
        **hop.machine(),
    }


def packets(file: Path) -> dict[str, list[tuple[float, int]]]:
    """Times and lengths of the packets in a capture, to the far node and from it."""
    fields = ["-e", "ip.dst", "-e", "frame.time_epoch", "-e", "ip.len"]
    words = ["tshark", "-n", "-r", str(file), "-T", "fields", *fields]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[tuple[float, int]]] = {"to": [], "from": []}
    for line in printed.splitlines():
        # An ICMP error quotes a header, whose fields follow.
        destination, at, length = (word.split(",")[0] for word in line.split("\t"))
        found["to" if destination == PEER else "from"].append((float(at), int(length)))
    return found


def beyond_model(
    sent: Sequence[tuple[float, int]],
    received: Sequence[tuple[float, int]],
    rate: float,
    delay: float,
) -> list[float]:
    """How much later than a FIFO link of this rate and delay has them, packets arrive."""
    free = 0.0
    beyond = []
    for (at, length), (arrival, _) in zip(sent, received, strict=False):
        free = max(at, free) + 8 * length / rate
        beyond.append(arrival - free - delay)
    return beyond


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value such that this share is no larger."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


# --- rate and loss ---


@contextlib.contextmanager
def iperf_server(namespace: str) -> Iterator[None]:
    """iperf3's server, for one test."""
    server = ("iperf3", "-s", "-1", "-J")
    with interrupted(namespace, *server):
        while not namespaces.call(namespace, "ss", "-Hltn", "sport = :5201"):
            time.sleep(0.05)
        yield


def iperf(hop: Hop, *options: str) -> Row:
    """What iperf3's server says of a test."""
    with iperf_server(hop.far):
        words = ["iperf3", "-c", PEER, "-J", "--get-server-output", *options]
        report: Row = json.loads(namespaces.call(hop.near, *words))
    return dict(report["server_output_json"])


def measure_rate(program: Path, _: int) -> Iterator[Row]:
    """A link that is offered more than its rate, and one that TCP fills."""
    for rate in RATES:
        for protocol in ("udp", "tcp"):
            # TCP finds room for twice what is on its way.
            queue = 100 if protocol == "udp" else max(20, int(2 * rate * 0.02 / 8 / 1500))
            settings = {"bps": int(rate), "delay_ns": 10**7, "queue": queue}
            with Hop(program, "rate", **settings) as hop:
                if protocol == "udp":
                    words = ["-u", "-b", str(int(1.2 * rate)), "-l", str(PAYLOAD), "-t", "12"]
                    share = PAYLOAD / (PAYLOAD + HEADERS)
                else:
                    words = ["-C", "cubic", "-t", "12"]
                    # Headers of 20 bytes each, and TCP's timestamps.
                    share = (1500 - 52) / 1500
                report = iperf(hop, *words)
            # Without the first two seconds, when it begins, and the last, when it ends.
            sums = [interval["sum"] for interval in report["intervals"][2:11]]
            carried = 8 * sum(s["bytes"] for s in sums) / sum(s["seconds"] for s in sums) / share
            yield {
                "case": "rate",
                "protocol": protocol,
                "rate_mbps": rate / 1e6,
                "measured_mbps": round(carried / 1e6, 4),
                "error_percent": round(100 * (carried / rate - 1), 2),
                "ok": abs(carried / rate - 1) <= RATE_ERROR,
                **hop.machine(),
            }


def measure_loss(program: Path, seed: int) -> Iterator[Row]:
    """UDP over a link that loses packets independently."""
    for loss in LOSSES:
        settings = {"bps": 10**8, "delay_ns": 10**7, "loss": loss, "seed": seed}
        with Hop(program, "loss", **settings) as hop:
            report = iperf(hop, "-u", "-b", "30M", "-l", str(PAYLOAD), "-t", "10")
        total, lost = report["end"]["sum"]["packets"], report["end"]["sum"]["lost_packets"]
        low, high = binomial_interval(total, loss)
        yield {
            "case": "loss",
            "loss": loss,
            "packets": total,
            "lost": lost,
            "measured": round(lost / total, 6),
            "interval": [low, high],
            "ok": low <= lost <= high,
            **hop.machine(),
        }


def binomial_interval(total: int, share: float) -> tuple[int, int]:
    """The counts between which the central part of the distribution lies."""
    tail = (1 - CONFIDENCE) / 2
    below = 0.0
    low: int | None = None
    for count in range(total + 1):
        below += math.exp(
            math.lgamma(total + 1)
            - math.lgamma(count + 1)
            - math.lgamma(total - count + 1)
            + count * math.log(share)
            + (total - count) * math.log1p(-share)
        )
        if low is None and below > tail:
            low = count
        if below >= 1 - tail:
            return low or 0, count
    return low or 0, total


# --- all of it ---

#: Each is given the emulator and the number of the round, as seed.
MEASURES = {"delay": measure_delay, "rate": measure_rate, "loss": measure_loss}


def measure(what: Sequence[str], rounds: int) -> Row:
    """Runs every case once per round, so that other load of the machine affects few rows."""
    program = namespaces.build("lasthop-live", "--example", "emulate") / "examples" / "emulate"
    rows: list[Row] = []
    for number in range(1, rounds + 1):
        for name in what:
            record.say(f"round {number} of {rounds}: {name}")
            for row in MEASURES[name](program, number):
                record.say(f"  {json.dumps(row)}")
                rows.append({"round": number, **row})
    return {
        "experiment": "fidelity",
        **record.circumstances(),
        "tools": versions(),
        "kernel": os.uname().release,
        "rounds": rounds,
        "bars": {"median_ms": 0.3, "p99_ms": 1.0, "rate_percent": 1.0, "confidence": CONFIDENCE},
        "rows": rows,
    }


def summarised(rows: Sequence[Row]) -> Iterator[Row]:
    """One row per case: the median of the rounds, and their spread."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        keys = ("case", "protocol", "rate_mbps", "delay_ms", "load", "loss")
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    for group in groups.values():
        first = group[0]
        names = ("case", "protocol", "rate_mbps", "delay_ms", "load", "loss")
        summary: Row = {name: first[name] for name in names if name in first}
        if first["case"] == "delay":
            for name in ("median", "p99"):
                summary[f"{name}_ms"] = spread([row["beyond_ms"][name] for row in group])
        elif first["case"] == "rate":
            summary["error_percent"] = spread([row["error_percent"] for row in group])
        else:
            summary["measured"] = spread([row["measured"] for row in group])
        summary["steal_percent"] = spread([row["steal_percent"] for row in group])
        summary["kept"] = f"{sum(row['ok'] for row in group)} of {len(group)}"
        yield summary


def spread(values: Sequence[float]) -> list[float]:
    """Least, median and largest."""
    return [round(value, 6) for value in (min(values), statistics.median(values), max(values))]


def versions() -> dict[str, str]:
    """The versions of the measuring tools."""
    found = {}
    for tool, option in (("ping", "-V"), ("iperf3", "--version"), ("tshark", "--version")):
        printed = subprocess.run([tool, option], capture_output=True, text=True, check=True).stdout
        match = re.search(r"\d[\d.]+", printed)
        found[tool] = match[0] if match else "unknown"
    return found


# --- the book's table ---


def table(result: Row) -> str:
    """The emulator as measured by ping, iperf3 and tshark: one line per case."""
    lines = [
        "| link | load | beyond the model, ms: median | 99th percentile | limits kept |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    rows = list(summarised(result["rows"]))
    for row in (row for row in rows if row["case"] == "delay"):
        load = f"{row['load']:.0%} UDP" if row["load"] else "ping alone"
        delays = " | ".join(tabular.spread(row[key], 3) for key in ("median_ms", "p99_ms"))
        lines.append(
            f"| {row['rate_mbps']:g} Mb/s, {row['delay_ms']:g} ms | {load} "
            f"| {delays} | {row['kept']} |"
        )
    lines += [
        "",
        "| rate | load | error of the rate, % | limits kept |",
        "| --- | --- | ---: | ---: |",
    ]
    for row in (row for row in rows if row["case"] == "rate"):
        error = tabular.spread(row["error_percent"])
        lines.append(
            f"| {row['rate_mbps']:g} Mb/s | {row['protocol'].upper()} | {error} | {row['kept']} |"
        )
    lines += ["", "| loss | measured | within its binomial interval |", "| --- | ---: | ---: |"]
    for row in (row for row in rows if row["case"] == "loss"):
        lines.append(f"| {row['loss']:g} | {tabular.spread(row['measured'], 5)} | {row['kept']} |")
    tools = ", ".join(f"{tool} {version}" for tool, version in result["tools"].items())
    steal = max(row["steal_percent"][2] for row in rows)
    about = (
        f"*{result['rounds']} rounds: the median, and least to largest; {tools}; Linux "
        f"{result['kernel']}. The hypervisor took at most {steal:g} % of the machine.*"
    )
    return tabular.captioned(lines, result, about)


def main() -> int:
    """Runs the measurements that the command line names; 1 if a limit is not kept."""
    parser = argparse.ArgumentParser(description="Measures the link emulator's fidelity.")
    parser.add_argument("what", nargs="?", choices=[*MEASURES, "all"], default="all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=FIDELITY)
    options = parser.parse_args()
    namespaces.need(*TOOLS)
    what = list(MEASURES) if options.what == "all" else [options.what]
    result = measure(what, options.rounds)
    record.keep(options.output, result)
    for row in summarised(result["rows"]):
        print(json.dumps(row))
    return 0 if all(row["ok"] for row in result["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
