"""Comparisons that the statements of several simulations need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lasthop.publications.bbn8333.cases import (
    AIMD,
    ERRORS,
    ETEN,
    LTN,
    NAMES,
    NONE,
    Case,
    Runs,
    Variant,
    extreme,
)
from lasthop.publications.bbn8333.findings import HIGH, MIDDLE, Test, at
from lasthop.publications.study.verdict import (
    ALPHA,
    Band,
    Check,
    Joint,
    Judgement,
    Verdict,
    above,
    below,
    every,
    most,
)
from lasthop.publications.study.words import (
    NEGLIGIBLE,
    NOTHING,
    interval,
    number,
    percent,
)
from lasthop.stats import Estimate, holm, p_below

#: More by so much that it is something, and less.
MORE, LESS = above(1 + NEGLIGIBLE), below(1 - NEGLIGIBLE)

Pairs = Sequence[tuple[Case, Estimate]]

SACK = Variant("sack")
BACKWARD = Variant("sack", "backward")
ORACLE = Variant("sack", "oracle")
RENO = Variant("reno")
RENO_BACKWARD = Variant("reno", "backward")


def versus(runs: Runs, one: Variant, other: Variant, **where: Any) -> Pairs:
    """The goodput of one variant over that of another, wherever both have any."""
    found = []
    for case in runs.cases(**_who(one), **where):
        sender = ("recovery", "eten", "window")
        same = {name: value for name, value in asdict(case).items() if name not in sender}
        for to in runs.cases(**_who(other), **same):
            alive = runs.is_alive(case) and runs.is_alive(to)
            found += [(case, runs.ratio(case, to))] if alive else []
    return found


def gains_beside(runs: Runs) -> str:
    """By how much Backward multiplies SACK's goodput at the figure's worst point, for each number
    of competitors."""
    pairs = versus(runs, BACKWARD, SACK, network=LTN, bit_error_rate=HIGH)
    gains = {case.competitors: gain.value for case, gain in pairs}
    return ", ".join(f"{gains[n]:.1f} times beside {n or 'none'}" for n in sorted(gains))


@dataclass(frozen=True)
class Worse:
    """A cell in which a sender that is told has less goodput than one that is not."""

    case: Case
    where: str
    gain: Estimate
    #: What the runs of the two differ in.
    why: str


def worse(runs: Runs) -> list[Worse]:
    """Every cell in which being told costs goodput, the costliest first."""
    cases = [
        case
        for case in runs.cases(eten=tuple(of for of in ETEN if of != NONE))
        if runs.is_alive(case) and runs.is_alive(case.but(eten=NONE))
    ]
    gains = [(case, runs.gain(case)) for case in cases]
    p_values = holm([p_below(gain, 1.0) for _, gain in gains])
    clear = [pair for pair, p in zip(gains, p_values, strict=True) if p <= ALPHA]
    clear.sort(key=lambda pair: pair[1].value)
    return [
        Worse(case, f"{where(case)}, {ERRORS[case.errors]}", runs.gain(case), _differ(runs, case))
        for case, _ in clear
    ]


def _differ(runs: Runs, case: Case) -> str:
    plain = case.but(eten=NONE)
    timeouts, before = runs.timeouts(case), runs.timeouts(plain)
    cuts, cuts_before = runs.reductions(case), runs.reductions(plain)
    told = (
        f"Its timer expires {timeouts.value:.3g} times a run instead of {before.value:.3g}, and it"
        f" reduces its window {cuts.value:.3g} times instead of {cuts_before.value:.3g}."
    )
    if timeouts.lo > before.hi and cuts.value < cuts_before.value:
        told += " The timeouts cost more than the reductions that it is spared."
    if runs.goodput(plain).value > (1 - NOTHING) * case.rate_bps:
        told += " The link is full without: there is nothing to gain."
    return told


def reno_alike(runs: Runs) -> Judgement:
    """Where Backward raises SACK's goodput beside others, it raises Reno's."""
    own = {
        case.but(recovery="reno"): gain
        for case, gain in versus(runs, BACKWARD, SACK, bit_error_rate=(MIDDLE, HIGH))
        if case.competitors and Check(gain, MORE).verdict is Verdict.HOLDS
    }
    gains = [
        pair
        for pair in versus(runs, RENO_BACKWARD, RENO, bit_error_rate=(MIDDLE, HIGH))
        if pair[0] in own
    ]
    return everywhere(gains, MORE, "Backward over none, both with Reno, where it is more with SACK")


def no_better(lower: Sequence[str], upper: Sequence[str], what: str) -> Test:
    """Tests that nobody who is told in one of the ways `lower` has more goodput than one who is
    told in one of the ways `upper`, all else equal, wherever there are both."""

    def test(runs: Runs) -> Judgement:
        cells = [
            (case, case.but(eten=eten))
            for case in runs.cases(eten=tuple(lower))
            for eten in upper
            if eten != case.eten and case.but(eten=eten) in runs
        ]
        cells = [(case, to) for case, to in cells if runs.is_alive(case) and runs.is_alive(to)]
        ratios = {(case, to): runs.ratio(case, to) for case, to in cells}
        bound = every([Check(ratio, below(1 + NEGLIGIBLE)) for ratio in ratios.values()])
        if not cells:
            return bound.judged(f"{what}.")
        case, to = max(cells, key=lambda pair: ratios[pair].value)
        most_of = ratios[case, to]
        return bound.judged(
            f"{what}: at most {interval(most_of)} ({case.variant} over {to.variant}, {where(case)},"
            f" {ERRORS[case.errors]}). Less than {percent(NEGLIGIBLE)} is not held to be more.",
            most_of,
            case,
        )

    return test


def kept(runs: Runs, variant: Variant, **where: Any) -> Pairs:
    """The share of the goodput without errors that is left with errors."""
    return [
        (case, runs.ratio(case, case.but(bit_error_rate=0.0)))
        for case in runs.cases(**_who(variant), **where)
        if case.bit_error_rate
        and runs.is_alive(case)
        and runs.is_alive(case.but(bit_error_rate=0.0))
    ]


def _who(variant: Variant) -> dict[str, str]:
    # Westwood is one of a kind, whatever repairs its losses.
    recovery = {"recovery": variant.recovery} if variant.window == AIMD else {}
    return {"eten": variant.eten, "window": variant.window, **recovery}


def checks(pairs: Pairs, band: Band) -> list[Check]:
    """That the ratio is in a band, in each cell."""
    return [Check(ratio, band) for _, ratio in pairs]


def everywhere(
    pairs: Pairs,
    band: Band,
    what: str,
    of: Callable[[Case], str] | None = None,
    *,
    largest: bool = False,
) -> Judgement:
    """Whether the ratio of every cell is in a band. Quotes the extremes; what is measured is the
    one that decides: the largest, if too much would be wrong, or the smallest."""
    return quoted(every(checks(pairs, band)), pairs, what, of, largest=largest)


def mostly(pairs: Pairs, what: str) -> Judgement:
    """Whether a ratio is above one in most cells."""
    return quoted(most(checks(pairs, MORE)), pairs, what)


def quoted(
    claim: Joint,
    pairs: Pairs,
    what: str,
    of: Callable[[Case], str] | None = None,
    *,
    largest: bool = False,
) -> Judgement:
    """The verdict on a claim about some cells, with the extremes of their ratios."""
    if not pairs:
        return claim.judged(f"{what}.")
    place = of or where
    least, highest = extreme(pairs, largest=False), extreme(pairs, largest=True)
    told = f"{what}: {_said(least, place)}"
    if len(pairs) > 1:
        told += f" to {_said(highest, place)}"
    case, ratio = highest if largest else least
    return claim.judged(f"{told}.", ratio, case)


def _said(pair: tuple[Case, Estimate], place: Callable[[Case], str]) -> str:
    case, ratio = pair
    return f"{number(ratio.value)} [{number(ratio.lo)}, {number(ratio.hi)}] ({place(case)})"


def where(case: Case) -> str:
    """As in "1.5 Mb/s, 10 ms, 1.56e-6, 4 UDP flows"."""
    errors = at(case.bit_error_rate) if case.bit_error_rate else "no errors"
    return ", ".join([case.network.name, errors, *_others(case)])


def _others(case: Case) -> Iterable[str]:
    if case.competitors:
        yield f"{case.competitors} {NAMES[case.cross_traffic]} flows"
