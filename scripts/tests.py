"""Compiles all tests, and runs them in two lanes at the same time.

python scripts/tests.py [FLAGS FOR CARGO]

Tests of real packets need to be in time, and mostly wait. Beside them, at a lower priority, runs
what only computes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Crates whose tests send real packets.
PACKETS = ("gateway", "live", "testbed", "marker", "controls")
#: Random tests draw the same cases every time, so that a commit passes everywhere or nowhere; `make
#: soak` draws others. More tests at a time than there are processors: those of real packets wait.
ENVIRONMENT = {"PROPTEST_RNG_SEED": "1", "RUST_TEST_THREADS": "6"}
PYTEST = (sys.executable, "-m", "pytest")


@dataclass(frozen=True)
class Step:
    """A program that runs tests."""

    name: str
    command: Sequence[str | Path]
    folder: Path = ROOT


class Lane(threading.Thread):
    """Steps, one after the other; those that failed are kept."""

    def __init__(self, steps: Sequence[Step], before: Sequence[str] = ()) -> None:
        super().__init__()
        self.steps = steps
        self.before = before
        self.failed: list[str] = []

    def run(self) -> None:
        for step in self.steps:
            say(f"{step.name} ...")
            started = time.monotonic()
            command = [*self.before, *map(str, step.command)]
            with subprocess.Popen(
                command,
                cwd=step.folder,
                env={**os.environ, **ENVIRONMENT},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            ) as program:
                assert program.stdout is not None
                for line in program.stdout:
                    write(line)
            if program.returncode != 0:
                self.failed.append(step.name)
            took = time.monotonic() - started
            say(f"{step.name}: {'FAILED' if program.returncode else 'passed'} in {took:.0f} s")


_turn = threading.Lock()


def write(line: bytes) -> None:
    """Shows a line whole, whichever lane it is of."""
    with _turn:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def say(words: str) -> None:
    write(f"== {words}\n".encode())


def compiled(flags: Sequence[str]) -> list[tuple[str, Step]]:
    """The programs with tests of all crates, with the crate's folder."""
    # Of libraries and programs, too, but not of those that say `test = false`: they have none, and
    # `--lib --bins` would compile them all the same.
    cargo = ["cargo", "test", "--no-run", "--workspace", "--tests", *flags]
    form = "--message-format=json-render-diagnostics"
    done = subprocess.run([*cargo, form], cwd=ROOT, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    found = []
    for message in map(json.loads, done.stdout.splitlines()):
        if message["reason"] == "compiler-artifact" and message["profile"]["test"]:
            folder = Path(message["manifest_path"]).parent
            name = f"{folder.name} {message['target']['name']}"
            found.append((folder.name, Step(name, [message["executable"]], folder)))
    return found


def main() -> None:
    """Exits with 1 if a test failed."""
    flags = sys.argv[1:]
    programs = compiled(flags)
    unknown = set(PACKETS) - {crate for crate, _ in programs}
    assert not unknown, f"no tests of {unknown}"
    packets = Lane(
        [
            *(step for crate, step in programs if crate in PACKETS),
            Step("pytest, real packets", [*PYTEST, "-m", "packets and not soak"]),
        ]
    )
    doc = ["cargo", "test", "--workspace", "--doc", "--quiet", *flags]
    computed = Lane(
        [
            *(step for crate, step in programs if crate not in PACKETS),
            Step("examples in documentation", doc),
            Step(
                "pytest",
                [
                    *(*PYTEST, "-n", "2", "--dist", "loadfile", "--durations", "15"),
                    *("-m", "not packets and not soak"),
                ],
            ),
        ],
        before=["nice", "-n", "10"],
    )
    for lane in (packets, computed):
        lane.start()
    for lane in (packets, computed):
        lane.join()
    failed = packets.failed + computed.failed
    for name in failed:
        say(f"FAILED: {name}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
