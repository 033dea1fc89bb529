"""Sweeps that end early: what is finished is kept, and the rest comes out as if nothing was."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from fixtures import Command

import lasthop as package
from lasthop import _lasthop as engine
from lasthop import cli, journal

#: Long enough to be caught in the middle, on one thread.
LONGER = ("--set", "duration=1000 s", "--seeds", "20", "--threads", "1")
RUNS = 4 * 20


def caught(scenario: Path, output: Path | None, how: signal.Signals) -> tuple[int, str, str]:
    """Starts the longer sweep and ends it in the middle: its status, and what it said."""
    words = [sys.executable, "-m", "lasthop", "sweep", str(scenario), *LONGER]
    words += ["-o", str(output)] if output else []
    environment = {**os.environ, "NO_COLOR": "1", "TMPDIR": str(scenario.parent)}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as sweep:
        before = {path: path.stat().st_size for path in parts(scenario.parent)}
        while not any(
            path.stat().st_size > before.get(path, 0) + 3_000 for path in parts(scenario.parent)
        ):
            assert sweep.poll() is None, "it was over too soon"
            time.sleep(0.001)
        sweep.send_signal(how)
        stdout, stderr = sweep.communicate(timeout=60)
    return sweep.returncode, stdout, stderr


def parts(folder: Path) -> list[Path]:
    """Where sweeps keep what is finished."""
    return list(folder.glob("**/*.part"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_killed_sweep_goes_on_to_the_very_bytes_of_an_undisturbed_one(
    lasthop: Command, scenario: Path, tmp_path: Path, kind: str
) -> None:
    output = tmp_path / f"rows.{kind}"
    assert lasthop("sweep", scenario, *LONGER, "--threads", "2", "-o", output).returncode == 0
    undisturbed = output.read_bytes()
    output.unlink()
    for how in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        status, _, _ = caught(scenario, output, how)
        assert status == (-how if how is signal.SIGKILL else 130)
        assert not output.exists()
    done = lasthop("sweep", scenario, *LONGER, "-o", output)
    assert done.returncode == 0
    assert f" of {RUNS} runs were kept from before" in done.stderr
    assert output.read_bytes() == undisturbed
    assert sorted(tmp_path.iterdir()) == sorted([scenario, output])


def test_ctrl_c_keeps_what_is_finished_and_says_so(scenario: Path, tmp_path: Path) -> None:
    status, stdout, stderr = caught(scenario, tmp_path / "rows.csv", signal.SIGINT)
    assert status == 130
    assert "mean and 95 % confidence interval" in stdout
    assert f" of {RUNS} runs: " in stderr
    assert "rows.csv.part keeps them, and the same command goes on from there" in stderr
    assert "Traceback" not in stderr


def test_ctrl_c_without_a_file_shows_what_is_finished(scenario: Path, tmp_path: Path) -> None:
    status, stdout, stderr = caught(scenario, None, signal.SIGINT)
    assert status == 130
    assert "goodput" in stdout
    assert "nothing else is kept without -o" in stderr
    assert list(tmp_path.iterdir()) == [scenario]


def limited(scenario: Path, largest: int) -> subprocess.CompletedProcess[str]:
    """The small sweep where no file may have more bytes: as if the disk were full then."""
    return subprocess.run(
        [sys.executable, "-m", "lasthop", "sweep", str(scenario), "-o", "rows.csv"],
        cwd=scenario.parent,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_full_disk_is_one_message_and_costs_nothing_that_is_finished(
    lasthop: Command, scenario: Path, tmp_path: Path
) -> None:
    lasthop("sweep", scenario, "-o", "whole.csv")
    whole = (tmp_path / "whole.csv").read_bytes()
    # In the middle of the runs; and when all are there, in the middle of the final file.
    for largest in (1_500, len(whole) - 1_000):
        done = limited(scenario, largest)
        assert done.returncode == 2
        assert done.stderr.count("error:") == 1
        assert "File too large" in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        assert {path.name for path in tmp_path.iterdir()} == {
            "small.toml",
            "whole.csv",
            "rows.csv.part",
        }
        assert (tmp_path / "rows.csv.part").read_bytes().endswith(b"\n")
    assert lasthop("sweep", scenario, "-o", "rows.csv").returncode == 0
    assert (tmp_path / "rows.csv").read_bytes() == whole


def test_a_full_disk_leaves_no_half_of_any_file(scenario: Path, tmp_path: Path) -> None:
    for option, name in (("--pcap", "x.pcapng"), ("--events", "x.jsonl"), ("--trace", "out")):
        done = subprocess.run(
            [sys.executable, "-m", "lasthop", "run", str(scenario), option, name],
            cwd=tmp_path,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert "cannot write" in done.stderr
        assert "Traceback" not in done.stderr
    left = {path for path in tmp_path.glob("**/*") if path.is_file()}
    assert left == {scenario}


def test_what_is_kept_of_another_sweep_is_not_touched(
    lasthop: Command, scenario: Path, tmp_path: Path
) -> None:
    assert caught(scenario, tmp_path / "rows.csv", signal.SIGKILL)[0] == -signal.SIGKILL
    part = tmp_path / "rows.csv.part"
    kept = part.read_bytes()
    for other in (("--seeds", "19"), ("--set", "title=Another")):
        done = lasthop("sweep", scenario, *LONGER, *other, "-o", "rows.csv")
        assert done.returncode == 2
        assert "is of another sweep" in done.stderr
        assert part.read_bytes() == kept


def test_two_sweeps_do_not_write_one_file(lasthop: Command, scenario: Path, tmp_path: Path) -> None:
    with (tmp_path / "rows.csv.part").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = lasthop("sweep", scenario, "-o", "rows.csv")
    assert done.returncode == 2
    assert "another sweep is writing" in done.stderr


def test_comments_and_spaces_do_not_make_another_scenario(scenario: Path) -> None:
    text = scenario.read_text()
    first = package.Scenario.from_toml(text, "a")
    assert first.sha256 == package.Scenario.from_toml(f"# A comment\n{text}\n", "b").sha256
    assert first.sha256 != package.Scenario.from_toml(text.replace("10 ms", "11 ms"), "a").sha256
    assert first.sha256 != first.set({"title": "Another"}).sha256
    # TOML 1.1, which the engine reads, lets an inline table go over several lines.
    lines = text.replace("= { mss", "= {\n    mss")
    assert lines != text
    assert first.sha256 == package.Scenario.from_toml(lines, "a").sha256


@pytest.mark.parametrize("form", ['"rain.trace"', '{ file = "rain.trace" }'])
def test_the_fingerprint_knows_what_traces_say(scenario: Path, form: str) -> None:
    def fingerprint(trace: str | None) -> str:
        (scenario.parent / "rain.trace").unlink(missing_ok=True)
        if trace is not None:
            (scenario.parent / "rain.trace").write_text(trace)
        return package.Scenario.load(scenario).sha256

    text = scenario.read_text()
    scenario.write_text(text.replace("bit = 1e-6", f"trace = {form}"))
    seen = [fingerprint(trace) for trace in ("1\n", "2\n", None)]
    assert len(set(seen)) == len(seen)
    assert fingerprint("1\n") == seen[0]
    scenario.write_text(text)
    with_trace = package.Scenario.load(scenario).set({"links.0.errors": {"trace": "rain.trace"}})
    assert with_trace.files == [scenario.parent / "rain.trace"]


def test_results_say_what_they_depend_on(lasthop: Command, scenario: Path, tmp_path: Path) -> None:
    about = {
        "format": 1,
        "lasthop": package.__version__,
        "scenario": package.Scenario.load(scenario).sha256,
    }
    printed = json.loads(lasthop("run", scenario, "--json").stdout)
    assert about.items() <= printed.items()
    printed = json.loads(lasthop("sweep", scenario, "--json", "-o", "rows.parquet").stdout)
    assert about.items() <= printed.items()
    assert json.loads(pl.read_parquet_metadata(tmp_path / "rows.parquet")["lasthop"]) == about
    lasthop("sweep", scenario, "-o", "rows.csv")
    assert pl.read_csv(tmp_path / "rows.csv").select(*about).unique().to_dicts() == [about]
    assert package.run(scenario).about == package.sweep(scenario).about == about


@pytest.mark.parametrize("metric", ["goodput_bps", "completed_s", "segments"])
def test_the_summary_of_a_journal_is_that_of_its_rows(
    scenario: Path, tmp_path: Path, metric: str
) -> None:
    loaded = package.Scenario.load(scenario)
    outline = loaded.outline()
    part = tmp_path / "rows.part"
    assert journal.record(loaded, part, seeds=outline.seeds) == 0
    found = journal.summary(part, outline.columns, metric)
    sweep = package.sweep(scenario)
    expected = sweep.estimates(metric, found.by)
    assert found.runs == outline.runs
    assert list(found.estimates) == list(expected)
    for point, estimate in found.estimates.items():
        assert estimate.n == expected[point].n
        assert (estimate.value, estimate.half) == pytest.approx(
            (expected[point].value, expected[point].half), rel=1e-9
        )


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (engine.RunError("bytes arrived twice"), 1, "error: bytes arrived twice"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_a_run_that_does_not_end_well_says_so_by_its_status(
    scenario: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    status: int,
    said: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("lasthop.lab.run", fail)
    monkeypatch.setattr(sys, "argv", ["lasthop", "run", str(scenario)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == status
    assert capsys.readouterr().err.strip() == said
