"""Advice on paths whose remedies every textbook knows."""

import json
import re
import tomllib
from pathlib import Path as File

import pytest
from typer.testing import CliRunner

import lasthop
from lasthop import _lasthop as engine
from lasthop import documents, toml, units, variants
from lasthop._lasthop import ScenarioError
from lasthop.advice import Advice, Path, advise
from lasthop.cli import app
from lasthop.errors import UserError
from lasthop.remedy import MARKS, PARTIES, Remedy, listed
from lasthop.remedy import named as nodes_named
from lasthop.scenario import Scenario

SEEDS = 6


def settings(said: Advice) -> list[str]:
    """The settings that help, the best first."""
    return [remedy.setting for remedy in said.helping]


def in_tcp(said: Advice) -> list[Remedy]:
    """What helps in the flow's TCP alone, the best first."""
    return [r for r in said.helping if {change.place for change in r.changes} == {"tcp"}]


def verdict(said: Advice, setting: str) -> str:
    """What is said of one remedy."""
    return next(remedy.verdict for remedy in said.remedies if remedy.setting == setting)


def test_a_clean_satellite_path_needs_nothing() -> None:
    """With buffers as large as the path, delay alone is no reason to starve."""
    said = advise(Path(rate="2 Mbit/s", delay="300 ms"), seeds=SEEDS)
    assert settings(said) == []
    assert said.used is not None
    assert said.used > 0.8


def test_a_small_window_is_what_limits_a_long_path() -> None:
    """64 KB in a round trip of 600 ms are less than a megabit a second."""
    path = Path(rate="10 Mbit/s", delay="300 ms").scenario()
    said = advise(path.set({"flows.0.tcp.receive_window": "64 KiB"}), seeds=SEEDS)
    assert in_tcp(said)[0].setting == 'receive_window = "1 GB"'
    assert in_tcp(said)[0].needs == ("receiver",)


def test_on_a_lossy_satellite_path_notification_helps_most() -> None:
    """Most of what an oracle could win is won by notification."""
    said = advise(Path(rate="2 Mbit/s", delay="300 ms", bit_errors=1e-6), seeds=SEEDS)
    # Nodes that notify the sender, or the receiver: hardly a difference.
    assert set(settings(said)[:2]) == {'eten = "backward"', 'eten = "forward"'}
    best = said.helping[0]
    assert best.gain.value > 2
    assert "middlebox" in best.needs
    assert "clear headers" in best.needs
    assert said.oracle is not None
    assert said.oracle.gain.value >= 0.9 * best.gain.value


def test_a_path_as_it_is_has_the_tcp_of_today() -> None:
    """What it is said to have is in use: to set it changes nothing."""
    said = advise(Path(rate="5 Mbit/s", delay="50 ms", loss=0.01), seeds=2)
    assert said.tcp == "CUBIC with HyStart++, RACK-TLP, F-RTO, PRR (profile modern)"
    for setting in (
        'congestion = "cubic"',
        "hystart = true",
        'recovery = "rack"',
        "frto = true",
        'reduction = "prr"',
    ):
        assert verdict(said, setting) == "changes nothing"


def test_the_tcp_of_a_scenario_is_named_as_it_says() -> None:
    """Its profile, and what the flow sets itself."""
    path = Path("1 Mbit/s", "10 ms").scenario()
    old = {"profile": "ns2-2007", "flows.0.tcp.recovery": "newreno"}
    assert advise(path.set(old), seeds=2).tcp == "AIMD, NewReno (profile ns2-2007)"


def test_losses_in_bursts_are_another_path_than_single_ones() -> None:
    """The same losses in rows are fewer events for TCP."""
    single, rows = (
        advise(Path("5 Mbit/s", "100 ms", loss=0.01, burst=burst), seeds=SEEDS)
        for burst in (None, 10.0)
    )
    assert rows.today.value > 1.5 * single.today.value


def test_a_short_transfer_is_judged_by_its_time() -> None:
    """An initial window of one segment costs round trips."""
    path = Path(rate="10 Mbit/s", delay="100 ms", size="50 kB").scenario()
    said = advise(path.set({"flows.0.tcp.initial_window": 1}), seeds=SEEDS)
    assert said.metric == "completed_s"
    assert in_tcp(said)[0].setting == 'initial_window = "rfc6928"'
    # A gateway that knows the rate of its hop sends the whole at once.
    assert "rate" in settings(said)[0]


