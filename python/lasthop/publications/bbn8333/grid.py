"""The cells of a simulation."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lasthop.publications.bbn8333.cases import ETEN, PERIOD, TCP, UDP
from lasthop.publications.bbn8333.factors import AS_IS, Factor
from lasthop.publications.study.runs import Case, Cell
from lasthop.scenario import Scenario

#: The scenario file of a path, by hops and cross traffic.
_FILES: Mapping[tuple[int, str | None], str] = {
    (1, None): "bbn8333/sim1",
    (3, None): "bbn8333/sim2",
    (3, UDP): "bbn8333/sim3",
    (3, TCP): "bbn8333/sim4",
}
#: Decades of the bit error rate.
_ERROR_RATES = (1.56e-8, 1.56e-7, 1.56e-6, 1.56e-5)
#: The report has no point with fewer errors expected, in the time of a run and at line rate.
_FEWEST_ERRORS, _DURATION_S = 25, 120
_TCP = "flows.0.tcp"

QUICK_SEEDS = 3
#: Of the figures' networks and of all without cross traffic; with it elsewhere; and at 100 Mb/s.
SEEDS, CROSS_SEEDS, FAST_CROSS_SEEDS = 30, 10, 3
_FAST = 100e6


@functools.cache
def _flows(file: str) -> Sequence[Mapping[str, Any]]:
    flows: list[dict[str, Any]] = tomllib.loads(Scenario.load(file).source)["flows"]
    return flows


@dataclass(frozen=True)
class Block:
    """A set of cells: some senders over some networks, with the same cross traffic."""

    senders: tuple[Case, ...]
    networks: tuple[Case, ...]
    hops: int = 3
    cross_traffic: str | None = None
    #: Flows of it each way.
    competitors: int = 0
    directions: tuple[str, ...] = ("both",)
    profile: str = PERIOD
    #: The scenario file of its path, if it is not that of the path's hops and cross traffic.
    file: str = ""
    #: The weight of the newest packet in what nodes estimate, if it is not the file's.
    weight: float | None = None
    #: Whether the report has no such senders: fewer seeds do.
    beyond: bool = False

    def but_beyond(self, senders: tuple[Case, ...]) -> Block:
        """The same cells with senders that the report does not have."""
        return replace(self, senders=senders, beyond=True)

    def with_profile(self, profile: str) -> Block:
        """The same cells in another profile."""
        return replace(self, profile=profile)

    @property
    def seeds(self) -> int:
        """The number of runs of a cell whose network only the appendix has."""
        if not self.competitors:
            return SEEDS
        return FAST_CROSS_SEEDS if self.networks[0]["rate_bps"] >= _FAST else CROSS_SEEDS

    def drawn(self) -> list[Cell]:
        """The cells of networks that the report's figures show."""
        quick = 0 if self.beyond and self.competitors else QUICK_SEEDS
        return self.cells(self.seeds if self.beyond else SEEDS, quick)

    def cells(self, seeds: int, quick: int = 0, factor: Factor = AS_IS) -> list[Cell]:
        """All cells, with a factor changed if one is given."""
        return [
            self._cell(Case(**sender, **network), rate, errors, factor, seeds, quick)
            for network in self.networks
            for rate in self._rates(network)
            for errors in self.directions
            for sender in self.senders
        ]

    def _rates(self, network: Case) -> Iterator[float]:
        yield 0.0
        for rate in _ERROR_RATES:
            # With cross traffic, what errors do at the lowest rate is lost in its noise.
            if self.competitors and rate == _ERROR_RATES[0]:
                continue
            if network["rate_bps"] * _DURATION_S * rate >= _FEWEST_ERRORS:
                yield rate

    def _cell(
        self, of: Case, rate: float, errors: str, factor: Factor, seeds: int, quick: int
    ) -> Cell:
        case = Case(
            recovery=of["recovery"],
            eten=of["eten"],
            rate_bps=of["rate_bps"],
            one_way_delay_s=of["one_way_delay_s"],
            bit_error_rate=rate,
            errors=errors,
            profile=self.profile,
        ).but(
            window=of.get("window"),
            hops=self.hops if self.hops > 1 else None,
            cross_traffic=self.cross_traffic,
            competitors=self.competitors or None,
        )
        file = self.file or _FILES[factor.hops or self.hops, self.cross_traffic]
        flows = _flows(file)[: 1 + 2 * self.competitors]
        cross = range(1, len(flows))
        link = "*" if factor.link is None else factor.link
        recovery = case["recovery"] if "window" not in case else factor.recovery or case["recovery"]
        back = rate if errors == "both" and not factor.clean_return else 0.0
        settings: dict[str, Any] = {
            "profile": self.profile,
            "flows": flows,
            "links.*.errors.bit": 0.0,
            **({} if self.weight is None else {"ceten.a": self.weight}),
            **factor.settings,
            **{f"flows.{n}.{key}": value for n in cross for key, value in factor.cross.items()},
            "links.*.rate": f"{case['rate_bps'] / 1e6:g} Mbit/s",
            "links.*.delay": f"{case['one_way_delay_s'] * 1e3:g} ms",
            f"links.{link}.forward.errors.bit": rate,
            f"links.{link}.backward.errors.bit": back,
            f"{_TCP}.recovery": recovery,
            **({f"{_TCP}.congestion": case["window"]} if "window" in case else {}),
            **{f"{_TCP}.eten.{key}": value for key, value in ETEN[case["eten"]].items()},
        }
        if self.cross_traffic == UDP:
            udp = f"{case['rate_bps'] / 4e6:g} Mbit/s"
            settings |= {f"flows.{n}.traffic.udp.rate": udp for n in cross}
        return Cell(case, file, settings, seeds, quick)
