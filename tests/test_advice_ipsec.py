"""Advice on SPEP, and on what IPsec hides."""

import re

from advised import RADIO, SEEDS, boxes, named, places

from lasthop import variants
from lasthop.advice import Path, advise
from lasthop.scenario import Scenario


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
