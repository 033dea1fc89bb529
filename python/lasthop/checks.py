"""What is wrong with scenario files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from lasthop import _lasthop as engine
from lasthop.errors import UserError
from lasthop.scenario import Outline, Scenario, setting


@dataclass(frozen=True)
class Checked:
    """A file that was looked at."""

    file: str
    #: None if it cannot be run.
    outline: Outline | None
    #: Everything that is wrong with it: for people, and for machines.
    report: str = ""
    findings: tuple[dict[str, Any], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As `lasthop check --json` prints it."""
        outline = asdict(self.outline) if self.outline else None
        return {"file": self.file, "scenario": outline, "problems": list(self.findings)}


def check(file: str, settings: Iterable[str] = ()) -> Checked:
    """Reads a file, and looks at every point of its sweep."""
    try:
        scenario = Scenario.load(file).set(dict(setting(text) for text in settings))
        return Checked(file, scenario.outline())
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
