"""BBR in the lab, on real packets and in Linux, beside what its authors have published.

python bench/bbr.py [PART ...] [--at-once 3]     20 minutes; needs root

Parts: `losses` is figure 10 of "BBR: Congestion-Based Congestion Control" (ACM Queue 14(5), 2016),
`queue` figure 7, `rate` figure 5, `flows` figure 8; `shares` is BBR beside CUBIC. That BBR is
version 1, as Linux's is; ours is version 3 (draft-ietf-ccwg-bbr).
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import multiprocessing
import operator
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import record
import tabular

import lasthop
from lasthop import lab

FILE = record.RESULTS / "bbr.json"
SEEDS = 10
#: The settings of a sender, by its name.
SENDERS = {
    "BBR": 'congestion = "bbr"',
    "BBR, 20 %": 'congestion = "bbr", loss_threshold = 0.2',
    "CUBIC": 'congestion = "cubic"',
}
#: In the lab; our stack on real packets; and the kernel's, whose BBR is version 1.
LAB, TESTBED, LINUX = "lab", "testbed", "linux"
#: A packet that leaves a link so much later makes a run void; how often such a run is repeated.
LATE, TRIES = "5 ms", 3


@dataclass(frozen=True)
class Path:
    """Flows of these senders over one link."""

    mbps: float
    rtt_ms: float
    #: Packets.
    queue: int
    senders: Sequence[str]
    seconds: float = 60.0
    loss: float = 0.0
    #: Between the starts of flows.
    apart_ms: float = 137.0
    #: Further keys of the link.
    more: str = ""

    def scenario(self, world: str) -> lasthop.Scenario:
        """It, for one of the worlds."""
        text = f"""
title    = "bbr"
duration = "{self.seconds:g} s"
nodes    = {{ a = {{}}, b = {{}} }}
[[links]]
between = ["a", "b"]
rate    = "{self.mbps:g} Mbit/s"
delay   = "{self.rtt_ms / 2:g} ms"
queue   = "{self.queue} packets"
forward = {{ jitter = "0.1 ms", errors = {{ packet = {self.loss} }} }}
{self.more}
"""
        for number, sender in enumerate(self.senders):
            kernel = "bbr" if sender.startswith("BBR") else "cubic"
            stack = f'from = "linux", to = "linux", congestion = "{kernel}"'
            text += f"""
