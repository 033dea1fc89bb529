"""Downloads through `lasthopd` under attack, and the memory and the CPU time of the gateway.

python bench/field_attack.py [--rounds 5] [--rates 100000 0] [spoof] [split] [at-once] [pair]

In each round, a user downloads over a hop three times: in quiet; while an attacker floods the
gateway by a device of its own, so that it takes nothing of the hop; and while the same packets
flood another router of the same machine, which is without a gateway: what goodput is lost then is
lost to the attacker's use of the processor. A rate of 0 is as fast as the attacker can. It needs
root.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import field_machine
import field_packets as packets
import field_path
import record
from field_chaos import Gateway
from field_packets import Draw
from field_path import PEER_PORT, PORT, Nodes, Place, Problem, call, inside

from lasthop.stats import ratio_interval

#: The modes, and their keys.
MODES: Mapping[str, str] = {
    "spoof": 'mode = "spoof"',
    "split": 'mode = "split"',
    "at-once": 'mode = "split"\nconnect = "at-once"',
    "pair": 'mode = "pair"',
}
#: The rate of the hop, Mbit/s, and the time that its queue lasts. The kernel carries it (tbf), and
#: not the emulator, which would take most of a core.
RATE, QUEUE = 50, "40ms"
NODES = ("server", "gateway", "far", "user")
#: The addresses of both ends of the hop, and of the user.
ENDS, USER = ("10.66.2.1", "10.66.2.2"), "10.66.3.2"
#: Seconds of a download.
SECONDS = 3.0
#: Connections that are made afterwards, while the attack goes on.
SHORT = 3
#: Packets of a flood, which are sent over and over again. As many strays have a million addresses.
PACKETS, STRAYS, DATAGRAMS = 300_000, 500_000, 20_000
#: The attacker's network, those of the addresses that it forges and of hosts that never answer, and
#: that of a server.
ATTACKERS, FORGED = "10.77.0.1/24", IPv4Network("100.64.0.0/11")
SILENT, TARGET = IPv4Network("100.96.0.0/11"), IPv4Network("10.78.0.2/32")
#: The first port of the victim's connections, which the attacker knows.
VICTIM = 20_000


@dataclass
class Flood:
    """An attacker's device, with the program that floods."""

    process: subprocess.Popen[str]

    def start(self, file: Path, rate: int) -> None:
        """Sends the packets of a file."""
        self._say(f"{file} {rate}")

    def stop(self) -> tuple[int, float]:
        """Stops; how many were sent, and in how many seconds."""
        self._say("")
        sent, seconds = self.heard().split()
        return int(sent), float(seconds)

    def heard(self) -> str:
        """A line of the program's."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Problem("the flood has ended")
        return line

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()


@dataclass
class Site:
    """A path whose gateway can be attacked."""

    path: Nodes
    folder: Path
    gateways: list[Gateway]
    #: At the gateway, and at the router beside it.
    floods: dict[str, Flood]
    draw: Draw
    #: The client's port of the last connection.
    port: int = VICTIM
    #: By the case, packets that need not be made again.
    made: dict[str, Path] = field(default_factory=dict)

    @property
    def near(self) -> int:
        """The process of the gateway that is attacked."""
        process = self.gateways[0].process
        assert process is not None
        return process.pid

    @property
    def recorded(self) -> Path:
        """Datagrams of the last download in quiet."""
        return self.folder / "recorded"

    def datagrams(self) -> list[bytes]:
        """What they carry, data first."""
        found, rest = [], self.recorded.read_bytes()
        while rest:
            length = int.from_bytes(rest[:2])
            found.append(rest[30 : 2 + length])
            rest = rest[2 + length :]
        if not found:
            raise Problem("no datagrams were recorded")
        return found


Make = Callable[[Site], Iterator[bytes]]


@dataclass(frozen=True)
class Case:
    """An attack."""

    name: str
    make: Make
    modes: tuple[str, ...]
    #: Made anew in each round.
    is_fresh: bool = False
    #: The router drops packets whose addresses are not those of the attacker's network (RFC 2827).
    is_checked: bool = False

    @property
    def is_at_port(self) -> bool:
        """Whether it is an attack on the port of a pair."""
        return self.modes == ("pair",)


def at_port(site: Site, contents: Iterator[bytes], sources: IPv4Network | str) -> Iterator[bytes]:
    """Datagrams at the port of the gateway, from forged addresses or from the other gateway's."""
    to = (int(IPv4Address(site.path.ends[0])), PEER_PORT)
    of = IPv4Address(sources) if isinstance(sources, str) else sources
    return packets.datagrams(site.draw, of, to, contents, PEER_PORT)