def test_the_share_of_the_rate_is_that_of_the_flows_way() -> None:
    """In its direction; where there are several ways, there is none."""
    slow = "examples/modem"
    down = advise(slow, seeds=2)
    assert down.used is not None
    assert 0.9 < down.used <= 1
    up = advise(slow, settings={"flows.0.from": "home", "flows.0.to": "server"}, seeds=2)
    assert up.used is not None
    assert 0.9 < up.used <= 1
    assert up.today.value < 33_600
    assert advise("examples/handover", seeds=2).used is None


def test_rare_losses_are_chance_all_the_same() -> None:
    """Two runs without any would look like certainty."""
    said = advise(Path("2 Mbit/s", "100 ms", loss=0.003, size="100 kB"))
    assert said.today.n == 20
    assert said.today.half > 0


def boxes(said: Advice) -> dict[tuple[str, str], Remedy]:
    """What is said of single boxes, by their names and nodes; of those with a rate, with that
    word."""
    found = {}
    before = [r for r in said.remedies if {c.place for c in r.changes} == {"before hop"}]
    for remedy in before:
        (change,) = remedy.changes
        (node,), (box,) = change.nodes, tomllib.loads(change.setting)["boxes"]
        found[box["box"] + " with a rate" * ("rate" in box), node] = remedy
    assert len(found) == len(before)
    return found


def named(said: Advice, name: str) -> list[Remedy]:
    """What is said of remedies with this name."""
    return [remedy for remedy in said.remedies if remedy.name == name]


def places(remedy: Remedy) -> dict[str, tuple[str, ...]]:
    """The nodes of a remedy's settings, by their place."""
    return {change.place: change.nodes for change in remedy.changes}


def test_snoop_repairs_a_noisy_hop_from_a_gateway_before_it() -> None:
    """It hides corruption from the sender, and reads TCP headers in both directions."""
    said = advise(Path(rate="2 Mbit/s", delay="40 ms", bit_errors=3e-6), seeds=SEEDS)
    snoop = boxes(said)["snoop", ""]
    assert snoop.verdict == "helps"
    assert snoop.gain.value > 1.5
    assert set(snoop.needs) == {"middlebox", "both directions", "clear headers"}
    assert 'hop = "receiver"' in snoop.setting
    # What is said of the rest does not depend on boxes: the path without them is the same.
    assert said.remedies[0].gain.n == snoop.gain.n == SEEDS


SATELLITE = """
title    = "a download through a gateway"
duration = "60 s"
[nodes]
server  = {}
gateway = {}
user    = {}
[[links]]
between = ["server", "gateway"]
rate    = "50 Mbit/s"
delay   = "40 ms"
queue   = "250 packets"
[[links]]
between = ["gateway", "user"]
rate    = "10 Mbit/s"
delay   = "250 ms"
queue   = "420 packets"
[[flows]]
from    = "server"
to      = "user"
traffic = { size = "3 MB" }
"""


def test_a_spoofer_shortens_downloads_at_the_node_before_a_satellite() -> None:
    """It gives up the end-to-end meaning of acknowledgments, and says so."""
    said = advise(Scenario.from_toml(SATELLITE), seeds=SEEDS)
    plain = boxes(said)["spoofer", "gateway"]
    paced = boxes(said)["spoofer with a rate", "gateway"]
    assert paced.verdict == "helps"
    assert plain.gain.lo > 1
    assert paced.gain.value > plain.gain.value
    assert "split connection" in plain.needs
    assert "split connection" in paced.needs
    # A clean hop has nothing for Snoop to do.
    assert boxes(said)["snoop", "gateway"].verdict == "changes nothing"
    assert {node for _, node in boxes(said)} == {"gateway"}


def test_boxes_stand_beside_those_that_are_there() -> None:
    """In every node between the ends of the only way, and nowhere if there are several ways."""
    path = Scenario.from_toml(SATELLITE).set(
        {"nodes.gateway.boxes": [{"box": "mss-clamp"}], "flows.0.traffic.size": "30 kB"}
    )
    assert boxes(advise(path, seeds=2))
    assert not boxes(advise("examples/handover", seeds=2))


