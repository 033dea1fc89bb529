"""What split connections cost, as users run them: CPU time and memory of `lasthop.run`.

python bench/relay.py            all of it, three times in turn
python bench/relay.py --rounds 1

A router stands between two links: without a box, with a spoofer that leaves (nearly) all
connections alone, and with one that splits them. The cost of a segment is that of the whole run:
both ends, two links, and what the router does with the segment and with its acknowledgment.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import record
import speed
import tabular

import lasthop
from lasthop import Scenario, flow, link

#: What the router has. Of those with a limit of one, one connection is split.
ROUTERS: Mapping[str, Mapping[str, Any] | None] = {
    "no box": None,
    "spoofer, not split": {"box": "spoofer", "cache": "200 kB", "connections": 1},
    "spoofer": {"box": "spoofer", "cache": "200 kB"},
}
FLOWS = {"one": 1, "fifty": 50, "10,000": 10_000}
#: Simulated seconds: about a second of CPU time.
DURATIONS = {"one": 400, "fifty": 200, "10,000": 4}
CROWD = 10_000


def path(
    router: Mapping[str, Any] | None,
    flows: int,
    duration: int,
    traffic: Any,
    satellite: str | None = None,
) -> Scenario:
    """Flows over a router between two links. The second has the rate `satellite`."""
    tcp = {**speed.PEERS_TCP, **speed.STAMPED, "receive_window": "64 segments"}
    box = [] if router is None else [{**router, "tcp": dict(tcp)}]
    rate = f"{max(100, 2 * flows)} Mbit/s"
    queue = f"{max(1000, 10 * flows)} packets"
    return Scenario(
        f"{flows} flows over a router",
        duration=f"{duration} s",
        nodes={"server": {}, "router": {"boxes": box} if box else {}, "user": {}},
        links=[
            link("server", "router", rate=rate, delay="10 ms", queue=queue),
            link(
                "router",
                "user",
                rate=satellite or rate,
                delay="10 ms",
                # Packets in a queue take memory, too.
                queue="1000 packets" if satellite else queue,
            ),
        ],
        flows=[
            flow(
                "server",
                "user",
                start=f"{500_000 * number // flows} us",
                tcp=tcp,
                traffic=traffic,
            )
            for number in range(flows)
        ],
    )


def cost(case: str, router: str) -> record.Row:
    """The CPU time of a delivered segment."""
    scenario = path(ROUTERS[router], FLOWS[case], DURATIONS[case], "bulk")
    start = time.process_time()
    result = lasthop.run(scenario)
    cpu = time.process_time() - start
    segments = int(result.rows["payload_bytes"].sum()) / speed.PAYLOAD
    return {"ns_per_segment": 1e9 * cpu / segments, "split": split(result)}


def split(result: lasthop.Result) -> int:
    """How many connections were split."""
    counts = result.box_counts.iter_rows(named=True)
    return sum(row["count"] for row in counts if row["what"] == "split connections")


#: What 10,000 connections do while memory is measured, and the rate of the second link: they are
#: idle after a kilobyte, or a cache fills because the second link is slow.
CROWDS: Mapping[str, tuple[Any, str | None]] = {
    "idle": ({"application": "messages", "size": "1000 B", "interval": "1000 s"}, None),
    "100 kB buffered": ({"size": "100 kB"}, "100 Mbit/s"),
}


def memory(crowd: str, router: str) -> record.Row:
    """The memory that a run took, in a process that has done nothing before."""
    traffic, satellite = CROWDS[crowd]
    lasthop.run(path(ROUTERS[router], 1, 1, "bulk"))
    before = largest_kib()
    result = lasthop.run(path(ROUTERS[router], CROWD, 4, traffic, satellite))
    taken = largest_kib() - before
    return {
        "kib_per_connection": taken / CROWD,
        "delivered": int(result.rows["payload_bytes"].sum()),
        "split": split(result),
    }


def largest_kib() -> int:
    """The most memory that this process has had; `getrusage` would count that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def alone(function: Any, *arguments: Any) -> record.Row:
    """The result of a call in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        row: record.Row = pool.apply(function, arguments)
    return row


def measured(rounds: int) -> Iterator[record.Row]:
    """Every case `rounds` times in turn, so that a busy spell of the machine hits all."""
    for number in range(1, rounds + 1):
        record.say(f"round {number} of {rounds}")
        for case in FLOWS:
            for router in ROUTERS:
                # The limit of one is none for one.
                if (FLOWS[case], router) != (1, "spoofer, not split"):
                    yield {"case": case, "router": router, **cost(case, router)}
        for crowd in CROWDS:
            for router in ROUTERS:
                yield {"case": crowd, "router": router, **alone(memory, crowd, router)}


def summarised(rows: Sequence[record.Row]) -> Iterator[record.Row]:
    """One row for each case and router: the median, and the least and largest."""
    groups: dict[tuple[str, str], list[record.Row]] = {}
    for row in rows:
        groups.setdefault((row["case"], row["router"]), []).append(row)
    for (case, router), group in groups.items():
        summary: record.Row = {"case": case, "router": router, "split": group[0]["split"]}
        if "delivered" in group[0]:
            summary["delivered_bytes"] = group[0]["delivered"]
        for name in ("ns_per_segment", "kib_per_connection"):
            values = [row[name] for row in group if name in row]
            if values:
                summary[name] = round(statistics.median(values), 1)
                summary["range"] = [round(min(values), 1), round(max(values), 1)]
        yield summary


# --- the book's table ---


def table(result: record.Row) -> str:
    """The CPU time and the memory of split connections: one line for each case."""
    names = {"one": "1 transfer", "fifty": "50 transfers", "10,000": "10,000 transfers"}
    names |= {"idle": "10,000 idle", "100 kB buffered": "10,000 that fill their buffers"}
    routers = ("no box", "spoofer, not split", "spoofer")
    parts = []
    for key, title in (
        ("ns_per_segment", "CPU time of a delivered segment, ns"),
        ("kib_per_connection", "Memory of the whole simulation for each connection, KiB"),
    ):
        rows = [row for row in result["rows"] if key in row]
        lines = []
        for case in dict.fromkeys(row["case"] for row in rows):
            found = {row["router"]: row for row in rows if row["case"] == case}
            cells = [found.get(router) for router in routers]
            shown = [f"{row[key]:,.0f} ({tabular.spread_of(row)})" if row else "" for row in cells]
            lines.append([names[case], *shown])
        parts.append(f"{title}:\n\n{tabular.table(['connections', *routers], lines)}")
    about = f"*The median of {result['rounds']} runs, and least to largest.*"
    return tabular.captioned(["\n\n".join(parts)], result, about)


def main() -> int:
    """Measures, and keeps the result."""
    parser = argparse.ArgumentParser(description="The cost of split connections.")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = list(summarised(list(measured(options.rounds))))
    head = {"experiment": "relay", **record.circumstances(), "rounds": options.rounds}
    record.keep(record.RESULTS / "relay.json", {**head, "rows": rows})
    for row in rows:
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
