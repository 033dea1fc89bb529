"""Nonsense input: exit status 2, the place, the remedy, and nothing written.

The command runs in this process: there are many cases.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fixtures import Command

#: The command's words; what is said of the place, and of the remedy.
Case = tuple[tuple[str, ...], str, str]

RUN, SWEEP = ("run", "small.toml"), ("sweep", "small.toml")
SIM = ("reproduce", "bbn8333/sim1", "--quick")

OUTPUTS: dict[str, Case] = {
    "events into the scenario": ((*RUN, "--events", "small.toml"), "'small.toml'", "another file"),
    "packets into the scenario": ((*RUN, "--pcap", "small.toml"), "'small.toml'", "another file"),
    "the scenario by another name": ((*RUN, "--events", "linked"), "'linked' is read", "another"),
    "the scenario by force": ((*RUN, "--events", "small.toml", "--force"), "is read by", "another"),
    "events into a trace": (
        ("run", "traced.toml", "--events", "rain"),
        "'rain' is read",
        "another",
    ),
    "events into a picture": ((*RUN, "--events", "photo.png"), "'photo.png' exists", "--force"),
    "packets into a table": ((*RUN, "--pcap", "notes.csv"), "'notes.csv' exists", "--force"),
    "two outputs in one": (
        (*RUN, "--pcap", "x", "--events", "./x"),
        "'x' would be written twice",
        "each output its own file",
    ),
    "series into a file": (
        (*RUN, "--trace", "notes.csv"),
        "'notes.csv' is a file",
        "name a folder",
    ),
    "series over foreign ones": (
        (*RUN, "--trace", "folder.csv"),
        "flow-bulk.csv' exists",
        "--force",
    ),
    "packets into a folder": ((*RUN, "--pcap", "folder.csv"), "is a folder", "name a file in it"),
    "packets into no folder": ((*RUN, "--pcap", "no/such/x"), "'no/such/x'", "make its folder"),
    "rows into a table": ((*SWEEP, "-o", "notes.csv"), "'notes.csv' exists", "--force"),
    "rows into a folder": ((*SWEEP, "-o", "folder.csv"), "is a folder", "name a file in it"),
    "rows of no kind": ((*SWEEP, "-o", "x.txt"), "'x.txt'", ".parquet or a .csv"),
    "rows into the scenario": ((*SWEEP, "-o", "small.toml"), "'small.toml'", ".parquet or a .csv"),
    "a curve of no kind": ((*SWEEP, "--picture", "x.txt"), "'x.txt'", ".png, .svg or .pdf"),
    "a curve over a photo": ((*SWEEP, "--picture", "photo.png"), "'photo.png' exists", "--force"),
    "the demo of no kind": (("demo", "-o", "x.txt"), "'x.txt'", ".png, .svg or .pdf"),
    "the demo without a kind": (("demo", "-o", "x"), "'x'", ".png, .svg or .pdf"),
    "the demo over a photo": (("demo", "-o", "photo.png"), "'photo.png' exists", "--force"),
    "a report into a file": ((*SIM, "-o", "notes.csv"), "'notes.csv' is a file", "name a folder"),
    "a report over another": ((*SIM, "-o", "folder.csv"), "report.html' exists", "--force"),
    "received over a file": (
        ("receive", "127.0.0.1:9", "-o", "notes.csv"),
        "'notes.csv' exists",
        "--force",
    ),
}

WITHOUT_EFFECT: dict[str, Case] = {
    "--pcap-at": ((*RUN, "--pcap-at", "a"), "--pcap-at", "give both"),
    "--format": ((*RUN, "--format", "parquet"), "--format", "give --trace"),
    "--force of a run": ((*RUN, "--force"), "--force", "--events or --latency"),
    "--force of a sweep": ((*SWEEP, "--force"), "--force", "--picture or --latency"),
    "--trace on the testbed": ((*RUN, "--testbed", "--trace", "x"), "--testbed", "leave out"),
    "--format on the testbed": ((*RUN, "--testbed", "--format", "csv"), "--testbed", "leave out"),
    "--quick with --seeds": ((*SIM, "--seeds", "3"), "--quick and --seeds", "choose one"),
    "--force of standard output": (
        ("receive", "127.0.0.1:9", "--force"),
        "--force",
        "leave it out",
    ),
    "two ends": (("receive", "127.0.0.1:9", "--listen", "9"), "HOST:PORT", "either"),
    "no end": (("receive",), "HOST:PORT", "either"),
    "-4 of a listener": (("receive", "--listen", "9", "-4"), "-4", "connecting"),
    "-4 and -6": (("send", "small.toml", "127.0.0.1:9", "-4", "-6"), "-4 and -6", "exclude"),
    "threads of a cluster": (
        (*SWEEP, "--threads", "2", "--cluster", "tcp://x:1"),
        "threads",
        "choose threads or a cluster",
    ),
    "a curve of nothing": (
        ("sweep", "examples/modem", "--picture", "x.png"),
        "nothing is swept",
        "nothing to draw",
    ),
}

NUMBERS: dict[str, Case] = {
    "a negative seed": ((*RUN, "--seed", "-1"), "--seed", "greater than or equal to 0"),
    "a seed of 64 bits": ((*RUN, "--seed", str(2**63)), "--seed", "less than or equal to"),
    "a seed in words": ((*RUN, "--seed", "one"), "--seed", "a valid integer"),
    "no runs": ((*SWEEP, "--seeds", "0"), "--seeds", "greater than or equal to 1"),
    "runs of 63 bits": ((*SWEEP, "--seeds", str(2**63)), str(2**63), "all below 2**63"),
    "runs of 100 bits": ((*SWEEP, "--seeds", str(2**100)), str(2**100), "all below 2**63"),
    "more runs than there may be": (
        (*SWEEP, "--seeds", "99999999999"),
        "runs",
        "at most 10000000 runs",
    ),
    "runs of the demo": (("demo", "--seeds", str(2**70)), str(2**70), "all below 2**63"),
    "runs of a publication": (
        ("reproduce", "bbn8333/sim1", "--seeds", str(2**70)),
        str(2**70),
        "all below 2**63",
    ),
    "threads below none": ((*SWEEP, "--threads", "-1"), "--threads", "greater than or equal"),
    "a port that there is not": (("receive", "127.0.0.1:99999"), "127.0.0.1:99999", "such as"),
    "no port": (("send", "small.toml", "localhost"), "'localhost'", "expected HOST:PORT"),
}

SETTINGS: dict[str, Case] = {
    "no value": ((*RUN, "--set", "duration"), "'duration'", "KEY=VALUE"),
    "a negative delay": (
        (*RUN, "--set", "links.0.delay=-100 ms"),
        'links.0.delay = "-100 ms"',
        "it is negative, expected a number and ns",
    ),
    "a negative rate": ((*RUN, "--set", "links.0.rate=-1 bit/s"), "links.0.rate", "negative"),
    "a negative queue": ((*RUN, "--set", "links.0.queue=-5 packets"), "links.0.queue", "negative"),
    "another unit": ((*RUN, "--set", "links.0.delay=10 parsec"), "links.0.delay", "us, ms, s"),
    "half an exponent": ((*RUN, "--set", "duration=1e s"), "duration", "such as"),
    "a window in packets": (
        (*RUN, "--set", "flows.0.tcp.initial_window=9 packets"),
        "flows.0.tcp.initial_window",
        "segments",
    ),
    "an integer of 100 digits": (
        (*RUN, "--set", f"flows.0.tcp.mss={'9' * 100}"),
        "flows.0.tcp.mss",
        "at most 64 bits",
    ),
    "10,000 brackets": ((*RUN, "--set", "duration=" + "[" * 10_000), "'duration'", "expected TOML"),
    "two lines": ((*RUN, "--set", 'duration="1 s"\nprofile="modern"'), "duration", "expected"),
    "a date": ((*RUN, "--set", "duration=2020-01-01"), "duration", 'such as "320 ms"'),
    "a key that there is not": ((*RUN, "--set", "duratoin=1"), "duratoin", "did you mean"),
    "a flow that there is not": ((*RUN, "--set", "flows.7.start=1 s"), "flows.7", "there is no"),
    "a path that is none": ((*RUN, "--set", "links..rate=1"), "links..rate", "expected"),
    "not UTF-8": ((*RUN, "--set", "title=\udcff"), r"'title=\udcff'", "write it in UTF-8"),
}

FILES: dict[str, Case] = {
    "no file": (("run", "zzz"), "'zzz'", "lasthop list"),
    "a name with a typo": (("run", "dmeo"), "'dmeo'", "did you mean 'demo'?"),
    "a file with a typo": (("run", "smal.toml"), "'smal.toml'", "did you mean 'small.toml'?"),
    "a folder": (("run", "folder.csv"), "'folder.csv'", "name a file in it"),
    "a device without end": (("run", "/dev/zero"), "'/dev/zero'", "16 MiB"),
    "a picture": (("run", "photo.png"), "'photo.png'", "expected TOML"),
    "Latin-1": (("run", "latin.toml"), "'latin.toml' is not UTF-8: line 2", "save it as UTF-8"),
    "nothing in it": (("run", "empty.toml"), "empty.toml", "missing key `title`"),
    "a trace in Latin-1": (("run", "latin-traced.toml"), "line 2", "UTF-8"),
    "a name of 5000 letters": (("run", "x" * 5000), "xxx", "File name too long"),
    "a file that is not there to send": (
        ("send", "nothing", "127.0.0.1:9"),
        "'nothing'",
        "No such",
    ),
    "a word for a table": (
        ("send", "small.toml", "127.0.0.1:9", "--tcp", "cubic"),
        "--tcp",
        "expected",
    ),
}

NAMES: dict[str, Case] = {
    "a command": (("dmeo",), "dmeo", "demo"),
    "an option": ((*RUN, "--sed", "1"), "--sed", "--seed"),
    "an experiment": (("reproduce", "bbn833/sim1"), "'bbn833/sim1'", "'bbn8333/sim1'"),
    "no experiment": (("reproduce", ""), "no experiment ''", "known: bbn8333"),
    "a metric": ((*SWEEP, "--metric", "godput_bps"), "'godput_bps'", "'goodput_bps'"),
    "a metric of words": ((*SWEEP, "--metric", "flow"), "'flow'", "column of numbers"),
    "a place": ((*RUN, "--pcap", "x", "--pcap-at", "moon"), "`moon`", "the name of a node"),
    "a format": ((*RUN, "--trace", "x", "--format", "xls"), "--format", "'csv', 'parquet'"),
    "an address": (
        ("receive", "127.0.0.1:9", "--address", "here"),
        "'here'",
        "such as 198.18.0.2",
    ),
}

CASES = {
    f"{kind}: {name}": case
    for kind, cases in (
        ("outputs", OUTPUTS),
        ("without effect", WITHOUT_EFFECT),
        ("numbers", NUMBERS),
        ("settings", SETTINGS),
        ("files", FILES),
        ("names", NAMES),
    )
    for name, case in cases.items()
}


@pytest.fixture
def place(scenario: Path, tmp_path: Path) -> Path:
    """A folder with a scenario, and files of a user's."""
    text = scenario.read_text()
    (tmp_path / "linked").hardlink_to(scenario)
    (tmp_path / "rain").write_text("3\n5\n")
    (tmp_path / "latin-rain").write_bytes(b"3\n5 # \xe9t\xe9\n")
    for name, trace in (("traced", "rain"), ("latin-traced", "latin-rain")):
        traced = text.replace("bit = 1e-6", f'trace = "{trace}"').partition("[sweep]")[0]
        (tmp_path / f"{name}.toml").write_text(traced)
    (tmp_path / "latin.toml").write_bytes(text.replace("sweep", "\xe9").encode("latin-1"))
    (tmp_path / "empty.toml").touch()
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0 of a cat")
    (tmp_path / "notes.csv").write_text("what,when\n")
    (tmp_path / "folder.csv").mkdir()
    for name in ("report.html", "flow-bulk.csv"):
        (tmp_path / "folder.csv" / name).write_text("mine")
    return tmp_path


def content(folder: Path) -> dict[str, bytes | None]:
    """All files of a folder, and what they hold."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def test_there_are_enough() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("case", CASES)
def test_nonsense_is_refused_with_its_place_and_a_remedy(
    place: Path, typed: Command, case: str
) -> None:
    words, where, remedy = CASES[case]
    before = content(place)
    done = typed(*words)
    # Typer draws a box around its messages.
    said = re.sub(r"[\s│╭╮╰╯─]+", " ", done.stderr)
    assert done.returncode == 2, done.stderr
    assert where in said
    assert remedy in said
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert content(place) == before
