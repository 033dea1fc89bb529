"""A server, a gateway, a bad hop and a user in namespaces, and downloads over them.

The emulator of the links is lasthop's (`bench/field/path.toml` has the network), the ends are the
kernel's.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import record
from namespaces import Problem, build, call, inside, running

HERE = record.ROOT / "bench" / "field"
#: The port of the server.
PORT = 8000
#: The one-way delay between server and gateway.
LAN_DELAY = "5 ms"
#: Bytes of a packet, as on Ethernet.
MTU = 1500


def built() -> dict[str, Path]:
    """Compiles the programs of lasthop: the emulator, and `lasthopd`."""
    record.say("compiling lasthopd and the emulator")
    network = build("lasthop-testbed", "--example", "network") / "examples" / "network"
    return {"network": network, "lasthopd": lasthopd()}


def lasthopd() -> Path:
    """Compiles the gateway alone."""
    return build("lasthop-gateway", "--bin", "lasthopd") / "lasthopd"


@dataclass(frozen=True)
class Hop:
    """A bad hop, alike in both directions."""

    mbps: float
    #: Its round trip, milliseconds.
    rtt: float
    #: The share of packets that are lost.
    loss: float
    #: The mean length of a run of losses; independent losses if absent.
    burst: float | None = None

    def __str__(self) -> str:
        bursts = f" in bursts of {self.burst:g}" if self.burst else ""
        return f"{self.mbps:g} Mbit/s, {self.rtt:g} ms, {100 * self.loss:g} % loss{bursts}"

    @property
    def queue(self) -> int:
        """The packets that its queue holds: as many as the hop does."""
        return max(50, round(1e3 * self.mbps * self.rtt / 8 / MTU))

    def settings(self) -> Iterator[str]:
        """The keys of the scenario that say so."""
        errors: record.Row = {"packet": self.loss}
        if self.burst:
            errors = {"gilbert-elliott": {"loss": self.loss, "burst": self.burst}}
        values = {
            "rate": f"{self.mbps:g} Mbit/s",
            "delay": f"{self.rtt / 2:g} ms",
            "queue": f"{self.queue} packets",
            "errors": errors,
        }
        return (f"links.1.{key}={json.dumps(value)}" for key, value in values.items())

    def share(self, mbps: float) -> float:
        """A goodput as a share of what the hop delivers."""
        return mbps / (self.mbps * (1 - self.loss))


@dataclass(frozen=True)
class Place:
    """The gateway: its namespace, its interfaces, a folder for files, and the hop's rate."""

    namespace: str
    lan: str
    wan: str
    folder: Path
    mbps: float | None = None
    #: At the other end of the hop: the namespace, and the addresses of both ends.
    far: str | None = None
    addresses: tuple[str, str] = ("", "")


@dataclass
class Nodes:
    """A server, a gateway and a user; where they are, and what the emulator said in the end."""

    server: str
    gateway: str
    far: str
    user: str
    #: That of the server, and those of both ends of the hop.
    address: str
    ends: tuple[str, str]
    health: record.Row
    #: The emulator's process, if there is one.
    process: int = 0

    def place(self, folder: Path, mbps: float) -> Place:
        """The gateway."""
        return Place(self.gateway, "link0", "link1", folder, mbps, self.far, self.ends)


@dataclass
class Emulator:
    """What the emulator has made."""

    #: Namespaces and addresses, by the names of nodes.
    nodes: Mapping[str, record.Row]
    process: int
    #: What it said in the end.
    health: record.Row


@contextlib.contextmanager
def emulator(program: Path, file: str, seed: int, settings: Iterable[str]) -> Iterator[Emulator]:
    """The network of a scenario of this folder, with keys that replace those of the file."""
    words = [str(program), str(HERE / file), str(seed), *settings]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise Problem("the emulator does not start")
        found = Emulator(json.loads(line), process.pid, {})
        yield found
    finally:
        # The end of its standard input ends the emulator, which removes the namespaces.
        out = process.communicate()[0]
    if out:
        found.health.update(json.loads(out))


@contextlib.contextmanager
def emulated(program: Path, hop: Hop, seed: int) -> Iterator[Nodes]:
    """The path, with the hop between gateway and user."""
    with emulator(program, "path.toml", seed, hop.settings()) as found:
        nodes = found.nodes
        names = {name: nodes[name]["namespace"] for name in ("server", "gateway", "far", "user")}
        server, near, far = (nodes[name]["addresses"][0] for name in ("server", "gateway", "far"))
        path = Nodes(**names, address=server, ends=(near, far), health=found.health)
        path.process = found.process
        ends = {"server": [0], "gateway": [0, 1], "far": [1, 2], "user": [2]}
        for name, links in ends.items():
            for link in links:
                call(names[name], "ip", "link", "set", f"link{link}", "mtu", MTU)
        yield path


@contextlib.contextmanager
def serving(path: Nodes, folder: Path, congestion: str) -> Iterator[None]:
    """A web server with the files of a folder."""
    program = ["python3", HERE / "server.py", path.address, PORT, folder, congestion]
    words = inside(path.server, *program)
    with running(words, lambda printed: "Serving" in printed):
        yield


def download(path: Nodes, file: Path, seconds: float, *options: object) -> record.Row:
    """Downloads a file with curl, for some seconds at most, and checks the bytes that came."""
    url = f"http://{path.address}:{PORT}/{file.name}"
    with tempfile.TemporaryDirectory() as folder:
        got = Path(folder) / "got"
        words = ["curl", "-s", "--noproxy", "*", "--max-time", seconds, "-w", "%{json}", *options]
        done = subprocess.run(
            inside(path.user, *words, "-o", got, url), capture_output=True, text=True
        )
        # 28: the time was over.
        if done.returncode not in (0, 28):
            raise Problem(f"curl: error {done.returncode} {done.stderr.strip()}")
        content = got.read_bytes() if got.exists() else b""
    found = json.loads(done.stdout)
    first = float(found["time_starttransfer"])
    return {
        "bytes": len(content),
        "seconds": float(found["time_total"]),
        "mbps": 8e-6 * len(content) / float(found["time_total"]),
        "first_byte_s": first if first > 0 else None,
        "stopped": done.returncode == 28,
        "ok": sha256(content) == sha256(file.read_bytes()[: len(content)]),
    }


def sha256(content: bytes) -> str:
    """The digest of bytes, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
