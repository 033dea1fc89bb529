"""The published experiments that can be reproduced.

A publication's module knows its grid, its statements and its figures; the engine knows none of
them. To add one: its scenario and published.toml, a module with `reproduce`, a line below.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from lasthop.errors import unknown
from lasthop.publications.rows import Outcome


class Reproduce(Protocol):
    """Runs an experiment and fills a folder with results.json and report.html.

    Gives back what the page of all experiments says of it, where there is to be one.
    """

    def __call__(
        self, folder: Path, *, seeds: int | None, quick: bool, threads: int
    ) -> Outcome | None: ...


@dataclass(frozen=True)
class Experiment:
    """One published experiment."""

    #: Publication and experiment, as in "bbn8333/sim1", "bbn8333/beyond/burst".
    id: str
    title: str
    module: str
    #: Other figures that its runs are for, as in "koutsianas2007/fig4.3": names of it, too.
    also: tuple[str, ...] = ()

    @property
    def publication(self) -> str:
        """As in "bbn8333"; what goes beyond it is apart: "bbn8333/beyond"."""
        return self.id.rpartition("/")[0]

    def load(self) -> Reproduce:
        """What reproduces it; imported here, since it needs heavy libraries."""
        return cast(Reproduce, importlib.import_module(self.module).reproduce)


def _bbn8333(simulation: str, title: str) -> Experiment:
    return Experiment(f"bbn8333/{simulation}", title, f"lasthop.publications.bbn8333.{simulation}")


def _beyond(question: str, title: str) -> Experiment:
    folder = "lasthop.publications.bbn8333.beyond"
    module = question.replace("-", "_")
    return Experiment(f"bbn8333/beyond/{question}", title, f"{folder}.{module}")


def _fairness(part: str, title: str) -> Experiment:
    module = part.replace("-", "_")
    return Experiment(
        f"obanaik2003/fairness/{part}", title, f"lasthop.publications.obanaik2003.{module}"
    )


def _koutsianas2007(name: str, title: str, *figures: str) -> Experiment:
    module = name.replace(".", "_").replace("-", "_")
    return Experiment(
        f"koutsianas2007/{name}",
        title,
        f"lasthop.publications.koutsianas2007.{module}",
        tuple(f"koutsianas2007/{figure}" for figure in figures),
    )


EXPERIMENTS = (
    _bbn8333("sim1", "error notification (ETEN) over one lossy hop"),
    _bbn8333("sim2", "ETEN over three lossy hops"),
    _bbn8333("sim3", "ETEN beside UDP cross traffic"),
    _bbn8333("sim4", "ETEN beside other TCP connections"),
    _bbn8333("sim5", "ETEN and TCP Westwood"),
    _bbn8333("sim6", "ETEN and TCP Westwood beside UDP cross traffic"),
    _bbn8333("sim7", "cumulative ETEN beside UDP cross traffic"),
    _bbn8333("sim8", "cumulative ETEN beside other TCP connections"),
    _beyond("burst", "ETEN and errors in bursts"),
    _beyond("fade", "ETEN and fading channels"),
    _beyond("short", "ETEN and short flows"),
    _beyond("web", "ETEN and web traffic"),
    _beyond("setup", "ETEN and connection set-up"),
    _beyond("mistake", "the penalty of mistaking congestion for corruption"),
    _beyond("alpha", "the weight of a new sample in cumulative ETEN"),
    _beyond("forms", "forms of what cumulative ETEN tells, and traceback messages"),
    _beyond("fairness", "the fairness of cumulative ETEN to plain TCP"),
    _beyond("ecn", "ECN beside cumulative ETEN"),
    _beyond("flood", "a blind flood of forged notices"),
    _beyond("forged", "notices forged on the path"),
    _beyond("liar-forward", "a receiver whose echoes lie"),
    _beyond("liar-cumulative", "a receiver that makes up its path"),
    _beyond("coding", "erasure coding from end to end"),
    _beyond("per-packet-code", "error-correcting codes within packets"),
    _beyond("tunnel", "notices of corruption through an IPsec tunnel"),
    _fairness("slow", "fairness policies over a slow link"),
    _fairness("ltn", "fairness policies over a long thin network"),
    _fairness("disabled", "the policy off where the last hop is slow"),
    _fairness("window", "fairness policies and a limited receive window"),
    _fairness("buffers", "fairness policies and the last-hop router's buffer"),
    _fairness("testbed", "fairness policies on the test-bed's path"),
    _fairness("testbed-buffers", "buffers on the test-bed's path"),
    _fairness("testbed-window", "a small receive window on the test-bed's path"),
    _fairness("testbed-disabled", "the policy off, on the test-bed's path"),
    _fairness("factors", "what moves the numbers of fairness policies that differ"),
    _fairness("fast", "fairness policies where all last hops are fast"),
    _fairness("auto", "a fairness policy that knows when its last hop is the bottleneck"),
    _koutsianas2007("fig4.2", "RLCI over a disconnection of eight seconds", "fig4.3"),
    _koutsianas2007("fig4.4", "RLCI over disconnections of any length", "fig4.5"),
    _koutsianas2007("steady-state", "RLCI where the connection is not stalled, part by part"),
    _koutsianas2007("fig4.7", "RLCI with several connections", "fig4.8", "fig4.9"),
    _koutsianas2007("shared-probe", "RLCI with one probe for all connections of a host"),
    _koutsianas2007("after", "what connections that resume with RLCI do to others"),
    _koutsianas2007("freeze", "RLCI beside Freeze-TCP"),
    _koutsianas2007("attack", "forged changes of connectivity"),
)


def find(id: str) -> list[Experiment]:
    """The experiment of that name, or all of the publication of that name."""
    found = [of for of in EXPERIMENTS if id in (of.id, of.publication, *of.also)]
    if found:
        return found
    names = dict.fromkeys(of.publication for of in EXPERIMENTS)
    figures = [name for of in EXPERIMENTS for name in (of.id, *of.also)]
    raise unknown("experiment", id, [*figures, *names])
