"""Programs behind emulated links, as users of `lasthop shell` run them.

They need root, network namespaces and TUN devices; without, they say so and are skipped.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from fixtures import Command
from real_packets import real
from shells import CLIENT, RATE_BPS, SIZE, packets

pytestmark = pytest.mark.packets


@real
def test_a_program_has_the_rate_and_the_losses_of_the_hop(
    lasthop: Command, hop: Path, server: str
) -> None:
    done = lasthop("shell", hop, "--serve", server, "--", sys.executable, "-c", CLIENT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for got, seconds in found.values():
        assert got == SIZE
        assert 0.5 * RATE_BPS < 8 * got / seconds < RATE_BPS
    sent, _, _, lost = packets(done.stderr, "gateway->phone")
    assert sent > 2 * SIZE / 1500
    assert 0 < lost < 0.03 * sent
    assert "valid" in done.stderr


@real
def test_a_remedy_is_in_the_path(lasthop: Command, hop: Path, server: str) -> None:
    words = ("--serve", server, "--remedy", "spoofer", "--", sys.executable, "-c", CLIENT)
    done = lasthop("shell", hop, *words)
    assert done.returncode == 0, done.stderr
    assert [got for got, _ in json.loads(done.stdout).values()] == [SIZE, SIZE]
    assert 'gateway: { box = "spoofer"' in done.stderr
    assert re.search(r"gateway: \d+ ", done.stderr.split("gateway->phone")[1]), done.stderr


@real
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), 137),
        (("no-such-program",), 127),
        (("/dev/null",), 126),
    ],
)
def test_the_status_is_that_of_the_program(
    lasthop: Command, hop: Path, server: str, words: tuple[str, ...], status: int
) -> None:
    done = lasthop("shell", hop, "--quiet", "--serve", server, "--", *words)
    assert done.returncode == status, done.stderr
    assert ("cannot run" in done.stderr) == (status in (126, 127))
    assert "testbed" not in done.stderr


@real
def test_both_ends_have_the_congestion_control_that_is_wanted(lasthop: Command, hop: Path) -> None:
    # Each end prints that of its own socket.
    end = """
import os, socket, sys
address = os.environ["LASTHOP_SERVER" + sys.argv[2]], 8000
if sys.argv[1] == "serves":
    family = socket.AF_INET6 if sys.argv[2] else socket.AF_INET
    stream = socket.create_server(address, family=family).accept()[0]
else:
    stream = socket.create_connection(address)
control = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
print(sys.argv[1], control.rstrip(bytes(1)).decode(), flush=True)
# The client ends after the server has printed.
sys.argv[1] == "serves" or stream.recv(1)
"""
    script = hop.with_suffix(".py")
    script.write_text(end)
    for version in ("", "_V6"):
        program = f"{sys.executable} {script} {{}} '{version}'"
        words = ("--serve", program.format("serves"), "--congestion", "reno")
        done = lasthop("shell", hop, *words, "--", "sh", "-c", program.format("connects"))
        assert done.stdout == "connects reno\n", done.stderr
        assert "serves reno\n" in done.stderr
    unknown = lasthop("shell", hop, "--congestion", "rheno", "--serve", "true", "--", "true")
    assert unknown.returncode == 2
    assert 'the congestion control "rheno"' in unknown.stderr


@real
def test_a_server_that_fails_is_an_error(lasthop: Command, hop: Path) -> None:
    done = lasthop("shell", hop, "--serve", "exit 3", "--", "true")
    assert done.returncode == 2
    assert "the server ended with status 3" in done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("nowhere",), "no scenario file 'nowhere'"),
        (("examples/geo-lossy", "--flow", "dwnload"), "did you mean 'download'?"),
        (("examples/shared",), "Give one by --flow"),
        (("examples/geo-lossy", "--remedy", "snop"), "did you mean 'snoop'?"),
        (("examples/geo-lossy", "--box", "spoofer"), "no table of TOML"),
        (("examples/geo-lossy", "--box", "{ box = 'spofer' }"), "did you mean `spoofer`?"),
        (("examples/geo-lossy", "--box", "{ box = 'esp' }"), "cannot be run with programs"),
        (("examples/handover", "--box", "{ box = 'spoofer' }"), "--set 'nodes.NAME.boxes"),
    ],
)
@real
def test_mistakes_end_with_a_hint_and_status_2(
    lasthop: Command, words: tuple[str, ...], hint: str
) -> None:
    done = lasthop("shell", *words, "--serve", "true", "--", "true")
    assert done.returncode == 2, done.stderr
    assert hint in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
