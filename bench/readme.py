"""What the README shows of bench/results."""

from __future__ import annotations

import json
from collections.abc import Sequence

import agreement_tables
import tabular
from record import RESULTS, Row
from speed import REFERENCE

LFN = {"rate_bps": 100e6, "one_way_delay_s": 0.32}
WORST = {"bit_error_rate": 1.56e-5, "errors": "both"}


def shown() -> str:
    """What the README says of the first experiment and of the peers."""
    rows = json.loads((RESULTS / "bbn8333-sim1.json").read_text())
    return f"{gain(rows)}\n\n{peers()}"


def gain(rows: Sequence[Row]) -> str:
    """The README's table of the first experiment."""
    case = {"rate_bps": 1.5e6, "one_way_delay_s": 0.32, "profile": "ns2-2001", "recovery": "sack"}
    lines = [
        "| goodput at a bit error rate of | SACK | SACK + ETEN | SACK + oracle |",
        "| --- | ---: | ---: | ---: |",
    ]
    for rate in (0.0, 1.56e-7, 1.56e-6, 1.56e-5):
        words = []
        for eten in ("none", "backward", "oracle"):
            row = cell(rows, "goodput_bps", **case, eten=eten, bit_error_rate=rate, errors="both")
            words.append(f"{tabular.interval(row['measured'], row['ci95'])} kb/s")
        lines.append(f"| {rate:g} | {' | '.join(words)} |")
    ratios = {
        eten: cell(rows, "ratio", **LFN, **WORST, recovery="sack", eten=eten, profile="ns2-2001")
        for eten in ("backward", "oracle")
    }
    lines += [
        "",
        "At the same delay and 100 Mb/s, where the report gives numbers, SACK with ETEN has "
        f"{ratios['backward']['measured']:.1f} times the goodput of SACK alone at 1.56e-05 "
        "(published: above 3), and with the oracle "
        f"{ratios['oracle']['measured']:.1f} times (published: about 3.5). Why both are higher "
        "here is in [the book](docs/publications/bbn8333.md).",
    ]
    return "\n".join(lines)


def peers() -> str:
    """The README's sentences on the peers."""
    lines = []
    if (RESULTS / "agreement.json").exists():
        agreement = json.loads((RESULTS / "agreement.json").read_text())
        lines.append(agreement_tables.in_one_sentence(agreement))
    if (RESULTS / "speed.json").exists():
        rows = json.loads((RESULTS / "speed.json").read_text())["rows"]
        ours = {
            row["case"]: row["segments_per_cpu_s"] for row in rows if row["variant"] == REFERENCE
        }
        used = faster(rows, "ns-2", "used headers")
        ratios = [
            faster(rows, "ns-2", "all headers"),
            f"{used} with only the packet headers in use" if used else "",
            faster(rows, "ns-3", ""),
        ]
        compared = ", and ".join(ratio for ratio in ratios if ratio)
        lines.append(
            f"`lasthop.run` simulates {ours['one'] / 1e6:.1f} million delivered segments per "
            f"second of CPU time ({ours['fifty'] / 1e6:.1f} million with fifty flows), with "
            f"timestamps: {compared}."
        )
    return " ".join(lines)


def cell(rows: Sequence[Row], metric: str, **case: object) -> Row:
    """The row of one cell."""
    for row in rows:
        if row["metric"] == metric and case.items() <= row["case"].items():
            return row
    raise LookupError(f"no {metric} of {case}")


def faster(rows: Sequence[Row], simulator: str, variant: str) -> str:
    """The range of ratios to a simulator; empty if it was not measured."""
    ratios = [
        row["lasthop_is_faster_by"]
        for row in rows
        if row["simulator"] == simulator and variant in row["variant"]
    ]
    if not ratios:
        return ""
    return f"{min(ratios):.1f} to {max(ratios):.1f} times as many as {simulator}"
