"""Whether runs bear out what was published: holds, differs, or undecided.

Everything here is computed from estimates and from numbers fixed before any run; nothing is run.
A test can fail in two ways: too few runs end in *undecided*, never in agreement.

A published value
    `Published` has the value and its kind from published.toml. The kind alone fixes the band of
    measured values that meet it. `judge` is HOLDS if the measured interval of 95 % lies in the
    band, DIFFERS if it lies outside, else UNDECIDED. A value from a single run (`runs = 1`) is
    held against the range in which 95 % of our single runs fall, given enough of them. A value that
    is published with its interval (`ci95`) is met within that interval, too.

A statement
    Take an `Estimate` of the effect from every cell and say where the statement puts it:

        gains = [Check(runs.ratio(case, plain, "goodput_bps"), above(1 + NEGLIGIBLE)) for ...]
        return every(gains).judged("Goodput over that of plain TCP: ...", measured, case)

    `every`, `some` and `most` join the cells, corrected for their number with Holm's thresholds,
    and may be nested. A claim that a mechanism does something needs a band that *no effect* is
    outside of, with a margin: `above(1 + NEGLIGIBLE)`, not `above(1 - NEGLIGIBLE)`, or it would
    hold without the mechanism. A claim that two are alike needs a band around no effect:
    `between(1 - SMALL, 1 + SMALL)`. What has no interval (one run) shows nothing, unless nothing
    in it is drawn at random: `Check(..., exact=True)`.

    published.toml names with `effect_of` the mechanism that a statement claims an effect of, or
    "none"; tests/test_mechanism_off.py takes that mechanism away, and the statement must fail.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from lasthop.stats import CONFIDENCE, Estimate, errors_from, holm, p_above, p_below, student_t

#: The level of a one-sided test that agrees with a two-sided interval of 95 %.
ALPHA = (1 - CONFIDENCE) / 2
#: A range of single runs is used from so many runs on. It reaches t(n - 1) sqrt(1 + 1 / n)
#: deviations from the mean; with 20 runs that is 9 % further than the 1.96 of infinitely many,
#: with 3 runs 153 %.
SINGLE_RUNS = 20
#: More runs than this are not worth naming.
_MANY_RUNS = 100_000


class Verdict(StrEnum):
    """What runs say to something published."""

    HOLDS = "holds"
    DIFFERS = "differs"
    UNDECIDED = "undecided"

    @classmethod
    def of(cls, holds: bool) -> Verdict:
        """Of what is known for certain."""
        return cls.HOLDS if holds else cls.DIFFERS

    @property
    def agrees(self) -> bool | None:
        """As results.json has it: None is undecided."""
        return {Verdict.HOLDS: True, Verdict.DIFFERS: False}.get(self)


@dataclass(frozen=True)
class Judgement:
    """A verdict on a statement, and the numbers that decide."""

    verdict: Verdict
    why: str
    measured: Estimate | None = None
    #: The cell that the number is of.
    case: Any = None
    #: Of the number.
    unit: str = "1"
    #: What was held against the runs, if that may be part of another statement.
    claim: Claim | None = field(default=None, repr=False)
    #: What decides, in words: where the measured value must lie.
    criterion: str = ""


# --- Bands -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Band:
    """The values that meet a claim, both ends among them."""

    lo: float = -math.inf
    hi: float = math.inf

    def __contains__(self, value: float) -> bool:
        return self.lo <= value <= self.hi

    def __str__(self) -> str:
        if math.isinf(self.hi):
            return f"above {self.lo:.4g}" if math.isfinite(self.lo) else "anything"
        return (
            f"{self.lo:.4g} to {self.hi:.4g}" if math.isfinite(self.lo) else f"below {self.hi:.4g}"
        )


def above(bound: float) -> Band:
    """More than this."""
    return Band(lo=bound)


def below(bound: float) -> Band:
    """Less than this."""
    return Band(hi=bound)


def between(lo: float, hi: float) -> Band:
    """From one to the other."""
    return Band(lo, hi)


# --- Published values ------------------------------------------------------------------------


class Kind(StrEnum):
    """How a publication gives a value, which fixes what meets it."""

    #: A number in a table or in the text: give or take its last digit or 5 %, whichever is more.
    PRINTED = "printed"
    #: "About": give or take 15 %.
    ABOUT = "about"
    #: Up to the value, and at most 15 % less.
    ALMOST = "almost"
    #: More than the value, however much.
    ABOVE = "above"
    #: At most the value.
    AT_MOST = "at-most"
    #: Read off a figure: give or take 10 %.
    FIGURE = "figure"


_TOLERANCE = {Kind.PRINTED: 0.05, Kind.ABOUT: 0.15, Kind.FIGURE: 0.10, Kind.ALMOST: 0.15}
_WORDS = {
    Kind.ABOUT: "about ",
    Kind.ALMOST: "almost ",
    Kind.ABOVE: "above ",
    Kind.AT_MOST: "at most ",
}
_BOUNDS = (Kind.ABOVE, Kind.AT_MOST)


@dataclass(frozen=True)
class Published:
    """A published value, and how exactly it is meant."""

    value: float
    kind: Kind
    #: Of a printed number: what one more in its last digit is worth.
    last_digit: float | None = None
    #: Of which it is the mean; None: not known, and taken for many.
    runs: int | None = None
    #: Its published interval of 95 %, within which it is met, too.
    ci95: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if (self.kind is Kind.PRINTED) is (self.last_digit is None):
            raise ValueError(f"{self.value:g}: printed numbers, and no others, have a last digit")

    @property
    def band(self) -> Band:
        """What meets it."""
        if self.kind is Kind.ABOVE:
            return above(self.value)
        if self.kind is Kind.AT_MOST:
            return below(self.value)
        give = max(_TOLERANCE[self.kind] * abs(self.value), self.last_digit or 0.0)
        lo, hi = self.value - give, self.value + (0 if self.kind is Kind.ALMOST else give)
        if self.ci95 is not None:
            lo, hi = min(lo, self.ci95[0]), max(hi, self.ci95[1])
        return between(lo, hi)

    @property
    def words(self) -> str:
        """As in "about 3.5"."""
        words = f"{_WORDS.get(self.kind, '')}{self.value:g}"
        return words if self.ci95 is None else f"{words} [{self.ci95[0]:g}, {self.ci95[1]:g}]"

    @property
    def criterion(self) -> str:
        """As in "13.9 to 15.3"."""
        if self.runs != 1:
            return str(self.band)
        # See `_judge_single`.
        return (
            f"{self.band}, or among our single runs" if self.kind not in _BOUNDS else str(self.band)
        )

    def judge(
        self,
        measured: Estimate | None,
        single: tuple[float, float] | None = None,
        *,
        exact: bool = False,
    ) -> Verdict:
        """Whether the measured value meets it. `single` is where single runs fall: needed if it
        was published from one. `exact`: nothing is drawn at random, so one run says everything."""
        if self.runs != 1 or exact:
            return Check(measured, self.band, exact=exact).verdict
        if measured is None or single is None:
            return Verdict.UNDECIDED
        return self._judge_single(measured, single)

    def _judge_single(self, measured: Estimate, single: tuple[float, float]) -> Verdict:
        typical = Check(measured, self.band).verdict
        if self.kind in _BOUNDS:
            # The mean keeps it, or not even a single run does.
            holds = typical is Verdict.HOLDS
            differs = single[1] < self.band.lo or single[0] > self.band.hi
        else:
            # It may be any of our single runs, or as near to all of them as its kind allows.
            drawn = single[0] <= self.value <= single[1]
            holds = drawn or typical is Verdict.HOLDS
            differs = not drawn and typical is Verdict.DIFFERS
        if differs:
            return Verdict.DIFFERS
        return Verdict.HOLDS if holds and measured.n >= SINGLE_RUNS else Verdict.UNDECIDED

    def needs(self, measured: Estimate | None) -> int | None:
        """About how many runs would decide; None if that is not known, or more than worth it."""
        if measured is None:
            return None
        if self.runs == 1 and measured.n < SINGLE_RUNS:
            return SINGLE_RUNS
        return Check(measured, self.band).needs


def error_factor(measured: Estimate | None, published: float | None) -> Estimate | None:
    """Measured over published, with the measured interval; None if nothing can be divided."""
    if measured is None or not published:
        return None
    ends = sorted(end / published for end in (measured.lo, measured.hi))
    return Estimate(measured.value / published, ends[0], ends[1], measured.n, measured.log)


class Judged:
    """A base of what has a verdict, on a measured value beside a published one."""

    verdict: Verdict | None
    measured: Estimate | None
    published: float | None

    @property
    def agrees(self) -> bool | None:
        """Whether it holds; None: undecided, or only asked."""
        return self.verdict.agrees if self.verdict else None

    @property
    def factor(self) -> Estimate | None:
        """Measured over published."""
        return error_factor(self.measured, self.published)


def typical_factor(factors: Sequence[float]) -> float | None:
    """By what factor measured values are off on average: the root mean square of the factors'
    logarithms, as a factor of 1 or more. None if there are none above zero."""
    logs = [math.log(factor) for factor in factors if factor > 0]
    return math.exp(math.sqrt(math.fsum(log * log for log in logs) / len(logs))) if logs else None


# --- Statements ------------------------------------------------------------------------------


class Claim(Protocol):
    """What can be shown or contradicted: one cell's check, or several joined."""

    @property
    def p_for(self) -> float:
        """The p-value of its being false: small if it is shown."""

    @property
    def p_against(self) -> float:
        """The p-value of its being true: small if it is contradicted."""

    @property
    def needs(self) -> int | None:
        """About how many runs a cell would show or contradict it; None if not known."""

    @property
    def exact(self) -> bool:
        """Whether nothing in it is drawn at random."""

    @property
    def criterion(self) -> str:
        """What shows it, in words."""


