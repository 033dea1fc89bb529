"""lasthop beside ns-2: measures our side, and says of each cell whether it agrees.

`python bench/compare.py agreement` keeps what is found in bench/results/agreement.json; ns-2's side
is what bench/peers.py has kept.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import peers
import ratios

from lasthop.stats import CONFIDENCE, holm

RESULTS = Path(__file__).resolve().parent / "results"

Row = dict[str, Any]

#: What is no difference, fixed beforehand: of goodputs and times a share; of a group of cells, over
#: which chance averages out, a smaller one; of counts a share of the peer's, and half a one a run.
BOUND = 0.03
SHIFT_BOUND = 0.01
COUNT_BOUND = 0.10
COUNT_SLACK = 0.5
#: An outage's end is met by the same retransmission, or by another one.
RESUME_BOUND_S = 0.010

#: The first runs of each cell are kept as they are, so that a test can make them again.
FIRST = 2

#: Counts of a bulk flow, and of ours the columns.
COUNTS = {"timeouts": "timeouts", "retransmitted": "retransmissions"}

SCENARIO = """
title = "One flow over links in a row, as ns-2's side of the comparison has it"
duration = "120 s"
profile = "{profile}"
[nodes]
{nodes}
{links}
[[flows]]
from = "n0"
to = "n{hops}"
"""
LINK = """
[[links]]
between = ["n{number}", "n{next}"]
rate = "{rate:.0f} bit/s"
delay = "{delay:g} ms"
queue = "{queue} packets"
"""

#: As ns-2 did beyond the profile of 2001.
TCP_2001: Row = {"mss": 536, "ssthresh_on_backoff": "halve"}
#: As ns-2's Linux code does beyond the profile of 2007, whose clock is of 1 ms.
TCP_LINUX: Row = {
    "mss": 548,  # of which timestamps take 12
    "timestamps": True,
    "rto": {"granularity": "1 ms"},
}


def scenario(profile: str, cell: peers.Cell) -> str:
    """The path of a cell, and a flow without settings."""
    return SCENARIO.format(
        profile=profile,
        hops=cell.hops,
        nodes="\n".join(f"n{number} = {{}}" for number in range(cell.hops + 1)),
        links="".join(
            LINK.format(
                number=number,
                next=number + 1,
                rate=cell.rate_bps,
                delay=cell.one_way_delay_s * 1e3,
                queue=50,
            )
            for number in range(cell.hops)
        ),
    )


def run(profile: str, cell: peers.Cell, seeds: int, tcp: Row, **flow: object) -> Mapping[str, Any]:
    """Columns of so many runs of a cell."""
    from lasthop import _lasthop

    errors = {"bit": cell.bit_error_rate}
    overrides: list[tuple[str, object]] = [
        ("flows.0.tcp", {"receive_window": f"{cell.window} segments", **tcp}),
        *((f"flows.0.{key}", value) for key, value in flow.items()),
        *(
            (f"links.{hop}{'' if cell.errors == 'both' else '.forward'}.errors", errors)
            for hop in range(cell.hops)
            if cell.bit_error_rate
        ),
    ]
    text = scenario(profile, cell)
    return _lasthop.sweep(text, "agreement", overrides=overrides, seeds=seeds)


# --- bulk flows ---


def kept(experiment: str) -> Row:
    """What ns-2 gave."""
    return dict(json.loads((RESULTS / f"ns2-{experiment}.json").read_text()))


def families_of(rows: Sequence[Row], cell: peers.Cell, families: Sequence[str]) -> list[Row]:
    """The rows of a cell."""
    of_cell = asdict(cell)
    return [
        row
        for family in families
        for row in rows
        if row["family"] == family and of_cell.items() <= row.items()
    ]


def bulk(seeds: int | None = None) -> list[Row]:
    """Reno, NewReno and SACK over one and three hops, with as many runs as ns-2 has."""
    rows = kept("bulk")["rows"]
    found = []
    for cell in peers.bulk_cells():
        for recovery, families in peers.FAMILIES.items():
            theirs = families_of(rows, cell, families)
            runs = seeds_of(theirs, seeds)
            tcp = TCP_2001 | {"recovery": recovery}
            columns = run("ns2-2001", cell, runs, tcp)
            found.append({"recovery": recovery, **beside(cell, columns, theirs)})
    return found


#: Congestion control and clock of ours, and what it is beside. AIMD says how much of a difference
#: has nothing to do with Westwood+.
WESTWOOD_ARMS = (
    ("westwood+", "exact", "Linux/westwood"),
    ("westwood+", "ticks", "Linux/westwood"),
    ("aimd", "ticks", "Linux/reno"),
)


def westwood(seeds: int | None = None) -> list[Row]:
    """Westwood+ beside ns-2's Linux code: with an exact clock, and with one of its 1 ms."""
    rows = kept("westwood")["rows"]
    found = []
    for cell in peers.westwood_cells():
        for congestion, clock, family in WESTWOOD_ARMS:
            theirs = families_of(rows, cell, [family])
            runs = seeds_of(theirs, seeds)
            tcp = TCP_LINUX | {"congestion": congestion}
            tcp["rto"] = tcp["rto"] | {"estimator": clock}
            columns = run("ns2-2007", cell, runs, tcp)
            row = beside(cell, columns, theirs, header=52)
            found.append({"congestion": congestion, "clock": clock, **row})
    return found


