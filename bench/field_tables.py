"""The book's tables of `lasthopd` beside others, from bench/results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tabular

Result = Any
#: Bytes of a packet of a pair over IPv4, and what remains of them for the user: 44 are headers of
#: IP, UDP and SRP, and 30 those of the channel.
PACKET, PAYLOAD = 1500, 1426
#: The rows of the machine's table, and their digits.
MACHINE: Mapping[str, tuple[str, int]] = {
    "gbps_1": ("one flow, Gb/s", 2),
    "cpu_s_per_gb_1": ("one flow, CPU seconds per GB", 2),
    "gbps_100": ("100 flows, Gb/s", 2),
    "cpu_s_per_gb_100": ("100 flows, CPU seconds per GB", 2),
    "connections_per_s": ("connections with a request each, per second", 0),
    "request_ms": ("a request, median, ms", 3),
    "request_ms_99": ("a request, 99th percentile, ms", 3),
    "idle_connections": ("idle connections", 0),
    "process_kib": ("memory of the gateway's process for each, KiB", 1),
    "machine_kib": ("memory of the machine for each, with both ends, KiB", 1),
}


def hop(row: Result) -> str:
    """The hop of a row."""
    bursts = f" in bursts of {row['burst']:g}" if row["burst"] else ""
    return f"{row['mbps']:g} Mb/s, {row['rtt_ms']:g} ms, {100 * row['loss']:g} %{bursts}"


def of_hops(rows: Sequence[Result], cell: Callable[[Result], str]) -> str:
    """A line for each candidate, a column for each hop."""
    hops = list(dict.fromkeys(map(hop, rows)))
    lines = []
    for what in dict.fromkeys(row["what"] for row in rows):
        found = {hop(row): cell(row) for row in rows if row["what"] == what}
        lines.append([what, *(found.get(of, "") for of in hops)])
    return tabular.table(["", *hops], lines)


def goodput(row: Result) -> str:
    """The goodput as a share of what the hop delivers, in per cent."""
    share = 100 * row["share"] / row["goodput_mbps"][1] if row["goodput_mbps"][1] else 0
    return tabular.spread(row["goodput_mbps"], 0, share)


def prediction(row: Result) -> str:
    """The goodput that was predicted, and the one that was measured."""
    return f"{row['predicted_mbps']:.2f}, {tabular.spread(row['goodput_mbps'], 2)}"


def page(row: Result) -> str:
    """The time of a page; how many did not come."""
    missing = f", {row['page_s_missing']} not whole" if row["page_s_missing"] else ""
    return tabular.spread(row["page_s"], 1) + missing


def hops(result: Result) -> str:
    """Goodput, first byte and page load over bad hops."""
    rows = result["rows"]
    parts = [
        *goodputs(rows),
        "First byte, seconds:",
        of_hops(rows, lambda row: tabular.spread(row["first_byte_s"], 2)),
        "A page of 30 objects, seconds:",
        of_hops(rows, page),
    ]
    return "\n\n".join([*parts, about_runs(result)])


def long(result: Result) -> str:
    """Goodput of long downloads."""
    rows = result["rows"]
    parts = [
        *goodputs(rows),
        "Bytes of packets for this goodput over the hop's capacity x (1 - loss), per cent:",
        of_hops(rows, lambda row: f"{100 * row['share'] * PACKET / PAYLOAD:.1f}"),
    ]
    return "\n\n".join([*parts, about_runs(result)])


def sizes(result: Result) -> str:
    """The time of downloads: a line for each hop and candidate, a column for each size."""
    rows = result["rows"]
    sizes = sorted({row["bytes"] for row in rows})
    lines = []
    for place, what in dict.fromkeys((hop(row), row["what"]) for row in rows):
        found = {
            row["bytes"]: seconds(row) for row in rows if (hop(row), row["what"]) == (place, what)
        }
        lines.append([place, what, *(found.get(size, "") for size in sizes)])
    heads = ["hop", "", *map(in_bytes, sizes)]
    void = sum({(hop(row), row["what"]): row["void"] for row in rows}.values())
    about = (
        f"*Seconds: medians of {result['repeats']} runs, in brackets the least and the largest. "
    )
    about += f"In {void} runs the machine was too busy. {versions(result)}*"
    return f"{tabular.table(heads, lines)}\n\n{about}"


def seconds(row: Result) -> str:
    """A time with two digits after the point, if it is above a second."""
    return tabular.spread(row["seconds"], 2 if row["seconds"][1] >= 1 else 3)


def in_bytes(size: int) -> str:
    """A power of ten with its unit."""
    power, unit = (6, "MB") if size >= 10**6 else (3, "kB")
    return f"{size // 10**power} {unit}"


def outage(result: Result) -> str:
    """How soon data comes again after an outage: a column for each hop."""
    rows = result["rows"]
    hops = list(dict.fromkeys((row["mbps"], row["rtt_ms"]) for row in rows))
    heads = ["", *(f"{mbps:g} Mbit/s, {rtt:g} ms" for mbps, rtt in hops)]
    lines = []
    for what in dict.fromkeys(row["what"] for row in rows):
        cells = []
        for row in rows:
            if row["what"] == what:
                low, middle, high = row["silence_s"]
                cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
        lines.append([what, *cells])
    about = f"*Seconds, medians of {result['repeats']} outages of {result['outage_s']:g} s, in "
    about += f"brackets the shortest and the longest. {versions(result)}*"
    return f"{tabular.table(heads, lines)}\n\n{about}"


def roaming(result: Result) -> str:
    """The silences of handoffs, and the goodput: two columns for each condition."""
    rows = result["rows"]
    conditions = list(dict.fromkeys((row["loss"], row["pause_s"]) for row in rows))
    heads = [""]
    for loss, pause in conditions:
        heads += [f"{100 * loss:g} % loss, {pause:g} s: silence, s", "Mb/s"]
    lines = []
    for what in dict.fromkeys(row["what"] for row in rows):
        cells = []
        for row in rows:
            if row["what"] == what:
                cells += [
                    tabular.spread(row["silence_s"], 2),
                    tabular.spread(row["goodput_mbps"], 1),
                ]
                if row["ended"]:
                    cells[-1] += f", ended in {row['ended']}"
        lines.append([what, *cells])
    most, void, wrong = (sum(row[name] for row in rows) for name in ("handoffs", "void", "wrong"))
    repeats = result["repeats"]
    downloads = f"{repeats} downloads each" if repeats > 1 else "a download each"
    about = f"*Medians of the handoffs of {downloads}, in brackets the least and "
    about += f"the largest. {most} handoffs; the machine was too busy in {void} downloads; wrong "
    about += f"bytes in {wrong}. {versions(result)}*"
    return f"{tabular.table(heads, lines)}\n\n{about}"


def notify(result: Result) -> str:
    """Goodput over hops that damage packets: a column for each sender."""
    rows = result["rows"]
    names = list(dict.fromkeys(row["what"] for row in rows))
    lines = []
    for rtt, damaged in dict.fromkeys((row["rtt_ms"], row["damaged"]) for row in rows):
        cells = [
            tabular.spread(row["goodput_mbps"], 1)
            for row in rows
            if (row["rtt_ms"], row["damaged"]) == (rtt, damaged)
        ]
        lines.append([f"{rtt:g} ms, {100 * damaged:g} %", *cells])
    void = sum(row["void"] for row in rows)
    about = f"*Mb/s of {rows[0]['mbps']:g}, downloads of {result['seconds']:g} s, "
    about += (
        f"{result['repeats']} each; without those for which the machine was too busy ({void}). "
    )
    shown = tabular.table(["hop, packets damaged", *names], lines)
    return f"{shown}\n\n{about}{versions(result)}*"


def goodputs(rows: Sequence[Result]) -> list[str]:
    """Goodput, and what the lab predicts of it."""
    own = [row for row in rows if row["predicted_mbps"] is not None]
    return [
        "Goodput over the hop's capacity x (1 - loss), per cent:",
        of_hops(rows, goodput),
        "Goodput of `lasthopd`, Mb/s: what the lab predicts for such a download with the scenario "
        "that `lasthopd scenario` prints (the median of nine runs), and what was measured:",
        of_hops(own, prediction),
    ]


def about_runs(result: Result) -> str:
    """How often, and how well, it was measured."""
    rows = result["rows"]
    runs, void = (sum(row[name] for row in rows) for name in ("runs", "void"))
    wrong = sum(not row["ok"] for row in rows)
    about = f"*Runs of each, in turn: {result['repeats']}; a download has {result['seconds']:g} s. "
    about += f"Of {runs} runs, the machine was too busy in {void}. Wrong bytes in {wrong} cases. "
    return f"{about}{versions(result)}*"


def machine(result: Result) -> str:
    """What a gateway costs the machine: a column for each candidate."""
    rows = result["rows"]
    lines = []
    for key, (words, digits) in MACHINE.items():
        cells = [tabular.spread(row[key], digits) if key in row else "" for row in rows]
        lines.append([words, *cells])
    about = f"*Runs of each, in turn: {result['repeats']}. {versions(result)}*"
    return f"{tabular.table(['', *(row['what'] for row in rows)], lines)}\n\n{about}"


def pair(result: Result) -> str:
    """What a pair of gateways costs the machine: a line for each candidate."""
    keys = {"gbps": "Gb/s", "cpu_s_per_gb": "CPU seconds per GB"}
    flows = {1: "one flow", 20: "20 flows"}
    columns = {
        f"{key}_{n}": f"{words}, {of}" for n, words in flows.items() for key, of in keys.items()
    }
    lines = [
        [row["what"], *(tabular.spread(row[key], 2) for key in columns)] for row in result["rows"]
    ]
    about = f"*Runs of each, in turn: {result['repeats']}. {machine_of(result)}*"
    return f"{tabular.table(['', *columns.values()], lines)}\n\n{about}"


def attack(result: Result) -> str:
    """Goodput, CPU time and memory under attack."""
    lines = [
        "| mode | attack | packets per second | goodput, % of that in quiet | beside "
        "| CPU of the gateway's process for a packet, µs | memory, MiB |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["rows"]:
        low, middle, high = row["attack_to_quiet"]
        # Without one, the gateway got none.
        work = f"{row['own_us'][1] + row['kernel_us'][1]:.1f}" if row["own_us"] else "none"
        before, during, _ = (kib / 1024 for kib in row["memory_kib"])
        lines.append(
            f"| `{row['mode']}` | {row['case']} | {row['per_s']:,} "
            f"| {middle:.1f} ({low:.1f} to {min(high, 999):.1f}) | {row['beside_to_quiet'][1]:.1f} "
            f"| {work} | {before:.0f} to {during:.0f} |"
        )
    about = (
        f"*{result['rounds']} rounds of downloads of {result['seconds']:g} s in turn; in brackets, "
    )
    about += f"the ratio's interval of 95 %. {machine_of(result)}*"
    return "\n".join([*lines, "", about])


def chaos(result: Result) -> str:
    """What became of connections while all went wrong: a column for each mode."""
    rows = result["rows"]
    lines = []

    def line(words: str, values: Sequence[object]) -> None:
        lines.append([words, *map(str, values)])

    line("date", [row["date"] for row in rows])
    line("connections at a time", [f"{row['connections']:,}" for row in rows])
    line("minutes", [f"{row['seconds'] / 60:g}" for row in rows])
    for event in rows[0]["events"]:
        line(event, [row["events"][event] for row in rows])
    for end in ("user", "server"):
        outcomes = dict.fromkeys(name for row in rows for name in row[end])
        for name in outcomes:
            line(f"{end}: {name}", [f"{row[end].get(name, 0):,}" for row in rows])
    line("wrong bytes and other faults", [len(row["faults"]) for row in rows])
    line("other problems", [len(row["counters"]) for row in rows])
    line("memory of each gateway, MiB", [", ".join(map(str, row["memory_mib"])) for row in rows])
    pauses = [row["upgrades_ms"] for row in rows]
    line("packets waited in upgrades, ms", [span(sorted(found)) for found in pauses])
    heads = ["", *(f"`{row['mode']}`" for row in rows)]
    return f"{tabular.table(heads, lines)}\n\n*{machine_of(result)}*"


def span(values: Sequence[float]) -> str:
    """The least, the median and the largest."""
    if not values:
        return ""
    return f"{values[0]:g}, {values[len(values) // 2]:g}, {values[-1]:g}"


def machine_of(result: Result) -> str:
    """The version of lasthop, the machine and the date."""
    machine = result["machine"]
    return (
        f"lasthop {result['lasthop']}, {machine['cpu']}, {machine['cores']} cores, "
        f"{result['date']}."
    )


def versions(result: Result) -> str:
    """The versions of what was measured."""
    others = [result[name] for name in ("pepsal", "haproxy") if name in result]
    return f"Linux {result['kernel']}{''.join(f', {other}' for other in others)}."


def policies(result: Result) -> str:
    """Table 3.7 of obanaik2003: published, in the lab, and by the kernel's TCP."""
    lines = [
        "| last hop | policy | published, kb/s | lab | kernel | published, % lost | lab | kernel |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    links = {"slow": "56 kb/s", "ltn": "9.6 kb/s"}
    names = {
        "standard": "standard",
        "reno": "Linux's Reno",
        "increase-by-k": "increase-by-K, K = 2",
        "canit": "CANIT, 30 ms",
        "constant-rate": "constant rate, c = ",
        "auto": "auto, with CANIT",
    }

    def mean(of: Result, metric: str, factor: float, digits: int) -> str:
        if not of:
            return ""
        half = (of[f"{metric}_ci95"][1] - of[f"{metric}_ci95"][0]) / 2
        return f"{factor * of[metric]:.{digits}f} ± {factor * half:.{digits}f}"

    for row in result["rows"]:
        c = f"{row['c']:g}" if row["c"] else ""
        stated = row.get("published", {})
        cells = [links[row["link"]], names[row["policy"]] + c]
        for metric, factor, digits in (("payload_bps", 1e-3, 2), ("loss_share", 100, 1)):
            cells.append(f"{factor * stated[metric]:.{digits}f}" if metric in stated else "")
            cells += [mean(row.get(of, {}), metric, factor, digits) for of in ("lab", "kernel")]
        lines.append("| " + " | ".join(cells) + " |")
    kernel = [row["kernel"] for row in result["rows"]]
    lab = next(row["lab"] for row in result["rows"] if "lab" in row)
    about = (
        f"*Means with half of their 95 % intervals; {lab['runs']} runs each in the lab, "
        f"{kernel[0]['runs']} by Linux {result['kernel']} (void because of other load: "
        f"{sum(one['void'] for one in kernel)}). The constant of constant rate is not published.*"
    )
    return "\n".join([*lines, "", about])
