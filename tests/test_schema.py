"""The JSON Schema of scenario files, held against files by another program."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from fixtures import Command
from jsonschema import Draft202012Validator

from lasthop import _lasthop as engine
from lasthop import library

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = json.loads(engine.schema())
VALIDATOR = Draft202012Validator(SCHEMA)


def scenarios() -> list[Path]:
    """Every scenario file of the repository."""
    found = [path for path in ROOT.glob("**/*.toml") if "[[links]]" in path.read_text()]
    return [path for path in found if not {"build", "target", ".venv"} & set(path.parts)]


def errors(text: str) -> list[str]:
    """The paths of what the schema refuses."""
    return [error.json_path for error in VALIDATOR.iter_errors(tomllib.loads(text))]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_command_prints_it(lasthop: Command) -> None:
    assert json.loads(lasthop("schema").stdout) == SCHEMA


def test_every_scenario_of_the_repository_fits(scenario: Path) -> None:
    files = scenarios()
    assert len(files) >= len(library.names())
    for file in files:
        assert errors(file.read_text()) == [], file
    assert errors(scenario.read_text()) == []


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("title ", "titel ", "$"),
        ('"5 s"', "5", "$.duration"),
        ('"5 s"', '"5 parsec"', "$.duration"),
        ('"5 s"', '"-5 s"', "$.duration"),
        ('"ns2-2001"', '"ns2-2002"', "$.profile"),
        ("a = {}", "a = { x = 1 }", "$.nodes.a"),
        ('["a", "b"]', '["a"]', "$.links[0].between"),
        ("rate    =", "rates =", "$.links[0]"),
        ("1.5 Mbit/s", "1.5 MB", "$.links[0].rate"),
        ("1e-6", "2", "$.links[0].errors.bit"),
        ('to      = "b"', "", "$.flows[0]"),
        ("mss = 536", "mss = -1", "$.flows[0].tcp.mss"),
        ("mss = 536", 'recovery = "sakc"', "$.flows[0].tcp.recovery"),
        ("mss = 536", 'mechanisms = [{ mechanism = "x" }]', "$.flows[0].tcp.mechanisms[0]"),
        ("mss = 536", 'mechanisms = [{ mechanism = "eten", x = 1 }]', "$.flows[0].tcp.mechanisms"),
        ("mss = 536", 'eten = { size = "1 B" }', "$.flows[0].tcp.eten"),
        ('"50 kB"', "true", "$.flows[1].traffic"),
        ("seeds = 3", "seeds = 0", "$.sweep.seeds"),
        ("[0.0, 1e-5]", "[]", "$.sweep['links.0.errors.bit']"),
    ],
)
def test_a_broken_one_does_not(scenario: Path, old: str, new: str, place: str) -> None:
    text = scenario.read_text()
    assert old in text
    found = errors(text.replace(old, new, 1))
    assert any(path.startswith(place) for path in found), found


def test_every_key_says_what_it_means() -> None:
    def undescribed(path: str, schema: dict[str, Any]) -> list[str]:
        keys = schema.get("properties", {})
        silent = [f"{path}.{key}" for key, of in keys.items() if not of.get("description")]
        inner = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *keys.values()]
        if isinstance(named := schema.get("additionalProperties"), dict):
            inner.append(named)
        inner += [schema["items"]] if "items" in schema else []
        return silent + [name for of in inner for name in undescribed(path, of)]

    assert undescribed("", SCHEMA) == []