def seeds_of(theirs: Sequence[Row], seeds: int | None) -> int:
    """As many runs as the peers have, or fewer if that is wanted."""
    most = max(int(row["runs"]) for row in theirs)
    return most if seeds is None else min(most, seeds)


def beside(
    cell: peers.Cell, columns: Mapping[str, Any], theirs: Sequence[Row], header: int = 40
) -> Row:
    """Our row of a cell, with the peers' in it. Goodput is of whole packets, of 536 bytes each."""
    goodputs = [float(value) * (536 + header) / 536 for value in columns["payload_bps"]]
    counts = {what: [float(v) for v in columns[ours]] for what, ours in COUNTS.items()}
    same = asdict(cell)
    return {
        **same,
        **peers.summary({"goodput_bps": goodputs, **counts}),
        "first": goodputs[:FIRST],
        "families": [{key: row[key] for key in row if key not in same} for row in theirs],
    }


def judged(rows: Sequence[Row]) -> list[Row]:
    """The rows with their verdicts, and the ratio of the goodputs with its interval."""
    goodputs = [goodput_gaps(row) for row in rows]
    said = {
        "goodput": ratios.verdicts(goodputs),
        "timeouts": ratios.verdicts([count_gaps(row, "timeouts") for row in rows]),
        "retransmitted": ratios.verdicts([count_gaps(row, "retransmitted") for row in rows]),
    }
    judged_rows = []
    for number, row in enumerate(rows):
        pairs = zip(row["families"], goodputs[number], strict=True)
        families = [{**family, "ratio": shown(gap)} for family, gap in pairs]
        verdict = {what: verdicts[number] for what, verdicts in said.items()}
        beyond = shown(ratios.nearest(goodputs[number]))
        judged_rows.append({**row, "families": families, "beyond": beyond, "verdict": verdict})
    return judged_rows


def goodput_gaps(row: Row) -> list[ratios.Gap]:
    """Ours to each family's."""
    return [
        ratios.ratio(sample(row, "goodput_bps"), sample(family, "goodput_bps"), BOUND)
        for family in row["families"]
    ]


def count_gaps(row: Row, what: str) -> list[ratios.Gap]:
    """The same of counts."""
    gaps = []
    for family in row["families"]:
        theirs = sample(family, what)
        bound = max(COUNT_SLACK, COUNT_BOUND * theirs.mean)
        gaps.append(ratios.difference(sample(row, what), theirs, bound))
    return gaps


def sample(row: Row, what: str) -> ratios.Sample:
    """What is kept of the runs."""
    mean, deviation = row[what]
    return ratios.Sample(row["runs"], mean, deviation)


def shown(gap: ratios.Gap) -> list[float]:
    """The ratio and its interval."""
    return [round(math.exp(value), 4) for value in (gap.value, *gap.interval)]


# --- what moves a cell that differs ---


def causes() -> list[Row]:
    """NewReno beside ns-2's with another end of fast recovery, where its own differs."""
    rows = kept("causes")["rows"]
    found = []
    for cell in peers.cause_cells():
        for family, also in peers.CAUSES:
            changed = [row for row in families_of(rows, cell, [family]) if row["also"] == also]
            usual = families_of(kept("bulk")["rows"], cell, [family])
            columns = run("ns2-2001", cell, usual[0]["runs"], TCP_2001 | {"recovery": "newreno"})
            found.append({"also": also, **beside(cell, columns, [*usual, *changed])})
    return found


