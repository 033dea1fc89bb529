"""What is changed in the scenarios of every table: factors, alone and in pairs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasthop.publications.obanaik2003.fairness import bed, policies, simulation
from lasthop.publications.obanaik2003.fairness.policies import (
    ALTERNATIVES,
    CANIT,
    CR,
    IBK,
    POLICIES,
    PROPAGATION,
)
from lasthop.publications.obanaik2003.fairness.simulation import (
    ALL,
    LTN,
    OTHERS,
    PUBLICATION,
    SLOW,
)
from lasthop.publications.obanaik2003.fairness.window import CALIBRATED, LIMITED, NO_LIMIT
from lasthop.publications.study.published import Number, Section
from lasthop.publications.study.runs import Case, Cell
from lasthop.scenario import Scenario

if TYPE_CHECKING:
    pass

SIMULATION, TESTBED = "simulation", "test-bed"
AS_IS = "as is"
#: Of every combination; of what is as it is, and of the combination that is to meet a number.
SCREENED, SEEDS = 2, 20
#: The runs that found a combination, and others that it is held against.
FOUND, FRESH = "screening", "fresh"
#: Packets of the last-hop router's buffer in the scenarios as they are.
BUFFER = 3

# --- What is changed -------------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """One thing that is other than in the scenario."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Of what a policy does: rtt, cap, k, c.
    increase: Mapping[str, Any] = field(default_factory=dict)
    #: The policies that it makes a difference to.
    only: Sequence[str] = POLICIES
    #: Packets more in the last hop's buffer.
    buffer: int = 0
    #: Of those that say the same thing only one at a time.
    about: str = ""


def _all(key: str, value: Any) -> Mapping[str, Any]:
    return {f"flows.*.tcp.{key}": value}


_CAP = Factor("cap 1", increase={"cap": 1.0}, only=(CR, CANIT))
FACTORS: Mapping[str, Sequence[Factor]] = {
    SIMULATION: (
        *(
            Factor(name, _all("recovery", value), about="recovery")
            for name, value in (("Reno", "reno"), ("NewReno", "newreno"), ("SACK", "sack"))
            if value != simulation.RECOVERY
        ),
        Factor("propagation", increase={"rtt": PROPAGATION}, only=(CR, CANIT)),
        _CAP,
        Factor("K = 2", increase={"k": 2}, only=(IBK,)),
        Factor("RTO min. 1 s", _all("rto.minimum", "1 s")),
        Factor("windows of 20", _all("receive_window", "20 segments")),
        Factor("short paths", {f"links.{link}.delay": "100 ms" for link in (2, 3, 4)}),
        Factor("shared buffer 30", {"links.6.queue": "30 packets"}),
        Factor("last buffer + 1", buffer=1),
    ),
    TESTBED: (
        Factor("Reno", _all("recovery", "reno")),
        Factor("c = 100", increase={"c": 100.0}, only=(CR,)),
        _CAP,
        Factor("K = 4", increase={"k": 4}, only=(IBK,)),
        Factor("RTO min. 200 ms", _all("rto.minimum", "200 ms")),
        Factor("no delayed ACKs", _all("delayed_ack", "off")),
        Factor("296 bytes for all", _all("mss", 256)),
        Factor("shared buffer 20", {"links.3.queue": "20 packets"}, about="shared buffer"),
        Factor("shared buffer 100", {"links.3.queue": "100 packets"}, about="shared buffer"),
        Factor("last buffer - 1", buffer=-1),
    ),
}
Combination = tuple[Factor, ...]


def combinations(path: str, policy: str) -> Iterator[Combination]:
    """Nothing changed, each factor that touches a policy, and each pair of them."""
    factors = [factor for factor in FACTORS[path] if policy in factor.only]
    yield ()
    yield from ((factor,) for factor in factors)
    for a, b in itertools.combinations(factors, 2):
        if not a.about or a.about != b.about:
            yield a, b


def name(combination: Combination) -> str:
    """As the key `factor` of a case has it."""
    return " and ".join(factor.name for factor in combination) or AS_IS


# --- What it is changed of -------------------------------------------------------------------


@functools.cache
def _section(name: str) -> Section:
    """Read once: every combination is held against it."""
    return Section.of(PUBLICATION, name)


