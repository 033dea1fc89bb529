"""Advice on boxes in the nodes of a path, on base stations, and on hosts that move."""

import pytest
from advised import RADIO, SATELLITE, SEEDS, boxes, named, places

import lasthop
from lasthop import documents, toml, units, variants
from lasthop.advice import Path, advise
from lasthop.scenario import Scenario


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
