"""The policies over one kind of last hop (§3.2.1): tables 3.1, 3.2, figures 3.2, 3.3."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise

from lasthop.publications.obanaik2003 import policies, simulation, windows, words
from lasthop.publications.obanaik2003.policies import (
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
from lasthop.publications.study.verdict import Judgement, Verdict

#: "Two to three times as many" losses at least.
TWICE = 2.0
#: "Many" timeouts: so many times the standard's.
MANY = 1.25
MSS = 256
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
    mean = partial(words.value, runs, metric=metric)
    worst = min(runs, key=mean)
    holds = all(mean(best) > mean(case) for case in _cases(runs)) and worst["policy"] == CANIT
    return Judgement(
        Verdict.of(holds),
        f"kb/s: {words.each(runs, runs, metric, 1e3)}.",
        runs.mean(best, metric),
        best,
        "bit/s",
    )


def _more_losses(link: str, runs: Runs) -> Judgement:
    standard = simulation.standard(link)
    pairs = [(case, standard) for case in _cases(runs)]
    found = [runs.ratio(*pair, "losses_packets") for pair in pairs]
    return Judgement(
        Verdict.of(all(ratio is not None and ratio.value >= TWICE for ratio in found)),
        f"Times as many as the standard's {words.number(runs.mean(standard, 'losses_packets'))}:"
        f" {words.ratios(runs, pairs, 'losses_packets')}.",
    )


def _k_least(link: str, runs: Runs) -> Judgement:
    mean = partial(words.value, runs, metric="losses_packets")
    k = runs.case(policy=IBK)
    others = runs.cases(policy=(CR, CANIT))
    return Judgement(
        Verdict.of(all(mean(k) < mean(case) for case in others)),
        f"Losses: {words.each(runs, [k, *others], 'losses_packets')}.",
        runs.mean(k, "losses_packets"),
        k,
        "packets",
    )


def _timeouts(link: str, runs: Runs) -> Judgement:
    standard = words.value(runs, simulation.standard(link), "timeouts")
    more = [words.value(runs, case, "timeouts") > MANY * standard for case in _cases(runs)]
    return Judgement(
        Verdict.of(all(more)), f"Timeouts in 100 s: {words.each(runs, runs, 'timeouts')}."
    )


def largest_step(cell: Cell) -> float:
    """Of the window at one acknowledgment, segments, in the run of the figure."""
    found = windows.steps(cell, MSS)
    return max(b - a for a, b in pairwise(found))


def _steep(link: str, runs: Runs) -> Judgement:
    found = {
        policy: largest_step(simulation.cell(link, policy, policies.default_rtt(policy)))
        for policy in (STANDARD, IBK, CR, CANIT)
    }
    told = ", ".join(f"{NAMES[policy]} {step:.2f}" for policy, step in found.items())
    return Judgement(
        Verdict.of(found[CR] > 1 and found[CANIT] > 1 and found[IBK] <= 1.01),
        f"The largest step at one acknowledgment in the run of the figure, segments: {told}.",
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
    told = ", ".join(f"{NAMES[case['policy']]} {kbps(case)}" for case in shown)
    return f"Goodput in kb/s: {told}."


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
        observe=simulation.observe(),
        measures=simulation.MEASURES,
        figures=[
            Drawn(
                f"{figure}: the congestion window over acknowledgments, one run, the first"
                f" {_SHOWN}.",
                lambda _: windows.figure(
                    {title: _panel(link, policy) for policy, title in drawn.items()}, MSS, _SHOWN
                ),
                bars=False,
            )
        ],
        keys=simulation.KEYS,
        tests=tests(link),
        outcome=partial(_outcome, link),
    )
