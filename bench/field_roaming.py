"""A download that goes through handoffs, by MHP's agents and by the kernel's own TCP.

python bench/field_roaming.py [--repeats 2]

A mobile host moves between three base stations, ten times in a download with curl over TLS. During
a handoff nothing passes by radio for some time. The kernel's TCP and MPTCP have the same moves:
TCP's address moves with the host, MPTCP has a new one behind each base station. The result is the
longest silence at the user after each handoff, and the goodput. It needs root, curl, openssl, and
mptcpize if MPTCP is to be measured, too.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import field_path
import namespaces
import record
from field_matrix import versions

#: The address of the mobile host, but with MPTCP.
MOBILE = "198.18.9.9"
STATIONS = range(3)
HANDOFFS = 10
#: Seconds from the start of a handoff to the next one, and of the download after the last.
APART, AFTER = 4.0, 6.0
#: Bytes in a second at most, by the rate of the radio links.
RATE = 10e6 / 8
#: Losses in each direction of the radio links, and the pauses of handoffs in seconds.
CONDITIONS = ((0.0, 0.1), (0.01, 0.1), (0.05, 0.1), (0.0, 1.0))
PORT = 8443


@dataclass(frozen=True)
class Way:
    """How the connection survives."""

    name: str
    congestion: str = "cubic"
    #: The transport over the hop between the agents of `lasthopd`, if there are any.
    hop: str | None = None
    is_multipath: bool = False


WAYS = (
    *(Way(f"TCP, {name.upper()}", name) for name in ("cubic", "bbr")),
    *(Way(f"MPTCP, {name.upper()}", name, is_multipath=True) for name in ("cubic", "bbr")),
    Way("lasthopd, station and mobile", hop="tcp"),
    Way("lasthopd, station and mobile, SRP", hop="srp"),
)


def station(number: int) -> str:
    """The address of a base station by radio."""
    return f"198.18.9.{1 + number}"


def behind(way: Way, number: int) -> str:
    """The address of the mobile host behind a base station."""
    return f"198.18.9.{100 + number}" if way.is_multipath else MOBILE


def hardware(number: int) -> str:
    """The hardware address of a base station's radio."""
    return f"02:00:00:00:00:{1 + number:02x}"


@dataclass
class Network:
    """The namespaces, and where the mobile host is."""

    nodes: Mapping[str, str]
    server: str
    mobile: str
    way: Way
    #: What the emulator says in the end.
    health: record.Row
    at: int = 0

    def stations(self) -> list[str]:
        """The namespaces of the base stations."""
        return [self.nodes[f"station{number}"] for number in STATIONS]

    def radio(self, number: int | None) -> None:
        """Lets the radio link of one base station pass packets, or none."""
        words = "flush set ip radio on\n"
        if number is not None:
            words += f"add element ip radio on {{ air{number}, link{4 + number} }}\n"
        nft(self.nodes["modem"], words)

    def attach(self, number: int) -> None:
        """The mobile host is behind a base station: routes lead there."""
        batch(self.nodes["router"], f"route replace {MOBILE} dev link{1 + number}")
        own = behind(self.way, number)
        route = f"route replace default via {station(number)} dev air src {own}"
        if not self.way.is_multipath:
            batch(self.mobile, route)
            return
        old = behind(self.way, self.at)
        batch(self.mobile, f"address replace {own}/24 dev air", route)
        if own != old:
            add_endpoint(self.mobile, number, own)
            namespaces.call(self.mobile, "ip", "mptcp", "endpoint", "delete", "id", 1 + self.at)
            batch(self.mobile, f"address delete {old}/24 dev air")

    def hand_off(self, to: int, pause: float) -> None:
        """The mobile host goes to another base station."""
        self.radio(None)
        time.sleep(pause)
        self.radio(to)
        self.attach(to)
        self.at = to


