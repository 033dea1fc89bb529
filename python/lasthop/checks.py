"""What is wrong with scenario files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lasthop import _lasthop as engine
from lasthop.errors import UserError
from lasthop.scenario import Outline, Scenario


@dataclass(frozen=True)
class Checked:
    """A scenario that was looked at. As a condition it is true if it can be run."""

    file: str
    #: None if it cannot be run.
    outline: Outline | None
    #: Everything that is wrong with it: for people, and for machines.
    report: str = ""
    findings: tuple[dict[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return self.outline is not None

    def as_dict(self) -> dict[str, Any]:
        """As `lasthop check --json` prints it."""
        outline = asdict(self.outline) if self.outline else None
        return {"file": self.file, "scenario": outline, "problems": list(self.findings)}


def check(
    scenario: str | Path | Scenario, *, settings: Mapping[str, object] | None = None
) -> Checked:
    """Looks at every point of a scenario's sweep, and reports everything that is wrong.

    `settings` override keys of the file, such as {"links.0.rate": "10 Mbit/s"}.
    """
    file = scenario.name if isinstance(scenario, Scenario) else str(scenario)
    try:
        loaded = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
        return Checked(file, loaded.set(settings).outline())
    except engine.ScenarioError as error:
        return Checked(file, None, str(error), tuple(error.findings))
    except UserError as error:
        problem = dict.fromkeys(("file", "line", "column", "key", "value", "message", "help"))
        problem |= {"file": file, "message": str(error)}
        return Checked(file, None, str(error), (problem,))


def words(outline: Outline) -> str:
    """How many runs a scenario asks for."""
    if outline.runs == 1:
        return "one run"
    return f"{outline.runs} runs: {outline.points} points, {outline.seeds} seeds"