def decided(p_for: float, p_against: float) -> Verdict:
    """What the two p-values of a claim say."""
    if p_against <= ALPHA:
        return Verdict.DIFFERS
    return Verdict.HOLDS if p_for <= ALPHA else Verdict.UNDECIDED


@dataclass(frozen=True)
class Check:
    """One cell's part of a statement: an effect, and where the statement puts it."""

    #: None: nothing was measured, which shows nothing.
    effect: Estimate | None
    band: Band
    #: Nothing is drawn at random: one run says everything.
    exact: bool = False

    @property
    def p_for(self) -> float:
        """Both ends must be kept, so that the larger p-value counts."""
        if self.effect is None:
            return 1.0
        if self.exact:
            return 0.0 if self.effect.value in self.band else 1.0
        return max(
            p_above(self.effect, self.band.lo) if math.isfinite(self.band.lo) else 0.0,
            p_below(self.effect, self.band.hi) if math.isfinite(self.band.hi) else 0.0,
        )

    @property
    def p_against(self) -> float:
        """One end that is not kept is enough."""
        if self.effect is None:
            return 1.0
        if self.exact:
            return 1.0 - self.p_for
        return min(
            p_below(self.effect, self.band.lo) if math.isfinite(self.band.lo) else 1.0,
            p_above(self.effect, self.band.hi) if math.isfinite(self.band.hi) else 1.0,
        )

    @property
    def criterion(self) -> str:
        """As in "above 1.01"."""
        return str(self.band)

    @property
    def verdict(self) -> Verdict:
        """Of this cell alone: inside, outside, or neither."""
        return decided(self.p_for, self.p_against)

    @property
    def needs(self) -> int | None:
        """The error falls with the root of the number of runs; the spread stays."""
        effect = self.effect
        if effect is None or effect.n < 2:
            return None
        ends = [end for end in (self.band.lo, self.band.hi) if math.isfinite(end)]
        nearest = min((abs(errors_from(effect, end)) for end in ends), default=0.0)
        if nearest == 0:
            return None
        needed = max(effect.n, math.ceil(effect.n * (student_t(effect.n - 1) / nearest) ** 2))
        return needed if needed <= _MANY_RUNS else None


