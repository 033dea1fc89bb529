"""Loss recovery of our sender beside the kernel's, packet by packet, under the same losses.

python bench/rack.py                     all patterns, three runs each; needs root
python bench/rack.py last-segment ...    some of them; the others stay as they were kept

Both send to a kernel socket over an emulated link, with CUBIC, RACK-TLP and a least timeout of
200 ms. A pattern names the transmissions that are lost: the third of segment 15, for example. The
link takes numbers of packets, so runs before the measured ones find the number of each. Captures
at both ends show what was sent, and what arrived. It needs dumpcap and tshark.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import record
import spoofing
import tabular

RACK = record.RESULTS / "rack.json"
RUNS = 3
STACKS = ("lasthop", "linux")
#: Runs that look for the number of a packet, at most.
SEARCHES = 8
#: Bytes in a segment, beside timestamps.
SEGMENT = 1448
SCENARIO = """
title    = "{name}"
duration = "20 s"
[nodes]
server = {{}}
client = {{}}
[[links]]
between = ["server", "client"]
rate    = "100 Mbit/s"
delay   = "20 ms"
queue   = "1000 packets"
forward = {{ {forward} }}
[[flows]]
from    = "server"
to      = "client"
start   = "2 s"
traffic = {{ size = "{size} B" }}
stack   = {{ from = "{sender}", to = "linux", congestion = "cubic" }}
tcp     = {{ congestion = "cubic", receive_window = "8 MB", rto = {{ minimum = "200 ms" }} }}
"""


@dataclass(frozen=True)
class Pattern:
    """A transfer of some segments: which transmissions are lost, or what is reordered."""

    segments: int
    #: Segment, counted from 0, and how many of its first copies are lost. The segment after the
    #: last is the FIN, if that goes alone.
    lost: Mapping[int, int] = field(default_factory=dict)
    #: How late a packet is that others overtake; one in thirty is.
    late: str = ""


PATTERNS: Mapping[str, Pattern] = {
    "one segment": Pattern(60, {15: 1}),
    "three of a flight": Pattern(60, {15: 1, 20: 1, 25: 1}),
    "half a flight": Pattern(60, dict.fromkeys(range(20, 30), 1)),
    "a retransmission": Pattern(60, {15: 2}),
    "two retransmissions": Pattern(60, {15: 3}),
    "last segment": Pattern(60, {59: 1, 60: 1}),
    "last five": Pattern(60, dict.fromkeys(range(55, 61), 1)),
    "last segment and its probe": Pattern(60, {59: 2, 60: 1}),
    # The FIN finds no room in the first window: Linux probes with it.
    "a whole flight": Pattern(10, dict.fromkeys(range(10), 1)),
    "none, reordered by 2 ms": Pattern(200, late="2 ms"),
    "none, reordered by 15 ms": Pattern(200, late="15 ms"),
    "none, reordered by 60 ms": Pattern(200, late="60 ms"),
}


@dataclass(frozen=True)
class Packet:
    """A packet of the connection in a capture."""

    time: float
    from_sender: bool
    #: From the sender's SYN on.
    seq: int
    len: int
    flags: int
    stamp: str

    @property
    def segment(self) -> int:
        """The segment that it begins with."""
        return (self.seq - 1) // SEGMENT

    @property
    def occupies(self) -> bool:
        """Whether it has data or a FIN."""
        return self.len > 0 or bool(self.flags & spoofing.FIN)

    def is_copy_in(self, other: Packet) -> bool:
        """Whether the other end has captured this packet as `other`."""
        return (self.seq, self.len, self.flags, self.stamp) == (
            other.seq,
            other.len,
            other.flags,
            other.stamp,
        )


def read(file: Path) -> list[Packet]:
    """The packets of a capture; the end that sent the first SYN is the sender."""
    fields = ["frame.time_epoch", "tcp.srcport", "tcp.seq_raw", "tcp.len", "tcp.flags"]
    fields.append("tcp.options.timestamp.tsval")
    words = ["tshark", "-n", "-r", str(file), "-Y", "tcp", "-T", "fields"]
    words += [word for name in fields for word in ("-e", name)]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in printed.splitlines()]
    syn = next(row for row in rows if int(row[4], 0) & 0x3F == spoofing.SYN)
    return [
        Packet(
            float(at),
            port == syn[1],
            (int(seq) - int(syn[2])) & 0xFFFF_FFFF if port == syn[1] else 0,
            int(size),
            int(flags, 0) & 0x3F,
            stamp,
        )
        for at, port, seq, size, flags, stamp in rows
    ]


def arrived(sent: Sequence[Packet], received: Sequence[Packet]) -> list[bool]:
    """Which packets of a link that keeps their order have arrived."""
    rest = iter(received)
    other = next(rest, None)
    result = []
    for packet in sent:
        found = other is not None and packet.is_copy_in(other)
        result.append(found)
        if found:
            other = next(rest, None)
    return result


@dataclass
class Run:
    """What the sender did in a run."""

    #: All packets at the sender's end, and those of its own.
    packets: list[Packet]
    sent: list[Packet]
    arrived: list[bool]
    row: record.Row

    def lost(self) -> list[int]:
        """The numbers of the packets that the link lost."""
        return [number for number, found in enumerate(self.arrived) if not found]

    def copies(self) -> Iterator[tuple[int, int, int]]:
        """The number of each packet with data or a FIN, its first segment, and which copy it is."""
        counts: dict[int, int] = {}
        for number, packet in enumerate(self.sent):
            if packet.occupies:
                counts[packet.segment] = counts.get(packet.segment, 0) + 1
                yield number, packet.segment, counts[packet.segment]

    def round_trip(self) -> float:
        """That of the handshake, seconds."""
        answer = next(packet for packet in self.packets if not packet.from_sender)
        return answer.time - self.sent[0].time


def carried(folder: Path, name: str, pattern: Pattern, sender: str, lost: Sequence[int]) -> Run:
    """Runs a transfer whose packets of these numbers are lost, and reads its captures."""
    trace = folder / "lost.trace"
    trace.write_text("".join(f"{number} loss\n" for number in lost) or "# none\n")
    forward = f'errors = {{ trace = "{trace.name}" }}'
    if pattern.late:
        forward = f'reordering = {{ probability = {1 / 30:.4f}, delay = "{pattern.late}" }}'
    file = folder / "rack.toml"
    size = pattern.segments * SEGMENT
    file.write_text(SCENARIO.format(name=name, forward=forward, size=size, sender=sender))
    for _ in range(SEARCHES):
        run = captured(folder, file)
        if not run.row["void"]:
            return run
    raise SystemExit(f"rack: {name}: the machine is too busy for a run that is not void")


def captured(folder: Path, file: Path) -> Run:
    """One run of a scenario, with captures at both ends."""
    command = [sys.executable, "-m", "lasthop", "run", str(file), "--testbed", "--json"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    captures = [folder / "server.pcapng", folder / "client.pcapng"]
    with contextlib.ExitStack() as running:
        for node, capture in zip(("server", "client"), captures, strict=True):
            namespace = found_namespace(process, node)
            running.enter_context(spoofing.capture(namespace, "link0", capture))
        out, errors = process.communicate()
    if not out:
        raise SystemExit(f"rack: {errors}")
    printed = json.loads(out)
    flow = printed["flows"][0]
    row = {"timeouts": flow["timeouts"] or 0, "void": printed["testbed"]["void"]}
    packets, received = (read(capture) for capture in captures)
    sent = [packet for packet in packets if packet.from_sender]
    received = [packet for packet in received if packet.from_sender]
    keeps_order = "reordering" not in file.read_text()
    there = arrived(sent, received) if keeps_order else [True] * len(sent)
    return Run(packets, sent, there, row)


def found_namespace(process: subprocess.Popen[str], node: str) -> str:
    """The namespace of a node of a run, once its link is there."""
    while process.poll() is None:
        for name in Path("/run/netns").glob(f"lasthop-{process.pid}-*"):
            words = ["ip", "-n", name.name, "link", "show", "link0"]
            is_there = name.name.endswith(f"-{node}")
            if is_there and subprocess.run(words, capture_output=True).returncode == 0:
                return name.name
        time.sleep(0.02)
    raise SystemExit(f"rack: {process.communicate()[1]}")


def aimed(folder: Path, name: str, pattern: Pattern, sender: str) -> tuple[list[int], Run]:
    """The numbers of packets whose loss is the pattern's, and the run that shows it."""
    numbers: list[int] = []
    others = 0
    for search in range(3 * SEARCHES):
        if search % SEARCHES == 0:
            numbers = []
        run = carried(folder, name, pattern, sender, numbers)
        lost, wanted = run.lost(), wanted_of(pattern, run)
        if lost == wanted:
            return numbers, run
        if numbers and lost:
            # Packets that are no part of the connection count, too.
            others = numbers[0] - lost[0]
        numbers = [number + others for number in wanted]
    raise SystemExit(f"rack: {name}, {sender}: the packets of the pattern were not found")


