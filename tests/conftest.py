"""What several tests use."""

from __future__ import annotations

import html
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import shells
from fixtures import Command, Off, Written

from lasthop.publications.study.published import Answer
from lasthop.publications.study.reproduce import write
from lasthop.publications.study.runs import Case, Runs
from lasthop.publications.study.study import Study

#: Small enough to sweep in no time, with something of everything.
SCENARIO = """
title    = "A small sweep"
profile  = "ns2-2001"
duration = "5 s"

[nodes]
a = {}
b = {}

[[links]]
between = ["a", "b"]
rate    = "1.5 Mbit/s"
delay   = "10 ms"
queue   = "50 packets"
errors  = { bit = 1e-6 }

[[flows]]
name    = "bulk"
from    = "a"
to      = "b"
tcp     = { mss = 536, receive_window = "20 segments" }

[[flows]]
name    = "file"
from    = "a"
to      = "b"
start   = "1 s"
traffic = { size = "50 kB" }

[sweep]
seeds = 3
"links.0.errors.bit"    = [0.0, 1e-5]
"flows.0.tcp.recovery"  = ["reno", "sack"]
"""


@pytest.fixture
def alone_in_cleaning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No other worker runs a test with this: `lasthop testbed clean` removes what any run left."""
    import fcntl  # Not on every platform.

    with (tmp_path_factory.getbasetemp().parent / "cleaning").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(autouse=True)
def _width_of_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readline, which pytest imports, sets these for all that it starts: its workers, for one."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A file with a small scenario."""
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def hop(tmp_path: Path) -> Path:
    """A file with a scenario for programs that run behind its hop."""
    return shells.hop(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> str:
    """The command of a server for them, with a file."""
    return shells.server(tmp_path)


@pytest.fixture
def lasthop(tmp_path: Path) -> Command:
    """Runs the command in an empty folder, as a user does."""

    def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lasthop", *map(str, words)],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1", **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """The same in this process, for many cases: to start another takes twenty times as long."""

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        from lasthop import cli

        said = [*map(str, words)]
        monkeypatch.chdir(tmp_path)
        for name, value in (("COLUMNS", "160"), ("NO_COLOR", "1"), ("TERM", "dumb")):
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["lasthop", *said])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        status = ended.value.code
        assert isinstance(status, int)
        return subprocess.CompletedProcess(said, status, *capfd.readouterr())

    return run


@pytest.fixture
def off() -> Off:
    """Puts plain TCP's runs in the place of a mechanism's."""

    def substituted(
        pool: Runs,
        cases: Iterable[Case],
        plain: Callable[[Case], Case],
        runs: int,
        spread: float = 0.0,
    ) -> Runs:
        found: dict[Case, Mapping[str, Sequence[float | None]]] = {}
        for case in cases:
            of = plain(case)
            dice = random.Random(repr(case))
            chosen = dice.choices(range(pool.count(of)), k=runs)
            factors = [dice.gauss(1, spread) for _ in chosen]
            found[case] = {
                metric: [
                    None if value is None else value * factor
                    for value, factor in zip([values[run] for run in chosen], factors, strict=True)
                ]
                for metric, values in pool.found[of].items()
            }
        return Runs(found)

    return substituted


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Writes them once for all tests of a module that only read them."""
    done: dict[str, tuple[Path, Sequence[Answer]]] = {}

    def of(study: Study, runs: Runs) -> tuple[Path, Sequence[Answer]]:
        if study.experiment not in done:
            folder = tmp_path_factory.mktemp("written")
            answers = write(study, folder, runs)
            done[study.experiment] = folder, answers
            # What every report has, whatever it is of: a verdict has its criterion, a picture is
            # described.
            page = (folder / "report.html").read_text()
            judged = [answer for answer in answers if answer.verdict is not None]
            assert [answer.claim for answer in judged if not answer.criterion] == []
            assert all(html.escape(answer.criterion) in page for answer in judged)
            assert page.count("<svg ") == page.count("<title id=") == page.count("<desc id=")
        return done[study.experiment]

    return of
