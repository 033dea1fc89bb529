"""Comparisons that statements of several simulations use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lasthop.publications.bbn8333.cases import (
    BACKWARD,
    ERRORS,
    ETEN,
    HIGH,
    LTN,
    MIDDLE,
    NONE,
    RENO,
    RENO_BACKWARD,
    SACK,
    Pairs,
    extreme,
    gain_of,
    goodput_of,
    is_alive,
    plain,
    ratio_of,
    sender_name,
    where,
)
from lasthop.publications.study.published import Test
from lasthop.publications.study.runs import Case, Runs
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
from lasthop.publications.study.words import NEGLIGIBLE, NOTHING, interval, number, percent
from lasthop.stats import Estimate, holm, mean_interval, p_below

#: More by so much that it is something, and less.
MORE, LESS = above(1 + NEGLIGIBLE), below(1 - NEGLIGIBLE)


def versus(runs: Runs, one: Case, other: Case, **where: Any) -> Pairs:
    """The goodput of one sender over that of another, wherever both have any."""
    found = []
    for case in runs.cases(**one, **where):
        to = case.but(window=None).but(**other)
        if to in runs.found and is_alive(runs, case, to):
            found.append((case, ratio_of(runs, case, to)))
    return found


def gains_beside(runs: Runs) -> str:
    """By how much Backward multiplies SACK's goodput at the figure's worst point, for each number
    of competitors."""
    pairs = versus(runs, BACKWARD, SACK, **LTN, bit_error_rate=HIGH)
    gains = {case.get("competitors", 0): gain.value for case, gain in pairs}
    return ", ".join(f"{gains[n]:.1f} times beside {n or 'none'}" for n in sorted(gains))


def worse(runs: Runs) -> list[tuple[str, ...]]:
    """Every cell in which notification lowers goodput, the largest loss first: sender, cell, loss,
    and how the runs with and without differ."""
    cases = [
        case
        for case in runs.cases(eten=tuple(of for of in ETEN if of != NONE))
        if is_alive(runs, case, plain(case))
    ]
    gains = [(case, gain_of(runs, case)) for case in cases]
    p_values = holm([p_below(found, 1.0) for _, found in gains])
    clear = [pair for pair, p in zip(gains, p_values, strict=True) if p <= ALPHA]
    return [
        (
            sender_name(case),
            f"{where(case)}, {ERRORS[case['errors']]}",
            f"{percent(1 - found.value)} ({percent(1 - found.hi)} to {percent(1 - found.lo)})",
            _differ(runs, case),
        )
        for case, found in sorted(clear, key=lambda pair: pair[1].value)
    ]


def _differ(runs: Runs, case: Case) -> str:
    timeouts, before, cuts, cuts_before = (
        mean_interval(runs.values(of, metric))
        for metric in ("timeouts", "reductions")
        for of in (case, plain(case))
    )
    summary = (
        f"Its timer expires {timeouts.value:.3g} times a run instead of {before.value:.3g}, and it"
        f" reduces its window {cuts.value:.3g} times instead of {cuts_before.value:.3g}."
    )
    if timeouts.lo > before.hi and cuts.value < cuts_before.value:
        summary += " The timeouts cost more than the reductions that it is spared."
    if goodput_of(runs, plain(case)).value > (1 - NOTHING) * case["rate_bps"]:
        summary += " The link is full without: there is nothing to gain."
    return summary


def reno_alike(runs: Runs) -> Judgement:
    """Where Backward raises SACK's goodput beside others, it raises Reno's."""
    own = {
        case.but(recovery="reno"): gain
        for case, gain in versus(runs, BACKWARD, SACK, bit_error_rate=(MIDDLE, HIGH))
        if case.get("competitors", 0) and Check(gain, MORE).verdict is Verdict.HOLDS
    }
    gains = [
        pair
        for pair in versus(runs, RENO_BACKWARD, RENO, bit_error_rate=(MIDDLE, HIGH))
        if pair[0] in own
    ]
    return everywhere(gains, MORE, "Backward over none, both with Reno, where it is more with SACK")


def no_better(lower: Sequence[str], upper: Sequence[str], what: str) -> Test:
    """Tests that no sender with a kind of ETEN in `lower` has more goodput than one with a kind in
    `upper`, all else equal, wherever there are both."""

    def test(runs: Runs) -> Judgement:
        cells = [
            (case, case.but(eten=eten))
            for case in runs.cases(eten=tuple(lower))
            for eten in upper
            if eten != case["eten"] and case.but(eten=eten) in runs.found
        ]
        cells = [(case, to) for case, to in cells if is_alive(runs, case) and is_alive(runs, to)]
        ratios = {(case, to): ratio_of(runs, case, to) for case, to in cells}
        bound = every([Check(ratio, below(1 + NEGLIGIBLE)) for ratio in ratios.values()])
        if not cells:
            return bound.judged(f"{what}.")
        case, to = max(cells, key=lambda pair: ratios[pair].value)
        most_of = ratios[case, to]
        return bound.judged(
            f"{what}: at most {interval(most_of)} ({sender_name(case)} over {sender_name(to)},"
            f" {where(case)},"
            f" {ERRORS[case['errors']]}). Less than {percent(NEGLIGIBLE)} is not held to be more.",
            most_of,
            case,
        )

    return test


def kept(runs: Runs, sender: Case, **where: Any) -> Pairs:
    """The share of the goodput without errors that is left with errors."""
    return [
        (case, ratio_of(runs, case, case.but(bit_error_rate=0.0)))
        for case in runs.cases(**sender, **where)
        if case["bit_error_rate"]
        and is_alive(runs, case)
        and is_alive(runs, case.but(bit_error_rate=0.0))
    ]


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
    summary = f"{what}: {_said(least, place)}"
    if len(pairs) > 1:
        summary += f" to {_said(highest, place)}"
    case, ratio = highest if largest else least
    return claim.judged(f"{summary}.", ratio, case)


def _said(pair: tuple[Case, Estimate], place: Callable[[Case], str]) -> str:
    case, ratio = pair
    return f"{number(ratio.value)} [{number(ratio.lo)}, {number(ratio.hi)}] ({place(case)})"
