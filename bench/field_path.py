"""A server, a gateway, a bad hop and a user in namespaces, and what may run at the gateway.

The emulator of the links is lasthop's (`bench/field/path.toml` has the network), the ends are the
kernel's. Whatever is started here is ended with the `with` block in which it was started, after an
error and after Ctrl-C, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import record

HERE = record.ROOT / "bench" / "field"
#: What is needed, and the packages of Debian that have it.
PACKAGES = {
    "ab": "apache2-utils",
    "curl": "curl",
    "haproxy": "haproxy",
    "ip": "iproute2",
    "iperf3": "iperf3",
    "nft": "nftables",
    "openssl": "openssl",
    "tc": "iproute2",
}
#: The port of the server, and that where proxies listen.
PORT, PROXY_PORT = 8000, 5000
#: The one-way delay between server and gateway.
LAN_DELAY = "5 ms"
#: The UDP port of gateways.
PEER_PORT = 51_995
#: Bytes of a packet, as on Ethernet.
MTU = 1500
#: Seconds until a program has to be ready.
PATIENCE = 20.0
#: As many open files as any of the programs may need.
FILES = 65_536
#: Those that a proxy opens for a connection at most: two sockets and two pipes.
FILES_EACH = 6
#: The system call, which has this number on all machines (`pidfd_getfd(2)`).
PIDFD_GETFD = 438


class Problem(SystemExit):
    """Why nothing can be measured."""


def need(*tools: str) -> None:
    """Ends the program if a tool is missing, with the command that installs it."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        packages = " ".join(PACKAGES[tool] for tool in missing)
        raise Problem(f"not installed: {', '.join(missing)}; try: apt-get install {packages}")
    if os.geteuid() != 0:
        raise Problem("network namespaces need root")


def build(package: str, *what: str) -> Path:
    """Compiles programs and returns the folder that they are in."""
    words = ["cargo", "build", "--quiet", "--release", "-p", package, *what]
    if subprocess.run(words, cwd=record.ROOT).returncode:
        raise Problem(f"{package} does not compile")
    return Path(os.environ.get("CARGO_TARGET_DIR", record.ROOT / "target")) / "release"


@dataclass(frozen=True)
class Programs:
    """The programs of lasthop."""

    network: Path
    lasthopd: Path

    @staticmethod
    def built() -> Programs:
        """Compiles them."""
        record.say("compiling lasthopd and the emulator")
        lasthopd = build("lasthop-gateway", "--bin", "lasthopd") / "lasthopd"
        network = build("lasthop-testbed", "--example", "network") / "examples" / "network"
        return Programs(network, lasthopd)


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


# --- programs in namespaces ---


def inside(namespace: str, *command: object) -> list[str]:
    """The command in a namespace."""
    return ["ip", "netns", "exec", namespace, *map(str, command)]


def call(namespace: str, *command: object) -> str:
    """What a command in a namespace prints."""
    done = subprocess.run(inside(namespace, *command), capture_output=True, text=True)
    if done.returncode:
        raise Problem(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def sysctl(namespace: str, **values: object) -> None:
    """Sets `net.ipv4` settings of a namespace."""
    call(namespace, "sysctl", "-qw", *(f"net.ipv4.{key}={value}" for key, value in values.items()))


def files_allowed() -> int:
    """How many files a program may have open: `FILES` if this machine allows it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < FILES:
        with contextlib.suppress(ValueError, PermissionError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
            return FILES
        return hard
    return FILES


def many_files() -> None:
    """Lets a program open many files."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_allowed(), hard))


@contextlib.contextmanager
def running(
    command: Sequence[str], ready: Callable[[str], bool], patience: float = PATIENCE
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a command meanwhile, once it is ready by what it has printed, and ends it."""
    with tempfile.TemporaryFile() as log:
        # Ctrl-C is for this program alone, which ends the others in order.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            process_group=0,
            preexec_fn=many_files,
        )

        def printed() -> str:
            return os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace")

        try:
            end = time.monotonic() + patience
            while not ready(printed()):
                if process.poll() is not None or time.monotonic() > end:
                    raise Problem(f"{' '.join(command)} does not start: {printed().strip()}")
                time.sleep(0.02)
            yield process
            if process.poll() is not None:
                raise Problem(f"{' '.join(command)} has ended: {printed().strip()}")
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                record.say(f"{command[4]} does not end by SIGTERM")
                process.kill()
                process.wait()


def listens(namespace: str, port: int) -> bool:
    """Whether a program in the namespace listens on a TCP port."""
    return f":{port} " in call(namespace, "ss", "-Hltn")


def set_congestion(process: int, congestion: str) -> None:
    """Gives the connections that a program accepts a congestion control: they have that of the
    listener. The kernel lets no namespace but the first choose a default freely."""
    number = os.pidfd_open(process)
    listeners = 0
    try:
        for file in Path(f"/proc/{process}/fd").iterdir():
            if not str(file.readlink()).startswith("socket:"):
                continue
            copy = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, number, int(file.name), 0)
            if copy < 0:
                raise Problem(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
            with socket.socket(fileno=copy) as found:
                if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and (
                    found.family in (socket.AF_INET, socket.AF_INET6)
                ):
                    name = congestion.encode()
                    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
                    listeners += 1
    finally:
        os.close(number)
    if not listeners:
        raise Problem(f"process {process} has no listener")


# --- what runs at the gateway ---


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
    #: Its threads.
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
            with proxy(self.kind, programs[self.kind], place) as found:
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

        words = [program, "run", "--config", config, "--socket", socket]
        with running(inside(place.namespace, *words), ready) as process:
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
def proxy(kind: str, program: Path, place: Place) -> Iterator[tuple[int, Guard]]:
    """A transparent proxy for all TCP connections of the user's."""
    at = place.namespace
    connections = files_allowed() // FILES_EACH - 50
    words = [str(program), "-p", str(PROXY_PORT), "-c", str(connections), "-n"]
    if kind == "haproxy":
        config = place.folder / "haproxy.cfg"
        config.write_text(HAPROXY.format(connections=connections))
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


# --- the path ---


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


def ended_in_order() -> None:
    """Lets SIGTERM and SIGHUP end this program as Ctrl-C does."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def behind(candidate: Candidate) -> str:
    """The congestion control of the server: it changes only where there is no gateway."""
    return candidate.congestion if candidate.kind == "direct" else "cubic"


def can_run(candidate: Candidate, programs: Mapping[str, Path]) -> bool:
    """Whether there is the program."""
    return candidate.kind == "direct" or candidate.kind in programs
