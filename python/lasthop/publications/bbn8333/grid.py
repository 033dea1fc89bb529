"""What is run of a simulation, as sweeps of its scenario file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lasthop import lab, units
from lasthop.publications.bbn8333.cases import (
    AIMD,
    DIRECTIONS,
    NOBODY,
    PERIOD,
    TCP,
    UDP,
    Case,
    Network,
    Runs,
    Variant,
)
from lasthop.publications.bbn8333.variations import ERRORS, Variation
from lasthop.results import SEED, Sweep
from lasthop.scenario import Scenario

#: The flow that the report is about.
FLOW = "ftp"
#: Where competitors start that cross the middle link as it does.
_ACROSS = "left"
#: The scenario file of a path, by hops and cross traffic.
_FILES: Mapping[tuple[int, str], str] = {
    (1, NOBODY): "bbn8333/sim1",
    (3, NOBODY): "bbn8333/sim2",
    (3, UDP): "bbn8333/sim3",
    (3, TCP): "bbn8333/sim4",
}
#: Decades of the bit error rate.
_ERROR_RATES = (1.56e-8, 1.56e-7, 1.56e-6, 1.56e-5)
#: The report has no point with fewer errors expected, in the time of a run and at line rate.
_FEWEST_ERRORS, _DURATION_S = 25, 120

_RATE, _DELAY = "links.*.rate", "links.*.delay"
_TCP = "flows.0.tcp"
_RECOVERY, _ETEN = f"{_TCP}.recovery", f"{_TCP}.eten.report"
_WINDOW = f"{_TCP}.congestion"
_GOODPUT = "goodput_bps"


@dataclass(frozen=True)
class Block:
    """Some variants over some networks, beside the same cross traffic: one sweep."""

    variants: tuple[Variant, ...]
    networks: tuple[Network, ...]
    hops: int = 3
    cross_traffic: str = NOBODY
    #: Flows of it each way.
    competitors: int = 0
    directions: tuple[str, ...] = ("both",)
    #: The links with errors.
    links: str = "*"
    seeds: int = 30

    def points(self) -> Iterator[tuple[Network, float, str]]:
        """Networks, bit error rates and directions; no errors count for either direction."""
        for network in self.networks:
            yield network, 0.0, "both"
            for rate in _ERROR_RATES:
                # With cross traffic, what errors do at the lowest rate is lost in its noise.
                if self.competitors and rate == _ERROR_RATES[0]:
                    continue
                if network.rate_bps * _DURATION_S * rate >= _FEWEST_ERRORS:
                    yield from ((network, rate, direction) for direction in self.directions)

    @property
    def _errors(self) -> tuple[str, str]:
        """The keys of the bit error rates, forward and backward."""
        ways = ("forward", "backward")
        forward, backward = (f"links.{self.links}.{way}.errors.bit" for way in ways)
        return forward, backward

    def scenario(self, variation: Variation | None = None) -> Scenario:
        """Its sweep."""
        file = Scenario.load(_FILES[self.hops, self.cross_traffic])
        flows = tomllib.loads(file.source)["flows"][: 1 + 2 * self.competitors]
        points = list(self.points())
        forward, backward = self._errors
        columns: dict[str, list[Any]] = {
            _RATE: [f"{network.rate_bps / 1e6:g} Mbit/s" for network, _, _ in points],
            _DELAY: [f"{network.one_way_delay_s * 1e3:g} ms" for network, _, _ in points],
            forward: [rate for _, rate, _ in points],
            backward: [rate if errors == "both" else 0.0 for _, rate, errors in points],
        }
        settings: dict[str, Any] = {"links.*.errors.bit": 0.0}
        settings |= variation.settings if variation else {}
        for index in range(1, len(flows)):
            if self.cross_traffic == UDP:
                columns[f"flows.{index}.traffic.udp.rate"] = [
                    f"{network.rate_bps / 4e6:g} Mbit/s" for network, _, _ in points
                ]
            for key, value in (variation.cross if variation else {}).items():
                settings[f"flows.{index}.{key}"] = value
        senders = {
            _RECOVERY: [variant.recovery for variant in self.variants],
            _WINDOW: [variant.window for variant in self.variants],
            _ETEN: [variant.eten for variant in self.variants],
        }
        sweep = {"seeds": self.seeds, "zip": [columns, senders]}
        return file.set({"profile": PERIOD, "flows": flows, **settings, "sweep": sweep})

    def varied(self, variation: Variation) -> Block:
        """The same with one factor that differs, as far as that is a matter of the grid."""
        recovery = variation.recovery
        return replace(
            self,
            hops=variation.hops or self.hops,
            links=self.links if variation.link is None else str(variation.link),
            directions=self.directions if variation.errors == ERRORS else (variation.errors,),
            variants=tuple(
                replace(variant, recovery=recovery)
                if recovery and variant.window != AIMD
                else variant
                for variant in self.variants
            ),
        )

    def runs(self, sweep: Sweep) -> Runs:
        """The goodputs of its sweep, by case."""
        columns = (_RATE, _DELAY, *self._errors, _RECOVERY, _WINDOW, _ETEN)
        found: dict[Case, list[float]] = {}
        others: dict[Case, list[float]] = {}
        rows = sweep.rows.sort(SEED, maintain_order=True)
        ours, same_way = rows["flow"] == FLOW, rows["from"] == _ACROSS
        rows = (
            rows.with_columns(own=rows[_GOODPUT] * ours, others=rows[_GOODPUT] * same_way)
            .select(*columns, SEED, "own", "others")
            .group_by(*columns, SEED, maintain_order=True)
            .sum()
            .drop(SEED)
        )
        for rate, delay, forward, backward, recovery, window, eten, own, other in rows.iter_rows():
            for errors in _directions(forward, backward, self.directions):
                case = Case(
                    recovery,
                    eten,
                    units.parse(rate),
                    units.parse(delay),
                    forward,
                    errors,
                    PERIOD,
                    window,
                    self.hops,
                    self.cross_traffic if self.competitors else NOBODY,
                    self.competitors,
                )
                found.setdefault(case, []).append(own)
                others.setdefault(case, []).append(other)
        return Runs(found, others)


def _directions(forward: float, backward: float, directions: Sequence[str]) -> Sequence[str]:
    if not forward:
        return directions if len(directions) < len(DIRECTIONS) else DIRECTIONS
    return ("both",) if backward else ("forward",)


#: What was run already: several simulations have cells in common.
_KEPT: dict[str, Runs] = {}


def measure(
    blocks: Sequence[tuple[Block, Variation | None]],
    threads: int,
    progress: lab.Progress | None = None,
) -> list[Runs]:
    """The runs of blocks, each as it is or with one factor that differs."""
    wanted = [
        (of, of.scenario(variation))
        for block, variation in blocks
        for of in (block.varied(variation) if variation else block,)
    ]
    new = [(block, scenario) for block, scenario in wanted if scenario.sha256 not in _KEPT]
    sweeps = lab.sweeps([scenario for _, scenario in new], threads=threads, progress=progress)
    for (block, scenario), sweep in zip(new, sweeps, strict=True):
        _KEPT[scenario.sha256] = block.runs(sweep)
    return [_KEPT[scenario.sha256] for _, scenario in wanted]