@dataclass(frozen=True)
class Joint:
    """The claim that at least `least` of some claims are true.

    The k-th smallest of m p-values is held against ALPHA / (m - k + 1), the threshold of Holm's
    k-th step: for one true claim of m that is ALPHA / m, and for all of them ALPHA.
    """

    parts: tuple[Claim, ...]
    least: int

    @functools.cached_property
    def p_for(self) -> float:
        """Small if so many are shown."""
        return _at_least(self.least, [part.p_for for part in self.parts])

    @functools.cached_property
    def p_against(self) -> float:
        """Small if so many are contradicted that too few are left."""
        left = len(self.parts) - self.least + 1
        return _at_least(left, [part.p_against for part in self.parts])

    @property
    def criterion(self) -> str:
        """As in "above 1.01 in all of 12"."""
        parts = list(dict.fromkeys(part.criterion for part in self.parts))
        number = len(self.parts)
        if not parts:
            return "no cell to compare"
        words = " or ".join(parts) if len(parts) <= 2 else f"its own band, such as {parts[0]}"
        if number == 1:
            return words
        among = "all" if self.least == number else f"{self.least} or more"
        return f"{words} in {among} of {number}"

    @property
    def verdict(self) -> Verdict:
        """Of all together; undecided if there are none."""
        return decided(self.p_for, self.p_against)

    @property
    def shown(self) -> int:
        """How many parts are shown, corrected for their number."""
        return sum(p <= ALPHA for p in holm([part.p_for for part in self.parts]))

    @property
    def contradicted(self) -> int:
        """How many parts are contradicted, corrected for their number."""
        return sum(p <= ALPHA for p in holm([part.p_against for part in self.parts]))

    @property
    def needs(self) -> int | None:
        """As many as the last part that must be decided."""
        open_parts = [p for p in self.parts if decided(p.p_for, p.p_against) is Verdict.UNDECIDED]
        left = self.least - (len(self.parts) - len(open_parts))
        needs = sorted(math.inf if p.needs is None else p.needs for p in open_parts)
        if not needs:
            return None
        found = needs[min(max(left, 1), len(needs)) - 1]
        return int(found) if math.isfinite(found) else None

    def judged(
        self,
        why: str,
        measured: Estimate | None = None,
        case: Any = None,
        unit: str = "1",
    ) -> Judgement:
        """The verdict with the numbers that decide, and what the cells say."""
        why = f"{why} {self.tally}"
        return Judgement(self.verdict, why, measured, case, unit, self, self.criterion)

    @property
    def exact(self) -> bool:
        """Of every part, if there are any."""
        return bool(self.parts) and all(part.exact for part in self.parts)

    @property
    def tally(self) -> str:
        """The numbers of cells that show and contradict it, and how many runs would decide."""
        if not self.parts:
            return "Nothing arrived that could be compared."
        said = (
            f"Shown in {self.shown} of {len(self.parts)}, contradicted in {self.contradicted}"
            " (95 %, Holm)."
        )
        if self.verdict is Verdict.UNDECIDED:
            said += f" {would_decide(self.needs)}"
        return said


def would_decide(needs: int | None) -> str:
    """What an undecided claim takes, as a sentence."""
    if needs is None:
        return "How many runs would decide does not follow from these."
    return f"About {needs} runs a cell would decide."


def _at_least(least: int, p_values: Sequence[float]) -> float:
    """The p-value of "fewer than `least` of these are so"."""
    m = len(p_values)
    if m == 0 or least > m:
        return 1.0
    if least <= 0:
        return 0.0
    return min(1.0, (m - least + 1) * sorted(p_values)[least - 1])


def every(parts: Sequence[Claim]) -> Joint:
    """All of them."""
    return Joint(tuple(parts), len(parts))


def some(parts: Sequence[Claim]) -> Joint:
    """At least one of them."""
    return Joint(tuple(parts), 1)


def most(parts: Sequence[Claim]) -> Joint:
    """More than half of them."""
    return Joint(tuple(parts), len(parts) // 2 + 1)
