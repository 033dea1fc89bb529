"""What may run at the gateway of a path: nothing, a proxy, or `lasthopd`."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import record
from field_path import LAN_DELAY, Hop, Place
from namespaces import Problem, call, files_allowed, inside, listens, running, set_congestion

#: The port where proxies listen.
PROXY_PORT = 5000
#: Files that a proxy opens for a connection at most: two sockets and two pipes.
FILES_EACH = 6
#: The UDP port of gateways.
PEER_PORT = 51_995

#: Seconds after which gateways of a pair know the hop between them.
SETTLE_S = 2.0

#: What may carry connections.
KINDS: Mapping[str, str] = {
    "direct": "direct",
    "pepsal": "PEPsal",
    "haproxy": "HAProxy",
    "lasthopd": "lasthopd",
}
Guard = Callable[[], None]
"""Fails if no packet has passed what runs at the gateway."""


@dataclass(frozen=True)
class Candidate:
    """What carries the connections."""

    name: str
    #: A key of `KINDS`.
    kind: str
    #: The congestion control towards the user: the server's own, or the gateway's. `lasthopd` has
    #: its default.
    congestion: str = "cubic"
    #: The mode of `lasthopd`, and whether it is told the rate of the hop.
    mode: str = "spoof"
    rate: bool = True
    #: The threads of `lasthopd` or HAProxy. PEPsal has as many as it likes.
    workers: int = 1

    @property
    def is_proxy(self) -> bool:
        """Whether it has sockets of the kernel's for each connection."""
        return self.kind in ("pepsal", "haproxy")

    @contextlib.contextmanager
    def at(self, place: Place, programs: Mapping[str, Path]) -> Iterator[tuple[int | None, Guard]]:
        """Runs it at a gateway; its process id is that of the process that carries packets."""
        if self.kind == "direct":
            yield None, lambda: None
        elif self.kind == "lasthopd":
            with contextlib.ExitStack() as stack:
                if self.mode == "pair":
                    stack.enter_context(far_gateway(programs["lasthopd"], place))
                yield stack.enter_context(self.gateway(programs["lasthopd"], place))
        else:
            with proxy(self.kind, programs[self.kind], place, self.workers) as found:
                set_congestion(found[0], self.congestion)
                yield found

    def configuration(self, place: Place) -> str:
        """The configuration of `lasthopd`."""
        text = configuration(self.mode, place.lan, place.wan, place.mbps if self.rate else None)
        text += f"workers = {self.workers}\n"
        return text + peer(place, 1) if self.mode == "pair" else text

    def scenario(self, program: Path, hop: Hop, folder: Path) -> str:
        """The scenario that `lasthopd` prints for it on a hop with independent losses."""
        config = folder / "predicted.toml"
        text = configuration(self.mode, "lan0", "wan0", hop.mbps if self.rate else None)
        config.write_text(text + ('peer_key = "-"\n' if self.mode == "pair" else ""))
        words: list[object] = [program, "scenario", "--config", config, "--lan-delay", LAN_DELAY]
        words += ["--rate", f"{hop.mbps:g} Mbit/s", "--delay", f"{hop.rtt / 2:g} ms"]
        words += ["--loss", hop.loss, "--queue", f"{hop.queue} packets"]
        done = subprocess.run([*map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise Problem(f"lasthopd scenario: {done.stderr.strip()}")
        return done.stdout

    @contextlib.contextmanager
    def gateway(self, program: Path, place: Place) -> Iterator[tuple[int, Guard]]:
        """`lasthopd` at the gateway."""
        config = place.folder / "lasthopd.toml"
        config.write_text(self.configuration(place))

        socket = place.folder / "control"

        def state(socket: Path = socket) -> record.Row:
            words = [program, "status", "--json", "--socket", socket]
            status: record.Row = json.loads(call(place.namespace, *words))
            return status

        def is_connected() -> bool:
            """Whether both gateways of a pair know each other."""
            both = (socket, place.folder / "far")
            return all(state(one)["gauges"]["associations"] for one in both)

        def guard() -> None:
            if not state()["counters"]["split connections"]:
                raise Problem("lasthopd has carried no connection")

        def ready(printed: str) -> bool:
            runs = "running" in printed
            return runs and (self.mode != "pair" or is_connected())

        settle_s = SETTLE_S if self.mode == "pair" else 0.0

        words = [program, "run", "--config", config, "--socket", socket]
        with running(inside(place.namespace, *words), ready) as process:
            time.sleep(settle_s)
            yield process.pid, guard


def configuration(mode: str, lan: str, wan: str, mbps: float | None) -> str:
    """The configuration of a gateway with the hop's rate."""
    rate = f'rate = "{mbps:g} Mbit/s"\n' if mbps else ""
    return f'lan = "{lan}"\nwan = "{wan}"\nmode = "{mode}"\n{rate}'


def peer(place: Place, other: int) -> str:
    """What one of two gateways knows of the other one."""
    key = (place.folder / f"public-{other}").read_text().strip()
    return (
        f'peer = "{place.addresses[other]}:{PEER_PORT}"\npeer_key = "{key}"\n'
        f'key = "{place.folder / f"private-{1 - other}"}"\n'
    )


@contextlib.contextmanager
def far_gateway(program: Path, place: Place) -> Iterator[None]:
    """The other gateway of a pair, with keys for both."""
    assert place.far is not None
    for end in range(2):
        private = place.folder / f"private-{end}"
        public = call(place.namespace, program, "key", "--file", private)
        (place.folder / f"public-{end}").write_text(public)
    config = place.folder / "far.toml"
    config.write_text(configuration("pair", "link2", "link1", place.mbps) + peer(place, 0))
    run = [program, "run", "--config", config, "--socket", place.folder / "far"]
    with running(inside(place.far, *run), lambda printed: "running" in printed):
        yield


HAPROXY = f"""
global
    maxconn {{connections}}
    nbthread {{threads}}
defaults
    mode tcp
    option splice-auto
    timeout connect 30s
    timeout client 1h
    timeout server 1h
listen all
    bind 0.0.0.0:{PROXY_PORT} transparent
    option transparent
"""
#: What arrives from the hop goes to the proxy, as README.md of PEPsal has it. The proxies connect
#: to the server in their own name.
REDIRECT = """
table ip field {{
    chain divert {{
        type filter hook prerouting priority mangle
        iifname "{wan}" meta l4proto tcp counter tproxy to :{port} meta mark set 1 accept
    }}
}}
"""


@contextlib.contextmanager
def proxy(kind: str, program: Path, place: Place, threads: int) -> Iterator[tuple[int, Guard]]:
    """A transparent proxy for all TCP connections of the user's."""
    at = place.namespace
    connections = files_allowed() // FILES_EACH - 50
    words = [str(program), "-p", str(PROXY_PORT), "-c", str(connections), "-n"]
    if kind == "haproxy":
        config = place.folder / "haproxy.cfg"
        config.write_text(HAPROXY.format(connections=connections, threads=threads))
        words = [str(program), "-db", "-q", "-f", str(config)]
    rules = place.folder / "redirect.nft"
    rules.write_text(REDIRECT.format(wan=place.wan, port=PROXY_PORT))

    def guard() -> None:
        found = re.search(r"packets (\d+)", call(at, "nft", "list", "table", "ip", "field"))
        if not found or not int(found[1]):
            raise Problem(f"no packet has passed {kind}")

    with running(inside(at, *words), lambda _: listens(at, PROXY_PORT)) as process:
        call(at, "ip", "rule", "add", "fwmark", "1", "lookup", "100")
        call(at, "ip", "route", "add", "local", "default", "dev", "lo", "table", "100")
        call(at, "nft", "-f", rules)
        try:
            yield process.pid, guard
        finally:
            call(at, "nft", "delete", "table", "ip", "field")
            call(at, "ip", "rule", "del", "fwmark", "1", "lookup", "100")


def behind(candidate: Candidate) -> str:
    """The congestion control of the server: it changes only where there is no gateway."""
    return candidate.congestion if candidate.kind == "direct" else "cubic"


def can_run(candidate: Candidate, programs: Mapping[str, Path]) -> bool:
    """Whether there is the program."""
    return candidate.kind == "direct" or candidate.kind in programs