def garbage(site: Site) -> Iterator[bytes]:
    """Random bytes."""
    return at_port(site, (site.draw.bytes(100) for _ in range(PACKETS)), FORGED)


def replayed(site: Site) -> Iterator[bytes]:
    """What has just come from the other gateway, once more."""
    return at_port(site, iter(site.datagrams()), site.path.ends[1])


def forged(site: Site) -> Iterator[bytes]:
    """Right headers with the next numbers, but random contents."""
    header = next(content for content in reversed(site.datagrams()) if content[1] == 4)
    number = int.from_bytes(header[6:14])

    def contents() -> Iterator[bytes]:
        for step in range(DATAGRAMS):
            ahead = number + 10_000 + step
            yield header[:6] + ahead.to_bytes(8) + site.draw.bytes(1400 - 14)

    return at_port(site, contents(), site.path.ends[1])


def handshakes(site: Site) -> Iterator[bytes]:
    """Initiations of which nothing but the form is right."""
    start = bytes([1, 1]) + time.time_ns().to_bytes(8)
    contents = (start + site.draw.bytes(86 - len(start)) for _ in range(DATAGRAMS))
    return at_port(site, contents, FORGED)


def initiations(site: Site) -> Iterator[bytes]:
    """The first messages of handshakes that were recorded when the gateways started."""
    first = site.folder / "first"
    rest, found = first.read_bytes(), []
    while rest:
        length = int.from_bytes(rest[:2])
        packet, rest = rest[2 : 2 + length], rest[2 + length :]
        if packet[28:30] == bytes([1, 1]):
            found.append(packet[28:])
    if not found:
        raise Problem("no initiation was recorded")
    return at_port(site, iter(found), FORGED)


def openings(site: Site) -> Iterator[bytes]:
    """SYNs with random addresses to a server, to a port without one, and to silent hosts."""
    return packets.openings(site.draw, FORGED, [TARGET, SILENT], PACKETS)


def resets(site: Site) -> Iterator[bytes]:
    """RSTs with random numbers to both ends of the victim's next connection."""
    server = (int(IPv4Address(site.path.address)), PORT)
    return packets.resets(site.draw, (server, (int(IPv4Address(USER)), site.port + 1)), PACKETS)


def strays(site: Site) -> Iterator[bytes]:
    """Packets of no connection, of a million addresses."""
    return packets.strays(site.draw, FORGED, SILENT, STRAYS)


ALL = tuple(MODES)
CASES = (
    Case("garbage", garbage, ("pair",)),
    Case("replayed datagrams", replayed, ("pair",), is_fresh=True),
    Case("forged datagrams", forged, ("pair",), is_fresh=True),
    Case("forged handshakes", handshakes, ("pair",)),
    Case("replayed handshakes", initiations, ("pair",)),
    Case("SYNs", openings, ALL),
    Case("SYNs, addresses checked", openings, ("spoof", "split"), is_checked=True),
    Case("resets", resets, ALL, is_fresh=True),
    Case("a million addresses", strays, ("spoof", "split", "pair")),
)

# --- the path ---


