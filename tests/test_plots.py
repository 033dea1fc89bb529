"""Ready plots show what was measured, with its units."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

import lasthop
from lasthop import Result, Scenario, Sweep, UserError, axes, flow, link, plots


@pytest.fixture(autouse=True)
def no_windows() -> Iterator[None]:
    mpl.use("agg")
    yield
    plt.close("all")


def lossy(**tcp: object) -> Scenario:
    """Two transfers over a noisy hop, of which one ends."""
    return Scenario(
        "A noisy hop",
        duration="20 s",
        nodes=["a", "b"],
        links=[link("a", "b", rate="1 Mbit/s", delay="50 ms", errors={"packet": 0.02})],
        flows=[
            flow("a", "b", name="bulk", tcp=tcp),
            flow("a", "b", name="file", traffic={"size": "50 kB"}),
        ],
    )


@cache
def watched() -> Result:
    return lasthop.run(lossy(), trace=True, events=True)


@cache
def swept() -> Sweep:
    over = {"links.0.delay": ["10 ms", "1 s"], "flows.0.tcp.recovery": ["sack", "reno"]}
    return lasthop.sweep(lossy(), over=over, seeds=3)


def labels(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def lines(ax: Axes) -> dict[str, Any]:
    return {str(line.get_label()): line for line in ax.get_lines()}


def test_curves_show_means_and_intervals_over_a_swept_key() -> None:
    ax = plots.curves(swept(), "payload_bps", over="links.0.delay")
    assert (ax.get_xlabel(), ax.get_xscale()) == ("delay, s", "log")
    assert ax.get_ylabel() == "payload, kb/s"
    assert labels(ax) == [f"{r}, {f}" for r in ("sack", "reno") for f in ("bulk", "file")]
    expected = swept().estimates("payload_bps", ["links.0.delay", "flows.0.tcp.recovery", "flow"])
    drawn, _, (bars,) = ax.containers[0]
    assert list(drawn.get_xdata()) == pytest.approx([0.01, 1])
    for delay, y, bar in zip(("10 ms", "1 s"), drawn.get_ydata(), bars.get_segments(), strict=True):
        estimate = expected[delay, "sack", "bulk"]
        assert y == pytest.approx(estimate.value / 1e3)
        assert bar[:, 1] == pytest.approx([estimate.lo / 1e3, estimate.hi / 1e3])


def test_curves_need_something_that_varies() -> None:
    with pytest.raises(UserError, match="varies nothing"):
        plots.curves(lasthop.sweep(lossy().set({"flows": [flow("a", "b")]})))
    with pytest.raises(UserError, match="did you mean 'goodput_bps'"):
        plots.curves(swept(), "goodput_bsp")


@pytest.mark.parametrize(
    ("values", "places", "label", "ticks"),
    [
        ([1, 2, 3], [1, 2, 3], "x", None),
        (["10 ms", "200 ms", "2 s"], [0.01, 0.2, 2], "x, s", ["0.01", "0.2", "2"]),
        (["1 Mbit/s", "500 kbit/s"], [1, 0.5], "x, Mb/s", None),
        ([0.0, 1e-7, 1e-5], [0, 1, 2], "x", ["0", "1×10⁻⁷", "1×10⁻⁵"]),  # noqa: RUF001
        (["sack", "reno"], [0, 1], "x", ["sack", "reno"]),
        (["1 KiB", "10 ms"], [0, 1], "x", ["1 KiB", "10 ms"]),
        ([False, True], [0, 1], "x", ["False", "True"]),
    ],
)
def test_values_stand_where_they_belong(
    values: list[Any], places: list[float], label: str, ticks: list[str] | None
) -> None:
    _, ax = plots.subplots()
    assert list(axes.place(ax, "x", values).values()) == pytest.approx(places)
    assert ax.get_xlabel() == label
    if ticks is not None:
        assert [text.get_text() for text in ax.get_xticklabels()] == ticks


def test_a_window_is_drawn_with_its_threshold_and_the_flight() -> None:
    ax = plots.window(watched(), "file")
    assert ax.get_ylabel() == "window, kB"
    assert labels(ax) == ["in flight", "cwnd", "ssthresh"]
    series = watched().series("file")
    assert list(lines(ax)["cwnd"].get_ydata()) == [b / 1e3 for b in series["cwnd_bytes"]]
    assert labels(plots.window(watched())) == ["bulk", "file"]
    with pytest.raises(UserError, match="trace=True"):
        plots.window(lasthop.run(lossy()))


def test_queues_are_drawn_where_anything_waits() -> None:
    ax = plots.queue(watched())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time, s", "queue, packets")
    assert labels(ax)[0] == "a → b"
    assert labels(plots.queue(watched(), "b->a")) == ["b → a"]
    with pytest.raises(UserError, match="no queue 'a->c'"):
        plots.queue(watched(), "a->c")


def test_a_time_sequence_graph_shows_what_the_sender_did(tmp_path: Path) -> None:
    ax = plots.time_sequence(watched(), "bulk")
    assert ax.get_ylabel() == "sequence number, kB"
    assert {"sent", "sent again", "SACK", "ACK"} <= set(labels(ax))
    (rows,) = watched().rows.filter(watched().rows["flow"] == "bulk").to_dicts()
    segments = {c.get_label(): len(c.get_paths()) for c in ax.collections}
    assert segments["sent again"] == rows["retransmissions"]
    timeouts = [line for line in ax.get_lines() if line.get_linestyle() == ":"]
    assert len(timeouts) == rows["timeouts"]
    # The same of a file; and a part.
    lasthop.run(lossy(), events=tmp_path / "events.jsonl")
    part = plots.time_sequence(
        lasthop.read_events(tmp_path / "events.jsonl"), "bulk", between=(5, 6)
    )
    assert part.get_xlim() == (5, 6)
    low, high = part.get_ylim()
    assert high - low < ax.get_ylim()[1] / 2


def test_notices_are_drawn() -> None:
    noisy = lossy(eten="oracle").set({"links.0.errors.packet": 0.0, "links.0.errors.bit": 1e-6})
    result = lasthop.run(noisy, events=True)
    drawn = lines(plots.time_sequence(result, "bulk"))["notice"]
    assert len(drawn.get_xdata()) == result.rows["notices"][0] > 0


def test_a_time_sequence_graph_needs_events_of_one_flow() -> None:
    with pytest.raises(UserError, match="which flow"):
        plots.time_sequence(watched())
    with pytest.raises(UserError, match="did you mean 'bulk'"):
        plots.time_sequence(watched(), "bulky")
    with pytest.raises(UserError, match="events=True"):
        plots.time_sequence(lasthop.run(lossy()), "bulk")
    with pytest.raises(UserError, match="the earlier first"):
        plots.time_sequence(watched(), "bulk", between=(6, 5))


def test_completion_times_count_transfers_that_did_not_end() -> None:
    ax = plots.completion_times(swept(), by=["links.0.delay"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("completion time, s", "share of transfers")
    times = (
        swept().rows.filter(swept().rows["flow"] == "file").select("links.0.delay", "completed_s")
    )
    for line, delay in zip(ax.get_lines(), ("10 ms", "1 s"), strict=True):
        of = times.filter(times["links.0.delay"] == delay)["completed_s"]
        assert np.asarray(line.get_ydata())[-1] == pytest.approx(1 - of.null_count() / len(of))
    cut = lasthop.sweep(lossy().set(duration="1 s"), seeds=9)
    ended = cut.rows["completed_s"].count()
    assert 0 < ended < 9
    assert labels(plots.completion_times(cut, by=["flow"])) == [f"file ({ended} of 9 ended)"]
    with pytest.raises(UserError, match="no transfer ended"):
        plots.completion_times(lasthop.sweep(lossy().set(duration="100 ms")))


def test_a_plot_can_be_drawn_into_a_picture_of_many(tmp_path: Path) -> None:
    figure, (upper, lower) = plots.subplots(2, sharex=True)
    assert plots.window(watched(), ax=upper) is upper
    assert plots.queue(watched(), ax=lower) is lower
    first = plots.save(figure, tmp_path / "first.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    assert plots.save(figure, tmp_path / "again.png").read_bytes() == first


def test_events_that_are_none_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    with pytest.raises(UserError, match="cannot read"):
        lasthop.read_events(file)
    file.write_text("no JSON\n")
    with pytest.raises(UserError, match="does not hold events"):
        lasthop.read_events(file)


def test_a_verdict_with_settings_is_its_name(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(
        '{"verdict":{"congestion":{"keep_ssthresh":true}}}\n{"verdict":{"decrease":0.5}}\n'
    )
    assert lasthop.read_events(file).to_dicts() == [
        {"verdict": "congestion", "keep_ssthresh": True, "decrease": None},
        {"verdict": "decrease", "keep_ssthresh": None, "decrease": 0.5},
    ]
