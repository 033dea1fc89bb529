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
from lasthop.publications.bbn8333.findings import HIGH, Test, at
from lasthop.publications.study.verdict import Judgement, Verdict
from lasthop.publications.study.words import (
    FEW_SEEDS,
    MARKED,
    NEGLIGIBLE,
    NOTHING,
    interval,
    number,
    percent,
)
from lasthop.stats import CONFIDENCE, Estimate

Pairs = Sequence[tuple[Case, Estimate]]

SACK = Variant("sack")
BACKWARD = Variant("sack", "backward")
ORACLE = Variant("sack", "oracle")


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
    # All intervals together are to hold with 95 %: each alone with more (Bonferroni).
    gains = [(case, runs.gain(case, together(len(cases)))) for case in cases]
    clear = sorted((pair for pair in gains if pair[1].hi < 1), key=lambda pair: pair[1].value)
    return [
        Worse(case, f"{where(case)}, {ERRORS[case.errors]}", runs.gain(case), _differ(runs, case))
        for case, _ in clear
    ]


def together(cells: int) -> float:
    """The confidence of each of many intervals that all together are to hold (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / max(cells, 1)


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


def no_better(lower: Sequence[str], upper: Sequence[str], what: str) -> Test:
    """Tests that nobody who is told in one of the ways `lower` has more goodput than one who is
    told in one of the ways `upper`, all else equal, wherever there are both."""

    def test(runs: Runs) -> Judgement:
        pairs = [
            (case, case.but(eten=eten))
            for case in runs.cases(eten=tuple(lower))
            for eten in upper
            if eten != case.eten and case.but(eten=eten) in runs
        ]
        pairs = [(case, to) for case, to in pairs if runs.is_alive(case) and runs.is_alive(to)]
        if not pairs:
            return Judgement(Verdict.of(False), f"{what}: nothing arrived that could be compared.")
        confidence = together(len(pairs))
        ratios = {(case, to): runs.ratio(case, to, confidence) for case, to in pairs}
        above = sum(ratio.lo > 1 for ratio in ratios.values())
        case, to = max(pairs, key=lambda pair: ratios[pair].value)
        most = runs.ratio(case, to)
        return Judgement(
            Verdict.of(all(ratio.lo <= 1 + NEGLIGIBLE for ratio in ratios.values())),
            f"{what}: at most {interval(most)} ({case.variant} over {to.variant}, {where(case)},"
            f" {ERRORS[case.errors]}); clearly more in {above} of {len(pairs)} cells, at 95 %"
            f" confidence for all of them together. Less than {percent(NEGLIGIBLE)} is not held to"
            " be more.",
            most,
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


def every(
    pairs: Pairs,
    holds: Callable[[Estimate], bool],
    what: str,
    of: Callable[[Case], str] | None = None,
    *,
    largest: bool = False,
) -> Judgement:
    """Whether something holds in every cell. Quotes the extremes; what is measured is the one
    that decides: the largest, if too much would be wrong, or the smallest."""
    if not pairs:
        return Judgement(Verdict.of(False), f"{what}: nothing arrived that could be compared.")
    place = of or where
    least, most = extreme(pairs, largest=False), extreme(pairs, largest=True)
    held = sum(holds(ratio) for _, ratio in pairs)
    told = f"{what}: {_said(least, place)}"
    if len(pairs) > 1:
        told += f" to {_said(most, place)}; it holds in {held} of {len(pairs)} cells"
    case, ratio = most if largest else least
    return Judgement(Verdict.of(held == len(pairs)), f"{told}.", ratio, case)


def more(ratio: Estimate) -> bool:
    """Whether a ratio is above one: clearly, or markedly where there are too few seeds for that."""
    return ratio.lo > 1 or (ratio.n < FEW_SEEDS and ratio.value > 1 + MARKED)


def mostly(pairs: Pairs, what: str) -> Judgement:
    """Whether a ratio is above one in most cells, clearly, and clearly below in none."""
    if not pairs:
        return Judgement(Verdict.of(False), f"{what}: nothing arrived that could be compared.")
    least, most = extreme(pairs, largest=False), extreme(pairs, largest=True)
    above = sum(more(ratio) for _, ratio in pairs)
    below = sum(ratio.hi < 1 - NEGLIGIBLE for _, ratio in pairs)
    return Judgement(
        Verdict.of(not below and 2 * above > len(pairs)),
        f"{what}: {_said(least, where)} to {_said(most, where)}; more in {above} of {len(pairs)}"
        f" cells, less in {below}.",
        least[1],
        least[0],
    )


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
