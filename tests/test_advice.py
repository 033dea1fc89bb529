"""Advice on paths whose remedies every textbook knows."""

import json
import tomllib
from pathlib import Path as File

import pytest
from typer.testing import CliRunner

import lasthop
from lasthop import _lasthop as engine
from lasthop import advice
from lasthop._lasthop import ScenarioError
from lasthop.advice import Advice, Path, Remedy, advise
from lasthop.cli import app
from lasthop.errors import UserError
from lasthop.scenario import Scenario

SEEDS = 6


def settings(said: Advice) -> list[str]:
    """The settings that help, the best first."""
    return [remedy.setting for remedy in said.helping]


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
    assert settings(said)[0] == 'receive_window = "1 GB"'
    assert said.helping[0].needs == ("receiver",)


def test_on_a_lossy_satellite_path_notification_helps_most() -> None:
    """Most of what an oracle could win is won by notification."""
    said = advise(Path(rate="2 Mbit/s", delay="300 ms", bit_errors=1e-6), seeds=SEEDS)
    # Nodes that notify the sender, or the receiver: hardly a difference.
    assert set(settings(said)[:2]) == {'eten = "backward"', 'eten = "forward"'}
    best = said.helping[0]
    assert best.gain.value > 2
    assert "middlebox" in best.needs
    assert "clear headers" in best.needs
    assert said.bound is not None
    assert said.bound.gain.value >= 0.9 * best.gain.value


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


def test_a_modem_is_full_already() -> None:
    """Nothing helps a line that is always busy."""
    said = advise(Path(rate="56 kbit/s", delay="60 ms"), seeds=SEEDS)
    assert settings(said) == []
    assert said.used is not None
    assert said.used > 0.95


def test_clean_fibre_needs_nothing() -> None:
    """Nor does a fast path without errors."""
    assert settings(advise(Path(rate="100 Mbit/s", delay="5 ms"), seeds=SEEDS)) == []


def test_outages_are_for_mechanisms_that_are_not_there_yet() -> None:
    """A mobile path that goes away: no window and no notice of corruption brings it back."""
    path = Path(rate="5 Mbit/s", delay="40 ms", outage="5 s", between_outages="30 s")
    said = advise(path, seeds=SEEDS)
    assert all(r.gain.value < 1.3 for r in said.remedies)
    assert said.used is not None
    assert 0.2 < said.used < 0.97


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
    assert said.used is None
    in_tcp = [remedy.setting for remedy in said.helping if remedy.at is None]
    assert in_tcp[0] == 'initial_window = "rfc6928"'
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


def boxes(said: Advice) -> dict[tuple[str, str | None], Remedy]:
    """What is said of boxes, by their names and nodes; of those with a rate, with that word."""
    found = {}
    for remedy in said.remedies:
        box = tomllib.loads(remedy.setting) if remedy.at is not None else {}
        if box:
            found[box["box"] + " with a rate" * ("rate" in box), remedy.at] = remedy
    assert len(found) == sum(remedy.at is not None for remedy in said.remedies)
    return found


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
    assert plain.verdict == paced.verdict == "helps"
    assert paced.gain.value > plain.gain.value
    assert "split connection" in plain.needs
    assert "split connection" in paced.needs
    # A clean hop has nothing for Snoop to do.
    assert boxes(said)["snoop", "gateway"].verdict == "changes nothing"
    assert {at for _, at in boxes(said)} == {"gateway"}


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
    said = engine.document(path.source, path.name)
    behind, _ = advice._behind_gateway(path, said, 0)
    first, second = (lasthop.sweep(scenario, seeds=3).rows for scenario in (path, behind))
    assert first["goodput_bps"].to_list() == pytest.approx(second["goodput_bps"], rel=0.02)


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
    assert "as it is, with CUBIC" in shown.output
    assert "not with IPsec" in " ".join(shown.output.split())
    file = tmp_path / "path.toml"
    file.write_text(Path("56 kbit/s", "60 ms").scenario().source)
    said = json.loads(run(app, ["advise", str(file), "--json"]).stdout)
    assert said["metric"] == "goodput_bps"
    assert not [r for r in said["remedies"] if r["verdict"] == "helps"]
    for arguments in (["advise"], ["advise", "--rate", "1 Mbit/s"], ["advise", str(file), *path]):
        assert isinstance(run(app, arguments).exception, UserError)


def test_every_need_has_words() -> None:
    """All needs and costs of the engine's remedies have words."""
    known = {*advice._NEEDS, *advice._COSTS}
    path = Scenario.from_toml(Path("1 Mbit/s", "1 ms").scenario().source, "path")
    for remedy in advise(path, seeds=2).remedies:
        assert set(remedy.needs) <= known