[[flows]]
from  = "a"
to    = "b"
start = "{self.apart_ms * number:g} ms"
tcp   = {{ receive_window = "16 MB", {SENDERS[sender]} }}
{f"stack = {{ {stack} }}" if world == LINUX else ""}
"""
        return lasthop.Scenario.from_toml(text)

    def goodputs(self, world: str) -> list[list[float]]:
        """Mb/s of payload of every flow, for each seed in the lab, and of one run elsewhere."""
        if world == LAB:
            rows = lasthop.sweep(self.scenario(world), seeds=SEEDS).rows
            runs = rows.partition_by("seed", maintain_order=True)
            return [[round(bps / 1e6, 3) for bps in run["payload_bps"]] for run in runs]
        why: str | None = None
        for _ in range(TRIES):
            result = lab.run(self.scenario(world).set({"testbed.late": LATE}), testbed=True)
            assert result.health is not None
            if not result.health.void:
                return [[round(bps / 1e6, 3) for bps in result.rows["payload_bps"]]]
            why = result.health.void
        raise RuntimeError(f"the machine is too busy: {why}")


# --- the parts: each row's case, and how it is measured ---

Case = Mapping[str, Any]


def _losses(loss: float, sender: str, world: str) -> record.Row:
    path = Path(100, 100, 833, [sender], loss=loss)
    return {"goodput_mbps": [run[0] for run in path.goodputs(world)]}


def _shares(queue: float, sender: str, world: str) -> record.Row:
    path = Path(10, 40, round(35 * queue), [sender, "CUBIC"], seconds=120)
    runs = path.goodputs(world)
    return {"goodput_mbps": [run[0] for run in runs], "beside_mbps": [run[1] for run in runs]}


def _flows(sender: str, world: str) -> record.Row:
    path = Path(100, 10, 83, [sender] * 5, seconds=90, apart_ms=2000)
    runs = path.goodputs(world)
    # All are there for so much of the time.
    shares = [1 - path.apart_ms * number / 1e3 / path.seconds for number in range(5)]
    return {
        "goodput_mbps": [round(sum(map(operator.mul, run, shares)), 2) for run in runs],
        "jain": [round(sum(run) ** 2 / (5 * sum(of**2 for of in run)), 4) for run in runs],
    }


def _short(queue: float, sender: str, world: str) -> record.Row:
    """Four flows; what they lose."""
    path = Path(10, 40, round(35 * queue), [sender] * 4)
    rows = lasthop.sweep(path.scenario(world), seeds=SEEDS).rows
    runs = rows.partition_by("seed", maintain_order=True)
    return {"lost": [round(run["dropped"][0] / run["segments"].sum(), 5) for run in runs]}


def _queue(sender: str, world: str) -> record.Row:
    """How full a queue of four paths is in the first eight seconds, from the second on."""
    path = Path(10, 40, 140, [sender], seconds=8)
    runs = [_filled(path, world, seed, 1.0, 8.0) for seed in range(1, SEEDS + 1)]
    return {"filled": [[round(of, 3) for of in run] for run in runs]}


def _filled(path: Path, world: str, seed: int, start: float, end: float) -> list[float]:
    """What share of the queue is filled at its emptiest 5 %, half, and fullest 5 % of the time."""
    queue = lab.run(path.scenario(world), seed=seed, trace=True).queue("a->b")
    steps = queue.with_columns(next=pl.col("t_s").shift(-1, fill_value=end))
    steps = steps.filter((pl.col("t_s") >= start) & (pl.col("t_s") < end)).sort("packets")
    lasts = (steps["next"] - steps["t_s"]).cum_sum()
    places = [lasts.search_sorted(share * lasts[-1]) for share in (0.05, 0.5, 0.95)]
    return [steps["packets"][place] / path.queue for place in places]


def _rate(sender: str, world: str) -> record.Row:
    """The rate doubles after 10 s, and halves after 20 s: how long until the flow has had nine
    tenths of the new one for half a second, and until the queue is filled to a tenth again."""
    changes = '[{ start = "10 s", rate = "20 Mbit/s" }, { start = "20 s", rate = "10 Mbit/s" }]'
    path = Path(10, 40, 140, [sender], seconds=30, more=f"changes = {{ at = {changes} }}")
    reaches, drains = [], []
    for seed in range(1, SEEDS + 1):
        result = lab.run(path.scenario(world), seed=seed, trace=True)
        (received,) = result.deliveries.values()
        points = list(zip(received["t_s"], received["payload_bytes"], strict=True))
        reaches.append(round(_reaches(points, 10.0, 0.9 * 20e6 * 1448 / 1514), 2))
        queue = result.queue("a->b")
        short = queue.filter((pl.col("t_s") > 20.5) & (pl.col("packets") <= 0.1 * path.queue))
        drains.append(round(short["t_s"][0] - 20, 2) if len(short) else None)
    return {"reaches_s": reaches, "drains_s": drains}


def _reaches(points: Sequence[tuple[float, float]], start: float, bps: float) -> float:
    """Seconds after `start` until the flow has had this rate for half a second."""
    first = 0
    for at, total in points:
        while points[first + 1][0] < at - 0.5:
            first += 1
        since, before = points[first]
        if since >= start and at - since >= 0.5 and 8 * (total - before) >= bps * (at - since):
            return at - start
    return math.inf


LOSSES = (0.0, 0.0001, 0.001, 0.01, 0.05, 0.15)
QUEUES = (1, 4, 16)
#: How a part is measured, its cases, and the worlds that it has.
PARTS: Mapping[str, tuple[Any, Sequence[Case], Sequence[str]]] = {
    "losses": (
        _losses,
        [{"loss": loss, "sender": sender} for loss in LOSSES for sender in SENDERS],
        (LAB, TESTBED, LINUX),
    ),
    "shares": (
        _shares,
        [{"queue": q, "sender": of} for q in QUEUES for of in ("BBR", "BBR, 20 %")],
        (LAB, TESTBED, LINUX),
    ),
    "short": (
        _short,
        [{"queue": q, "sender": of} for q in (0.5, 1, 4) for of in ("BBR", "BBR, 20 %")],
        (LAB,),
    ),
    "flows": (_flows, [{"sender": sender} for sender in SENDERS], (LAB, TESTBED, LINUX)),
    "queue": (_queue, [{"sender": sender} for sender in SENDERS], (LAB,)),
    "rate": (_rate, [{"sender": sender} for sender in SENDERS], (LAB,)),
}


def jobs(part: str) -> Iterator[record.Row]:
    """The cases of a part in every world."""
    _, cases, worlds = PARTS[part]
    for world in worlds:
        for case in cases:
            # Linux has no such threshold.
            if not (world == LINUX and case["sender"] == "BBR, 20 %"):
                yield {"part": part, "world": world, **case}


def measured(job: record.Row) -> record.Row:
    """A row with its results."""
    case = {key: value for key, value in job.items() if key != "part"}
    row = {**job, **PARTS[job["part"]][0](**case)}
    record.say(json.dumps(row))
    return row


def keep(parts: Sequence[str], measured: Sequence[record.Row]) -> None:
    """Keeps the rows of these parts in place of those that there were."""
    kept = json.loads(FILE.read_text())["rows"] if FILE.exists() else []
    rows = [row for row in kept if row["part"] not in parts] + list(measured)
    rows.sort(key=lambda row: list(PARTS).index(row["part"]))
    head = {"experiment": "bbr", **record.circumstances(), "kernel": os.uname().release}
    record.keep(FILE, {**head, "rows": rows})


# --- tables of the book ---

_WORLDS = {LAB: "lab", TESTBED: "real packets", LINUX: "Linux"}


def _of(result: record.Row, part: str, **case: Any) -> record.Row | None:
    rows = [row for row in result["rows"] if row["part"] == part]
    found = [row for row in rows if all(row.get(key) == of for key, of in case.items())]
    return found[0] if found else None


def _mean(row: record.Row | None, key: str, digits: int = 1, factor: float = 1.0) -> str:
    return f"{factor * statistics.mean(row[key]):.{digits}f}" if row else ""


def _range(row: record.Row | None) -> str:
    """The median of a share, and 5 % to 95 % of the time."""
    if not row:
        return ""
    low, middle, high = (100 * statistics.mean(of) for of in zip(*row["filled"], strict=True))
    return f"{middle:.0f} % ({low:.0f} to {high:.0f} %)"


def _about(result: record.Row) -> str:
    return (
        f"*The lab: means of {SEEDS} seeds; real packets and Linux {result['kernel']}: one run. "
        f"lasthop {result['lasthop']}, {result['date']}.*"
    )


def _columns(part: str) -> list[tuple[str, str]]:
    """The worlds and senders of a part."""
    return list(dict.fromkeys((job["world"], job["sender"]) for job in jobs(part)))


def _heads(part: str) -> list[str]:
    names = [(_WORLDS[world], sender) for world, sender in _columns(part)]
    return [f"{sender}, {world}" for world, sender in names]


def losses(result: record.Row) -> str:
    """Goodput by losses."""
    lines = []
    for loss in LOSSES:
        cells = [
            _mean(_of(result, "losses", loss=loss, world=world, sender=sender), "goodput_mbps")
            for world, sender in _columns("losses")
        ]
        lines.append([f"{100 * loss:g} %", *cells])
    return "\n\n".join([tabular.table(["lost", *_heads("losses")], lines), _about(result)])


def shares(result: record.Row) -> str:
    """The share of a flow beside one of CUBIC, per cent of what both have."""
    lines = []
    for queue in QUEUES:
        cells = []
        for world, sender in _columns("shares"):
            row = _of(result, "shares", queue=queue, world=world, sender=sender)
            pairs = zip(row["goodput_mbps"], row["beside_mbps"], strict=True) if row else ()
            own = [100 * of / (of + other) for of, other in pairs]
            cells.append(f"{statistics.mean(own):.0f} %" if own else "")
        lines.append([f"{queue}", *cells])
    return "\n\n".join([tabular.table(["queue", *_heads("shares")], lines), _about(result)])


def others(result: record.Row) -> str:
    """What the other figures show, in numbers; and what four flows lose."""
    of = functools.partial(_of, result, world=LAB)
    lines = []
    for sender in SENDERS:
        queue, rate = of("queue", sender=sender), of("rate", sender=sender)
        drains = set(rate["drains_s"] if rate else ())
        some = "never" if drains <= {None} else "not always"
        drained = some if None in drains else f"{_mean(rate, 'drains_s')} s"
        lines.append([sender, _range(queue), f"{_mean(rate, 'reaches_s')} s", drained])
    heads = ["", "of the queue filled", "nine tenths of the doubled rate after"]
    first = tabular.table([*heads, "a tenth of the queue after it was halved"], lines)
    lines = []
    for world, sender in _columns("flows"):
        row = _of(result, "flows", world=world, sender=sender)
        name = f"{sender}, {_WORLDS[world]}"
        lines.append([name, _mean(row, "jain", 3), _mean(row, "goodput_mbps")])
    second = tabular.table(["five flows", "Jain's index", "together, Mb/s"], lines)
    lines = []
    for length in (0.5, 1, 4):
        found = [of("short", queue=length, sender=sender) for sender in ("BBR", "BBR, 20 %")]
        lines.append([f"{length:g}", *(f"{_mean(row, 'lost', 1, 100)} %" for row in found)])
    third = tabular.table(["queue", "four of BBR lose", "four of BBR, 20 %"], lines)
    return "\n\n".join([first, second, third, _about(result)])


def main() -> None:
    """Measures what the command line names, or everything."""
    parser = argparse.ArgumentParser(description="BBR beside Linux's and its authors' figures.")
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--at-once", type=int, default=3, help="runs on real packets at a time")
    args = parser.parse_args()
    parts = args.part or list(PARTS)
    every = [job for part in parts for job in jobs(part)]
    rows = [measured(job) for job in every if job["world"] == LAB]
    # One after the other for each process: a run is as long as its flows.
    with multiprocessing.get_context("spawn").Pool(args.at_once) as pool:
        real = [job for job in every if job["world"] != LAB]
        rows += pool.map(measured, real, chunksize=1)
    keep(parts, rows)


if __name__ == "__main__":
    main()
