"""The cases of the report's simulations, and the runs of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any

from lasthop import units
from lasthop.stats import CONFIDENCE, Estimate, mean_interval, ratio_interval, single_ratio_range

#: The profile that the report's simulator is reproduced in.
PERIOD = "ns2-2001"
MODERN = "modern"

RECOVERIES = ("reno", "sack")
NONE = "none"
#: How a sender is told of corruption, as its `tcp.eten`. To have another in simulations 1 and 2,
#: add it here, with a name and a look (figures.LOOKS).
ETEN: Mapping[str, Mapping[str, str]] = {
    NONE: {"report": "none"},
    "forward": {"report": "forward", "transport": "message"},
    "forward-piggyback": {"report": "forward", "transport": "piggyback"},
    "forward-marked": {"report": "forward", "transport": "marked"},
    "backward": {"report": "backward"},
    "oracle": {"report": "oracle"},
    "cumulative": {"report": "cumulative", "strategy": "published", "fields": "free"},
    "cumulative-loss-ratio": {"report": "cumulative", "strategy": "loss-ratio", "fields": "free"},
    "cumulative-adaptive": {"report": "cumulative", "strategy": "adaptive", "fields": "free"},
    "cumulative-real": {"report": "cumulative", "strategy": "published", "fields": "real"},
}
#: Who is told of every packet that was corrupted, from what can be built to the upper bound.
NOTIFIED = tuple(of for of in ETEN if ETEN[of]["report"] not in (NONE, "cumulative"))
#: Of those, who is told by way of the receiver, and what the report simulated.
FORWARD = tuple(of for of in NOTIFIED if ETEN[of]["report"] == "forward")
SIMULATED = ("backward", "oracle")
#: Which way errors strike.
ERRORS: Mapping[str, str] = {
    "forward": "errors on data only",
    "both": "errors in both directions",
}
DIRECTIONS = tuple(ERRORS)

#: What sizes the window.
AIMD, WESTWOOD, WESTWOOD_PLUS = "aimd", "westwood-2001", "westwood+"
#: Who else is on the path.
NOBODY, UDP, TCP = "none", "udp", "tcp"

NAMES: Mapping[str, str] = {
    "westwood-2001": "Westwood",
    "westwood+": "Westwood+",
    "udp": "UDP",
    "tcp": "Tahoe",
    "reno": "Reno",
    "sack": "SACK",
    "none": "no ETEN",
    "forward": "Forward",
    "forward-piggyback": "Forward, piggy-backed",
    "forward-marked": "Forward, marked",
    "backward": "Backward",
    "oracle": "Oracle",
    "cumulative": "CETEN",
    "cumulative-loss-ratio": "CETEN by loss ratio",
    "cumulative-adaptive": "CETEN-A",
    "cumulative-real": "CETEN, fields real",
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
    window: str = AIMD
    hops: int = 1
    #: Flows each way over the middle hop, and of what kind.
    cross_traffic: str = NOBODY
    competitors: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The case as results.json has it: what was varied, without what was as ever."""
        standard = {of.name: of.default for of in fields(self) if of.default is not MISSING}
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in standard or value != standard[name]
        }

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
        return Variant(self.recovery, self.eten, self.window).name

    def __str__(self) -> str:
        errors = "no errors"
        if self.bit_error_rate:
            errors = f"{units.scientific(self.bit_error_rate)} {ERRORS[self.errors]}"
        return f"{self.variant} at {self.network.name}, {errors}"


@dataclass(frozen=True)
class Variant:
    """Who sends. To have another in a simulation, add it to the simulation's list."""

    recovery: str
    eten: str = NONE
    window: str = AIMD

    @property
    def settings(self) -> Mapping[str, str]:
        """What makes it, as keys of the flow's `tcp`."""
        told = {f"eten.{key}": value for key, value in ETEN[self.eten].items()}
        return {"recovery": self.recovery, "congestion": self.window, **told}

    @property
    def keys(self) -> Mapping[str, str]:
        """What it is in a case."""
        return {"recovery": self.recovery, "eten": self.eten, "window": self.window}

    @property
    def name(self) -> str:
        """As in "SACK + Backward", "Reno", "Westwood"."""
        name = NAMES[self.recovery]
        if self.window != AIMD:
            # Westwood was built on Reno.
            name = NAMES[self.window] + ("" if self.recovery == "reno" else f" ({name})")
        return name if self.eten == NONE else f"{name} + {NAMES[self.eten]}"


