"""The cases of the report's simulations, and what is measured of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from lasthop import units
from lasthop.publications.study.runs import Case, Runs, Values, apart, column
from lasthop.publications.study.study import Measure
from lasthop.stats import Estimate, mean_interval, ratio_interval

if TYPE_CHECKING:
    import polars as pl

#: The profile that the report's simulator is reproduced in.
PERIOD = "ns2-2001"
MODERN = "modern"

RECOVERIES = ("reno", "sack")
NONE = "none"
#: How a sender is notified of corruption, as its `tcp.eten`. To have another in simulations 1 and
#: 2, add it here, with a name and a look (figures.LOOKS).
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
#: ETEN with a notice for every corrupted packet, from practical forms to the upper bound.
NOTIFIED = tuple(of for of in ETEN if ETEN[of]["report"] not in (NONE, "cumulative"))
#: Of those, notices by way of the receiver, and those that the report simulated.
FORWARD = tuple(of for of in NOTIFIED if ETEN[of]["report"] == "forward")
SIMULATED = ("backward", "oracle")
#: The directions that have errors.
ERRORS: Mapping[str, str] = {
    "forward": "errors on data only",
    "both": "errors in both directions",
}
DIRECTIONS = tuple(ERRORS)
HIGH, MIDDLE, LOW, LOWEST = 1.56e-5, 1.56e-6, 1.56e-7, 1.56e-8

#: Congestion control; a case that does not name it has AIMD.
AIMD, WESTWOOD, WESTWOOD_PLUS = "aimd", "westwood-2001", "westwood+"
#: Cross traffic; a case that does not name it has none.
UDP, TCP = "udp", "tcp"
ALONE: Mapping[str, None] = {"cross_traffic": None, "competitors": None}

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


# --- Parts of a case -------------------------------------------------------------------------


def network(rate_bps: float, one_way_delay_s: float) -> Case:
    """A hop, as a part of a case."""
    return Case(rate_bps=rate_bps, one_way_delay_s=one_way_delay_s)


#: The three that the report's figures show.
LFN, SFN, LTN = network(100e6, 0.32), network(100e6, 0.01), network(1.5e6, 0.32)
_KINDS = {LFN: "long fat network", SFN: "short fat network", LTN: "long thin network"}


def network_of(case: Case) -> Case:
    """The hop of a case."""
    return network(case["rate_bps"], case["one_way_delay_s"])


def network_name(case: Case) -> str:
    """The hop of a case, as in "100 Mb/s, 320 ms"."""
    return f"{units.line_rate(case['rate_bps'])}, {units.duration(case['one_way_delay_s'])}"


def kind(case: Case) -> str:
    """As in "long fat network", for those that the report calls so."""
    return _KINDS.get(network_of(case), "network")


def sender(recovery: str, eten: str = NONE, window: str | None = None) -> Case:
    """A sender, as a part of a case. For another sender, extend a simulation's list."""
    return Case(recovery=recovery, eten=eten).but(window=window)


SACK, BACKWARD, ORACLE = sender("sack"), sender("sack", "backward"), sender("sack", "oracle")
RENO, RENO_BACKWARD = sender("reno"), sender("reno", "backward")


def senders(etens: Iterable[str]) -> tuple[Case, ...]:
    """SACK and Reno with each of these kinds of ETEN."""
    return tuple(sender(recovery, eten) for eten in etens for recovery in reversed(RECOVERIES))


def sender_name(case: Case) -> str:
    """The sender of a case, as in "SACK + Backward", "Reno", "Westwood"."""
    # Westwood was built on Reno.
    name = NAMES[case.get("window", case["recovery"])]
    return name if case["eten"] == NONE else f"{name} + {NAMES[case['eten']]}"


def at(bit_error_rate: float) -> str:
    """A bit error rate as text."""
    return units.scientific(bit_error_rate)


def briefly(case: Case) -> str:
    """The sender and the hop."""
    return f"{sender_name(case)}, {network_name(case)}"


def where(case: Case) -> str:
    """As in "1.5 Mb/s, 10 ms, 1.56e-6, 4 UDP flows"."""
    words = [
        network_name(case),
        at(case["bit_error_rate"]) if case["bit_error_rate"] else "no errors",
    ]
    if "competitors" in case:
        words.append(f"{case['competitors']} {NAMES[case['cross_traffic']]} flows")
    return ", ".join(words)


def networks(runs: Runs) -> list[Case]:
    """Every hop, by rate and delay."""
    found = {(case["rate_bps"], case["one_way_delay_s"]) for case in runs}
    return [network(*of) for of in sorted(found)]


def error_rates(cases: Iterable[Case]) -> list[float]:
    """Every bit error rate, rising."""
    return sorted({case["bit_error_rate"] for case in cases})


# --- What is measured ------------------------------------------------------------------------

GOODPUT = "goodput_bps"
#: The flow that the report is about, and where competitors start that go the same way.
_FLOW, _ACROSS = "ftp", "left"


def collect(rows: pl.DataFrame) -> Values:
    """Of every run the transfer's goodput in bit/s, the expiries of its retransmission timer, its
    other reductions of the window, and the goodput of all competitors that go the same way."""
    return {
        GOODPUT: column(GOODPUT, _FLOW)(rows),
        "timeouts": column("timeouts", _FLOW)(rows),
        "reductions": column("reductions", _FLOW)(rows),
        "others": [float(run.filter(run["from"] == _ACROSS)[GOODPUT].sum()) for run in apart(rows)],
    }


def plain(case: Case) -> Case:
    """The same case without notification."""
    return case.but(eten=NONE)


def is_alive(runs: Runs, *cases: Case) -> bool:
    """Whether any data arrived, so that ratios are defined."""
    return all(any(runs.values(case, GOODPUT)) for case in cases)


def goodput_of(runs: Runs, case: Case) -> Estimate:
    """Mean goodput in bits per second."""
    return mean_interval(runs.values(case, GOODPUT))


def ratio_of(runs: Runs, case: Case, to: Case) -> Estimate:
    """The goodput of one case over that of another, paired by seed."""
    found = runs.ratio(case, to, GOODPUT)
    if found is None:
        raise ValueError(f"nothing arrived: {case} or {to}")
    return found


def gain_of(runs: Runs, case: Case) -> Estimate:
    """The goodput with notification over the goodput without."""
    return ratio_of(runs, case, plain(case))


def share_of(runs: Runs, case: Case) -> Estimate:
    """The share of what the middle link delivers in the same direction."""
    own, others = runs.values(case, GOODPUT), runs.values(case, "others")
    return ratio_interval(own, [a + b for a, b in zip(own, others, strict=True)])


def load_of(runs: Runs, case: Case) -> Estimate:
    """The share of the middle link's rate that competitors get."""
    return mean_interval([other / case["rate_bps"] for other in runs.values(case, "others")])


def gain_measure(metric: str, words: str) -> Measure:
    """The mean with notification over the mean without."""

    def of(runs: Runs, case: Case) -> Estimate | None:
        return None if case == plain(case) else runs.ratio(case, plain(case), metric)

    def single(runs: Runs, case: Case) -> tuple[float, float] | None:
        return None if case == plain(case) else runs.single_ratio(case, plain(case), metric)

    return Measure("ratio", "1", words, of, single=single)


Pairs = Sequence[tuple[Case, Estimate]]


def extreme(values: Iterable[tuple[Case, Estimate]], *, largest: bool) -> tuple[Case, Estimate]:
    """The case whose value is largest or smallest."""
    return (max if largest else min)(values, key=lambda pair: pair[1].value)
