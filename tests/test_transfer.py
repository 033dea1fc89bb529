"""Files sent and received by the command, to and from the kernel's TCP and another lasthop.

They need root, network namespaces and TUN devices; without, they say so and are skipped.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from fixtures import Command
from real_packets import real

pytestmark = pytest.mark.packets

NFT = shutil.which("nft")
masquerades = pytest.mark.skipif(NFT is None, reason="masquerading needs nft")

DATA = random.Random(1).randbytes(6_000_000)


@dataclass(frozen=True)
class Machine:
    """A network namespace."""

    name: str

    def run(self, *words: str) -> str:
        """What a program prints there."""
        inside = ["ip", "netns", "exec", self.name, *words]
        return subprocess.run(inside, check=True, capture_output=True, text=True).stdout

    def lasthop(self, *words: str | Path, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """The command, to its end."""
        with self.start(*words) as process:
            out, err = process.communicate(data, timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def start(self, *words: str | Path) -> subprocess.Popen[bytes]:
        """The command, under way."""
        inside = ["ip", "netns", "exec", self.name, sys.executable, "-m", "lasthop"]
        return subprocess.Popen(
            [*inside, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "NO_COLOR": "1"},
        )

    def listen(self, address: str) -> socket.socket:
        """A listener of its kernel."""

        def inside() -> socket.socket:
            libc = ctypes.CDLL(None, use_errno=True)
            with Path("/run/netns", self.name).open() as namespace:
                if libc.setns(namespace.fileno(), 0) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listener = socket.socket(family)
            listener.bind((address, 0))
            listener.listen()
            listener.settimeout(30)
            return listener

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(inside).result()

    def changed(self) -> list[str]:
        """What a transfer may have changed here."""
        links = [line.split()[0] for line in self.run("ip", "-br", "link").splitlines()]
        tables = self.run("nft", "list", "tables").splitlines() if NFT else []
        settings = ("net.ipv4.conf.out.forwarding", "net.ipv6.conf.all.forwarding")
        on = [name for name in settings if self.run("sysctl", "-n", name).strip() != "0"]
        return [*(link for link in links if link.startswith("lasthop")), *tables, *on]


@pytest.fixture(scope="module")
def machines() -> Iterator[tuple[Machine, Machine]]:
    """Two machines, 192.0.2.1 and 192.0.2.2, with a link between; neither forwards."""
    here, there = (Machine(f"lhtest{os.getpid()}{side}") for side in "ab")
    try:
        for one in (here, there):
            subprocess.run(["ip", "netns", "add", one.name], check=True)
            one.run("ip", "link", "set", "lo", "up")
        pair = ("type", "veth", "peer", "name", "out", "netns", there.name)
        here.run("ip", "link", "add", "out", *pair)
        for number, one in enumerate((here, there), 1):
            one.run("ip", "address", "add", f"192.0.2.{number}/24", "dev", "out")
            one.run("ip", "address", "add", f"2001:db8::{number}/64", "dev", "out", "nodad")
            one.run("ip", "link", "set", "out", "up")
        yield here, there
    finally:
        for one in (here, there):
            subprocess.run(["ip", "netns", "delete", one.name], check=False)


@pytest.fixture
def here(machines: tuple[Machine, Machine]) -> Iterator[Machine]:
    """A machine, on which nothing is left."""
    yield machines[0]
    assert machines[0].changed() == []


@pytest.fixture
def there(machines: tuple[Machine, Machine]) -> Machine:
    """A machine beyond that one."""
    return machines[1]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads for the kernel's ends."""
    with ThreadPoolExecutor() as threads:
        yield threads


def at(listener: socket.socket) -> str:
    """The address of a listener, as the command takes it."""
    address, port = listener.getsockname()[:2]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def read(listener: socket.socket, most: int | None = None) -> bytes:
    """What comes by the first connection; after `most` bytes it is reset."""
    with listener, listener.accept()[0] as stream:
        stream.settimeout(30)
        received = bytearray()
        while part := stream.recv(1 << 16):
            received += part
            if most is not None and len(received) >= most:
                reset(stream)
                break
        return bytes(received)


def write(listener: socket.socket, data: bytes, *, resets: bool = False) -> None:
    """Sends it by the first connection, and closes or resets that."""
    with listener, listener.accept()[0] as stream:
        stream.settimeout(30)
        stream.sendall(data)
        if resets:
            time.sleep(0.3)
            reset(stream)