def test_an_assumed_gateway_changes_nothing_by_itself() -> None:
    """The link and its errors are the same; the sender is behind a fast link without delay."""
    path = Path("2 Mbit/s", "40 ms", bit_errors=1e-6).scenario()
    said = documents.behind_gateway(path.document(), 0)
    behind = Scenario.from_toml(toml.write(said))
    first, second = (lasthop.sweep(scenario, seeds=3).rows for scenario in (path, behind))
    assert first["goodput_bps"].to_list() == pytest.approx(second["goodput_bps"], rel=0.02)


RADIO = """
title    = "a download over a radio hop"
duration = "30 s"
[nodes]
server  = {}
gateway = {}
phone   = {}
[[links]]
between = ["server", "gateway"]
rate    = "50 Mbit/s"
delay   = "40 ms"
queue   = "250 packets"
[[links]]
between = ["gateway", "phone"]
rate    = "5 Mbit/s"
delay   = "15 ms"
queue   = "60 packets"
errors  = { packet = 0.02 }
[[flows]]
name    = "download"
from    = "server"
to      = "phone"
"""


def test_a_lossy_last_hop_may_have_stations_and_a_mobile_host() -> None:
    """With either transport; it says who changes, and that the server does not."""
    said = advise(Scenario.from_toml(RADIO), seeds=SEEDS)
    ((mtcp,), (srp,)) = (named(said, name) for name in ("MTCP", "SRP"))
    for remedy in (mtcp, srp):
        assert places(remedy) == {"attachments": ("gateway",), "host": ("phone",)}
        assert remedy.verdict == "helps"
    assert set(mtcp.needs) == {
        "middlebox",
        "host agent",
        "both directions",
        "clear headers",
        "split connection",
    }
    assert set(srp.needs) - set(mtcp.needs) == {"hop transport"}
    # Losses are none of congestion for SRP; TCP on the hop takes them for that.
    assert srp.gain.value > mtcp.gain.value
    # The rate of the hop, less the losses.
    assert 0.8 * 5e6 < srp.value.value < 0.98 * 5e6


def test_a_bad_link_in_the_middle_has_no_mobile_host() -> None:
    """Nor has one of several that are as fast; a receiver that is attached by a slower one has."""
    path = Scenario.from_toml(SATELLITE).set({"flows.0.traffic.size": "30 kB"})
    assert len(named(advise(path, seeds=2), "SRP")) == 1
    ends = {"flows.0.to": "lan", "nodes.lan": {}}
    links = path.document()["links"]
    lan = {"between": ["user", "lan"], "rate": "100 Mbit/s", "delay": "1 ms"}
    behind = path.set({"links": [*links, lan], **ends})
    assert named(advise(behind, seeds=2), "SRP") == []
    even = path.set({"links.1.rate": "50 Mbit/s"})
    assert named(advise(even, seeds=2), "SRP") == []


def test_an_only_link_has_its_station_in_an_assumed_gateway() -> None:
    """Which is in neither end."""
    said = advise(Path("2 Mbit/s", "40 ms", loss=0.02), seeds=2)
    (srp,) = named(said, "SRP")
    assert places(srp) == {"attachments": ("",), "host": ("receiver",)}
    assert srp.setting.startswith('SRP (a gateway: box = "station"')


HANDOFF = {"nodes.mobile.attached.at.1.start": "8.8 s"}


def test_what_handoffs_cost_has_remedies_side_by_side() -> None:
    """Those of TCP, with and without a warning, and stations that hand connections over."""
    said = advise("yavatkar1994/path", settings=HANDOFF, seeds=SEEDS)
    (srp,), (mtcp,) = (named(said, name) for name in ("SRP", "MTCP"))
    # The fixed host is behind a lossy link, too: but the other one moves.
    for remedy in (srp, mtcp):
        assert places(remedy) == {"attachments": ("station1", "station2"), "host": ("mobile",)}
        for change in remedy.changes:
            assert "mtu = 256" in change.setting
        assert remedy.verdict == "helps"
        assert remedy.gain.n == SEEDS
        assert 1 < remedy.gain.lo < remedy.gain.value < remedy.gain.hi
    assert srp.gain.value > mtcp.gain.value
    whole = [remedy.setting for remedy in said.remedies]
    assert any("rlci" in setting for setting in whole)
    freezing = [remedy for remedy in said.remedies if "freeze" in remedy.setting]
    assert [places(remedy).get("host") for remedy in freezing].count(("mobile",)) == 2
    for remedy in freezing:
        assert ("warning" in remedy.needs) == ("host" in places(remedy))


