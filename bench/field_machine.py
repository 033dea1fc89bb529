"""What a gateway costs the machine: a fast network of veth devices, without an emulator.

Throughput and CPU time of one and of a hundred flows (iperf3), connections per second and the time
of a request (ab, with HAProxy as the web server), the memory of 10,000 idle connections (fewer
where a proxy may not open enough files). CPU time is that of the whole machine (/proc/stat), with
both ends, so nothing else may run on it.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import field_gateways
import field_path
import namespaces
import record
from field_gateways import Candidate

CANDIDATES = (
    *(Candidate(name, kind) for kind, name in field_gateways.KINDS.items()),
    Candidate("HAProxy, two threads", "haproxy", workers=2),
    Candidate("lasthopd, two workers", "lasthopd", workers=2),
)
SECONDS = 4
FLOWS = (1, 100)
CROWD = 10_000
#: Connections of a request each, so many at a time; requests on one connection.
REQUESTS, AT_ONCE, SERIAL = 10_000, 64, 3_000
#: Memory is measured once it changes by less in a second, or after so many seconds.
SETTLED_KIB, SETTLING_S = 512, 30
#: Seconds that a program may take besides.
PATIENCE = 60
IPERF = 5201
NODES = ("server", "gateway", "user")
#: Measures a gateway by the namespaces and its process.
Measure = Callable[[Mapping[str, str], int | None], Iterator[tuple[str, float]]]
#: The address of the server.
SERVER = "10.66.1.1"
WEB = f"""
global
    maxconn 2000
defaults
    mode http
    timeout connect 30s
    timeout client 1h
    timeout server 1h
frontend web
    bind {SERVER}:{field_path.PORT}
    http-request return status 200 content-type text/plain string "{"x" * 100}"
