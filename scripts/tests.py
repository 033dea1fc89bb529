"""Compiles all tests, and runs them in two lanes at the same time.

python scripts/tests.py [FLAGS FOR CARGO]

Tests of real packets need to be in time, and mostly wait. Beside them, at a lower priority, runs
what only computes: the compiler at first, then the other tests.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Crates whose tests send real packets.
PACKETS = ("gateway", "live", "testbed", "marker", "controls")
#: Random tests draw the same cases every time, so that a commit passes everywhere or nowhere; `make
#: soak` draws others. More tests at a time than there are processors: those of real packets wait.
ENVIRONMENT = {"PROPTEST_RNG_SEED": "1", "RUST_TEST_THREADS": "6"}
PYTEST = (sys.executable, "-m", "pytest")
#: What computes leaves the processors to what has to be in time.
ASIDE = ("nice", "-n", "10")


@dataclass(frozen=True)
class Step:
    """A program that runs tests."""

    name: str
    command: Sequence[str | Path]
    folder: Path = ROOT


class Lane(threading.Thread):
    """Steps, one after the other, as they come; those that failed are kept."""

    def __init__(self, before: Sequence[str] = ()) -> None:
        super().__init__(daemon=True)  # Ctrl-C ends all.
        self.before = before
        self.failed: list[str] = []
        self._steps: queue.SimpleQueue[Step | None] = queue.SimpleQueue()

    def add(self, *steps: Step) -> None:
        """Steps to do after those that were added before."""
        for step in steps:
            self._steps.put(step)

    def finish(self) -> None:
        """Waits until all steps are done: there are no more."""
        self._steps.put(None)
        self.join()

    def run(self) -> None:
        for step in iter(self._steps.get, None):
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


def compiled(flags: Sequence[str]) -> Iterator[tuple[str, Step]]:
    """The programs with tests of all crates, each with its crate, as soon as it is compiled."""
    # Of libraries and programs, too, but not of those that say `test = false`: they have none, and
    # `--lib --bins` would compile them all the same.
    cargo = [*ASIDE, "cargo", "test", "--no-run", "--workspace", "--tests", *flags]
    form = "--message-format=json-render-diagnostics"
    with subprocess.Popen([*cargo, form], cwd=ROOT, stdout=subprocess.PIPE) as compiler:
        assert compiler.stdout is not None
        for message in map(json.loads, compiler.stdout):
            if message["reason"] == "compiler-artifact" and message["profile"]["test"]:
                folder = Path(message["manifest_path"]).parent
                name = f"{folder.name} {message['target']['name']}"
                yield folder.name, Step(name, [message["executable"]], folder)
    if compiler.returncode:
        raise subprocess.CalledProcessError(compiler.returncode, cargo)


def main() -> None:
    """Exits with 1 if a test failed, or a program of tests could not be compiled."""
    flags = sys.argv[1:]
    packets, computed = Lane(), Lane(before=ASIDE)
    for lane in (packets, computed):
        lane.start()
    # Real packets need few instructions: their tests begin while programs are compiled.
    packets.add(Step("pytest, real packets", [*PYTEST, "-m", "packets and not soak"]))
    found: set[str] = set()
    later: list[Step] = []
    failed: list[str] = []
    try:
        for crate, step in compiled(flags):
            found.add(crate)
            if crate in PACKETS:
                packets.add(step)
            else:
                later.append(step)
    except subprocess.CalledProcessError:
        failed.append("compilation")
    else:
        unknown = set(PACKETS) - found
        assert not unknown, f"no tests of {unknown}"
        doc = ["cargo", "test", "--workspace", "--doc", "--quiet", *flags]
        computed.add(
            *later,
            Step("examples in documentation", doc),
            Step(
                "pytest",
                [
                    *(*PYTEST, "-n", "2", "--dist", "loadfile", "--durations", "15"),
                    *("-m", "not packets and not soak"),
                ],
            ),
        )
    for lane in (packets, computed):
        lane.finish()
        failed += lane.failed
    for name in failed:
        say(f"FAILED: {name}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