def test_a_warning_helps_a_receiver_that_freezes() -> None:
    """Without one there is nothing to freeze for; a scenario that has one keeps it."""
    said = advise("examples/handover", seeds=2)
    freezing = {
        remedy.changes[-1].setting: remedy.verdict
        for remedy in said.remedies
        if "freeze" in remedy.setting
    }
    assert freezing['warning = "200 ms"'] == "helps"
    assert freezing['mechanisms = [{ mechanism = "freeze" }]'] == "changes nothing"
    warned = advise("examples/handover", settings={"nodes.phone.warning": "300 ms"}, seeds=2)
    (freeze,) = [remedy for remedy in warned.remedies if "freeze" in remedy.setting]
    assert freeze.verdict == "helps"


@pytest.mark.parametrize(
    "boxes",
    [
        {"nodes.a.boxes": [{"box": "station"}]},
        {"nodes.phone.boxes": [{"box": "mobile"}]},
        {
            "nodes.a.boxes": [{"box": "station"}],
            "nodes.b.boxes": [{"box": "station"}],
            "nodes.phone.boxes": [{"box": "mobile", "hop": "srp"}],
        },
    ],
)
def test_a_node_has_no_second_box_of_a_kind(boxes: dict[str, object]) -> None:
    """What has stations or a mobile host keeps them as they are; all else is tried."""
    said = advise("examples/handover", settings=boxes, seeds=2)
    assert not [remedy for remedy in said.remedies if remedy.name]
    assert any("rlci" in remedy.setting for remedy in said.remedies)


def test_other_boxes_of_the_nodes_stay() -> None:
    """Those of remedies come after them."""
    path = Scenario.load("examples/handover").set(
        {"nodes.a.boxes": [{"box": "mss-clamp"}], "duration": "3 s"}
    )
    (srp,) = [v for v in variants.variants(path, 0) if v.remedy["name"] == "SRP"]
    nodes = srp.scenario.document()["nodes"]
    assert [box["box"] for box in nodes["a"]["boxes"]] == ["mss-clamp", "station"]
    assert [box["box"] for box in nodes["b"]["boxes"]] == ["station"]


def test_time_for_hosts_to_register_changes_nothing_by_itself() -> None:
    """The flow and the handoff are later by the same time."""
    path = Scenario.load("examples/handover")
    (mtcp,) = [v for v in variants.variants(path, 0) if v.remedy["name"] == "MTCP"]
    assert mtcp.today != path
    first, second = (lasthop.sweep(scenario, seeds=1).rows for scenario in (path, mtcp.today))
    assert second["duration_s"].to_list() == first["duration_s"].to_list()
    assert second["payload_bytes"].to_list() == first["payload_bytes"].to_list()
    # One that starts late is as it is.
    late = path.set({"flows.0.start": "10 s"})
    (mtcp,) = [v for v in variants.variants(late, 0) if v.remedy["name"] == "MTCP"]
    assert mtcp.today == late


def test_a_key_that_is_swept_over_one_value_has_it_at_any_time() -> None:
    """Also where the scenario is later."""
    start = "nodes.mobile.attached.at.1.start"
    file = Scenario.load("yavatkar1994/path").set({"sweep": {"seeds": 2, start: ["8.8 s"]}})
    (srp,) = [v for v in variants.variants(file, 0) if v.remedy["name"] == "SRP"]
    for scenario in (srp.today, srp.scenario):
        first, second = scenario.document()["nodes"]["mobile"]["attached"]["at"]
        assert units.parse(first["end"]) == pytest.approx(16)
        assert units.parse(second["start"]) == pytest.approx(18.8)
        assert scenario.outline().points == 1


def test_what_contradicts_the_scenario_is_left_out() -> None:
    """A mechanism that is named already cannot be named again."""
    path = Path(rate="2 Mbit/s", delay="300 ms", bit_errors=1e-6).scenario()
    said = advise(path.set({"flows.0.tcp.mechanisms": [{"mechanism": "eten"}]}), seeds=SEEDS)
    assert not [r for r in said.remedies if r.setting.startswith("eten")]


