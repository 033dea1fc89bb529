"""How programs behind emulated links end: by signals, and at a terminal.

They need root, network namespaces and TUN devices; without, they say so and are skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures import Command
from real_packets import real
from shells import left_by

from lasthop import shell

pytestmark = pytest.mark.packets


@pytest.fixture
def started(hop: Path, server: str) -> Iterator[subprocess.Popen[str]]:
    """A shell with a program that would take long, under way."""
    program = ("sh", "-c", "echo $$; exec sleep 1000")
    with subprocess.Popen(
        [sys.executable, "-m", "lasthop", "shell", hop, "--serve", server, "--", *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        # It is not at the terminal of whoever runs the tests.
        start_new_session=True,
    ) as process:
        yield process
        process.terminate()


def program_of(process: subprocess.Popen[str]) -> int:
    """The process id of the program, once it runs."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()
    return int(line)


def is_there(process: int) -> bool:
    """Whether a process runs; one that has ended has no namespace."""
    return Path(f"/proc/{process}/ns/net").exists()


@real
@pytest.mark.parametrize(
    ("ending", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_whatever_ends_it_leaves_nothing(
    started: subprocess.Popen[str], ending: signal.Signals, status: int
) -> None:
    program = program_of(started)
    assert len(left_by(started.pid)) == 3
    started.send_signal(ending)
    _, stderr = started.communicate(timeout=30)
    assert started.returncode == status, stderr
    assert "Traceback" not in stderr
    assert left_by(started.pid) == []
    assert not is_there(program)


@real
@pytest.mark.usefixtures("alone_in_cleaning")
def test_what_a_killed_shell_leaves_can_be_removed(
    lasthop: Command, started: subprocess.Popen[str]
) -> None:
    program = program_of(started)
    # What belongs to one under way stays.
    lasthop("testbed", "clean")
    assert is_there(program)
    assert len(left_by(started.pid)) == 3
    started.kill()
    started.wait(timeout=30)
    assert is_there(program)
    done = lasthop("testbed", "clean")
    assert done.returncode == 0, done.stderr
    assert {f"lasthop-{started.pid}-{node}" for node in ("server", "gateway", "phone")} <= set(
        done.stdout.split()
    )
    assert left_by(started.pid) == []
    assert not is_there(program)
    started.communicate(timeout=30)


@real
@pytest.mark.skipif(shutil.which("script") is None, reason="a terminal needs script")
def test_an_interactive_shell_says_where_it_is(hop: Path, server: str) -> None:
    env = {**os.environ, "SHELL": "/bin/bash", "NO_COLOR": "1"}
    command = f"{sys.executable} -m lasthop shell {hop} --serve '{server}'"
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        input="echo at:$LASTHOP_SERVER\nexit 4\n",
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
        check=False,
    )
    assert done.returncode == 4, done.stdout
    assert "(lasthop hop) " in done.stdout
    assert "at:10.128.0.1" in done.stdout


@real
@pytest.mark.skipif(shutil.which("script") is None, reason="a terminal needs script")
def test_ctrl_c_at_the_terminal_is_the_program_s(hop: Path, server: str) -> None:
    program = hop.with_suffix(".py")
    program.write_text("""
import signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
print("ready", flush=True)
while not got:
    time.sleep(0.05)
time.sleep(0.5)
print("interrupts:", len(got), flush=True)
sys.exit(9)
""")
    # A shell that stays has got the interrupt, too, and ends by it.
    command = f"exec {sys.executable} -m lasthop shell {hop} --serve '{server}' -- "
    with subprocess.Popen(
        ["script", "-qec", f"{command} {sys.executable} {program}", "/dev/null"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as terminal:
        assert terminal.stdin is not None
        assert terminal.stdout is not None
        while "ready" not in terminal.stdout.readline():
            assert terminal.poll() is None
        terminal.stdin.write("\x03")
        terminal.stdin.flush()
        shown = terminal.stdout.read()
    assert "interrupts: 1" in shown
    assert "gateway->phone" in shown
    assert terminal.returncode == 9


@pytest.mark.parametrize("at_terminal", [False, True])
def test_an_interrupt_before_the_program_is_known_is_kept_for_it(
    at_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the terminal, the program has got it from there, and is not interrupted twice."""
    monkeypatch.setattr(shell, "_at_terminal", lambda: at_terminal)
    with shell._interrupts() as pass_to, subprocess.Popen(["sleep", "15"]) as program:
        signal.raise_signal(signal.SIGINT)
        pass_to(program.pid)
        if at_terminal:
            assert program.poll() is None
            program.kill()
        assert program.wait(timeout=10) == -(signal.SIGKILL if at_terminal else signal.SIGINT)
