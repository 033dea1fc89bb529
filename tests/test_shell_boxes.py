"""Where `lasthop shell` puts boxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lasthop.errors import UserError
from lasthop.scenario import Scenario
from lasthop.shell import resolv_conf
from lasthop.shell_boxes import with_box, with_remedy

#: The last hop is a good one.
FAR = """
title    = "A bad hop in the middle"
duration = "1 s"
nodes    = { a = {}, b = {}, c = { boxes = [{ box = "mss-clamp", mss = 500 }] }, d = {} }
links    = [
    { between = ["a", "b"], rate = "1 Gbit/s", delay = "1 ms" },
    { between = ["b", "c"], rate = "9 Mbit/s", delay = "1 ms", errors = { packet = 0.01 } },
    { between = ["c", "d"], rate = "1 Gbit/s", delay = "1 ms" },
]
flows    = [{ from = "a", to = "d" }]
"""


def boxes(scenario: Scenario) -> dict[str, list[dict[str, Any]]]:
    """The boxes of nodes that have any."""
    nodes = scenario.document()["nodes"]
    return {node: of["boxes"] for node, of in nodes.items() if of.get("boxes")}


def test_a_remedy_is_at_the_hop_that_is_bad() -> None:
    scenario = Scenario.from_toml(FAR)
    snoop = with_remedy(scenario, 0, "snoop")
    assert boxes(snoop.scenario)["b"] == [{"box": "snoop", "hop": "c", "cache": 1000}]
    assert snoop.words == ('b: { box = "snoop", hop = "c", cache = 1000 }',)
    pair = boxes(with_remedy(scenario, 0, "pair").scenario)
    assert pair["b"] == [{"box": "pair", "hop": "c"}]
    # Behind the box that is there.
    assert [box["box"] for box in pair["c"]] == ["mss-clamp", "pair"]
    # A remedy that needs the flow's TCP is none here.
    with pytest.raises(UserError, match="no remedy 'SPEP'"):
        with_remedy(scenario, 0, "SPEP")


def test_base_stations_are_where_the_host_is_attached() -> None:
    mobile = boxes(with_remedy(Scenario.load("examples/handover"), 0, "SRP").scenario)
    assert {node: of[0]["box"] for node, of in mobile.items()} == {
        "a": "station",
        "b": "station",
        "phone": "mobile",
    }


def test_before_an_only_link_there_is_a_gateway_more() -> None:
    scenario = Scenario.load("demo")
    sender = scenario.document()["flows"][0]["from"]
    for placed in (
        with_remedy(scenario, 0, "spoofer"),
        with_box(scenario, 0, "{ box = 'spoofer' }"),
    ):
        said = placed.scenario.document()
        assert list(boxes(placed.scenario)) == [sender]
        assert said["flows"][0]["from"] == f"{sender}-host"
        placed.scenario.outline()


def test_gateways_at_both_ends_of_an_only_link_are_no_ends_of_connections() -> None:
    scenario = Scenario.load("demo")
    ends = scenario.document()["flows"][0]
    placed = with_remedy(scenario, 0, "pair")
    flow = placed.scenario.document()["flows"][0]
    assert (flow["from"], flow["to"]) == (f"{ends['from']}-host", f"{ends['to']}-host")
    assert set(boxes(placed.scenario)) == {ends["from"], ends["to"]}
    placed.scenario.outline()
    # Three round trips of 640 ms.
    assert placed.lead_s == pytest.approx(3 * 0.64 + 0.1)


def test_the_hop_of_a_box_may_be_left_out() -> None:
    scenario = Scenario.from_toml(FAR)
    left_out, given, without = (
        boxes(with_box(scenario, 0, text).scenario)["b"][0]
        for text in (
            "{ box = 'snoop' }",
            "{ box = 'spoofer', hop = 'a' }",
            "{ box = 'spoofer', tcp = { congestion = 'bbr' } }",
        )
    )
    assert left_out == {"box": "snoop", "hop": "c"}
    assert given == {"box": "spoofer", "hop": "a"}
    assert without == {"box": "spoofer", "tcp": {"congestion": "bbr"}}


def test_the_servers_of_a_local_name_server_are_used(tmp_path: Path) -> None:
    etc, upstream = tmp_path / "etc", tmp_path / "upstream"
    upstream.write_text("nameserver 192.0.2.1\n")
    for text, used in (
        ("nameserver 127.0.0.53\noptions edns0\n", upstream),
        ("nameserver 127.0.0.1\nnameserver ::1\n", upstream),
        ("nameserver 127.0.0.53\nnameserver 192.0.2.2\n", None),
        ("# nothing\n", None),
    ):
        etc.write_text(text)
        assert resolv_conf(etc, upstream) == used
    assert resolv_conf(tmp_path / "none", upstream) is None
    etc.write_text("nameserver 127.0.0.53\n")
    assert resolv_conf(etc, tmp_path / "none") is None
