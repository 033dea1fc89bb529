"""The hops of a flow's way, and a document at another time."""

from typing import Any

import pytest

from lasthop import _lasthop as engine
from lasthop import documents, hops


def link(a: str, b: str, rate: object = "10 Mbit/s", **keys: object) -> dict[str, Any]:
    """A link as a document has it."""
    return {"between": [a, b], "rate": rate, "delay": "5 ms", **keys}


def said(*links: dict[str, Any], nodes: dict[str, Any] | None = None) -> dict[str, Any]:
    """A document with a flow from a to c."""
    named: dict[str, Any] = {node: {} for of in links for node in of["between"]}
    flows = [{"from": "a", "to": "c"}]
    return {"duration": "60 s", "nodes": named | (nodes or {}), "links": [*links], "flows": flows}


@pytest.mark.parametrize(
    ("last", "is_bad"),
    [
        ({}, False),
        ({"errors": {"bit": 0.0, "packet": 0.0}}, False),
        ({"errors": {"bit": 1e-7}}, True),
        ({"errors": {"bursts": {"gap": "30 s", "length": 20}}}, True),
        ({"backward": {"errors": {"packet": 0.1}}}, True),
        ({"outages": {"mean_up": "60 s", "mean_down": "2 s"}}, True),
        ({"rate": "9 Mbit/s"}, True),
        ({"rate": "11 Mbit/s"}, False),
        ({"forward": {"rate": "9 Mbit/s"}}, True),
        ({"backward": {"rate": "9 Mbit/s"}}, False),
        ({"rate": {"trace": "cell.down"}}, True),
    ],
)
def test_a_bad_hop_loses_packets_or_is_the_slowest(last: dict[str, Any], is_bad: bool) -> None:
    """In the direction of the flow; in both, if it loses packets."""
    document = said(link("a", "b"), {**link("b", "c"), **last})
    assert hops.is_bad(document, 0, ("b", "c")) == is_bad


def test_a_host_is_attached_by_its_only_link_or_where_it_says() -> None:
    """One that has several, and does not say when it uses which, is attached to none."""
    one, other = link("b", "c"), link("d", "c")
    assert hops.attachments(said(link("a", "b"), one), "c") == ["b"]
    both = (link("a", "b"), link("a", "d"), one, other)
    assert hops.attachments(said(*both), "c") == []
    places = [
        {"to": to, "start": start} for to, start in (("d", "0 s"), ("b", "5 s"), ("d", "9 s"))
    ]
    moving = said(*both, nodes={"c": {"attached": {"at": places}}})
    assert hops.attachments(moving, "c") == ["d", "b"]


def test_the_worst_of_several_hops_counts() -> None:
    """The most that can be in flight; a rate that is none is not known."""
    first = link("b", "c", "900 kbit/s", mtu="576 B")
    second = link("d", "c", "2 Mbit/s", mtu={"size": "296 B"}, backward={"delay": "7 ms"})
    document = said(link("a", "b"), first, second)
    assert hops.quantities(document, [("b", "c"), ("d", "c")]) == {
        "rate": "2 Mbit/s",
        "delay": "5 ms",
        "mtus": ["576 B", "296 B"],
    }
    unknown = said(first, link("d", "c", {"trace": "cell.down"}))
    assert hops.quantities(unknown, [("b", "c"), ("d", "c")])["rate"] == ""


def test_the_engine_takes_the_least_mtu() -> None:
    """In any unit."""
    remedies = engine.box_remedies("c", rate="", delay="", mtus=["1 KiB", "296 B", "576 B"])
    (srp,) = [remedy for remedy in remedies if remedy["name"] == "SRP"]
    assert all("mtu = 296" in setting["toml"] for setting in srp["settings"])


def test_a_document_is_later_with_all_its_times() -> None:
    """What is so from the beginning stays so; what repeats itself has no time of its own."""
    document = said(
        link("a", "b", outages={"at": [{"start": "0 s", "end": "1 s"}, {"start": "4 s"}]}),
        link("b", "c", changes={"every": "30 s", "at": [{"start": "20 s", "rate": "1 Mbit/s"}]}),
    )
    document["flows"] += [{"from": "a", "to": "c", "start": "7 s"}]
    moved = documents.later(document, 0, 10)
    assert moved["duration"] == "70000000 us"
    assert [flow["start"] for flow in moved["flows"]] == ["10000000 us", "17000000 us"]
    assert moved["links"][0]["outages"]["at"] == [
        {"start": "0 s", "end": "11000000 us"},
        {"start": "14000000 us"},
    ]
    assert moved["links"][1] == document["links"][1]
    # The second starts 3 s too early.
    assert documents.later(document, 1, 10)["flows"][0]["start"] == "3000000 us"
    assert documents.later(document, 1, 7) is document
