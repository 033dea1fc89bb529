"""The cases of the report's simulations, and the runs of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from lasthop import units
from lasthop.stats import CONFIDENCE, Estimate, mean_interval, ratio_interval, single_ratio_range

#: The profile that the report's simulator is reproduced in.
PERIOD = "ns2-2001"
MODERN = "modern"

RECOVERIES = ("reno", "sack")
NONE = "none"
#: From what can be built to the upper bound.
NOTIFIED = ("backward", "oracle")
ETENS = (NONE, *NOTIFIED)
DIRECTIONS = ("forward", "both")

NAMES: Mapping[str, str] = {
    "reno": "Reno",
    "sack": "SACK",
    "none": "no ETEN",
    "backward": "Backward",
    "oracle": "Oracle",
    "forward": "errors on data only",
    "both": "errors in both directions",
}


@dataclass(frozen=True)
class Network:
    """One hop: its rate in bits per second and its one-way delay in seconds."""

    rate_bps: float
    one_way_delay_s: float

    @property
    def name(self) -> str:
        """As in "100 Mb/s, 320 ms"."""
        return f"{units.line_rate(self.rate_bps)}, {units.duration(self.one_way_delay_s)}"

    @property
    def kind(self) -> str:
        """As in "long fat network", for those that the report calls so."""
        return _KINDS.get(self, "network")


#: The three that the report's figures show.
LFN = Network(100e6, 0.32)
SFN = Network(100e6, 0.01)
LTN = Network(1.5e6, 0.32)
_KINDS = {LFN: "long fat network", SFN: "short fat network", LTN: "long thin network"}


@dataclass(frozen=True)
class Case:
    """What is varied. The fields are the keys of a row's `case` in results.json."""

    recovery: str
    eten: str
    rate_bps: float
    one_way_delay_s: float
    bit_error_rate: float
    errors: str
    profile: str

    def as_dict(self) -> dict[str, Any]:
        """The case as results.json has it."""
        return asdict(self)

    @property
    def network(self) -> Network:
        """The hop."""
        return Network(self.rate_bps, self.one_way_delay_s)

    def but(self, **changes: Any) -> Case:
        """The same case with something else in it."""
        return replace(self, **changes)

    @property
    def variant(self) -> str:
        """Who sends: "SACK + Backward", "Reno"."""
        name = NAMES[self.recovery]
        return name if self.eten == NONE else f"{name} + {NAMES[self.eten]}"

    def __str__(self) -> str:
        errors = "no errors"
        if self.bit_error_rate:
            errors = f"{units.scientific(self.bit_error_rate)} {NAMES[self.errors]}"
        return f"{self.variant} at {self.network.name}, {errors}"


class Runs:
    """The goodput of every run, in bits per second, by case and in the order of the seeds."""

    def __init__(self, goodputs: Mapping[Case, Sequence[float]]) -> None:
        self._goodputs = {case: list(values) for case, values in goodputs.items()}

    def __iter__(self) -> Iterator[Case]:
        return iter(self._goodputs)

    def __len__(self) -> int:
        """How many there are; those without errors, which count for either direction, once."""
        return sum(
            len(values)
            for case, values in self._goodputs.items()
            if case.bit_error_rate or case.errors == "both"
        )

    @property
    def seeds(self) -> int:
        """Runs a case."""
        return max((len(values) for values in self._goodputs.values()), default=0)

    @classmethod
    def joined(cls, *parts: Runs) -> Runs:
        """The runs of several, of different cases."""
        return cls({case: g for part in parts for case, g in part._goodputs.items()})

    def cases(self, **values: Any) -> list[Case]:
        """The cases with these values; a tuple or list names several, a Network its two."""
        network = values.pop("network", None)
        if network is not None:
            values |= asdict(network)
        wanted = {
            name: value if isinstance(value, tuple | list) else (value,)
            for name, value in values.items()
        }
        return [
            case
            for case in self._goodputs
            if all(getattr(case, name) in among for name, among in wanted.items())
        ]

    def networks(self) -> list[Network]:
        """Every hop, by rate and delay."""
        every = {case.network for case in self._goodputs}
        return sorted(every, key=lambda network: (network.rate_bps, network.one_way_delay_s))

    def error_rates(self, network: Network | None = None) -> list[float]:
        """Every bit error rate (of one hop), rising."""
        return sorted(
            {
                case.bit_error_rate
                for case in self._goodputs
                if network is None or case.network == network
            }
        )

    def goodput(self, case: Case) -> Estimate:
        """Mean goodput in bits per second."""
        return mean_interval(self._goodputs[case])

    def ratio(self, case: Case, to: Case, confidence: float = CONFIDENCE) -> Estimate:
        """The goodput of one case over that of another, paired by seed."""
        return ratio_interval(self._goodputs[case], self._goodputs[to], confidence)

    def gain(self, case: Case, confidence: float = CONFIDENCE) -> Estimate:
        """The goodput with notification over the goodput without."""
        return self.ratio(case, case.but(eten=NONE), confidence)

    def single_ratio(self, case: Case, to: Case) -> tuple[float, float]:
        """Where the ratio of one more pair of runs would fall."""
        return single_ratio_range(self._goodputs[case], self._goodputs[to])

    def single_gain(self, case: Case) -> tuple[float, float]:
        """Where the gain of one more pair of runs would fall."""
        return self.single_ratio(case, case.but(eten=NONE))


def extreme(values: Iterable[tuple[Case, Estimate]], *, largest: bool) -> tuple[Case, Estimate]:
    """The case whose value is largest or smallest."""
    return (max if largest else min)(values, key=lambda pair: pair[1].value)
