"""Runs on real packets, as users of the command and of the package make them.

They need root, network namespaces and TUN devices; without, they say so and are skipped.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fixtures import Command
from real_packets import is_permitted, real

import lasthop as package

pytestmark = pytest.mark.packets

SCENARIO = """
title    = "A transfer on real packets"
duration = "2 s"
[nodes]
a = {}
b = {}
[[links]]
between = ["a", "b"]
rate    = "20 Mbit/s"
delay   = "10 ms"
queue   = "100 packets"
[[flows]]
name    = "ours"
from    = "a"
to      = "b"
traffic = { size = "500 kB" }
[[flows]]
name    = "kernel's"
from    = "a"
to      = "b"
stack   = "linux"
traffic = { size = "500 kB" }
[testbed]
late = "1 s"
"""

#: What a run leaves while it lasts.
NAMESPACES = Path("/run/netns")


@pytest.fixture
def transfer(tmp_path: Path) -> Path:
    path = tmp_path / "transfer.toml"
    path.write_text(SCENARIO)
    return path


def left_by(process: int) -> list[str]:
    """The namespaces of a process that are there."""
    if not NAMESPACES.exists():
        return []
    return sorted(path.name for path in NAMESPACES.glob(f"lasthop-{process}-*"))


def started(transfer: Path) -> subprocess.Popen[str]:
    """A run that would take long, under way."""
    endless = ("flows.0.traffic=bulk", "flows.1.traffic=bulk", "duration=1000 s")
    words = ("run", str(transfer), "--testbed", *(f"--set={one}" for one in endless))
    process = subprocess.Popen(
        [sys.executable, "-m", "lasthop", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    deadline = time.monotonic() + 60
    while len(left_by(process.pid)) < 2 and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    time.sleep(0.5)
    return process


@real
def test_a_run_shows_the_lab_s_table_and_how_far_it_can_be_trusted(
    lasthop: Command, transfer: Path, tmp_path: Path
) -> None:
    done = lasthop("run", transfer, "--testbed", "--seed", "3", "--latency", "times.svg")
    assert done.returncode == 0, done.stderr
    assert "share of samples over RTT, ms; lines: ours" in (tmp_path / "times.svg").read_text()
    assert "ours: a → b" in done.stdout
    assert "kernel's: a → b" in done.stdout
    assert "seed 3" in done.stdout
    assert "digest" not in done.stdout
    assert "testbed:" in done.stdout
    assert "valid" in done.stdout


@real
def test_values_that_no_end_reports_are_null(lasthop: Command, transfer: Path) -> None:
    done = lasthop("run", transfer, "--testbed", "--json")
    found = json.loads(done.stdout)
    ours, kernels = found["flows"]
    assert ours["payload_bytes"] == kernels["payload_bytes"] == 500_000
    assert ours["reductions"] is not None
    assert kernels["reductions"] is None
    assert kernels["segments"] >= 343
    assert kernels["misplaced"] == 0
    assert found["testbed"]["void"] is None
    assert found["testbed"]["packets"] > 686


@real
def test_a_void_run_ends_with_status_1(lasthop: Command, transfer: Path) -> None:
    strict = ("--set", "testbed.late=1 ns", "--set", "testbed.void_above=0")
    done = lasthop("run", transfer, "--testbed", *strict)
    assert done.returncode == 1
    assert "VOID" in done.stdout
    assert "late or lost beyond the model" in done.stdout


@real
def test_the_package_runs_on_real_packets_too(transfer: Path) -> None:
    result = package.run(transfer, testbed=True)
    assert result.rows["payload_bytes"].to_list() == [500_000, 500_000]
    assert result.rows["notices"].to_list() == [0, None]
    assert result.links["link"].to_list() == ["a->b", "b->a"]
    assert result.health is not None
    assert result.health.late_share == 0
    assert result.digest == ""
    # Of round trips, only our stack has samples.
    assert result.distribution("rtt")["time_s"][0] > 0.02
    assert set(result.distributions["queue_delay"]) == {"a->b", "b->a"}


@real
def test_ctrl_c_leaves_nothing(transfer: Path) -> None:
    for ending in (signal.SIGINT, signal.SIGTERM):
        process = started(transfer)
        process.send_signal(ending)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 130, stderr
        assert left_by(process.pid) == []


@real
@pytest.mark.usefixtures("alone_in_cleaning")
def test_what_a_killed_run_leaves_can_be_removed(lasthop: Command, transfer: Path) -> None:
    process = started(transfer)
    # What belongs to a run under way stays.
    lasthop("testbed", "clean")
    assert len(left_by(process.pid)) == 2
    process.kill()
    process.communicate(timeout=60)
    left = left_by(process.pid)
    assert left == [f"lasthop-{process.pid}-{node}" for node in "ab"]
    done = lasthop("testbed", "clean")
    assert done.returncode == 0
    assert set(left) <= set(done.stdout.split())
    assert left_by(process.pid) == []


@pytest.mark.skipif(is_permitted() and os.geteuid() != 0, reason="cannot change the user")
def test_a_user_without_permission_learns_what_is_missing(transfer: Path) -> None:
    source = transfer.read_text()
    code = (
        "import os, sys, lasthop\n"
        "from lasthop import _lasthop as engine\n"
        "if os.geteuid() == 0: os.setgid(65534), os.setuid(65534)\n"
        "try: engine.run_testbed(sys.stdin.read(), 'case')\n"
        "except lasthop.TestbedError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=source, capture_output=True, text=True, check=False
    )
    assert "needs root" in done.stdout, done.stderr
    assert "CAP_SYS_ADMIN" in done.stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("demo", "--set", "flows.0.tcp.eten=oracle"), "the testbed cannot run the oracle"),
        (("demo", "--trace", "here"), "only the lab does"),
        (("demo", "--set", "flows.0.stack=bsd"), '"lasthop", "linux"'),
    ],
)
def test_what_cannot_be_run_on_real_packets_ends_with_status_2(
    lasthop: Command, words: tuple[str, ...], hint: str
) -> None:
    done = lasthop("run", *words, "--testbed")
    assert done.returncode == 2
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
