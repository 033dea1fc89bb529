"""`lasthop check`, and every class of nonsense that the command may be given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures import Command

#: A change of the small scenario, and what is said of it.
NONSENSE = {
    "unknown key": ('duration = "5 s"', 'duratoin = "5 s"', "did you mean `duration`?"),
    "unknown key inside": ("recovery", "recovrey", "unknown key"),
    "unknown name": ('"ns2-2001"', '"ns2-2002"', "did you mean `ns2-2001`?"),
    "missing key": ('rate    = "1.5 Mbit/s"', "", "`links.0`: missing key `rate`"),
    "wrong type": ('"10 ms"', "10", "found integer `10`, expected a duration in quotes"),
    "wrong unit": ('"10 ms"', '"10 parsec"', "`10 parsec` is no duration"),
    "unit of another kind": ('"10 ms"', '"10 MB"', "`10 MB` is no duration"),
    "negative rate": ("1.5 Mbit/s", "-1.5 Mbit/s", "`-1.5 Mbit/s` is no rate"),
    "no rate": ("1.5 Mbit/s", "0 Mbit/s", "expected a number above 0"),
    "negative delay": ("10 ms", "-10 ms", "`-10 ms` is no duration"),
    "negative duration": ('"5 s"', '"-5 s"', "`-5 s` is no duration"),
    "no duration": ('"5 s"', '"0 s"', "expected more than 0 s"),
    "endless duration": ('"5 s"', '"1e300 h"', "is no duration"),
    "more bytes than there are": ('"50 kB"', '"1e30 B"', "`1e30 B` is no size"),
    "more bytes than a run delivers": ('"50 kB"', '"5000000000 GB"', "at most 1 EiB"),
    "not a number": ("bit = 1e-6", "packet = nan", "expected a probability, 0 to 1"),
    "integer of 100 digits": ("mss = 536", f"mss = {'9' * 100}", "flows.0.tcp.mss"),
    "unknown host": ('to      = "b"', 'to = "moon"', "there is no such node"),
    "unreachable host": (
        '[[flows]]\nname    = "file"\nfrom    = "a"\nto      = "b"',
        '[nodes.c]\n[[flows]]\nname = "file"\nfrom = "a"\nto = "c"',
        "there is no path from `a` to this node",
    ),
    "sender and receiver are one": ('to      = "b"', 'to = "a"', "expected a node other than"),
    "two flows of one name": ('"file"', '"bulk"', "another flow has the name `bulk`"),
    "two links": (
        "[[flows]]",
        '[[links]]\nbetween = ["b", "a"]\nrate = "1 bit/s"\ndelay = "0 s"\n[[flows]]',
        "there is already a link between these nodes",
    ),
    "another key for the errors of a direction": (
        "bit = 1e-6",
        "forward = { bit = 1e-6 }",
        "unknown key `forward`",
    ),
    "errors of two kinds": (
        "bit = 1e-6",
        'bit = 1e-6, bursts = { gap = "1 s", length = 2 }',
        "expected one kind of errors",
    ),
    "bursts of less than a packet": (
        "errors  =",
        'backward = { errors = { bursts = { gap = "1 s", length = 0 } } }\nerrors  =',
        "a mean number of packets, 1 to 1e9",
    ),
    "a trace that is not there": (
        "errors  =",
        'backward = { errors = { trace = "none.trace" } }\nerrors  =',
        "there is no file",
    ),
    "a trace that is none": (
        "errors  =",
        'backward = { errors = { trace = "small.toml" } }\nerrors  =',
        "expected the number of a packet",
    ),
    "a recorded rate that is none": (
        '"1.5 Mbit/s"',
        '{ trace = "small.toml" }',
        "line 1: ",
    ),
    "a device as a trace": (
        "errors  =",
        'backward = { errors = { trace = "/dev/zero" } }\nerrors  =',
        "is too large: expected at most 64 MiB",
    ),
    "an outage that ends before it begins": (
        "errors  =",
        'outages = { at = [{ start = "2 s", end = "1 s" }] }\nerrors =',
        "ends at 1 s: expected an end after its start, 2 s",
    ),
    "attached where there is no link": (
        "a = {}",
        'a = { attached = { at = [{ start = "0 s", to = "a" }] } }',
        "there is no link between `a` and this node",
    ),
    "no TOML": ('"A small sweep"', '"A small sweep', "not valid TOML"),
    "key twice": ("[nodes]", 'title = "again"\n[nodes]', "duplicate key"),
    "sweep of 1e12 points": ("seeds = 3", f"seeds = {10**12}", "expected at most 10000000 runs"),
    "sweep of nothing": ("[0.0, 1e-5]", "[]", "expected at least one value"),
    "sweep of what is not there": ("links.0.errors.bit", "links.7.delay", "there is no `7`"),
    "wrong value in a sweep": ('["reno", "sack"]', '["reno", "sakc"]', "did you mean `sack`?"),
    "brackets without end": ("title ", "x = " + 10_000 * "[" + "\ntitle", "cannot recurse"),
    "dots without end": ("[nodes]", 10_000 * "a." + "a = 1\n[nodes]", "recursion limit"),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_errors_are_reported(typed: Command, scenario: Path, case: str) -> None:
    old, new, said = NONSENSE[case]
    text = scenario.read_text()
    assert old in text
    scenario.write_text(text.replace(old, new, 1))
    refused(typed("check", scenario), said)


@pytest.mark.parametrize(
    "words", [("run", "--trace", "out", "--pcap", "out.pcapng"), ("sweep", "-o", "out.csv")]
)
@pytest.mark.parametrize("case", ["unknown key", "unreachable host", "wrong value in a sweep"])
def test_nonsense_is_refused_before_anything_is_run_or_written(
    typed: Command, scenario: Path, tmp_path: Path, words: tuple[str, ...], case: str
) -> None:
    old, new, said = NONSENSE[case]
    scenario.write_text(scenario.read_text().replace(old, new, 1))
    command, *options = words
    refused(typed(command, scenario, *options), said)
    assert sorted(tmp_path.iterdir()) == [scenario]


def refused(done: subprocess.CompletedProcess[str], said: str) -> None:
    """One clear message, and nothing else."""
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stderr.count("error:") == 1
    for word in ("Traceback", "panicked", "internal"):
        assert word not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no scenario file 'x.toml'"),
        (b"", "missing key `title`"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "'x.toml' is not a text file"),
        (b"\xff\xfe\xfa", "'x.toml' is not UTF-8: line 1 has the byte 0xff"),
        (b'title = "\x1b[2J"', "x.toml:1:"),
        (b"# " + b"x" * (17 << 20), "larger than a scenario"),
    ],
    ids=["no file", "empty", "binary", "not UTF-8", "control characters", "large"],
)
def test_files_that_are_no_scenario(
    lasthop: Command, tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "x.toml").write_bytes(content)
    done = lasthop("check", "x.toml")
    refused(done, said)
    assert "\x1b" not in done.stderr


def test_a_folder_and_a_device_without_end_are_no_scenarios(lasthop: Command) -> None:
    refused(lasthop("check", "."), "cannot read '.': a folder; name a file in it")
    refused(lasthop("check", "/dev/zero"), "'/dev/zero' is larger than a scenario")


def test_all_errors_of_all_files_are_reported_at_once(
    lasthop: Command, scenario: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.toml"
    text = scenario.read_text()
    other.write_text(text)
    scenario.write_text(text.replace("1.5 Mbit/s", "fast").replace('"10 ms"', "10"))
    done = lasthop("check", scenario, other, "none.toml", "--json")
    assert done.returncode == 2
    bad, good, missing = json.loads(done.stdout)["files"]
    assert [problem["key"] for problem in bad["problems"]] == ["links.0.rate", "links.0.delay"]
    assert bad["problems"][1] == {
        "file": str(scenario),
        "line": 13,
        "column": 11,
        "key": "links.0.delay",
        "value": "10",
        "message": 'found integer `10`, expected a duration in quotes, such as "320 ms"',
        "help": None,
    }
    assert good["problems"] == []
    assert good["scenario"]["runs"] == 12
    assert missing["problems"][0]["message"].startswith("no scenario file 'none.toml'")


def test_a_sound_file_is_said_to_be_so(lasthop: Command, scenario: Path) -> None:
    done = lasthop("check", scenario)
    assert done.returncode == 0
    assert done.stderr == f"{scenario}: 12 runs: 4 points, 3 seeds\n"
    assert done.stdout == ""


def test_settings_are_looked_at_as_the_file_is(lasthop: Command, scenario: Path) -> None:
    settings = ("--set", "links.0.delay=10 parsec", "--set", "flows.0.tcp.mms=1")
    refused(lasthop("check", scenario, *settings), "did you mean `mss`?")
    refused(lasthop("check", scenario, *settings), "`10 parsec` is no duration")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["check", "demo"], ["check", "none"]])
def test_quick_answers_leave_heavy_libraries_alone(words: list[str]) -> None:
    heavy = ("polars", "matplotlib", "scipy", "numpy", "jinja2", "lasthop.publications")
    code = (
        "import sys\n"
        "from lasthop.cli import main\n"
        f"sys.argv = ['lasthop', *{words!r}]\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        f"print('imported', [name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "imported []"
