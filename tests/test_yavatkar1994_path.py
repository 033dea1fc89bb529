"""yavatkar1994: the path on which its experiments are run, and its calibration."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Mapping
from pathlib import Path

import pytest
import yavatkar_calibration as calibration

from lasthop import lab
from lasthop.publications.yavatkar1994 import (
    handoffs,
    path,
    schemes,
    sensitivity,
)
from lasthop.publications.yavatkar1994.schemes import TCP
from lasthop.scenario import Scenario

ROOT = Path(__file__).resolve().parent.parent
CALIBRATION = ROOT / "bench" / "results" / "yavatkar1994-calibration.json"


def test_segments_fill_the_wireless_mtu() -> None:
    scenario = Scenario.load(path.SCENARIO).set(path.attached([]))
    row = lab.run(scenario).rows.row(0, named=True)
    assert (row["payload_bytes"], row["misplaced"]) == (100_000, 0)
    mtu = path.Path.of_scenario().mtu
    assert row["segments"] - row["retransmissions"] >= math.ceil(1e5 / (mtu - schemes.HEADERS))
    # A byte more does not pass.
    larger = scenario.set({"flows.0.tcp.mss": mtu - schemes.HEADERS + 1, "duration": "10 s"})
    with_drops = lab.run(larger)
    assert "too-big" in with_drops.box_drops["reason"].to_list()


@pytest.mark.parametrize("loss", [0.05, 0.1])
@pytest.mark.parametrize("length", [1.0, path.BURST, 4.0])
def test_bursts_lose_that_share_of_the_packets_in_both_directions(
    loss: float, length: float
) -> None:
    datagrams = {"rate": "100 kbit/s", "packet": "100 B"}
    up = {"name": "up", "from": "mobile", "to": "fixed", "traffic": {"udp": datagrams}}
    file = {"name": "file", "from": "mobile", "to": "fixed", "traffic": {"size": "1 B"}}
    scenario = Scenario.load(path.SCENARIO).set(
        {
            **path.attached([]),
            **path.lossy(loss, length),
            "links.5.errors": {},
            "duration": "1000 s",
            "flows": [
                {**file, "start": "700 s"},
                up,
                {**up, "name": "down", "from": "fixed", "to": "mobile"},
            ],
        }
    )
    rows = lab.run(scenario).rows
    for flow in ("up", "down"):
        (share,) = rows.filter(rows["flow"] == flow)["datagram_loss"].to_list()
        assert share == pytest.approx(loss, rel=0.15), flow


def test_bursts_in_time_lose_that_share_of_the_time() -> None:
    found = path.timed_bursts(0.05, 0.06, 3)
    assert len(found) == 4
    for errors in found.values():
        spans = errors["fades"]["at"]
        lost = sum(_s(span["end"]) - _s(span["start"]) for span in spans)
        assert lost / 200.0 == pytest.approx(0.05, rel=0.25)
    assert found != path.timed_bursts(0.05, 0.06, 4)


def _s(text: str) -> float:
    return float(text.removesuffix(" us")) / 1e6


def test_pauses_begin_between_four_and_eight_seconds_whatever_the_scheme() -> None:
    begins = [path.first_pause(run) for run in range(400)]
    assert min(begins) > 4.0
    assert max(begins) < 8.0
    assert statistics.fmean(begins) == pytest.approx(6.0, abs=0.15)
    moved = path.one_handoff(2.8, 5)["nodes.mobile.attached.at"]
    assert [span["to"] for span in moved] == ["station1", "station2"]
    assert _s(moved[1]["start"]) - _s(moved[0]["end"]) == pytest.approx(2.8)
    assert path.one_handoff(0.0, 5) == {
        "nodes.mobile.attached.at": [{"to": "station1", "start": "0 s"}]
    }


def test_runs_have_seeds_of_their_own_and_repeat() -> None:
    cell = path.cell(TCP, 0.05, 1.0)
    times = [path.observe(*cell.single(run))["transfer_s"] for run in (0, 1, 2, 0)]
    assert len(set(times)) == 3
    assert times[0] == times[3]
    with pytest.raises(ValueError, match="seeds"):
        cell.build(2)


def test_the_mobile_is_silent_in_a_pause() -> None:
    scenario, seed = path.cell(TCP, 0.0, 5.0).single(0)
    result = lab.run(scenario, seed=seed, events=True)
    assert result.events is not None
    left = path.first_pause(0)
    sender = result.events.filter(result.events["node"] == "mobile")
    acks = sender.filter(sender["event"] == "acknowledged")["t_s"].to_list()
    assert not [t for t in acks if left < t < left + 5.0]
    assert [t for t in acks if t > left + 5.0]


def test_handoffs_go_to_and_fro() -> None:
    moves = handoffs.moves(2.8, 5.0, 1)
    assert moves[0][0] == path.first_pause(1)
    for (_, back), (left, _) in itertools.pairwise(moves):
        assert left - back == pytest.approx(5.0)
    spans = handoffs.drawn(2.8, 5.0, 1)["nodes.mobile.attached.at"]
    assert [span["to"] for span in spans[:4]] == ["station1", "station2"] * 2


# --- Calibration ---


def test_the_scenario_has_the_calibrated_point() -> None:
    kept = json.loads(CALIBRATION.read_text())
    assert kept["schemes"] == list(schemes.ENABLED)
    assert _point(kept["chosen"]) == path.Path.of_scenario()
    others = [_point(of) for of in kept["best"] if of["mtu"] != kept["chosen"]["mtu"]]
    assert others[0] == sensitivity.OTHER


def _point(kept: Mapping[str, float]) -> path.Path:
    return path.Path(**{key: kept[key] for key in path.Path.__dataclass_fields__})  # type: ignore[arg-type]


def test_the_calibrated_point_is_the_best_of_the_whole_grid() -> None:
    kept = json.loads(CALIBRATION.read_text())
    axes = ("LOSSES", "INTERNET_MS", "DELAYS_MS", "RATES_KBPS", "MTUS")
    assert len(kept["grid"]) == math.prod(len(getattr(calibration, axis)) for axis in axes)
    least = min(round(of["error"], 2) for of in kept["best"])
    assert round(kept["chosen"]["error"], 2) == least
    screened = sorted(round(of["error"], 2) for of in kept["grid"])[calibration.KEPT - 1]
    best = [_point(of) for of in kept["best"]]
    assert all(_point(of) in best for of in kept["grid"] if round(of["error"], 2) < screened)


def test_the_error_of_a_calibration_is_of_the_mean_and_of_the_interval() -> None:
    point = path.Path.of_scenario()
    mean, half = calibration.published(TCP)
    assert mean == pytest.approx(21.7)
    assert half == pytest.approx(2.4)
    assert calibration.Measured(point, {TCP: (mean, half)}).error == pytest.approx(0.0)
    off = calibration.Measured(point, {TCP: (mean * math.e, half)})
    assert off.error == pytest.approx(math.sqrt(0.5))


def test_only_the_cell_without_pause_and_loss_is_calibrated() -> None:
    assert dict(calibration.number(TCP).case) == {"scheme": TCP, "loss": 0.0, "pause_s": 0.0}
