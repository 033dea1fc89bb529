"""The command, as its users type it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from fixtures import Command

import lasthop as package

PNG = b"\x89PNG\r\n\x1a\n"


def test_version_and_help(lasthop: Command) -> None:
    assert lasthop("--version").stdout == f"lasthop {package.__version__}\n"
    shown = lasthop("--help")
    assert shown.returncode == 0
    for command in ("demo", "run", "sweep", "reproduce", "list"):
        assert command in shown.stdout


@pytest.mark.parametrize("words", [("--help",), ("list",), ("schema",)])
def test_what_needs_no_table_is_done_without_the_libraries_that_are_slow_to_import(
    words: tuple[str, ...],
) -> None:
    run = f"import sys; sys.argv[1:] = {words!r}; from lasthop.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", run],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "lasthop.cli" in imported
    assert imported.isdisjoint({"polars", "matplotlib", "scipy", "numpy", "jinja2"})


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("dmeo",), "demo"),
        (("reproduce", "bbn833/sim1"), "did you mean 'bbn8333/sim1'?"),
        (("reproduce", "sim1"), "did you mean 'bbn8333/sim1'?"),
        (("run", "dmeo"), "did you mean 'demo'?"),
        (("sweep", "nothing.toml"), "no scenario file 'nothing.toml'"),
        (("run", "demo", "--set", "duration"), "KEY=VALUE"),
        (("run", "demo", "--set", "flows.0.tcp.recovery=sakc"), "sack"),
        (("sweep", "demo", "-o", "rows.xls"), "rows.xls"),
        (("sweep", "demo", "--seeds", "0"), "--seeds"),
        (("sweep", "demo", "--picture", "curve.txt"), "not 'curve.txt'"),
        (("sweep", "examples/modem", "--picture", "curve.png"), "nothing is swept"),
        (
            ("run", "demo", "--pcap", "x.pcapng", "--pcap-at", "moon"),
            "at `moon`: expected the name of a node",
        ),
        (("run", "demo", "--pcap-at", "sender"), "give both"),
        (
            ("run", "demo", "--pcap", "no/such/folder.pcapng"),
            "cannot write 'no/such/folder.pcapng'",
        ),
        (
            ("sweep", "demo", "--seeds", "1", "--metric", "godput_bps"),
            "did you mean 'goodput_bps'?",
        ),
        (("reproduce", "bbn8333/sim1", "--quick", "--seeds", "3"), "choose one"),
    ],
)
def test_mistakes_end_with_a_hint_and_status_2(
    typed: Command, words: tuple[str, ...], hint: str
) -> None:
    done = typed(*words)
    assert done.returncode == 2
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_error_in_a_file_is_reported_with_its_line(lasthop: Command, scenario: Path) -> None:
    scenario.write_text(scenario.read_text().replace('"10 ms"', '"10 parsecs"'))
    done = lasthop("run", scenario)
    assert done.returncode == 2
    assert "small.toml" in done.stderr
    assert "10 parsecs" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_written_to(lasthop: Command, scenario: Path) -> None:
    done = lasthop("sweep", scenario, "-o", scenario / "rows.csv")
    assert done.returncode == 2
    assert "cannot write" in done.stderr


def test_run_shows_a_table(lasthop: Command, scenario: Path) -> None:
    done = lasthop("run", scenario, "--seed", "4")
    assert done.returncode == 0
    assert "bulk: a → b" in done.stdout
    assert "seed 4" in done.stdout
    assert "lasthop sweep" in done.stderr


def test_run_prints_json(lasthop: Command, scenario: Path) -> None:
    done = lasthop("run", scenario, "--seed", "4", "--json")
    printed = json.loads(done.stdout)
    result = package.run(scenario, seed=4)
    assert printed["digest"] == result.digest
    assert printed["flows"] == result.rows.to_dicts()
    assert done.stderr == ""


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_run_writes_time_series_and_a_picture(
    lasthop: Command, scenario: Path, tmp_path: Path, kind: str
) -> None:
    done = lasthop("run", scenario, "--trace", "traces", "--format", kind)
    assert done.returncode == 0
    read = pl.read_csv if kind == "csv" else pl.read_parquet
    traced = package.run(scenario, trace=True)
    for name, rows in (
        ("flow-bulk", traced.series("bulk")),
        ("flow-file", traced.series("file")),
        ("delivered-bulk", traced.deliveries["bulk"]),
        ("delivered-file", traced.deliveries["file"]),
        ("queue-a-to-b", traced.queue("a->b")),
        ("queue-b-to-a", traced.queue("b->a")),
    ):
        written = read(tmp_path / "traces" / f"{name}.{kind}")
        assert written.columns == rows.columns
        assert written.height == rows.height
    assert (tmp_path / "traces" / "trace.png").read_bytes().startswith(PNG)


def test_run_writes_packets(lasthop: Command, scenario: Path, tmp_path: Path) -> None:
    places = ("--pcap-at", "a->b", "--pcap-at", "b")
    done = lasthop("run", scenario, "--bytes", "--pcap", "run.pcapng", *places, "--json")
    assert json.loads(done.stdout)["digest"] == package.run(scenario).digest
    assert "run.pcapng" in done.stderr
    packets = (tmp_path / "run.pcapng").read_bytes()
    for interface in (b"a->b", b"a->b received", b"b->a"):
        assert interface in packets


def test_sweep_shows_means_and_writes_rows(
    lasthop: Command, scenario: Path, tmp_path: Path
) -> None:
    settings = ("--set", "links.0.rate=10 Mbit/s")
    done = lasthop("sweep", scenario, "--seeds", "2", *settings, "-o", "out/rows.parquet")
    assert done.returncode == 0
    assert "flows.0.tcp.recovery" in done.stdout
    assert "±" in done.stdout
    written = pl.read_parquet(tmp_path / "out" / "rows.parquet")
    assert written.equals(
        package.sweep(scenario, seeds=2, settings={"links.0.rate": "10 Mbit/s"}).rows
    )
    assert lasthop("sweep", scenario, "-o", "rows.csv").returncode == 0
    assert pl.read_csv(tmp_path / "rows.csv").height == 24


def test_list_names_everything(lasthop: Command) -> None:
    shown = lasthop("list").stdout
    for name in ("demo", "bbn8333/sim1", "sack", "cubic", "eten", "standard", "ns2-2001", "modern"):
        assert name in shown


def test_the_demo_shows_a_table_a_picture_and_what_was_published(
    lasthop: Command, tmp_path: Path
) -> None:
    done = lasthop("demo", "--seeds", "2")
    assert done.returncode == 0
    assert "SACK + ETEN" in done.stdout
    assert "█" in done.stdout
    assert "published gain" in done.stdout
    assert "about 3.5" in done.stdout
    assert "BBN Technical Report 8333" in done.stderr
    assert "reports/demo.png" in done.stderr
    assert (tmp_path / "reports" / "demo.png").read_bytes().startswith(PNG)


def test_a_terminal_without_unicode_is_no_obstacle(lasthop: Command) -> None:
    done = lasthop("demo", "--seeds", "2", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_sweep_can_be_drawn(lasthop: Command, tmp_path: Path) -> None:
    """Beside its rows, or without them."""
    picture, rows = tmp_path / "new" / "curve.svg", tmp_path / "rows.csv"
    short = ("--seeds", "2", "--set", "duration=5 s")
    shown = lasthop("sweep", "demo", *short, "--picture", str(picture), "-o", str(rows))
    assert shown.returncode == 0
    assert "curve.svg" in shown.stderr
    assert picture.read_text().startswith("<?xml")
    assert rows.exists()


def test_the_manual_page_has_every_command_and_option(lasthop: Command) -> None:
    page = lasthop("man").stdout.replace("\\-", "-")
    for words in ("lasthop testbed clean", "lasthop reproduce", "--pcap-at PLACE", "--force"):
        assert words in page
    assert page.startswith(".TH LASTHOP 1")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("lasthop rep", "reproduce"),
        ("lasthop run examples/geo", "examples/geo-lossy"),
        ("lasthop run small", "small.toml"),
        ("lasthop reproduce koutsianas2007/fig4.2", "koutsianas2007/fig4.2"),
        ("lasthop sweep --met", "--metric"),
    ],
)
def test_shells_complete(lasthop: Command, scenario: Path, typed: str, completed: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = lasthop(_LASTHOP_COMPLETE="complete_bash", **words)
    assert completed in done.stdout.split(), done


def test_what_goodput_counts_is_said_beside_the_payload(lasthop: Command, scenario: Path) -> None:
    shown = lasthop("run", scenario).stdout
    assert "payload" in shown.splitlines()[1]
    assert "goodput counts the payload with 40 bytes of headers" in shown
    assert "goodput counts" in lasthop("sweep", scenario, "--seeds", "1").stdout
    assert "one run has none" in lasthop("sweep", scenario, "--seeds", "1").stdout