@dataclass(frozen=True)
class Besides:
    """What else is known of a case's runs, in the order of the seeds."""

    #: Goodput of all competitors that go the same way, together, in bits per second.
    others: Sequence[float]
    #: Expiries of the sender's retransmission timer, and its other reductions of the window.
    timeouts: Sequence[float]
    reductions: Sequence[float]


def variants(etens: Iterable[str]) -> tuple[Variant, ...]:
    """SACK and Reno, told in each of these ways."""
    return tuple(Variant(recovery, eten) for eten in etens for recovery in reversed(RECOVERIES))


class Runs:
    """The goodput of every run, in bits per second, by case and in the order of the seeds."""

    def __init__(
        self,
        goodputs: Mapping[Case, Sequence[float]],
        besides: Mapping[Case, Besides] | None = None,
    ) -> None:
        self._goodputs = {case: list(values) for case, values in goodputs.items()}
        self._besides = dict(besides or {})

    def __iter__(self) -> Iterator[Case]:
        return iter(self._goodputs)

    def __contains__(self, case: Case) -> bool:
        return case in self._goodputs

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
        return cls(
            {case: g for part in parts for case, g in part._goodputs.items()},
            {case: b for part in parts for case, b in part._besides.items()},
        )

    def over(self, networks: Sequence[Network]) -> Runs:
        """Those over some networks."""
        kept = {case: g for case, g in self._goodputs.items() if case.network in networks}
        return Runs(kept, {case: b for case, b in self._besides.items() if case in kept})

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
        return ratio_interval(*self._pairs(case, to), confidence)

    def is_alive(self, case: Case) -> bool:
        """Whether anything arrived at all, so that ratios have a meaning."""
        return any(self._goodputs[case])

    def _pairs(self, case: Case, to: Case) -> tuple[list[float], list[float]]:
        """As many runs of each as both have."""
        pairs = list(zip(self._goodputs[case], self._goodputs[to], strict=False))
        return [a for a, _ in pairs], [b for _, b in pairs]

    def share(self, case: Case) -> Estimate:
        """The share of what the middle link delivers in the same direction."""
        own, others = self._goodputs[case], self._besides[case].others
        return ratio_interval(own, [a + b for a, b in zip(own, others, strict=True)])

    def load(self, case: Case) -> Estimate:
        """What the middle link delivers to competitors, of what it could."""
        return mean_interval([other / case.rate_bps for other in self._besides[case].others])

    def timeouts(self, case: Case) -> Estimate:
        """How often the sender's retransmission timer expires in a run."""
        return mean_interval(self._besides[case].timeouts)

    def reductions(self, case: Case) -> Estimate:
        """How often the sender reduces its window in a run, timeouts apart."""
        return mean_interval(self._besides[case].reductions)

    def gain(self, case: Case, confidence: float = CONFIDENCE) -> Estimate:
        """The goodput with notification over the goodput without."""
        return self.ratio(case, case.but(eten=NONE), confidence)

    def single_ratio(self, case: Case, to: Case) -> tuple[float, float]:
        """Where the ratio of one more pair of runs would fall."""
        return single_ratio_range(*self._pairs(case, to))

    def single_gain(self, case: Case) -> tuple[float, float]:
        """Where the gain of one more pair of runs would fall."""
        return self.single_ratio(case, case.but(eten=NONE))


def extreme(values: Iterable[tuple[Case, Estimate]], *, largest: bool) -> tuple[Case, Estimate]:
    """The case whose value is largest or smallest."""
    return (max if largest else min)(values, key=lambda pair: pair[1].value)
