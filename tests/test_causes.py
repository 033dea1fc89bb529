"""A path without a cause of trouble, and the pairs of runs that show its share."""

from typing import Any

import pytest

from lasthop import causes, documents, hops, pairs
from lasthop.advice import Path, advise
from lasthop.scenario import Scenario
from lasthop.variants import Target


def without(scenario: Scenario) -> dict[str, dict[str, Any]]:
    """The documents without a cause, by the cause."""
    return {of.name: of.document for of in causes.causes(Target(scenario, 0))}


def test_only_causes_that_a_path_has_are_taken_away() -> None:
    """A clean path has no loss to be taken away, and one host no other's flows."""
    always = {"round trip", "receive window", "buffer", "slow start"}
    assert without(Path("1 Mbit/s", "10 ms").scenario()).keys() == always
    lossy = Path("1 Mbit/s", "10 ms", loss=0.01, outage="1 s").scenario()
    lossy = lossy.set({"flows.0.traffic": {"size": "1 MB", "send_buffer": "64 KiB"}})
    assert without(lossy).keys() == {*always, "loss", "outages", "send buffer"}
    moving = without(Scenario.load("examples/handover"))
    assert "handoffs" in moving
    places = moving["handoffs"]["nodes"]["phone"]["attached"]["at"]
    assert [place.keys() for place in places] == [{"to", "start"}] * 2
    shared = without(Scenario.load("examples/shared").set({"links.1.queue": "200 packets"}))
    assert len(shared["other flows"]["flows"]) == 1


def test_a_cause_is_taken_away_in_both_directions_and_nothing_else() -> None:
    """Of a link with keys of its own for a direction."""
    path = Path("2 Mbit/s", "300 ms", loss=0.01).scenario()
    path = path.set({"links.0.backward": {"errors": {"bit": 1e-6}, "delay": "20 ms"}})
    said = without(path)
    (link,) = said["loss"]["links"]
    assert "errors" not in link
    assert link["backward"] == {"delay": "20 ms"}
    (link,) = said["round trip"]["links"]
    assert (link["delay"], link["backward"]["delay"]) == ("30000000 ns", "2000000 ns")
    # 2 Mbit/s for 320 ms.
    assert said["buffer"]["links"][0]["forward"] == {"queue": "53 packets"}
    assert said["slow start"]["flows"][0]["tcp"]["initial_window"] == 53


def test_shares_of_one_cause_and_of_the_rate_make_the_whole() -> None:
    """What is not sending is waiting for the window."""
    path = Path("5 Mbit/s", "100 ms").scenario()
    said = advise(path.set({"flows.0.tcp.receive_window": "32 KiB"}), seeds=4)
    share = {limit.cause: limit.share for limit in said.limits}
    assert share["receive window"].value + share["rate"].value == pytest.approx(1, abs=0.05)
    assert share["receive window"].lo < share["receive window"].value < share["receive window"].hi
    assert [limit.share.value for limit in said.limits] == sorted(
        (of.value for of in share.values()), reverse=True
    )


def test_runs_are_close_to_the_path_and_their_mean_is_the_path() -> None:
    """Within 3 %, on both sides, and no two alike."""
    changes = [pairs.changes(seed) for seed in range(1, 41)]
    assert len(set(changes)) == 40
    for values in zip(*changes, strict=True):
        assert 0.97 <= min(values) < 0.975
        assert 1.025 < max(values) <= 1.03
        assert sum(values) / 40 == pytest.approx(1, abs=0.003)


def test_a_run_has_the_same_seed_and_path_as_its_pair() -> None:
    """So what changes nothing has the same runs, whatever it is compared with, and in any order."""
    said = Target(Path("2 Mbit/s", "50 ms", loss=0.02).scenario(), 0).said
    longer = documents.scaled(said, delay=2)
    one, other, same = pairs.run([said, longer, said], "path", "transfer", runs=4, threads=2)
    assert one == same
    assert one != other
    (again,) = pairs.run([said], "path", "transfer", runs=2, first_seed=3, threads=1)
    assert again.goodput_bps == one.goodput_bps[2:]
    assert all(value is not None for value in one.rtt_min_s)


def test_rates_of_boxes_follow_the_path() -> None:
    """A gateway that is told the rate of its hop is told that of its run."""
    said = Target(Path("2 Mbit/s", "50 ms").scenario(), 0).said
    boxes = [{"box": "spoofer", "rate": "2 Mbit/s"}, {"box": "pair", "rate": "measured"}]
    scaled = documents.scaled(said | {"nodes": {"a": {"boxes": boxes}, "b": {}}}, rate=0.98)
    assert scaled["nodes"]["a"]["boxes"][0]["rate"] == "1960000 bit/s"
    assert scaled["nodes"]["a"]["boxes"][1] == boxes[1]
    assert scaled["links"][0]["rate"] == "1960000 bit/s"


def test_the_bottleneck_is_the_slowest_link_in_the_direction_of_the_data() -> None:
    """Without a fixed rate there is none."""
    path = Scenario.load("examples/modem")
    said = Target(path, 0).said
    down = hops.bottleneck(said, 0)
    assert down is not None
    turned = said | {"flows": [said["flows"][0] | {"from": "home", "to": "server"}]}
    up = hops.bottleneck(turned, 0)
    assert up is not None
    assert up.between == down.between[::-1]
    assert {up.direction, down.direction} == {"forward", "backward"}
    assert up.rate_bps < down.rate_bps
    traced = documents.without(said, "rate")
    assert hops.bottleneck(traced, 0) is None
