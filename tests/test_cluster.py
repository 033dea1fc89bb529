"""Sweeps on a cluster: the same as on one machine, whatever becomes of workers and client."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fixtures import Command

import lasthop as package
from lasthop import cluster

#: Seconds of work, in parts of one run up to some tens.
LONGER = ("--set", "duration=400 s", "--seeds", "40")
RUNS = 4 * 40


@dataclass
class Dask:
    """A scheduler and workers of one thread each, as processes of their own."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[Dask]:
    """Such a cluster, on this machine's loopback alone."""
    found = folder / "scheduler.json"
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> None:
        options = ("--host", "127.0.0.1", "--scheduler-file", str(found), "--no-dashboard")
        with (folder / f"dask-{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words, *options], stdout=log, stderr=log, cwd=folder
            )
        started.append(process)

    try:
        start("scheduler", "--port", "0")
        for _ in range(workers):
            start("worker", "--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
        until = time.monotonic() + 60
        # The file exists before its content is written.
        while not found.exists() or not found.read_text().endswith("}"):
            assert time.monotonic() < until
            time.sleep(0.05)
        yield Dask(json.loads(found.read_text())["address"], started[1:])
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextmanager
def in_the_middle(scenario: Path, output: Path, address: str) -> Iterator[subprocess.Popen[str]]:
    """The longer sweep on a cluster, when it has kept some more runs and has others to do."""
    words = [sys.executable, "-m", "lasthop", "sweep", str(scenario), *LONGER]
    words += ["--cluster", address, "-o", output.name]
    part = output.with_name(f"{output.name}.part")
    before = part.stat().st_size if part.exists() else 0
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=output.parent
    ) as ran:
        while not part.exists() or part.stat().st_size < before + 3_000:
            assert ran.poll() is None, ran.communicate()
            time.sleep(0.001)
        yield ran


def test_a_cluster_writes_the_very_bytes_though_a_worker_is_killed(
    lasthop: Command, scenario: Path, tmp_path: Path
) -> None:
    assert lasthop("sweep", scenario, *LONGER, "-o", "here.parquet").returncode == 0
    output = tmp_path / "there.parquet"
    with (
        dask(tmp_path, workers=2) as there,
        in_the_middle(scenario, output, there.address) as sweep,
    ):
        there.workers[0].send_signal(signal.SIGKILL)
        there.workers[0].wait()
        assert sweep.poll() is None, "it was over too soon"
        _, stderr = sweep.communicate(timeout=60)
    assert sweep.returncode == 0
    assert f"all rows of {RUNS} runs" in stderr
    assert output.read_bytes() == (tmp_path / "here.parquet").read_bytes()


def test_a_sweep_that_was_ended_goes_on_with_what_a_cluster_did_and_without_it(
    lasthop: Command, scenario: Path, tmp_path: Path
) -> None:
    assert lasthop("sweep", scenario, *LONGER, "-o", "here.csv").returncode == 0
    output = tmp_path / "there.csv"
    with dask(tmp_path, workers=2) as there:
        with in_the_middle(scenario, output, there.address) as sweep:
            sweep.send_signal(signal.SIGKILL)
        with in_the_middle(scenario, output, there.address) as sweep:
            sweep.send_signal(signal.SIGINT)
            stdout, stderr = sweep.communicate(timeout=60)
        assert (sweep.returncode, "Traceback" in stderr) == (130, False), stderr
        assert "mean and 95 % confidence interval" in stdout
        assert "there.csv.part keeps them" in stderr
        with in_the_middle(scenario, output, there.address) as sweep:
            for worker in there.workers:
                worker.kill()
            sweep.send_signal(signal.SIGINT)
            _, stderr = sweep.communicate(timeout=60)
        assert (sweep.returncode, "Traceback" in stderr) == (130, False), stderr
    done = lasthop("sweep", scenario, *LONGER, "-o", output)
    assert f" of {RUNS} runs were kept from before" in done.stderr
    assert output.read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_in_python_a_cluster_gives_the_same_sweep_and_refuses_another_version(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress: list[tuple[int, int]] = []
    with dask(tmp_path, workers=1) as there:

        def sweep(seeds: int) -> package.Sweep:
            return package.sweep(
                scenario,
                seeds=seeds,
                first_seed=7,
                cluster=there.address,
                progress=lambda *at: progress.append(at),
            )

        found = sweep(5)
        assert found.about == package.sweep(scenario).about
        assert found.rows.equals(package.sweep(scenario, seeds=5, first_seed=7).rows)
        assert progress == sorted(progress)
        assert progress[-1] == (20, 20)
        with pytest.raises(package.ScenarioError, match="at least 1 seed"):
            sweep(0)

        version = cluster._version()
        for differs in ({"lasthop": "99.0"}, {"schema": "0" * 64}):
            other = {**version, **differs}
            monkeypatch.setattr(cluster, "_version", lambda other=other: other)
            with pytest.raises(package.UserError, match=r"the worker on .* results might differ"):
                sweep(5)


def test_a_worker_must_have_the_very_files_that_a_scenario_names(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rain.trace").write_text("3\n50\n")
    with dask(tmp_path, workers=1) as there:
        monkeypatch.chdir(tmp_path)
        settings = {"sweep": {}, "links.0.errors": {"trace": "rain.trace"}}
        found = package.sweep(scenario.name, settings=settings, cluster=there.address)
        assert found.rows.equals(package.sweep(scenario.name, settings=settings).rows)
        monkeypatch.setattr(cluster, "fingerprint", lambda _: "0" * 64)
        with pytest.raises(package.UserError, match=r"has another '.*rain.trace' than here"):
            package.sweep(scenario.name, settings=settings, cluster=there.address)


def test_a_cluster_that_is_none_is_one_message(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)

    def fails(address: str, message: str) -> None:
        with pytest.raises(package.UserError, match=message):
            package.sweep(scenario, cluster=address)

    fails("nonsense", "address is like tcp://host:8786: missing port")
    fails("tcp://127.0.0.1", "missing port")
    fails("gopher://127.0.0.1:70", "unknown address scheme")
    fails("tls://127.0.0.1:8786", "certificates")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        fails(address, f"no dask scheduler answers at '{address}'")
    fails(address, f"no dask scheduler answers at '{address}'")
    with dask(tmp_path, workers=0) as there:
        fails(there.address, "has no workers")


def test_a_worker_without_lasthop_is_reported(scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "lasthop.py").write_text("raise ModuleNotFoundError('none here')")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(tmp_path))
        with dask(tmp_path, workers=1) as there:
            with pytest.raises(package.UserError, match="has no lasthop"):
                package.sweep(scenario, cluster=there.address)
            assert there.workers[0].poll() is None


def test_without_dask_the_command_says_what_to_install(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(package.UserError, match=r"pip install 'lasthop\[cluster\]'"):
        package.sweep(scenario, cluster="tcp://127.0.0.1:8786")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--cluster", "nonsense"), "a scheduler's address is like tcp://host:8786"),
        (("--cluster", "tcp://127.0.0.1:1", "--threads", "2"), "choose threads or a cluster"),
    ],
)
def test_mistakes_end_with_a_hint_and_status_2_and_leave_nothing(
    lasthop: Command, scenario: Path, words: tuple[str, ...], hint: str
) -> None:
    done = lasthop("sweep", scenario, "-o", "rows.csv", *words)
    assert done.returncode == 2
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
    assert list(scenario.parent.iterdir()) == [scenario]
