"""Markdown from bench/results: for the book, for the terminal, and for the README.

python bench/tables.py                  writes the measured part of the README
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"

Result = Any


def write(folder: Path) -> None:
    """Writes every table into a folder, as NAME.md; what was not measured says so."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in all_tables():
        (folder / f"{name}.md").write_text(f"{text}\n")


def all_tables() -> Iterator[tuple[str, str]]:
    """Name and Markdown of every table."""
    for name, (file, table) in TABLES.items():
        path = RESULTS / file
        measured = path.exists()
        yield name, table(json.loads(path.read_text())) if measured else "*Not measured yet.*"


def speed(result: Result) -> str:
    """The speed comparison as Markdown."""
    lines = [
        "| case | simulator | segments per CPU second | lasthop is faster by |",
        "| --- | --- | ---: | ---: |",
    ]
    names = {"one": "one flow, 10 ms", "fifty": "fifty flows, 20 ms"}
    for row in result["rows"]:
        low, high = (f"{value / 1e6:.2f}" for value in row["range"])
        ratio = "" if row["simulator"] == "lasthop" else f"{row['lasthop_is_faster_by']:.1f}"
        lines.append(
            f"| {names[row['case']]} | {row['simulator']} {row['version']} ({row['variant']}) "
            f"| {row['segments_per_cpu_s'] / 1e6:.2f} M ({low} to {high}) | {ratio} |"
        )
    lines += ["", circumstances(result)]
    return "\n".join(lines)


def agreement(result: Result) -> str:
    """The agreement as Markdown: every cell, those outside the range marked."""
    lines = [
        "| recovery | rate | one-way delay | bit errors | direction | lasthop, kb/s "
        "| ns-2, kb/s | |",
        "| --- | ---: | ---: | ---: | --- | ---: | --- | --- |",
    ]
    for row in result["rows"]:
        families = ", ".join(
            f"{family['family']} {interval(family['mean_bps'], family['ci95_bps'])}"
            for family in row["families"]
        )
        verdict = "" if row["agrees"] else f"**{row['beyond_percent']} % outside**"
        lines.append(
            f"| {row['recovery']} | {row['rate_bps'] / 1e6:g} Mb/s "
            f"| {row['one_way_delay_s'] * 1e3:g} ms | {row['bit_error_rate']:g} "
            f"| {row['errors']} | {interval(row['measured'], row['ci95'])} "
            f"| {families} | {verdict} |"
        )
    lines += ["", circumstances(result)]
    return "\n".join(lines)


def interval(mean: float, ci95: Sequence[float] | None) -> str:
    """A mean and half its interval, in kb/s."""
    half = (ci95[1] - ci95[0]) / 2 if ci95 else 0.0
    return f"{mean / 1e3:.1f} ± {half / 1e3:.1f}" if half else f"{mean / 1e3:.1f}"


def agreement_summary(result: Result) -> str:
    """One sentence."""
    rows = result["rows"]
    agreeing = sum(row["agrees"] for row in rows)
    return f"**{agreeing} of {len(rows)} cells agree** with {result['peer']}."


def circumstances(result: Result) -> str:
    """On what it was measured."""
    machine = result["machine"]
    return (
        f"*lasthop {result['lasthop']}, rustc {result['rustc']}, {machine['cpu']}, "
        f"{machine['cores']} cores, {result['date']}.*"
    )


