"""What `lasthop advise` says, to people and to programs."""

import json
from pathlib import Path as File

import pytest
from advised import RADIO
from typer.testing import CliRunner

from lasthop import _lasthop as engine
from lasthop.advice import Path, advise
from lasthop.cli import app
from lasthop.errors import UserError
from lasthop.remedy import MARKS, PARTIES, listed
from lasthop.remedy import named as nodes_named
from lasthop.scenario import Scenario


def test_the_command_speaks_to_people_and_to_programs(tmp_path: File) -> None:
    """And says what is missing."""
    run = CliRunner().invoke
    path = ["--rate", "2Mbit/s", "--delay", "300ms", "--bit-errors", "1e-6", "--seeds", "4"]
    shown = run(app, ["advise", *path])
    assert shown.exit_code == 0
    assert 'eten = "backward"' in shown.output
    words = " ".join(shown.output.split())
    assert "today, with CUBIC" in words
    assert "not with IPsec" in words
    assert "the sender's TCP and lasthopd in mode notify at the hop" in words
    # The oracle is no bound of what changes more than the reaction to errors.
    assert "What gains more changes more" in words
    assert "at most" not in words.lower()
    file = tmp_path / "path.toml"
    file.write_text(Path("56 kbit/s", "60 ms").scenario().source)
    said = json.loads(run(app, ["advise", str(file), "--json"]).stdout)
    assert said["metric"] == "goodput_bps"
    assert [limit["cause"] for limit in said["limits"]] == ["rate"]
    assert said["bloated"]
    assert {"who", "marks", "rtt", "rtt_gain", "goodput_gain"} <= said["remedies"][0].keys()
    assert not [r for r in said["remedies"] if r["verdict"] == "helps"]
    for arguments in (["advise"], ["advise", "--rate", "1 Mbit/s"], ["advise", str(file), *path]):
        assert isinstance(run(app, arguments).exception, UserError)


@pytest.mark.parametrize("goal", ["goodput", "latency", "page"])
def test_a_narrow_terminal_has_all_of_it(goal: str, tmp_path: File) -> None:
    """In 80 columns, for every goal: causes, who must change what, and each setting in its line."""
    file = tmp_path / "radio.toml"
    file.write_text(RADIO)
    arguments = ["advise", str(file), "--set", "links.1.queue=500 packets", "--goal", goal]
    shown = CliRunner().invoke(app, [*arguments, "--seeds", "6"], env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    lines = [line.rstrip() for line in shown.stdout.splitlines()]
    assert max(map(len, lines)) <= 80
    assert "share" in " ".join(lines)
    if goal == "goodput":
        place = lines.index("    SRP")
        assert lines[place + 1 : place + 3] == [
            '      gateway: box = "station"',
            '      phone: box = "mobile", hop = "srp"',
        ]
        assert "lasthopd in mode station and mobile" in lines[place - 2]
        assert "    - both directions must pass there" in lines[place:]
        assert any("loss (no link damages or loses a packet)" in line for line in lines)


def test_the_answer_names_bufferbloat_whatever_the_goal() -> None:
    """A queue of 2 MB at 2 Mbit/s: no goodput is to be won, and 4 s of delay."""
    path = ["--rate", "2 Mbit/s", "--delay", "75 ms", "--queue", "2 MB", "--seeds", "4"]
    words = " ".join(CliRunner().invoke(app, ["advise", *path]).stdout.split())
    assert "The delay is a problem (bufferbloat)" in words
    assert '150 ms by congestion = "bbr" (a sysctl at the sender)' in words
    assert "(the queue at the hop)" in words
    assert "Nothing here would raise the goodput." in words
    short = " ".join(CliRunner().invoke(app, ["advise", *path, "--goal", "latency"]).stdout.split())
    assert "codel" in short
    assert "round trip under load 4." in short
    assert "round trip under load 2.1 s" not in short


def test_programs_get_the_settings_by_their_places() -> None:
    """And the names of the nodes there."""
    said = advise(Scenario.from_toml(RADIO), seeds=2).as_dict()
    (srp,) = [remedy for remedy in said["remedies"] if remedy["name"] == "SRP"]
    of_station, of_mobile = srp["settings"]
    assert (of_station["place"], of_station["nodes"]) == ("attachments", ["gateway"])
    assert of_mobile["setting"] == {"boxes": [{"box": "mobile", "hop": "srp"}]}
    in_tcp = [r["settings"] for r in said["remedies"] if r["settings"][0]["place"] == "tcp"]
    assert [{"place": "tcp", "nodes": [], "setting": {"recovery": "sack"}}] in in_tcp


def test_many_nodes_are_counted() -> None:
    """A line has room for four names."""
    assert nodes_named(["a"]) == "a"
    assert nodes_named(["a", "b", "c", "d"]) == "a, b, c and d"
    assert nodes_named(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_a_list_in_a_sentence_has_one_and_for_its_parts() -> None:
    """Behind a comma, if a part has an "and" of its own."""
    assert listed(["the sender"]) == "the sender"
    assert listed(["the sender", "the receiver"]) == "the sender and the receiver"
    three = ["the sender", "the receiver", "the node a"]
    assert listed(three) == "the sender, the receiver and the node a"
    nodes = ["the nodes a and b", "the host c"]
    assert listed(nodes) == "the nodes a and b, and the host c"
    assert listed(["the sender", *nodes]) == "the sender, the nodes a and b, and the host c"


def test_every_need_has_words() -> None:
    """All needs and costs of the engine's remedies have words, and what can be built a party."""
    boxes = engine.box_remedies("b", rate="1 Mbit/s", delay="1 ms", mtus=[])
    queues = engine.queue_remedies(rate="1 Mbit/s", round_trip="2 ms")
    for of in (*engine.remedies(), *boxes, *queues):
        assert set(of["needs"]) <= {*PARTIES, *MARKS}
        assert not of["buildable"] or set(of["needs"]) & PARTIES
