"""TCP over the last hop: satellite, radio, mobile; simulated, and the same on every machine.

>>> import lasthop
>>> result = lasthop.run("demo", trace=True)
>>> result.rows["goodput_bps"]
>>> lasthop.sweep("demo").summary("goodput_bps")
"""

from lasthop import plots, stats
from lasthop._lasthop import RunError, ScenarioError, TestbedError, __version__
from lasthop.build import flow, link
from lasthop.errors import UserError
from lasthop.events import read_events
from lasthop.lab import run, sweep
from lasthop.results import Health, Result, Sweep
from lasthop.scenario import Outline, Scenario

__all__ = [
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
    "flow",
    "link",
    "plots",
    "read_events",
    "run",
    "stats",
    "sweep",
]