def batch(namespace: str, *lines: str) -> None:
    """Runs commands of ip in a namespace."""
    words = ["ip", "-netns", namespace, "-batch", "-"]
    done = subprocess.run(words, input="\n".join(lines), capture_output=True, text=True)
    if done.returncode:
        raise namespaces.Problem(f"{'; '.join(lines)}: {done.stderr.strip()}")


def nft(namespace: str, rules: str) -> None:
    """Changes rules of a namespace."""
    words = namespaces.inside(namespace, "nft", "-f", "-")
    done = subprocess.run(words, input=rules, capture_output=True, text=True)
    if done.returncode:
        raise namespaces.Problem(f"nft: {done.stderr.strip()}")


def add_endpoint(namespace: str, number: int, address: str) -> None:
    """Lets MPTCP use an address."""
    words = ["ip", "mptcp", "endpoint", "add", address, "dev", "air", "id", 1 + number, "subflow"]
    namespaces.call(namespace, *words)


@contextlib.contextmanager
def network(program: Path, way: Way, loss: float, seed: int) -> Iterator[Network]:
    """The path, with a mobile host behind it."""
    losses = [f"links.{4 + number}.errors={json.dumps({'packet': loss})}" for number in STATIONS]
    with field_path.emulator(program, "roaming.toml", seed, losses) as emulator:
        nodes = emulator.nodes
        names = {name: str(node["namespace"]) for name, node in nodes.items()}
        server, mobile = str(nodes["server"]["addresses"][0]), f"{names['modem']}-mobile"
        subprocess.run(["ip", "netns", "add", mobile], check=True)
        try:
            found = Network(names, server, mobile, way, emulator.health)
            join(found)
            yield found
        finally:
            subprocess.run(["ip", "netns", "delete", mobile], check=True)


def join(found: Network) -> None:
    """Joins the mobile host to its modem, which hears base stations by their hardware addresses."""
    nodes, modem, mobile = found.nodes, found.nodes["modem"], found.mobile
    addresses = [behind(found.way, number) for number in STATIONS]
    batch(mobile, f"link add air type veth peer name radio netns {modem}", "link set lo up")
    for node in (modem, mobile):
        # Another address of the same network is not removed with the first.
        settings = ("rp_filter", 0), ("promote_secondaries", 1)
        for device, (name, value) in itertools.product(("all", "default"), settings):
            namespaces.sysctl(node, **{f"conf.{device}.{name}": value})
    batch(modem, "link set radio up")
    batch(mobile, "link set air up")
    shown = json.loads(namespaces.call(mobile, "ip", "-j", "link", "show", "air"))
    own = shown[0]["address"]
    for number in STATIONS:
        air, link = f"air{number}", f"link{4 + number}"
        batch(
            modem,
            f"link add {air} link radio address {hardware(number)} type macvlan mode private",
            f"link set {air} up",
            f"route add default dev {link} table {10 + number}",
            f"rule add priority 10 iif {air} table {10 + number}",
            *(f"neighbour add {to} lladdr {own} dev {air}" for to in dict.fromkeys(addresses)),
            *([f"route add {addresses[number]} dev {air}"] if found.way.is_multipath else []),
        )
        namespaces.sysctl(modem, **{f"conf.{air}.rp_filter": 0})
        batch(mobile, f"neighbour add {station(number)} lladdr {hardware(number)} dev air")
        batch(
            nodes[f"station{number}"],
            f"address add {station(number)}/32 dev {link}",
            f"route add default dev link{1 + number}",
        )
        batch(nodes["router"], f"route add {station(number)} dev link{1 + number}")
        if not found.way.hop:
            batch(nodes[f"station{number}"], f"route add {addresses[number]} dev {link}")
        if found.way.is_multipath:
            batch(nodes["router"], f"route add {addresses[number]} dev link{1 + number}")
    if not found.way.is_multipath:
        batch(modem, f"route add {MOBILE} dev air0")
    batch(nodes["server"], "route add default dev link0")
    # What is sent to a base station that the modem does not hear is lost.
    nft(
        modem,
        "table ip radio {\nset on { type ifname; }\n"
        "chain pass { type filter hook forward priority 0; iifname != @on drop; }\n}",
    )
    batch(mobile, f"address add {addresses[0]}/24 dev air")
    if found.way.is_multipath:
        for node in (mobile, nodes["server"]):
            words = ["ip", "mptcp", "limits", "set", "subflow", 8, "add_addr_accepted", 8]
            namespaces.call(node, *words)
        add_endpoint(mobile, 0, addresses[0])
    found.radio(0)
    found.attach(0)


