"""What is run of a simulation, as sweeps of its scenario file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lasthop import lab, units
from lasthop.publications.bbn8333.cases import (
    AIMD,
    NOBODY,
    PERIOD,
    TCP,
    UDP,
    Besides,
    Case,
    Network,
    Runs,
    Variant,
)
from lasthop.publications.bbn8333.variations import Variation
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
    #: Whether nothing is corrupted on the way back, whatever the direction is said to be.
    clean_return: bool = False
    profile: str = PERIOD
    #: The scenario file of its path, if it is not that of the path's hops and cross traffic.
    file: str = ""
    #: The weight of the newest packet in what nodes estimate, if it is not the file's.
    weight: float | None = None
    #: Whether the report has no such variants: fewer seeds do.
    beyond: bool = False
    seeds: int = 30

    def points(self) -> Iterator[tuple[Network, float, str]]:
        """Networks, bit error rates and directions; no errors count for either direction."""
        directions = self.directions[:1] if self.clean_return else self.directions
        for network in self.networks:
            yield network, 0.0, "both"
            for rate in _ERROR_RATES:
                # With cross traffic, what errors do at the lowest rate is lost in its noise.
                if self.competitors and rate == _ERROR_RATES[0]:
                    continue
                if network.rate_bps * _DURATION_S * rate >= _FEWEST_ERRORS:
                    yield from ((network, rate, direction) for direction in directions)

    @property
    def _errors(self) -> tuple[str, str]:
        """The keys of the bit error rates, forward and backward."""
        ways = ("forward", "backward")
        forward, backward = (f"links.{self.links}.{way}.errors.bit" for way in ways)
        return forward, backward

    def scenario(self, variation: Variation | None = None) -> Scenario:
        """Its sweep."""
        file = Scenario.load(self.file or _FILES[self.hops, self.cross_traffic])
        flows = tomllib.loads(file.source)["flows"][: 1 + 2 * self.competitors]
        points = list(self.points())
        forward, backward = self._errors
        columns: dict[str, list[Any]] = {
            _RATE: [f"{network.rate_bps / 1e6:g} Mbit/s" for network, _, _ in points],
            _DELAY: [f"{network.one_way_delay_s * 1e3:g} ms" for network, _, _ in points],
            forward: [rate for _, rate, _ in points],
            backward: [
                rate if errors == "both" and not self.clean_return else 0.0
                for _, rate, errors in points
            ],
        }
        settings: dict[str, Any] = {"links.*.errors.bit": 0.0}
        settings |= {} if self.weight is None else {"ceten.a": self.weight}
        settings |= variation.settings if variation else {}
        for index in range(1, len(flows)):
            if self.cross_traffic == UDP:
                columns[f"flows.{index}.traffic.udp.rate"] = [
                    f"{network.rate_bps / 4e6:g} Mbit/s" for network, _, _ in points
                ]
            for key, value in (variation.cross if variation else {}).items():
                settings[f"flows.{index}.{key}"] = value
        senders = {key: [who[key] for who in self._senders] for key in self._senders[0]}
        sweep = {"seeds": self.seeds, "zip": [columns, senders]}
        return file.set({"profile": self.profile, "flows": flows, **settings, "sweep": sweep})

    @property
    def _senders(self) -> Sequence[Mapping[str, str]]:
        """The settings of every variant, all with the same keys: what one does without is as
        with another."""
        every = [of.settings for of in self.variants]
        filled: dict[str, str] = {}
        for settings in every:
            filled = {**settings, **filled}
        senders = [{f"{_TCP}.{k}": of.get(k, filled[k]) for k in filled} for of in every]
        if len({tuple(who.values()) for who in senders}) < len(senders):
            raise ValueError(f"nothing tells these apart: {self.variants}")
        return senders

    def but_beyond(self, variants: tuple[Variant, ...]) -> Block:
        """The same with variants that the report does not have."""
        return replace(self, variants=variants, beyond=True)

    def varied(self, variation: Variation) -> Block:
        """The same with one factor that differs, as far as that is a matter of the grid."""
        recovery = variation.recovery
        return replace(
            self,
            hops=variation.hops or self.hops,
            links=self.links if variation.link is None else str(variation.link),
            clean_return=variation.clean_return,
            variants=tuple(
                replace(variant, recovery=recovery)
                if recovery and variant.window != AIMD
                else variant
                for variant in self.variants
            ),
        )

    def runs(self, sweep: Sweep) -> Runs:
        """What came of its sweep, by case."""
        settings = (tuple(who.values()) for who in self._senders)
        senders = dict(zip(settings, self.variants, strict=True))
        points = (_RATE, _DELAY, *self._errors)
        columns = (*points, *self._senders[0])
        found: dict[Case, list[tuple[float, ...]]] = {}
        rows = sweep.rows.sort(SEED, maintain_order=True)
        ours, same_way = rows["flow"] == FLOW, rows["from"] == _ACROSS
        told = {
            _GOODPUT: rows[_GOODPUT] * ours,
            "others": rows[_GOODPUT] * same_way,
            # UDP has neither.
            "timeouts": rows["timeouts"] * ours,
            "reductions": rows["reductions"] * ours,
        }
        rows = (
            rows.with_columns(**told)
            .select(*columns, SEED, *told)
            .group_by(*columns, SEED, maintain_order=True)
            .sum()
            .drop(SEED)
        )
        for rate, delay, forward, backward, *rest in rows.iter_rows():
            variant = senders[tuple(rest[: -len(told)])]
            for errors in self._directions(forward, backward):
                case = Case(
                    variant.recovery,
                    variant.eten,
                    units.parse(rate),
                    units.parse(delay),
                    forward,
                    errors,
                    self.profile,
                    variant.window,
                    self.hops,
                    self.cross_traffic if self.competitors else NOBODY,
                    self.competitors,
                )
                found.setdefault(case, []).append(tuple(rest[-len(told) :]))
        by_case = {case: [*zip(*values, strict=True)] for case, values in found.items()}
        return Runs(
            {case: goodputs for case, (goodputs, *_) in by_case.items()},
            {case: Besides(*besides) for case, (_, *besides) in by_case.items()},
        )

    def _directions(self, forward: float, backward: float) -> Sequence[str]:
        """Which directions a run counts for."""
        if not forward or self.clean_return:
            return self.directions
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
