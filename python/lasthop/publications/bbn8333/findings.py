"""Published statements, held against the runs.

Nothing here is concluded beforehand: each test says from the runs at hand whether the statement
holds and quotes the numbers that decide. How far a ratio may lie from a published one follows from
the report's own design: it made one run a point, so the published ratio is one draw, and it agrees
if single pairs of runs would give it (95 % prediction interval), give or take the rounding of a
figure read off a plot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lasthop import units
from lasthop.publications.bbn8333.cases import NONE, PERIOD, Case, Network, Runs
from lasthop.publications.bbn8333.variations import Moved, Variation, moved
from lasthop.publications.rows import Finding
from lasthop.publications.study.words import FEW_SEEDS, MARKED, ROUNDING, interval, number
from lasthop.stats import Estimate

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
    #: The variations that statements are tried with, and the networks that they were run over.
    variations: Sequence[Variation] = ()
    tried_over: Sequence[Network] = ()
    #: The figures' networks with the stack of today, where that is run.
    modern: Runs | None = None

    def moved(self, case: Case) -> list[Moved]:
        """What every variation makes of a case's gain, the strongest first."""
        return moved(case, case.but(eten=NONE), self.runs, self.variations, self.varied)


@dataclass(frozen=True)
class Verdict:
    """Whether a statement holds, and the numbers that decide."""

    agrees: bool
    why: str
    measured: Estimate | None = None
    case: Case | None = None


#: Holds one statement against runs.
Test = Callable[[Runs], Verdict]


def findings(
    experiment: str,
    published: Mapping[str, Any],
    evidence: Evidence,
    tests: Mapping[str, Test],
) -> list[Finding]:
    """All published statements of a simulation, each with its verdict."""

    def finding(statement: Mapping[str, Any], verdict: Verdict) -> Finding:
        case = {"profile": PERIOD} if verdict.case is None else verdict.case.as_dict()
        return Finding(
            publication="bbn8333",
            experiment=experiment,
            id=statement["id"],
            claim=statement["claim"],
            where=statement["where"],
            case=case,
            agrees=verdict.agrees,
            why=verdict.why,
            runs=evidence.runs.seeds,
            published=statement.get("value"),
            measured=verdict.measured,
            contradicts=statement.get("contradicts"),
        )

    found = []
    for ratio in published.get("ratio", ()):
        case = Case(**ratio["case"], profile=PERIOD)
        found.append(finding(ratio, _ratio(ratio, case, evidence)))
    for statement in published["statement"]:
        test = tests[statement["id"]]
        verdict = test(evidence.runs)
        why = [verdict.why]
        if "contradicts" in statement:
            why.append(f"The report contradicts itself: {statement['contradicts']}")
        if not verdict.agrees and evidence.variations:
            why.append(tried(test, evidence))
        found.append(finding(statement, replace(verdict, why=" ".join(why))))
    return found


def tried(test: Test, evidence: Evidence) -> str:
    """Which single factors make a statement hold that does not."""
    verdicts = [(v, test(evidence.varied[v.id])) for v in evidence.variations]
    holds = [(v, verdict) for v, verdict in verdicts if verdict.agrees]
    at_all = ", ".join(of.name for of in evidence.tried_over)
    # There alone it may hold as it is.
    plain = test(evidence.runs.over(evidence.tried_over))
    if plain.agrees:
        return f"At {at_all} alone it holds: {plain.why}"
    if holds:
        does = " ".join(f"With {v.name} it does: {verdict.why}" for v, verdict in holds)
        return f"At {at_all}, one factor changed and all else equal: {does}"
    before = plain.measured
    if before is None:
        return f"No single factor tried makes it hold ({', '.join(v.name for v, _ in verdicts)})."
    moved = [
        (v, verdict.measured)
        for v, verdict in verdicts
        if verdict.measured is not None
        and (verdict.measured.lo > before.hi or verdict.measured.hi < before.lo)
    ]
    clear = ", ".join(f"{number(m.value)} with {v.name}" for v, m in moved)
    idle = ", ".join(v.name for v, _ in verdicts if v not in [v for v, _ in moved])
    told = [f"No single factor tried makes it hold at {at_all}, where it is {interval(before)}."]
    if clear:
        told.append(f"It moves to {clear}.")
    if idle:
        told.append(f"No clear effect: {idle}.")
    return " ".join(told)


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
    if away and evidence.variations:
        why.append(explain(value, evidence.moved(case)))
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


def more(ratio: Estimate) -> bool:
    """Whether a ratio is above one: clearly, or markedly where there are too few seeds for that."""
    return ratio.lo > 1 or (ratio.n < FEW_SEEDS and ratio.value > 1 + MARKED)


# --- Words -----------------------------------------------------------------------------------


def at(bit_error_rate: float) -> str:
    """A bit error rate, as text has it."""
    return units.scientific(bit_error_rate)


def briefly(case: Case) -> str:
    """Who sends, and over what."""
    return f"{case.variant}, {case.network.name}"
