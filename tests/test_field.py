"""What the comparison of gateways makes of its runs."""

from __future__ import annotations

import json

import field_tables
import pytest
from field_gateways import Candidate, behind
from field_matrix import CANDIDATES, summary
from field_path import Hop

SATELLITE = Hop(10, 600, 0.01)


def run(mbps: float, page_s: float | None, void: str | None = None) -> dict[str, object]:
    return {"mbps": mbps, "first_byte_s": 1.2, "page_s": page_s, "void": void, "ok": True}


def test_a_goodput_is_a_share_of_what_the_hop_does_not_lose() -> None:
    assert SATELLITE.share(9.9) == pytest.approx(1.0)
    assert Hop(10, 600, 0.0).share(5.0) == pytest.approx(0.5)


def test_the_queue_of_a_hop_holds_what_it_delivers_in_a_round_trip() -> None:
    settings = dict(setting.split("=", 1) for setting in SATELLITE.settings())
    assert json.loads(settings["links.1.queue"]) == "500 packets"
    assert json.loads(settings["links.1.delay"]) == "300 ms"


def test_the_server_has_bbr_only_where_nothing_stands_at_the_gateway() -> None:
    assert {behind(candidate) for candidate in CANDIDATES if candidate.kind != "direct"} == {
        "cubic"
    }
    assert behind(Candidate("direct, BBR", "direct", "bbr")) == "bbr"


def test_runs_become_least_median_and_largest_and_missing_pages_are_counted() -> None:
    runs = [run(3.0, 5.0), run(1.0, None), run(2.0, 7.0, void="late")]
    row = summary(SATELLITE, CANDIDATES[0], runs)
    assert row["goodput_mbps"] == [1.0, 2.0, 3.0]
    assert row["share"] == pytest.approx(2.0 / 9.9, abs=1e-4)
    assert (row["page_s"], row["page_s_missing"]) == ([5.0, 6.0, 7.0], 1)
    assert (row["runs"], row["void"]) == (3, 1)
    assert field_tables.goodput(row) == "20 (10 to 30)"
    assert field_tables.page(row) == "6.0 (5.0 to 7.0), 1 not whole"


def test_a_page_that_never_came_has_no_time() -> None:
    row = summary(SATELLITE, CANDIDATES[0], [run(1.0, None)])
    assert field_tables.page(row) == "none, 1 not whole"