@contextlib.contextmanager
def agents(program: Path, found: Network, folder: Path) -> Iterator[None]:
    """`lasthopd` at the base stations and in the mobile host."""
    key = folder / "network.key"
    namespaces.call(found.mobile, program, "network-key", "--file", key)
    with contextlib.ExitStack() as stack:
        members = [
            (node, f'lan = "link{1 + number}"\nwan = "link{4 + number}"\nmode = "station"\n')
            for number, node in enumerate(found.stations())
        ]
        members.append((found.mobile, f'wan = "air"\nmode = "mobile"\nhop = "{found.way.hop}"\n'))
        for node, text in members:
            config, socket = folder / f"{node}.toml", folder / node
            config.write_text(f'{text}network_key = "{key}"\n')
            words = [program, "run", "--config", config, "--socket", socket]
            ready = namespaces.running(
                namespaces.inside(node, *words), lambda printed: "running" in printed
            )
            stack.enter_context(ready)
        yield
        status = namespaces.call(
            found.mobile, program, "status", "--json", "--socket", folder / found.mobile
        )
        counts = json.loads(status)["counters"]
        resumed = counts["attachments after which transfer resumed"]
        if resumed <= HANDOFFS or counts["attachments whose state was lost"]:
            raise namespaces.Problem(f"after {HANDOFFS} handoffs: {counts}")


