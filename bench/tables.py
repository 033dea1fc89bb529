"""Markdown from bench/results: for the book, for the terminal, and for the README."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import agreement_tables
import bbr
import field_tables
import ishac_calibration
import obanaik_calibration
import on_testbed
import satellite
import short_messages
import yavatkar_calibration
from fidelity import summarised
from record import RESULTS
from speed import REFERENCE

from lasthop import publications
from lasthop.publications.study import book

Result = Any


def all_tables() -> Iterator[tuple[str, str]]:
    """Name and Markdown of every table."""
    for name, (file, table) in TABLES.items():
        path = RESULTS / file
        measured = path.exists()
        yield name, table(json.loads(path.read_text())) if measured else "*Not measured yet.*"
    yield from of_publications()
    yield "readme", readme()


def speed(result: Result) -> str:
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
    lines += ["", circumstances(result)]
    return "\n".join(lines)


def interval(mean: float, ci95: Sequence[float] | None) -> str:
    """A mean and half its interval, in kb/s."""
    half = (ci95[1] - ci95[0]) / 2 if ci95 else 0.0
    return f"{mean / 1e3:.1f} ± {half / 1e3:.1f}" if half else f"{mean / 1e3:.1f}"


def circumstances(result: Result) -> str:
    """The version, the machine and the date of a measurement."""
    machine = result["machine"]
    return (
        f"*lasthop {result['lasthop']}, rustc {result['rustc']}, {machine['cpu']}, "
        f"{machine['cores']} cores, {result['date']}.*"
    )


def cluster(result: Result) -> str:
    """The time of a cluster on one machine, and of as many threads."""
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
    """The number of scripts of each suite, and of those that pass."""
    lines = [
        "| suite | scripts | passed over IPv4 | over IPv6 | over IPv4, with IPv6 sockets |",
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
    """The number of rows that passed."""
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


# --- real packets ---


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median, the smallest and the largest value."""
    low, median, high = (f"{value:.{digits}f}" for value in values)
    return median if low == high else f"{median} ({low} to {high})"


