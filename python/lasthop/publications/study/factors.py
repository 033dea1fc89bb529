"""What a publication leaves open: one factor at a time, and what it makes of the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lasthop.publications.study.runs import Cell, Runs
from lasthop.publications.study.verdict import Joint, Judgement, Verdict
from lasthop.publications.study.words import interval, number
from lasthop.stats import Estimate

#: Runs of a cell with a factor changed, at most.
SEEDS = 10
#: As many pairs that make a statement hold are quoted.
_QUOTED = 2


@dataclass(frozen=True)
class Factor:
    """One setting that differs from what is reproduced."""

    id: str
    #: Completes "with ...".
    name: str
    #: What it changes, and why the publication may have had it.
    about: str


@dataclass(frozen=True)
class Factors:
    """The factors that are tried with an experiment."""

    tried: Sequence[Factor]
    #: The cells with a factor changed.
    cells: Callable[[Any], Sequence[Cell]]
    #: Where they are, in words.
    where: str
    #: Two at once, for statements that no single one makes hold.
    pairs: Sequence[Factor] = ()


# --- Statements ------------------------------------------------------------------------------


def tried(
    test: Callable[[Runs], Judgement], runs: Runs, factors: Factors, value: float | None = None
) -> str:
    """Which single factors make a statement hold that does not, and if none does, which two."""
    judged = [(of, test(runs.varied[of.id])) for of in factors.tried]
    # In these cells alone it may hold as it is.
    plain = test(runs.of(runs.varied[factors.tried[0].id]))
    if isinstance(plain.claim, Joint) and not plain.claim.parts:
        return "No factor was tried in its cells."
    if plain.verdict is Verdict.HOLDS:
        return f"At {factors.where} alone it holds: {plain.why}"
    holds = [(of, one) for of, one in judged if one.verdict is Verdict.HOLDS]
    if holds:
        does = " ".join(f"With {of.name} it does: {one.why}" for of, one in holds)
        return f"At {factors.where}, one factor changed and all else equal: {does}"
    before = plain.measured
    if before is None:
        none = f"No single factor tried makes it hold ({', '.join(of.name for of, _ in judged)})."
        return " ".join([none, *_pairs_tried(test, runs, factors, value)])
    found = [(of, one.measured) for of, one in judged if one.measured is not None]
    clear = [(of, one) for of, one in found if one.lo > before.hi or one.hi < before.lo]
    idle = [of.name for of, _ in judged if of not in [of for of, _ in clear]]
    summary = [
        f"No single factor tried makes it hold at {factors.where}, where it is {interval(before)}."
    ]
    if clear:
        moves = ", ".join(f"{number(one.value)} with {of.name}" for of, one in clear)
        summary.append(f"It moves to {moves}.")
    if idle:
        summary.append(f"No clear effect: {', '.join(idle)}.")
    return " ".join([*summary, *_pairs_tried(test, runs, factors, value)])


def _pairs_tried(
    test: Callable[[Runs], Judgement], runs: Runs, factors: Factors, value: float | None
) -> list[str]:
    """What two factors at once make of a statement that no one makes hold."""
    judged = [(of, test(runs.varied[of.id])) for of in factors.pairs]
    if not judged:
        return []
    holds = [(of, one) for of, one in judged if one.verdict is Verdict.HOLDS]
    if holds:
        does = [f"With {of.name} it does: {one.why}" for of, one in holds[:_QUOTED]]
        more = [of.name for of, _ in holds[_QUOTED:]]
        summary = f"Of {len(judged)} pairs of factors {len(holds)} make it hold."
        return [summary, *does, *([f"So do: {'; '.join(more)}."] if more else [])]
    summary = f"Nor does any of {len(judged)} pairs of them."
    alive = [(of, one.measured) for of, one in judged if one.measured and one.measured.value]
    if value and alive:
        of, nearest = min(alive, key=lambda pair: abs(math.log(pair[1].value / value)))
        summary += f" Nearest to it comes {of.name} with {interval(nearest)}."
    return [summary]


# --- Numbers ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moved:
    """What a factor makes of a measured value."""

    factor: Factor
    #: The value with the factor changed.
    value: Estimate
    #: The range of single runs then.
    single: tuple[float, float] | None
    #: The value as reproduced.
    baseline: Estimate

    @property
    def ratio(self) -> float:
        """How far the factor moves the value."""
        return self.value.value / self.baseline.value

    @property
    def clear(self) -> bool:
        """Whether the intervals with and without do not overlap."""
        return self.value.lo > self.baseline.hi or self.value.hi < self.baseline.lo


def within(value: float, single: tuple[float, float] | None) -> bool:
    """Whether single runs give this value."""
    return single is not None and single[0] <= value <= single[1]


def explain(value: float, moves: Sequence[Moved]) -> str:
    """Which single factors move a measured value towards the published one, and which do not."""
    upwards = value > moves[0].baseline.value
    clear = [move for move in moves if move.clear]
    # Nearest first: past the published value is no nearer than as far before it.
    towards = sorted(
        (move for move in clear if (move.ratio > 1) == upwards),
        key=lambda move: max(move.value.value / value, value / move.value.value),
    )
    away = [move for move in clear if (move.ratio > 1) != upwards]
    idle = [move for move in moves if not move.clear]
    parts = []
    if towards:
        best = towards[0]
        if within(value, best.single):
            reached = "where single runs give it"
        elif (best.value.value > value) == upwards:
            reached = "past the published value, which lies between the two"
        else:
            reached = "nearer, but not there"
        parts.append(
            f"With {best.factor.name} and all else equal it is {interval(best.value)}, {reached}."
        )
        if len(towards) > 1:
            parts.append(f"Also towards it: {_listed(towards[1:])}.")
    else:
        parts.append("No single factor tried moves it towards the published value.")
    if away:
        parts.append(f"Away from it: {_listed(away)}.")
    if idle:
        parts.append(f"No clear effect: {', '.join(move.factor.name for move in idle)}.")
    return " ".join(parts)


def _listed(moves: Sequence[Moved]) -> str:
    return ", ".join(f"{move.factor.name} ({number(move.value.value)})" for move in moves)


def cause(numbers: Sequence[tuple[float, Sequence[Moved]]]) -> str:
    """The one factor that accounts for most published numbers, in a sentence."""
    reached: dict[str, int] = {}
    for published, moves in numbers:
        for move in moves:
            ends = sorted((move.baseline.value, move.value.value))
            if move.clear and ends[0] <= published <= ends[1]:
                reached[move.factor.name] = reached.get(move.factor.name, 0) + 1
    if not reached:
        return "No single factor tried accounts for any published number."
    name = max(reached, key=lambda name: reached[name])
    return (
        f"One factor stands out: {reached[name]} of the {len(numbers)} published numbers lie"
        f" between what is reproduced and the same with {name}."
    )