@contextlib.contextmanager
def serving(found: Network, files: Path, folder: Path) -> Iterator[Path]:
    """A web server with TLS; its certificate."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    words += ["-nodes", "-days", "2", "-subj", "/CN=server", "-out", str(certificate)]
    words += ["-keyout", str(key), "-addext", f"subjectAltName=IP:{found.server}"]
    subprocess.run(words, check=True, capture_output=True)
    run: list[object] = ["python3", field_path.HERE / "server.py", found.server, PORT, files]
    run += [found.way.congestion, certificate, key]
    before = ["mptcpize", "run"] if found.way.is_multipath else []
    command = namespaces.inside(found.nodes["server"], *before, *run)
    with namespaces.running(command, lambda printed: "Serving" in printed):
        yield certificate


class Arrivals(threading.Thread):
    """What arrives of a download, and when."""

    def __init__(self, stream: object) -> None:
        super().__init__(daemon=True)
        self.stream = stream
        self.times: list[float] = []
        self.digest = hashlib.sha256()
        self.len = 0

    def run(self) -> None:
        """Reads until the download ends."""
        read = self.stream.read1  # type: ignore[attr-defined]
        while part := read(1 << 16):
            self.times.append(time.monotonic())
            self.digest.update(part)
            self.len += len(part)

    def silence(self, begin: float, end: float) -> float:
        """The longest time without data between two times, from the last data before."""
        before = max((at for at in self.times if at <= begin), default=begin)
        within = [at for at in self.times if begin < at < end]
        points = [before, *within, end]
        return max(later - earlier for earlier, later in itertools.pairwise(points))


def roam(
    programs: Mapping[str, Path], way: Way, condition: tuple[float, float], number: int
) -> record.Row:
    """A download with its handoffs."""
    loss, pause = condition
    content = random.Random(number).randbytes(round(RATE * (HANDOFFS * APART + AFTER)))
    later = random.Random(1000 + number)
    with tempfile.TemporaryDirectory() as files, contextlib.ExitStack() as stack:
        (Path(files) / "file").write_bytes(content)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = stack.enter_context(network(programs["network"], way, loss, number))
        certificate = stack.enter_context(serving(found, Path(files), folder))
        if way.hop:
            stack.enter_context(agents(programs["lasthopd"], found, folder))
        before = ["mptcpize", "run"] if way.is_multipath else []
        url = f"https://{found.server}:{PORT}/file"
        words = [*before, "curl", "-sNS", "--noproxy", "*", "--cacert", certificate, url]
        user = subprocess.Popen(
            namespaces.inside(found.mobile, *words), stdout=subprocess.PIPE, process_group=0
        )
        stack.callback(user.wait)
        stack.callback(user.kill)
        arrivals = Arrivals(user.stdout)
        arrivals.start()
        start = time.monotonic()
        begins: list[float] = []
        for _ in range(HANDOFFS):
            # Timers are at other places each time.
            time.sleep(
                max(0.0, start + APART * (len(begins) + 0.5) + later.random() - time.monotonic())
            )
            begins.append(time.monotonic())
            to = later.choice([other for other in STATIONS if other != found.at])
            found.hand_off(to, pause)
        time.sleep(max(0.0, start + HANDOFFS * APART + AFTER - time.monotonic()))
        end = time.monotonic()
        # The whole file may have come before.
        last = arrivals.times[-1] if arrivals.len == len(content) else end
        if user.poll():
            record.say(f"curl has ended with error {user.returncode}")
        ok = arrivals.digest.digest() == hashlib.sha256(content[: arrivals.len]).digest()
        ends = [*begins[1:], end]
        silences = [arrivals.silence(*of) for of in zip(begins, ends, strict=True) if of[0] < last]
        ended = user.poll() not in (None, 0)
        user.kill()
    return {
        "silences_s": silences,
        "mbps": 8e-6 * arrivals.len / (last - start),
        "ok": ok,
        "ended": ended,
        "void": found.health.get("void"),
    }


def main() -> int:
    """Measures, keeps the results and prints them; 1 if bytes were wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    namespaces.need("ip", "curl", "nft", "openssl")
    namespaces.ended_in_order()
    programs = field_path.built()
    ways = list(WAYS)
    if not shutil.which("mptcpize") or not Path("/proc/sys/net/mptcp").exists():
        record.say("WITHOUT MPTCP: it needs a kernel that has it, and apt-get install mptcpize")
        ways = [way for way in ways if not way.is_multipath]
    found: dict[tuple[tuple[float, float], Way], list[record.Row]] = {}
    for number in range(options.repeats):
        for condition, way in itertools.product(CONDITIONS, ways):
            row = roam(programs, way, condition, number)
            found.setdefault((condition, way), []).append(row)
            silences = record.spread(row["silences_s"])
            rate = f"{row['mbps']:.2f} Mb/s {row['void'] or ''}"
            record.say(f"{number + 1} {condition} {way.name}: {silences} s, {rate}")
    rows = [
        {
            "loss": loss,
            "pause_s": pause,
            "what": way.name,
            "silence_s": record.spread([one for row in of for one in row["silences_s"]]),
            "goodput_mbps": record.spread([row["mbps"] for row in of]),
            "handoffs": sum(len(row["silences_s"]) for row in of),
            "ended": sum(row["ended"] for row in of),
            "wrong": sum(not row["ok"] for row in of),
            "void": sum(bool(row["void"]) for row in of),
        }
        for ((loss, pause), way), of in found.items()
    ]
    head = {**record.circumstances(), **versions(programs), "repeats": options.repeats}
    record.keep(
        record.RESULTS / "field-roaming.json", {"experiment": "field-roaming", **head, "rows": rows}
    )
    for row in rows:
        print(json.dumps(row))
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    namespaces.run(main)