def reset(stream: socket.socket) -> None:
    """Lets it be reset when it is closed."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@real
@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1", "2001:db8::1"])
def test_a_file_arrives_at_the_kernel(
    here: Machine, pool: ThreadPoolExecutor, tmp_path: Path, address: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(DATA)
    listener = here.listen(address)
    peer = at(listener)
    received = pool.submit(read, listener)
    tcp = ("--tcp", '{ congestion = "cubic" }', "--set", "recovery=rack")
    done = here.lasthop("send", file, peer, "--json", *tcp)
    assert done.returncode == 0, done.stderr
    assert sha(received.result()) == sha(DATA)
    found = json.loads(done.stdout)
    assert (found["remote"], found["bytes"]) == (peer, len(DATA))
    assert found["goodput_bps"] == pytest.approx(len(DATA) * 8 / found["seconds"])
    assert found["peer_end"] == "closed"
    assert found["segments"] * 1500 > len(DATA)
    assert 0 < found["min_rtt_s"] <= found["srtt_s"]


@real
@pytest.mark.parametrize("address", ["127.0.0.1", "2001:db8::1"])
def test_a_file_comes_from_the_kernel(
    here: Machine, pool: ThreadPoolExecutor, tmp_path: Path, address: str
) -> None:
    listener = here.listen(address)
    writing = pool.submit(write, listener, DATA)
    output = tmp_path / "new"
    done = here.lasthop("receive", at(listener), "-o", output)
    assert done.returncode == 0, done.stderr
    writing.result()
    assert sha(output.read_bytes()) == sha(DATA)
    assert list(tmp_path.iterdir()) == [output]
    assert b"received 6000000 bytes in" in done.stderr
    assert b"retransmissions" not in done.stderr


@real
def test_standard_input_comes_out_of_another_lasthop(
    here: Machine, pool: ThreadPoolExecutor
) -> None:
    receiving = here.start("receive", "--listen", "9000")
    assert receiving.stderr is not None
    while b"listening" not in receiving.stderr.readline():
        assert receiving.poll() is None
    output = pool.submit(receiving.communicate, timeout=60)
    done = here.lasthop("send", "-", "[2001:2::2]:9000", data=DATA)
    assert done.returncode == 0, done.stderr
    assert sha(output.result()[0]) == sha(DATA)
    assert receiving.returncode == 0


@real
@masquerades
@pytest.mark.parametrize("address", ["192.0.2.2", "2001:db8::2"])
def test_a_peer_beyond_the_machine_is_reached_by_masquerading(
    here: Machine, there: Machine, pool: ThreadPoolExecutor, address: str
) -> None:
    listener = there.listen(address)
    peer = at(listener)
    plain = here.lasthop("send", "-", peer, data=DATA)
    assert plain.returncode == 2
    assert b"--masquerade" in plain.stderr
    if (
        address == "2001:db8::2"
        and not Path("/proc/sys/net/ipv6/conf/lo/force_forwarding").exists()
    ):
        pytest.skip("this kernel forwards IPv6 from all devices or from none")
    received = pool.submit(read, listener)
    done = here.lasthop("send", "-", peer, "--masquerade", data=DATA)
    assert done.returncode == 0, done.stderr
    assert sha(received.result()) == sha(DATA)
    assert b"masqueraded" in done.stderr


@real
def test_a_reset_in_the_middle_is_an_error_and_leaves_no_file(
    here: Machine, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    listener = here.listen("127.0.0.1")
    received = pool.submit(read, listener, 100_000)
    done = here.lasthop("send", "-", at(listener), data=DATA)
    assert done.returncode == 1
    assert b"reset the connection after" in done.stderr
    received.result()
    listener = here.listen("127.0.0.1")
    writing = pool.submit(write, listener, DATA[:100_000], resets=True)
    done = here.lasthop("receive", at(listener), "-o", tmp_path / "new")
    assert done.returncode == 1
    assert b"reset the connection after 100000 bytes" in done.stderr
    writing.result()
    assert list(tmp_path.iterdir()) == []


@real
def test_a_refused_connection_ends_with_status_1(here: Machine, tmp_path: Path) -> None:
    listener = here.listen("127.0.0.1")
    peer = at(listener)
    listener.close()
    done = here.lasthop("send", "-", peer)
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"{peer} refused the connection".encode() in done.stderr
    done = here.lasthop("receive", peer, "-o", tmp_path / "new")
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []


@real
def test_an_existing_file_is_overwritten_by_force_only(
    here: Machine, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    output = tmp_path / "old"
    output.write_text("old")
    listener = here.listen("127.0.0.1")
    peer = at(listener)
    done = here.lasthop("receive", peer, "-o", output)
    assert done.returncode == 2
    assert b"--force overwrites it" in done.stderr
    assert output.read_text() == "old"
    writing = pool.submit(write, listener, b"new")
    assert here.lasthop("receive", peer, "-o", output, "--force").returncode == 0
    writing.result()
    assert output.read_text() == "new"


@real
@pytest.mark.parametrize(
    ("peer", "why"),
    [
        ("192.0.2.255:9", "is not the address of one machine"),
        ("224.0.0.1:9", "is not the address of one machine"),
        ("[::1]:9", "is reached by the loopback device alone"),
    ],
)
def test_an_address_that_is_no_machine_s_is_refused(here: Machine, peer: str, why: str) -> None:
    here.run("ip", "route", "replace", "224.0.0.0/4", "dev", "out")
    done = here.lasthop("send", "-", peer)
    assert done.returncode == 2
    assert why.encode() in done.stderr


@real
def test_an_address_that_is_routed_is_not_taken(here: Machine) -> None:
    routed = here.lasthop("receive", "--listen", "9000", "--address", "192.0.2.5")
    assert routed.returncode == 2
    assert b"there is a route to 192.0.2.0/24" in routed.stderr
    here.run("ip", "route", "add", "198.18.0.0/15", "dev", "out")
    try:
        full = here.lasthop("send", "-", "127.0.0.1:9")
        given = here.lasthop("send", "-", "127.0.0.1:9", "--address", "10.1.1.1")
    finally:
        here.run("ip", "route", "delete", "198.18.0.0/15", "dev", "out")
    assert full.returncode == 2
    assert b"198.18.0.0/15 is routed here" in full.stderr
    assert given.returncode == 1
    assert b"10.1.1.1 for lasthop, 10.1.1.2 for the kernel" in given.stderr


def connected(
    here: Machine, there: Machine, pool: ThreadPoolExecutor
) -> tuple[subprocess.Popen[bytes], Future[bytes]]:
    """A masqueraded transfer that waits for its standard input."""
    listener = there.listen("192.0.2.2")
    received = pool.submit(read, listener)
    process = here.start("send", "-", at(listener), "--masquerade")
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"hello")
    process.stdin.flush()
    while b"connecting" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.5)
    assert here.changed() == [
        "lasthop0",
        f"table ip lasthop-{process.pid}-lasthop0",
        "net.ipv4.conf.out.forwarding",
    ]
    return process, received


@real
@masquerades
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whatever_ends_it_leaves_nothing(
    here: Machine, there: Machine, pool: ThreadPoolExecutor, ending: signal.Signals
) -> None:
    process, received = connected(here, there, pool)
    process.send_signal(ending)
    # Its standard input stays open: the end of that would be the end of what is sent.
    assert process.wait(timeout=60) == 130
    _, stderr = process.communicate()
    assert b"interrupted" in stderr
    assert here.changed() == []
    # The peer does not take a part for the whole.
    with pytest.raises(ConnectionResetError):
        received.result()


@real
@masquerades
@pytest.mark.usefixtures("alone_in_cleaning")
def test_what_a_killed_transfer_leaves_can_be_removed(
    here: Machine, there: Machine, pool: ThreadPoolExecutor
) -> None:
    killed, received = connected(here, there, pool)
    here.run("nft", "add", "table", "ip", "another")
    # What belongs to a transfer under way stays; what others left on this machine may go.
    before = here.changed()
    assert f"lasthop-{killed.pid}-".encode() not in here.lasthop("testbed", "clean").stdout
    assert here.changed() == before
    killed.kill()
    killed.communicate(timeout=60)
    table = f"table ip lasthop-{killed.pid}-lasthop0"
    assert here.changed() == [table, "table ip another", "net.ipv4.conf.out.forwarding"]
    done = here.lasthop("testbed", "clean")
    assert done.returncode == 0, done.stderr
    assert f"nft {table}" in done.stdout.decode()
    assert here.changed() == ["table ip another"]
    here.run("nft", "delete", "table", "ip", "another")
    # The peer waits for ever: no end is left to answer.
    there.run("ss", "-K", "dport", ">", "0")
    with pytest.raises(OSError, match=r"."):
        received.result()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("send", "nothing", "127.0.0.1:9"), "cannot read 'nothing': No such file"),
        (("send", ".", "127.0.0.1:9"), "cannot read '.': Is a directory"),
        (("send", "-", "127.0.0.1"), "expected HOST:PORT"),
        (("send", "-", "127.0.0.1:99999"), "expected HOST:PORT"),
        (("send", "-", "::1:9"), "[2001:db8::1]:9000"),
        (("send", "-", "127.0.0.1:9", "-6"), "no address of '127.0.0.1'"),
        (("send", "-", "127.0.0.1:9", "--set", "congestoin=cubic"), "did you mean `congestion`?"),
        (("send", "-", "127.0.0.1:9", "--set", "congestion=cubik"), "did you mean `cubic`?"),
        (("send", "-", "127.0.0.1:9", "--set", "congestion"), "KEY=VALUE"),
        (("send", "-", "127.0.0.1:9", "--tcp", "{ mss = 0 }"), "`tcp.mss = 0`"),
        (("send", "-", "127.0.0.1:9", "--tcp", "{"), "not valid TOML"),
        (("send", "-", "127.0.0.1:9", "--address", "here"), "expected an IP address"),
        (("receive",), "either HOST:PORT"),
        (("receive", "127.0.0.1:9", "--listen", "9"), "either HOST:PORT"),
        (("receive", "127.0.0.1:9", "--json"), "give -o FILE"),
        (("receive", "--listen", "9", "--masquerade"), "for connecting"),
        (("receive", "127.0.0.1:9", "-o", "no/such/file"), "cannot write 'no/such/file'"),
    ],
)
def test_mistakes_end_with_a_hint_and_status_2(
    lasthop: Command, words: tuple[str, ...], hint: str
) -> None:
    done = lasthop(*words)
    assert done.returncode == 2, done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
