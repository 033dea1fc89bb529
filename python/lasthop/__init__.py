"""TCP over the last hop: satellite, radio, mobile; simulated, and the same on every machine.

>>> import lasthop
>>> result = lasthop.run("demo", trace=True)
>>> result.rows["goodput_bps"]
>>> lasthop.sweep("demo").summary("goodput_bps")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop import plots, stats
from lasthop._lasthop import RunError, ScenarioError, TestbedError, __version__
from lasthop.build import flow, link
from lasthop.checks import Checked, check
from lasthop.errors import UserError
from lasthop.events import read_events
from lasthop.lab import run, sweep
from lasthop.results import Health, Result, Sweep
from lasthop.scenario import Outline, Scenario

if TYPE_CHECKING:
    from lasthop.advice import advise
    from lasthop.publications.reproduction import reproduce

__all__ = [
    "Checked",
    "Health",
    "Outline",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "TestbedError",
    "UserError",
    "__version__",
    "advise",
    "check",
    "flow",
    "link",
    "plots",
    "read_events",
    "reproduce",
    "run",
    "stats",
    "sweep",
]


def __getattr__(name: str) -> object:
    """What shows tables in a terminal is imported when it is first used."""
    if name == "advise":
        from lasthop.advice import advise

        return advise
    if name == "reproduce":
        from lasthop.publications.reproduction import reproduce

        return reproduce
    raise AttributeError(f"module 'lasthop' has no attribute {name!r}")
