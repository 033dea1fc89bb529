"""The policies on the test-bed (§3.3.2): table 3.7, figures 3.9, 3.10."""

from __future__ import annotations

from itertools import pairwise

from lasthop.publications.obanaik2003 import bed, policies, simulation, windows, words
from lasthop.publications.obanaik2003.bed import CONSTANTS, STANDARD_ALONE, VARIANTS, Variant
from lasthop.publications.obanaik2003.policies import CANIT, CR, IBK, PROPAGATION, STANDARD
from lasthop.publications.obanaik2003.simulation import LINK_NAMES, LTN, SLOW
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Judgement, Verdict

_MSS = 256
_SHOWN = 300
_METRIC = "payload_bps"


def cells() -> list[Cell]:
    """Every policy, by every round trip that it may go by."""
    return [
        bed.cell(link, variant, rtt=rtt)
        for link in (SLOW, LTN)
        for variant in VARIANTS
        for rtt in policies.round_trips(variant.policy)
    ]


def _known_to_hosts(runs: Runs, link: str) -> list[Case]:
    """CANIT and constant rate by the measured round trip: real hosts know no other."""
    found = runs.cases(link=link, policy=(CR, CANIT))
    return [case for case in found if case["rtt"] != PROPAGATION]


def _order(runs: Runs) -> Judgement:
    holds, told = True, []
    for link in (SLOW, LTN):
        cases = runs.cases(link=link)
        goodput = {case: words.value(runs, case, _METRIC) for case in cases}
        first, second = (runs.case(link=link, policy=policy) for policy in (STANDARD, IBK))
        rest = _known_to_hosts(runs, link)
        holds &= goodput[first] > goodput[second] > max(goodput[case] for case in rest)
        told.append(f"{LINK_NAMES[link]}: {words.each(runs, cases, _METRIC, 1e3)}")
    return Judgement(Verdict.of(holds), f"kb/s. {'; '.join(told)}.")


def _losses(runs: Runs) -> Judgement:
    holds, told = True, []
    for link in (SLOW, LTN):
        cases = runs.cases(link=link)
        losses = {case: words.value(runs, case, "losses_packets") for case in cases}
        first, second = (runs.case(link=link, policy=policy) for policy in (STANDARD, IBK))
        rest = _known_to_hosts(runs, link)
        holds &= losses[first] < losses[second] < min(losses[case] for case in rest)
        told.append(f"{LINK_NAMES[link]}: {words.each(runs, cases, 'losses_packets')}")
    return Judgement(Verdict.of(holds), f"{'; '.join(told)}.")


def _growth(cell: Cell) -> float:
    """Segments per acknowledgment where the window grows by less than in slow start, in one run."""
    found = windows.steps(cell, _MSS)
    grown = [(b - a) * a for a, b in pairwise(found) if b > a and b - a < 0.999]
    return sum(grown) / len(grown) if grown else 0.0


def _largest(cell: Cell) -> float:
    found = windows.steps(cell, _MSS)
    return max(b - a for a, b in pairwise(found))


def _twice(_: Runs) -> Judgement:
    plain, k = (_growth(bed.cell(SLOW, v)) for v in (STANDARD_ALONE, Variant(IBK)))
    steps = {
        variant: _largest(bed.cell(SLOW, variant))
        for variant in (*VARIANTS[:3], Variant(CR, CONSTANTS[1]))
    }
    told = ", ".join(f"{words.policy(variant.case)} {step:.2f}" for variant, step in steps.items())
    steep = min(step for v, step in steps.items() if v.policy in (CR, CANIT))
    return Judgement(
        Verdict.of(
            1.6 < k / plain < 2.4 and steep > max(steps[STANDARD_ALONE], steps[Variant(IBK)])
        ),
        "In the run of the figure, segments a window in congestion avoidance: standard"
        f" {plain:.2f}, increase-by-K {k:.2f}. The largest step at one acknowledgment: {told}.",
    )


def _outcome(runs: Runs) -> str:
    def kbps(case: Case) -> str:
        return f"{words.value(runs, case, _METRIC) / 1e3:.2f}"

    shown = [runs.case(link=SLOW, rtt=policies.default_rtt(v.policy), **v.case) for v in VARIANTS]
    told = ", ".join(f"{words.policy(case)} {kbps(case)}" for case in shown)
    return f"Over the slow link, kb/s: {told}."


def _figure(link: str) -> Drawn:
    number = {SLOW: "3.9", LTN: "3.10"}[link]
    panels = {
        "(a) CANIT": Variant(CANIT),
        "(b) Increase by K": Variant(IBK),
        "(c) Constant rate, c = 10": Variant(CR, CONSTANTS[0]),
    }
    return Drawn(
        f"Figure {number}: the congestion window of connection 3 over a {LINK_NAMES[link]}, one"
        " run,"
        f" the first {_SHOWN} acknowledgments.",
        lambda _: windows.figure(
            {
                title: (bed.cell(link, variant), bed.cell(link, STANDARD_ALONE))
                for title, variant in panels.items()
            },
            _MSS,
            _SHOWN,
        ),
        bars=False,
    )


STUDY = Study(
    publication=simulation.PUBLICATION,
    experiment="fairness/testbed",
    title="The test-bed's path: the policies",
    asks="On real hosts, over a modem and over a GSM phone, the thesis finds what its simulations"
    " show."
    " What does its path do in the lab?",
    where="§3.3.2, table 3.7, figures 3.9, 3.10",
    method=bed.METHOD,
    cells=cells,
    observe=bed.observe(),
    measures=bed.MEASURES,
    figures=[_figure(SLOW), _figure(LTN)],
    keys=bed.KEYS,
    tests={"order": _order, "losses": _losses, "twice-the-rate": _twice},
    outcome=_outcome,
)
reproduce = STUDY.reproduce
