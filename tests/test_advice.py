"""Advice on paths whose remedies every textbook knows, for every goal."""

import pytest
from advised import SEEDS
from typer.testing import CliRunner

from lasthop._lasthop import ScenarioError
from lasthop.advice import Advice, Path, advise
from lasthop.cli import app
from lasthop.errors import UserError
from lasthop.remedy import Remedy


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
    # Nodes that notify the sender, or the receiver, of each damaged packet, or of the share of
    # damaged ones: hardly a difference.
    assert all(setting.startswith("eten = ") for setting in settings(said)[:3])
    best = next(one for one in said.helping if one.setting == 'eten = "backward"')
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