@dataclass(frozen=True)
class Base:
    """A cell of the thesis' tables."""

    path: str
    link: str
    policy: str
    #: Where its numbers are in published.toml, and the table of the thesis.
    section: str
    table: str
    enabled: str = ALL
    buffer: int = BUFFER
    window: int = NO_LIMIT

    @property
    def case(self) -> Case:
        """Of its cells."""
        return Case(
            path=self.path,
            link=self.link,
            policy=self.policy,
            enabled=self.enabled,
            buffer_packets=self.buffer,
            receive_window_bytes=self.window,
        )

    @property
    def metrics(self) -> tuple[str, str]:
        """Goodput and losses, as the tables have them."""
        if self.path == SIMULATION:
            return "goodput_bps", "losses_packets"
        return "payload_bps", bed.SHARE

    def numbers(self) -> Iterator[Number]:
        """What is published of it."""
        where = self.case.but(path=CALIBRATED)
        for metric in self.metrics:
            number = _section(self.section).number(where, metric)
            if number is not None and not number.misprint:
                yield number

    def cell(self, combination: Combination, seeds: int) -> Cell:
        """With some factors changed."""
        settings: dict[str, Any] = {}
        increase: dict[str, Any] = {}
        for factor in combination:
            settings |= factor.settings
            increase |= factor.increase
        size = self.buffer + sum(factor.buffer for factor in combination)
        case = Case(**self.case, factor=name(combination), runs=FOUND)
        built = self._simulated if self.path == SIMULATION else self._bed
        own = built(increase, settings, size)
        return Cell(case, own.scenario, own.settings, seeds, 1)

    def _simulated(
        self, increase: Mapping[str, Any], settings: Mapping[str, Any], size: int
    ) -> Cell:
        rtt = increase.get("rtt", policies.default_rtt(self.policy))
        of = {key: value for key, value in increase.items() if key != "rtt"}
        value = policies.increase(self.policy, rtt, **of)
        window = {"flows.2.tcp.receive_window": self.window} if self.window != NO_LIMIT else {}
        return simulation.cell(
            self.link,
            self.policy,
            rtt,
            enabled=self.enabled,
            settings={
                **simulation.with_policy(value, self.policy, self.enabled),
                **settings,
                "links.9.queue": f"{size} packets",
                **window,
            },
        )

    def _bed(self, increase: Mapping[str, Any], settings: Mapping[str, Any], size: int) -> Cell:
        c = increase.get("c", bed.CONSTANTS[0]) if self.policy == CR else bed.NO_CONSTANT
        return bed.cell(
            self.link,
            bed.Variant(self.policy, c),
            enabled=self.enabled,
            buffer=size,
            window=self.window,
            settings=settings,
            k=increase.get("k", bed.K),
            cap=increase.get("cap"),
        )


def bases() -> Sequence[Base]:
    """Every cell of tables 3.1 to 3.13."""
    found = []
    for at, link in enumerate((SLOW, LTN)):

        def table(first: int, at: int = at) -> str:
            return f"table 3.{first + at}"

        for policy in POLICIES:
            found.append(Base(SIMULATION, link, policy, f"fairness/{link}", table(1)))
            one = Base(TESTBED, link, policy, "fairness/testbed", "table 3.7", window=bed.WINDOW)
            found.append(one)
            found += [
                replace(one, section="fairness/testbed-buffers", table=table(8), buffer=size)
                for size in bed.BUFFERS[1:]
            ]
            found.append(
                replace(
                    one,
                    section="fairness/testbed-window",
                    table=table(10),
                    window=bed.SMALL_WINDOW,
                )
            )
        for policy in ALTERNATIVES:
            one = Base(SIMULATION, link, policy, "fairness/disabled", table(3), enabled=OTHERS)
            found.append(one)
            found.append(
                replace(one, section="fairness/window", table=table(5), enabled=ALL, window=LIMITED)
            )
            found.append(
                Base(
                    TESTBED,
                    link,
                    policy,
                    "fairness/testbed-disabled",
                    table(12),
                    enabled=OTHERS,
                    window=bed.WINDOW,
                )
            )
    return found


def cells() -> list[Cell]:
    """Every cell of the tables with every combination that touches it."""
    return [
        base.cell(combination, SCREENED if combination else SEEDS)
        for base in bases()
        for combination in combinations(base.path, base.policy)
    ]


def look(scenario: Scenario, seed: int) -> Mapping[str, float | None]:
    """Either topology's."""
    of = bed.observe() if Path(scenario.name).stem == "testbed" else simulation.observe()
    return of(scenario, seed)