def rescues() -> list[Row]:
    """SACK's retransmissions beyond what was lost, as the receive window limits it or not."""
    found = []
    for window in (20, 100):
        cell = peers.Cell(1.5e6, 0.1, 1.56e-6, "forward", window=window)
        tcp = TCP_2001 | {"recovery": "sack", "initial_ssthresh": "20 segments"}
        columns = run("ns2-2001", cell, 30, tcp)
        names = ("retransmissions", "corrupted", "reductions")
        counted = {what: [float(value) for value in columns[what]] for what in names}
        found.append({"window": window, **peers.summary(counted)})
    return found


#: What moves Westwood+ where errors are rare: what restarts the timer, and a receive window that
#: leaves room while a hole is repaired, as that of ns-2's agent, which is a bound of cwnd alone.
MOVES: Mapping[str, Row] = {
    "usual": {},
    "advance": {"rto": {"restart": "advance"}},
    "room": {"receive_window": "150 segments", "initial_ssthresh": "100 segments"},
}


def moved() -> list[Row]:
    """Westwood+ with one thing changed, at a window of 100 segments."""
    rows = kept("westwood")["rows"]
    found = []
    for cell in peers.westwood_cells():
        if cell.bit_error_rate == 1.56e-7 and cell.window == 100 and cell.one_way_delay_s < 0.32:
            theirs = families_of(rows, cell, ["Linux/westwood"])
            for name, change in MOVES.items():
                rto = TCP_LINUX["rto"] | {"estimator": "exact"} | change.get("rto", {})
                tcp = TCP_LINUX | {"congestion": "westwood+"} | change | {"rto": rto}
                columns = run("ns2-2007", cell, theirs[0]["runs"], tcp)
                found.append({"move": name, **beside(cell, columns, theirs, header=52)})
    return found


# --- over all cells ---


