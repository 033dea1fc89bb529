"""The policies on the test-bed (§3.3.2): table 3.7, figures 3.9, 3.10."""

from __future__ import annotations

from lasthop.publications.obanaik2003.fairness import (
    bed,
    policies,
    simulation,
    single,
    windows,
    words,
)
from lasthop.publications.obanaik2003.fairness.bed import (
    CONSTANTS,
    STANDARD_ALONE,
    VARIANTS,
    Variant,
)
from lasthop.publications.obanaik2003.fairness.last_hop import STEP
from lasthop.publications.obanaik2003.fairness.policies import CANIT, CR, IBK, PROPAGATION, STANDARD
from lasthop.publications.obanaik2003.fairness.simulation import LINK_NAMES, LTN, SLOW
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Check, Joint, Judgement, above, below, between, every
from lasthop.publications.study.words import MARKED, NEGLIGIBLE, SMALL

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
    more, summary = [], []
    for link in (SLOW, LTN):
        first, second = (runs.case(link=link, policy=policy) for policy in (STANDARD, IBK))
        pairs = [(first, second), *((second, case) for case in _known_to_hosts(runs, link))]
        more += [Check(runs.ratio(*pair, _METRIC), above(1 + NEGLIGIBLE)) for pair in pairs]
        summary.append(
            f"{LINK_NAMES[link]}: {words.each(runs, runs.cases(link=link), _METRIC, 1e3)}"
        )
    return every(more).judged(f"kb/s. {'; '.join(summary)}.")


def _losses(runs: Runs) -> Judgement:
    summary = [
        f"{LINK_NAMES[link]}: {words.each(runs, runs.cases(link=link), bed.SHARE, 0.01)}"
        for link in (SLOW, LTN)
    ]
    return _fewer(runs, bed.SHARE).judged(
        f"Of packets at the last hop, %. {'; '.join(summary)}. Counted in packets the statement has"
        f" the verdict: {_fewer(runs, bed.PACKETS).verdict}."
    )


def _fewer(runs: Runs, metric: str) -> Joint:
    """The standard loses less than increase-by-K, and that less than the others."""
    fewer = []
    for link in (SLOW, LTN):
        first, second = (runs.case(link=link, policy=policy) for policy in (STANDARD, IBK))
        pairs = [(first, second), *((second, case) for case in _known_to_hosts(runs, link))]
        fewer += [
            Check(runs.difference(*pair, metric, 1 - NEGLIGIBLE), below(0.0)) for pair in pairs
        ]
    return every(fewer)


def _steep(runs: Runs) -> Judgement:
    """How steeply increase-by-K grows is not held against the thesis: K was chosen by it."""
    cases = [runs.case(link=SLOW, rtt=policies.default_rtt(v.policy), **v.case) for v in VARIANTS]
    plain, k, canit, *constant = cases
    steep = [
        Check(runs.ratio(case, plain, STEP), above(1 + MARKED)) for case in (canit, constant[-1])
    ]
    alike = Check(runs.ratio(k, plain, STEP), between(1 - SMALL, 1 + SMALL))
    return every([*steep, alike]).judged(
        "The largest step at one acknowledgment of a run, segments:"
        f" {words.each(runs, cases, STEP)}."
    )


def _outcome(runs: Runs) -> str:
    def kbps(case: Case) -> str:
        return f"{words.value(runs, case, _METRIC) / 1e3:.2f}"

    shown = [runs.case(link=SLOW, rtt=policies.default_rtt(v.policy), **v.case) for v in VARIANTS]
    summary = ", ".join(f"{words.policy(case)} {kbps(case)}" for case in shown)
    return f"Over the slow link, kb/s: {summary}."


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
            single.MSS,
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
    observe=bed.observe(single.FOLLOWED),
    measures=bed.MEASURES,
    figures=[_figure(SLOW), _figure(LTN)],
    keys=bed.KEYS,
    answers=lambda runs: [bed.loss_readings(runs, "fairness/testbed")],
    tests={"order": _order, "losses": _losses, "steep": _steep},
    most_seeds=simulation.MOST_SEEDS,
    outcome=_outcome,
)
