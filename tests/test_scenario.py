"""Scenarios that are built in Python."""

from __future__ import annotations

import inspect
import json
import pickle
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lasthop
from lasthop import Scenario, ScenarioError, flow, library, link, toml
from lasthop import _lasthop as engine

HOP = """title    = "A radio hop"
duration = "2 s"

[nodes]
server = {}
phone  = {}

[[links]]
between = ["server", "phone"]
rate    = "4 Mbit/s"
delay   = "15 ms"
forward = { errors = { bit = 2e-6 } }

[[flows]]
name = "download"
from = "server"
to   = "phone"
tcp  = { recovery = "sack" }

[sweep]
seeds                = 2
"flows.0.tcp.mss"    = [500, 1000]
"""


def hop(**changed: object) -> Scenario:
    """The same, built."""
    parts: dict[str, Any] = {
        "duration": "2 s",
        "nodes": ["server", "phone"],
        "links": [
            link(
                "server",
                "phone",
                rate="4 Mbit/s",
                delay="15 ms",
                queue=None,
                forward={"errors": {"bit": 2e-6}},
            )
        ],
        "flows": [flow("server", "phone", tcp={"recovery": "sack"}, name="download")],
        "sweep": {"seeds": 2, "flows.0.tcp.mss": range(500, 1001, 500)},
    }
    return Scenario("A radio hop", **{**parts, **changed})


def test_what_is_built_is_what_a_file_says(tmp_path: Path) -> None:
    built, written = hop(), Scenario.from_toml(HOP)
    assert tomllib.loads(built.to_toml()) == tomllib.loads(HOP)
    assert lasthop.run(built).digest == lasthop.run(written).digest
    assert lasthop.sweep(built).rows.equals(lasthop.sweep(written).rows)
    again = Scenario.load(built.save(tmp_path / "hop.toml"))
    assert again.to_toml() == built.to_toml()
    assert pickle.loads(pickle.dumps(built)) == built


def test_a_scenario_is_written_as_a_person_would() -> None:
    assert hop(sweep=None).to_toml() == HOP.partition("\n[sweep]")[0]


def test_what_was_set_is_written(tmp_path: Path) -> None:
    changed = hop().set({"links.*.delay": "9 ms", "flows.0.tcp.mss": 700}, title="Another")
    written = tomllib.loads(changed.to_toml())
    assert written["title"] == "Another"
    assert written["links"][0]["delay"] == "9 ms"
    assert written["sweep"] == {"seeds": 2, "flows.0.tcp.mss": [700]}
    again = Scenario.load(changed.save(tmp_path / "hop.toml"))
    assert lasthop.sweep(again).rows.equals(lasthop.sweep(changed).rows)
    assert hop().to_toml() == hop().set({}).to_toml()


def test_what_was_loaded_and_not_changed_keeps_its_comments() -> None:
    demo = Scenario.load("demo")
    assert "# one way" in demo.to_toml()
    # Rewritten, it is the same scenario.
    rewritten = Scenario.from_toml(demo.set(duration="5 s").to_toml())
    first = lasthop.run(demo, settings={"duration": "5 s"})
    assert lasthop.run(rewritten).digest == first.digest
    assert rewritten.outline().points == demo.outline().points


@pytest.mark.parametrize("name", library.names())
def test_every_shipped_scenario_survives_being_rewritten(name: str) -> None:
    scenario = Scenario.load(name)
    rewritten = Scenario.from_toml(scenario.set(title="Rewritten").to_toml())
    assert tomllib.loads(rewritten.to_toml()) == {
        **tomllib.loads(scenario.to_toml()),
        "title": "Rewritten",
    }


def test_a_sweep_runs_over_the_given_values() -> None:
    scenario = hop().set({"links.0.forward.errors.bit": 0.0})
    over = {"links.0.forward.errors.bit": np.array([1e-6, 1e-5]), "flows.0.tcp.mss": (536,)}
    rows = lasthop.sweep(scenario, over=over).rows
    assert rows.columns[:3] == [*over, "seed"]
    assert rows["links.0.forward.errors.bit"].to_list() == [1e-6, 1e-6, 1e-5, 1e-5]
    assert rows["seed"].to_list() == [1, 2, 1, 2]
    assert lasthop.sweep(scenario, over={}, seeds=3).rows["seed"].to_list() == [1, 2, 3]
    # What is set later holds.
    assert scenario.over(over).set({"flows.0.tcp.mss": 9}).outline().points == 2


