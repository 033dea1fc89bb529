"""Comparisons that the statements of several simulations need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from lasthop.publications.bbn8333.cases import AIMD, LTN, NAMES, Case, Runs, Variant, extreme
from lasthop.publications.bbn8333.findings import HIGH, NEGLIGIBLE, Verdict, at, more, number
from lasthop.stats import Estimate

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
) -> Verdict:
    """Whether something holds in every cell. Quotes the extremes; what is measured is the one
    that decides: the largest, if too much would be wrong, or the smallest."""
    if not pairs:
        return Verdict(False, f"{what}: nothing arrived that could be compared.")
    place = of or where
    least, most = extreme(pairs, largest=False), extreme(pairs, largest=True)
    held = sum(holds(ratio) for _, ratio in pairs)
    told = f"{what}: {_said(least, place)}"
    if len(pairs) > 1:
        told += f" to {_said(most, place)}; it holds in {held} of {len(pairs)} cells"
    case, ratio = most if largest else least
    return Verdict(held == len(pairs), f"{told}.", ratio, case)


def mostly(pairs: Pairs, what: str) -> Verdict:
    """Whether a ratio is above one in most cells, clearly, and clearly below in none."""
    if not pairs:
        return Verdict(False, f"{what}: nothing arrived that could be compared.")
    least, most = extreme(pairs, largest=False), extreme(pairs, largest=True)
    above = sum(more(ratio) for _, ratio in pairs)
    below = sum(ratio.hi < 1 - NEGLIGIBLE for _, ratio in pairs)
    return Verdict(
        not below and 2 * above > len(pairs),
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