"""


@contextlib.contextmanager
def lan() -> Iterator[dict[str, str]]:
    """The namespaces of server, gateway and user, with veth devices between them."""
    with chain(NODES) as names:
        yield names


@contextlib.contextmanager
def chain(nodes: Sequence[str]) -> Iterator[dict[str, str]]:
    """The namespaces of nodes in a row, with the network 10.66.N.0/24 between two, .1 at the first.

    The devices of a node in the middle are `lan` and `wan`, which is at the hop: the second link.
    """
    names = {what: f"field-{os.getpid()}-{what}" for what in nodes}
    first, last = nodes[0], nodes[-1]
    try:
        for node, name in names.items():
            subprocess.run(["ip", "netns", "add", name], check=True)
            namespaces.call(name, "ip", "link", "set", "lo", "up")
            namespaces.sysctl(
                name,
                tcp_no_metrics_save=1,
                tcp_max_syn_backlog=65_535,
                ip_local_port_range="1024 65000",
                tcp_tw_reuse=1,
                ip_forward=int(node not in (first, last)),
            )
            call = ["sysctl", "-qw", "net.core.somaxconn=65535"]
            call += ["net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"]
            if node not in (first, last):
                call.append("net.ipv6.conf.all.forwarding=1")
            namespaces.call(name, *call)
        for number, (left, right) in enumerate(itertools.pairwise(nodes), 1):
            hop = "wan" if number == 2 else "lan"
            one = hop if left != first else "end"
            other = hop if right != last else "end"
            peer = ["peer", "name", other, "netns", names[right]]
            namespaces.call(names[left], "ip", "link", "add", one, "type", "veth", *peer)
            for node, device, end in ((left, one, 1), (right, other, 2)):
                address = f"10.66.{number}.{end}/24"
                namespaces.call(names[node], "ip", "address", "add", address, "dev", device)
                namespaces.call(names[node], "ip", "link", "set", device, "up")
        for index, node in enumerate(nodes):
            # Towards the ends.
            for number in range(1, len(nodes)):
                if number < index:
                    via = f"10.66.{index}.1"
                elif number > index + 1:
                    via = f"10.66.{index + 1}.2"
                else:
                    continue
                namespaces.call(
                    names[node], "ip", "route", "add", f"10.66.{number}.0/24", "via", via
                )
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def busy_s() -> float:
    """The CPU time that the machine has spent, seconds."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, words[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def throughput(names: Mapping[str, str], of: Sequence[int] = FLOWS) -> Iterator[tuple[str, float]]:
    """Gb/s, and CPU seconds per GB, of some flows from the server to the user."""
    server = namespaces.inside(names["server"], "iperf3", "-s", "--forceflush")
    with namespaces.running(server, lambda printed: "listening" in printed):
        for flows in of:
            words = ["iperf3", "-c", SERVER, "-R", "-J", "-C", "cubic", "-t", SECONDS, "-P", flows]
            start, before = time.monotonic(), busy_s()
            done = subprocess.run(
                namespaces.inside(names["user"], *words),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            spent, seconds = busy_s() - before, time.monotonic() - start
            found = json.loads(done.stdout)
            if "error" in found:
                raise namespaces.Problem(f"iperf3: {found['error']}")
            received = found["end"]["sum_received"]
            yield f"gbps_{flows}", received["bits_per_second"] / 1e9
            yield f"cpu_s_per_gb_{flows}", spent / (received["bytes"] / 1e9)
            yield f"cores_busy_{flows}", spent / seconds


def bench(names: Mapping[str, str], *options: object) -> tuple[float, dict[int, float]]:
    """Requests per second, and their time by the percentage that is faster, milliseconds."""
    with tempfile.NamedTemporaryFile("r") as table:
        words = ["ab", "-q", "-e", table.name, *options, f"http://{SERVER}:{field_path.PORT}/"]
        done = subprocess.run(
            namespaces.inside(names["user"], *words),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        if done.returncode:
            raise namespaces.Problem(f"ab: {done.stderr.strip()}")
        rows = list(csv.reader(table))[1:]
    failed = re.search(r"Failed requests: +(\d+)", done.stdout)
    rate = re.search(r"Requests per second: +([\d.]+)", done.stdout)
    if not failed or not rate or int(failed[1]):
        raise namespaces.Problem(f"ab: requests have failed: {done.stdout}")
    return float(rate[1]), {int(percent): float(ms) for percent, ms in rows}


def requests(names: Mapping[str, str], haproxy: Path) -> Iterator[tuple[str, float]]:
    """Connections per second, and the time of a request on a connection that persists."""
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as config:
        config.write(WEB)
        config.flush()
        words = namespaces.inside(names["server"], haproxy, "-db", "-q", "-f", config.name)
        ready = lambda _: namespaces.listens(names["server"], field_path.PORT)  # noqa: E731
        with namespaces.running(words, ready) as process:
            namespaces.set_congestion(process.pid, "cubic")
            yield "connections_per_s", bench(names, "-n", REQUESTS, "-c", AT_ONCE)[0]
            times = bench(names, "-k", "-t", SECONDS, "-n", SERIAL, "-c", 1)[1]
            for name, percent in (("request_ms", 50), ("request_ms_99", 99)):
                # ab says 0 where it has too few requests for that.
                if times[percent]:
                    yield name, times[percent]


def memory(
    names: Mapping[str, str], process: int | None, crowd: int
) -> Iterator[tuple[str, float]]:
    """KiB of an idle connection: of the gateway's process, and of the machine with both ends."""
    idle = ["python3", field_path.HERE / "idle.py"]
    server = namespaces.inside(names["server"], *idle, "serve", SERVER, field_path.PORT)
    user = namespaces.inside(names["user"], *idle, "hold", SERVER, field_path.PORT, crowd)
    with namespaces.running(server, lambda printed: "Serving" in printed):
        yield "idle_connections", crowd
        before, available = resident_kib(process), settled_kib()
        with namespaces.running(user, lambda printed: "Held" in printed, PATIENCE):
            if process is not None:
                yield "process_kib", (resident_kib(process) - before) / crowd
            yield "machine_kib", (available - available_kib()) / crowd


def resident_kib(process: int | None) -> int:
    """The memory of a process."""
    if process is None:
        return 0
    return number(Path(f"/proc/{process}/status"), "VmRSS")


def available_kib() -> int:
    """The memory that the machine has left."""
    return number(Path("/proc/meminfo"), "MemAvailable")


def settled_kib() -> int:
    """The memory that the machine has left, once the kernel has freed that of namespaces that are
    gone, for which it takes some seconds."""
    before = available_kib()
    for _ in range(SETTLING_S):
        time.sleep(1)
        now = available_kib()
        if abs(now - before) < SETTLED_KIB:
            return now
        before = now
    return before


def number(file: Path, key: str) -> int:
    """A number of a file of lines with keys."""
    lines = file.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def one(
    programs: Mapping[str, Path], candidate: Candidate, absent: set[str]
) -> Iterator[tuple[str, float]]:
    """All values of one candidate."""
    # The ends open one for each connection.
    each = field_gateways.FILES_EACH if candidate.is_proxy else 1
    crowd = min(CROWD, namespaces.files_allowed() // each - 100)
    parts: Mapping[str, Measure] = {
        "iperf3": lambda names, _: throughput(names),
        "ab": lambda names, _: requests(names, programs["haproxy"]),
        "memory": lambda names, process: memory(names, process, crowd),
    }
    for part, values in parts.items():
        if part in absent:
            continue
        with lan() as names, tempfile.TemporaryDirectory() as folder:
            place = field_path.Place(names["gateway"], "lan", "wan", Path(folder))
            with candidate.at(place, programs) as (process, guard):
                try:
                    yield from values(names, process)
                except (namespaces.Problem, subprocess.TimeoutExpired) as problem:
                    # What cannot be measured is missing in the results, and is said.
                    record.say(f"{candidate.name}: {part}: {problem}")
                    continue
                guard()


def measured(programs: Mapping[str, Path], repeats: int) -> Iterator[record.Row]:
    """Every candidate `repeats` times in turn; then one row for each."""
    absent = {tool for tool in ("iperf3", "ab") if not shutil.which(tool)}
    for tool in absent:
        words = f"apt-get install {namespaces.PACKAGES[tool]}"
        record.say(f"WITHOUT {tool.upper()}: not installed; try: {words}")
    if "haproxy" not in programs:
        absent.add("ab")
    candidates = [
        candidate for candidate in CANDIDATES if field_gateways.can_run(candidate, programs)
    ]
    found: dict[str, dict[str, list[float]]] = {candidate.name: {} for candidate in candidates}
    for _ in range(repeats):
        for candidate in candidates:
            for name, value in one(programs, candidate, absent):
                found[candidate.name].setdefault(name, []).append(value)
                record.say(f"{candidate.name}: {name} {value:.4g}")
    for name, values in found.items():
        row: record.Row = {"what": name}
        for what, several in values.items():
            row[what] = record.spread(several)
        yield row