def cluster(result: Result) -> str:
    """What a cluster on one machine costs, beside as many threads."""
    workers = result["workers"]
    lines = [
        f"| a run simulates | runs | {workers} threads | {workers} workers | runs a second "
        "| by workers |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["rows"]:
        seconds = [row["threads_s"], row["cluster_s"]]
        spent = " | ".join(f"{value:.2g} s" for value in seconds)
        speed = " | ".join(f"{row['runs'] / value:.0f}" for value in seconds)
        lines.append(f"| {row['simulated_s']} s | {row['runs']} | {spent} | {speed} |")
    lines += ["", f"*The best of {result['rounds']} rounds.* {circumstances(result)}"]
    return "\n".join(lines)


# --- packetdrill ---

IP_VERSIONS = ("ipv4", "ipv6", "ipv4-mapped-ipv6")


def packetdrill(result: Result) -> str:
    """How many scripts of each folder have passed, and what those say that have not."""
    lines = [
        "| scripts of | there are | passed over IPv4 | over IPv6 | over IPv4, by IPv6 sockets |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    rows = result["rows"]
    for folder in dict.fromkeys(row["script"].rsplit("/", 1)[0] for row in rows):
        own = [row for row in rows if row["script"].rsplit("/", 1)[0] == folder]
        scripts = len({row["script"] for row in own})
        counts = [score([row for row in own if row["ip"] == ip]) for ip in IP_VERSIONS]
        lines.append(f"| {folder} | {scripts} | {' | '.join(counts)} |")
    scripts = len({row["script"] for row in rows})
    whole = len({row["script"] for row in rows} - {row["script"] for row in rows if row["why"]})
    counts = [score([row for row in rows if row["ip"] == ip]) for ip in IP_VERSIONS]
    lines.append(f"| **all** | **{scripts}** | {' | '.join(counts)} |")
    passed = f"**{whole} of {scripts} scripts pass**"
    lines += ["", f"{passed}, over every version of IP that they are for."]
    return "\n".join(lines)


def score(rows: Result) -> str:
    """How many of some rows have passed."""
    return f"{sum(not row['why'] for row in rows)} of {len(rows)}" if rows else ""


def packetdrill_scripts(result: Result) -> str:
    """Every script: those that have passed by name, the others with packetdrill's words."""
    lines = []
    rows = result["rows"]
    for folder in dict.fromkeys(row["script"].rsplit("/", 1)[0] for row in rows):
        own = [row for row in rows if row["script"].rsplit("/", 1)[0] == folder]
        failed = [row for row in own if row["why"]]
        names = dict.fromkeys(row["script"] for row in own)
        passed = [name for name in names if name not in {row["script"] for row in failed}]
        words = ", ".join(Path(name).stem for name in passed)
        lines += [f"{folder}", f": Passed: {words or 'none'}."]
        for row in failed:
            name = Path(row["script"]).stem
            lines.append(f"  **Failed: {name} ({row['ip']})**: `{row['why']}`")
        lines.append("")
    return "\n".join(lines)


# --- bbn8333, simulation 1 ---

LFN = {"rate_bps": 100e6, "one_way_delay_s": 0.32}
WORST = {"bit_error_rate": 1.56e-5, "errors": "both"}


def cell(rows: Result, metric: str, **case: object) -> dict[str, Any]:
    """The row of one cell."""
    for row in rows:
        if row["metric"] == metric and case.items() <= row["case"].items():
            return dict(row)
    raise LookupError(f"no {metric} of {case}")


def sim1_ratios(rows: Result) -> str:
    """Published and measured ratios, with today's stack and without suppression beside them."""
    lines = [
        "| path | | published | measured, 95 % | dupacks not suppressed | `modern` | agrees |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    unsuppressed = {json.dumps(row["case"]): row["measured"] for row in unsuppressed_ratios()}
    for row in published_ratios(rows):
        case = row["case"]
        modern = cell(rows, "ratio", **(case | {"profile": "modern"}))
        lines.append(
            f"| {case['rate_bps'] / 1e6:g} Mb/s, {case['one_way_delay_s'] * 1e3:g} ms "
            f"| {case['recovery']} {case['eten']} | {row['published']:g} "
            f"| {row['measured']:.2f} ({row['ci95'][0]:.2f} to {row['ci95'][1]:.2f}) "
            f"| {unsuppressed[json.dumps(case)]:.2f} | {modern['measured']:.2f} "
            f"| {'yes' if row['agrees'] else '**no**'} |"
        )
    return "\n".join(lines)


def sim1_findings(rows: Result) -> str:
    """Every statement that is not a ratio of one cell."""
    lines = ["| statement | agrees | measured |", "| --- | --- | --- |"]
    ratios = [row["claim"] for row in published_ratios(rows)]
    for row in rows:
        if row["metric"] == "finding" and row["claim"] not in ratios:
            verdict = "yes" if row["agrees"] else "**no**"
            lines.append(f"| {row['claim']} | {verdict} | {row['why']} |")
    return "\n".join(lines)


def sim1_why(rows: Result) -> str:
    """The explanation of every ratio that does not agree."""
    differing = [row for row in published_ratios(rows) if not row["agrees"]]
    return "\n\n".join(f"*{row['claim']}* {row['why']}" for row in differing)


def published_ratios(rows: Result) -> list[dict[str, Any]]:
    """The statements that give a ratio for one cell, which other runs explain."""
    explained = [row["case"] for row in unsuppressed_ratios()]
    return [
        dict(row)
        for row in rows
        if row["metric"] == "finding" and row["published"] is not None and row["case"] in explained
    ]


def unsuppressed_ratios() -> list[dict[str, Any]]:
    """The same ratios where duplicate ACKs count as ever."""
    rows = json.loads((RESULTS / "bbn8333-sim1-explanations.json").read_text())
    return [dict(row) for row in rows if row["variation"] == "dupacks-count"]


def readme_gain(rows: Result) -> str:
    """What the README says of the first experiment."""
    case = {"rate_bps": 1.5e6, "one_way_delay_s": 0.32, "profile": "ns2-2001", "recovery": "sack"}
    lines = [
        "| goodput at a bit error rate of | SACK | SACK + ETEN | SACK + oracle |",
        "| --- | ---: | ---: | ---: |",
    ]
    for rate in (0.0, 1.56e-7, 1.56e-6, 1.56e-5):
        words = []
        for eten in ("none", "backward", "oracle"):
            row = cell(rows, "goodput_bps", **case, eten=eten, bit_error_rate=rate, errors="both")
            words.append(f"{interval(row['measured'], row['ci95'])} kb/s")
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


def sim1_about(about: Result) -> str:
    """How long all of it took."""
    return (
        f"All of it, {about['seeds']} seeds a point, takes {about['wall_s']:.0f} s. "
        f"{circumstances(about)}"
    )


def readme_peers() -> str:
    """What the README says of the peers."""
    lines = []
    if (RESULTS / "agreement.json").exists():
        agreement = json.loads((RESULTS / "agreement.json").read_text())
        agreeing = sum(row["agrees"] for row in agreement["rows"])
        lines.append(
            f"Plain Reno and SACK agree with {agreement['peer']} in {agreeing} of "
            f"{len(agreement['rows'])} cells."
        )
    if (RESULTS / "speed.json").exists():
        rows = json.loads((RESULTS / "speed.json").read_text())["rows"]
        ours = {r["case"]: r["segments_per_cpu_s"] for r in rows if r["simulator"] == "lasthop"}
        lines.append(
            f"One core simulates {ours['one'] / 1e6:.1f} million delivered segments a second "
            f"({ours['fifty'] / 1e6:.1f} million with fifty flows), without an allocation per "
            f"packet: {faster(rows, 'ns-2', 'all headers')} as it is, "
            f"{faster(rows, 'ns-2', 'used headers')} without the packet headers that it does not "
            f"use, {faster(rows, 'ns-3', '')}."
        )
    return " ".join(lines)


def faster(rows: Sequence[Result], simulator: str, variant: str) -> str:
    """The range of ratios to a simulator."""
    ratios = [
        row["lasthop_is_faster_by"]
        for row in rows
        if row["simulator"] == simulator and variant in row["variant"]
    ]
    if not ratios:
        return f"not measured beside {simulator}"
    return f"{min(ratios):.1f} to {max(ratios):.1f} times as many as {simulator}"


README = RESULTS.parent.parent / "README.md"
BEGIN, END = "<!-- measured:begin -->", "<!-- measured:end -->"


def readme() -> str:
    """The README with its measured part as the results have it."""
    text = README.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    rows = json.loads((RESULTS / "bbn8333-sim1.json").read_text())
    measured = f"{readme_gain(rows)}\n\n{readme_peers()}"
    return f"{before}{BEGIN}\n{measured}\n{END}{after}"


TABLES: Mapping[str, tuple[str, Callable[[Result], str]]] = {
    "speed": ("speed.json", speed),
    "agreement": ("agreement.json", agreement),
    "agreement-summary": ("agreement.json", agreement_summary),
    "cluster": ("cluster.json", cluster),
    "packetdrill": ("packetdrill.json", packetdrill),
    "packetdrill-scripts": ("packetdrill.json", packetdrill_scripts),
    "sim1-about": ("bbn8333-sim1-about.json", sim1_about),
    "sim1-ratios": ("bbn8333-sim1.json", sim1_ratios),
    "sim1-findings": ("bbn8333-sim1.json", sim1_findings),
    "sim1-why": ("bbn8333-sim1.json", sim1_why),
}


if __name__ == "__main__":
    README.write_text(readme())
