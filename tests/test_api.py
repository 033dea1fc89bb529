"""import lasthop"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import python_keys

import lasthop
from lasthop import library
from lasthop.errors import nearest, unknown
from lasthop.scenario import setting


def test_a_run_has_rows_and_a_digest(scenario: Path) -> None:
    result = lasthop.run(scenario)
    assert result.rows["flow"].to_list() == ["bulk", "file"]
    assert result.rows["goodput_bps"][0] > 1e5
    assert result.rows["completed_s"].dtype == pl.Float64
    assert result.rows["completed_s"][0] is None
    assert result.rows["misplaced"].sum() == 0
    assert len(result.digest) == 16
    with pytest.raises(lasthop.UserError, match="not traced"):
        result.series("bulk")


def test_the_same_seed_is_the_same_run_and_tracing_changes_nothing(scenario: Path) -> None:
    first, again = lasthop.run(scenario, seed=7), lasthop.run(scenario, seed=7, trace=True)
    assert first.digest == again.digest
    assert first.rows.equals(again.rows)
    assert first.digest != lasthop.run(scenario, seed=8).digest


def test_packets_as_bytes_change_nothing_and_can_be_kept(scenario: Path, tmp_path: Path) -> None:
    file = tmp_path / "packets.pcapng"
    plain = lasthop.run(scenario)
    watched = lasthop.run(scenario, byte_mode=True, pcap=file, pcap_at=["a->b"])
    assert watched.digest == plain.digest
    # A section header in little-endian order.
    assert file.read_bytes()[:12].endswith(b"\x4d\x3c\x2b\x1a")


def test_packets_that_boxes_drop_are_listed_by_node_and_reason(scenario: Path) -> None:
    text = scenario.read_text()
    assert lasthop.run(scenario).box_drops.is_empty()
    doubled = "forward = { duplication = 0.01 }\n"
    tunnel = '[[tunnels]]\nfrom = "a"\nto = "b"\n'
    scenario.write_text(text.replace("[[flows]]", f"{doubled}{tunnel}[[flows]]", 1))
    result = lasthop.run(scenario)
    (drops,) = result.box_drops.to_dicts()
    assert (drops["node"], drops["reason"]) == ("b", "replay")
    assert drops["packets"] == result.links["duplicated"].sum() > 0


def test_events_of_connections_are_logged_and_change_nothing(
    scenario: Path, tmp_path: Path
) -> None:
    file = tmp_path / "events.jsonl"
    plain = lasthop.run(scenario)
    assert lasthop.run(scenario, events=file).digest == plain.digest
    events = [json.loads(line) for line in file.read_text().splitlines()]
    opening = {"event": "state", "from": "syn-sent", "to": "established"}
    of_sender = [event for event in events if event["node"] == "a"]
    assert any(opening.items() <= event.items() for event in of_sender)
    again = [event for event in of_sender if event["event"] == "sent" and event["again"]]
    assert len(again) == plain.rows["retransmissions"].sum()
    assert [event["t_s"] for event in events] == sorted(event["t_s"] for event in events)


def test_a_traced_run_has_series(scenario: Path) -> None:
    result = lasthop.run(str(scenario), trace=True)
    series = result.series("bulk")
    assert series.columns == [
        "t_s",
        "cwnd_bytes",
        "cwnd_plus_dupacked_bytes",
        "ssthresh_bytes",
        "srtt_s",
        "rto_s",
        "flight_bytes",
    ]
    assert series["t_s"].is_sorted()
    assert series["cwnd_bytes"].min() == 536
    # There is no smoothed round trip before the first sample, and from then on always.
    known = series["srtt_s"].is_not_null()
    assert known.to_list() == sorted(known.to_list())
    assert not known[0]
    assert (series["srtt_s"].drop_nulls() > 0.02).all()
    assert result.queue("a->b").filter(pl.col("packets") > 50).is_empty()
    with pytest.raises(lasthop.UserError, match="did you mean 'bulk'"):
        result.series("bluk")
    with pytest.raises(lasthop.UserError, match="which flow"):
        result.series()


def test_a_traced_run_has_what_boxes_hold_over_time() -> None:
    spoofer = {"box": "spoofer", "cache": "50 kB", "tcp": {"receive_window": "100 kB"}}
    path = lasthop.Scenario(
        "a gateway",
        duration="30 s",
        nodes={"server": {}, "gateway": {"boxes": [spoofer]}, "user": {}},
        links=[
            lasthop.link("server", "gateway", rate="20 Mbit/s", delay="5 ms"),
            lasthop.link("gateway", "user", rate="2 Mbit/s", delay="100 ms"),
        ],
        flows=[lasthop.flow("server", "user", traffic={"size": "500 kB"})],
    )
    traced, plain = (lasthop.run(path, trace=trace) for trace in (True, False))
    assert traced.digest == plain.digest
    assert not plain.boxes
    assert list(traced.boxes) == ["gateway"]
    held = traced.boxes["gateway"]
    assert held.columns == ["t_s", "held_bytes", "split_connections"]
    assert held["t_s"].is_sorted()
    most = traced.box_counts.filter(pl.col("what") == "bytes held at most")["count"][0]
    assert held["held_bytes"].max() == most
    assert 50_000 <= most <= 150_000
    assert held["held_bytes"][-1] == 0


def test_settings_override_the_file(scenario: Path) -> None:
    lossless = lasthop.run(scenario, settings={"links.0.errors.bit": 0.0})
    assert lossless.rows["corrupted"].sum() == 0
    loaded = lasthop.Scenario.load(scenario).set({"sweep.seeds": 2}).set({"title": "Another"})
    outline = loaded.outline()
    assert (outline.title, outline.points, outline.seeds, outline.runs) == ("Another", 4, 2, 8)
    assert outline.duration_s == 5
    assert outline.flows == ["bulk", "file"]


def test_threads_change_nothing(scenario: Path) -> None:
    one = lasthop.sweep(scenario, threads=1).rows
    many = lasthop.sweep(scenario, threads=2).rows
    assert one.height == 4 * 3 * 2
    assert one.equals(many)


def test_a_sweep_is_the_runs_that_it_stands_for(scenario: Path) -> None:
    # A single run measures latencies, too.
    swept = lasthop.sweep(scenario, settings={"latency": True}).rows.filter(
        (pl.col("links.0.errors.bit") == 1e-5)
        & (pl.col("flows.0.tcp.recovery") == "reno")
        & (pl.col("seed") == 2)
    )
    settings = {"links.0.errors.bit": 1e-5, "flows.0.tcp.recovery": "reno"}
    alone = lasthop.run(scenario, settings=settings, seed=2).rows
    assert swept.select(alone.columns).equals(alone)


def test_progress_counts_up_to_all_runs(scenario: Path) -> None:
    progress: list[tuple[int, int]] = []
    lasthop.sweep(scenario, seeds=2, progress=lambda done, runs: progress.append((done, runs)))
    assert progress == sorted(progress)
    assert progress[-1] == (8, 8)


def test_a_summary_has_a_mean_and_an_interval_per_point(scenario: Path) -> None:
    sweep = lasthop.sweep(scenario)
    assert sweep.keys == ["links.0.errors.bit", "flows.0.tcp.recovery"]
    summary = sweep.summary("payload_bps", by=["links.0.errors.bit"])
    assert summary.columns == ["links.0.errors.bit", "mean", "ci95_lo", "ci95_hi", "n"]
    assert summary["n"].to_list() == [12, 12]
    clean, noisy = summary["mean"]
    assert clean > noisy
    points = sweep.rows.filter(pl.col("links.0.errors.bit") == 0)["payload_bps"]
    expected = lasthop.stats.mean_interval(points.to_list())
    assert summary.row(0)[1:] == (expected.value, expected.lo, expected.hi, expected.n)
    # One flow never ends: only the other's completion times count.
    assert sweep.summary("completed_s", by=["flow"])["flow"].to_list() == ["file"]
    with pytest.raises(lasthop.UserError, match="did you mean 'goodput_bps'"):
        sweep.summary("godput_bps")
    with pytest.raises(lasthop.UserError, match="does not hold numbers"):
        sweep.summary("flow")


def test_a_scenario_error_points_at_the_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('title = "x"\nduration = "soon"\n')
    with pytest.raises(lasthop.ScenarioError, match=r"duration"):
        lasthop.run(path)
    with pytest.raises(lasthop.UserError, match="no scenario file"):
        lasthop.run(tmp_path / "none.toml")
    with pytest.raises(lasthop.UserError, match="cannot read"):
        lasthop.run(tmp_path)


def test_shipped_scenarios_can_be_run() -> None:
    assert {"bbn8333/sim1", "demo"} <= set(library.names())
    for name in library.names():
        assert lasthop.run(name, settings={"duration": "20 s"}).rows.height > 0


def test_the_nearest_word_is_named() -> None:
    assert nearest("sakc", ["reno", "sack"]) == "sack"
    assert nearest("sim1", ["bbn8333/sim1", "bbn8333/sim2"]) == "bbn8333/sim1"
    assert nearest("quite different", ["reno"]) is None
    assert "known: reno, sack" in str(unknown("recovery", "?", ["sack", "reno"]))


@pytest.mark.parametrize("seed", [-1, 2**63, 2**200])
def test_seeds_that_there_are_not_are_an_error(scenario: Path, seed: int) -> None:
    with pytest.raises(lasthop.UserError, match=r"expected 0 to 2\*\*63 - 1"):
        lasthop.run(scenario, seed=seed)
    with pytest.raises(lasthop.UserError, match="expected 0 to"):
        lasthop.sweep(scenario, first_seed=seed)
    with pytest.raises(lasthop.UserError, match=r"seeds from 1 on"):
        lasthop.sweep(scenario, seeds=min(seed, 0) or 2**63)
    with pytest.raises(lasthop.UserError, match="threads"):
        lasthop.sweep(scenario, threads=-1)


def test_a_key_that_there_is_not_fails_where_it_is_written() -> None:
    with pytest.raises(
        lasthop.ScenarioError, match=r"`link\.dly`: .*did you mean `delay`"
    ) as found:
        lasthop.link("a", "b", dly="1 s")  # type: ignore[call-arg]
    assert found.value.findings[0]["key"] == "link.dly"
    with pytest.raises(
        lasthop.ScenarioError, match=r"`flow\.x`: unknown key; expected name, start"
    ):
        lasthop.flow("a", "b", x=1)  # type: ignore[call-arg]
    with pytest.raises(lasthop.ScenarioError, match="did you mean `latency`"):
        lasthop.Scenario(  # type: ignore[call-arg]
            duration="1 s", nodes=["a", "b"], flows=[lasthop.flow("a", "b")], latncy=True
        )


@pytest.mark.parametrize("value", [2**63, -(2**64), "\udcff"])
def test_values_that_no_file_can_say_are_an_error(scenario: Path, value: object) -> None:
    with pytest.raises(lasthop.ScenarioError, match="`title`: expected"):
        lasthop.run(scenario, settings={"title": value})


def test_the_types_of_keys_are_those_of_the_schema() -> None:
    """`python docs/python_keys.py` writes them anew."""
    assert python_keys.FILE.read_text(encoding="utf-8") == python_keys.module()


def test_a_check_says_what_is_wrong(scenario: Path) -> None:
    assert lasthop.check(scenario)
    found = lasthop.check(scenario, settings={"links.0.rate": "fast"})
    assert not found
    assert found.findings[0]["key"] == "links.0.rate"
    assert "`fast` is no rate" in found.report
    assert not lasthop.check(lasthop.Scenario.from_toml("title = 1"))
    assert lasthop.check("demo").outline == lasthop.Scenario.load("demo").outline()
    assert "no scenario file 'none.toml'" in lasthop.check("none.toml").report


def test_notebooks_show_results_as_tables(scenario: Path) -> None:
    shown = lasthop.run(scenario)._repr_html_()
    for part in ("Flows", "goodput_bps", "Links", "a-&gt;b"):
        assert part in shown
    swept = lasthop.sweep(scenario)._repr_html_()
    assert "of 12 runs" in swept
    assert "ci95_lo" in swept


def test_what_is_imported_late_is_there() -> None:
    assert callable(lasthop.advise)
    assert callable(lasthop.reproduce)
    with pytest.raises(AttributeError, match="no attribute 'advice_'"):
        lasthop.advice_  # noqa: B018


def test_settings_are_toml_or_text() -> None:
    assert setting("a.b = 3") == ("a.b", 3)
    assert setting("a=[1, 2]") == ("a", [1, 2])
    assert setting("links.0.rate=10 Mbit/s") == ("links.0.rate", "10 Mbit/s")
    assert setting('a="x=y"') == ("a", "x=y")
    assert setting("a=1\nb=2") == ("a", "1\nb=2")
    for wrong in ("a", "=3", "a="):
        with pytest.raises(lasthop.UserError, match="KEY=VALUE"):
            setting(wrong)


def test_importing_lasthop_leaves_heavy_libraries_alone() -> None:
    code = (
        "import sys, lasthop.cli; "
        "print([m for m in ('polars', 'matplotlib', 'scipy', 'numpy', 'jinja2')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