def test_the_same_question_has_the_same_answer() -> None:
    """Whatever the number of threads."""
    path = Path(rate="2 Mbit/s", delay="50 ms", loss=0.01)
    one, two = (advise(path, seeds=3, threads=threads) for threads in (1, 2))
    assert one == two


@pytest.mark.parametrize(
    ("path", "seconds"),
    [
        (Path("2 Mbit/s", "10 ms"), "30 s"),
        (Path("2 Mbit/s", "300 ms"), "60 s"),
        (Path("56 kbit/s", "10 ms"), "300 s"),
        (Path("100 Mbit/s", "1 ms"), "12 s"),
        (Path("1 Gbit/s", "1 ms"), "1 s"),
        (Path("100 Gbit/s", "1 us"), "1 s"),
        (Path("2 Mbit/s", "1 ms", outage="1 s", between_outages="9 s"), "100 s"),
    ],
)
def test_a_run_is_a_hundred_round_trips_and_enough_packets(path: Path, seconds: str) -> None:
    """But not millions of them."""
    assert f'duration = "{seconds}"' in path.scenario().source


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (Path("fast", "1 ms"), "rate"),
        (Path("1 Mbit/s", "-3 ms"), "delay"),
        (Path("1 Mbit/s", "3 ms", loss=2.0), "probability"),
        (Path("1 Mbit/s", "3 ms", size="many"), "size"),
        (Path("1 Mbit/s", "3 ms", outage="a while"), "mean_down"),
        (Path("1 Mbit/s", "3 ms", loss=0.1, burst=0.5), "burst"),
    ],
)
def test_errors_are_those_of_a_scenario_file(path: Path, words: str) -> None:
    """By the key that it would stand for."""
    with pytest.raises(ScenarioError, match=words):
        advise(path)


def test_a_scenario_must_be_one_path_with_one_flow() -> None:
    """Else it would be unclear what is asked."""
    with pytest.raises(UserError, match="one path"):
        advise("demo")
    with pytest.raises(UserError, match="spread"):
        advise(Path("1 Mbit/s", "1 ms"), seeds=1)
    with pytest.raises(UserError, match="no flow 'x'"):
        advise(Path("1 Mbit/s", "1 ms"), flow="x")


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


def test_a_page_has_a_time_and_no_size() -> None:
    """It ends; a path with a size of its own has no page."""
    said = advise(Path("2 Mbit/s", "300 ms"), goal="page", seeds=2)
    assert said.metric == "completed_s"
    # A handshake, the request, and slow start from ten segments to 206.
    assert 3 < said.today.value / 0.6 < 8
    both = ["--rate", "2 Mbit/s", "--delay", "1 ms", "--goal", "page", "--size", "1 MB"]
    assert isinstance(CliRunner().invoke(app, ["advise", *both]).exception, UserError)
    short = {"links.1.queue": "200 packets", "duration": "50 ms"}
    with pytest.raises(UserError, match="page does not arrive"):
        advise("examples/shared", flow="download", goal="page", seeds=2, settings=short)


def test_a_remedy_with_which_a_transfer_does_not_end_makes_it_worse() -> None:
    """It does not decide how the others are judged. Repair packets do not pass this link."""
    path = Path("2 Mbit/s", "20 ms", size="20 kB").scenario()
    said = advise(path.set({"duration": "20 s", "links.0.mtu": "1500 B"}), seeds=4)
    assert said.metric == "completed_s"
    coding = [remedy for remedy in said.remedies if "coding" in remedy.setting]
    assert len(coding) == 2
    for remedy in coding:
        assert remedy.verdict == "harms"
        assert remedy.value.value == pytest.approx(20)


def test_latency_is_not_bought_with_goodput() -> None:
    """What costs more than 10 % of it does not help, and is said apart."""
    said = advise(Path("2 Mbit/s", "75 ms", queue="2 MB"), goal="latency", seeds=4)
    for remedy in said.remedies:
        assert remedy.rtt_gain == remedy.gain
        if remedy.verdict == "helps":
            assert remedy.goodput_gain.value >= 0.9
        if remedy.verdict == "costs goodput":
            assert remedy.goodput_gain.value < 0.9
    assert "helps" in {remedy.verdict for remedy in said.remedies}


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


