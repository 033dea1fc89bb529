"""The policies over one kind of last hop (§3.2.1): tables 3.1, 3.2, figures 3.2, 3.3."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from lasthop.publications.obanaik2003.fairness import policies, simulation, single, windows, words
from lasthop.publications.obanaik2003.fairness.policies import (
    ALTERNATIVES,
    CANIT,
    CR,
    IBK,
    NAMES,
    NO_RTT,
    POLICIES,
    STANDARD,
)
from lasthop.publications.study.published import Test
from lasthop.publications.study.runs import Case, Cell, Runs
from lasthop.publications.study.study import Drawn, Study
from lasthop.publications.study.verdict import Check, Judgement, above, below, every
from lasthop.publications.study.words import MARKED, NEGLIGIBLE, percent

#: "Two to three times as many" losses at least.
TWICE = 2.0
#: "Many" timeouts: so many times the standard's.
MANY = 1.25
#: Of the window at one acknowledgment.
STEP = "largest_step_segments"
_SHOWN = 400


def cells(link: str) -> list[Cell]:
    """Every policy, by every round trip that it may go by."""
    return [
        simulation.cell(link, policy, rtt)
        for policy in POLICIES
        for rtt in policies.round_trips(policy)
    ]


def _cases(runs: Runs) -> list[Case]:
    """What is held against the standard: by the measured round trip, and by the other."""
    return runs.cases(policy=ALTERNATIVES)


def _standard_best(link: str, runs: Runs) -> Judgement:
    metric = "goodput_bps"
    best = simulation.standard(link)
    pairs = [(best, case) for case in _cases(runs)]
    for worst in runs.cases(policy=CANIT):
        others = runs.cases(policy=(IBK, CR), rtt=(NO_RTT, worst["rtt"]))
        pairs += [(other, worst) for other in others]
    more = [Check(runs.ratio(*pair, metric), above(1 + NEGLIGIBLE)) for pair in pairs]
    return every(more).judged(
        f"kb/s: {words.each(runs, runs, metric, 1e3)}.", runs.mean(best, metric), best, "bit/s"
    )


def _more_losses(link: str, runs: Runs) -> Judgement:
    standard = simulation.standard(link)
    pairs = [(case, standard) for case in _cases(runs)]
    more = [Check(runs.difference(*pair, "losses_packets", TWICE), above(0.0)) for pair in pairs]
    return every(more).judged(
        f"Times as many as the standard's {words.number(runs.mean(standard, 'losses_packets'))}:"
        f" {words.ratios(runs, pairs, 'losses_packets')}. They are to be {TWICE:g} times as many at"
        " least.",
    )


def _k_least(link: str, runs: Runs) -> Judgement:
    k = runs.case(policy=IBK)
    others = runs.cases(policy=(CR, CANIT))
    fewer = [Check(runs.difference(k, case, "losses_packets"), below(0.0)) for case in others]
    return every(fewer).judged(
        f"Losses: {words.each(runs, [k, *others], 'losses_packets')}.",
        runs.mean(k, "losses_packets"),
        k,
        "packets",
    )


def _timeouts(link: str, runs: Runs) -> Judgement:
    standard = simulation.standard(link)
    more = [
        Check(runs.difference(case, standard, "timeouts", MANY), above(0.0))
        for case in _cases(runs)
    ]
    return every(more).judged(
        f"Timeouts in 100 s: {words.each(runs, runs, 'timeouts')}. Many are {MANY:g} times the"
        " standard's at least."
    )


def _steep(link: str, runs: Runs) -> Judgement:
    cases = [runs.case(policy=p, rtt=policies.default_rtt(p)) for p in POLICIES]
    _, k, *others = cases
    steps = [Check(runs.mean(case, STEP), above(1 + MARKED)) for case in others]
    return every([*steps, Check(runs.mean(k, STEP), below(1 + NEGLIGIBLE))]).judged(
        "The largest step at one acknowledgment of a run, segments:"
        f" {words.each(runs, cases, STEP)}. Large is taken as {percent(MARKED)} more than the one"
        " segment of slow start.",
    )


def tests(link: str) -> Mapping[str, Test]:
    """Of the statements in published.toml."""
    return {
        "standard-best": partial(_standard_best, link),
        "more-losses": partial(_more_losses, link),
        "k-least": partial(_k_least, link),
        "timeouts": partial(_timeouts, link),
        "steep": partial(_steep, link),
    }


def _panel(link: str, policy: str) -> tuple[Cell, Cell]:
    rtt = policies.default_rtt(policy)
    return simulation.cell(link, policy, rtt), simulation.cell(link, STANDARD, NO_RTT)


def _outcome(link: str, runs: Runs) -> str:
    def kbps(case: Case) -> str:
        return f"{words.value(runs, case, 'goodput_bps') / 1e3:.2f}"

    shown = [runs.case(policy=p, rtt=policies.default_rtt(p)) for p in POLICIES]
    summary = ", ".join(f"{NAMES[case['policy']]} {kbps(case)}" for case in shown)
    return f"Goodput in kb/s: {summary}."


def study(link: str, where: str, drawn: Mapping[str, str], figure: str) -> Study:
    """The study of one last hop; `drawn` are the policies of the figure's panels, with titles."""
    name = simulation.LINK_NAMES[link]
    return Study(
        publication=simulation.PUBLICATION,
        experiment=f"fairness/{link}",
        title=f"Fairness policies over a {name}",
        asks=f"Policies that let connections with long round trips grow faster are for fast links"
        " that"
        f" they share. What do they do to one whose own last hop, a {name}, is the bottleneck?",
        where=where,
        method=simulation.METHOD,
        cells=partial(cells, link),
        observe=simulation.observe(single.FOLLOWED),
        measures=simulation.MEASURES,
        figures=[
            Drawn(
                f"{figure}: the congestion window over acknowledgments, one run, the first"
                f" {_SHOWN}.",
                lambda _: windows.figure(
                    {title: _panel(link, policy) for policy, title in drawn.items()},
                    single.MSS,
                    _SHOWN,
                ),
                bars=False,
            )
        ],
        keys=simulation.KEYS,
        tests=tests(link),
        most_seeds=simulation.MOST_SEEDS,
        outcome=partial(_outcome, link),
    )