def fidelity(result: Result) -> str:
    """The emulator as measured by ping, iperf3 and tshark: one line per case."""
    lines = [
        "| link | load | beyond the model, ms: median | 99th percentile | limits kept |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    rows = list(summarised(result["rows"]))
    for row in (row for row in rows if row["case"] == "delay"):
        load = f"{row['load']:.0%} UDP" if row["load"] else "ping alone"
        lines.append(
            f"| {row['rate_mbps']:g} Mb/s, {row['delay_ms']:g} ms | {load} "
            f"| {spread(row['median_ms'], 3)} | {spread(row['p99_ms'], 3)} | {row['kept']} |"
        )
    lines += [
        "",
        "| rate | load | error of the rate, % | limits kept |",
        "| --- | --- | ---: | ---: |",
    ]
    for row in (row for row in rows if row["case"] == "rate"):
        error = spread(row["error_percent"])
        lines.append(
            f"| {row['rate_mbps']:g} Mb/s | {row['protocol'].upper()} | {error} | {row['kept']} |"
        )
    lines += ["", "| loss | measured | within its binomial interval |", "| --- | ---: | ---: |"]
    for row in (row for row in rows if row["case"] == "loss"):
        lines.append(f"| {row['loss']:g} | {spread(row['measured'], 5)} | {row['kept']} |")
    tools = ", ".join(f"{tool} {version}" for tool, version in result["tools"].items())
    steal = max(row["steal_percent"][2] for row in rows)
    about = (
        f"*{result['rounds']} rounds: the median, and least to largest; {tools}; Linux "
        f"{result['kernel']}. The hypervisor took at most {steal:g} % of the machine.*"
    )
    return "\n".join([*lines, "", f"{about} {circumstances(result)}"])


def interop(result: Result) -> str:
    """Every case with lasthop's stack at one end and the kernel's at the other."""
    lines = [
        "| case | lasthop sends, IPv4 | IPv6 | lasthop receives, IPv4 | IPv6 |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    rows = [row for row in result["rows"] if "way" in row]
    transfers = [row for row in rows if row["mbps"]]
    for case in dict.fromkeys(row["case"] for row in transfers):
        words = []
        for way in ("sends", "receives"):
            for ip in ("IPv4", "IPv6"):
                key = (case, way, ip)
                row = next(r for r in transfers if (r["case"], r["way"], r["ip"]) == key)
                words.append(f"{row['seconds']:.1f} s" if row["ok"] else f"**{row['fault']}**")
        lines.append(f"| {case} | {' | '.join(words)} |")
    lines += ["", "| test | passed |", "| --- | ---: |"]
    for case in dict.fromkeys(row["case"] for row in rows if not row["mbps"]):
        own = [row for row in rows if row["case"] == case]
        lines.append(f"| {case} | {sum(row['ok'] for row in own)} of {len(own)} |")
    seen = result["tshark"]
    about = (
        f"*Linux {result['kernel']}, which sends with {result['kernel_congestion_control']}. Of "
        f"{seen['packets']} packets from lasthop, tshark found {seen['bad']} with a bad checksum.*"
    )
    return "\n".join([*lines, "", f"{about} {circumstances(result)}"])


def throughput(result: Result) -> str:
    """The throughput of lasthop's stack and of the kernel's, for one connection and for many."""
    lines = [
        "| connections | near end | stack | Gb/s | CPU seconds per GB, whole machine "
        "| lasthop / kernel |",
        "| ---: | --- | --- | ---: | ---: | ---: |",
    ]
    for case in result["summary"]:
        for stack in case["stacks"]:
            ours, workers = stack["stack"] == "ours", stack["workers"]
            ratio = f"{stack['ratio']:.2f}" if ours else ""
            rate = spread([stack["lowest"], stack["gbps"], stack["highest"]], 1)
            cpu = f"{stack['machine_cpu_s_per_gb']:.2f}"
            several = f", {workers} workers" if ours and workers > 1 else ""
            name = f"lasthop{several}" if ours else stack["stack"]
            lines.append(f"| {case['flows']} | {case['way']} | {name} | {rate} | {cpu} | {ratio} |")
    about = f"*{result['rounds']} rounds in turn.*"
    for stack in result.get("steering", []):
        if stack["workers"] > 1:
            handed_over, read = stack["handed_over"], stack["read"]
            about += f" *Of {read} packets, {handed_over} came to another worker.*"
    return "\n".join([*lines, "", f"{about} {circumstances(result)}"])


def relay(result: Result) -> str:
    """The CPU time and the memory of split connections: one line for each case."""
    names = {"one": "1 transfer", "fifty": "50 transfers", "10,000": "10,000 transfers"}
    names |= {"idle": "10,000 idle", "100 kB buffered": "10,000 that fill their buffers"}
    routers = ("no box", "spoofer, not split", "spoofer")
    head = "| connections | " + " | ".join(routers) + " |"
    parts = []
    for key, title in (
        ("ns_per_segment", "CPU time of a delivered segment, ns"),
        ("kib_per_connection", "Memory of the whole simulation for each connection, KiB"),
    ):
        rows = [row for row in result["rows"] if key in row]
        lines = [f"{title}:", "", head, "| --- |" + " ---: |" * len(routers)]
        for case in dict.fromkeys(row["case"] for row in rows):
            found = {row["router"]: row for row in rows if row["case"] == case}
            cells = [found.get(router) for router in routers]
            shown = [f"{row[key]:,.0f} ({spread_of(row)})" if row else "" for row in cells]
            lines.append(f"| {names[case]} | " + " | ".join(shown) + " |")
        parts.append("\n".join(lines))
    about = (
        f"*The median of {result['rounds']} runs, and least to largest.* {circumstances(result)}"
    )
    return "\n\n".join([*parts, about])


def marker(result: Result) -> str:
    """What a packet costs a base station of SPEP: one line for each case."""
    rows = result["rows"]
    runs = next(row["ns_per_packet"] for row in rows if row["packet"] == "IPv4")
    lines = ["| marked by | packet | flows | ns | net |", "| --- | --- | ---: | ---: | ---: |"]
    for row in rows:
        flows = f"{row['flows']:,}" if "flows" in row else ""
        net = f"{row['ns_per_packet'] - runs:.0f}" if row["by"] == "kernel" else ""
        cells = f"{row['ns_per_packet']:.0f} ({spread_of(row)}) | {net}"
        lines.append(f"| {row['by']} | {row['packet']} | {flows} | {cells} |")
    about = f"*The median of {result['rounds']} runs, and least to largest.*"
    return "\n".join([*lines, "", f"{about} {circumstances(result)}"])


def spoofing(result: Result) -> str:
    """Downloads over a spoofer: one line for each path, and what tshark found."""
    rows = result["rows"]
    gateways = list(dict.fromkeys(row["gateway"] for row in rows))
    names = {"none": "no spoofer"}
    head = "| path | " + " | ".join(names.get(gateway, gateway) for gateway in gateways) + " |"
    lines = ["Seconds:", "", head, "| --- |" + " ---: |" * len(gateways)]
    for ip, loss in dict.fromkeys((row["ip"], row["loss"]) for row in rows):
        of = [row["seconds"] for row in rows if (row["ip"], row["loss"]) == (ip, loss)]
        cells = " | ".join(f"{seconds:.1f}" for seconds in of)
        lines.append(f"| IPv{ip}, {100 * loss:g} % loss | {cells} |")
    ends = [row[end] for row in rows for end in ("at_server", "at_user")]
    found = {
        what: sum(end[name] for end in ends)
        for name, what in (
            ("segments", "segments"),
            ("malformed", "malformed"),
            ("out_of_window", "beyond the window"),
            ("unsent_acknowledged", "acknowledgments of what was not sent"),
            ("changed_bytes", "changed bytes"),
        )
    }
    words = ", ".join(f"{count:,} {what}" for what, count in found.items())
    about = f"*One run each. All captures together: {words}.* {circumstances(result)}"
    return "\n\n".join(["\n".join(lines), about])


def spread_of(row: Result) -> str:
    """The least and the largest value of a row."""
    low, high = row["range"]
    return f"{low:,.0f} to {high:,.0f}"


def worlds(result: Result) -> str:
    """The lab, the testbed, and the kernel's stack."""
    lines = [
        "| scenario | lab, kb/s | testbed, kb/s | testbed / lab - 1, paired | lab, link shifted "
        "| Linux CUBIC, kb/s | Linux BBR, kb/s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = result["rows"]
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        of = {row["stack"]: row for row in rows if row["scenario"] == scenario}
        rates = {stack: interval(row["payload_bps"], row["ci95_bps"]) for stack, row in of.items()}
        low, high = of["testbed"]["ci95_percent"]
        least, most = of["lab"]["shifted_percent"]
        lines.append(
            f"| {scenario} | {rates['lab']} | {rates['testbed']} "
            f"| {of['testbed']['beside_lab_percent']:+.1f} % ({low:+.1f} to {high:+.1f}) "
            f"| {least:+.1f} to {most:+.1f} % | {rates['linux cubic']} | {rates['linux bbr']} |"
        )
    runs = rows[0]["runs"]
    void = sum(row.get("void", 0) for row in rows)
    about = f"*{runs} runs each, mean and 95 % interval; void runs among them: {void}.*"
    return "\n".join([*lines, "", f"{about} {circumstances(result)}"])


def beside(result: Result) -> str:
    """Transfers by our sender and by the kernel's."""
    lines = [
        "| transfer | lasthop, s | Linux, s | speed, lasthop / Linux | timeouts, lasthop | Linux |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = result["rows"]
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        of = {row["stack"]: row for row in rows if row["scenario"] == scenario}
        ours, kernel = of["lasthop"], of["linux"]
        low, high = ours["ci95"]
        seconds = [stack["completed_s"] for stack in (ours, kernel)]
        times = [spread([min(own), statistics.median(own), max(own)]) for own in seconds]
        lines.append(
            f"| {scenario} | {times[0]} | {times[1]} | {ours['speed_ratio']:.2f} ({low:.2f} to "
            f"{high:.2f}) | {ours['timeouts']:.1f} | {kernel['timeouts']:.1f} |"
        )
    void = sum(row["void"] for row in rows)
    about = (
        f"*{rows[0]['runs']} runs each in turn; median and range of the times, geometric mean and "
        f"95 % interval of the paired ratios; void runs among them: {void}.*"
    )
    return "\n".join([*lines, "", f"{about} {circumstances(result)}"])


def rack(result: Result) -> str:
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
            counts = " | ".join(span([row[key] for row in rows]) for key in RACK_COUNTS)
            trips = statistics.median(row["round_trips"] for row in rows)
            lost = pattern if stack == "lasthop" else ""
            again = " | ".join(retransmitted(rows))
            lines.append(f"| {lost} | {name} | {again} | {counts} | {trips:.1f} |")
    runs = max(row["run"] for row in result["rows"])
    about = (
        f"*{runs} runs each; medians, and least to greatest where runs differ. Segments are counted"
        f" from 0. Linux {result['kernel']}.*"
    )
    return "\n".join([*lines, "", f"{about} {circumstances(result)}"])


RACK_COUNTS = ("spurious", "probes", "timeouts")


def span(values: Sequence[int]) -> str:
    """A count, or the least and the greatest."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def retransmitted(rows: Sequence[Result]) -> tuple[str, str]:
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


# --- The README ---

LFN = {"rate_bps": 100e6, "one_way_delay_s": 0.32}
WORST = {"bit_error_rate": 1.56e-5, "errors": "both"}


def cell(rows: Result, metric: str, **case: object) -> Result:
    """The row of one cell."""
    for row in rows:
        if row["metric"] == metric and case.items() <= row["case"].items():
            return row
    raise LookupError(f"no {metric} of {case}")


def readme() -> str:
    """What the README says of the first experiment and of the peers."""
    rows = json.loads((RESULTS / "bbn8333-sim1.json").read_text())
    return f"{readme_gain(rows)}\n\n{readme_peers()}"


def readme_gain(rows: Result) -> str:
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


def readme_peers() -> str:
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


def faster(rows: Sequence[Result], simulator: str, variant: str) -> str:
    """The range of ratios to a simulator; empty if it was not measured."""
    ratios = [
        row["lasthop_is_faster_by"]
        for row in rows
        if row["simulator"] == simulator and variant in row["variant"]
    ]
    if not ratios:
        return ""
    return f"{min(ratios):.1f} to {max(ratios):.1f} times as many as {simulator}"


def dated(table: Callable[[Result], str]) -> Callable[[Result], str]:
    """A table, with the circumstances of its measurement below."""
    return lambda result: f"{table(result)} {circumstances(result)}"


TABLES: Mapping[str, tuple[str, Callable[[Result], str]]] = {
    "speed": ("speed.json", speed),
    "agreement-summary": ("agreement.json", agreement_tables.summary),
    "agreement-shifts": ("agreement.json", agreement_tables.shifts),
    "agreement-goodputs": ("agreement.json", agreement_tables.goodputs),
    "agreement-counts": ("agreement.json", agreement_tables.counts),
    "agreement-westwood": ("agreement.json", agreement_tables.westwood),
    "agreement-transfers": ("agreement.json", agreement_tables.transfers),
    "agreement-causes": ("agreement.json", agreement_tables.causes),
    "agreement-moved": ("agreement.json", agreement_tables.moved),
    "agreement-about": ("agreement.json", circumstances),
    "cluster": ("cluster.json", cluster),
    "fidelity": ("fidelity.json", fidelity),
    "interop": ("interop.json", interop),
    "throughput": ("throughput.json", throughput),
    "relay": ("relay.json", relay),
    "marker": ("marker.json", marker),
    "short-messages": (short_messages.FILE, short_messages.table),
    "field": ("field.json", field_tables.hops),
    "field-long": ("field-long.json", field_tables.long),
    "field-machine": ("field-machine.json", field_tables.machine),
    "field-outage": ("field-outage.json", field_tables.outage),
    "field-roaming": ("field-roaming.json", field_tables.roaming),
    "field-notify": ("field-notify.json", field_tables.notify),
    "field-chaos": ("field-chaos.json", field_tables.chaos),
    "field-attack": ("field-attack.json", field_tables.attack),
    "field-policies": ("field-policies.json", field_tables.policies),
    "spoofing": ("spoofing.json", spoofing),
    "worlds": ("worlds.json", worlds),
    **{name: ("satellite.json", dated(table)) for name, table in satellite.TABLES.items()},
    "beside": ("beside.json", beside),
    "rack": ("rack.json", rack),
    "bbr-losses": (bbr.FILE.name, bbr.losses),
    "bbr-shares": (bbr.FILE.name, bbr.shares),
    "bbr": (bbr.FILE.name, bbr.others),
    "packetdrill": ("packetdrill.json", packetdrill),
    "packetdrill-scripts": ("packetdrill.json", packetdrill_scripts),
    "packetdrill-beyond": ("packetdrill-beyond.json", packetdrill),
    "packetdrill-beyond-scripts": ("packetdrill-beyond.json", packetdrill_scripts),
    **{
        f"obanaik2003-fairness-{what}": ("obanaik2003-calibration.json", table)
        for what, table in obanaik_calibration.TABLES.items()
    },
    **{
        f"ishac2001-{what}": ("ishac2001-calibration.json", table)
        for what, table in ishac_calibration.TABLES.items()
    },
    **{
        f"yavatkar1994-{what}": ("yavatkar1994-calibration.json", table)
        for what, table in yavatkar_calibration.TABLES.items()
    },
    **{
        f"{publication}-testbed": (f"{publication}-testbed.json", table)
        for publication, table in on_testbed.TABLES.items()
    },
}


# --- Publications ---


def of_publications() -> Iterator[tuple[str, str]]:
    """Name and Markdown of every table of every publication: what its book says of each
    experiment, the answers, the published numbers, and how long it takes."""
    for publication, names in publications.publications().items():
        file = publication.replace("/", "-")
        yield f"{file}-about", spent(json.loads((RESULTS / f"{file}-about.json").read_text()))
        shown = publications.book(publication)
        for name in names:
            rows = json.loads((RESULTS / f"{file}-{name}.json").read_text())
            explained = RESULTS / f"{file}-{name}-explanations.json"
            if explained.exists():
                rows += [
                    {"metric": book.EXPLAINED, **row} for row in json.loads(explained.read_text())
                ]
            yield f"{file}-{name}-answers", book.statements(rows)
            yield f"{file}-{name}-published", book.published(rows)
            for what, table in shown[name].all.items():
                yield f"{file}-{name}-{what}", table.markdown(rows)


def spent(about: Result) -> str:
    """The CPU time of each experiment, and the machine."""
    seconds: dict[str, list[str]] = {}
    for row in about["rows"]:
        words = f"{row['name']} {row['cpu_s']:.0f} s"
        seconds.setdefault(circumstances(row), []).append(words)
    return "\n\n".join(
        f"Seconds of one core: {', '.join(words)}. {on_what}" for on_what, words in seconds.items()
    )
