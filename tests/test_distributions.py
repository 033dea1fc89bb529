"""Distributions of round-trip times and delays: counts, plots and the command's pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from fixtures import Command
from matplotlib.axes import Axes

import lasthop
from lasthop import Result, Scenario, Sweep, UserError, flow, journal, link, plots
from lasthop.distributions import MOST_LINES, quantile


@pytest.fixture(autouse=True)
def no_windows() -> Iterator[None]:
    mpl.use("agg")
    yield
    plt.close("all")


def loaded() -> Scenario:
    """Two transfers that fill a queue, and probes that wait in it."""
    return Scenario(
        "A filled queue",
        duration="10 s",
        nodes=["a", "b"],
        links=[link("a", "b", rate="1 Mbit/s", delay="5 ms", queue="30 packets")],
        flows=[
            flow("a", "b", name="bulk", start="1 s"),
            flow("a", "b", name="more", start="2 s"),
            flow("a", "b", name="probe", traffic={"udp": {"rate": "24 kbit/s", "packet": "60 B"}}),
        ],
    )


@cache
def once() -> Result:
    return lasthop.run(loaded())


def sweep(seeds: int = 2, **over: object) -> Sweep:
    over = {"links.0.queue": ["5 packets", "30 packets"], **over}
    return lasthop.sweep(loaded(), settings={"latency": "distributions"}, over=over, seeds=seeds)


@cache
def swept() -> Sweep:
    return sweep()


@pytest.mark.parametrize(
    ("what", "of", "columns"),
    [
        ("rtt", "bulk", "rtt"),
        ("srtt", "more", "srtt"),
        ("delay", "probe", "delay"),
        ("queue_delay", "a->b", "queue_delay"),
    ],
)
def test_a_distribution_is_that_of_the_columns(what: str, of: str, columns: str) -> None:
    rows = once().distribution(what, of)
    assert rows.columns == ["time_s", "count", "share"]
    assert rows["time_s"].is_sorted()
    assert (rows["count"] > 0).all()
    assert rows["share"][-1] == pytest.approx(1)
    known = once().rows.filter(once().rows["flow"] == ("bulk" if what == "queue_delay" else of))
    mean = np.average(rows["time_s"].to_numpy(), weights=rows["count"].to_numpy())
    assert mean == pytest.approx(known[f"{columns}_mean_s"][0])
    for name, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert quantile(rows, share) == pytest.approx(known[f"{columns}_{name}_s"][0])


def test_every_probe_counts() -> None:
    received = once().rows.filter(once().rows["flow"] == "probe")["datagrams_received"]
    assert once().distribution("delay")["count"].sum() == received[0]


def test_a_distribution_that_is_not_there_is_a_users_mistake() -> None:
    with pytest.raises(UserError, match="did you mean 'srtt'"):
        once().distribution("sttr")
    with pytest.raises(UserError, match="which flow"):
        once().distribution("rtt")
    with pytest.raises(UserError, match="no flow 'probe'"):
        once().distribution("rtt", "probe")
    without = lasthop.run(loaded().set({"flows": [flow("a", "b")]}))
    with pytest.raises(UserError, match="no one-way delay"):
        without.distribution("delay")
    with pytest.raises(UserError, match="no one-way delay"):
        plots.distribution(without, "delay")
    with pytest.raises(UserError, match="kept no distributions"):
        lasthop.sweep(loaded(), settings={"latency": True}).distributions()


def test_a_sweep_adds_up_its_runs() -> None:
    by = swept().distributions("rtt")
    assert list(by) == [
        (queue, of) for queue in ("5 packets", "30 packets") for of in ("bulk", "more")
    ]
    runs = [
        lasthop.run(loaded(), settings={"links.0.queue": "5 packets"}, seed=seed) for seed in (1, 2)
    ]
    alone = pl.concat([run.distribution("rtt", "more") for run in runs])
    alone = alone.group_by("time_s").agg(pl.col("count").sum()).sort("time_s")
    assert by["5 packets", "more"].select("time_s", "count").equals(alone)
    both = swept().distributions("rtt", ["flow"])
    assert list(both) == [("bulk",), ("more",)]
    # Of queues, each run counts once, however many flows it has.
    (queues,) = swept().distributions("queue_delay", []).values()
    packets = [
        row["packets"]
        for queue in ("5 packets", "30 packets")
        for seed in (1, 2)
        for row in lasthop.run(loaded(), settings={"links.0.queue": queue}, seed=seed)
        .links.filter(pl.col("link") == "a->b")
        .to_dicts()
    ]
    assert queues["count"].sum() == pytest.approx(sum(packets), abs=len(packets))
    with pytest.raises(UserError, match="did you mean 'flow'"):
        swept().distributions("rtt", ["flaw"])


def labels(ax: Axes) -> list[str]:
    return ax.get_legend_handles_labels()[1]


def test_lines_are_cumulative_shares() -> None:
    ax = plots.distribution(once(), "rtt")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("RTT, ms", "share of samples")
    assert labels(ax) == ["bulk", "more"]
    rows = once().distribution("rtt", "bulk")
    line: Any = ax.get_lines()[0]
    assert line.get_xdata()[1:-1] == pytest.approx((rows["time_s"] * 1e3).to_list())
    assert line.get_ydata()[1:-1] == pytest.approx(rows["share"].to_list())
    assert ax.get_xscale() == "linear"
    alone = plots.distribution(once(), "delay", "probe")
    assert alone.get_legend() is None
    # Some probes find the queue of 30 packets empty.
    assert alone.get_xscale() == "log"
    # Nothing but ACKs goes back: nothing waits there.
    assert labels(plots.distribution(once(), "queue_delay")) == ["a → b"]


def test_lines_of_a_sweep_are_told_apart() -> None:
    ax = plots.distribution(swept(), "delay")
    assert labels(ax) == ["5 packets", "30 packets"]
    legend = ax.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "queue"
    assert labels(plots.distribution(swept(), "rtt", "more")) == ["5 packets", "30 packets"]
    looks = [(line.get_color(), line.get_linestyle()) for line in ax.get_lines()]
    assert len(set(looks)) == len(looks)
    with pytest.raises(UserError, match="no flow 'mroe'"):
        plots.distribution(swept(), "rtt", "mroe")
    with pytest.raises(UserError, match="leave the name out"):
        plots.distribution(swept(), "queue_delay", "a->b")


def test_keys_that_vary_together_are_named_once() -> None:
    zipped = {
        "seeds": 1,
        "zip": [
            {f"links.0.{way}.queue": ["5 packets", "30 packets"] for way in ("forward", "backward")}
        ],
    }
    one = loaded().set({"links": [link("a", "b", rate="1 Mbit/s", delay="5 ms")]})
    rows = lasthop.sweep(one, settings={"latency": "distributions", "sweep": zipped})
    assert labels(plots.distribution(rows, "delay")) == ["5 packets", "30 packets"]


def test_boxes_are_quartiles() -> None:
    ax = plots.boxes(swept(), "rtt")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["5 packets", "30 packets"]
    assert labels(ax) == ["bulk", "more"]
    rows = swept().distributions("rtt")["30 packets", "bulk"]
    box: Any = ax.patches[1]
    corners = box.get_path().vertices[:, 1]
    assert min(corners) == pytest.approx(quantile(rows, 0.25) * 1e3)
    assert max(corners[:4]) == pytest.approx(quantile(rows, 0.75) * 1e3)
    with pytest.raises(UserError, match="nothing varies"):
        plots.boxes(Sweep(swept().rows.filter(pl.col("links.0.queue") == "5 packets")), "delay")
    with pytest.raises(UserError, match=r"did you mean 'links\.0\.queue'"):
        plots.boxes(swept(), "delay", over="links.0.queues")


def test_a_figure_has_all_panels_and_says_what_they_show() -> None:
    from lasthop import pictures

    drawn = plots.latency(once(), "A $filled$ queue")
    titles = [ax.get_title(loc="left") for ax in drawn.axes]
    assert titles == [
        "Round-trip time",
        "Smoothed round-trip time",
        "One-way delay",
        "Queueing delay",
    ]
    said = pictures.svg(drawn, "latency", "A queue")
    assert "share of samples over RTT, ms; lines: bulk, more" in said
    titles = [ax.get_title(loc="left") for ax in plots.latency(swept(), "Queues").axes]
    assert titles == [
        *(
            f"{name}, {of}"
            for name in ("Round-trip time", "Smoothed round-trip time")
            for of in ("bulk", "more")
        ),
        "One-way delay, probe",
        "Queueing delay",
    ]


def test_where_nothing_waits_there_is_no_queueing_delay_to_draw() -> None:
    traffic = {"udp": {"rate": "24 kbit/s", "packet": "60 B"}}
    idle = lasthop.run(loaded().set({"flows": [flow("a", "b", traffic=traffic)]}))
    assert idle.distribution("queue_delay")["time_s"].to_list() == [0]
    with pytest.raises(UserError, match="no queueing delay above 0"):
        plots.distribution(idle, "queue_delay")
    (panel,) = plots.latency(idle, "Probes").axes
    assert panel.get_title(loc="left") == "One-way delay"
    bursts = loaded().set(
        {"flows": [flow("a", "b", traffic={"udp": {**traffic["udp"], "on": "1 s", "off": "1 s"}})]}
    )
    with pytest.raises(UserError, match="nothing to draw"):
        plots.latency(lasthop.run(bursts), "Bursts")


def test_many_points_are_drawn_as_boxes() -> None:
    many = sweep(seeds=1, **{"links.0.delay": [f"{i} ms" for i in range(1, 6)]})
    assert len(many.distributions("delay")) > MOST_LINES
    with pytest.raises(UserError, match="draw boxes"):
        plots.distribution(many, "delay")
    drawn = plots.latency(many, "Queues")
    assert all(len(ax.patches) == 10 for ax in drawn.axes)


def test_the_command_draws_runs_and_sweeps(lasthop: Command, tmp_path: Path) -> None:
    loaded().save(tmp_path / "queue.toml")
    done = lasthop("run", "queue.toml", "--latency", "run.svg")
    assert done.returncode == 0
    text = (tmp_path / "run.svg").read_text()
    assert "lines: bulk, more" in text
    over = ("--set", 'sweep={"links.0.queue" = ["5 packets", "30 packets"]}')
    done = lasthop("sweep", "queue.toml", *over, "--latency", "sweep.png", "-o", "rows.parquet")
    assert done.returncode == 0
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    assert rows.columns[-4:] == [
        f"{what}_counts" for what in ("rtt", "srtt", "delay", "queue_delay")
    ]
    assert [sum(n for _, n in json.loads(pairs)) for pairs in rows["delay_counts"]][2] > 400
    done = lasthop("sweep", "queue.toml", *over, "-o", "plain.csv")
    assert "rtt_counts" not in (tmp_path / "plain.csv").read_text()
    done = lasthop("run", "queue.toml", "--latency", "queue.toml")
    assert done.returncode == 2
    (tmp_path / "mine.svg").write_text("<svg/>")
    done = lasthop("run", "queue.toml", "--latency", "mine.svg")
    assert done.returncode == 2
    assert "--force" in done.stderr


def test_a_long_distribution_can_be_read_again(tmp_path: Path) -> None:
    part = tmp_path / "rows.part"
    part.write_text(
        f'about\nrun,"seed","flow","x","rtt_counts"\n0,1,"a",2.5,"[{"[1,1]," * 100_000}]"\n'
    )
    columns = {"seed": "integer", "flow": "text", "x": "float", "rtt_counts": "text"}
    assert journal.summary(part, columns, "x").estimates[()].value == 2.5