def shifts(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """What many cells say together: whether ours is above or below the peers, and by how much.

    The names are keys of rows, by whose values the cells with errors are grouped.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["bit_error_rate"]:
            groups.setdefault(tuple(row[name] for name in names), []).append(row)
    found = [_shift(dict(zip(names, key, strict=True)), own) for key, own in groups.items()]
    outside = holm([row.pop("p_outside") for row in found])
    sign = holm([row["sign_p"] for row in found])
    for row, p, sign_p in zip(found, outside, sign, strict=True):
        small = row.pop("small")
        one_way = sign_p < 1 - CONFIDENCE and not small
        row["sign_p"] = float(f"{sign_p:.2g}")
        if p < 1 - CONFIDENCE or one_way:
            row["verdict"] = ratios.DIFFERS
        else:
            row["verdict"] = ratios.AGREES if small else ratios.UNDECIDED
    return found


def _shift(group: Row, rows: Sequence[Row]) -> Row:
    # Paths of the same length with the same errors differ in their rate, which seldom limits, and
    # draw the same chance: they are one.
    alike: dict[tuple[float, float], list[list[ratios.Gap]]] = {}
    for row in rows:
        place = (row["one_way_delay_s"], row["bit_error_rate"])
        alike.setdefault(place, []).append(goodput_gaps(row))
    by_cell = [
        [ratios.in_step(of_family) for of_family in zip(*cells, strict=True)]
        for cells in alike.values()
    ]
    above = sum(min(gap.value for gap in gaps) > 0 for gaps in by_cell)
    below = sum(max(gap.value for gap in gaps) < 0 for gaps in by_cell)
    by_family = [
        ratios.mean(gaps, math.log(1 + SHIFT_BOUND)) for gaps in zip(*by_cell, strict=True)
    ]
    names = [family["family"] for family in rows[0]["families"]]
    totals = {
        what: [
            round(sum(row[what][0] for row in rows), 1),
            *(
                round(sum(row["families"][n][what][0] for row in rows), 1)
                for n in range(len(names))
            ),
        ]
        for what in ("timeouts", "retransmitted")
    }
    return {
        **group,
        "cells": len(by_cell),
        "above": above,
        "below": below,
        "sign_p": ratios.sign_test(above, below),
        "families": [
            {"family": name, "ratio": shown(gap)}
            for name, gap in zip(names, by_family, strict=True)
        ],
        **totals,
        **ratios.together(by_family),
    }


# --- transfers and outages ---


def transfers(seeds: int | None = None) -> list[Row]:
    """How long transfers take."""
    theirs = kept("transfers")["rows"]
    found = []
    for cell in peers.transfer_cells():
        for recovery, families in peers.FAMILIES.items():
            for size in peers.LOSSY_SIZES if cell.bit_error_rate else peers.SIZES:
                own = [
                    {key: row[key] for key in ("family", "runs", "completed_s")}
                    for row in families_of(theirs, cell, families)
                    if row["segments"] == size
                ]
                runs = seeds_of(own, seeds)
                traffic = {"size": f"{536 * size} B"}
                tcp = TCP_2001 | {"recovery": recovery}
                columns = run("ns2-2001", cell, runs, tcp, traffic=traffic)
                times = {"completed_s": [float(value) for value in columns["completed_s"]]}
                found.append(
                    {
                        "recovery": recovery,
                        "segments": size,
                        **asdict(cell),
                        **peers.summary(times),
                        "first": times["completed_s"][:FIRST],
                        "families": own,
                    }
                )
    return found


def judged_transfers(rows: Sequence[Row]) -> list[Row]:
    """The rows with their verdicts."""
    gaps = [
        [
            ratios.ratio(sample(row, "completed_s"), sample(family, "completed_s"), BOUND)
            for family in row["families"]
        ]
        for row in rows
    ]
    return [
        {**row, "beyond": shown(ratios.nearest(own)), "verdict": verdict}
        for row, own, verdict in zip(rows, gaps, ratios.verdicts(gaps), strict=True)
    ]


OUTAGE = """
title = "A transfer of 3 MB, and the link is down from 2 s on (koutsianas2007, section 4.2)"
duration = "120 s"
profile = "ns2-2007"
[nodes]
phone = {}
router = {}
server = {}
[[links]]
between = ["phone", "router"]
rate = "6 Mbit/s"
delay = "1 ms"
queue = "50 packets"
when_down = "drop"
[[links]]
between = ["router", "server"]
rate = "1 Gbit/s"
delay = "40 ms"
[[flows]]
name = "upload"
from = "phone"
to = "server"
tcp = { mss = 1512, receive_window = "50 segments" }
"""
DOWN_AT_S = 2.0


def outages(durations: Sequence[float] | None = None) -> list[Row]:
    """When acknowledgments go on after an outage, and when all has arrived."""
    theirs = kept("outages")["rows"]
    found = []
    for lasts in peers.outages_s() if durations is None else durations:
        for recovery in ("reno", "sack"):
            own = [
                {key: row[key] for key in ("family", "resumed_s", "completed_s", "timeouts")}
                for row in theirs
                if row["outage_s"] == lasts and row["family"] in peers.FAMILIES[recovery]
            ]
            found.append(
                {
                    "recovery": recovery,
                    "outage_s": lasts,
                    **outage(recovery, lasts),
                    "families": own,
                }
            )
    return found


def outage(recovery: str, lasts: float) -> Row:
    """One of them."""
    from lasthop import _lasthop

    up = DOWN_AT_S + lasts
    overrides: list[tuple[str, object]] = [
        ("links.0.outages", {"at": [{"start": f"{DOWN_AT_S} s", "end": f"{up:.3f} s"}]}),
        ("flows.0.tcp.recovery", recovery),
        ("flows.0.traffic", {"size": f"{1512 * peers.OUTAGE_SEGMENTS} B"}),
    ]
    with tempfile.NamedTemporaryFile("r") as events:
        result = _lasthop.run(OUTAGE, "outage", overrides=overrides, events=events.name)
        acknowledged = (
            event["t_s"]
            for event in map(json.loads, _lines_with(events, '"acknowledged"'))
            if event["node"] == "phone" and event["t_s"] >= up
        )
        resumed = next(acknowledged, None)
    rows: Any = result["rows"]
    return {
        "resumed_s": None if resumed is None else round(resumed, 4),
        "completed_s": round(rows["completed_s"][0], 4),
        "timeouts": rows["timeouts"][0],
    }


def _lines_with(file: Any, words: str) -> Iterator[str]:
    return (line for line in file if words in line)


def judged_outages(rows: Sequence[Row]) -> list[Row]:
    """The rows with their verdicts: nothing in them is drawn, so a bound says it all."""

    def met(row: Row, what: str, bound: float) -> bool:
        return any(abs(row[what] - family[what]) <= bound for family in row["families"])

    return [
        {
            **row,
            "verdict": ratios.AGREES
            if met(row, "resumed_s", RESUME_BOUND_S) and met(row, "timeouts", 0)
            else ratios.DIFFERS,
        }
        for row in rows
    ]
