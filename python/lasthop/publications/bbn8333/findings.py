"""Every statement of simulation 1, held against the runs.

Nothing here is concluded beforehand: each test says from the runs at hand whether the statement
holds and quotes the numbers that decide. How far a ratio may lie from a published one follows from
the report's own design: it made one run a point, so the published ratio is one draw, and it agrees
if single pairs of runs would give it (95 % prediction interval), give or take the rounding of a
figure read off a plot.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lasthop import units
from lasthop.publications.bbn8333.cases import (
    DIRECTIONS,
    LFN,
    LTN,
    NAMES,
    NONE,
    NOTIFIED,
    PERIOD,
    RECOVERIES,
    SFN,
    Case,
    Runs,
    extreme,
)
from lasthop.publications.bbn8333.variations import Moved, moved
from lasthop.publications.rows import Finding
from lasthop.stats import CONFIDENCE, Estimate

#: How exactly somebody reads a ratio off a plot and words it.
ROUNDING = 0.05
#: "Relatively small", "close to", "alike": less than this apart.
SMALL = 0.10
#: "No help": less than this.
NOTHING = 0.02
#: "Worse": more than this.
NEGLIGIBLE = 0.01
#: "Markedly": at least this.
MARKED = 0.25

#: With fewer, intervals may be too wide for a statement to hold.
FEW_SEEDS = 10

HIGH = 1.56e-5
MIDDLE = 1.56e-6
LOW = 1.56e-7
LOWEST = 1.56e-8


@dataclass(frozen=True)
class Evidence:
    """What the statements are held against."""

    #: The whole grid in the report's profile.
    runs: Runs
    #: The runs of every variation, by its id.
    varied: Mapping[str, Runs]


@dataclass(frozen=True)
class Verdict:
    """Whether a statement holds, and the numbers that decide."""

    agrees: bool
    why: str
    measured: Estimate | None = None
    case: Case | None = None


def findings(published: Mapping[str, Any], evidence: Evidence) -> list[Finding]:
    """All published statements, each with its verdict."""
    found = []
    for ratio in published["ratio"]:
        case = Case(**ratio["case"], profile=PERIOD)
        found.append(_finding(ratio, _ratio(ratio, case, evidence), evidence))
    for statement in published["statement"]:
        test = _TESTS[statement["id"]]
        found.append(_finding(statement, test(evidence), evidence))
    return found


def _finding(statement: Mapping[str, Any], verdict: Verdict, evidence: Evidence) -> Finding:
    case = {"profile": PERIOD} if verdict.case is None else verdict.case.as_dict()
    return Finding(
        publication="bbn8333",
        experiment="sim1",
        id=statement["id"],
        claim=statement["claim"],
        where=statement["where"],
        case=case,
        agrees=verdict.agrees,
        why=verdict.why,
        runs=evidence.runs.seeds,
        published=statement.get("value"),
        measured=verdict.measured,
    )


# --- Ratios ----------------------------------------------------------------------------------


def _ratio(ratio: Mapping[str, Any], case: Case, evidence: Evidence) -> Verdict:
    """A published number: does one of our single pairs of runs give it?"""
    value, word = float(ratio["value"]), str(ratio["word"])
    gain, single = evidence.runs.gain(case), evidence.runs.single_gain(case)
    agrees = reaches(word, value, single)
    words = "" if word == "is" else f"{word} "
    # A bound that holds needs no reason; how far above it the outcome lies still does.
    away = not within(value, single)
    why = [f"Measured {interval(gain)}, published {words}{value:g}; {_singles(single)}."]
    if away:
        why.append(explain(value, moved(case, case.but(eten=NONE), evidence.runs, evidence.varied)))
    return Verdict(agrees, " ".join(why), gain, case)


def within(value: float, single: tuple[float, float]) -> bool:
    """Whether single pairs of runs give this ratio, as exactly as it was read off a plot."""
    lo, hi = single
    return lo * (1 - ROUNDING) <= value <= hi * (1 + ROUNDING)


def reaches(word: str, value: float, single: tuple[float, float]) -> bool:
    """Whether single pairs of runs bear out "about 3.5", "above 3", "almost 4"."""
    if word == "above":
        return single[1] * (1 + ROUNDING) > value
    return within(value, single)


def explain(value: float, moves: Sequence[Moved]) -> str:
    """Which single factors move a ratio towards the published one, and which do not matter."""
    baseline = moves[0].baseline.value
    upwards = value > baseline
    clear = [move for move in moves if move.clear]
    # Nearest first: past the published value is no nearer than as far before it.
    towards = sorted(
        (move for move in clear if (move.factor > 1) == upwards),
        key=lambda move: max(move.ratio.value / value, value / move.ratio.value),
    )
    away = [move for move in clear if (move.factor > 1) != upwards]
    idle = [move for move in moves if not move.clear]
    parts = []
    if towards:
        best = towards[0]
        past = (best.ratio.value > value) == upwards
        if within(value, best.single):
            reached = "which agrees"
        elif past:
            reached = "past the published value, which lies between the two"
        else:
            reached = "nearer, but not there"
        parts.append(
            f"With {best.variation.name} and all else equal it is {interval(best.ratio)},"
            f" {reached}."
        )
        if len(towards) > 1:
            parts.append(f"Also towards it: {_listed(towards[1:])}.")
    else:
        parts.append("No single factor tried moves it towards the published value.")
    if away:
        parts.append(f"Away from it: {_listed(away)}.")
    if idle:
        parts.append(f"No clear effect: {', '.join(move.variation.name for move in idle)}.")
    return " ".join(parts)


def _listed(moves: Sequence[Moved]) -> str:
    return ", ".join(f"{m.variation.name} ({number(m.ratio.value)})" for m in moves)


def _singles(single: tuple[float, float]) -> str:
    return f"single pairs of runs fall between {number(single[0])} and {number(single[1])}"


# --- Statements ------------------------------------------------------------------------------


def _stock_degrades(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    left = [
        (case, runs.ratio(case, case.but(bit_error_rate=0.0)))
        for case in runs.cases(eten=NONE, bit_error_rate=HIGH, errors="both")
    ]
    least, most = extreme(left, largest=False), extreme(left, largest=True)
    return Verdict(
        all(share.hi < 1 - MARKED for _, share in left),
        f"At {_at(HIGH)} stock TCP keeps {percent(least[1].value)} ({_briefly(least[0])}) to"
        f" {percent(most[1].value)} ({_briefly(most[0])}) of its goodput without errors.",
        most[1],
        most[0],
    )


def _oracle_at_high_error_rates(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    by_recovery = {
        recovery: [
            (case.bit_error_rate, runs.gain(case))
            for case in runs.cases(network=LFN, recovery=recovery, eten="oracle", errors="both")
        ]
        for recovery in RECOVERIES
    }
    agrees = all(
        all(gain.lo > 1 + MARKED for rate, gain in gains if rate == HIGH)
        and all(gain.lo > 1 for rate, gain in gains if rate == MIDDLE)
        and all(
            gain.value < other.value
            for rate, gain in gains
            for other_rate, other in gains
            if rate < MIDDLE <= other_rate
        )
        for gains in by_recovery.values()
    )
    told = "; ".join(
        f"{NAMES[recovery]} "
        + ", ".join(f"{number(gain.value)} at {_at(rate)}" for rate, gain in gains if rate)
        for recovery, gains in by_recovery.items()
    )
    return Verdict(agrees, f"Oracle's gain at {LFN.name}: {told}.")


def _small_impact(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    gains = [
        (case, runs.gain(case))
        for case in runs.cases(network=LFN, bit_error_rate=LOW, errors="both", eten=NOTIFIED)
    ]
    case, gain = extreme(gains, largest=True)
    at_high = runs.gain(case.but(bit_error_rate=HIGH))
    return Verdict(
        gain.value < 1 + SMALL,
        f"The largest gain there is {interval(gain)} ({case.variant}); at {_at(HIGH)} it is"
        f" {interval(at_high)}. Small is taken as less than {percent(SMALL)}.",
        gain,
        case,
    )


def _no_help(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    gains = [
        (case, runs.gain(case))
        for case in runs.cases(eten=NOTIFIED)
        if case.bit_error_rate <= LOWEST
    ]
    case, gain = extreme(gains, largest=True)
    return Verdict(
        gain.value < 1 + NOTHING,
        f"At {_at(LOWEST)} and without errors the largest gain of all networks is {interval(gain)}"
        f" ({_briefly(case)}). No help is taken as less than {percent(NOTHING)}.",
        gain,
        case,
    )


def _others_gain_more(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    there = {
        case: runs.gain(case)
        for case in runs.cases(network=LFN, bit_error_rate=HIGH, errors="both", eten=NOTIFIED)
    }
    more = []
    for case, gain in there.items():
        others = runs.cases(
            recovery=case.recovery, eten=case.eten, bit_error_rate=HIGH, errors="both"
        )
        best = extreme(((other, runs.gain(other)) for other in others), largest=True)
        more.append((gain, best))
    told = "; ".join(
        f"{best.variant} {number(gain.value)} there and up to {number(most.value)}"
        f" ({best.network.name})"
        for gain, (best, most) in more
    )
    return Verdict(
        all(most.lo > gain.hi * (1 + MARKED) for gain, (_, most) in more),
        f"At {_at(HIGH)}: {told}.",
    )


def _backward_share(runs: Runs, case: Case) -> Estimate:
    """Backward's goodput over Oracle's."""
    return runs.ratio(case.but(eten="backward"), case.but(eten="oracle"))


def _near_oracle(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    shares = [
        (case, _backward_share(runs, case))
        for case in runs.cases(network=SFN, recovery="sack", eten="backward", errors="both")
        if case.bit_error_rate <= LOW
    ]
    case, share = extreme(shares, largest=False)
    return Verdict(
        share.value > 1 - SMALL,
        f"Up to {_at(LOW)} Backward has at least {percent(share.value)} of Oracle's goodput"
        f" (at {_at(case.bit_error_rate)}).",
        share,
        case,
    )


def _loses_notices(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    rates = (LOW, MIDDLE, HIGH)
    both, forward = (
        [
            _backward_share(runs, case)
            for rate in rates
            for case in runs.cases(
                network=SFN,
                recovery="sack",
                eten="backward",
                errors=errors,
                bit_error_rate=rate,
            )
        ]
        for errors in ("both", "forward")
    )
    falls = all(later.value < earlier.value for earlier, later in itertools.pairwise(both))
    costs = forward[-1].lo > both[-1].hi
    shares = ", ".join(
        f"{percent(share.value)} at {_at(rate)}" for rate, share in zip(rates, both, strict=True)
    )
    told = (
        f"Backward's share of Oracle's goodput at {SFN.name} with SACK: {shares}. With an"
        " error-free way back, where no notice is lost, it is"
        f" {percent(forward[-1].value)} at {_at(HIGH)}"
    )
    told += ": lost notices cost the rest." if costs else "; that does not explain it."
    case = Case("sack", "backward", SFN.rate_bps, SFN.one_way_delay_s, HIGH, "both", PERIOD)
    return Verdict(falls and costs, told, both[-1], case)


def _sack_over_reno(evidence: Evidence, eten: str) -> Verdict:
    runs = evidence.runs
    both, forward = (
        [
            (case, runs.ratio(case, case.but(recovery="reno")))
            for case in runs.cases(recovery="sack", eten=eten, bit_error_rate=HIGH, errors=errors)
        ]
        for errors in ("both", "forward")
    )
    better = [ratio for _, ratio in both if ratio.lo > 1]
    worse = [ratio for _, ratio in both if ratio.hi < 1 - NEGLIGIBLE]
    least, most = extreme(both, largest=False), extreme(both, largest=True)
    least_forward = extreme(forward, largest=False)[1].value
    most_forward = extreme(forward, largest=True)[1].value
    return Verdict(
        not worse and 2 * len(better) > len(both),
        f"At {_at(HIGH)} in both directions SACK has {number(least[1].value)}"
        f" ({least[0].network.name}) to {number(most[1].value)} times ({most[0].network.name}) the"
        f" goodput of Reno: clearly more in {len(better)} of {len(both)} networks, less in"
        f" {len(worse)}. With errors on data only it has {number(least_forward)} to"
        f" {number(most_forward)} times.",
        most[1],
        most[0],
    )


def _delay_dominates(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    apart, sfn_apart = [], []
    for case in runs.cases(network=LTN, errors="both"):
        fat = case.but(rate_bps=LFN.rate_bps)
        apart.append((case, runs.ratio(fat, case)))
        short = case.but(rate_bps=SFN.rate_bps, one_way_delay_s=SFN.one_way_delay_s)
        sfn_apart.append((case, runs.ratio(short, case)))
    case, most = max(apart, key=lambda pair: max(pair[1].value, 1 / pair[1].value))
    short_least = extreme(sfn_apart, largest=False)[1]
    return Verdict(
        1 - SMALL < most.value < 1 + SMALL,
        f"From {LTN.name} to {LFN.name} the goodput changes at most by a factor of"
        f" {interval(most)} ({case.variant}, {_at(case.bit_error_rate)}), though the rate is"
        f" {LFN.rate_bps / LTN.rate_bps:.0f} times higher; from there to {SFN.name} at least by"
        f" {number(short_least.value)}.",
        most,
        case,
    )


def _gains(
    runs: Runs, rates: Sequence[float], errors: Sequence[str]
) -> list[tuple[Case, Estimate]]:
    return [
        (case, runs.gain(case))
        for case in runs.cases(eten=NOTIFIED, bit_error_rate=rates, errors=errors)
    ]


def _improves(evidence: Evidence) -> Verdict:
    gains = _gains(evidence.runs, (HIGH,), DIRECTIONS)
    least, most = extreme(gains, largest=False), extreme(gains, largest=True)
    middle = _gains(evidence.runs, (MIDDLE,), DIRECTIONS)
    better = sum(gain.lo > 1 for _, gain in middle)
    return Verdict(
        all(gain.lo > 1 for _, gain in gains),
        f"At {_at(HIGH)} the gain is {interval(least[1])} ({_briefly(least[0])}) to"
        f" {interval(most[1])} ({_briefly(most[0])}); at {_at(MIDDLE)} it is clear in {better} of"
        f" {len(middle)} cells.",
        least[1],
        least[0],
    )


def _everywhere(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    told, agrees = [], True
    for recovery in RECOVERIES:
        gains = [
            (case, gain)
            for case, gain in _gains(runs, (HIGH,), ("both",))
            if case.recovery == recovery
        ]
        least, most = extreme(gains, largest=False), extreme(gains, largest=True)
        agrees = agrees and least[1].lo > 1 + MARKED
        told.append(
            f"{NAMES[recovery]} {number(least[1].value)} ({NAMES[least[0].eten]},"
            f" {least[0].network.name})"
            f" to {number(most[1].value)} ({NAMES[most[0].eten]}, {most[0].network.name})"
        )
    return Verdict(
        agrees,
        f"Gain at {_at(HIGH)} over all {len(runs.networks())} networks: {'; '.join(told)}.",
    )


def _degrades_late(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    shares = [
        (case, runs.ratio(case, case.but(bit_error_rate=0.0)))
        for case in runs.cases(eten="oracle", errors="both")
        if case.bit_error_rate
    ]
    until = [pair for pair in shares if pair[0].bit_error_rate <= MIDDLE]
    high = [pair for pair in shares if pair[0].bit_error_rate == HIGH]
    least, least_high = extreme(until, largest=False), extreme(high, largest=False)
    stock = extreme(
        (
            (case, runs.ratio(case, case.but(bit_error_rate=0.0)))
            for case in runs.cases(eten=NONE, errors="both", bit_error_rate=MIDDLE)
        ),
        largest=False,
    )
    return Verdict(
        least[1].value > 1 - SMALL and least_high[1].value < 1 - SMALL,
        f"Up to {_at(MIDDLE)} Oracle keeps at least {percent(least[1].value)} of the goodput"
        f" without errors ({_briefly(least[0])}; stock TCP falls to {percent(stock[1].value)}); at"
        f" {_at(HIGH)} down to {percent(least_high[1].value)} ({_briefly(least_high[0])}).",
        least[1],
        least[0],
    )


def _below_oracle(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    cases = runs.cases(eten="backward", bit_error_rate=(MIDDLE, HIGH))
    shares = [(case, _backward_share(runs, case)) for case in cases]
    at_high = [pair for pair in shares if pair[0].bit_error_rate == HIGH]
    least, most = extreme(at_high, largest=False), extreme(at_high, largest=True)
    above = [pair for pair in shares if pair[1].lo > 1 + NOTHING]
    return Verdict(
        not above and all(share.hi < 1 for _, share in at_high),
        f"At {_at(HIGH)} Backward has {percent(least[1].value)} ({_briefly(least[0])}) to"
        f" {percent(most[1].value)} ({_briefly(most[0])}) of Oracle's goodput; from"
        f" {_at(MIDDLE)} on it is above Oracle's by more than {percent(NOTHING)} in {len(above)} of"
        f" {len(shares)} cells.",
        most[1],
        most[0],
    )


def _never_worse(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    cases = runs.cases(eten=NOTIFIED)
    # All intervals together are to hold with 95 %: each alone with more (Bonferroni).
    confidence = 1 - (1 - CONFIDENCE) / len(cases)
    gains = [(case, runs.gain(case, confidence)) for case in cases]
    worse = [pair for pair in gains if pair[1].hi < 1]
    case, least = extreme(gains, largest=False)
    return Verdict(
        all(gain.hi >= 1 - NEGLIGIBLE for _, gain in gains),
        f"Of {len(gains)} cells ETEN is worse in {len(worse)}, at 95 % confidence for all of them"
        f" together; nowhere by more than {percent(1 - least.value)} ({_briefly(case)},"
        f" {_at(case.bit_error_rate)}). Less than {percent(NEGLIGIBLE)} is not held to be worse.",
        runs.gain(case),
        case,
    )


def _seven_times(evidence: Evidence) -> Verdict:
    runs = evidence.runs
    gains = _gains(runs, (LOW, MIDDLE, HIGH), DIRECTIONS)
    case, most = extreme(gains, largest=True)
    about = [case for case, _ in gains if within(7.0, runs.single_gain(case))]
    beyond = [case for case, _ in gains if runs.single_gain(case)[0] > 7.0]
    return Verdict(
        bool(about),
        f"In {len(about)} of {len(gains)} cells single pairs of runs give about seven, in"
        f" {len(beyond)} more; the largest gain is {interval(most)} ({_briefly(case)},"
        f" {_at(case.bit_error_rate)} {NAMES[case.errors]}).",
        most,
        case,
    )


_TESTS: Mapping[str, Callable[[Evidence], Verdict]] = {
    "stock-degrades": _stock_degrades,
    "oracle-helps-at-high-error-rates": _oracle_at_high_error_rates,
    "small-impact-at-1e-7": _small_impact,
    "no-help-at-low-error-rates": _no_help,
    "other-networks-gain-more": _others_gain_more,
    "backward-near-oracle-at-low-error-rates": _near_oracle,
    "backward-loses-notices": _loses_notices,
    "backward-sack-beats-reno": lambda evidence: _sack_over_reno(evidence, "backward"),
    "sack-beats-reno": lambda evidence: _sack_over_reno(evidence, NONE),
    "delay-dominates": _delay_dominates,
    "eten-improves": _improves,
    "oracle-degrades-late": _degrades_late,
    "backward-below-oracle": _below_oracle,
    "never-worse": _never_worse,
    "gains-everywhere": _everywhere,
    "seven-times": _seven_times,
}


# --- Words -----------------------------------------------------------------------------------


def number(value: float) -> str:
    """A ratio with three significant digits; near 1 with one more."""
    return f"{value:.3f}" if 0.9 < value < 1.1 else units.significant(value)


def interval(estimate: Estimate) -> str:
    """A ratio with its confidence interval."""
    return f"{number(estimate.value)} [{number(estimate.lo)}, {number(estimate.hi)}]"


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.3g} %"


def _at(bit_error_rate: float) -> str:
    return units.scientific(bit_error_rate)


def _briefly(case: Case) -> str:
    return f"{case.variant}, {case.network.name}"
