"""Published statements, held against the runs.

Nothing here is concluded beforehand: each test says from the runs at hand whether the statement
holds, differs or is undecided (publications/study/verdict.py), and quotes the numbers that decide.
The report made one run a point, so a published ratio is one draw: it is held against the range in
which single pairs of our runs fall.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lasthop import units
from lasthop.publications.bbn8333.cases import NONE, PERIOD, Case, Network, Runs
from lasthop.publications.bbn8333.variations import Moved, Variation, moved
from lasthop.publications.rows import Finding
from lasthop.publications.study.published import judged_value, published
from lasthop.publications.study.verdict import Judgement, Verdict
from lasthop.publications.study.words import interval, number

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
    #: Two of them at once, with which statements are tried that no one makes hold.
    pairs: Sequence[Variation] = ()
    tried_over: Sequence[Network] = ()
    #: The figures' networks with the stack of today, where that is run.
    modern: Runs | None = None

    def moved(self, case: Case) -> list[Moved]:
        """What every variation makes of a case's gain, the strongest first."""
        return moved(case, case.but(eten=NONE), self.runs, self.variations, self.varied)


#: Holds one statement against runs.
Test = Callable[[Runs], Judgement]


def findings(
    experiment: str,
    stated: Mapping[str, Any],
    evidence: Evidence,
    tests: Mapping[str, Test],
) -> list[Finding]:
    """All published statements of a simulation, each with its verdict."""

    def finding(statement: Mapping[str, Any], judged: Judgement) -> Finding:
        case = {"profile": PERIOD} if judged.case is None else judged.case.as_dict()
        return Finding(
            publication="bbn8333",
            experiment=experiment,
            id=statement["id"],
            claim=statement["claim"],
            where=statement["where"],
            case=case,
            verdict=judged.verdict,
            why=judged.why,
            runs=evidence.runs.seeds,
            published=statement.get("value"),
            measured=judged.measured,
            contradicts=statement.get("contradicts"),
        )

    found = []
    for ratio in stated.get("ratio", ()):
        case = Case(**ratio["case"], profile=PERIOD)
        found.append(finding(ratio, _ratio(ratio, case, evidence)))
    for statement in stated["statement"]:
        test = tests[statement["id"]]
        judged = test(evidence.runs)
        why = [judged.why]
        if "contradicts" in statement:
            why.append(f"The report contradicts itself: {statement['contradicts']}")
        of_runs = judged.claim is None or not judged.claim.exact
        if judged.verdict is Verdict.DIFFERS and evidence.variations and of_runs:
            why.append(tried(test, evidence, statement.get("value")))
        found.append(finding(statement, replace(judged, why=" ".join(why))))
    return found


def tried(test: Test, evidence: Evidence, value: float | None = None) -> str:
    """Which single factors make a statement hold that does not, and if none does, which two."""
    verdicts = [(v, test(evidence.varied[v.id])) for v in evidence.variations]
    holds = [(v, judged) for v, judged in verdicts if judged.verdict is Verdict.HOLDS]
    at_all = ", ".join(of.name for of in evidence.tried_over)
    # There alone it may hold as it is.
    plain = test(evidence.runs.over(evidence.tried_over))
    if plain.verdict is Verdict.HOLDS:
        return f"At {at_all} alone it holds: {plain.why}"
    if holds:
        does = " ".join(f"With {v.name} it does: {verdict.why}" for v, verdict in holds)
        return f"At {at_all}, one factor changed and all else equal: {does}"
    before = plain.measured
    if before is None:
        none = f"No single factor tried makes it hold ({', '.join(v.name for v, _ in verdicts)})."
        return " ".join([none, *_pairs_tried(test, evidence, value)])
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
    return " ".join([*told, *_pairs_tried(test, evidence, value)])


#: As many pairs that make a statement hold are quoted.
_QUOTED = 2


def _pairs_tried(test: Test, evidence: Evidence, value: float | None) -> list[str]:
    """What two factors at once make of a statement that no one makes hold."""
    verdicts = [(of, test(evidence.varied[of.id])) for of in evidence.pairs]
    if not verdicts:
        return []
    holds = [(of, judged) for of, judged in verdicts if judged.verdict is Verdict.HOLDS]
    if holds:
        does = [f"With {of.name} it does: {judged.why}" for of, judged in holds[:_QUOTED]]
        more = [of.name for of, _ in holds[_QUOTED:]]
        told = f"Of {len(verdicts)} pairs of factors {len(holds)} make it hold."
        return [told, *does, *([f"So do: {'; '.join(more)}."] if more else [])]
    told = f"Nor does any of {len(verdicts)} pairs of them."
    measured = [(of, judged.measured) for of, judged in verdicts if judged.measured]
    alive = [(of, ratio) for of, ratio in measured if ratio.value]
    if value and alive:
        of, nearest = min(alive, key=lambda pair: abs(math.log(pair[1].value / value)))
        told += f" Nearest to it comes {of.name} with {interval(nearest)}."
    return [told]


# --- Ratios ----------------------------------------------------------------------------------


def _ratio(ratio: Mapping[str, Any], case: Case, evidence: Evidence) -> Judgement:
    """A published number: does one of our single pairs of runs give it?"""
    of = published(ratio)
    gain, single = evidence.runs.gain(case), evidence.runs.single_gain(case)
    why = f"Measured {interval(gain)}, published {of.words}; {_singles(single)}."
    judged = judged_value(of, why, gain, case, "1", single=single)
    # A bound that holds needs no reason; how far above it the outcome lies still does.
    if not within(of.value, single) and evidence.variations:
        why = f"{judged.why} {explain(of.value, evidence.moved(case))}"
        judged = replace(judged, why=why)
    return judged


def within(value: float, single: tuple[float, float]) -> bool:
    """Whether single pairs of runs give this ratio."""
    return single[0] <= value <= single[1]


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
            reached = "where single pairs of runs give it"
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


# --- Words -----------------------------------------------------------------------------------


def at(bit_error_rate: float) -> str:
    """A bit error rate, as text has it."""
    return units.scientific(bit_error_rate)


def briefly(case: Case) -> str:
    """Who sends, and over what."""
    return f"{case.variant}, {case.network.name}"
