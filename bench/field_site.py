"""A path whose gateway can be attacked: a server, `lasthopd`, a hop, a user, and attackers.

Whatever is started here is ended with the `with` block in which it was started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path

import field_gateways
import field_machine
import field_path
import namespaces
from field_chaos import Gateway
from field_gateways import PEER_PORT
from field_packets import Draw
from field_path import Nodes, Place
from namespaces import Problem, call, inside

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
#: The attacker's network, those of the addresses that it forges and of hosts that never answer, and
#: that of a server.
ATTACKERS, FORGED = "10.77.0.1/24", IPv4Network("100.64.0.0/11")
SILENT, TARGET = IPv4Network("100.96.0.0/11"), IPv4Network("10.78.0.2/32")
#: Datagrams of a recording.
DATAGRAMS = 20_000
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
        namespaces.sysctl(namespace, ip_forward=1, **{"conf.all.rp_filter": 0})
        serve = ["python3", "-u", "-m", "http.server", "80", "--bind", TARGET.network_address]
        server = inside(target, *serve)
        stack.enter_context(namespaces.running(server, lambda printed: "Serving" in printed))
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
    with namespaces.running(inside(path.gateway, *words), lambda said: "Recording" in said):
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
            near.configuration += field_gateways.peer(place, 1)
            far = f'lan = "lan"\nwan = "wan"\n{rate}{field_gateways.peer(place, 0)}'
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
        path = Nodes(**names, address=field_machine.SERVER, ends=ENDS, health={}, process=0)
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
