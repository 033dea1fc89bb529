"""Builds the book's page "What if?" into a folder: the lab as WebAssembly, and presets.

python docs/what_if.py FOLDER [-- FLAGS FOR CARGO]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lasthop import hops, publications, units
from lasthop.scenario import Scenario

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "docs" / "what-if"
PRESETS = STATIC / "presets.toml"
TARGET = "wasm32-unknown-unknown"
_SIZES = {"packets": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "KiB": 1024.0}
#: Bytes.
_PACKET = 1500


def preset(said: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of presets.toml as the page reads it."""
    file = said["file"]
    scenario = Scenario.load(file)
    # What its sweep varies is in the settings of the variants.
    sweep: dict[str, Any] = {"sweep": {}} if "sweep" in scenario.document() else {}
    settings = {**sweep, **said.get("settings", {})}
    variants = {
        name: _settings(file, of["experiment"], {**said["case"], **of["case"]})
        for name, of in said.get("variants", {}).items()
    }
    first: Mapping[str, Any] = next(iter(variants.values()), {})
    at_first = scenario.set({**settings, **first}).document()
    a, b = said["first"]
    return {
        "id": file,
        "group": "Published experiments" if variants else "Paths, with every remedy",
        "title": said["title"],
        "about": said["about"],
        "file": f"{file}.toml",
        "text": scenario.source,
        "settings": list(settings.items()),
        "flow": 0,
        "name": scenario.outline().flows[0],
        "places": None if variants else _places(at_first),
        "link": said.get("link"),
        "controls": [_control(control, at_first) for control in said["controls"]],
        "variants": [{"name": name, "settings": list(of.items())} for name, of in variants.items()]
        or None,
        "a": a,
        "b": b,
    }


def _settings(file: str, experiment: str, case: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the only cell of an experiment whose case has these values, in its first run."""
    (found,) = publications.find(experiment)
    cells = [cell for cell in found.load().cells() if case.items() <= cell.case.items()]
    if len(cells) != 1 or cells[0].scenario != file:
        raise ValueError(f"{experiment}: {len(cells)} cells have {case}, expected one of {file}")
    (cell,) = cells
    return {**cell.settings, **(cell.drawn(0) if cell.drawn else {})}


def _places(said: dict[str, Any]) -> dict[str, Sequence[str]]:
    """The nodes of the places of remedies (`lasthop.variants`); the hop is the last link."""
    way = hops.way(said, 0)
    if way is None:
        raise ValueError("remedies need a flow with one way")
    return {
        "peer": way[:1],
        "before hop": way[-2:-1],
        "attachments": way[-2:-1],
        "host": way[-1:],
    }


def _control(control: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """A control with its value."""
    keys = control.get("keys", [])
    if "value" in control:
        return {**control, "keys": keys}
    value: Any = said
    for part in keys[0].replace("*", "0").split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return {**control, "value": _number(control["kind"], value)}


def _number(kind: str, written: Any) -> float:
    """A quantity as a slider has it: bits per second, seconds, bytes or packets."""
    if isinstance(written, int | float):
        return written
    number, _, unit = str(written).partition(" ")
    if unit not in _SIZES:
        return units.parse(written)
    size = float(number) * _SIZES[unit]
    # Queues are in packets.
    return round(size / _PACKET) if kind == "queue" and unit != "packets" else size


def module(flags: Sequence[str]) -> Path:
    """Compiles the lab for browsers."""
    cargo = ["cargo", "build", "--profile", "web", "--target", TARGET, "-p", "lasthop-web"]
    subprocess.run([*cargo, *flags], cwd=ROOT, check=True)
    return ROOT / "target" / TARGET / "web" / "lasthop_web.wasm"


def main() -> None:
    """Builds the page."""
    parser = argparse.ArgumentParser(description='Builds the page "What if?".')
    parser.add_argument("folder", type=Path, help="where the page goes")
    parser.add_argument("flags", nargs="*", help="for cargo")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(module(given.flags), given.folder / "lab.wasm")
    for file in STATIC.iterdir():
        if file != PRESETS:
            shutil.copyfile(file, given.folder / file.name)
    said = tomllib.loads(PRESETS.read_text("utf-8"))["preset"]
    presets = json.dumps([preset(of) for of in said], indent=1)
    (given.folder / "presets.json").write_text(presets, "utf-8")


if __name__ == "__main__":
    main()
