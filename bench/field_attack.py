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
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import field_machine
import field_packets as packets
import field_path
import namespaces
import record
from field_gateways import PEER_PORT
from field_path import PORT
from field_site import (
    DATAGRAMS,
    FORGED,
    MODES,
    RATE,
    SECONDS,
    SILENT,
    TARGET,
    USER,
    Flood,
    Site,
    attacked,
    recorder,
)
from namespaces import Problem, call

from lasthop.stats import ratio_interval

#: Connections that are made afterwards, while the attack goes on.
SHORT = 3
#: Packets of a flood, which are sent over and over again. As many strays have a million addresses.
PACKETS, STRAYS = 300_000, 500_000


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
    """The right session and the next numbers, but random codes and contents."""
    header = next(content for content in reversed(site.datagrams()) if content[1] == 4)
    number = int.from_bytes(header[6:10])

    def contents() -> Iterator[bytes]:
        for step in range(DATAGRAMS):
            ahead = number + 10_000 + step
            yield header[:6] + ahead.to_bytes(4) + site.draw.bytes(1400 - 10)

    return at_port(site, contents(), site.path.ends[1])


def handshakes(site: Site) -> Iterator[bytes]:
    """Initiations of which nothing but the form is right."""
    start = bytes([2, 1]) + time.time_ns().to_bytes(8)
    contents = (start + site.draw.bytes(86 - len(start)) for _ in range(DATAGRAMS))
    return at_port(site, contents, FORGED)


def initiations(site: Site) -> Iterator[bytes]:
    """The first messages of handshakes that were recorded when the gateways started."""
    first = site.folder / "first"
    rest, found = first.read_bytes(), []
    while rest:
        length = int.from_bytes(rest[:2])
        packet, rest = rest[2 : 2 + length], rest[2 + length :]
        if packet[28:30] == bytes([2, 1]):
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

# --- measuring ---


def cpu_s(process: int) -> tuple[float, float]:
    """The CPU time of a process, seconds: its own, and that of the kernel in its name."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own, kernel = (int(word) / os.sysconf("SC_CLK_TCK") for word in words[11:13])
    return own, kernel


def waited_s(process: int) -> float:
    """How long its threads have waited for a processor that others had, seconds."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[1]) for task in tasks) / 1e9


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
    before, waited = status(site), waited_s(site.near)
    row = download(site, files / "large", SECONDS)
    wall, spent = time.monotonic() - began, cpu_s(site.near)
    row["own"], row["kernel"] = ((a - b) / wall for a, b in zip(spent, cpu, strict=True))
    row["waited"] = (waited_s(site.near) - waited) / wall
    row["received_per_s"] = (received(status(site)) - received(before)) / wall
    row["missed_per_s"] = (missed(site) - lost) / wall
    row["during_kib"] = field_machine.resident_kib(site.near)
    short = [download(site, files / "small", 5.0) for _ in range(SHORT)]
    row["short_s"] = statistics.median(one["seconds"] for one in short)
    row["ok"] &= all(one["ok"] for one in short)
    row["unanswered"] = sum(not one["bytes"] for one in short)
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
        namespaces.sysctl(site.path.gateway, **checks)
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
        "gateway_waited": {what: middle("waited", what) for what in found},
        "received_per_s": round(middle("received_per_s")),
        "missed_per_s": round(middle("missed_per_s")),
        "short_ms": {what: round(1e3 * middle("short_s", what), 1) for what in found},
        "short_unanswered": {
            what: sum(row["unanswered"] for row in rows) for what, rows in found.items()
        },
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


def place(row: record.Row) -> tuple[int, int, int]:
    """The order of rows in the table."""
    names = [case.name for case in CASES]
    return ALL.index(row["mode"]), names.index(row["case"]), -row["rate"]


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
    namespaces.need("ip", "tc", "curl")
    namespaces.ended_in_order()
    record.say("compiling lasthopd and the attacker")
    programs = {
        "lasthopd": field_path.lasthopd(),
        "flood": namespaces.build("lasthop-live", "--example", "flood") / "examples" / "flood",
    }
    measured = [row for mode in modes for row in run(programs, mode, given)]
    rows = record.together(given.out, measured, place) if given.add else measured
    about = {"rounds": given.rounds, "seconds": SECONDS, "mbps": RATE}
    record.keep(given.out, {**record.circumstances(), **about, "rows": rows})
    return int(not all(row["ok"] for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