@contextlib.contextmanager
def router(name: str, namespace: str, program: Path) -> Iterator[Flood]:
    """Gives a router an attacker's device, and a network with a server behind another one."""
    target = f"field-{os.getpid()}-{name}"
    subprocess.run(["ip", "netns", "add", target], check=True)
    with contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, ["ip", "netns", "del", target])
        peer = ["peer", "name", "end", "netns", target]
        call(namespace, "ip", "link", "add", "target", "type", "veth", *peer)
        for node, device, address in (
            (namespace, "target", "10.78.0.1/24"),
            (target, "end", f"{TARGET.network_address}/24"),
        ):
            call(node, "ip", "address", "add", address, "dev", device)
            call(node, "ip", "link", "set", device, "up")
        call(target, "ip", "route", "add", "default", "via", "10.78.0.1")
        call(namespace, "ip", "route", "add", SILENT, "via", TARGET.network_address)
        field_path.sysctl(namespace, ip_forward=1, **{"conf.all.rp_filter": 0})
        serve = ["python3", "-u", "-m", "http.server", "80", "--bind", TARGET.network_address]
        server = inside(target, *serve)
        stack.enter_context(field_path.running(server, lambda printed: "Serving" in printed))
        process = subprocess.Popen(
            inside(namespace, program, "attack", ATTACKERS),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        # The end of its standard input ends it.
        stack.callback(process.communicate)
        flood = Flood(process)
        flood.heard()
        call(namespace, "ip", "route", "add", FORGED, "dev", "attack")
        yield flood


@contextlib.contextmanager
def beside(program: Path, gateway_address: str) -> Iterator[Flood]:
    """A router without a gateway, which takes what is for the gateway, and what is for others."""
    name = f"field-{os.getpid()}-beside"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        call(name, "ip", "link", "set", "lo", "up")
        call(name, "ip", "address", "add", f"{gateway_address}/32", "dev", "lo")
        with router("target-beside", name, program) as flood:
            call(name, "ip", "route", "add", "default", "via", TARGET.network_address)
            yield flood
    finally:
        subprocess.run(["ip", "netns", "del", name])


@contextlib.contextmanager
def recorder(path: Nodes, file: Path, most: int) -> Iterator[None]:
    """Records datagrams that arrive at the gateway from the other one."""
    words = ["python3", field_path.HERE / "recorder.py", "wan", PEER_PORT, most, file]
    with field_path.running(inside(path.gateway, *words), lambda said: "Recording" in said):
        yield


@contextlib.contextmanager
def gateways(program: Path, mode: str, path: Nodes, folder: Path) -> Iterator[list[Gateway]]:
    """The gateways of a mode, which run; the first one is attacked."""
    place = Place(path.gateway, "lan", "wan", folder, RATE, path.far, path.ends)
    rate = f'{MODES[mode]}\nrate = "{RATE} Mbit/s"\n'
    text = f'lan = ["lan", "attack", "target"]\nwan = "wan"\n{rate}'
    near = Gateway(program, path.gateway, folder, "near", text)
    found = [near]
    with contextlib.ExitStack() as stack:
        if mode == "pair":
            for end in range(2):
                words = [program, "key", "--file", folder / f"private-{end}"]
                (folder / f"public-{end}").write_text(call(path.gateway, *words))
            near.configuration += field_path.peer(place, 1)
            far = f'lan = "lan"\nwan = "wan"\n{rate}{field_path.peer(place, 0)}'
            found.append(Gateway(program, path.far, folder, "far", far))
            stack.enter_context(recorder(path, folder / "first", 1000))
        try:
            for gateway in reversed(found):
                gateway.start()
            while mode == "pair" and not (near.ask() or {})["gauges"]["associations"]:
                time.sleep(0.1)
            stack.close()
            yield found
        finally:
            for gateway in found:
                if gateway.process is not None and gateway.process.poll() is None:
                    gateway.end(signal.SIGTERM)


@contextlib.contextmanager
def attacked(programs: Mapping[str, Path], mode: str) -> Iterator[tuple[Site, Path]]:
    """The path with the gateways and the attackers, and a file to be downloaded."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        names = stack.enter_context(field_machine.chain(NODES))
        path = Nodes(**names, address=field_machine.SERVER, ends=ENDS, health={})
        for node in (path.gateway, path.far):
            queue = ["tbf", "rate", f"{RATE}mbit", "burst", "16kb", "latency", QUEUE]
            call(node, "tc", "qdisc", "add", "dev", "wan", "root", *queue)
        flood = stack.enter_context(router("target", path.gateway, programs["flood"]))
        other = stack.enter_context(beside(programs["flood"], path.ends[0]))
        files = folder / "files"
        files.mkdir()
        (files / "large").write_bytes(os.urandom(round(RATE * 1e6 / 8 * SECONDS)))
        (files / "small").write_bytes(b"small")
        stack.enter_context(field_path.serving(path, files, "cubic"))
        found = stack.enter_context(gateways(programs["lasthopd"], mode, path, folder))
        floods = {"attack": flood, "beside": other}
        yield Site(path, folder, found, floods, Draw(1)), files


# --- measuring ---


def cpu_s(process: int) -> tuple[float, float]:
    """The CPU time of a process, seconds: its own, and that of the kernel in its name."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own, kernel = (int(word) / os.sysconf("SC_CLK_TCK") for word in words[11:13])
    return own, kernel


def missed(site: Site) -> int:
    """Packets that had no room before the gateway: in its devices, and in its socket."""
    at = site.path.gateway
    links = json.loads(call(at, "ip", "-j", "-s", "link"))
    devices = (link for link in links if link["ifname"] in ("lh-lan", "lh-wan"))
    dropped = sum(int(link["stats64"]["tx"]["dropped"]) for link in devices)
    rows = call(at, "cat", "/proc/net/udp", "/proc/net/udp6").splitlines()
    ours = (row.split() for row in rows if f":{PEER_PORT:04X} " in row)
    return dropped + sum(int(row[-1]) for row in ours)


def download(site: Site, file: Path, seconds: float) -> record.Row:
    """A download from the next port."""
    site.port += 1
    return field_path.download(site.path, file, seconds, "--local-port", site.port)


def window(
    site: Site, files: Path, flood: Flood | None, file: Path | None, rate: int
) -> record.Row:
    """A download, and some short ones after it, perhaps under attack."""
    if flood is not None and file is not None:
        flood.start(file, rate)
        time.sleep(0.2)
    cpu, began, lost = cpu_s(site.near), time.monotonic(), missed(site)
    before = status(site)
    row = download(site, files / "large", SECONDS)
    wall, spent = time.monotonic() - began, cpu_s(site.near)
    row["own"], row["kernel"] = ((a - b) / wall for a, b in zip(spent, cpu, strict=True))
    row["received_per_s"] = (received(status(site)) - received(before)) / wall
    row["missed_per_s"] = (missed(site) - lost) / wall
    row["during_kib"] = field_machine.resident_kib(site.near)
    short = [download(site, files / "small", 5.0) for _ in range(SHORT)]
    row["short_s"] = statistics.median(one["seconds"] for one in short)
    row["ok"] &= all(one["ok"] and one["bytes"] for one in short)
    what = "split connections"
    row["split"] = status(site)["counters"][what] - before["counters"][what]
    if flood is not None:
        sent, seconds = flood.stop()
        row["per_s"] = sent / seconds
        time.sleep(0.5)
    return row


def status(site: Site) -> record.Row:
    """What the gateway says of itself."""
    found = site.gateways[0].ask()
    if found is None:
        raise Problem(f"the gateway does not answer: {site.gateways[0].log()}")
    return found


def received(status: record.Row) -> int:
    """The packets that came from the LAN."""
    return int(status["packets"]["lan"]["received"])


def one(site: Site, files: Path, case: Case, rate: int, rounds: int) -> record.Row:
    """An attack, in some rounds of a download in quiet, one under attack, and one beside it."""
    found: dict[str, list[record.Row]] = {"quiet": [], "attack": [], "beside": []}
    before = field_machine.resident_kib(site.near)
    refused = status(site)["counters"]
    if case.is_checked:
        call(site.path.gateway, "ip", "route", "del", FORGED, "dev", "attack")
        checks = {f"conf.{device}.rp_filter": 1 for device in ("attack", "lan")}
        field_path.sysctl(site.path.gateway, **checks)
    for _ in range(rounds):
        with contextlib.ExitStack() as stack:
            if site.gateways[1:]:
                stack.enter_context(recorder(site.path, site.recorded, DATAGRAMS))
            found["quiet"].append(window(site, files, None, None, 0))
        for what, flood in site.floods.items():
            if case.is_fresh or case.name not in site.made:
                site.made[case.name] = site.folder / "packets" / case.name
                site.made[case.name].parent.mkdir(exist_ok=True)
                packets.write(site.made[case.name], case.make(site))
            found[what].append(window(site, files, flood, site.made[case.name], rate))
    after = status(site)["counters"]
    goodput = {what: [row["mbps"] for row in rows] for what, rows in found.items()}
    of_attack = found["attack"]

    def work(of: str) -> list[float]:
        """For each packet that the gateway got."""
        times = []
        for row, quiet in zip(of_attack, found["quiet"], strict=True):
            got = row["received_per_s"] - quiet["received_per_s"]
            if case.is_at_port:
                got = row["per_s"] - row["missed_per_s"]
            if got > 1000:
                times.append(1e6 * (row[of] - quiet[of]) / got)
        return times

    def share(one: str, other: str) -> list[float]:
        ratio = ratio_interval(goodput[one], goodput[other])
        return [round(100 * value, 2) for value in (ratio.lo, ratio.value, ratio.hi)]

    def middle(key: str, what: str = "attack") -> float:
        return round(float(statistics.median(row[key] for row in found[what])), 3)

    return {
        "case": case.name,
        "rate": rate,
        "per_s": round(middle("per_s")),
        "beside_per_s": round(middle("per_s", "beside")),
        "goodput_mbps": {what: spread(values, 2) for what, values in goodput.items()},
        "attack_to_quiet": share("attack", "quiet"),
        "beside_to_quiet": share("beside", "quiet"),
        "attack_to_beside": share("attack", "beside"),
        "own_us": spread(work("own"), 2),
        "kernel_us": spread(work("kernel"), 2),
        "gateway_cores": {
            what: round(middle("own", what) + middle("kernel", what), 3) for what in found
        },
        "received_per_s": round(middle("received_per_s")),
        "missed_per_s": round(middle("missed_per_s")),
        "short_ms": {what: round(1e3 * middle("short_s", what), 1) for what in found},
        "memory_kib": [
            before,
            max(row["during_kib"] for row in of_attack),
            field_machine.resident_kib(site.near),
        ],
        "not_split": {
            name: value - refused.get(name, 0)
            for name, value in after.items()
            if name.startswith("connections not split") and value > refused.get(name, 0)
        },
        "ok": all(row["ok"] for rows in found.values() for row in rows),
    }


def spread(values: Sequence[float], digits: int) -> list[float]:
    """The least, the median and the largest; none of none."""
    if not values:
        return []
    middle = statistics.median(values)
    return [round(value, digits) for value in (min(values), middle, max(values))]


def run(programs: Mapping[str, Path], mode: str, given: argparse.Namespace) -> Iterator[record.Row]:
    """All attacks in a mode."""
    for case in CASES:
        if mode not in case.modes or (given.cases and case.name not in given.cases):
            continue
        # A gateway of its own: what an attack leaves behind is nothing to the next one.
        with attacked(programs, mode) as (site, files):
            for rate in given.rates:
                row = {"mode": mode, **one(site, files, case, rate, given.rounds)}
                record.say(str(row))
                yield row


def together(file: Path, rows: list[record.Row]) -> list[record.Row]:
    """The rows of a file with these in their places."""

    def key(row: record.Row) -> tuple[int, int, int]:
        names = [case.name for case in CASES]
        return ALL.index(row["mode"]), names.index(row["case"]), -row["rate"]

    kept = json.loads(file.read_text())["rows"] if file.exists() else []
    return [row for _, row in sorted({key(row): row for row in [*kept, *rows]}.items())]


def main(arguments: Sequence[str]) -> int:
    """Runs the modes, and keeps the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modes", nargs="*", metavar="MODE", help=f"of {', '.join(MODES)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rates", type=int, nargs="+", default=[100_000, 0])
    parser.add_argument("--cases", nargs="+", default=[], metavar="CASE")
    parser.add_argument("--add", action="store_true", help="keep the other rows of the file")
    parser.add_argument("--out", type=Path, default=record.RESULTS / "field-attack.json")
    given = parser.parse_args(arguments)
    modes = given.modes or list(MODES)
    if unknown := set(modes) - set(MODES):
        parser.error(f"no mode {', '.join(sorted(unknown))}: expected {', '.join(MODES)}")
    field_path.need("ip", "tc", "curl")
    field_path.ended_in_order()
    record.say("compiling lasthopd and the attacker")
    programs = {
        "lasthopd": field_path.build("lasthop-gateway", "--bin", "lasthopd") / "lasthopd",
        "flood": field_path.build("lasthop-live", "--example", "flood") / "examples" / "flood",
    }
    measured = [row for mode in modes for row in run(programs, mode, given)]
    rows = together(given.out, measured) if given.add else measured
    about = {"rounds": given.rounds, "seconds": SECONDS, "mbps": RATE}
    record.keep(given.out, {**record.circumstances(), **about, "rows": rows})
    return int(not all(row["ok"] for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
