"""Files that lasthop writes: never over what it did not write, whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import BufferedWriter
from pathlib import Path

import matplotlib as mpl
import pytest
from fixtures import Command

import lasthop as package
from lasthop import UserError, files, plots, terminal
from lasthop.publications.rows import Row
from lasthop.publications.rows import write as write_rows
from lasthop.stats import Estimate


def test_what_lasthop_writes_it_knows_and_replaces(
    lasthop: Command, scenario: Path, tmp_path: Path
) -> None:
    """The same commands twice; and nothing of it is taken for a user's file."""
    commands: list[tuple[str | Path, ...]] = [
        ("run", scenario, "--trace", "csv", "--pcap", "x.pcapng", "--events", "x.jsonl"),
        ("run", scenario, "--trace", "parquet", "--format", "parquet"),
        ("sweep", scenario, "-o", "x.csv", "--picture", "x.svg"),
        ("sweep", scenario, "-o", "x.parquet", "--picture", "x.pdf"),
    ]
    for words in commands:
        assert lasthop(*words).returncode == 0
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    del written[scenario]
    assert len(written) == 7 + 2 + 7 + 4
    for path in written:
        assert files.is_ours(path), path
    for words in commands:
        done = lasthop(*words)
        assert done.returncode == 0, done.stderr
    assert {path: path.read_bytes() for path in written} == written
    assert not files.is_ours(scenario)


def test_reports_are_known(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_rows(path, [Row("p", "e", {}, "goodput_bps", "bit/s", Estimate(1.0, 0.9, 1.1, 3))])
    assert files.is_ours(path)
    json.loads(path.read_text())


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR lasthop",
        b'<?xml version="1.0"?><svg><text>lasthop</text></svg>',
        b"time,lasthop,scenario\n",
        b'{"lasthop": 1}',
        b"[]",
        b"# a scenario for lasthop\n",
        b"PAR1 PAR1",
        b"%PDF-1.4 lasthop %%EOF",
    ],
)
def test_what_only_speaks_of_lasthop_is_not_its_own(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UserError, match="--force"):
        files.claim(path)
    files.claim(path, force=True)


def test_force_replaces_a_users_file(lasthop: Command, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("mine")
    done = lasthop("sweep", scenario, "-o", "mine.csv")
    assert (done.returncode, (tmp_path / "mine.csv").read_text()) == (2, "mine")
    assert lasthop("sweep", scenario, "-o", "mine.csv", "--force").returncode == 0
    assert files.is_ours(tmp_path / "mine.csv")


def test_a_link_is_followed_and_an_empty_file_is_free(scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("log")
    (tmp_path / "log").touch()
    package.run(scenario, events=tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "log").read_text().startswith('{"t_s":')
    (tmp_path / "there").symlink_to(scenario)
    with pytest.raises(UserError, match="is read by this command"):
        package.run(scenario, events=tmp_path / "there", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "link",
        "log",
        "small.toml",
        "there",
    ]


def test_the_place_to_write_to_is_nobodys(tmp_path: Path) -> None:
    """Not even that of another process that writes the same file."""
    path, beside = tmp_path / "x", tmp_path / "x.new"
    beside.write_text("mine")
    with files.whole(path) as one, files.whole(path) as other:
        assert len({one, other, beside}) == 3
        one.write_text("one")
        other.write_text("other")
    assert (path.read_text(), beside.read_text()) == ("one", "mine")
    with pytest.raises(OSError, match=r"no/x'$"), files.whole(tmp_path / "no" / "x"):
        pass
    assert len(list(tmp_path.iterdir())) == 2


def test_in_python_a_users_files_are_safe_too(scenario: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.png"
    mine.write_text("mine")
    mpl.use("agg")
    figure, _ = plots.subplots()
    for write in (
        lambda: plots.save(figure, mine),
        lambda: package.run(scenario, pcap=mine),
        lambda: package.Scenario.load("demo").save(mine),
        lambda: package.Scenario.load("demo").save(scenario),
    ):
        with pytest.raises(UserError, match="force"):
            write()
    assert mine.read_text() == "mine"
    plots.save(figure, mine, force=True)
    plots.save(figure, mine)
    loaded = package.Scenario.load(scenario)
    assert loaded.save(scenario) == scenario
    loaded.set(duration="6 s").save(scenario, force=True)
    assert package.Scenario.load(scenario).outline().duration_s == 6


def run(scenario: Path, redirection: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command as a shell starts it."""
    line = f'"{sys.executable}" -m lasthop "$@" {redirection}'
    environment = {**os.environ, "NO_COLOR": "1"}
    # Standard output is written when it is flushed, as for most.
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(
        ["sh", "-c", line, "sh", *words],
        cwd=scenario.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", [("run", "small.toml"), ("run", "small.toml", "--json")])
@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
def test_standard_output_that_takes_nothing_is_one_error(
    scenario: Path, redirection: str, words: tuple[str, ...]
) -> None:
    done = run(scenario, redirection, *words)
    assert done.returncode == 2
    assert done.stderr.count("error: cannot write") == 1
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("words", [("list",), ("schema",), ("run", "small.toml", "--json")])
def test_a_reader_that_has_enough_is_no_error(scenario: Path, words: tuple[str, ...]) -> None:
    done = run(scenario, "| head -c 1", *words)
    assert done.stderr == ""


def test_what_needs_no_standard_output_works_without(scenario: Path) -> None:
    done = run(scenario, ">&-", "check", "small.toml")
    assert (done.returncode, done.stdout) == (0, "")
    assert run(scenario, ">&- 2>&-", "check", "small.toml").returncode == 0


def test_control_characters_never_reach_the_terminal(
    lasthop: Command, scenario: Path, tmp_path: Path
) -> None:
    evil = "\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m"
    text = scenario.read_text().replace("A small sweep", f"A {evil} sweep").replace("bulk", evil)
    text = text.replace('["reno", "sack"]', '["reno"]')
    file = tmp_path / "\x1b[31mred.toml"
    file.write_text(text)
    for words in (
        ("run", file),
        ("run", file, "--trace", "\x1b[2Jout"),
        ("run", file, "--pcap", "\x1b.pcapng"),
        ("sweep", file, "--picture", "x.png"),
        ("check", file),
        ("run", file, "--set", f"\x1b[0m={1}"),
        ("run", "\x1b[2J"),
        ("reproduce", "\x1b[2J"),
        ("sweep", file, "--metric", "\x1b[2J"),
        ("\x1b[2J",),
        ("run", "--\x1b[2J"),
        ("run", file, "--seed", "\x1b[2J"),
    ):
        done = lasthop(*words)
        for shown in (done.stdout, done.stderr):
            assert not {c for c in shown if (c < " " and c != "\n") or "\x7f" <= c < "\xa0"}, words
        assert "Traceback" not in done.stderr
        assert "Warning" not in done.stderr


def test_nothing_printed_has_them_either(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a module forgets."""
    terminal.out().print("[bold]a\x1b[2Jb[/]\nc")
    assert capsys.readouterr().out == r"a\x1b[2Jb" + "\nc\n"


def test_a_file_that_its_keeper_removes_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock on a file that was removed meanwhile does not count."""
    import fcntl  # Not on every platform.

    path, lock = tmp_path / "rows.part", fcntl.flock

    def removed_first(file: BufferedWriter, how: int) -> None:
        monkeypatch.undo()
        path.unlink()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    with files.held(path, "mine"):
        with pytest.raises(UserError, match="mine"), files.held(path, "mine"):
            pass
        path.write_text("a row")
    assert path.read_text() == "a row"