def wanted_of(pattern: Pattern, run: Run) -> list[int]:
    """The numbers of the packets that the pattern loses."""
    copies = run.copies()
    return [n for n, segment, copy in copies if copy <= pattern.lost.get(segment, 0)]


# --- what a run shows ---


def found(run: Run) -> record.Row:
    """The retransmissions of a run: of which segments, how many round trips after the segment was
    sent first, how many of them were spurious, and how many were sent after a silence."""
    trip = run.round_trip()
    first: dict[int, float] = {}
    has_arrived: dict[int, bool] = {}
    again, spurious, silent, highest, heard = [], 0, 0, 0, 0.0
    numbers = iter(range(len(run.sent)))
    for packet in run.packets:
        before, heard = heard, packet.time
        if not packet.from_sender:
            continue
        number = next(numbers)
        if not packet.occupies:
            continue
        end = packet.seq + packet.len
        start = packet.segment
        is_new = start not in first
        # Half a round trip without any packet: a probe, or a timeout.
        silent += bool(highest) and packet.time - before > 1.2 * trip
        if is_new:
            first[start] = packet.time
        else:
            again.append([start, round((packet.time - first[start]) / trip, 2)])
            spurious += has_arrived.get(start, False)
        has_arrived[start] = has_arrived.get(start, False) or run.arrived[number]
        highest = max(highest, end)
    begin = min(first.values())
    return {
        "retransmitted": again,
        "spurious": spurious,
        "probes": silent - run.row["timeouts"],
        "timeouts": run.row["timeouts"],
        "round_trips": round((run.packets[-1].time - begin) / trip, 2),
    }


