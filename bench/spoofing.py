"""Downloads between two Linux kernels with the spoofer on their path, and keeps the results.

python bench/spoofing.py                 20 MB over a round trip of 600 ms, by IPv4 and IPv6
python bench/spoofing.py --megabytes 1   a short run

A web server and curl are in namespaces at the two ends of the path; the emulator and the spoofer
are lasthop's. Each file has to arrive with its SHA-256, and the captures at both ends are checked
with tshark: no packet is malformed, and what TCP has promised is kept (see `Stream`). It needs
root, curl, dumpcap and tshark. Captures with malformed packets are kept in build/spoofing.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import namespaces
import record
import tabular

TOOLS = ("curl", "dumpcap", "tshark")
PORT = 8000

#: One way: 30 ms to the gateway and 270 ms by satellite.
SCENARIO = """
title = "a download by satellite"
duration = "1 s"
[nodes]
server = {{}}
gateway = {{ {gateway} }}
user = {{}}
[[links]]
between = ["server", "gateway"]
rate = "100 Mbit/s"
delay = "30 ms"
queue = "1000 packets"
[[links]]
between = ["gateway", "user"]
rate = "20 Mbit/s"
delay = "270 ms"
queue = "1000 packets"
forward = {{ errors = {{ packet = {loss} }} }}
[[flows]]
from = "server"
to = "user"
stack = "linux"
traffic = "bulk"
"""
#: What the gateway does: nothing, or it splits connections, with one of two kinds of TCP.
GATEWAYS: Mapping[str, str] = {
    "none": "",
    "spoofer": 'boxes = [{ box = "spoofer", cache = "4 MB" }]',
    "spoofer, BBR": 'boxes = [{ box = "spoofer", cache = "4 MB", tcp = { congestion = "bbr" } }]',
}
#: Shares of packets that the satellite's link to the user loses.
LOSSES = (0.0, 0.001)
#: A web server: address, port and folder. The kernel's default is not CUBIC everywhere.
SERVER = """
import functools, http.server, socket, sys
class Server(http.server.HTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        super().server_bind()
files = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[3])
server = Server((sys.argv[1], int(sys.argv[2])), files)
print("Serving")
server.serve_forever()
"""
#: How often a download is made for which the machine is too busy.
ATTEMPTS = 4
#: Seconds for the last segments of a connection, and for captures to be written.
REST = 2.0


class Nodes:
    """The three nodes of a path, until the end of the `with` block."""

    def __init__(self, program: Path, scenario: str, folder: Path, seed: int) -> None:
        file = folder / "path.toml"
        file.write_text(scenario)
        self.process = subprocess.Popen(
            [program, file, str(seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.report: record.Row = {}

    def __enter__(self) -> Nodes:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("spoofing: the emulator does not start (it needs root)")
        nodes = json.loads(line)
        self.server, self.user = nodes["server"], nodes["user"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # The end of its standard input ends the emulator.
        out = self.process.communicate()[0]
        if out:
            self.report = json.loads(out)


def capture(namespace: str, device: str, file: Path) -> contextlib.AbstractContextManager[None]:
    """Captures all packets of a device."""
    words = ["dumpcap", "-i", device, "-B", "64", "-w", str(file)]
    return namespaces.background(namespace, *words, ready="File:")


# --- what tshark sees ---

#: The payload is no protocol to tshark. Otherwise it takes a segment with other borders than before
#: for malformed HTTP, and the payload for another protocol if the client's port is registered for
#: one, or if its bytes look like one.
AS_DATA = ("-d", f"tcp.port=={PORT},data")
#: A TCP checksum of 0 that Linux has completed in software is 0xffff (skb_checksum_help): the other
#: zero in one's complement. A receiver that adds up the whole segment accepts it; tshark does not.
MALFORMED = (
    "_ws.malformed || ip.checksum.status == 0 || (tcp.checksum.status == 0"
    " && !(tcp.checksum == 0xffff && tcp.checksum_calculated == 0))"
)
FIELDS = (
    "tcp.srcport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.window_size_value",
    "tcp.flags",
    "tcp.options.wscale.shift",
    "tcp.payload",
)
#: Of a packet that is malformed.
REASONS = (
    "frame.number",
    "frame.protocols",
    "ip.checksum.status",
    "tcp.checksum.status",
    "_ws.expert.message",
)
FIN, SYN, RST, ACK = 1, 2, 4, 16


class Stream:
    """What one end of a connection has sent, and may send, as a capture shows it.

    Numbers count from the end's SYN. The checks of each segment are those that an end can make
    itself: its data lies within the window that was announced, it acknowledges nothing that was
    not sent, and a byte that is sent again has the value that it had.
    """

    def __init__(self) -> None:
        self.isn: int | None = None
        self.shift: int | None = None
        #: The number after the last that the other end has allowed: its window's right edge.
        self.edge = 0
        self.sent = 0
        self.bytes = bytearray()
        self.known = bytearray()
        self.out_of_window = self.unsent_acknowledged = self.changed_bytes = 0

    def number(self, raw: int) -> int:
        """A sequence number as a count from the SYN."""
        assert self.isn is not None
        return (raw - self.isn) & 0xFFFF_FFFF

    def segment(self, other: Stream, words: list[str]) -> None:
        """Checks a segment of this end; `other` is the other."""
        seq, ack, window, flags = (int(word, 0) for word in words[:4])
        shift, payload = words[4], bytes.fromhex(words[5].replace(":", ""))
        if flags & SYN:
            self.isn, self.shift = seq, int(shift) if shift else None
        if self.isn is None or flags & RST:
            return
        start = self.number(seq) + bool(flags & SYN)
        end = start + len(payload)
        if payload:
            self.out_of_window += max(0, end - max(start, self.edge))
            self.changed_bytes += self.note(start - 1, payload)
        self.sent = max(self.sent, end + bool(flags & FIN))
        if flags & ACK and other.isn is not None:
            acknowledged = other.number(ack)
            self.unsent_acknowledged += acknowledged > other.sent
            scaled = not flags & SYN and None not in (self.shift, other.shift)
            edge = acknowledged + (window << (self.shift or 0) if scaled else window)
            # An edge that moves back takes nothing away from what may be on its way.
            other.edge = max(other.edge, edge)

    def note(self, start: int, payload: bytes) -> int:
        """Keeps bytes; returns how many differ from those that were at the same places."""
        end = start + len(payload)
        if end > len(self.bytes):
            missing = end - len(self.bytes)
            self.bytes.extend(bytes(missing))
            self.known.extend(bytes(missing))
        known, before = self.known[start:end], self.bytes[start:end]
        changed = 0
        if any(known):
            pairs = zip(known, before, payload, strict=True)
            changed = sum(is_known and old != new for is_known, old, new in pairs)
        self.bytes[start:end] = payload
        self.known[start:end] = b"\1" * len(payload)
        return changed


def checked(file: Path, content: bytes, kept: Path) -> record.Row:
    """What is wrong in the capture of a download of this content. A capture in which tshark finds a
    packet malformed is copied to `kept`, and the packets are named."""
    words = ["tshark", "-n", "-r", str(file), *AS_DATA]
    words += [word for field in FIELDS for word in ("-e", field)]
    tshark = subprocess.Popen(
        [*words, "-T", "fields", "-Y", "tcp"], stdout=subprocess.PIPE, text=True
    )
    assert tshark.stdout is not None
    streams = {True: Stream(), False: Stream()}
    segments = 0
    for line in tshark.stdout:
        port, *rest = line.rstrip("\n").split("\t")
        from_server = int(port) == PORT
        streams[from_server].segment(streams[not from_server], rest)
        segments += 1
    if tshark.wait() != 0:
        raise SystemExit("spoofing: tshark cannot read a capture")
    head, _, body = bytes(streams[True].bytes).partition(b"\r\n\r\n")
    both = list(streams.values())
    bad = malformed(file)
    if bad:
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, kept)
        record.say("\n".join([f"spoofing: {kept}", *bad]))
    return {
        "segments": segments,
        "malformed": len(bad),
        "out_of_window": sum(stream.out_of_window for stream in both),
        "unsent_acknowledged": sum(stream.unsent_acknowledged for stream in both),
        "changed_bytes": sum(stream.changed_bytes for stream in both),
        "whole": b" 200 " in head and body == content,
    }


def malformed(file: Path) -> list[str]:
    """The packets that tshark cannot dissect, or whose checksum is wrong: the frame's number, its
    protocols, the status of both checksums, and what tshark says."""
    options = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", *AS_DATA]
    words = ["tshark", "-n", "-r", str(file), *options, "-Y", MALFORMED, "-T", "fields"]
    words += [word for field in REASONS for word in ("-e", field)]
    printed = subprocess.run(words, capture_output=True, text=True, check=True)
    return printed.stdout.splitlines()


# --- a download ---


def download(
    program: Path, content: bytes, ip: int, loss: float, gateway: str, captures: Path
) -> record.Row:
    """One download, and what is to be said of it."""
    version = 0 if ip == 4 else 1
    scenario = SCENARIO.format(gateway=GATEWAYS[gateway], loss=loss)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        site, found = folder / "site", folder / "found"
        site.mkdir()
        (site / "file").write_bytes(content)
        files = {"server": folder / "server.pcapng", "user": folder / "user.pcapng"}
        with contextlib.ExitStack() as running:
            path = running.enter_context(Nodes(program, scenario, folder, seed=1))
            server, user = path.server["namespace"], path.user["namespace"]
            address = path.server["addresses"][version]
            running.enter_context(capture(server, "link0", files["server"]))
            running.enter_context(capture(user, "link1", files["user"]))
            web = [sys.executable, "-u", "-c", SERVER, address, str(PORT), str(site)]
            running.enter_context(namespaces.background(server, *web, ready="Serving"))
            host = f"[{address}]" if ip == 6 else address
            words = ["curl", "--silent", "--show-error", "--fail", "--output", str(found)]
            start = time.monotonic()
            namespaces.call(user, *words, f"http://{host}:{PORT}/file")
            seconds = time.monotonic() - start
            time.sleep(REST)
        report = path.report
        label = f"{gateway.replace(', ', '-')}-ipv{ip}-{loss:g}"
        kept = {end: captures / f"{label}-{end}.pcapng" for end in files}
        row = {
            "ip": ip,
            "loss": loss,
            "gateway": gateway,
            "bytes": len(content),
            "seconds": round(seconds, 2),
            "mbps": round(8e-6 * len(content) / seconds, 2),
            "sha256": hashlib.sha256(found.read_bytes()).hexdigest(),
            "split": report["counts"].get("split connections", 0),
            "at_server": checked(files["server"], content, kept["server"]),
            "at_user": checked(files["user"], content, kept["user"]),
            "late": report["late"],
            "lost": report["lost"],
            "void": report["void"],
        }
    return row | {"ok": is_right(row, content)}


def is_right(row: record.Row, content: bytes) -> bool:
    """Whether all checks of a download have passed."""
    faults = ("malformed", "out_of_window", "unsent_acknowledged", "changed_bytes")
    captures = (row["at_server"], row["at_user"])
    return (
        row["sha256"] == hashlib.sha256(content).hexdigest()
        and row["split"] == (row["gateway"] != "none")
        and all(found["whole"] and not any(found[name] for name in faults) for found in captures)
    )


# --- the book's table ---


def table(result: record.Row) -> str:
    """Downloads over a spoofer: one line for each path, and what tshark found."""
    rows = result["rows"]
    gateways = list(dict.fromkeys(row["gateway"] for row in rows))
    names = {"none": "no spoofer"}
    heads = ["path", *(names.get(gateway, gateway) for gateway in gateways)]
    lines = []
    for ip, loss in dict.fromkeys((row["ip"], row["loss"]) for row in rows):
        of = [row["seconds"] for row in rows if (row["ip"], row["loss"]) == (ip, loss)]
        lines.append([f"IPv{ip}, {100 * loss:g} % loss", *(f"{seconds:.1f}" for seconds in of)])
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
    about = f"*One run each. All captures together: {words}.*"
    return tabular.captioned(["Seconds:", "", tabular.table(heads, lines)], result, about)


def main() -> int:
    """Runs all downloads; 1 if a check failed."""
    parser = argparse.ArgumentParser(description="Downloads through the spoofer.")
    parser.add_argument("--megabytes", type=float, default=20.0)
    parser.add_argument("--output", type=Path, default=record.RESULTS / "spoofing.json")
    parser.add_argument(
        "--captures",
        type=Path,
        default=record.ROOT / "build" / "spoofing",
        help="for captures with malformed packets",
    )
    options = parser.parse_args()
    namespaces.need(*TOOLS)
    program = namespaces.build("lasthop-testbed", "--example", "network") / "examples" / "network"
    content = random.Random(1).randbytes(round(1e6 * options.megabytes))
    rows = []
    for ip, loss, gateway in itertools.product((4, 6), LOSSES, GATEWAYS):
        for _ in range(ATTEMPTS):
            row = download(program, content, ip, loss, gateway, options.captures)
            record.say(json.dumps(row))
            # A fault is a result, however late packets were.
            if row["void"] is None or not row["ok"]:
                break
        rows.append(row)
    kernel = os.uname().release
    head = {"experiment": "spoofing", **record.circumstances(), "kernel": kernel}
    record.keep(options.output, {**head, "rows": rows})
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