def test_a_lossy_last_hop_may_have_spep_in_the_hosts_and_the_node_before_it() -> None:
    """With IPsec over IPv6, whose packets fit; it names who changes, which is everyone."""
    said = advise(Scenario.from_toml(RADIO), seeds=SEEDS)
    first, every = sorted(named(said, "SPEP"), key=lambda remedy: len(remedy.setting))
    for remedy in (first, every):
        assert remedy.verdict == "helps"
        assert set(remedy.needs) == {"sender", "receiver", "middlebox", "ipsec"}
        assert places(remedy) == {
            "peer": ("server",),
            "before hop": ("gateway",),
            "host": ("phone",),
            "flow": (),
            "tcp": (),
        }
        assert "flow: ip = 6" in remedy.setting
        # A node with two boxes has each in its braces, one with a single box needs none.
        of_peer = r'server: \{ box = "esp", spep = true \}, \{ box = "mss-clamp", mss = \d+ \}; '
        assert re.search(of_peer, remedy.setting)
        assert 'phone: box = "esp", loss_causes = "station"; ' in remedy.setting
    # Today's TCP has SACK, so one hole of a window is little.
    assert "every_hole = true" in every.setting
    assert every.gain.value > first.gain.value > 1.2


def test_spep_of_an_only_link_is_before_it_in_an_assumed_gateway() -> None:
    """The sender is behind that; without losses there is nothing to win."""
    said = advise(Path("2 Mbit/s", "40 ms", loss=0.02), seeds=SEEDS)
    for remedy in named(said, "SPEP"):
        assert places(remedy)["before hop"] == ("",)
        assert places(remedy)["peer"] == ("sender",)
        assert remedy.verdict == "helps"
    clean = advise(Path("2 Mbit/s", "40 ms"), seeds=2)
    assert [remedy.verdict for remedy in named(clean, "SPEP")] == ["makes no difference"] * 2


ESP = {"box": "esp"}
UNDER_ESP = {
    "nodes.server.boxes": [ESP],
    "nodes.phone.boxes": [ESP],
    "flows.0.ip": 6,
    "flows.0.tcp.mss": 1340,
}


def test_under_ipsec_nothing_is_tried_that_reads_tcp_headers() -> None:
    """SPEP remains, in the boxes that are there; and it is said."""
    path = Scenario.from_toml(RADIO).set(UNDER_ESP)
    said = advise(path, seeds=SEEDS)
    assert said.hidden
    assert said.as_dict()["hidden"] is True
    assert not any("clear headers" in remedy.needs for remedy in said.remedies)
    assert not named(said, "SRP")
    assert not boxes(said)
    assert all(remedy.verdict == "helps" for remedy in named(said, "SPEP"))
    (variant, _) = [v for v in variants.variants(path, 0) if v.remedy["name"] == "SPEP"]
    (first, clamp) = variant.scenario.document()["nodes"]["server"]["boxes"]
    assert (first, clamp["box"]) == ({"box": "esp", "spep": True}, "mss-clamp")
    # At one end alone, or of another flow, it hides nothing.
    assert not variants.is_hidden(path.set({"nodes.phone.boxes": []}), 0)
    other = path.set({"nodes.phone.boxes": [{**ESP, "flows": []}]})
    assert variants.is_hidden(other, 0)


def test_what_a_scenario_says_of_its_boxes_stays() -> None:
    """A box that says where it learns of losses is not told another way."""
    path = Scenario.from_toml(RADIO).set(UNDER_ESP)
    link = path.set({"nodes.phone.boxes": [{**ESP, "loss_causes": "link"}]})
    assert not [v for v in variants.variants(link, 0) if v.remedy["name"] == "SPEP"]


def test_of_several_flows_only_the_one_that_is_meant_is_protected() -> None:
    """The hosts at the other ends of the others have no such box."""
    flow = {"from": "server", "to": "phone"}
    path = Scenario.from_toml(RADIO).set(
        {"flows": [{"name": "download", **flow}, {"name": "other", **flow}]}
    )
    (variant, _) = [v for v in variants.variants(path, 0) if v.remedy["name"] == "SPEP"]
    said = variant.scenario.document()
    assert said["nodes"]["server"]["boxes"][0]["flows"] == ["download"]
    assert said["nodes"]["phone"]["boxes"][0]["flows"] == ["download"]
    assert variants.is_hidden(variant.scenario, 0)
    assert not variants.is_hidden(variant.scenario, 1)