def measure(name: str) -> Iterator[record.Row]:
    """A row for each run of each stack."""
    pattern = PATTERNS[name]
    for sender in STACKS:
        with tempfile.TemporaryDirectory() as folder:
            numbers: list[int] = []
            if pattern.lost:
                numbers, _ = aimed(Path(folder), name, pattern, sender)
            done = 0
            while done < RUNS:
                run = carried(Path(folder), name, pattern, sender, numbers)
                if pattern.lost and run.lost() != wanted_of(pattern, run):
                    numbers, run = aimed(Path(folder), name, pattern, sender)
                done += 1
                row = {"pattern": name, "stack": sender, "run": done} | found(run)
                record.say(json.dumps(row))
                yield row


# --- the book's table ---


def table(result: record.Row) -> str:
    """Loss recovery by our sender and by the kernel's, under the same losses."""
    lines = [
        "| lost | sender | retransmitted | after, round trips | spurious | probes | timeouts "
        "| transfer, round trips |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    names = {"lasthop": "lasthop", "linux": "Linux"}
    for pattern in dict.fromkeys(row["pattern"] for row in result["rows"]):
        for stack, name in names.items():
            rows = [r for r in result["rows"] if (r["pattern"], r["stack"]) == (pattern, stack)]
            counts = " | ".join(span([row[key] for row in rows]) for key in COUNTS)
            trips = statistics.median(row["round_trips"] for row in rows)
            lost = pattern if stack == "lasthop" else ""
            again = " | ".join(retransmitted(rows))
            lines.append(f"| {lost} | {name} | {again} | {counts} | {trips:.1f} |")
    runs = max(row["run"] for row in result["rows"])
    about = (
        f"*{runs} runs each; medians, and least to greatest where runs differ. Segments are counted"
        f" from 0. Linux {result['kernel']}.*"
    )
    return tabular.captioned(lines, result, about)


COUNTS = ("spurious", "probes", "timeouts")


def span(values: Sequence[int]) -> str:
    """A count, or the least and the greatest."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def retransmitted(rows: Sequence[record.Row]) -> tuple[str, str]:
    """Which segments were sent again, in this order, and when: of few each, of many the range."""
    runs = [[segment for segment, _ in row["retransmitted"]] for row in rows]
    times = [trips for row in rows for _, trips in row["retransmitted"]]
    if not times:
        return "none", ""
    if any(run != runs[0] for run in runs) or len(runs[0]) > 5:
        middle = f"{span([len(run) for run in runs])} segments"
        one_by_one = range(min(runs[0]), max(runs[0]) + 1)
        if all(run == list(one_by_one) for run in runs):
            middle = f"{one_by_one[0]} to {one_by_one[-1]}"
        return middle, f"{min(times):.1f} to {max(times):.1f}"
    each = zip(*(row["retransmitted"] for row in rows), strict=True)
    medians = [statistics.median(trips for _, trips in of_one) for of_one in each]
    return ", ".join(map(str, runs[0])), ", ".join(f"{trips:.1f}" for trips in medians)


def main() -> None:
    """Measures what the command line names, or everything."""
    parser = argparse.ArgumentParser(description="Compares two senders' loss recovery.")
    parser.add_argument("pattern", nargs="*", choices=[[], *PATTERNS], default=[])
    names = parser.parse_args().pattern or list(PATTERNS)
    for name in names:
        keep(name, list(measure(name)))


def keep(name: str, measured: Sequence[record.Row]) -> None:
    """Keeps the rows of a pattern in place of those that there were."""
    kept = json.loads(RACK.read_text())["rows"] if RACK.exists() else []
    rows = [row for row in kept if row["pattern"] != name] + list(measured)
    order = list(PATTERNS)
    rows.sort(key=lambda row: (order.index(row["pattern"]), row["stack"], row["run"]))
    head = {"experiment": "rack", **record.circumstances(), "kernel": os.uname().release}
    record.keep(RACK, {**head, "rows": rows})


if __name__ == "__main__":
    main()