def test_values_of_numpy_and_polars_are_values() -> None:
    scenario = hop().set({"flows.0.tcp.mss": np.int64(700), "links.0.errors.bit": np.float64(0)})
    assert tomllib.loads(scenario.to_toml())["flows"][0]["tcp"]["mss"] == 700
    over = hop().over({"flows.0.tcp.mss": pl.Series([600, 700]), "links.0.rate": ("1 Mbit/s",)})
    assert over.outline().points == 2


@pytest.mark.parametrize(
    ("changed", "key", "said"),
    [
        ({"duraton": "1 s"}, "duraton", "did you mean `duration`?"),
        ({"duration": 2}, "duration", "expected a duration in quotes"),
        ({"nodes": ["server"]}, "links.0.between.1", "there is no such node"),
        ({"links": [link("server", "phone", rate="1 MB", delay="0 s")]}, "links.0.rate", "no rate"),
        (
            {"links": [{"between": ["server", "phone"], "rat": 1, "delay": "0 s"}]},
            "links.0.rat",
            "`rate`",
        ),
        ({"flows": [flow("server", "moon")]}, "flows.0.to", "there is no such node"),
        ({"flows": [flow("server", "phone", tcp={"mms": 1})]}, "flows.0.tcp.mms", "`mss`"),
        (
            {"flows": [flow("server", "phone", start=b"1 s")]},  # type: ignore[arg-type]
            "flows.0.start",
            "not bytes",
        ),
        (
            {"flows": [flow("server", "phone", tcp={1: 2})]},  # type: ignore[dict-item]
            "flows.0.tcp",
            "not int",
        ),
        ({"sweep": {"flows.0.tcp.mss": {500, 600}}}, "sweep.flows.0.tcp.mss", "not set"),
        ({"sweep": {"flows.0.tcp.recovery": ["sakc"]}}, None, "did you mean `sack`?"),
    ],
)
def test_errors_are_raised_when_it_is_built(
    changed: dict[str, object], key: str | None, said: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        hop(**changed)
    assert said in str(caught.value)
    finding = caught.value.findings[0]
    assert set(finding) == {"file", "line", "column", "key", "value", "message", "help"}
    assert key in (None, finding["key"])


def test_all_errors_are_raised_at_once() -> None:
    with pytest.raises(ScenarioError) as caught:
        hop(duration="soon", flows=[flow("server", "moon", start=3)])  # type: ignore[arg-type]
    keys = [finding["key"] for finding in caught.value.findings]
    assert keys == ["duration", "flows.0.to", "flows.0.start"]


@pytest.mark.parametrize(
    ("build", "path", "by_place"),
    [
        (link, ("links", "items", "properties"), {"between"}),
        (flow, ("flows", "items", "properties"), {"from", "to"}),
        (Scenario.__init__, (), set()),
    ],
)
def test_names_and_help_follow_the_schema(
    build: Callable[..., object], path: tuple[str, ...], by_place: set[str]
) -> None:
    keys = json.loads(engine.schema())["properties"]
    for step in path:
        keys = keys[step]
    named = set(keys) - by_place
    assert named <= set(inspect.signature(build).parameters)
    help_text = inspect.getdoc(build) or ""
    assert [name for name in named if f"    {name}: " not in help_text] == []


def test_it_shows_itself() -> None:
    assert repr(hop().set(duration="3 s")) == "<Scenario '<scenario>', 1 overrides>"
    assert hop()._repr_markdown_().startswith("```toml\ntitle ")


plain = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), plain))
def test_whatever_is_written_is_read_back(document: dict[str, Any]) -> None:
    assert tomllib.loads(toml.write(document)) == document
